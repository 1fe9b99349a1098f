//! A run in one line.

use super::{WIDTH, plain, wrap};
use vocabulary::{Adjacency, Run, Sampling};

/// The run as a sentence without a verb, e.g. for the first line of an answer.
pub fn run(run: &Run) -> String {
    let mut text = String::from("DP-SGD: ");
    for (index, phase) in run.phases().iter().enumerate() {
        if index > 0 {
            text.push_str(", then ");
        }
        text.push_str(&format!("noise multiplier {}", plain(phase.noise_multiplier)));
        if run.sampling() != Sampling::Full {
            text.push_str(&format!(", sample rate {}", plain(phase.sample_rate)));
        }
        text.push_str(&format!(", {} steps", phase.steps));
    }
    text.push_str(&format!("; {}", run.sampling().words()));
    text.push_str(match run.adjacency() {
        Adjacency::AddRemove => ", add/remove",
        Adjacency::Substitute => ", substitution",
        Adjacency::ZeroOut => ", zero-out",
    });
    if run.group_size() > 1 {
        text.push_str(&format!(", groups of {} records", run.group_size()));
    }
    if let Some(unit) = run.unit() {
        text.push_str(&format!("; a record is {unit}"));
    }
    wrap(&text, "", 8, WIDTH)
}
