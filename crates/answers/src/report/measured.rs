//! What was measured, as figures: the ladder of bounds against the claims, the scores.

use super::{epsilon, label};
use accounting::lenses;
use audit::{Audit, Scores, TestAt};
use vocabulary::figure::{Axis, Figure, Hue, Labels, Rung, Series, Stroke};
use vocabulary::rounding::{plain, with_commas};
use vocabulary::{Account, AtLeast, AtMost, Quoted, Standing};

/// Claims above, bounds below, the proven one as a line.
pub(super) fn ladder(account: Option<&Account>, analysis: &Audit, delta: f64) -> Figure {
    let mut names = Vec::new();
    let (mut proven, mut heuristic) = (Vec::new(), Vec::new());
    let mut limit = None;
    for lens in lenses::ALL.iter().filter(|lens| lens.beside_audits).map(|lens| lens.name) {
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
    for bound in analysis.bounds.iter().filter(|bound| bound.epsilon().is_finite()) {
        let place = names.len();
        let method = bound.method();
        if method.is_estimate() {
            estimates.push(Rung::exactly(place, bound.epsilon()));
        } else if method.is_distribution_free() {
            free.push(Rung::at_least(place, bound.epsilon()));
        } else {
            family.push(Rung::at_least(place, bound.epsilon()));
        }
        names.push(method.label().to_owned());
    }
    let percent = plain((analysis.plan.confidence * 1000.0).round() / 10.0);
    let primary = analysis.primary().map_or(0.0, |bound| bound.epsilon());
    let families = analysis
        .bounds
        .iter()
        .filter(|bound| !bound.method().is_estimate() && !bound.method().is_distribution_free());
    let beyond =
        families.filter(|bound| limit.is_some_and(|limit| bound.epsilon() > limit)).count();
    let mut figure = Figure::new(
        title(primary, limit, beyond),
        "A dot with an arrow is a bound: the truth is there or beyond, in the arrow\u{2019}s \
         direction. A bound for any mechanism to the right of the proven line is a contradiction; one within a family is \
         one if the training belongs to it.",
    )
    .subtitle(format!(
        "epsilon at delta {}; each audit bound at {percent} % on its own; {}",
        plain(delta),
        counts(analysis)
    ))
    .labels(Labels::Legend)
    .x(Axis::linear("epsilon"))
    .y(Axis::category("", names));
    if let Some(limit) = limit {
        let text = format!("proven: {}", AtMost::new(limit));
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

/// `beyond`: how many bounds within a family are above the limit.
fn title(primary: f64, limit: Option<f64>, beyond: usize) -> String {
    let shown = AtLeast::new(primary);
    let rest = match beyond {
        0 => " and contradicts nothing".to_owned(),
        1 => "; one bound within a family is above it".to_owned(),
        _ => format!("; {beyond} bounds within families are above it"),
    };
    match limit {
        Some(limit) if primary > limit => {
            format!("The audit shows epsilon {shown}, more than is claimed as proven")
        }
        Some(_) if primary <= 0.0 => "The attack shows no leakage".into(),
        Some(limit) => format!(
            "The audit shows {} % of the proven epsilon{rest}",
            AtLeast::new(100.0 * primary / limit).digits(2)
        ),
        None => format!("The attack shows epsilon of at least {shown}"),
    }
}

/// Bars of the histograms.
const BINS: usize = 48;

/// Both samples over the same bins, with the threshold of the headline.
pub(super) fn histogram(scores: &Scores, analysis: &Audit) -> Figure {
    let finite = |side: &[f64]| -> Vec<f64> {
        side.iter().copied().filter(|score| score.is_finite()).collect()
    };
    let (members, nonmembers) = (finite(scores.members()), finite(scores.nonmembers()));
    let all = || members.iter().chain(&nonmembers).copied();
    let (mut low, mut high) =
        (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
    if low >= high {
        let middle = if low.is_finite() { low } else { 0.0 };
        (low, high) = (middle - 0.5, middle + 0.5);
    }
    let width = (high - low) / BINS as f64;
    let bars = |side: &[f64], all: usize| -> Vec<(f64, f64, f64)> {
        let mut counts = [0_u64; BINS];
        for score in side {
            counts[(((score - low) / width) as usize).min(BINS - 1)] += 1;
        }
        let bar = |(bin, count): (usize, &u64)| {
            let from = low + width * bin as f64;
            (from, from + width, *count as f64 / all as f64)
        };
        counts.iter().enumerate().map(bar).collect()
    };
    let mut figure = Figure::new(
        format!(
            "A member scores higher than a non-member in {} % of pairs",
            Quoted::about(100.0 * analysis.auroc.value)
        ),
        "The further the two histograms lie apart, the more the scores give away; the test says \
         \u{201c}member\u{201d} at or above the threshold.",
    )
    .subtitle(counts(analysis))
    .labels(Labels::Legend)
    .x(Axis::linear("score"))
    .y(Axis::linear("share of the side").percent())
    .with(
        Series::histogram("without the canary", bars(&nonmembers, scores.nonmembers().len()))
            .hue(Hue::Muted)
            .stroke(Stroke::Solid),
    )
    .with(
        Series::histogram("with the canary", bars(&members, scores.members().len()))
            .hue(Hue::Green)
            .stroke(Stroke::Solid),
    );
    let threshold = analysis.primary().and_then(|bound| match bound.tests.first() {
        Some(TestAt::Threshold { threshold, .. }) if threshold.is_finite() => Some(*threshold),
        _ => None,
    });
    if let Some(threshold) = threshold {
        figure = figure.with(Series::vertical_rule("threshold", threshold).hue(Hue::Ink));
    }
    figure
}

/// How many scores there are, in words.
pub(super) fn counts(analysis: &Audit) -> String {
    format!(
        "{} scores with the canary, {} without",
        with_commas(analysis.members),
        with_commas(analysis.nonmembers)
    )
}
