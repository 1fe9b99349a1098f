//! The likelihood ratio of two Gaussian mixtures on the line with one common variance.
//!
//! P = sum_j a_j N(m_j, s^2) and Q = sum_j b_j N(n_j, s^2), written relative to the reference
//! N(0, s^2): `P/N(0)` = 1 + sum_j a_j expm1((2 m_j x - m_j^2) / (2 s^2)). The form with `expm1`
//! keeps the relative accuracy of log(P/Q) where the two hardly differ (tiny weights).
//!
//! Both mixtures have a rising ratio, m_j >= 0 >= n_j, but for one kind ([`MixtureRatio::turned`]), whose ratio falls
//! before it rises.

use crate::elementary::{atan2, cos, exp, exp_m1, hypot, ln, ln_1p, sin};

/// One component: its weight and its centre.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Component {
    pub weight: f64,
    pub centre: f64,
}

/// Two mixtures. Weights sum to one; components centred at zero are implied by the remainder.
#[derive(Clone, Debug, PartialEq)]
pub struct MixtureRatio {
    scale: f64,
    numerator: Vec<Component>,
    denominator: Vec<Component>,
    /// Weights at zero.
    rest: [f64; 2],
    /// Logarithm of the weight of P at zero, where it is known better than by the weight.
    log_rest: Option<f64>,
    /// Relative error of every weight.
    weight_error: f64,
    /// What the components that were left out weigh together.
    left_out: f64,
    reach: f64,
    /// The ratio rises from here on, and falls before.
    turn: f64,
}

/// log P/N(0) and log Q/N(0) at a complex point, as (log modulus, argument) each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ComplexLogs {
    pub(crate) numerator: (f64, f64),
    pub(crate) denominator: (f64, f64),
}

/// log P/N(0) and log Q/N(0) at a point, and the posterior mean centres of P and of Q.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogsAndMeans {
    pub(crate) numerator: f64,
    pub(crate) denominator: f64,
    pub(crate) means: (f64, f64),
}

impl MixtureRatio {
    /// `numerator` and `denominator` list the components away from zero.
    ///
    /// # Panics
    /// If a weight is outside (0, 1], a centre has the wrong sign, or the scale is not positive:
    /// callers check their input first.
    pub fn new(scale: f64, numerator: Vec<Component>, denominator: Vec<Component>) -> Self {
        assert!(scale > 0.0 && scale.is_finite(), "scale {scale} is not positive");
        assert!(numerator.iter().all(|c| c.weight > 0.0 && c.weight <= 1.0 && c.centre > 0.0));
        assert!(denominator.iter().all(|c| c.weight > 0.0 && c.weight <= 1.0 && c.centre < 0.0));
        let reach =
            numerator.iter().chain(&denominator).map(|c| c.centre.abs()).fold(0.0, f64::max);
        let rest = [&numerator, &denominator]
            .map(|list| (1.0 - list.iter().map(|c| c.weight).sum::<f64>()).max(0.0));
        Self {
            scale,
            numerator,
            denominator,
            rest,
            log_rest: None,
            weight_error: 0.0,
            left_out: 0.0,
            reach,
            turn: f64::NEG_INFINITY,
        }
    }

    /// (1-q) N(0, 1) + q N(2m, 1) against (1-q) N(0, 1) + q N(m, 1). With u = exp(m (x - m/2)) and a = e^(-m^2) the
    /// ratio is (1 - q + q a u^2)/(1 - q + q u): it falls from 1 and rises without end.
    ///
    /// # Panics
    /// If the rate is outside (0, 1), or the shift outside (0, [`FARTHEST_TURNED`]].
    pub fn turned(rate: f64, shift: f64) -> Self {
        assert!(rate > 0.0 && rate < 1.0 && shift > 0.0 && shift <= FARTHEST_TURNED);
        let step = |centre: f64| vec![Component { weight: rate, centre }];
        let mut pair = Self::new(1.0, step(2.0 * shift), Vec::new());
        pair.denominator = step(shift);
        pair.rest[1] = pair.rest[0];
        // The slope's sign is that of q a u^2 + 2 (1-q) a u - (1-q), which rises with u.
        let (rest, a) = (1.0 - rate, exp(-shift * shift));
        let root = (rest * a * rest * a + rate * a * rest).sqrt();
        pair.turn = ln(rest / (rest * a + root)) / shift + 0.5 * shift;
        pair
    }

    /// Where the ratio turns; minus infinity if it rises everywhere.
    pub fn turn(&self) -> f64 {
        self.turn
    }

