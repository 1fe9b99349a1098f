//! Half-lines: J(s) = integral over x >= 1/2 of N(x; 0, s^2) A(x)^s, A = 1 - q + q e^((2x-1)/2s^2), the laws of
//! batches of a fixed size when a record is replaced.
//!
//! **Quadrature.** Clenshaw-Curtis panels of n + 1 points. If f is analytic and at most M in the ellipse with foci
//! -1, 1 and semi-axes (r + 1/r)/2, (r - 1/r)/2, its Chebyshev coefficients are at most 2 M r^-k. The rule is exact up
//! to degree n, its weights are positive with sum 2, and the integral of T_k is at most 2/(k^2-1) in modulus. So the
//! error is at most sum over k > n of 2 M r^-k (2 + 2/(k^2-1)) <= 4.1 M r^(-n-1) / (1 - 1/r), n >= 8.
//!
//! **Nodes left out.** The path goes up from 1/2 to 1/2 + iy and on to the right. On both |A^(c+iu)| has the factor
//! e^(-u arg A), arg A >= 0 rising with y and with x.
//!
//! **The same for J(s) + J(1-s)** where many steps need a bound close to M(c). The path of J(1-s) goes down from 1/2 to 1/2 - iy, where
//! N and A have the conjugates of their values above. With B = A(1/2 + iy') = 1 - q + q e^(i theta'), theta' = y'/s^2, x = ln |B| <= 0,
//! beta = arg B in [0, theta'], the two vertical parts together are
//!
//! ```text
//! i * integral over y' of n B^s - conj(n) conj(B)^(1-s),   n = N(1/2 + iy'), arg n = -theta'/2,
//! ```
//!
//! whose two terms have the moduli |n| e^(-u beta) times e^(cx) and e^((1-c)x), and angles that differ by 2 u x + beta - theta'. So the
//! integrand is at most |n| e^((|c|+1)|x|) (e^(-u beta) (|2c-1| |x| + theta') + 2 |x| u e^(-u beta)): of first order in
//! theta', and the integral of second order, as are the gain and the cost of moving the path. u e^(-u beta) is at most 1/(e beta),
//! and falls where u beta >= 1. The horizontal parts are integrals of analytic functions as in [`super::transform`], by the panels above.

use super::bounds::Lines;
use super::rough::{Rough, Shape};
use super::transform::Transform;
use crate::arithmetic::{Ball, Complex, Float, Magnitude};
use crate::obstacle::spend;
use crate::pairs::Step;
use std::f64::consts::PI;

/// n.
const DEGREE: usize = 32;
/// Where half-lines begin, with shifts of 1.
pub(super) const START: f64 = 0.5;
const MOST_PANELS: usize = 20_000;

/// [a, b] and the r of its ellipse.
struct Panel {
    a: f64,
    b: f64,
    ellipse: f64,
}

/// Panels from 1/2 on, chosen in doubles.
pub(super) struct Panels(Vec<Panel>);

impl Panels {
    pub(super) fn points(&self) -> f64 {
        (self.0.len() * (DEGREE + 1)) as f64
    }

    /// Panels with an error of about 2^-bits of 1 for |u| <= `most`.
    pub(super) fn new(rough: &Rough, tilt: f64, most: f64, bits: f64) -> Option<Self> {
        Self::turned(rough, START, tilt, (most, 0.0), bits)
    }

    /// The same for the whole line of a step that is cut off on both sides.
    pub(super) fn clipped(rough: &Rough, tilt: f64, most: f64, bits: f64) -> Option<Self> {
        Self::turned(rough, -rough.reach(), tilt, (most, 0.0), bits)
    }

