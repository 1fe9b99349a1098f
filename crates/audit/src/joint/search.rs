//! The largest epsilon, the largest mu and the support of the region, over the vertices of the ROC's
//! hull. Which vertices and slopes are looked at decides how much is shown, never whether it holds.

use super::Joint;
use super::infimum::Evidence;
use crate::grid::hull;
use crate::{AttackDirection, Errors, Scores};
use numerics::special::{inverse_normal_cdf, normal_cdf};
use std::cell::RefCell;

/// Accuracy of epsilon and of mu.
const ACCURACY: f64 = 1e-7;
/// Standard deviations by which vertices are ranked.
const SPREAD: f64 = 2.5;

/// The joint statement about scores.
pub(crate) struct JointScores {
    joint: Joint,
    vertices: Vec<Errors>,
    thresholds: Vec<f64>,
    /// Supports that were asked for before.
    known: RefCell<Vec<(f64, Support)>>,
}

/// The least y + e^l x over the region: 1 - delta is at most this, from above.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Support {
    pub(crate) value: f64,
    pub(crate) vertex: usize,
}

/// A value and the vertex that shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shown {
    pub(crate) value: f64,
    pub(crate) vertex: Option<usize>,
}

impl JointScores {
    pub(crate) fn new(scores: &Scores, level: f64) -> Self {
        let joint =
            Joint::new(scores.nonmembers().len() as u64, scores.members().len() as u64, level);
        let vertices = hull(scores, 0);
        // The lowest member that is called one.
        let at = |errors: &Errors| scores.members()[errors.false_negatives as usize];
        let thresholds = vertices.iter().map(at).collect();
        Self { joint, vertices, thresholds, known: RefCell::default() }
    }

    /// One threshold with these errors, and no other.
    pub(crate) fn of_counts(errors: &Errors, level: f64) -> Self {
        Self {
            joint: Joint::new(errors.nonmembers, errors.members, level),
            vertices: vec![*errors],
            thresholds: vec![0.0],
            known: RefCell::default(),
        }
    }

    pub(crate) fn errors(&self, vertex: usize) -> &Errors {
        &self.vertices[vertex]
    }

    pub(crate) fn threshold(&self, vertex: usize) -> f64 {
        self.thresholds[vertex]
    }

    /// The vertex that looks best, for when nothing is shown.
    pub(crate) fn closest(&self) -> usize {
        let worth = |errors: &Errors| {
            crate::Statistic::GaussianMu.value(&crate::RateBounds::wilson(errors, SPREAD))
        };
        self.ranked(worth).first().copied().unwrap_or(0)
    }

    pub(crate) fn joint(&self) -> &Joint {
        &self.joint
    }

    /// The vertices from the most promising down.
    fn ranked(&self, worth: impl Fn(&Errors) -> f64) -> Vec<usize> {
        let mut ranked: Vec<(f64, usize)> = self
            .vertices
            .iter()
            .enumerate()
            .map(|(place, errors)| (worth(errors), place))
            .collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        ranked.into_iter().map(|(_, place)| place).collect()
    }

    /// The largest refuted epsilon.
    pub(crate) fn epsilon(&self, delta: f64, direction: AttackDirection) -> Shown {
        let statistic = crate::Statistic::Epsilon { delta, direction };
        let ranked =
            self.ranked(|errors| statistic.value(&crate::RateBounds::wilson(errors, SPREAD)));
        let mut best = Shown { value: 0.0, vertex: None };
        for vertex in ranked {
            let evidence = self.joint.evidence(&self.vertices[vertex]);
            if let Some(value) = epsilon_above(&evidence, delta, direction, best.value) {
                best = Shown { value, vertex: Some(vertex) };
            }
        }
        best
    }

    /// The largest refuted advantage.
    pub(crate) fn advantage(&self) -> Shown {
        let Support { value, vertex } = self.support_over(0.0, usize::MAX);
        let value = (1.0 - value).max(0.0);
        Shown { value, vertex: (value > 0.0).then_some(vertex) }
    }

