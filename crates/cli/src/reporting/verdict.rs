//! The verdict: what is claimed, what was measured, and what the two say together.

use super::epsilon;
use crate::print::{plain, quote, rounded};
use audit::Analysis;
use audit::verdict::Status as AuditStatus;
use report::{Evidence, Status, Verdict};
use vocabulary::{Account, Claim, LensName, Side, Standing};

pub(super) fn verdict(
    account: Option<&Account>,
    analysis: Option<&Analysis>,
    delta: f64,
    public: bool,
) -> Verdict {
    let claim = account.and_then(|account| epsilon(account, LensName::Composition)).cloned();
    let heuristic = account.and_then(|account| epsilon(account, LensName::LastIterate)).cloned();
    let evidence = analysis.and_then(evidence);
    let at = plain(delta);
    let (status, headline, reason) = match (&claim, &evidence, analysis) {
        (Some(claim), Some(evidence), Some(analysis)) if claim.standing == Standing::Proven => {
            compared(claim, evidence, analysis, &at)
        }
        (Some(claim), Some(evidence), _) => (
            Status::Inconclusive,
            "There is a measurement, but no proven claim to compare it with".to_owned(),
            format!(
                "The claim of epsilon {} is heuristic, so an attack that shows more would not \
                 contradict a proof; {} was shown.",
                quote(claim.interval, 3, claim.side),
                shown(evidence)
            ),
        ),
        (Some(claim), None, _) => claimed(claim, &at, public),
        (None, Some(evidence), _) => (
            Status::MeasuredOnly,
            format!("The attack shows epsilon of at least {} at delta {at}", shown(evidence)),
            match account {
                Some(_) => "No lens covers this run, so there is no claim to compare it with.",
                None => {
                    "No run was described, so there is no claim to compare it with; give the run \
                     for a verdict."
                }
            }
            .to_owned(),
        ),
        (None, None, _) => {
            let reason = account
                .and_then(|account| account.warnings.first().cloned())
                .unwrap_or_else(|| "No lens holds for this run.".into());
            return Verdict::nothing(sentence(&reason));
        }
    };
    Verdict { status, headline, reason, claim, heuristic, evidence }
}

fn compared(
    claim: &Claim,
    evidence: &Evidence,
    analysis: &Analysis,
    at: &str,
) -> (Status, String, String) {
    let proven = quote(claim.interval, 3, claim.side);
    let found = analysis.verdict.as_ref();
    let reason = || found.map(|verdict| sentence(&verdict.reason)).unwrap_or_default();
    match found.map(|verdict| verdict.status) {
        Some(AuditStatus::Consistent) => (
            Status::Consistent,
            format!("The claim stands: epsilon is at most {proven} at delta {at}"),
            format!(
                "An attack that could have refuted it did not: it shows epsilon of at least {}, \
                 with {} % confidence. A stronger attack may come closer to the claim but, if the \
                 assumptions hold, never beyond it.",
                shown(evidence),
                percent(evidence.confidence)
            ),
        ),
        Some(AuditStatus::Contradiction) => (
            Status::Contradiction,
            format!("The claim of epsilon at most {proven} at delta {at} is refuted"),
            format!(
                "With {} % confidence the scores show epsilon of at least {}. The training, its \
                 noise or the accounting is not what was stated.",
                percent(evidence.confidence),
                shown(evidence)
            ),
        ),
        _ => (
            Status::Inconclusive,
            format!("Epsilon is at most {proven} at delta {at}; the audit could not test it"),
            reason(),
        ),
    }
}

fn claimed(claim: &Claim, at: &str, public: bool) -> (Status, String, String) {
    let number = quote(claim.interval, 3, claim.side);
    let headline = if claim.standing == Standing::Proven {
        format!("Epsilon is at most {number} at delta {at}, if the assumptions hold")
    } else {
        format!("Epsilon is about {number} at delta {at}, by an unproven argument")
    };
    let reason = if public {
        "Measurements are left out of the public edition: they are computed from records."
    } else {
        "No attack was measured against it; `dosimeter attack` makes scores, and the report takes \
         them beside the run."
    };
    (Status::ClaimOnly, headline, reason.to_owned())
}

fn evidence(analysis: &Analysis) -> Option<Evidence> {
    let bound = analysis.primary()?;
    let rule = bound.threshold_rule.map(|rule| format!(" ({rule})")).unwrap_or_default();
    Some(Evidence {
        method: format!("{}{rule}", bound.method),
        delta: bound.delta,
        epsilon_lower: bound.epsilon.is_finite().then_some(bound.epsilon),
        confidence: bound.confidence,
        valid_for: bound.valid_for.clone(),
        members: analysis.counts.members,
        nonmembers: analysis.counts.nonmembers,
    })
}

fn shown(evidence: &Evidence) -> String {
    evidence
        .epsilon_lower
        .map_or_else(|| "any number".into(), |epsilon| rounded(epsilon, 3, Side::Lower))
}

fn sentence(text: &str) -> String {
    let mut letters = text.trim_end_matches('.').chars();
    let first: String = letters.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// 0.95 as 95, all digits.
fn percent(share: f64) -> String {
    plain((share * 1e8).round() / 1e6)
}
