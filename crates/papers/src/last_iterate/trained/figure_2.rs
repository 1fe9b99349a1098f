//! Figure 2: gradient canaries among natural data.

use super::audits::{SMALLER, found, range, sizes};
use super::settings::Attack;
use crate::last_iterate::PAPER;
use crate::trained::TrainedContext;
use crate::trained::{TrainedEntry, needs_data};
use crate::{Entry, PaperError, Reproduction};

pub(super) const ENTRY: TrainedEntry = TrainedEntry {
    entry: Entry {
        id: "last-iterate-figure-2",
        paper: PAPER,
        title: "Figure 2: gradient canaries among natural data",
        shows: "With the other records natural, a gradient canary scored by the last iterate stays far below both the standard and the heuristic epsilon; the attack is too weak to tell them apart.",
        seconds: 7200,
        compute: needs_data,
    },
    compute,
};

fn compute(context: &TrainedContext<'_>) -> Result<Reproduction, PaperError> {
    let attacks = [Attack::GradientNatural, Attack::GradientZero];
    let found = found(context, &attacks, "A gradient canary")?;
    Ok(Reproduction {
        we_get: format!(
            "Of the heuristic epsilon the audit shows {} among natural records and {} where the other records contribute nothing ({}).",
            range(&found, Attack::GradientNatural),
            range(&found, Attack::GradientZero),
            sizes(&found)
        ),
        differs: format!(
            "{SMALLER} The canary is a gradient of the clip norm along a random coordinate. For comparison the same trainings with all other gradients zero, which is the linear game on a real optimiser."
        ),
        parameters: found.parameters,
        tables: vec![found.table],
        figures: found.figures,
    })
}
