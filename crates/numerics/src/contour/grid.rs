//! The trapezoid rule for A(s) = E_Q[(P/Q)^s] on the real line, with its error.
//!
//! The integrand is analytic in the strip |Im x| < pi s^2 / reach, so the rule with step h errs by
//! at most 2 M / (e^{2 pi d/h} - 1), M the integral of its modulus on the lines Im x = +-d
//! (Trefethen and Weideman 2014, theorem 5.1). On those lines the modulus of P is at most
//! e^{d^2/(2 s^2)} P(x), and at least cos(theta/2) of that, theta = d reach / s^2, because all
//! components lie in a cone of angle theta.
//!
//! What is summed is W^s - 1 - s (W - 1) (both subtracted terms integrate to zero exactly), so
//! that a transform that is nearly 1 keeps its relative accuracy and may be raised to the power 1e9.

use super::strip::{self, Strip, Unmasked};
use super::tail::log_shares;
use super::transform::second_remainder;
use crate::elementary::{cos, exp, exp_m1, ln, ln_1p};
use crate::mixture::MixtureRatio;

/// Points, weights and log ratios of one mixture pair.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    pub(crate) x: Vec<f64>,
    /// step * Q(x), and its logarithm (which does not underflow)
    pub(crate) weight: Vec<f64>,
    pub(crate) log_weight: Vec<f64>,
    /// log W
    pub(crate) log_ratio: Vec<f64>,
    /// Bounds on the errors of log_weight and of log_ratio, in units of `f64::EPSILON`.
    pub(crate) weight_slip: Vec<f64>,
    pub(crate) ratio_slip: Vec<f64>,
    /// weight * (W - 1)
    lifted: Vec<f64>,
    /// weight * (W - 1 - log W), where W is near 1
    curved: Vec<f64>,
    /// Error of the rule for A(c + iu), |u| <= the design's, and the c it was made for, divided by
    /// 1 + |s| + A(c).
    pub(crate) relative_error: f64,
    /// A masked grid sums keep (W^s - 1 - s (W - 1)); this is what the mask takes from 1 + s (W - 1).
    pub(crate) deficit: Deficit,
}

/// mass + s slope, with absolute errors.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deficit {
    pub(crate) mass: f64,
    pub(crate) slope: f64,
    pub(crate) mass_error: f64,
    pub(crate) slope_error: f64,
}

/// What a grid must be able to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Design {
    /// Largest real exponent s (at least 1) and smallest (at most 0).
    pub(crate) highest: f64,
    pub(crate) lowest: f64,
    /// Largest |Im s|.
    pub(crate) frequency: f64,
    /// -log of the permitted error.
    pub(crate) digits: f64,
}

/// Too many points would be needed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TooFine;

/// A grid that is not worth making smaller.
const FEW_POINTS: f64 = 64.0;
/// A grid so large that it pays to ask how large the integrand really gets.
const WORTH_A_STRIP: f64 = 250.0;
/// Each of 64 bytes.
pub(crate) const MOST_POINTS: f64 = 60_000.0;

impl Grid {
    /// A grid for real tilts only: bounds and saddles. Its step is a fixed part of the two scales
    /// of the integrand (the Gaussian's, and the width of the strip), for e^-digits on the real axis.
    pub(crate) fn coarse(pair: &MixtureRatio, design: &Design) -> Result<Self, TooFine> {
        let scale = pair.scale();
        let gaussian = 5.6 * scale / (2.0 * design.digits).sqrt();
        let strip = 17.7 * scale * scale / (pair.reach() * design.digits);
        Self::with_step(pair, design, gaussian.min(strip), exp(-design.digits))
    }

