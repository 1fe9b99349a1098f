//! An audit as figures: the ROC on logarithmic axes with its band, the two histograms with the
//! threshold, and the ladder of bounds against the claim; of a sequential audit the evidence over time.

use crate::sequential::SequentialDocument;
use crate::{Audit, Errors, Scores, Simultaneous, TestAt, ThresholdRule};
use accounting::{Pair, directions};
use vocabulary::figure::{Axis, Figure, Hue, Rung, Series, Stroke};
use vocabulary::rounding::{DIGITS, about, plain};
use vocabulary::{AtLeast, AtMost, Direction};

/// The ROC with a simultaneous band, and the curve of a claimed run where there is one.
pub fn roc(scores: &Scores, analysis: &Audit, claimed: Option<&dyn Pair>) -> Figure {
    let (m, n) = (scores.members().len() as u64, scores.nonmembers().len() as u64);
    let least = 0.5 / n.max(m) as f64;
    let rates = grid(least.max(1e-6));
    // Half of the error for either side of the band.
    let level = 0.5 * (1.0 - analysis.plan.confidence);
    let band = match analysis.plan.threshold_rule.parse() {
        Ok(ThresholdRule::Dkw) => Simultaneous::dkw(n, m, level),
        _ => Simultaneous::martingale(n, m, level),
    };
    let (mut observed, mut shaded) = (Vec::new(), Vec::new());
    for &rate in &rates {
        let errors = errors_with_at_most(scores, (rate * n as f64 * (1.0 + 1e-12)) as usize);
        let power = errors.true_positives() as f64 / m as f64;
        observed.push((rate, power.max(least)));
        let (low, high) = power_band(scores, &band, rate);
        shaded.push((rate, low.max(least), high.max(least)));
    }
    let bound = analysis.primary();
    let title = match bound {
        Some(bound) if bound.epsilon() > 0.0 && bound.epsilon().is_finite() => format!(
            "The attack shows epsilon of at least {} at delta {}",
            AtLeast::new(bound.epsilon()),
            written(bound.delta())
        ),
        _ => "The attack shows no leakage".to_owned(),
    };
    let percent = analysis.plan.confidence * 100.0;
    let mut figure = Figure::new(
        title,
        "Further up and to the left is a better attack; on the diagonal it is guessing.",
    )
    .subtitle(format!(
        "{m} members, {n} non-members, AUROC {}",
        about(analysis.auroc.value, DIGITS)
    ))
    .x(Axis::log("false positive rate").domain(least.max(1e-6), 1.0))
    .y(Axis::log("true positive rate").domain(least.max(1e-6), 1.0))
    .with(Series::band(format!("{percent} % band, all thresholds"), shaded).hue(Hue::Sky))
    .with(
        Series::line("guessing", rates.iter().map(|&rate| (rate, rate)))
            .hue(Hue::Muted)
            .stroke(Stroke::Dotted),
    );
    if let Some(pair) = claimed {
        let power = |rate| directions::tpr(pair, rate, Direction::Both).ok().map(|ends| ends.upper);
        let (curve, refused) = allowed(power, rates.iter().step_by(4).copied());
        let name = match refused {
            0 => "most that the claimed run allows".to_owned(),
            _ => format!(
                "most that the claimed run allows ({refused} of {} rates: that of the next rate, for \
                 want of a certified number)",
                curve.len()
            ),
        };
        figure = figure.with(Series::line(name, curve).hue(Hue::Vermilion).stroke(Stroke::Solid));
    }
    figure.with(Series::line("attack", observed).hue(Hue::Blue).stroke(Stroke::Solid))
}

/// The most power at each rate, from above, whichever order the attack faces, and how many rates have
/// no certified number. Power rises with the rate, so that of a larger rate stands in for it.
fn allowed(
    power: impl Fn(f64) -> Option<f64>,
    rates: impl DoubleEndedIterator<Item = f64>,
) -> (Vec<(f64, f64)>, usize) {
    let (mut least, mut refused) = (1.0_f64, 0);
    let mut curve = Vec::new();
    for rate in rates.rev() {
        match power(rate) {
            Some(power) => least = least.min(power),
            None => refused += 1,
        }
        curve.push((rate, least));
    }
    curve.reverse();
    (curve, refused)
}