    /// The same from `start` on, on the line at the angle `shift`.
    fn turned(
        rough: &Rough,
        start: f64,
        tilt: f64,
        (most, shift): (f64, f64),
        bits: f64,
    ) -> Option<Self> {
        let mut goal = -bits * std::f64::consts::LN_2;
        let half = start > -rough.reach();
        if rough.reach().is_finite() {
            // Relative to what the integral is, where that is large.
            let size = if half { rough.log_half(tilt) } else { rough.log_moment(tilt) };
            goal += size.max(0.0);
        }
        let end = if half { rough.half_end(tilt, goal - 8.0) } else { rough.reach() };
        let mut list = Vec::new();
        let (mut a, mut width) = (start, rough.unit());
        while a < end {
            let b = (a + width).min(end);
            let ellipses = [1.3, 1.6, 2.0, 2.5, 3.2, 4.5, 6.0, 9.0, 14.0, 25.0, 50.0];
            let error = |r: f64| {
                rough.log_panel(a, b, tilt, (most, shift), r) - (DEGREE + 1) as f64 * r.ln()
            };
            spend(1e-3).ok()?;
            let best = ellipses
                .into_iter()
                .map(|r| (r, error(r)))
                .fold((0.0, f64::INFINITY), |best, one| if one.1 < best.1 { one } else { best });
            if best.1 < goal - 6.0 {
                list.push(Panel { a, b, ellipse: best.0 });
                a = b;
                width *= 1.4;
            } else {
                width *= 0.5;
                if width < 1e-9 * rough.unit() {
                    return None;
                }
            }
            if list.len() > MOST_PANELS {
                return None;
            }
        }
        Some(Self(list))
    }
}

/// Points and weights of the rule on [-1, 1].
fn rule<const N: usize>() -> Vec<(Ball<N>, Ball<N>)> {
    let n = DEGREE;
    let unit = Ball::pi().over_u64(n as u64);
    let cosines: Vec<Ball<N>> =
        (0..2 * n as u64).map(|k| unit.times_u64(k).cosine_sine().0).collect();
    (0..=n)
        .map(|k| {
            let mut sum = Ball::one();
            for j in 1..=n / 2 {
                let factor = if 2 * j == n { 1 } else { 2 };
                let term = cosines[(2 * j * k) % (2 * n)];
                sum = sum - term.times_u64(factor).over_u64((4 * j * j - 1) as u64);
            }
            let ends = if k == 0 || k == n { 1 } else { 2 };
            (cosines[k], sum.times_u64(ends).over_u64(n as u64))
        })
        .collect()
}

/// The grid of a half-line at one tilt, or of a step that is cut off on both sides.
pub(super) fn transform<const N: usize>(
    step: &Step<N>,
    tilt: f64,
    most: f64,
    panels: &Panels,
    floor: f64,
) -> Transform<N> {
    let rule = rule::<N>();
    let (c, density) = (Ball::from_f64(tilt), Transform::density(step));
    let (mut weights, mut losses) = (Vec::new(), Vec::new());
    let mut error = Magnitude::ZERO;
    for panel in &panels.0 {
        let (a, b) = (Ball::<N>::from_f64(panel.a), Ball::from_f64(panel.b));
        let (middle, half) = ((a + b).scaled(-1), (b - a).scaled(-1));
        for (node, weight) in &rule {
            let x = middle + half * *node;
            let (up, down) = step.logarithms(x);
            let exponent = c * up + (Ball::one() - c) * down
                - (x.squared() * step.inverse_square()).scaled(-1);
            let mut weight = *weight * half * density * exponent.exponential();
            if !step.mask.is_whole() {
                weight = weight * step.mask_at(x, (Ball::one(), Ball::ZERO)).re;
            }
            weights.push(Complex::new(weight, Ball::ZERO));
            losses.push(Complex::new(up - down, Ball::ZERO));
        }
        error = error.plus(panel_error(step, tilt, (most, 0.0), panel));
    }
    let last = panels.0.last().map_or(START, |panel| panel.b);
    let beyond = Lines::new(step, tilt, 0.0, 0.0).right_of(last, floor);
    Transform::from_points(weights, losses, error.plus(beyond))
}

