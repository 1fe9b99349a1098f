//! The verdict: what is claimed, what was measured, and what the two say together.

use super::epsilon;
use audit::sequential::SequentialDocument;
use vocabulary::rounding::plain;
use vocabulary::{Account, AtMost, Audit, Claim, Finding, LensName, Standing, Status, Verdict};

pub(super) fn verdict(
    account: Option<&Account>,
    analysis: Option<&Audit>,
    delta: f64,
    public: bool,
) -> Verdict {
    let claim = account.and_then(|account| epsilon(account, LensName::SIGNED)).cloned();
    let heuristic = account.and_then(|account| epsilon(account, LensName::BESIDE)).cloned();
    let measured = analysis.and_then(Audit::primary).cloned();
    let at = plain(delta);
    let (status, headline, reason) = match (&claim, &measured, analysis) {
        (Some(claim), Some(measured), Some(analysis)) if claim.standing == Standing::Proven => {
            compared(claim, measured, analysis, &at)
        }
        (Some(claim), Some(measured), _) => (
            Status::Inconclusive,
            "There is a measurement, but no proven claim to compare it with".to_owned(),
            format!(
                "The claim of epsilon {} is heuristic, so an attack that shows more would not \
                 contradict a proof; {} was shown.",
                claim.quoted(),
                shown(measured)
            ),
        ),
        (Some(claim), None, _) => claimed(claim, &at, public),
        (None, Some(measured), _) => (
            Status::MeasuredOnly,
            format!("The attack shows epsilon of at least {} at delta {at}", shown(measured)),
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
    let found = analysis.and_then(|analysis| analysis.verdict.as_ref());
    Verdict {
        headline,
        claimed_epsilon: claim
            .as_ref()
            .map(|claim| claim.interval.upper)
            .filter(|end| end.is_finite()),
        could_show: found.and_then(|found| found.could_show),
        scores_needed: found.and_then(|found| found.scores_needed),
        claim,
        heuristic,
        measured,
        ..Verdict::new(status, reason)
    }
}

/// The verdict of trials that may have been stopped at any time, over what is claimed.
pub(super) fn of_trials(claimed: Verdict, trials: &SequentialDocument) -> Verdict {
    let at = plain(trials.delta());
    let shown = trials.bound.claim.quoted();
    let confidence = percent(trials.confidence());
    let proven = trials.claimed_epsilon().map(AtMost::new);
    let (status, headline, reason) = match (proven, trials.refuted_at) {
        (Some(proven), Some(trial)) => (
            Status::Contradiction,
            format!("The claim of epsilon at most {proven} at delta {at} is refuted"),
            format!(
                "After {trial} trials the evidence against it reached what {confidence} % confidence at any \
                 stopping time asks for, and {} trials show epsilon of at least {shown}. The training, its noise or the \
                 accounting is not what was stated.",
                trials.trials
            ),
        ),
        (Some(proven), None) => (
            Status::Inconclusive,
            format!(
                "Epsilon is at most {proven} at delta {at}; {} trials do not refute it",
                trials.trials
            ),
            if trials.epsilon() > 0.0 {
                format!(
                    "They show epsilon of at least {shown}, with {confidence} % confidence at any stopping time. \
                     More trials may show more.",
                )
            } else {
                format!(
                    "They show no leakage, with {confidence} % confidence at any stopping time. More trials may."
                )
            },
        ),
        (None, _) => (
            Status::MeasuredOnly,
            format!("The attack shows epsilon of at least {shown} at delta {at}"),
            format!(
                "{} trials in their order, {confidence} % confidence at any stopping time. There is no proven \
                 claim to compare it with.",
                trials.trials
            ),
        ),
    };
    Verdict { headline, status, reason, measured: Some(trials.bound.clone()), ..claimed }
}

fn compared(
    claim: &Claim,
    measured: &Finding,
    analysis: &Audit,
    at: &str,
) -> (Status, String, String) {
    let proven = claim.quoted();
    let found = analysis.verdict.as_ref();
    let reason = || found.map(|verdict| sentence(&verdict.reason)).unwrap_or_default();
    match found.map(|verdict| verdict.status) {
        Some(Status::Consistent) => (
            Status::Consistent,
            format!("The claim stands: epsilon is at most {proven} at delta {at}"),
            format!(
                "An attack that could have refuted it did not: it shows epsilon of at least {}, \
                 with {} % confidence. A stronger attack may come closer to the claim but, if the \
                 assumptions hold, never beyond it.",
                shown(measured),
                percent(measured.level().unwrap_or(0.0))
            ),
        ),
        Some(Status::Contradiction) => (
            Status::Contradiction,
            format!("The claim of epsilon at most {proven} at delta {at} is refuted"),
            format!(
                "With {} % confidence the scores show epsilon of at least {}. The training, its \
                 noise or the accounting is not what was stated.",
                percent(measured.level().unwrap_or(0.0)),
                shown(measured)
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
    let number = claim.quoted();
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

fn shown(measured: &Finding) -> String {
    let epsilon = measured.claim.quoted();
    if epsilon.number().is_finite() { epsilon.to_string() } else { "any number".into() }
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