    /// The largest mu whose Gaussian curve is refuted by one of its lines.
    pub(crate) fn mu(&self) -> Shown {
        let statistic = crate::Statistic::GaussianMu;
        let mut worths = vec![0.0; self.vertices.len()];
        for (worth, errors) in worths.iter_mut().zip(&self.vertices) {
            *worth = statistic.value(&crate::RateBounds::wilson(errors, SPREAD));
        }
        let mut ranked: Vec<usize> = (0..worths.len()).collect();
        ranked.sort_by(|a, b| worths[*b].total_cmp(&worths[*a]));
        let mut best = Shown { value: 0.0, vertex: None };
        for (rank, &vertex) in ranked.iter().enumerate() {
            // The curve of Gaussian scores is flat over all vertices: those that promise less than
            // what is there, and all beyond some dozens, are passed over.
            if rank >= 48 || (rank >= 4 && worths[vertex] < 0.97 * best.value) {
                break;
            }
            let evidence = self.joint.evidence(&self.vertices[vertex]);
            let rate = centre(&self.vertices[vertex]);
            for shift in SHIFTS {
                let refuted = |mu: f64| refutes_line(&evidence, rate, shift, mu);
                if let Some(value) = largest(refuted, best.value) {
                    best = Shown { value, vertex: Some(vertex) };
                }
            }
        }
        best
    }

    /// The support of the region at a slope, over the most promising vertices.
    pub(crate) fn support(&self, slope: f64) -> Support {
        if let Some((_, known)) = self.known.borrow().iter().find(|(at, _)| *at == slope) {
            return *known;
        }
        let support = self.support_over(slope, 3);
        self.known.borrow_mut().push((slope, support));
        support
    }

    fn support_over(&self, slope: f64, most: usize) -> Support {
        let growth = slope.exp();
        let mut best = Support { value: growth.clamp(f64::MIN_POSITIVE, 1.0), vertex: 0 };
        let mut found = false;
        for vertex in self.ranked(|errors| -likely_height(errors, growth)).into_iter().take(most) {
            let evidence = self.joint.evidence(&self.vertices[vertex]);
            let refuted = |value: f64| evidence.refutes(slope, 1.0 - value);
            // Without evidence 1 - delta is at most min(1, e^l).
            if !refuted(best.value * (1.0 - 1e-6)) {
                continue;
            }
            let (mut shown, mut open) = (best.value, 0.0);
            while shown - open > 1e-6 * shown {
                let middle = if open > 0.0 { 0.5 * (open + shown) } else { 0.5 * shown };
                if refuted(middle) {
                    shown = middle
                } else {
                    open = middle
                }
                if shown < 1e-12 {
                    break;
                }
            }
            if !found || shown < best.value {
                best = Support { value: shown, vertex };
                found = true;
            }
        }
        best
    }

    /// The slopes at which the region can show anything.
    pub(crate) fn slopes(&self) -> (f64, f64) {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for errors in &self.vertices {
            let rates = crate::RateBounds::wilson(errors, SPREAD);
            let (x, y) = (rates.false_positive_upper, rates.false_negative_upper);
            low = low.min((y.max(1e-12) / rates.true_negative_lower.max(1e-12)).ln());
            high = high.max((rates.true_positive_lower.max(1e-12) / x.max(1e-12)).ln());
        }
        // Where hardly anything is shown the ends are near each other, or cross.
        if high - low < 0.1 {
            let middle = 0.5 * (low + high);
            return (middle - 0.05, middle + 0.05);
        }
        (low, high)
    }
}

/// About the least y + e^l x of a threshold's region, for e^l = `growth`.
pub(crate) fn likely_height(errors: &Errors, growth: f64) -> f64 {
    let share = |part: u64, all: u64| (part as f64 + 0.5) / (all as f64 + 1.0);
    let (x, y) = (
        share(errors.false_positives, errors.nonmembers),
        share(errors.false_negatives, errors.members),
    );
    let variance = |rate: f64, size: u64| rate * (1.0 - rate) / size as f64;
    let spread = growth * growth * variance(x, errors.nonmembers) + variance(y, errors.members);
    y + growth * x + SPREAD * spread.sqrt()
}

