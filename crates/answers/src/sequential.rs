//! An audit in the order of its trials: the bound holds at any stopping time.

use crate::audit::claimed_run;
use crate::{AuditQuestion, Document, Refusal, claimed, exit, limit, origin};
use audit::sequential::{self, SequentialDocument};
use audit::{AttackDirection, Design, SettledTable};
use vocabulary::{Adjacency, Claim, Run};

/// Reads trials in the order of their rows, members and non-members in turn.
///
/// # Errors
/// A question that names a method or a threshold rule, which a sequential audit has of its own; rows of one
/// training; and those of the accounting.
pub fn sequential(
    question: &AuditQuestion,
    table: SettledTable,
) -> Result<SequentialDocument, Refusal> {
    let run = claimed_run(question)?;
    limit::asked(question.time_limit, || {
        about(question, table, run, |run, delta| claimed::of(question, run, delta))
    })
}

/// As [`crate::audit::about`], in the order of the trials.
pub(crate) fn about(
    question: &AuditQuestion,
    table: SettledTable,
    claimed: Option<Run>,
    proven: impl FnOnce(&Run, f64) -> Result<Option<Claim>, Refusal>,
) -> Result<SequentialDocument, Refusal> {
    origin::check(question, claimed.as_ref())?;
    if question.design.or(table.design()) == Some(Design::OneRun) {
        return Err(Refusal::bad_input(
            "canaries of one training come all at once: a sequential audit needs trainings of their own",
        ));
    }
    if !question.method.is_empty() || question.all_methods || question.primary.is_some() {
        return Err(Refusal::bad_input(
            "a sequential audit has one method, which holds for any mechanism; leave --method and --primary out",
        ));
    }
    if question.threshold.is_some_and(|rule| rule != audit::ThresholdRule::Union) {
        return Err(Refusal::bad_input(
            "a sequential audit learns its thresholds from earlier trials; leave --threshold out",
        ));
    }
    let delta = match question.delta.as_slice() {
        [] => 0.0,
        [one] => *one,
        _ => {
            return Err(Refusal::bad_input("a sequential audit has one delta; give one --delta"));
        }
    };
    let direction = question.direction.unwrap_or(AttackDirection::Both);
    let confidence = question.confidence.unwrap_or(0.95);
    let adjacency = claimed.as_ref().map_or(Adjacency::AddRemove, Run::adjacency);
    let claim = match &claimed {
        Some(run) => proven(run, delta)?,
        None => question.claim_epsilon.map(|epsilon| Claim::stated(adjacency, delta, epsilon)),
    };
    if let Some(epsilon) = claim.as_ref().map(|claim| claim.interval.upper)
        && (epsilon.is_nan() || epsilon < 0.0)
    {
        return Err(Refusal::bad_input(format!(
            "claimed epsilon {epsilon} is not a finite number of at least 0; give e.g. 8"
        )));
    }
    let (members, nonmembers) = table.sides();
    let budget = question.budget;
    let asked = sequential::Question { delta, direction, confidence, adjacency, claim, budget };
    Ok(sequential::play(members, nonmembers, &asked)?)
}

/// The figure of a sequential audit: the evidence against the claim, or the bound where nothing is claimed.
pub fn over_time(audited: &SequentialDocument) -> vocabulary::Figure {
    audit::figures::evidence(audited).unwrap_or_else(|| audit::figures::bound_over_trials(audited))
}

impl Document for SequentialDocument {
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    fn exit_code(&self) -> u8 {
        if self.refuted_at.is_some() { exit::CHECK_FAILED } else { exit::ANSWERED }
    }
}
