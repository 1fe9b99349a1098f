//! Progress of long work: a bar with rate and time left on a terminal, now and then a plain line
//! elsewhere. Experiments count chunks of trials, trainings count steps.

use crate::console::Console;
use answers::Work;
use experiments::{Event, Reporter};
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use training::TrainingEvent;

/// Draws the events of one experiment or training on stderr.
pub(crate) struct Progress<'a> {
    bar: Mutex<Bar<'a>>,
}

/// This many of a unit are done.
struct Bar<'a> {
    console: &'a mut Console,
    drawn: Option<ProgressBar>,
    unit: &'static str,
    length: u64,
    done: u64,
    /// Done before this command began.
    found: u64,
    trials: u64,
    start: Instant,
    shown: Instant,
}

/// Between plain lines.
const QUIET: Duration = Duration::from_secs(5);
/// Between two pictures of the bar.
const FRAME: Duration = Duration::from_millis(100);

impl<'a> Progress<'a> {
    pub(crate) fn new(console: &'a mut Console) -> Self {
        let start = Instant::now();
        let bar = Bar {
            console,
            drawn: None,
            unit: "chunks",
            length: 0,
            done: 0,
            found: 0,
            trials: 0,
            start,
            shown: start,
        };
        Self { bar: Mutex::new(bar) }
    }

    fn draw(&self, change: impl FnOnce(&mut Bar<'a>)) {
        change(&mut self.bar.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Work for Progress<'_> {
    fn stop(&self) -> Arc<AtomicBool> {
        crate::interrupt::stop_flag()
    }

    fn note(&self, text: &str) {
        self.draw(|bar| bar.console.note(text));
    }

    fn training(&self, event: &TrainingEvent) {
        self.draw(|bar| match event {
            TrainingEvent::Started { steps, done } => bar.begin("steps", *steps, *done),
            TrainingEvent::Step { done, loss, accuracy, .. } => {
                let quality = loss.zip(*accuracy).map(|(loss, accuracy)| {
                    format!(", loss {loss:.3}, {:.1} % right", 100.0 * accuracy)
                });
                (bar.done, bar.trials) = (*done, *done - bar.found);
                bar.advanced(&quality.unwrap_or_default());
            }
            TrainingEvent::Evaluating => bar.clear(),
        });
    }
}

impl Reporter for Progress<'_> {
    fn event(&self, event: &Event) {
        self.draw(|bar| match event {
            Event::Planned { chunks, done, .. } => bar.begin("chunks", *chunks, *done),
            Event::ChunkDone { trials, .. } => {
                bar.done += 1;
                bar.trials += trials;
                bar.advanced("");
            }
            Event::Merging => bar.clear(),
        });
    }
}

impl Bar<'_> {
    fn begin(&mut self, unit: &'static str, length: u64, done: u64) {
        (self.unit, self.length, self.done, self.found) = (unit, length, done, done);
        (self.trials, self.start) = (0, Instant::now());
        if done > 0 {
            let left = length - done;
            self.console.note(&format!("{done} of {length} {unit} found, {left} to do"));
        }
        if self.console.interactive() {
            // Steps have more to say; their bar takes what is left of the line.
            let shape = if unit == "steps" { "{wide_bar}" } else { "{bar:30}" };
            let template = format!("{shape} {{pos}}/{{len}} {unit}, {{msg}}, {{eta}} left");
            let style = ProgressStyle::with_template(&template);
            let bar = ProgressBar::new(length).with_position(done);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.reset_eta();
            self.drawn = Some(bar);
        }
    }

    /// Shows what is done, unless something was shown just now.
    fn advanced(&mut self, more: &str) {
        let wait = if self.drawn.is_some() { FRAME } else { QUIET };
        let last = self.done == self.length && self.drawn.is_some();
        if self.shown.elapsed() < wait && !last {
            return;
        }
        self.shown = Instant::now();
        let elapsed = self.start.elapsed().as_secs_f64().max(1e-9);
        let what = if self.unit == "steps" { "steps" } else { "trials" };
        let message = format!("{}{more}", pace(self.trials as f64 / elapsed, what));
        if let Some(bar) = &self.drawn {
            bar.set_message(message);
            bar.set_position(self.done);
            return;
        }
        let computed = (self.done - self.found).max(1) as f64;
        let left = elapsed / computed * (self.length - self.done) as f64;
        let (done, length, unit) = (self.done, self.length, self.unit);
        let left = duration(left);
        self.console.note(&format!("{done} of {length} {unit}, {message}, about {left} left"));
    }

    fn clear(&mut self) {
        if let Some(bar) = self.drawn.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.draw(Bar::clear);
    }
}

/// Seconds as a person says them: `42 s`, `25 min`, `2.1 h`.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        _ if seconds < 120.0 => format!("{seconds:.0} s"),
        _ if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// This many per second, or per minute or hour where there would be less than one.
fn pace(rate: f64, what: &str) -> String {
    match rate {
        _ if rate >= 10.0 => format!("{rate:.0} {what} per second"),
        _ if rate >= 1.0 => format!("{rate:.1} {what} per second"),
        _ if rate >= 1.0 / 60.0 => format!("{:.1} {what} per minute", 60.0 * rate),
        _ => format!("{:.1} {what} per hour", 3600.0 * rate),
    }
}

#[cfg(test)]
mod tests {
    use super::pace;

    #[test]
    fn a_slow_pace_is_not_zero() {
        assert_eq!(pace(1234.4, "trials"), "1234 trials per second");
        assert_eq!(pace(2.5, "steps"), "2.5 steps per second");
        assert_eq!(pace(0.25, "trials"), "15.0 trials per minute");
        assert_eq!(pace(0.002, "trials"), "7.2 trials per hour");
    }
}