    /// Where the ratio of [`MixtureRatio::turned`] has the logarithm `level`, before and after it turns.
    pub(crate) fn crossings(&self, level: f64) -> (f64, f64) {
        let (rate, shift) = (self.denominator[0].weight, self.denominator[0].centre);
        if level <= self.infimum() {
            return (self.turn, self.turn);
        }
        // q a u^2 - w q u + (1-q) (1-w) = 0, w = e^level.
        let (a, w) = (exp(-shift * shift), exp(level));
        let last = -exp_m1(level) * self.rest[0] / rate;
        let root = (w * w - 4.0 * a * last).max(0.0).sqrt();
        let place = |u: f64| ln(u) / shift + 0.5 * shift;
        let before = if last > 0.0 { place(2.0 * last / (w + root)) } else { f64::NEG_INFINITY };
        (before.min(self.turn), place((w + root) / (2.0 * a)).max(self.turn))
    }

    /// With the weight at zero given, for P and for Q where that has other components: a small one
    /// is known better than as what the others leave.
    #[must_use]
    pub fn with_rest(mut self, rest: f64) -> Self {
        self.rest[0] = rest;
        if !self.denominator.is_empty() {
            self.rest[1] = rest;
        }
        self
    }

    /// The same by its logarithm, which keeps the digits of a weight near 1.
    #[must_use]
    pub fn with_log_rest(self, log_rest: f64) -> Self {
        Self { log_rest: Some(log_rest), ..self.with_rest(exp(log_rest)) }
    }

    /// With a bound on the relative error of every weight, for weights that were computed.
    #[must_use]
    pub fn with_weight_error(mut self, relative: f64) -> Self {
        self.weight_error = relative;
        self
    }

    /// With a bound on what components of P or of Q that are not listed weigh together.
    #[must_use]
    pub fn with_left_out(mut self, mass: f64) -> Self {
        self.left_out = mass;
        self
    }

    /// A bound on the mass of P and of Q that is not listed: both are that much short of 1.
    pub fn left_out(&self) -> f64 {
        self.left_out
    }

    /// A bound on the relative error of every weight.
    pub fn weight_error(&self) -> f64 {
        self.weight_error
    }

    /// The subsampled Gaussian: (1-q) N(0, s^2) + q N(1, s^2) against N(0, s^2).
    pub fn subsampled(scale: f64, rate: f64) -> Self {
        Self::new(scale, vec![Component { weight: rate, centre: 1.0 }], Vec::new())
    }

    /// Standard deviation of every component.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// The largest distance of a centre from zero.
    pub fn reach(&self) -> f64 {
        self.reach
    }

    /// Components of P away from zero.
    pub fn numerator(&self) -> &[Component] {
        &self.numerator
    }

    /// Components of Q away from zero.
    pub fn denominator(&self) -> &[Component] {
        &self.denominator
    }

    /// Components of P or of Q, with the one at zero.
    pub fn with_zero(&self, of_p: bool) -> impl Iterator<Item = Component> {
        let (listed, rest) =
            if of_p { (&self.numerator, self.rest[0]) } else { (&self.denominator, self.rest[1]) };
        listed.iter().copied().chain([Component { weight: rest, centre: 0.0 }])
    }

    /// Whether Q is the reference N(0, s^2) itself.
    pub fn one_sided(&self) -> bool {
        self.denominator.is_empty()
    }

    /// log P/N(0) at x.
    pub(crate) fn log_numerator(&self, x: f64) -> f64 {
        log_relative(&self.numerator, self.rest[0], x, self.scale)
    }

    /// log Q/N(0) at x.
    pub(crate) fn log_denominator(&self, x: f64) -> f64 {
        log_relative(&self.denominator, self.rest[1], x, self.scale)
    }

    /// log P/N(0) at x and a bound on its error in units of `f64::EPSILON`.
    pub(crate) fn log_numerator_with_slip(&self, x: f64) -> (f64, f64) {
        let value = self.log_numerator(x);
        (value, slip(&self.numerator, self.weight_error, x, self.scale, value))
    }

    /// The same for log Q/N(0).
    pub(crate) fn log_denominator_with_slip(&self, x: f64) -> (f64, f64) {
        let value = self.log_denominator(x);
        (value, slip(&self.denominator, self.weight_error, x, self.scale, value))
    }

    /// log P/Q at x, increasing in x from the turn on.
    pub fn log_ratio(&self, x: f64) -> f64 {
        self.log_numerator(x) - self.log_denominator(x)
    }

