//! What was measured, as figures: the ladder of bounds against the claims, the scores.

use super::{epsilon, label};
use crate::print::{plain, rounded};
use audit::{Analysis, Method, Scores};
use report::lens_name;
use vocabulary::figure::{Axis, Figure, Hue, Labels, Rung, Series, Stroke};
use vocabulary::{Account, LensName, Side, Standing};

/// Claims above, bounds below, the proven one as a line.
pub(super) fn ladder(account: Option<&Account>, analysis: &Analysis, delta: f64) -> Figure {
    let mut names = Vec::new();
    let (mut proven, mut heuristic) = (Vec::new(), Vec::new());
    let mut limit = None;
    for lens in [LensName::Composition, LensName::LastIterate, LensName::FullBatch] {
        let Some(claim) = account.and_then(|account| epsilon(account, lens)) else { continue };
        if !claim.interval.upper.is_finite() {
            continue;
        }
        let rung = Rung::at_most(names.len(), claim.interval.upper);
        if claim.standing == Standing::Proven {
            limit = limit.or(Some(claim.interval.upper));
            proven.push(rung);
        } else {
            heuristic.push(rung);
        }
        names.push(label(lens, claim.standing));
    }
    let (mut free, mut family, mut estimates) = (Vec::new(), Vec::new(), Vec::new());
    for bound in analysis.bounds.iter().filter(|bound| bound.epsilon.is_finite()) {
        let place = names.len();
        let note = if bound.primary { "the headline" } else { "" };
        match bound.method {
            Method::Grid => estimates.push(Rung::exactly(place, bound.epsilon)),
            Method::ClopperPearson | Method::OneRun => {
                free.push(Rung::at_least(place, bound.epsilon).note(note));
            }
            _ => family.push(Rung::at_least(place, bound.epsilon)),
        }
        names.push(method_name(bound.method));
    }
    let percent = plain((analysis.plan.confidence * 1000.0).round() / 10.0);
    let primary = analysis.primary().map_or(0.0, |bound| bound.epsilon);
    let mut figure = Figure::new(
        title(primary, limit),
        "A dot with an arrow is a bound: the truth is there or beyond, in the arrow\u{2019}s \
         direction. An audit bound to the right of the proven line is a contradiction.",
    )
    .subtitle(format!(
        "epsilon at delta {}, each audit bound at {percent} % on its own; {} members, {} \
         non-members",
        plain(delta),
        analysis.counts.members,
        analysis.counts.nonmembers
    ))
    .labels(Labels::Legend)
    .x(Axis::linear("epsilon"))
    .y(Axis::category("", names));
    if let Some(limit) = limit {
        let text = format!("proven: {}", rounded(limit, 3, Side::Upper));
        figure =
            figure.with(Series::vertical_rule(text, limit).hue(Hue::Blue).stroke(Stroke::Solid));
    }
    for (label, rungs, hue) in [
        ("proven upper bounds", proven, Hue::Blue),
        ("heuristic upper bounds", heuristic, Hue::Vermilion),
        ("measured, any mechanism", free, Hue::Green),
        ("measured, within a family", family, Hue::Purple),
        ("estimate without confidence", estimates, Hue::Muted),
    ] {
        if !rungs.is_empty() {
            figure = figure.with(Series::ladder(label, rungs).hue(hue));
        }
    }
    figure
}

fn title(primary: f64, limit: Option<f64>) -> String {
    let shown = rounded(primary, 3, Side::Lower);
    match limit {
        Some(limit) if primary > limit => {
            format!("The audit shows epsilon {shown}, more than is claimed as proven")
        }
        Some(_) if primary <= 0.0 => "The attack shows no leakage".into(),
        Some(limit) => format!(
            "The audit shows {} % of the proven epsilon and contradicts nothing",
            rounded(100.0 * primary / limit, 2, Side::Lower)
        ),
        None => format!("The attack shows epsilon of at least {shown}"),
    }
}

fn method_name(method: Method) -> String {
    match method {
        Method::ClopperPearson => "Clopper\u{2013}Pearson".into(),
        Method::Gdp => "Gaussian family".into(),
        Method::Composition => format!("{} family", lens_name(LensName::Composition)),
        Method::LastIterate => format!("{} family", lens_name(LensName::LastIterate)),
        Method::Bayes => "Bayes, credible".into(),
        Method::Grid => "grid estimate".into(),
        Method::OneRun => "one run".into(),
        Method::OneRunGdp => "one run, Gaussian".into(),
    }
}

/// Both samples with the threshold; the title says how far they are apart.
pub(super) fn histogram(scores: &Scores, analysis: &Analysis) -> Figure {
    let mut figure = audit::figures::histogram(scores, analysis);
    let auroc = analysis.auroc.value;
    figure.title = format!(
        "A member scores higher than a non-member in {} % of pairs",
        rounded(100.0 * auroc, 3, Side::Neither)
    );
    figure
}