/// The evidence against the claim after every look, and where it refutes; `None` without a claim.
pub fn evidence(audit: &SequentialDocument) -> Option<Figure> {
    let claimed = audit.claimed_epsilon()?;
    let ten = std::f64::consts::LN_10;
    let needed = audit.evidence_needed / ten;
    let mut points: Vec<(f64, f64)> = Vec::new();
    for look in &audit.looks {
        let Some(evidence) = look.evidence else { continue };
        points.push((look.trials as f64, evidence / ten));
        // What comes after a refutation changes nothing, and would flatten the beginning.
        if audit.refuted_at.is_some() && evidence > 3.0 * audit.evidence_needed {
            break;
        }
    }
    let last = points.last()?.0;
    let least = points.iter().map(|point| point.1).fold(0.0, f64::min);
    let most = points.iter().map(|point| point.1).fold(needed, f64::max);
    let claimed = AtMost::new(claimed);
    let title = match audit.refuted_at {
        Some(trial) => format!("The claim of epsilon {claimed} is refuted after {trial} trials"),
        None => format!("{} trials do not refute the claim of epsilon {claimed}", audit.trials),
    };
    let mut figure = Figure::new(
        title,
        "Evidence of one power of ten: the trials are ten times as likely as the claim allows at most. Where the line crosses the rule the claim is refuted, whenever one stops.",
    )
    .subtitle(format!(
        "delta {}, {} % confidence at any stopping time",
        plain(audit.delta()),
        plain((audit.confidence() * 1000.0).round() / 10.0)
    ))
    .x(Axis::log("trials"))
    .y(Axis::linear("evidence, powers of ten").domain(least - 0.1, 1.05 * most))
    .with(
        Series::horizontal_rule("refuted from here on", needed)
            .hue(Hue::Vermilion)
            .stroke(Stroke::Solid),
    );
    if let Some(trial) = audit.refuted_at.filter(|trial| (*trial as f64) <= last) {
        figure = figure
            .with(Series::vertical_rule(format!("trial {trial}"), trial as f64).hue(Hue::Muted));
    }
    Some(figure.with(Series::line("evidence", points).hue(Hue::Blue).stroke(Stroke::Solid)))
}

/// The bound of a sequential audit after every look, and the claim.
pub fn bound_over_trials(audit: &SequentialDocument) -> Figure {
    let points = audit.looks.iter().map(|look| (look.trials as f64, look.epsilon_lower));
    let shown = audit.bound.claim.quoted();
    let mut figure = Figure::new(
        format!("After {} trials epsilon is at least {shown}", audit.trials),
        "The line is a lower bound at every moment, whenever one stops; it does not fall.",
    )
    .subtitle(format!(
        "delta {}, {} % confidence at any stopping time",
        plain(audit.delta()),
        plain((audit.confidence() * 1000.0).round() / 10.0)
    ))
    .x(Axis::log("trials"))
    .y(Axis::linear("epsilon"))
    .with(Series::step("shown", points).hue(Hue::Green).stroke(Stroke::Solid));
    if let Some(claimed) = audit.claimed_epsilon() {
        let text = format!("claimed: {}", AtMost::new(claimed));
        figure = figure
            .with(Series::horizontal_rule(text, claimed).hue(Hue::Blue).stroke(Stroke::Solid));
    }
    figure
}

/// Both samples as histograms over the same bins, with the primary bound's threshold.
pub fn histogram(scores: &Scores, analysis: &Audit) -> Figure {
    let finite =
        |side: &[f64]| side.iter().copied().filter(|x| x.is_finite()).collect::<Vec<f64>>();
    let (members, nonmembers) = (finite(scores.members()), finite(scores.nonmembers()));
    let ends = [members.first(), nonmembers.first(), members.last(), nonmembers.last()];
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for &end in ends.into_iter().flatten() {
        low = low.min(end);
        high = high.max(end);
    }
    if low >= high {
        let middle = if low.is_finite() { low } else { 0.0 };
        (low, high) = (middle - 0.5, middle + 0.5);
    }
    let bins =
        (2.0 * ((members.len() + nonmembers.len()) as f64).cbrt()).clamp(8.0, 120.0) as usize;
    let width = (high - low) / bins as f64;
    let bars = |side: &[f64]| {
        let mut counts = vec![0_u64; bins];
        for value in side {
            counts[(((value - low) / width) as usize).min(bins - 1)] += 1;
        }
        let all = side.len().max(1) as f64;
        counts
            .into_iter()
            .enumerate()
            .map(move |(bin, count)| {
                let from = low + width * bin as f64;
                (from, from + width, count as f64 / all)
            })
            .collect::<Vec<_>>()
    };
    let mut figure = Figure::new(
        format!("Members and non-members overlap: AUROC {}", about(analysis.auroc.value, DIGITS)),
        "The further the two histograms lie apart, the more the scores tell; the test says member at or above the line.",
    )
    .subtitle(format!("{} members, {} non-members", scores.members().len(), scores.nonmembers().len()))
    .x(Axis::linear("score"))
    .y(Axis::linear("share of the side").percent())
    .with(Series::histogram("non-members", bars(&nonmembers)).hue(Hue::Muted))
    .with(Series::histogram("members", bars(&members)).hue(Hue::Blue));
    let threshold = analysis.primary().and_then(|bound| match bound.tests.first() {
        Some(TestAt::Threshold { threshold, .. }) if threshold.is_finite() => Some(*threshold),
        _ => None,
    });
    if let Some(threshold) = threshold {
        figure = figure.with(Series::vertical_rule("threshold", threshold).hue(Hue::Vermilion));
    }
    figure
}