    /// inf over x of log P/Q.
    pub fn infimum(&self) -> f64 {
        if self.turn.is_finite() {
            return self.log_ratio(self.turn);
        }
        // As x -> -inf the most negative centres dominate.
        if !self.denominator.is_empty() {
            return f64::NEG_INFINITY;
        }
        match self.numerator.as_slice() {
            [one] => ln_1p(-one.weight),
            _ => self.log_rest.unwrap_or_else(|| ln(self.rest[0])),
        }
    }

    /// x with log P/Q = level, to the last bit; infinite if the level is never reached. The larger of two.
    pub fn inverse(&self, level: f64) -> f64 {
        if self.turn.is_finite() {
            return self.crossings(level).1;
        }
        if level <= self.infimum() {
            return f64::NEG_INFINITY;
        }
        let (mut low, mut high) = (-self.scale, self.scale);
        while self.log_ratio(low) >= level && low > -1e200 {
            low *= 2.0;
        }
        while self.log_ratio(high) <= level && high < 1e200 {
            high *= 2.0;
        }
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                break;
            }
            if self.log_ratio(middle) < level {
                low = middle;
            } else {
                high = middle;
            }
        }
        0.5 * (low + high)
    }

    /// Posterior mean centre of P minus that of Q at x (the slope of log P/Q is this over s^2),
    /// and the slope of that difference.
    pub(crate) fn posterior_shift(&self, x: f64) -> (f64, f64) {
        let (p, p_slope) = posterior_mean(&self.numerator, self.rest[0], x, self.scale);
        let (q, q_slope) = posterior_mean(&self.denominator, self.rest[1], x, self.scale);
        (p - q, p_slope - q_slope)
    }

    /// Mean and variance of |centre|/reach under the posteriors of P and of Q at x, where log P/N(0) and log Q/N(0)
    /// are known.
    pub(crate) fn centres(&self, x: f64, logs: [f64; 2]) -> [(f64, f64); 2] {
        let of = |components: &[Component], log: f64| {
            let (mut mean, mut square) = (0.0, 0.0);
            for c in components {
                let place = c.centre.abs() / self.reach;
                let share = place * c.weight * exp(exponent(c, x, self.scale) - log);
                mean += share;
                square += place * share;
            }
            let mean = f64::min(mean, 1.0);
            (mean, (square - mean * mean).max(0.0))
        };
        [of(&self.numerator, logs[0]), of(&self.denominator, logs[1])]
    }

    /// Posterior mean centres of P and of Q at x.
    pub(crate) fn posterior_means(&self, x: f64) -> (f64, f64) {
        (
            posterior_mean(&self.numerator, self.rest[0], x, self.scale).0,
            posterior_mean(&self.denominator, self.rest[1], x, self.scale).0,
        )
    }

    /// log P/N(0) and log Q/N(0) at x, and the posterior mean centres of both.
    pub(crate) fn logs_and_means(&self, x: f64) -> LogsAndMeans {
        let of = |components: &[Component], rest: f64| {
            if components.is_empty() {
                return (0.0, 0.0);
            }
            let log = log_relative(components, rest, x, self.scale);
            let share = |c: &Component| c.centre * c.weight * exp(exponent(c, x, self.scale) - log);
            (log, components.iter().map(share).sum())
        };
        let (numerator, mean_p) = of(&self.numerator, self.rest[0]);
        let (denominator, mean_q) = of(&self.denominator, self.rest[1]);
        LogsAndMeans { numerator, denominator, means: (mean_p, mean_q) }
    }

    /// Posterior variances of the centres of P and of Q at x.
    pub(crate) fn posterior_variances(&self, x: f64) -> (f64, f64) {
        let scale2 = self.scale * self.scale;
        (
            scale2 * posterior_mean(&self.numerator, self.rest[0], x, self.scale).1,
            scale2 * posterior_mean(&self.denominator, self.rest[1], x, self.scale).1,
        )
    }

    /// Logarithms at x + iy relative to N(0) at the same complex point. Needs
    /// |y| reach / s^2 < pi, so that no argument wraps.
    pub(crate) fn complex_logs(&self, x: f64, y: f64) -> ComplexLogs {
        ComplexLogs {
            numerator: complex_log_relative(&self.numerator, self.rest[0], x, y, self.scale),
            denominator: complex_log_relative(&self.denominator, self.rest[1], x, y, self.scale),
        }
    }
}

/// The largest shift of [`MixtureRatio::turned`]: e^(-m^2) is far from underflow.
pub const FARTHEST_TURNED: f64 = 20.0;