/// 4.1 M r^(-n-1) / (1 - 1/r) times half the length, M over the rectangle around the ellipse.
fn panel_error<const N: usize>(
    step: &Step<N>,
    tilt: f64,
    (most, shift): (f64, f64),
    panel: &Panel,
) -> Magnitude {
    let r = panel.ellipse;
    let (middle, half) = (0.5 * (panel.a + panel.b), 0.5 * (panel.b - panel.a));
    // Outwards: a little more than the semi-axes.
    let (wide, high) =
        (half * 0.5 * (r + 1.0 / r) * 1.000_001, half * 0.5 * (r - 1.0 / r) * 1.000_001);
    let theta = high * step.records as f64 / (step.scale * step.scale) * 1.000_001;
    if theta + shift >= 1.5 {
        return Magnitude::INFINITE;
    }
    let lines = Lines::new(step, tilt, theta + shift, most);
    if lines.is_too_wide() {
        return Magnitude::INFINITE;
    }
    let size = lines.cell(middle - wide, middle + wide).exponential().above();
    let raised = lines.off_axis(Ball::from_f64(theta)).above();
    let size = size.times(raised).times(lines.density_factor());
    let ratio = Ball::<N>::from_f64(r).reciprocal();
    let series = ratio.power(DEGREE as u64 + 1).over(Ball::one() - ratio).above();
    size.times(series).times(Magnitude::from_f64(4.1 * half * 1.000_001))
}

/// At least |J(c + iu)| for this u and every larger one.
pub(super) fn tail<const N: usize>(
    step: &Step<N>,
    tilt: f64,
    u: f64,
    theta: f64,
    floor: f64,
) -> Magnitude {
    let lines = Lines::new(step, tilt, theta, 0.0);
    let height = Ball::from_f64(u);
    let across = lines.turned(START, height, floor);
    across.plus(lines.edge(START, height)).plus(lines.edge(step.reach, height))
}

/// At least |M(c + iu)| of a step that is cut off on both sides, for this u and every larger one.
pub(super) fn clipped_tail<const N: usize>(
    step: &Step<N>,
    tilt: f64,
    u: f64,
    theta: f64,
    floor: f64,
) -> Magnitude {
    Lines::new(step, tilt, theta, 0.0).clipped(Ball::from_f64(u), floor)
}

/// At least the integral of |N A^(c+iu)| along the line at angle theta, for this u and every larger one.
fn across<const N: usize>(
    step: &Step<N>,
    rough: &Rough,
    tilt: f64,
    u: f64,
    theta: f64,
    bits: f64,
) -> Option<Ball<N>> {
    let panels = Panels::turned(rough, START, tilt, (0.0, theta), bits)?;
    let rule = rule::<N>();
    let turn = Ball::from_f64(theta).cosine_sine();
    let (c, u) = (Ball::from_f64(tilt), Ball::from_f64(u));
    let (mut sum, mut error) = (Ball::ZERO, Magnitude::ZERO);
    for panel in &panels.0 {
        let (a, b) = (Ball::<N>::from_f64(panel.a), Ball::from_f64(panel.b));
        let (middle, half) = ((a + b).scaled(-1), (b - a).scaled(-1));
        for (node, weight) in &rule {
            let x = middle + half * *node;
            let (up, _) = step.complex_logarithms(x, turn);
            let exponent = c * up.re - u * up.im - (x.squared() * step.inverse_square()).scaled(-1);
            sum = sum + *weight * half * exponent.exponential();
        }
        error = error.plus(panel_error(step, tilt, (0.0, theta), panel));
    }
    let last = panels.0.last().map_or(START, |panel| panel.b);
    let line = Lines::new(step, tilt, theta, 0.0);
    let floor = -(bits + 8.0) * std::f64::consts::LN_2;
    let sum = (sum * Transform::density(step)).widened(error.plus(line.right_of(last, floor)));
    Some(sum * line.off_axis(line.theta) + ball(line.edge(step.reach, u)))
}

