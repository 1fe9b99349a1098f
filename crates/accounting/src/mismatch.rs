//! What it costs to account for Poisson batches and train with others: numbers beside the
//! claims, each labelled, for runs whose sampling no lens covers.

use crate::account::Questions;
use vocabulary::{Account, Run, Sampling};

/// Adds the asides and the warning for shuffled and fixed-size batches.
pub(crate) fn add(run: &Run, _questions: &Questions, account: &mut Account) {
    if matches!(run.sampling(), Sampling::Poisson | Sampling::Full) {
        return;
    }
    account.warnings.push(format!(
        "no lens covers {} batches, so nothing is claimed about this run",
        run.sampling().as_str()
    ));
}