/// Exponent of a component relative to the reference.
fn exponent(component: &Component, x: f64, scale: f64) -> f64 {
    component.centre * (2.0 * x - component.centre) / (2.0 * scale * scale)
}

fn log_relative(components: &[Component], rest: f64, x: f64, scale: f64) -> f64 {
    if let [one] = components {
        let e = exponent(one, x, scale);
        if one.weight == 1.0 {
            return e;
        }
        if e >= 30.0 {
            return e + ln(one.weight) + ln_1p(rest / one.weight * exp(-e));
        }
        let change = one.weight * exp_m1(e);
        return if change > NEARLY_NOTHING {
            ln_1p(change)
        } else {
            ln(rest + one.weight * exp(e))
        };
    }
    let top = components.iter().map(|c| exponent(c, x, scale)).fold(f64::NEG_INFINITY, f64::max);
    let sum = |top: f64| -> f64 {
        components.iter().map(|c| c.weight * exp(exponent(c, x, scale) - top)).sum()
    };
    if top >= 30.0 {
        return top + ln(sum(top) + rest * exp(-top));
    }
    let change: f64 = components.iter().map(|c| c.weight * exp_m1(exponent(c, x, scale))).sum();
    if change > NEARLY_NOTHING { ln_1p(change) } else { ln(rest + sum(0.0)) }
}

/// A bound on the error of `log_relative`, in units of `f64::EPSILON`. An exponent
/// m (2x - m)/(2 s^2) has five roundings of the size of m (2 |x| + m)/(2 s^2); that weighs
/// with the component's share of the mixture. Weights and functions are a part of what each component
/// changes, w |e^E - 1|. The logarithm itself is rounded; away from 1 it is one of a sum.
fn slip(components: &[Component], weight_error: f64, x: f64, scale: f64, value: f64) -> f64 {
    if components.is_empty() {
        return 0.0;
    }
    let each = 2.0 + 0.5 * components.len() as f64 + weight_error / f64::EPSILON;
    let mut sum = 0.0;
    for c in components {
        let e = exponent(c, x, scale);
        let size = c.centre.abs() * (2.0 * x.abs() + c.centre.abs()) / (2.0 * scale * scale);
        let share = c.weight * exp(e - value);
        // Where little is left the mixture is added up, and not what it differs from 1 by.
        let changed = if value < -0.5 {
            share
        } else {
            e.abs().min(1.0) * if e > 0.0 { share } else { c.weight * exp(-value) }
        };
        sum += 3.0 * share * size + each * changed;
    }
    let far = if value.abs() > 0.5 { 2.0 + each } else { 0.0 };
    sum + value.abs() + far
}

/// A change from 1 beyond which the difference from 0 has more digits.
const NEARLY_NOTHING: f64 = -0.5;

/// Posterior mean of the centre and its derivative, the posterior variance over s^2.
fn posterior_mean(components: &[Component], rest: f64, x: f64, scale: f64) -> (f64, f64) {
    if components.is_empty() {
        return (0.0, 0.0);
    }
    let log_total = log_relative(components, rest, x, scale);
    let (mut mean, mut square) = (0.0, 0.0);
    for c in components {
        let share = c.centre * c.weight * exp(exponent(c, x, scale) - log_total);
        mean += share;
        square += c.centre * share;
    }
    (mean, (square - mean * mean) / (scale * scale))
}