    /// A grid whose step follows from the general bound on the strip; where that would need many
    /// points, from how large the integrand is on the edges of narrower strips (module `strip`),
    /// which for rare jumps is far less. `coarse` is good for the tilt c on the real axis.
    pub(crate) fn economical(
        pair: &MixtureRatio,
        design: &Design,
        c: f64,
        coarse: &Self,
    ) -> Result<Self, TooFine> {
        let (mut best, mut relative_error) = step(pair, design);
        let mut by_strip = false;
        let (low, high) = range(pair, design);
        let target = design.digits + 2.0;
        if (high - low) / best > WORTH_A_STRIP
            && let Some(strip) = Strip::new(pair, coarse, c, target, &Unmasked)
        {
            let mut last = 0.0;
            for d in strip::heights(pair, target) {
                let step = strip.step(d, design.frequency, &Unmasked);
                if step > best {
                    best = step;
                    relative_error = strip::SIDES * exp(-target);
                    by_strip = true;
                }
                // The size is convex in d, so that there is one best step; few points are enough.
                if step < last || (high - low) / best < FEW_POINTS {
                    break;
                }
                last = step;
            }
        }
        let mut grid = Self::with_step(pair, design, best, relative_error)?;
        if by_strip {
            // The strip is bounded with its own grid's sum for A(c).
            let (_, rough) = log_shares(coarse, c);
            let (_, total) = log_shares(&grid, c);
            grid.relative_error *= exp(rough - total).max(1.0);
        }
        Ok(grid)
    }

    fn with_step(
        pair: &MixtureRatio,
        design: &Design,
        step: f64,
        relative_error: f64,
    ) -> Result<Self, TooFine> {
        let (low, high) = range(pair, design);
        let count = ((high - low) / step).ceil() + 1.0;
        if !(count <= MOST_POINTS) {
            return Err(TooFine);
        }
        let mut grid = Self::between(pair, low, step, count as usize);
        // Two ends cut where the integrand is below e^-digits, and the rule itself.
        grid.relative_error = relative_error + 8.0 * exp(-design.digits);
        Ok(grid)
    }

    /// `count` steps from `low` (rounded to a multiple of the step).
    pub(crate) fn between(pair: &MixtureRatio, low: f64, step: f64, count: usize) -> Self {
        crate::patience::look();
        let scale = pair.scale();
        // A step of few digits, so that its multiples are exact.
        let step = f64::from((step as f32).next_down());
        let log_norm = ln(step / (scale * (2.0 * std::f64::consts::PI).sqrt()));
        let mut grid = Self {
            x: Vec::with_capacity(count + 1),
            weight: Vec::with_capacity(count + 1),
            log_weight: Vec::with_capacity(count + 1),
            log_ratio: Vec::with_capacity(count + 1),
            weight_slip: Vec::with_capacity(count + 1),
            ratio_slip: Vec::with_capacity(count + 1),
            lifted: Vec::with_capacity(count + 1),
            curved: Vec::with_capacity(count + 1),
            relative_error: 0.0,
            deficit: Deficit::default(),
        };
        // Nodes at multiples of such a step are exact, and the grid symmetric about zero.
        let first = (low / step).floor();
        for index in 0..=count {
            let x = (first + index as f64) * step;
            let z = x / scale;
            let (denominator, denominator_slip) = pair.log_denominator_with_slip(x);
            let (numerator, numerator_slip) = pair.log_numerator_with_slip(x);
            let log_ratio = numerator - denominator;
            grid.x.push(x);
            // The square has five roundings: a quotient counts twice.
            let exponent = 0.5 * z * z;
            grid.weight_slip.push(
                2.0 * exponent + 2.0 * log_norm.abs() + 2.0 + denominator.abs() + denominator_slip,
            );
            grid.ratio_slip.push(
                numerator_slip
                    + denominator_slip
                    + if denominator == 0.0 { 0.0 } else { 0.5 * log_ratio.abs() },
            );
            let log_weight = log_norm + denominator - 0.5 * z * z;
            grid.log_weight.push(log_weight);
            grid.log_ratio.push(log_ratio);
            // Two forms, because W may overflow where the weight underflows.
            let weight = exp(log_weight);
            grid.weight.push(weight);
            grid.curved.push(weight * second_remainder(log_ratio.clamp(-0.5, 0.5)));
            grid.lifted.push(if log_ratio < 1.0 {
                weight * exp_m1(log_ratio)
            } else {
                exp(log_weight + log_ratio) - weight
            });
        }
        grid
    }

    /// Multiplies every weight by a factor in [0, 1], given with its logarithm as a function of x:
    /// at large tilts points count at which the factor itself underflows.
    /// `slip` bounds the factor's relative error in units of `f64::EPSILON`.
    pub(crate) fn masked(
        &self,
        factor: impl Fn(f64) -> (f64, f64),
        slip: impl Fn(f64) -> f64,
        deficit: Deficit,
    ) -> Self {
        self.clone().into_masked(factor, slip, deficit)
    }

