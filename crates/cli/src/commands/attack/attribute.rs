//! `attack attribute`: what is shown of sensitivities to a secret attribute, and of the game of guessing it.

use super::narrate;
use crate::console::Console;
use crate::print::claims;
use answers::{AttributeAnswer, AttributeGuessed, AttributeMeasured, Document, legends};
use std::fmt::Write as _;
use vocabulary::Observe;

pub(super) fn human(answer: &AttributeAnswer) -> String {
    let (mut text, file) = match answer {
        AttributeAnswer::Measured(found) => (measured(found), &found.sensitivity),
        // Until the game is complete there is nothing to show.
        AttributeAnswer::Guessed(found) if found.lines.is_empty() => return String::new(),
        AttributeAnswer::Guessed(found) => (guessed(found), &found.out),
    };
    if let Some(path) = file {
        let _ = write!(text, "\n{}\n", path.display());
    }
    text
}

pub(super) fn afterwards(answer: &AttributeAnswer, console: &mut Console) {
    for warning in answer.warnings() {
        console.warn(&warning);
    }
    match answer {
        AttributeAnswer::Measured(found) => {
            if let Some(record) = &found.worst {
                console.hint(&format!(
                    "the most sensitive of these records is {record}; --record {record} \
                     --observe all --out guesses.csv plays the game against it"
                ));
            }
        }
        AttributeAnswer::Guessed(found) => {
            if let (Some(outcome), Some(out)) = (&found.played.outcome, &found.out) {
                narrate(outcome, out, console);
            }
        }
    }
}

fn measured(found: &AttributeMeasured) -> String {
    let AttributeMeasured { attribute, data, values, steps, .. } = found;
    let mut text = format!("`{attribute}` of {data}: {values} values, {steps} steps\n\n");
    text.push_str(&claims::table(&found.claims));
    text.push_str(&claims::footer(&found.claims, &[]));
    text
}

fn guessed(found: &AttributeGuessed) -> String {
    let seen = match found.observe {
        Observe::Last => "the released model, guessing by the loss",
        Observe::All => "every noisy sum, guessing by the likelihood",
    };
    let mut text = format!("{} candidates, the attacker sees {seen}\n\n", found.candidates);
    for (what, shown) in &found.lines {
        let _ = writeln!(text, "  {what:<34} {shown}");
    }
    if found.is_bounded {
        let _ = write!(text, "\n{}\n", legends::GUESSES_ARE);
    }
    text
}
