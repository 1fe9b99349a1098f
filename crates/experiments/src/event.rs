use std::time::Duration;

/// What happens while an experiment runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Work begins: of `chunks` in this shard, `done` were found finished.
    Planned { chunks: u64, done: u64, trials: u64 },
    /// A chunk was computed and stored.
    ChunkDone { index: u64, trials: u64, took: Duration },
    /// All chunks are there and the output is being written.
    Merging,
}

/// Receives events, possibly from several threads at once.
pub trait Reporter: Sync {
    fn event(&self, event: &Event);
}

/// A reporter that ignores everything.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Reporter for Silent {
    fn event(&self, _event: &Event) {}
}