    /// The same in place.
    pub(crate) fn into_masked(
        mut self,
        factor: impl Fn(f64) -> (f64, f64),
        slip: impl Fn(f64) -> f64,
        deficit: Deficit,
    ) -> Self {
        self.deficit = deficit;
        for j in 0..self.len() {
            let (keep, log_keep) = factor(self.x[j]);
            self.weight[j] *= keep;
            self.log_weight[j] += log_keep;
            self.weight_slip[j] += slip(self.x[j]) + log_keep.abs().min(1e6);
            self.lifted[j] *= keep;
            self.curved[j] *= keep;
        }
        self
    }

    /// An upper bound on log A(tilt) for a real tilt of the design, with all errors of the sum in it: infinite
    /// where the rule's own is not below a half.
    ///
    /// The terms Q W^tilt are positive. The rule errs by at most 2 e^growth / (e^{2 pi d/h} - 1) of A for every d inside
    /// the strip, and the ends cut off by `relative_error` (2 + |tilt| + 1/A).
    pub(crate) fn log_above(&self, pair: &MixtureRatio, tilt: f64) -> f64 {
        let design = Design { highest: tilt, lowest: tilt, frequency: 0.0, digits: 0.0 };
        let step = self.x[1] - self.x[0];
        let rule = EDGES
            .iter()
            .map(|fraction| {
                let d = fraction * strip_of(pair);
                let gain = 2.0 * std::f64::consts::PI * d / step;
                // e^gain - 1 >= e^gain / 2 from gain 1 on.
                if gain < 1.0 { f64::INFINITY } else { 4.0 * exp(growth(pair, &design, d) - gain) }
            })
            .fold(f64::INFINITY, f64::min);
        let exponents = || self.log_weight.iter().zip(&self.log_ratio).map(|(w, l)| w + tilt * l);
        let top = exponents().fold(f64::NEG_INFINITY, f64::max);
        let (mut sum, mut slip) = (0.0, 0.0);
        for (j, exponent) in exponents().enumerate() {
            let term = exp(exponent - top);
            sum += term;
            let moved = self.log_weight[j].abs() + (tilt * self.log_ratio[j]).abs() + top.abs();
            slip += term * (self.weight_slip[j] + tilt.abs() * self.ratio_slip[j] + moved + 4.0);
        }
        let sum = sum + f64::EPSILON * (slip + self.len() as f64 * sum);
        let log = top + ln(sum);
        // A is at least half of the sum wherever this is used.
        let cut = self.relative_error * (2.0 + tilt.abs() + 2.0 * exp(-log.min(0.0)));
        let lost = rule + cut;
        if !(lost < 0.5) {
            return f64::INFINITY;
        }
        log - ln_1p(-lost) + 8.0 * f64::EPSILON * (1.0 + log.abs() + top.abs())
    }

    pub(crate) fn lifted(&self, j: usize) -> f64 {
        self.lifted[j]
    }

    /// Meaningful for |log W| <= 1/2 only.
    pub(crate) fn curved(&self, j: usize) -> f64 {
        self.curved[j]
    }

    pub(crate) fn len(&self) -> usize {
        self.x.len()
    }
}

/// log of how much larger than on the axis the integrand's modulus can be at a distance d from it, for
/// the tilts and frequencies of a design.
fn growth(pair: &MixtureRatio, design: &Design, d: f64) -> f64 {
    let scale2 = pair.scale() * pair.scale();
    // Negative powers of P or Q pay for the cone: -log cos(theta/2) each.
    let (negative, turns) = if pair.one_sided() {
        ((-design.lowest).max(0.0), 1.0)
    } else {
        ((-design.lowest).max(design.highest - 1.0).max(0.0), 2.0)
    };
    let theta = d * pair.reach() / scale2;
    d * d / (2.0 * scale2) + design.frequency * turns * theta
        - (negative + 1.0) * ln(cos(0.5 * theta))
}

/// The parts of the strip of analyticity at whose edges the integrand is looked at.
const EDGES: [f64; 9] = [0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9];

fn strip_of(pair: &MixtureRatio) -> f64 {
    std::f64::consts::PI * pair.scale() * pair.scale() / pair.reach()
}

