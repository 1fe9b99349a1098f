//! The whole claim in one paragraph, for a paper or a model card.

use crate::Report;
use crate::words::{confidence, percent, with_commas};
use vocabulary::rounding::plain;
use vocabulary::{Claim, LensName, Quantity, Run, Standing, Status};

/// Mechanism, guarantee, attack terms, evidence: one sentence each. Nothing where the report
/// claims nothing.
pub fn paragraph(report: &Report) -> Option<String> {
    let run = report.run.as_ref()?;
    let claim = report.verdict.claim.as_ref()?;
    let epsilon = claim.quoted();
    if epsilon.number().is_infinite() {
        return None;
    }
    let mut sentences = vec![format!(
        "The model was trained with DP-SGD ({}, clip norm {}, {}).",
        run.phases_in_words(),
        plain(run.clip_norm()),
        batches(run)
    )];
    let guarantee = format!(
        "({epsilon}, {})-differentially private for {}",
        plain(report.delta),
        neighbours(run)
    );
    sentences.push(match claim.standing {
        Standing::Proven => format!(
            "The training is {guarantee}, by numerical composition with certified error bounds \
             (Dosimeter {}); this covers the release of every iterate.",
            report.version
        ),
        _ => format!(
            "Under an assumption that is not proven, the training is {guarantee} (Dosimeter {}).",
            report.version
        ),
    });
    if let Some(tpr) = power(report) {
        let rate = tpr.at.fpr.map(percent).unwrap_or_default();
        sentences.push(format!(
            "At a false positive rate of {rate}, no membership attack has a true positive rate \
             above {} %.",
            tpr.interval.at_most().percent()
        ));
    }
    if let (Some(measured), Some(audit), false) =
        (&report.verdict.measured, &report.audit, report.public)
        && measured.epsilon().is_finite()
    {
        let outcome = match report.verdict.status {
            Status::Contradiction => ", which contradicts the claim",
            Status::Consistent => ", which is consistent with the claim",
            _ => "",
        };
        sentences.push(format!(
            "An audit with {} scores shows epsilon \u{2265} {} at {} confidence{outcome}.",
            with_commas(audit.members + audit.nonmembers),
            measured.claim.quoted(),
            confidence(measured)
        ));
    }
    Some(sentences.join(" "))
}

/// The proven power of an attack at the smallest false positive rate.
fn power(report: &Report) -> Option<&Claim> {
    let claims = &report.account.as_ref()?.claims;
    claims
        .iter()
        .filter(|claim| {
            claim.source == LensName::SIGNED
                && claim.quantity == Quantity::Tpr
                && claim.standing == Standing::Proven
                && claim.at.fpr.is_some()
        })
        .min_by(|a, b| a.at.fpr.unwrap_or(1.0).total_cmp(&b.at.fpr.unwrap_or(1.0)))
}

/// What neighbouring data sets differ by.
pub(crate) fn neighbours(run: &Run) -> String {
    let records = match run.group_size() {
        1 => "one record".to_owned(),
        size => format!("{size} records"),
    };
    let unit = run.unit().map(|unit| format!(" (a record is {unit})")).unwrap_or_default();
    format!("{} {records}{unit}", run.adjacency().words())
}

pub(crate) fn batches(run: &Run) -> String {
    run.batches_in_words()
}