/// At least |J(s) + J(1-s)| for s = c + iu, this u and every larger one.
pub(super) fn joined<const N: usize>(
    step: &Step<N>,
    rough: &Rough,
    tilt: f64,
    u: f64,
    theta: f64,
    bits: f64,
) -> Option<Ball<N>> {
    let one = across(step, rough, tilt, u, theta, bits)?;
    let two = across(step, rough, 1.0 - tilt, u, theta, bits)?;
    let lines = Lines::new(step, 0.0, theta, 0.0);
    let level = lines.cell(START, START).exponential() * Transform::density(step);
    let height = Ball::<N>::from_f64(u);
    let tilts = Ball::from_f64(tilt.abs()) + Ball::one();
    let apart = Ball::from_f64((2.0 * tilt - 1.0).abs().next_up());
    let mut sum = Ball::ZERO;
    let (mut from, mut to) = (0.0, theta * 1e-9);
    while from < theta {
        let log = |at: f64| {
            let turn = Ball::<N>::from_f64(at).cosine_sine();
            step.complex_logarithms(Ball::from_f64(START), turn).0
        };
        let least = log(from).im.lower().maximum(Ball::ZERO);
        let size = -log(to).re;
        let size = size.upper().maximum(Ball::ZERO);
        let fall = (-(height * least)).exponential();
        let plain = fall.scaled(1);
        let product = height * least;
        let rise = if Ball::one().is_at_most(&product) {
            Some(height * fall)
        } else if least.is_positive() {
            Some((Ball::one().exponential() * least).reciprocal())
        } else {
            None
        };
        let height_of = match rise {
            Some(rise) => {
                plain.minimum(fall * (apart * size + Ball::from_f64(to)) + (size * rise).scaled(1))
            }
            None => plain,
        };
        let length = (Ball::from_f64(to) - Ball::from_f64(from)).over(step.inverse_square());
        sum = sum + length * (tilts * size).exponential() * height_of;
        (from, to) = (to, (1.25 * to).min(theta));
    }
    Some((one + two + sum * level * lines.off_axis(lines.theta)).upper())
}

/// Places and weights of Gauss's rule with eight points on [-1, 1], for choosing.
const GAUSS: [(f64, f64); 4] = [
    (0.183_434_642_495_649_8, 0.362_683_783_378_362),
    (0.525_532_409_916_329, 0.313_706_645_877_887_3),
    (0.796_666_477_413_626_7, 0.222_381_034_453_374_48),
    (0.960_289_856_497_536_3, 0.101_228_536_290_376_26),
];

impl Rough {
    /// The integral of e^(c ln|A| - u arg A - x^2/2s^2) from 1/2 on, along the line at angle theta, in doubles.
    fn across(&self, shape: &Shape, tilt: f64, u: f64, theta: f64) -> Option<f64> {
        let length = shape.to - shape.from;
        let panels = (length / (1.5 * self.unit())).ceil().clamp(1.0, 4000.0);
        spend(1e-3 * panels).ok()?;
        let half = 0.5 * length / panels;
        let value = |x: f64| {
            let (log, angle) = self.turned(x, theta);
            (tilt * log - u * angle - 0.5 * (x / self.scale()).powi(2)).exp()
        };
        let mut sum = 0.0;
        for i in 0..panels as usize {
            let middle = shape.from + (2.0 * i as f64 + 1.0) * half;
            for (place, weight) in GAUSS {
                sum +=
                    weight * half * (value(middle - place * half) + value(middle + place * half));
            }
        }
        Some((sum + self.edge(self.reach(), tilt, u, theta)) / (self.scale() * (2.0 * PI).sqrt()))
    }