/// The step that reaches the design's digits, and the error it has.
fn step(pair: &MixtureRatio, design: &Design) -> (f64, f64) {
    let target = design.digits + 2.0;
    let mut best = 0.0;
    for fraction in EDGES {
        for free in [0.3, 0.6, 1.0, 1.5] {
            let most = free * pair.scale() * (2.0 * target).sqrt();
            let d = (fraction * strip_of(pair)).min(most);
            let step = 2.0 * std::f64::consts::PI * d / (target + growth(pair, design, d));
            if step > best {
                best = step;
            }
        }
    }
    // By construction 2 e^{exponent} / (e^{2 pi d/h} - 1) <= 2 e^{-target} / (1 - e^{-target}).
    (best, 2.5 * exp(-target))
}

/// Where the integrand of some tilt in the design exceeds e^-digits of its integral.
fn range(pair: &MixtureRatio, design: &Design) -> (f64, f64) {
    let scale = pair.scale();
    let depth = design.digits + 2.0;
    let span = scale * (2.0 * depth).sqrt();
    let log_integrand = |x: f64, power: f64| {
        let z = x / scale;
        pair.log_denominator(x) + power * pair.log_ratio(x) - 0.5 * z * z
    };
    // Right: W <= (n + 1) max(1, jumps)/Q, and beyond a jump's mode the logarithm of the integrand
    // falls at least like -(x - mode)^2 / (2 s^2). The mode solves x = tilt centre + (tilt - 1) |mean
    // centre of Q at x|, whose right side falls with x.
    let tilt = design.highest.max(1.0);
    let right = |centre: f64| {
        let pull = |x: f64| -(tilt - 1.0) * pair.posterior_means(x).1;
        if pair.one_sided() { tilt * centre } else { mode(tilt * centre, pull) }
    };
    let mut high = span;
    let mut farthest = 0.0f64;
    for mode in pair.numerator().iter().map(|component| right(component.centre)) {
        let terms = 1.0 + pair.numerator().len() as f64;
        let height = log_integrand(mode, tilt) + tilt * ln(terms);
        if height > -depth {
            high = high.max(mode + scale * (2.0 * depth.min(depth + height)).sqrt());
        }
        farthest = farthest.max(mode + span);
    }
    while high < farthest && log_integrand(high, tilt) > -depth {
        high += 0.5 * scale;
    }
    let low = if pair.infimum().is_finite() {
        // The ratio is bounded below, so a negative power only multiplies by (inf W)^power.
        let most = (design.lowest * pair.infimum()).max(0.0);
        -scale * (2.0 * (depth + most)).sqrt()
    } else if pair.one_sided() {
        // Nothing of P stays at zero. For any of its components, with power s < 0, P^s is at most
        // w^s e^{s m (2x - m)/(2 scale^2)}, which makes the integrand a Gaussian about s m: all of
        // A(s) where there is no other component, and otherwise of known size, while A(s) >= 1.
        let power = design.lowest.min(0.0);
        let alone = pair.numerator().len() == 1;
        pair.numerator()
            .iter()
            .map(|component| {
                let distance = component.centre / scale;
                let grown = 0.5 * power * (power - 1.0) * distance * distance;
                let most = power * ln(component.weight) + if alone { 0.0 } else { grown };
                power * component.centre - scale * (2.0 * (depth + most)).sqrt()
            })
            .fold(f64::NEG_INFINITY, f64::max)
            .min(-span)
    } else {
        // Mirror image: P^s Q^{1-s} with negative s leans on Q's components.
        let power = 1.0 - design.lowest.min(0.0);
        let left =
            |centre: f64| -mode(-power * centre, |x| (power - 1.0) * pair.posterior_means(-x).0);
        let mut low = -span;
        let mut farthest = 0.0f64;
        for mode in pair.denominator().iter().map(|component| left(component.centre)) {
            let terms = 1.0 + pair.denominator().len() as f64;
            let height = log_integrand(mode, 1.0 - power) + power * ln(terms);
            if height > -depth {
                low = low.min(mode - scale * (2.0 * depth.min(depth + height)).sqrt());
            }
            farthest = farthest.min(mode - span);
        }
        while low > farthest && log_integrand(low, 1.0 - power) > -depth {
            low -= 0.5 * scale;
        }
        low
    };
    (low, high)
}

/// The x with x = start + pull(x), from above; the pull is not negative and falls with x.
fn mode(start: f64, pull: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (start, start + pull(start));
    while high - low > 1e-3 * high {
        let middle = 0.5 * (low + high);
        if start + pull(middle) > middle {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}
