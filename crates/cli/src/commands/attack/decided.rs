//! `attack … --until-decided`: trials are added until the claim is refuted, or those that are left can
//! hardly refute it, or all of them are made. The rule is that of a sequential audit, so stopping costs
//! no confidence.

use crate::args::real;
use crate::console::Console;
use crate::exit;
use answers::{AuditQuestion, Kind, Refusal, read_scores};
use audit::sequential::{Decision, SequentialDocument};
use clap::Args;
use experiments::Outcome;
use std::path::Path;
use vocabulary::Run;

/// Flags of games whose trials can be added.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Until decided")]
pub(crate) struct DecidedArgs {
    /// Add trials until the run's proven epsilon at --delta is refuted (exit code 3) or is unlikely
    /// to be; at most --trials
    #[arg(long)]
    pub(crate) until_decided: bool,
    /// With --until-decided: the claim, in place of the run's proven epsilon
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true, requires = "until_decided")]
    pub(crate) claim_epsilon: Option<f64>,
    /// With --until-decided: confidence of the refutation
    #[arg(long, value_name = "C", value_parser = real, allow_hyphen_values = true, default_value = "0.95")]
    pub(crate) confidence: f64,
}

/// How it ended.
pub(crate) struct Decided {
    /// Trials per side that were made.
    pub(crate) trials: u64,
    pub(crate) document: SequentialDocument,
}

/// Trials per side of the first look.
const FIRST: u64 = 64;

impl DecidedArgs {
    /// Plays until it is decided; `None` when that was not asked for, or the work is not complete.
    pub(crate) fn play(
        &self,
        claim: Option<&Run>,
        delta: Option<f64>,
        budget: u64,
        out: Option<&Path>,
        console: &mut Console,
        mut play: impl FnMut(u64, &mut Console) -> Result<Outcome, Refusal>,
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
            if !matches!(play(trials, console)?, Outcome::Complete { .. }) {
                return Ok(None);
            }
            let document = answers::sequential(&question, read_scores(&files, &[], &[])?)?;
            if document.decision != Some(Decision::Open) {
                return Ok(Some(Decided { trials, document }));
            }
            trials = (trials + trials / 2).min(budget);
        }
    }
}

impl Decided {
    /// What a person is told.
    pub(crate) fn narrate(&self, console: &mut Console) {
        let claimed = self.document.claim.as_ref().map_or_else(
            || "the claim".to_owned(),
            |claim| format!("the claimed epsilon {}", claim.quoted()),
        );
        let trials = self.document.trials;
        let shown = self.document.bound.claim.quoted();
        console.note(&match self.document.decision {
            Some(Decision::Refuted) => format!(
                "{claimed} is refuted after {} trials: epsilon is at least {shown}",
                crate::print::with_commas(self.document.refuted_at.unwrap_or(trials))
            ),
            Some(Decision::OutOfReach) => format!(
                "stopped after {trials} trials: the ones that are left refute {claimed} with a probability below {} %; epsilon is at least {shown}",
                100.0 * audit::sequential::HOPELESS
            ),
            _ => format!("all {trials} trials do not refute {claimed}; epsilon is at least {shown}"),
        });
    }

    /// The exit code in place of "answered".
    pub(crate) fn exit_code(&self) -> u8 {
        match self.document.decision {
            Some(Decision::Refuted) => exit::CHECK_FAILED,
            _ => exit::ANSWERED,
        }
    }
}
