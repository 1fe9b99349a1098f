//! Figure 4: input canaries among natural and blank records.

use super::audits::{SMALLER, found, range, sizes};
use super::settings::Attack;
use crate::last_iterate::PAPER;
use crate::trained::TrainedContext;
use crate::trained::{TrainedEntry, needs_data};
use crate::{Entry, PaperError, Reproduction};

pub(super) const ENTRY: TrainedEntry = TrainedEntry {
    entry: Entry {
        id: "last-iterate-figure-4",
        paper: PAPER,
        title: "Figure 4: input canaries among natural and blank records",
        shows: "A mislabelled record scored by its loss after training: audits are better where the other records are blank than where they are natural, and in the natural setting better than those of gradient canaries.",
        seconds: 14400,
        compute: needs_data,
    },
    compute,
};

fn compute(context: &TrainedContext<'_>) -> Result<Reproduction, PaperError> {
    let attacks = [Attack::InputNatural, Attack::InputBlank];
    let found = found(context, &attacks, "A mislabelled record")?;
    Ok(Reproduction {
        we_get: format!(
            "Of the heuristic epsilon the audit shows {} among natural records and {} among blank ones ({}).",
            range(&found, Attack::InputNatural),
            range(&found, Attack::InputBlank),
            sizes(&found)
        ),
        differs: format!(
            "{SMALLER} Blank records are all zeros after standardisation, with their own labels. The score is by how much the canary's loss fell."
        ),
        parameters: found.parameters,
        tables: vec![found.table],
        figures: found.figures,
    })
}
