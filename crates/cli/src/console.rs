//! Where a command writes: the answer to stdout, the narration to stderr, files whole or not at all.

use crate::print::{WIDTH, wrap};
use answers::{Kind, Refusal};
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;

/// Writes a file that was asked for, whole or not at all: a reader of the old one never sees half
/// of the new one.
pub(crate) fn write_file(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Refusal> {
    formats::files::write(path, bytes).map_err(|error| Refusal::unwritable(path, &error))
}

/// Lines of at most a screen's width. Lines that are indented, as commands to copy are, stay.
fn fitted(text: &str) -> String {
    let lines = text.split('\n').map(|line| {
        if line.starts_with(' ') || line.chars().count() <= WIDTH {
            return line.to_owned();
        }
        let label = ["error: ", "warning: ", "hint: "].into_iter().find(|l| line.starts_with(l));
        wrap(line, "", label.map_or(0, str::len), WIDTH).trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The two streams, and whether a person is looking at them.
pub struct Console {
    stdout: Box<dyn Write + Send>,
    stderr: Box<dyn Write + Send>,
    colour: bool,
    progress: bool,
    /// The reader of the answers went away.
    closed: bool,
}

impl Console {
    /// The process's own streams. No colour when stdout is not a terminal or `NO_COLOR` is set.
    pub fn standard() -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            colour: !plain && std::io::stdout().is_terminal(),
            progress: std::io::stderr().is_terminal(),
            stdout: Box::new(std::io::stdout()),
            stderr: Box::new(std::io::stderr()),
            closed: false,
        }
    }

    /// Streams of the caller's choice, without colour (for tests and for embedding).
    pub fn to(stdout: Box<dyn Write + Send>, stderr: Box<dyn Write + Send>) -> Self {
        let (colour, progress, closed) = (false, false, false);
        Self { stdout, stderr, colour, progress, closed }
    }

    /// Whether the answer may be coloured.
    pub fn colour(&self) -> bool {
        self.colour
    }

    /// Whether a progress bar may be drawn on stderr.
    pub fn interactive(&self) -> bool {
        self.progress
    }

    /// Writes (a part of) the answer.
    ///
    /// # Errors
    /// Where it cannot be written. A closed pipe is no failure: `dosimeter … | head` ends quietly.
    pub fn answer(&mut self, text: &str) -> Result<(), Refusal> {
        self.bytes(text.as_bytes())?;
        if text.ends_with('\n') { Ok(()) } else { self.bytes(b"\n") }
    }

    /// Writes bytes as they are.
    ///
    /// # Errors
    /// As [`Console::answer`].
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        if self.closed {
            return Ok(());
        }
        match self.stdout.write_all(bytes).and_then(|()| self.stdout.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.closed = true,
            Err(error) => {
                return Err(Refusal::bad_input(format!("cannot write the answer: {error}")));
            }
            Ok(()) => {}
        }
        Ok(())
    }

    /// Prints a document as pretty JSON.
    ///
    /// # Errors
    /// As [`Console::answer`].
    pub fn json(&mut self, document: &impl serde::Serialize) -> Result<(), Refusal> {
        let text = serde_json::to_string_pretty(document)
            .map_err(|error| Refusal::new(Kind::Bug, error.to_string()))?;
        self.answer(&text)
    }

    /// A line of narration. On a terminal it is broken to fit a screen; in a file it stays one
    /// line, for those who search in it.
    pub fn note(&mut self, text: &str) {
        let text = if self.progress { fitted(text) } else { text.to_owned() };
        // Narration that nobody can read is no reason to fail.
        let _ = writeln!(self.stderr, "{text}");
    }

    pub fn warn(&mut self, text: &str) {
        self.note(&format!("warning: {text}"));
    }

    pub fn hint(&mut self, text: &str) {
        self.note(&format!("hint: {text}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_reads_lines_that_fit_a_screen() {
        let text = "hint: each row is taken for a training of its own; for canaries of one \
                    training give --design one-run\n  dosimeter audit scores.csv";
        assert_eq!(
            fitted(text),
            "hint: each row is taken for a training of its own; for canaries of one training\n      \
             give --design one-run\n  dosimeter audit scores.csv"
        );
        let short = "error: \u{3b5} is 1";
        assert_eq!(fitted(short), short);
    }
}
