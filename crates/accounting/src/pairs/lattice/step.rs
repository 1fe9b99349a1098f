//! One step as two mixtures of Gaussians whose log-likelihood ratio increases in x.
//!
//! P = sum_j w_j N(m_j, s^2), Q = sum_j v_j N(m'_j, s^2). With B(k, q) the binomial weights:
//! `Remove` is P: means j, Q: mean 0; `Add` (mirrored, so that the loss increases again) is
//! P: mean 0, Q: means -j; substitution is P: means j, Q: means -j. In each case every mean of
//! P is >= every mean of Q, hence the loss l(x) = log(p/q) increases with slope at most
//! (largest mean of P - smallest mean of Q)/s^2.
//!
//! Every value comes with a bound on its rounding error.

use crate::pairs::by_coins;
use crate::{AccountingError, Order};
use numerics::elementary::{exp, exp_m1, ln, ln_1p};
use vocabulary::{Adjacency, Phase, Run};

pub(super) const UNIT: f64 = f64::EPSILON / 2.0;
const LOG_ROOT_TWO_PI: f64 = 0.918_938_533_204_672_7;

#[derive(Clone, Copy, Debug)]
struct Component {
    mean: f64,
    weight: f64,
}

/// A number and a bound on its error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub value: f64,
    pub error: f64,
}

/// Value, slope and curvature of the cumulant function (planning only; no error bound).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cumulant {
    pub value: f64,
    pub slope: f64,
    pub curvature: f64,
}

/// A stretch of x and what lies outside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub low: f64,
    pub high: f64,
    pub log_left: f64,
    pub log_right: f64,
}

/// The pair of one step, and how often it is repeated.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub sigma: f64,
    pub repeats: u64,
    first: Vec<Component>,
    second: Vec<Component>,
    weight_error: f64,
    /// The x that are kept, and logarithms of bounds on the tilted mass E[e^{c l}] left and right
    /// of them, once a tilt has been chosen.
    pub kept: Option<Kept>,
    /// Limit of the loss for x to minus infinity, where it is finite.
    pub infimum: Option<f64>,
    /// Limit of the loss for x to plus infinity, where it is finite.
    pub supremum: Option<f64>,
}

impl Step {
    /// The steps of a run, one for each phase.
    pub(super) fn of_run(run: &Run, order: Order) -> Result<Vec<Self>, AccountingError> {
        by_coins(run, "the lattice holds")?;
        let step = |phase: &Phase| Self::new(phase, run.group_size(), run.adjacency(), order);
        Ok(run.phases().iter().map(step).collect())
    }

