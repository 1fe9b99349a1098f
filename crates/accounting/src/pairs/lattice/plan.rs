//! Where to tilt, and which stretch of total losses the lattice has to hold. Planning decides
//! how tight a bracket is, never whether it is right.

use super::step::{Cumulant, Step};

/// log of the tilted mass that may lie beyond each end of the window.
const LOG_OUTSIDE: f64 = -46.0;

/// Tilt, window of total losses and the exponents that show it is wide enough.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
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

const LOG_TILTS: (f64, f64) = (-16.0, 8.0);

fn bisect(mut low: f64, mut high: f64, rounds: usize, mut too_low: impl FnMut(f64) -> bool) -> f64 {
    for _ in 0..rounds {
        let middle = 0.5 * (low + high);
        if too_low(middle) { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The saddle c of K(c) - c epsilon - log c - log(1 + c).
pub(super) fn tilt_for_epsilon(steps: &[Step], epsilon: f64) -> f64 {
    bisect(LOG_TILTS.0, LOG_TILTS.1, 30, |log_c| {
        let c = log_c.exp();
        total(steps, c).slope - epsilon - 1.0 / c - 1.0 / (1.0 + c) < 0.0
    })
    .exp()
}

/// Tilt and epsilon at which the saddle-point estimate of delta meets a target.
pub(super) fn tilt_for_delta(steps: &[Step], delta: f64) -> (f64, f64) {
    let at = |c: f64| {
        let k = total(steps, c);
        let epsilon = k.slope - 1.0 / c - 1.0 / (1.0 + c);
        let curvature = k.curvature + 1.0 / (c * c) + 1.0 / ((1.0 + c) * (1.0 + c));
        let log_delta = k.value
            - c * epsilon
            - c.ln()
            - c.ln_1p()
            - 0.5 * (std::f64::consts::TAU * curvature).ln();
        (epsilon, log_delta)
    };
    let log_c = bisect(LOG_TILTS.0, LOG_TILTS.1, 34, |log_c| at(log_c.exp()).1 > delta.ln());
    (log_c.exp(), at(log_c.exp()).0)
}

/// Tilt at which the saddle-point estimate of Q(Y > epsilon) meets a test's size.
pub(super) fn tilt_for_size(steps: &[Step], size: f64) -> f64 {
    bisect(LOG_TILTS.0, LOG_TILTS.1, 30, |log_c| {
        let c = log_c.exp();
        let k = total(steps, c);
        let epsilon = k.slope - 1.0 / (1.0 + c);
        let curvature = k.curvature + 1.0 / ((1.0 + c) * (1.0 + c));
        let scale = 0.5 * (std::f64::consts::TAU * curvature).ln();
        k.value - (1.0 + c) * epsilon - c.ln_1p() - scale > size.ln()
    })
    .exp()
}

/// The window for a tilt: both ends by Chernoff's bound under the tilted law.
pub(super) fn window(steps: &[Step], tilt: f64) -> Plan {
    let here = total(steps, tilt);
    let deviation = here.curvature.sqrt().max(1e-300);
    let end = |sign: f64| {
        let bound = |log_rate: f64| {
            let rate = log_rate.exp();
            let moved = total(steps, tilt + sign * rate).value - here.value;
            (moved - LOG_OUTSIDE) / rate
        };
        // The bound is quasi-convex in the rate; golden section around the normal law's optimum.
        let centre = (9.6 / deviation).ln();
        let (mut a, mut b) = (centre - 7.0, (centre + 2.0).min(9.0));
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
        (sign * best, at.exp())
    };
    let ((high, high_rate), (low, low_rate)) = (end(1.0), end(-1.0));
    Plan { tilt, low, high, low_rate, high_rate }
}
