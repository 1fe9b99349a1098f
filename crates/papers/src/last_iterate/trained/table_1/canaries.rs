//! The canaries of each training: their scores in a file beside the table, which `audit` reads, and
//! what they show. Scores are kept and bounds are not: a sharper estimator reads the same scores.

use super::DELTA;
use crate::PaperError;
use audit::{Design, Method, Plan, Table, analyse};
use std::fmt::Display;
use std::path::Path;

/// The name of a training's scores, in the folder of scores.
pub(super) fn file(batch: impl Display, seed: impl Display) -> String {
    format!("batch{batch}-seed{seed}.csv")
}

/// The scores as a table, canary after canary.
pub(super) fn table(scores: &[(f64, bool)]) -> String {
    let mut text = "# design: one-run\nscore,member\n".to_owned();
    for (score, member) in scores {
        formats::csv::row(&mut text, &[score, &u8::from(*member)]);
    }
    text
}

/// Audits a training by the scores that were kept: the lower bounds for any mechanism (Steinke, Nasr and
/// Jagielski 2023) and in the Gaussian family, and the AUROC.
pub(super) fn shown(path: &Path) -> Result<[f64; 3], PaperError> {
    let mut table = Table::default();
    table.add_file(path)?;
    let scores = table.settle()?.into_scores(Design::OneRun)?;
    let mut plan = Plan::new(Design::OneRun);
    plan.deltas = vec![DELTA];
    plan.methods = vec![Method::OneRun, Method::OneRunGdp];
    plan.primary = Method::OneRun;
    let found = analyse(&scores, &plan, None)?;
    let bound = |method: Method| {
        let own = found.bounds.iter().find(|bound| bound.method() == method);
        own.map_or(0.0, |bound| bound.epsilon())
    };
    Ok([bound(Method::OneRun), bound(Method::OneRunGdp), found.auroc.value])
}