    /// The bound of [`joined`] in doubles.
    fn joined(&self, shapes: &[Shape; 2], tilt: f64, u: f64, theta: f64) -> f64 {
        let one = self.across(&shapes[0], tilt, u, theta);
        let both = one.zip(self.across(&shapes[1], 1.0 - tilt, u, theta));
        let Some((one, two)) = both else { return f64::INFINITY };
        let (mut sum, mut from, mut to) = (0.0, 0.0, theta * 1e-9);
        while from < theta {
            let (beta, size) = (self.turned(START, from).1, (-self.turned(START, to).0).max(0.0));
            let fall = (-u * beta).exp();
            let rise =
                if u * beta >= 1.0 { u * fall } else { 1.0 / (beta.max(1e-300) * 1f64.exp()) };
            let first = fall * ((2.0 * tilt - 1.0).abs() * size + to) + 2.0 * size * rise;
            sum += (to - from) * ((tilt.abs() + 1.0) * size).exp() * first.min(2.0 * fall);
            (from, to) = (to, (1.25 * to).min(theta));
        }
        let level =
            (-0.5 * (START / self.scale()).powi(2)).exp() * self.scale() / (2.0 * PI).sqrt();
        (one + two + level * sum) * (0.5 * (theta * self.scale()).powi(2)).exp()
    }

    /// Where both halves of [`Rough::joined`] come from.
    pub(super) fn halves(&self, tilt: f64) -> Option<[Shape; 2]> {
        let shape = |tilt: f64| self.shape_from(START, tilt, (0.0, 0.0), 45.0);
        Some([shape(tilt)?, shape(1.0 - tilt)?])
    }

    /// The angle that makes [`Rough::joined`] about least, and that bound.
    pub(super) fn best_joined(&self, shapes: &[Shape; 2], tilt: f64, u: f64) -> (f64, f64) {
        let value = |log: f64| self.joined(shapes, tilt, u, log.exp());
        let (low, high) = (1e-6f64.ln(), 1.2f64.ln());
        let mut best = (low, value(low));
        for i in 1..=9 {
            let at = low + (high - low) * f64::from(i) / 9.0;
            let here = value(at);
            if here < best.1 {
                best = (at, here);
            }
        }
        let mut step = (high - low) / 18.0;
        for _ in 0..4 {
            for at in [best.0 - step, best.0 + step] {
                let here = value(at.min(high));
                if here < best.1 {
                    best = (at.min(high), here);
                }
            }
            step *= 0.5;
        }
        (best.0.exp(), best.1)
    }

    /// A length over which little happens.
    pub(super) fn unit(&self) -> f64 {
        self.scale().min(self.scale() * self.scale())
    }

    /// From where on the integrand of a half-line is below e^goal.
    fn half_end(&self, tilt: f64, goal: f64) -> f64 {
        // The tilt may pull a part of the mass far out, beyond a valley: look for it with growing strides.
        let far = START + 2.0 * tilt.abs() + 2.0 + self.scale() * ((-2.0 * goal).sqrt() + 4.0);
        let (mut x, mut end) = (START + self.scale(), START + self.scale());
        while x < far {
            x += self.scale().max(0.02 * x);
            if self.log_at(x, tilt) > goal {
                end = x + self.scale().max(0.02 * x);
            }
        }
        end.min(self.reach())
    }

    /// ln of the modulus over the rectangle around a panel's ellipse, times its length.
    fn log_panel(&self, a: f64, b: f64, tilt: f64, (most, shift): (f64, f64), r: f64) -> f64 {
        let (middle, half) = (0.5 * (a + b), 0.5 * (b - a));
        let (wide, high) = (half * 0.5 * (r + 1.0 / r), half * 0.5 * (r - 1.0 / r));
        let theta = high * self.records() / (self.scale() * self.scale());
        if theta + shift >= 1.49 || !self.mask().allows(theta + shift) {
            return f64::INFINITY;
        }
        let raised = 0.5 * (high / self.scale()).powi(2);
        self.log_cell(middle - wide, middle + wide, tilt, theta + shift, most) + raised + half.ln()
            - self.scale().ln()
            - (1.0 - 1.0 / r).ln()
    }

