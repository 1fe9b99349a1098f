//! `attack token`, and `attack canaries` on a language model: what is shown of one fine-tuning with many canaries.

use super::{narrate, suggest_audit};
use crate::console::Console;
use crate::print::audit::interval;
use answers::{CanariesPlayed, legends};

pub(super) fn afterwards(done: &CanariesPlayed, console: &mut Console) {
    if let Some(outcome) = &done.played.outcome {
        narrate(outcome, &done.out, console);
    }
    if done.played.is_complete() {
        suggest_audit(&done.out, done.delta.unwrap_or(1e-5), true, console);
    }
}

pub(super) fn human(done: &CanariesPlayed) -> String {
    if !done.played.is_complete() {
        return String::new();
    }
    let mut text = format!(
        "one training with {} {}: {}\n",
        done.canaries,
        match done.score.as_str() {
            "embedding" => {
                "token canaries, each in with probability 1/2, scored by the change of their row of \
                 the embedding"
            }
            "loss" => {
                "token canaries, each in with probability 1/2, scored by the fall of their loss"
            }
            "last-iterate" => {
                "gradient canaries, each in with probability 1/2, scored by the model's move along \
                 them"
            }
            _ => {
                "gradient canaries, each in with probability 1/2, scored by the noisy sums along them"
            }
        },
        done.out.display()
    );
    if let Some(found) = &done.audit {
        let [value, from, to] = interval(&found.auroc);
        text.push_str(&format!(
            "\n  {:<14} {} ({}: {} to {})\n",
            "AUROC",
            value,
            legends::measured_with(found.plan.confidence),
            from,
            to,
        ));
        for bound in &found.bounds {
            text.push_str(&format!(
                "  {:<14} epsilon {} at delta {:e} ({}; {})\n",
                bound.method().as_str(),
                bound.claim.shown(),
                bound.delta(),
                legends::measured_with(bound.level().unwrap_or(0.0)),
                bound.valid_for
            ));
        }
    }
    text
}
