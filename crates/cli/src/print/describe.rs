//! A run in one line.

use super::{WIDTH, wrap};
use vocabulary::Run;

/// The run as a sentence without a verb, e.g. for the first line of an answer.
pub fn run(run: &Run) -> String {
    named(run, "DP-SGD")
}

/// The same under a name.
pub fn named(run: &Run, name: &str) -> String {
    wrap(&sentence(run, &run.batches_in_words(), name), "", 8, WIDTH)
}

/// The same for a run whose batches are drawn in every way, under its name if it has one.
pub(crate) fn in_every_way(run: &Run, name: Option<&str>) -> String {
    wrap(&sentence(run, "batches drawn in every way", name.unwrap_or("DP-SGD")), "", 8, WIDTH)
}

fn sentence(run: &Run, batches: &str, name: &str) -> String {
    let mut text = format!("{name}: {}; {batches}", run.phases_in_words());
    text.push_str(&format!(", {}", run.adjacency().label()));
    if run.group_size() > 1 {
        text.push_str(&format!(", groups of {} records", run.group_size()));
    }
    if let Some(unit) = run.unit() {
        text.push_str(&format!("; a record is {unit}"));
    }
    text
}
