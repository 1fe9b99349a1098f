//! What the tests of reproductions share.

use experiments::Silent;
use papers::{Context, Reproduction, entry};
use std::sync::atomic::AtomicBool;

/// An entry with its own number of games, on one thread, in a folder that is removed again.
pub(crate) fn reproduce(id: &str) -> Reproduction {
    let root = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let context = Context {
        folder: root.path(),
        threads: 1,
        trials: None,
        seed: 0,
        data: None,
        reporter: &Silent,
        stop: &stop,
    };
    entry(id).unwrap().reproduce(&context).unwrap()
}
