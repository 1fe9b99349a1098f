//! Progress of an experiment: a bar with rate and time left on a terminal, now and then a plain
//! line elsewhere.

use crate::console::{Console, Listener};
use experiments::{Event, Reporter};
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Draws the events of one experiment on stderr.
pub(crate) struct Progress<'a> {
    state: Mutex<State<'a>>,
    listener: Option<Listener>,
}

struct State<'a> {
    console: &'a mut Console,
    bar: Option<ProgressBar>,
    start: Instant,
    last_line: Instant,
    chunks: u64,
    done: u64,
    found: u64,
    trials: u64,
}

/// Between plain lines.
const QUIET: Duration = Duration::from_secs(5);

impl<'a> Progress<'a> {
    pub(crate) fn new(console: &'a mut Console) -> Self {
        let now = Instant::now();
        let listener = console.listener();
        let state = State {
            console,
            bar: None,
            start: now,
            last_line: now,
            chunks: 0,
            done: 0,
            found: 0,
            trials: 0,
        };
        Self { state: Mutex::new(state), listener }
    }
}

impl Reporter for Progress<'_> {
    fn event(&self, event: &Event) {
        if let Some(listener) = &self.listener {
            listener(event);
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Planned { chunks, done, .. } => state.begin(*chunks, *done),
            Event::ChunkDone { trials, .. } => state.advance(*trials),
            Event::Merging => {
                if let Some(bar) = state.bar.take() {
                    bar.finish_and_clear();
                }
            }
        }
    }
}

impl State<'_> {
    fn begin(&mut self, chunks: u64, done: u64) {
        (self.chunks, self.done, self.found, self.trials) = (chunks, done, done, 0);
        self.start = Instant::now();
        if done > 0 {
            self.console.note(&format!("{done} of {chunks} chunks found, {} to do", chunks - done));
        }
        if self.console.interactive() {
            let style =
                ProgressStyle::with_template("{bar:30} {pos}/{len} chunks, {msg}, {eta} left");
            let bar = ProgressBar::new(chunks).with_position(done);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.reset_eta();
            self.bar = Some(bar);
        }
    }

    fn advance(&mut self, trials: u64) {
        self.done += 1;
        self.trials += trials;
        let elapsed = self.start.elapsed();
        let rate = self.trials as f64 / elapsed.as_secs_f64().max(1e-9);
        let message = pace(rate);
        if let Some(bar) = &self.bar {
            bar.set_message(message);
            bar.inc(1);
        } else if self.last_line.elapsed() >= QUIET {
            self.last_line = Instant::now();
            let computed = (self.done - self.found).max(1) as f64;
            let left = elapsed.as_secs_f64() / computed * (self.chunks - self.done) as f64;
            self.console.note(&format!(
                "{} of {} chunks, {message}, about {left:.0} s left",
                self.done, self.chunks
            ));
        }
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = state.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Trials per second, or per minute or hour where there would be less than one.
fn pace(rate: f64) -> String {
    match rate {
        _ if rate >= 10.0 => format!("{rate:.0} trials per second"),
        _ if rate >= 1.0 => format!("{rate:.1} trials per second"),
        _ if rate >= 1.0 / 60.0 => format!("{:.1} trials per minute", 60.0 * rate),
        _ => format!("{:.1} trials per hour", 3600.0 * rate),
    }
}

#[cfg(test)]
mod tests {
    use super::pace;

    #[test]
    fn a_slow_pace_is_not_zero() {
        assert_eq!(pace(1234.4), "1234 trials per second");
        assert_eq!(pace(2.5), "2.5 trials per second");
        assert_eq!(pace(0.25), "15.0 trials per minute");
        assert_eq!(pace(0.002), "7.2 trials per hour");
    }
}
