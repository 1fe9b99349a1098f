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

use super::bounds::Lines;
use super::rough::Rough;
use super::transform::Transform;
use crate::arithmetic::{Ball, Complex, Float, Magnitude};
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
        let goal = -bits * std::f64::consts::LN_2;
        let end = rough.half_end(tilt, goal - 8.0);
        let mut list = Vec::new();
        let (mut a, mut width) = (START, rough.unit());
        while a < end {
            let b = (a + width).min(end);
            let ellipses = [1.3, 1.6, 2.0, 2.5, 3.2, 4.5, 6.0, 9.0, 14.0, 25.0, 50.0];
            let error =
                |r: f64| rough.log_panel(a, b, tilt, most, r) - (DEGREE + 1) as f64 * r.ln();
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

/// The grid of a half-line at one tilt.
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
            let (up, _) = step.logarithms(x);
            let exponent = c * up - (x.squared() * step.inverse_square()).scaled(-1);
            let weight = *weight * half * density * exponent.exponential();
            weights.push(Complex::new(weight, Ball::ZERO));
            losses.push(Complex::new(up, Ball::ZERO));
        }
        error = error.plus(panel_error(step, tilt, most, panel));
    }
    let last = panels.0.last().map_or(START, |panel| panel.b);
    let line = Lines::new(step, tilt, 0.0, 0.0);
    let beyond = line.between(last, line.far(), 0.0, floor).plus(line.beyond(0.0));
    Transform::from_points(weights, losses, error.plus(beyond))
}

/// 4.1 M r^(-n-1) / (1 - 1/r) times half the length, M over the rectangle around the ellipse.
fn panel_error<const N: usize>(step: &Step<N>, tilt: f64, most: f64, panel: &Panel) -> Magnitude {
    let r = panel.ellipse;
    let (middle, half) = (0.5 * (panel.a + panel.b), 0.5 * (panel.b - panel.a));
    // Outwards: a little more than the semi-axes.
    let (wide, high) =
        (half * 0.5 * (r + 1.0 / r) * 1.000_001, half * 0.5 * (r - 1.0 / r) * 1.000_001);
    let theta = high / (step.scale * step.scale) * 1.000_001;
    if theta >= 1.5 {
        return Magnitude::INFINITE;
    }
    let lines = Lines::new(step, tilt, theta, most);
    let size = lines.cell(middle - wide, middle + wide).exponential().above();
    let size = size.times(lines.off_axis(lines.theta).above()).times(lines.density_factor());
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
    // Up at 1/2, in intervals that grow by half.
    let level = lines.cell(START, START).exponential().above().times(lines.density_factor());
    let raised = lines.off_axis(lines.theta).above();
    let mut up = Magnitude::ZERO;
    let mut from = 0.0;
    let mut to = theta * 1e-9;
    while from < theta {
        let turn = Ball::<N>::from_f64(from).cosine_sine();
        let (log, _) = step.complex_logarithms(Ball::from_f64(START), turn);
        let least = log.im.lower().maximum(Ball::ZERO);
        let length = (Ball::from_f64(to) - Ball::from_f64(from)).over(step.inverse_square());
        up = up.plus((length * (-(height * least)).exponential()).above());
        (from, to) = (to, (1.5 * to).min(theta));
    }
    across.plus(up.times(level).times(raised))
}

impl Rough {
    /// A length over which little happens.
    pub(super) fn unit(&self) -> f64 {
        self.scale().min(self.scale() * self.scale())
    }

    /// From where on the integrand of a half-line is below e^goal.
    fn half_end(&self, tilt: f64, goal: f64) -> f64 {
        let mut x = START + self.scale();
        while x < 1e6 && self.log_at(x, tilt) > goal {
            x += self.scale();
        }
        x
    }

    /// ln of the modulus over the rectangle around a panel's ellipse, times its length.
    fn log_panel(&self, a: f64, b: f64, tilt: f64, most: f64, r: f64) -> f64 {
        let (middle, half) = (0.5 * (a + b), 0.5 * (b - a));
        let (wide, high) = (half * 0.5 * (r + 1.0 / r), half * 0.5 * (r - 1.0 / r));
        let theta = high / (self.scale() * self.scale());
        if theta >= 1.49 {
            return f64::INFINITY;
        }
        let raised = 0.5 * (high / self.scale()).powi(2);
        self.log_cell(middle - wide, middle + wide, tilt, theta, most) + raised + half.ln()
            - self.scale().ln()
            - (1.0 - 1.0 / r).ln()
    }

    /// ln J(c) in doubles.
    pub(super) fn log_half(&self, tilt: f64) -> f64 {
        let end = self.half_end(tilt, -60.0);
        let mut logs = Vec::new();
        let width = 2.0 * self.unit();
        let panels = ((end - START) / width).ceil().clamp(1.0, 4000.0);
        let width = (end - START) / panels;
        let nodes = rough_rule();
        for i in 0..panels as usize {
            let middle = START + (i as f64 + 0.5) * width;
            for (node, weight) in &nodes {
                logs.push(
                    self.log_at(middle + 0.5 * width * node, tilt) + (0.5 * width * weight).ln(),
                );
            }
        }
        let peak = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = logs.iter().map(|log| (log - peak).exp()).sum();
        peak + sum.ln() - (self.scale() * (2.0 * PI).sqrt()).ln()
    }

    /// ln of the bound on |J(c + iu)| and beyond, in doubles.
    pub(super) fn log_half_tail(&self, tilt: f64, u: f64, theta: f64) -> f64 {
        let (scale, square) = (self.scale(), self.scale() * self.scale());
        let raised = 0.5 * (theta * scale).powi(2);
        let end = self.half_end(tilt, -60.0);
        let step = (scale / 12.0).min(square / 6.0);
        let points = ((end - START) / step).ceil().clamp(1.0, 20_000.0);
        let step = (end - START) / points;
        let mut sum = 0.0;
        for i in 0..points as usize {
            let a = START + i as f64 * step;
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

fn rough_rule() -> Vec<(f64, f64)> {
    let n = DEGREE as f64;
    (0..=DEGREE)
        .map(|k| {
            let mut sum = 1.0;
            for j in 1..=DEGREE / 2 {
                let factor = if 2 * j == DEGREE { 1.0 } else { 2.0 };
                let turn = 2.0 * (j * k) as f64 * PI / n;
                sum -= factor * turn.cos() / (4 * j * j - 1) as f64;
            }
            let ends = if k == 0 || k == DEGREE { 1.0 } else { 2.0 };
            ((k as f64 * PI / n).cos(), ends * sum / n)
        })
        .collect()
}

/// A bound as a ball.
pub(super) fn ball<const N: usize>(bound: Magnitude) -> Ball<N> {
    Ball::exact(Float::from_magnitude(bound))
}