/// All bounds as rungs, with the claim as a line.
pub fn ladder(analysis: &Audit, claimed: Option<f64>) -> Figure {
    let shown: Vec<_> =
        analysis.bounds.iter().filter(|bound| bound.epsilon().is_finite()).collect();
    let names =
        shown.iter().map(|bound| format!("{} at delta {}", bound.method(), written(bound.delta())));
    let mut measured = Vec::new();
    let mut other = Vec::new();
    for (place, bound) in shown.iter().enumerate() {
        let rung = match bound.method() {
            method if method.is_estimate() && bound.reason().is_none() => {
                Rung::exactly(place, bound.epsilon())
            }
            _ => Rung::at_least(place, bound.epsilon()),
        };
        if bound.method().is_distribution_free() {
            measured.push(rung);
        } else {
            other.push(rung);
        }
    }
    let title = match (analysis.primary(), claimed.filter(|claimed| claimed.is_finite())) {
        (Some(bound), Some(claimed)) if bound.epsilon().is_finite() => format!(
            "{} shows epsilon of at least {}; {} is claimed",
            bound.method(),
            AtLeast::new(bound.epsilon()),
            AtMost::new(claimed)
        ),
        (Some(bound), None) if bound.epsilon().is_finite() => format!(
            "{} shows epsilon of at least {}",
            bound.method(),
            AtLeast::new(bound.epsilon())
        ),
        _ => "What each method shows".to_owned(),
    };
    let mut figure = Figure::new(
        title,
        "A dot with an arrow is a lower bound: the truth is there or to the right; a dot alone is an estimate.",
    )
    .x(Axis::linear("epsilon"))
    .y(Axis::category("", names))
    .with(Series::ladder("holds for any mechanism", measured).hue(Hue::Blue))
    .with(Series::ladder("holds within a family, or an estimate", other).hue(Hue::Orange));
    if let Some(claimed) = claimed.filter(|claimed| claimed.is_finite()) {
        figure = figure.with(Series::vertical_rule("claimed", claimed).hue(Hue::Vermilion));
    }
    figure
}

/// Where the true ROC lies at a false positive rate, with both rates of every threshold uncertain:
/// at least the power of a threshold whose true rate is certainly at most this, at most that of
/// one whose rate is certainly at least this.
fn power_band(scores: &Scores, band: &Simultaneous, rate: f64) -> (f64, f64) {
    let size = scores.nonmembers().len();
    let at = |allowed: usize| errors_with_at_most(scores, allowed);
    let below = partition(size + 1, |allowed| band.at(&at(allowed)).false_positive_upper <= rate);
    let low = below.checked_sub(1).map_or(0.0, |k| band.at(&at(k)).true_positive_lower);
    // The opposite ends: what the rates are at least, and the power at most.
    let above =
        partition(size + 1, |allowed| band.opposite(&at(allowed)).false_positive_upper < rate);
    let high =
        if above > size { 1.0 } else { band.opposite(&at(above)).true_positive_lower.min(1.0) };
    (low, high)
}

/// The first of 0..size for which a predicate that holds up to some point does not hold.
fn partition(size: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, size);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// The errors of the best threshold with at most `allowed` false positives.
fn errors_with_at_most(scores: &Scores, allowed: usize) -> Errors {
    let (members, nonmembers) = (scores.members(), scores.nonmembers());
    if allowed >= nonmembers.len() {
        return scores.errors_at(f64::NEG_INFINITY);
    }
    let edge = nonmembers[nonmembers.len() - 1 - allowed];
    let upto = |side: &[f64]| side.partition_point(|&score| score <= edge) as u64;
    Errors {
        false_positives: nonmembers.len() as u64 - upto(nonmembers),
        nonmembers: nonmembers.len() as u64,
        false_negatives: upto(members),
        members: members.len() as u64,
    }
}

/// A delta as people write it.
fn written(delta: f64) -> String {
    if delta == 0.0 { "0".to_owned() } else { format!("{delta:e}") }
}

/// Rates from `least` to 1, evenly in the logarithm.
fn grid(least: f64) -> Vec<f64> {
    const POINTS: usize = 160;
    (0..=POINTS).map(|step| least.powf(1.0 - step as f64 / POINTS as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One rate without a number does not cost the whole curve, and what is drawn still allows enough.
    #[test]
    fn a_rate_that_is_refused_takes_the_number_of_the_next() {
        let rates = [0.001, 0.01, 0.02, 0.1, 0.5];
        let whole = |rate: f64| Some((4.0 * rate).min(1.0));
        let partial = |rate: f64| whole(rate).filter(|_| rate != 0.01 && rate != 0.5);
        assert_eq!(
            allowed(partial, rates.into_iter()),
            (vec![(0.001, 0.004), (0.01, 0.08), (0.02, 0.08), (0.1, 0.4), (0.5, 1.0)], 2)
        );
        assert_eq!(allowed(whole, rates.into_iter()).1, 0);
    }
}