fn complex_log_relative(
    components: &[Component],
    rest: f64,
    x: f64,
    y: f64,
    scale: f64,
) -> (f64, f64) {
    if components.is_empty() {
        return (0.0, 0.0);
    }
    if let [one] = components
        && one.weight == 1.0
    {
        return (exponent(one, x, scale), one.centre * y / (scale * scale));
    }
    let top = components.iter().map(|c| exponent(c, x, scale)).fold(0.0, f64::max);
    let base = exp(-top);
    let (mut re, mut im) = (0.0, 0.0);
    // Relative to the reference: sum_j a_j (e^{E_j} e^{i theta_j} - 1) + 1, scaled by e^{-top}.
    for c in components {
        let e = exponent(c, x, scale);
        let theta = c.centre * y / (scale * scale);
        let size = c.weight * exp(e - top);
        let half = sin(0.5 * theta);
        re += if e < 30.0 && top == 0.0 { c.weight * exp_m1(e) } else { size - c.weight * base };
        re -= 2.0 * size * half * half;
        im += size * sin(theta);
    }
    // re now holds (real part - base); the modulus through ln_1p keeps small differences.
    if top == 0.0 && re > NEARLY_NOTHING {
        let modulus = 0.5 * ln_1p(re * (2.0 + re) + im * im);
        return (modulus, atan2(im, 1.0 + re));
    }
    let real = if top > 0.0 && re > NEARLY_NOTHING * base {
        base + re
    } else {
        let turned = |c: &Component| {
            let size = c.weight * exp(exponent(c, x, scale) - top);
            size * cos(c.centre * y / (scale * scale))
        };
        rest * base + components.iter().map(turned).sum::<f64>()
    };
    let square = real * real + im * im;
    let log = if square > 1e-280 { 0.5 * ln(square) } else { ln(hypot(real, im)) };
    (top + log, atan2(im, real))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_matches_direct_densities() {
        let pair = MixtureRatio::new(
            0.7,
            vec![Component { weight: 0.3, centre: 1.0 }, Component { weight: 0.1, centre: 2.0 }],
            vec![Component { weight: 0.2, centre: -1.0 }],
        );
        let normal = |x: f64, m: f64| (-(x - m) * (x - m) / (2.0 * 0.49)).exp();
        for x in [-3.0, -0.4, 0.0, 0.9, 2.5] {
            let p = 0.6 * normal(x, 0.0) + 0.3 * normal(x, 1.0) + 0.1 * normal(x, 2.0);
            let q = 0.8 * normal(x, 0.0) + 0.2 * normal(x, -1.0);
            assert!((pair.log_ratio(x) - (p / q).ln()).abs() < 1e-13);
            let h = 1e-5;
            let slope = (pair.log_ratio(x + h) - pair.log_ratio(x - h)) / (2.0 * h);
            assert!((pair.posterior_shift(x).0 / 0.49 - slope).abs() < 1e-8);
        }
    }

    #[test]
    fn complex_logs_agree_on_the_real_axis_and_are_conjugate() {
        let pair = MixtureRatio::subsampled(0.4, 1e-3);
        for x in [-2.0, 0.5, 1.0, 6.0, 20.0] {
            let real = pair.complex_logs(x, 0.0);
            assert!((real.numerator.0 - pair.log_numerator(x)).abs() <= 1e-13 * (1.0 + x.abs()));
            let up = pair.complex_logs(x, 0.1);
            let down = pair.complex_logs(x, -0.1);
            assert!((up.numerator.1 + down.numerator.1).abs() < 1e-15);
            assert!(up.numerator.0 <= real.numerator.0 + 1e-13 * (1.0 + x.abs()));
        }
    }

    #[test]
    fn what_is_left_at_zero_keeps_its_digits() {
        // (1 - q)^2 at the far left, for q within 1e-9 of 1; and one component.
        let q = 1.0 - 1e-9;
        let left = 1.0 - q;
        let two = vec![
            Component { weight: 2.0 * q * left, centre: 1.0 },
            Component { weight: q * q, centre: 2.0 },
        ];
        let pair = MixtureRatio::new(0.3, two, Vec::new()).with_rest(left * left);
        let expected = 2.0 * left.ln();
        for found in
            [pair.log_ratio(-9.0), pair.infimum(), pair.complex_logs(-9.0, 0.05).numerator.0]
        {
            assert!((found / expected - 1.0).abs() < 1e-14, "{found} {expected}");
        }
        let one = MixtureRatio::subsampled(0.3, q);
        assert!((one.log_ratio(-9.0) / left.ln() - 1.0).abs() < 1e-14);
        assert!((one.complex_logs(-9.0, 0.05).numerator.0 / left.ln() - 1.0).abs() < 1e-14);
    }

    #[test]
    fn light_components_do_not_underflow_in_squares() {
        let parts = vec![
            Component { weight: 1e-3, centre: 1.0 },
            Component { weight: 1e-250, centre: 30.0 },
        ];
        let pair = MixtureRatio::new(1.0, parts, Vec::new());
        for x in [5.0, 15.5, 20.0, 40.0] {
            let (real, off) = (pair.log_numerator(x), pair.complex_logs(x, 1e-3).numerator.0);
            assert!((real - off).abs() < 0.01 && off <= real + 1e-12, "{x}: {real} {off}");
        }
    }

    #[test]
    fn far_in_the_tail_the_logarithm_does_not_overflow() {
        let pair = MixtureRatio::subsampled(0.2, 1e-7);
        let x = 1e4;
        let expected = (2.0 * x - 1.0) / 0.08 + 1e-7f64.ln();
        assert!((pair.log_ratio(x) / expected - 1.0).abs() < 1e-14);
        assert!((pair.infimum() + 1e-7).abs() < 1e-13);
    }
}
