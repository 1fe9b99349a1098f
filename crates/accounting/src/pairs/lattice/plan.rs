//! Where to tilt, and which stretch of total losses the lattice has to hold. Planning decides
//! how tight a bracket is, never whether it is right.

use super::step::{Cumulant, Step};
use numerics::elementary::{exp, ln, ln_1p};

/// Tilt, window of total losses and the exponents that show it is wide enough.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The steps, cut to the x that matter under the tilt.
    pub steps: Vec<Step>,
    /// log of the tilted mass that may lie beyond each end of the window.
    pub outside: f64,
    pub tilt: f64,
    pub low: f64,
    pub high: f64,
    pub low_rate: f64,
    pub high_rate: f64,
}

/// Cumulants of the total loss.
pub(super) fn total(steps: &[Step], c: f64) -> Cumulant {
    steps.iter().fold(Cumulant::default(), |sum, step| {
        let (one, repeats) = (step.cumulant(c), step.repeats as f64);
        Cumulant {
            value: sum.value + repeats * one.value,
            slope: sum.slope + repeats * one.slope,
            curvature: sum.curvature + repeats * one.curvature,
        }
    })
}

const LOG_TILTS: (f64, f64) = (-16.0, 11.0);

fn bisect(mut low: f64, mut high: f64, rounds: usize, mut too_low: impl FnMut(f64) -> bool) -> f64 {
    for _ in 0..rounds {
        let middle = 0.5 * (low + high);
        if too_low(middle) { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// Saddle-point estimate of log delta at the epsilon whose saddle is c, and that epsilon.
fn estimate(steps: &[Step], c: f64) -> (f64, f64) {
    let k = total(steps, c);
    let epsilon = k.slope - 1.0 / c - 1.0 / (1.0 + c);
    let curvature = k.curvature + 1.0 / (c * c) + 1.0 / ((1.0 + c) * (1.0 + c));
    let scale = 0.5 * ln(std::f64::consts::TAU * curvature);
    (epsilon, k.value - c * epsilon - ln(c) - ln_1p(c) - scale)
}

/// The saddle c of K(c) - c epsilon - log c - log(1 + c), and an estimate of log delta there.
pub(super) fn tilt_for_epsilon(steps: &[Step], epsilon: f64) -> (f64, f64) {
    let c = exp(bisect(LOG_TILTS.0, LOG_TILTS.1, 30, |log_c| {
        let c = exp(log_c);
        total(steps, c).slope - epsilon - 1.0 / c - 1.0 / (1.0 + c) < 0.0
    }));
    (c, estimate(steps, c).1)
}

/// Tilt and epsilon at which the saddle-point estimate of delta meets a target.
pub(super) fn tilt_for_delta(steps: &[Step], delta: f64) -> (f64, f64) {
    let too_low = |log_c: f64| estimate(steps, exp(log_c)).1 > ln(delta);
    let c = exp(bisect(LOG_TILTS.0, LOG_TILTS.1, 34, too_low));
    (c, estimate(steps, c).0)
}

/// Tilt and epsilon at which the saddle-point estimate of Q(Y > epsilon) meets a test's size.
pub(super) fn tilt_for_size(steps: &[Step], size: f64) -> (f64, f64) {
    let at = |c: f64| {
        let k = total(steps, c);
        let epsilon = k.slope - 1.0 / (1.0 + c);
        let curvature = k.curvature + 1.0 / ((1.0 + c) * (1.0 + c));
        let scale = 0.5 * ln(std::f64::consts::TAU * curvature);
        (epsilon, k.value - (1.0 + c) * epsilon - ln_1p(c) - scale)
    };
    let too_low = |log_c: f64| at(exp(log_c)).1 > ln(size);
    let c = exp(bisect(LOG_TILTS.0, LOG_TILTS.1, 30, too_low));
    (c, at(c).0)
}

/// How much of delta a stray mass may be, as a logarithm.
const LOG_SLACK: f64 = -21.0;

/// The best plan for an answer of about exp(log_delta) at epsilon, given the saddle.
///
/// The saddle is the best tilt for round-off, but where it sits at the edge of a hump of large
/// jumps the window becomes very wide; a smaller tilt loses digits and gains a finer lattice.
pub(super) fn best(
    steps: &[Step],
    saddle: f64,
    epsilon: f64,
    log_delta: f64,
    points: usize,
) -> Plan {
    let repeats: f64 = steps.iter().map(|step| step.repeats as f64).sum();
    let mut best: Option<(f64, Plan)> = None;
    for fraction in [1.0, 0.85, 0.7, 0.5, 0.3, 0.1] {
        let tilt = saddle * fraction;
        let whole = total(steps, tilt);
        let cost = (whole.value - tilt * epsilon - log_delta).max(0.0);
        let outside = LOG_SLACK - cost;
        let cut: Vec<Step> =
            steps.iter().map(|step| step.truncated(tilt, outside - ln(repeats))).collect();
        let plan = window(&cut, tilt, outside);
        let deviation = total(&cut, tilt).curvature.sqrt();
        let spacing = (plan.high - plan.low) / points as f64 / deviation;
        let error = 0.2 * repeats.min(1024.0) * spacing * spacing + repeats * 3e-14 * exp(cost);
        if error.is_finite() && best.as_ref().is_none_or(|(least, _)| error < 0.7 * least) {
            best = Some((error, plan));
        }
    }
    best.map_or_else(|| window(steps, saddle, LOG_SLACK), |(_, plan)| plan)
}

/// The window for a tilt: both ends by Chernoff's bound under the tilted law.
pub(super) fn window(steps: &[Step], tilt: f64, outside: f64) -> Plan {
    let here = total(steps, tilt);
    let deviation = here.curvature.sqrt().max(1e-300);
    let end = |sign: f64| {
        let bound = |log_rate: f64| {
            let rate = exp(log_rate);
            let moved = total(steps, tilt + sign * rate).value - here.value;
            (moved - outside) / rate
        };
        // The bound is quasi-convex in the rate; golden section around the normal law's optimum.
        let centre = ln((-2.0 * outside).sqrt() / deviation);
        let (mut a, mut b) = (centre - 7.0, (centre + 2.0).min(12.0));
        if a > b - 1.0 {
            a = b - 6.0;
        }
        let ratio = 0.618_033_988_75;
        let (mut x, mut y) = (b - ratio * (b - a), a + ratio * (b - a));
        let (mut fx, mut fy) = (bound(x), bound(y));
        for _ in 0..18 {
            if fx < fy {
                (b, y, fy) = (y, x, fx);
                x = b - ratio * (b - a);
                fx = bound(x);
            } else {
                (a, x, fx) = (x, y, fy);
                y = a + ratio * (b - a);
                fy = bound(y);
            }
        }
        let (best, at) = if fx < fy { (fx, x) } else { (fy, y) };
        (sign * best, exp(at))
    };
    let ((high, high_rate), (low, low_rate)) = (end(1.0), end(-1.0));
    Plan { steps: steps.to_vec(), outside, tilt, low, high, low_rate, high_rate }
}
