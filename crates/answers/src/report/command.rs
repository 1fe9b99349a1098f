//! The command line that asks the same question.

use super::ReportQuestion;
use crate::Refusal;
use vocabulary::rounding::plain;
use vocabulary::{Permutation, RunDescription, Stopped};

impl ReportQuestion {
    /// The command line that makes the same report, for a POSIX shell.
    ///
    /// # Errors
    /// A run that cannot be read.
    pub fn command(&self) -> Result<String, Refusal> {
        let words: Vec<String> = self.words()?.iter().map(|word| quoted(word)).collect();
        Ok(words.join(" "))
    }

    /// Its words.
    ///
    /// # Errors
    /// A run that cannot be read.
    pub fn words(&self) -> Result<Vec<String>, Refusal> {
        let mut words: Vec<String> = vec!["dosimeter".into(), "report".into()];
        words.extend(self.files.iter().map(|path| path.display().to_string()));
        words.extend(run_words(&self.run.description()?));
        let confidence = self.confidence.filter(|confidence| *confidence != 0.95);
        for (name, value) in [
            ("trials", self.trials.map(|trials| trials.to_string())),
            ("delta", self.delta.map(plain)),
            ("confidence", confidence.map(plain)),
            ("design", self.design.map(|design| design.to_string())),
            ("title", self.title.clone()),
            ("owner", self.owner.clone()),
            ("date", self.date.clone()),
            ("format", self.format.map(|format| format.name().to_owned())),
            ("time-limit", self.time_limit.map(plain)),
            ("out", self.out.as_ref().map(|path| path.display().to_string())),
        ] {
            words.extend(flag(name, value));
        }
        for (name, given) in [
            ("--sequential", self.sequential),
            ("--other-run", self.other_run),
            ("--public", self.public),
        ] {
            if given {
                words.push(name.into());
            }
        }
        Ok(words)
    }
}

/// A description as flags that are read again as the same description. What has no flag, phases and
/// matrices, is in files.
fn run_words(run: &RunDescription) -> Vec<String> {
    let (whole, batches) = (&run.whole, &run.batches);
    let real = |value: Option<f64>| value.map(plain);
    let integer = |value: Option<u64>| value.map(|value| value.to_string());
    let mut words = Vec::new();
    for (name, value) in [
        ("noise-multiplier", real(whole.noise_multiplier)),
        ("sample-rate", real(whole.sample_rate)),
        ("dataset-size", integer(run.dataset_size)),
        ("batch-size", integer(whole.batch_size)),
        ("steps", integer(whole.steps)),
        ("epochs", real(whole.epochs)),
        ("clip-norm", real(run.clip_norm)),
        ("sampling", run.sampling.map(|scheme| scheme.as_str().to_owned())),
        ("adjacency", run.adjacency.map(|relation| relation.as_str().to_owned())),
        ("group-size", integer(run.group_size.map(u64::from))),
        ("unit", run.unit.clone()),
        ("permutation", batches.permutation.map(|order| name_of(order, Permutation::ALL))),
        ("max-batch-size", integer(batches.max_batch_size)),
        ("cycle-length", integer(batches.cycle_length)),
        ("uses-per-epoch", integer(batches.uses_per_epoch)),
        ("count-noise", real(batches.count_noise)),
        ("stopped", batches.stopped.map(|how| name_of(how, Stopped::ALL))),
        ("max-steps", integer(batches.max_steps)),
        ("renyi-order", real(batches.renyi_order)),
        ("renyi-budget", real(batches.renyi_budget)),
    ] {
        words.extend(flag(name, value));
    }
    if batches.replacement == Some(true) {
        words.push("--replacement".to_owned());
    }
    words
}

/// A flag with its value, where it has one.
fn flag(name: &str, value: Option<String>) -> Vec<String> {
    match value {
        None => Vec::new(),
        // What begins with a hyphen would be read as a flag.
        Some(value) if value.starts_with('-') => vec![format!("--{name}={value}")],
        Some(value) => vec![format!("--{name}"), value],
    }
}

fn name_of<T: PartialEq>(value: T, all: &[(&str, T)]) -> String {
    all.iter().find(|(_, one)| *one == value).map_or_else(String::new, |(name, _)| (*name).into())
}

/// A word for a POSIX shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