    fn new(phase: &Phase, group: u32, adjacency: Adjacency, order: Order) -> Self {
        let weights = binomial(group, phase.sample_rate);
        let mixture = |sign: f64| -> Vec<Component> {
            let kept = weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0);
            kept.map(|(j, weight)| Component { mean: sign * j as f64, weight: *weight }).collect()
        };
        let null = vec![Component { mean: 0.0, weight: 1.0 }];
        let (first, second) = match (adjacency, order) {
            (Adjacency::Substitute, _) => (mixture(1.0), mixture(-1.0)),
            (_, Order::Remove) => (mixture(1.0), null),
            (_, Order::Add) => (null, mixture(-1.0)),
        };
        // Beyond e^-600 the atom at the limit is no more than a rumour.
        let none = f64::from(group) * ln_1p(-phase.sample_rate);
        let limit = |mine| {
            (adjacency != Adjacency::Substitute && order == mine && none > -600.0)
                .then_some(if mine == Order::Remove { none } else { -none })
        };
        Self {
            sigma: phase.noise_multiplier,
            repeats: phase.steps,
            first,
            second,
            weight_error: 8.0 * UNIT * (f64::from(group) + 1.0),
            kept: None,
            infimum: limit(Order::Remove),
            supremum: limit(Order::Add),
        }
    }

    /// The same step, repeated this many times.
    pub(super) fn repeated(&self, repeats: u64) -> Self {
        Self { repeats, ..self.clone() }
    }

    pub(super) fn largest_mean(&self) -> f64 {
        self.first.last().map_or(0.0, |c| c.mean)
    }

    pub(super) fn smallest_mean(&self) -> f64 {
        self.second.last().map_or(0.0, |c| c.mean)
    }

    fn steepest(&self) -> f64 {
        (self.largest_mean() - self.smallest_mean()) / (self.sigma * self.sigma)
    }

    /// Largest distance of x to a mean, in standard deviations.
    pub(super) fn distance(&self, x: f64) -> f64 {
        (x - self.smallest_mean()).abs().max((x - self.largest_mean()).abs()) / self.sigma
    }

    /// log of sum_j w_j exp((m_j x - m_j^2/2)/s^2): the density over that of N(0, s^2).
    fn log_ratio(&self, mixture: &[Component], x: f64) -> Known {
        let variance = self.sigma * self.sigma;
        let exponent = |c: &Component| c.mean * (x - 0.5 * c.mean) / variance;
        let (mut sum, mut error, mut largest) = (0.0, 0.0, f64::NEG_INFINITY);
        for c in mixture {
            largest = largest.max(exponent(c));
        }
        if largest < 20.0 {
            // Relative accuracy where the loss is small: weights sum to 1, so the term of mean 0
            // drops out of sum - 1.
            for c in mixture {
                let a = exponent(c);
                let excess = exp_m1(a);
                sum += c.weight * excess;
                error += c.weight
                    * (excess.abs() * (self.weight_error + 4.0 * UNIT)
                        + (excess + 1.0) * a.abs() * 6.0 * UNIT);
            }
            if sum > -0.5 {
                let value = ln_1p(sum);
                return Known {
                    value,
                    error: 1.01 * error / (1.0 + sum) + 3.0 * UNIT * value.abs(),
                };
            }
        }
        let (mut scaled, mut reach) = (0.0, 0.0_f64);
        for c in mixture {
            let a = exponent(c);
            scaled += c.weight * exp(a - largest);
            if a > largest - 60.0 {
                reach = reach.max(a.abs());
            }
        }
        let value = largest + ln(scaled);
        let count = mixture.len() as f64;
        let error = self.weight_error + UNIT * (6.0 + count + 12.0 * reach + 2.0 * value.abs());
        Known { value, error }
    }

    /// The privacy loss at x.
    pub(super) fn loss(&self, x: f64) -> Known {
        let (p, q) = (self.log_ratio(&self.first, x), self.log_ratio(&self.second, x));
        let value = p.value - q.value;
        Known { value, error: p.error + q.error + UNIT * value.abs() }
    }

    /// log of the density of P at x.
    pub(super) fn log_density(&self, x: f64) -> Known {
        let ratio = self.log_ratio(&self.first, x);
        let z = x / self.sigma;
        let value = ratio.value - 0.5 * z * z - ln(self.sigma) - LOG_ROOT_TWO_PI;
        let size = 3.0 * z * z + 2.0 * ratio.value.abs() + 4.0 * ln(self.sigma).abs() + 4.0;
        Known { value, error: ratio.error + UNIT * size }
    }

    /// Derivative of the loss (no error bound).
    fn loss_slope(&self, x: f64) -> f64 {
        let variance = self.sigma * self.sigma;
        let mean = |mixture: &[Component]| {
            let exponent = |c: &Component| c.mean * (x - 0.5 * c.mean) / variance;
            let top = mixture.iter().map(exponent).fold(f64::NEG_INFINITY, f64::max);
            let (mut zeroth, mut first) = (0.0, 0.0);
            for c in mixture {
                let w = c.weight * exp(exponent(c) - top);
                zeroth += w;
                first += w * c.mean;
            }
            first / zeroth
        };
        (mean(&self.first) - mean(&self.second)) / variance
    }

    /// An x whose loss is at most y for certain (`below`), or at least y for certain, when y
    /// itself is known to `y_error`.
    pub(super) fn position(&self, y: f64, y_error: f64, guess: f64, below: bool) -> f64 {
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        let mut x = guess;
        for _ in 0..200 {
            let loss = self.loss(x);
            let off = loss.value - y;
            if off < 0.0 {
                low = x
            } else {
                high = x
            }
            let step = -off / self.loss_slope(x);
            if off.abs() <= loss.error || step.abs() <= 4.0 * UNIT * (x.abs() + self.sigma) {
                break;
            }
            let limit = 4.0 * (self.sigma + x.abs());
            let next = x + if step.is_finite() {
                step.clamp(-limit, limit)
            } else {
                -off.signum() * limit
            };
            x = if next > low && next < high {
                next
            } else if low.is_finite() && high.is_finite() {
                0.5 * (low + high)
            } else {
                x - off.signum() * limit
            };
        }
        let mut nudge = 4.0 * UNIT * (x.abs() + 1e-3 * self.sigma);
        for _ in 0..80 {
            let loss = self.loss(x);
            let spare = loss.error + y_error + 2.0 * UNIT * y.abs();
            if below && loss.value + spare <= y || !below && loss.value - spare >= y {
                return x;
            }
            x += if below { -nudge } else { nudge };
            nudge *= 2.0;
        }
        x
    }

    /// K(c) = log E_P e^{c l} with derivatives, by the trapezoid rule.
    pub(super) fn cumulant(&self, c: f64) -> Cumulant {
        let pull = c * self.steepest() * self.sigma * self.sigma;
        let low = self.smallest_mean() - 11.0 * self.sigma + pull.min(0.0);
        let high = self.largest_mean() + 11.0 * self.sigma + pull.max(0.0);
        let (low, high) =
            self.kept.map_or((low, high), |kept| (low.max(kept.low), high.min(kept.high)));
        // A coarse scan finds the stretches that matter: between points 2 s apart the logarithm
        // rises at most 1/2 above its chord.
        const FINE: usize = 8;
        let stretches = ((high - low) / (2.0 * self.sigma)).ceil().clamp(4.0, 40_000.0);
        let stretch = (high - low) / stretches;
        let log_at = |x: f64| {
            let loss = self.loss(x).value;
            (self.log_density(x).value + c * loss, loss)
        };
        let coarse: Vec<(f64, f64)> =
            (0..=stretches as usize).map(|i| log_at(low + stretch * i as f64)).collect();
        let top = coarse.iter().map(|(log, _)| *log).fold(f64::NEG_INFINITY, f64::max);
        let width = stretch / FINE as f64;
        let mut sums = [0.0_f64; 3];
        let mut add = |log: f64, loss: f64| {
            let weight = exp(log - top);
            sums[0] += weight;
            sums[1] += weight * loss;
            sums[2] += weight * loss * loss;
        };
        for (i, (log, loss)) in coarse.iter().enumerate() {
            add(*log, *loss);
            let next = coarse.get(i + 1).map_or(f64::NEG_INFINITY, |(log, _)| *log);
            if log.max(next) > top - 50.0 && i + 1 < coarse.len() {
                for k in 1..FINE {
                    let (log, loss) = log_at(low + stretch * i as f64 + width * k as f64);
                    add(log, loss);
                }
            }
        }
        let slope = sums[1] / sums[0];
        let curvature = (sums[2] / sums[0] - slope * slope).max(0.0);
        Cumulant { value: top + ln(sums[0] * width), slope, curvature }
    }

    /// log of a bound on E_P[e^{c l}; x beyond the edge], on the right or on the left.
    ///
    /// Beyond the edge the loss moves away from its value there by at most the steepest slope
    /// times the distance, and only in one direction; what is left are Gaussian integrals, and
    /// the tail of a Gaussian at z > 0 is at most exp(-z^2/2)/2.
    pub(super) fn log_tail(&self, c: f64, edge: f64, right: bool) -> f64 {
        let loss = self.loss(edge);
        let growing = (c > 0.0) == right;
        let steep = c.abs() * self.steepest();
        let gaussian = |rate: f64| {
            let mut total = f64::NEG_INFINITY;
            for component in &self.first {
                let away = if right { edge - component.mean } else { component.mean - edge };
                let shift = rate * self.sigma * self.sigma;
                let z = (away - shift) / self.sigma;
                let tail = if z > 0.0 { -0.5 * z * z - std::f64::consts::LN_2 } else { 0.0 };
                let log = ln(component.weight) - rate * away + 0.5 * rate * shift + tail;
                let (large, small) = (f64::max(total, log), f64::min(total, log));
                total = large;
                if large > f64::NEG_INFINITY {
                    total += ln_1p(exp(small - large));
                }
            }
            total + 1e-9 * (1.0 + total.abs())
        };
        let at_edge = c * loss.value + c.abs() * loss.error;
        if !growing {
            return gaussian(0.0) + at_edge;
        }
        let by_slope = gaussian(steep) + at_edge;
        // A bounded loss is never above its limit.
        let limit = if right { self.supremum } else { self.infimum };
        limit.map_or(by_slope, |limit| by_slope.min(gaussian(0.0) + c * limit + 1e-12))
    }

    /// log of a bound on P(from < x < to), both on the right of the bulk or not.
    fn log_mass(&self, from: f64, to: f64) -> f64 {
        let mut total = 0.0;
        for component in &self.first {
            let nearest = component.mean.clamp(from, to);
            let z = (nearest - component.mean) / self.sigma;
            total += component.weight * exp(-0.5 * z * z);
        }
        ln(total * (to - from) / self.sigma * 0.4) + 1e-9
    }

    /// The step with only those x kept beyond which the tilted mass is below exp(log_small) of
    /// the whole.
    ///
    /// On the right the tilted law can have a second hump of large jumps, which the steepest slope
    /// alone bounds badly; so the bound is added up in short pieces, from far out inwards, each
    /// with the largest loss and the largest density in it.
    pub(super) fn truncated(&self, c: f64, log_small: f64) -> Self {
        let whole = self.cumulant(c).value;
        let limit = log_small + whole;
        let find = |right: bool, limit: f64| {
            let sign = if right { 1.0 } else { -1.0 };
            let far_enough = |x: f64| self.log_tail(c, x, right) <= limit;
            let mut x = if right { self.largest_mean() } else { self.smallest_mean() };
            let mut stride = self.sigma;
            while !far_enough(x) && stride < 1e12 {
                x += sign * stride;
                stride *= 1.5;
            }
            let mut inner = x - sign * stride;
            for _ in 0..12 {
                let middle = 0.5 * (x + inner);
                if far_enough(middle) { x = middle } else { inner = middle }
            }
            x
        };
        let low = find(false, limit - 1.0);
        let far = find(true, limit - 2.0);
        let floor = low.max(self.smallest_mean());
        let piece = (0.1 * self.sigma).max((far - floor) / 4000.0);
        let (mut high, mut log_right) = (far, self.log_tail(c, far, true));
        while high - piece > floor {
            let loss = self.loss(high);
            let log = self.log_mass(high - piece, high) + c * (loss.value + loss.error);
            let (large, small) = (log_right.max(log), log_right.min(log));
            let sum = large + ln_1p(exp(small - large)) + 1e-12;
            if !(sum <= limit - 1.0) {
                break;
            }
            (high, log_right) = (high - piece, sum);
        }
        let kept = Kept { low, high, log_left: self.log_tail(c, low, false), log_right };
        Self { kept: Some(kept), ..self.clone() }
    }
}

/// Binomial weights, from the mode outwards and normalised, so that nothing under- or overflows
/// that matters; four roundings a ratio: relative error below 8 u a trial.
fn binomial(trials: u32, rate: f64) -> Vec<f64> {
    if rate == 1.0 {
        return (0..=trials).map(|j| f64::from(u8::from(j == trials))).collect();
    }
    if trials == 1 {
        return vec![1.0 - rate, rate];
    }
    let odds = rate / (1.0 - rate);
    let ratio = |j: usize| f64::from(trials - j as u32) / (j as f64 + 1.0) * odds;
    let mut weights = vec![0.0; trials as usize + 1];
    let mode = ((f64::from(trials) + 1.0) * rate).floor().min(f64::from(trials)) as usize;
    weights[mode] = 1.0;
    for j in mode..trials as usize {
        weights[j + 1] = weights[j] * ratio(j);
    }
    for j in (0..mode).rev() {
        weights[j] = weights[j + 1] / ratio(j);
    }
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}
