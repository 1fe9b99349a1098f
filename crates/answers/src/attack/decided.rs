//! `attack … --until-decided`: trials are added until the claim is refuted, or those that are left can
//! hardly refute it, or all of them are made. The rule is that of a sequential audit, so stopping costs
//! no confidence.

use crate::flags::real;
use crate::{AuditQuestion, Kind, Refusal, read_scores};
use audit::sequential::{Decision, SequentialDocument};
use clap::Args;
use experiments::Outcome;
use serde::Deserialize;
use std::path::Path;
use vocabulary::Run;

/// The keys of games whose trials can be added.
#[derive(Clone, Debug, Deserialize, Args)]
#[serde(default)]
#[command(next_help_heading = "Until decided")]
pub struct UntilDecided {
    /// Add trials until the run's proven epsilon at --delta is refuted (exit code 3) or is unlikely
    /// to be; at most --trials
    #[arg(long)]
    pub until_decided: bool,
    /// With --until-decided: the claim, in place of the run's proven epsilon
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true, requires = "until_decided")]
    pub claim_epsilon: Option<f64>,
    /// With --until-decided: confidence of the refutation
    #[arg(long, value_name = "C", value_parser = real, allow_hyphen_values = true, default_value_t = Self::default().confidence)]
    pub confidence: f64,
}

impl Default for UntilDecided {
    fn default() -> Self {
        Self { until_decided: false, claim_epsilon: None, confidence: 0.95 }
    }
}

/// How it ended.
pub(super) struct Decided {
    /// Trials per side that were made.
    pub trials: u64,
    pub document: SequentialDocument,
}

/// Trials per side of the first look.
const FIRST: u64 = 64;

impl UntilDecided {
    /// Plays until it is decided; `None` when that was not asked for, or the work is not complete.
    pub(super) fn play(
        &self,
        claim: Option<&Run>,
        delta: Option<f64>,
        budget: u64,
        out: Option<&Path>,
        mut play: impl FnMut(u64) -> Result<Outcome, Refusal>,
    ) -> Result<Option<Decided>, Refusal> {
        if !self.until_decided {
            return Ok(None);
        }
        let Some(delta) = delta else {
            return Err(Refusal::bad_input("--until-decided needs the delta of the claim")
                .hint("add --delta 1e-5"));
        };
        let Some(out) = out else {
            return Err(Refusal::bad_input(
                "--until-decided plays, and needs a file for the scores",
            )
            .hint("add --out scores.csv"));
        };
        let claim = match (claim, self.claim_epsilon) {
            (_, Some(_)) => None,
            (Some(run), None) => {
                let run = serde_json::to_value(run)
                    .map_err(|error| Refusal::new(Kind::Bug, error.to_string()))?;
                Some(run.into())
            }
            (None, None) => {
                return Err(Refusal::bad_input("--until-decided needs a claim")
                    .hint("describe the run with flags, or give --claim-epsilon"));
            }
        };
        let question = AuditQuestion {
            delta: vec![delta],
            confidence: Some(self.confidence),
            claim,
            claim_epsilon: self.claim_epsilon,
            sequential: true,
            budget: Some(2 * budget),
            ..AuditQuestion::default()
        };
        let files = [out.to_owned()];
        // What an earlier call left is a beginning.
        let there = read_scores(&files, &[], &[]).map_or(0, |table| table.sides().0.len() as u64);
        let mut trials = FIRST.max(there).min(budget);
        loop {
            if !matches!(play(trials)?, Outcome::Complete { .. }) {
                return Ok(None);
            }
            let document = crate::sequential(&question, read_scores(&files, &[], &[])?)?;
            if document.decision != Some(Decision::Open) {
                return Ok(Some(Decided { trials, document }));
            }
            trials = (trials + trials / 2).min(budget);
        }
    }
}
