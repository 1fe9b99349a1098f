//! Long work, and the front end's side of it.

use experiments::{Event, Reporter};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use training::TrainingEvent;

/// Is called with the progress of work, and may stop it.
pub trait Work: Reporter {
    /// Set from outside: what is in hand is finished and kept, then the work returns.
    fn stop(&self) -> Arc<AtomicBool>;

    /// What is done next, in words.
    fn note(&self, _text: &str) {}

    /// What to know before the answer is quoted.
    fn warn(&self, text: &str) {
        self.note(&format!("warning: {text}"));
    }

    /// What a training does.
    fn training(&self, event: &TrainingEvent) {
        self.event(&as_event(event));
    }
}

/// A training in the words of an experiment: a step is a chunk of one trial.
pub(crate) fn as_event(event: &TrainingEvent) -> Event {
    match event {
        TrainingEvent::Started { steps, done } => {
            Event::Planned { chunks: *steps, done: *done, trials: *steps }
        }
        TrainingEvent::Step { done, .. } => {
            Event::ChunkDone { index: done.saturating_sub(1), trials: 1, took: Duration::ZERO }
        }
        TrainingEvent::Evaluating => Event::Merging,
    }
}

/// How long work ends: with an answer, or stopped before, with what the command line exits with.
#[derive(Clone, Debug)]
pub enum Ended<T> {
    Answered(T),
    Stopped(u8),
}