/// The largest epsilon that one threshold refutes, if it exceeds `known`.
pub(crate) fn epsilon_above(
    evidence: &Evidence,
    delta: f64,
    direction: AttackDirection,
    known: f64,
) -> Option<f64> {
    let forward = |epsilon: f64| evidence.refutes(epsilon, delta);
    let mirror =
        |epsilon: f64| evidence.refutes(-epsilon, -(-epsilon).exp_m1() + (-epsilon).exp() * delta);
    let first = match direction {
        AttackDirection::Mirror => None,
        _ => largest(forward, known),
    };
    let second = match direction {
        AttackDirection::Forward => None,
        _ => largest(mirror, first.unwrap_or(known)),
    };
    second.or(first)
}

/// The largest argument beyond `known` for which a predicate that holds up to some point holds.
pub(crate) fn largest(holds: impl Fn(f64) -> bool, known: f64) -> Option<f64> {
    let step = ACCURACY * known.max(1.0);
    if !holds(known + step) {
        return None;
    }
    let (mut low, mut high) = (known + step, known + 0.25);
    while holds(high) {
        low = high;
        high = 2.0 * high - known;
        if high > 1e3 {
            return Some(low);
        }
    }
    while high - low > ACCURACY * high.max(1.0) {
        let middle = 0.5 * (low + high);
        if holds(middle) { low = middle } else { high = middle }
    }
    Some(low)
}

/// Shifts of the point where a line touches the curve, in standard deviations of the scores.
const SHIFTS: [f64; 3] = [0.0, -0.35, 0.35];

/// Whether a line of the Gaussian curve is refuted, the one that touches it near a rate.
fn refutes_line(evidence: &Evidence, rate: f64, shift: f64, mu: f64) -> bool {
    let slope = mu * (-inverse_normal_cdf(rate) + shift) - 0.5 * mu * mu;
    evidence.refutes(slope, gaussian_delta(mu, slope))
}

/// Whether the Gaussian curve of mu is refuted at a threshold with these errors.
pub(crate) fn refutes_mu(evidence: &Evidence, errors: &Errors, mu: f64) -> bool {
    let rate = centre(errors);
    SHIFTS.iter().any(|&shift| refutes_line(evidence, rate, shift, mu))
}

/// A false positive rate between the observed one and the end of the region, where the line that
/// separates best touches the curve.
fn centre(errors: &Errors) -> f64 {
    let share = |part: u64, all: u64| (part as f64 + 0.5) / (all as f64 + 1.0);
    let x = share(errors.false_positives, errors.nonmembers);
    let y = share(errors.false_negatives, errors.members);
    let spread = |rate: f64, size: u64| SPREAD * (rate * (1.0 - rate) / size as f64).sqrt();
    // Shares of the distance by the spreads in normal quantiles.
    let bend = |rate: f64| {
        let z = inverse_normal_cdf(rate);
        (-0.5 * z * z).exp().max(1e-300)
    };
    let (u, w) = (spread(x, errors.nonmembers) / bend(x), spread(y, errors.members) / bend(y));
    let part = u / (u * u + w * w).sqrt();
    (x + part * spread(x, errors.nonmembers)).clamp(1e-300, 1.0 - 1e-12)
}

/// delta of N(mu, 1) against N(0, 1) at ln-ratio `slope`, from above by a hair.
fn gaussian_delta(mu: f64, slope: f64) -> f64 {
    let (above, below) = (normal_cdf(0.5 * mu - slope / mu), normal_cdf(-0.5 * mu - slope / mu));
    let delta = above - slope.exp() * below;
    // Rounding is relative to the larger term.
    (delta + 1e-13 * above).max(0.0)
}

/// The largest argument above 0 for which a predicate that holds up to some point holds, from below;
/// 0 when none does.
pub(crate) fn largest_where(holds: impl Fn(f64) -> bool) -> f64 {
    largest(holds, 0.0).unwrap_or(0.0)
}