    /// ln J(c) in doubles.
    pub(super) fn log_half(&self, tilt: f64) -> f64 {
        if self.mask().is_whole()
            && let Some(shape) = self.shape_from(START, tilt, (0.0, 0.0), 45.0)
            && let Some(found) = self.across(&shape, tilt, 0.0, 0.0)
            && found > 0.0
            && found.is_finite()
        {
            return found.ln();
        }
        self.shape_from(START, tilt, (0.0, 0.0), 45.0)
            .map_or(f64::INFINITY, |shape| shape.log_integral)
    }

    /// ln of the bound on |J(c + iu)| and beyond, in doubles.
    pub(super) fn log_half_tail(&self, tilt: f64, u: f64, theta: f64) -> f64 {
        let (scale, square) = (self.scale(), self.scale() * self.scale());
        let raised = 0.5 * (theta * scale).powi(2);
        let Some(shape) = self.shape_from(START, tilt, (0.0, 0.0), 60.0) else {
            return f64::INFINITY;
        };
        let (start, end) = (shape.from, shape.to);
        let step = (scale / 12.0).min(square / 6.0);
        let points = ((end - start) / step).ceil().clamp(1.0, 20_000.0);
        let step = (end - start) / points;
        if spend(1e-4 * points).is_err() {
            return f64::INFINITY;
        }
        let mut sum = 0.0;
        for i in 0..points as usize {
            let a = start + i as f64 * step;
            let log = self.log_cell(a, a + step, tilt, theta, 0.0) - u * self.angle(a, theta);
            sum += step * log.exp();
        }
        let level = self.log_cell(START, START, tilt, theta, 0.0).exp();
        let (mut from, mut to) = (0.0, theta * 1e-9);
        while from < theta {
            sum += level * (to - from) * square * (-u * self.angle(START, from)).exp();
            (from, to) = (to, (1.5 * to).min(theta));
        }
        sum.ln() + raised - (scale * (2.0 * PI).sqrt()).ln()
    }
}

/// A bound as a ball.
pub(super) fn ball<const N: usize>(bound: Magnitude) -> Ball<N> {
    Ball::exact(Float::from_magnitude(bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_halves_together_are_below_their_bound() {
        // The last number: how much of the truth's fall the bound has, at least.
        for (noise, q, tilt, part) in
            [(0.89, 2.7e-4, 0.6, 0.4), (0.4, 0.03, 1.7, 0.0), (5.0, 0.2, -0.8, 0.0)]
        {
            let rate = Ball::<3>::from_f64(q);
            let weights = [Ball::one() - rate, rate];
            let step = Step::new(Ball::from_f64(noise), &weights, false, 1);
            let rough = Rough::new(&step);
            let shapes = rough.halves(tilt).unwrap();
            let at = |u: f64| {
                let half = |tilt: f64| {
                    let panels = Panels::new(&rough, tilt, u, 70.0).unwrap();
                    transform(&step, tilt, u, &panels, -90.0).nodes(u, 1, 70.0)
                };
                let (one, two) = (half(tilt), half(1.0 - tilt));
                let whole = (one[0] + two[0]).re;
                (whole, (one[1] + two[1].conjugate()).square_modulus().root())
            };
            for u in [0.3, 3.0, 40.0, 900.0] {
                let (whole, truth) = at(u);
                for theta in [rough.best_joined(&shapes, tilt, u).0, 1e-4, 0.01, 0.3, 1.1] {
                    let bound = joined(&step, &rough, tilt, u, theta, 60.0).unwrap();
                    assert!(truth.is_at_most(&bound), "{noise} {q} {tilt} {u} {theta}");
                }
                let theta = rough.best_joined(&shapes, tilt, u).0;
                let bound = joined(&step, &rough, tilt, u, theta, 60.0).unwrap();
                let (gain, most) = ((whole - bound).to_f64(), (whole - truth).to_f64());
                assert!(gain >= part * most, "{noise} {q} {tilt} {u}: {gain:e} of {most:e}");
            }
        }
    }
}
