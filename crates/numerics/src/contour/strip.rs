//! How large the integrand of A(c + iu) gets on the edges of a strip around the real axis: the
//! constant in the error of the trapezoid rule, bounded from values at some points.
//!
//! **The contour.** With nodes at multiples of h, the sum over the nodes between two points half-way
//! between nodes, less the integral between them, is an integral along the box of half-height d upon
//! these two points, divided by e^{2 pi y/h} - 1 on the long sides and by e^{2 pi y/h} + 1 on the
//! short ones (residues at the nodes). So what lies beyond the ends counts with its size on the
//! axis only, however it grows off it: the ends are put where nothing is left on the axis.
//!
//! **The long sides.** L = log |f(x + id)| has -L'' <= K with a K that is known for each cell. There
//! L lies at most K w^2/8 above its chord, w the width of the cell, and the integral of e^chord is at
//! most its trapezoid: the integral of |f| is at most the sum of e^{L + K w^2/8} over the points.
//!   For one component at distance m from the constant part, r their ratio and theta = m d/s^2,
//! -L'' = 1/s^2 - (m/s^2)^2 (c Re V + u Im V), V = r e^{i theta}/(1 + r e^{i theta})^2, and Im V > 0
//! where r < 1; |V| rises up to r = 1 and falls beyond. For several, V is at most their posterior
//! variance on the axis times 1/cos(theta/2) + 1/cos^2(theta/2), since all lie in a cone of angle
//! theta, and that variance changes by at most e^{m x/s^2} over a distance x.
//!
//! **The short sides.** arg P <= y m/s^2 times r/(1 + r) where r <= 1 (it is concave in y), and times
//! 1 anyhow; so the exponent is at most a convex function of y, largest at one of its ends: on the
//! axis, where it is nothing (or a factor of 3 for each edge of a mask), or at y = d.

use super::grid::Grid;
use super::tail::log_shares;
use crate::elementary::{cos, exp, hypot, ln, ln_1p, powi, sin};
use crate::mixture::{Component, MixtureRatio};
use std::f64::consts::{LN_2, PI};

/// Bounds at one tilt, for an error of e^-target relative to A(c).
pub(crate) struct Strip<'a> {
    pair: &'a MixtureRatio,
    c: f64,
    target: f64,
    /// Distance of the points.
    step: f64,
    points: Vec<Point>,
    /// The first and the last of them that count on the axis.
    first: usize,
    last: usize,
    /// -(log mask)'' is at most this.
    mask_bend: f64,
}

struct Point {
    x: f64,
    /// Tilted density times the step, divided by A(c).
    log_share: f64,
    log_p: f64,
    log_q: f64,
}

/// Smooth masks that multiply the integrand.
pub(crate) trait Mask {
    /// log of the mask on the axis.
    fn log(&self, x: f64) -> f64;
    /// Bound on the logarithm of its growth from x to x + iy, at any point within `near` of x.
    fn growth(&self, x: f64, y: f64, near: f64) -> f64;
    /// Bound on minus the second derivative of its logarithm.
    fn bend(&self) -> f64;
    /// Bound on the outward derivative of its logarithm at x, which gets no larger farther out.
    fn falls(&self, x: f64, direction: f64) -> f64;
    /// Whether the mask is cut off at the left end of the grid, and at the right end.
    fn cut(&self) -> (bool, bool);
}

/// No mask.
pub(crate) struct Unmasked;

impl Mask for Unmasked {
    fn log(&self, _: f64) -> f64 {
        0.0
    }

    fn growth(&self, _: f64, _: f64, _: f64) -> f64 {
        0.0
    }

    fn bend(&self) -> f64 {
        0.0
    }

    fn falls(&self, _: f64, _: f64) -> f64 {
        0.0
    }

    fn cut(&self) -> (bool, bool) {
        (false, false)
    }
}

/// What is left out on the axis: each point, and all on one side together, below the target.
const EACH: f64 = 6.0;
const TOGETHER: f64 = 3.0;
/// Points that are looked at beyond either end of the grid.
const MOST_OUTSIDE: usize = 20_000;

/// The error of the rule, in units of e^-target (1 + |s| + A(c)), with the step that `step` gives:
/// 2 e^-.1 for the long sides, 4 e^-2.1 for the short ones at y = d and at most 80 e^-6 for them on
/// the axis (three times that for each edge of a mask), 6 e^-3 for sum and integral beyond the ends.
/// A(c) is the sum over the grid that the strip is made from.
pub(crate) const SIDES: f64 = 3.0;

impl<'a> Strip<'a> {
    /// `grid` is fine enough for the tilt c on the axis. None if no ends are found.
    pub(crate) fn new(
        pair: &'a MixtureRatio,
        grid: &Grid,
        c: f64,
        target: f64,
        mask: &impl Mask,
    ) -> Option<Self> {
        let scale2 = pair.scale() * pair.scale();
        let step = grid.x[1] - grid.x[0];
        let (shares, total) = log_shares(grid, c);
        if !total.is_finite() {
            return None;
        }
        // On the axis the short sides count with their length.
        let widest = widest(pair, target);
        let light = -target - EACH - ln(0.05 * widest / step).max(0.0);
        let unit = ln(step / (pair.scale() * (2.0 * PI).sqrt())) - total;
        let point = |x: f64| {
            let (log_p, log_q) = (pair.log_numerator(x), pair.log_denominator(x));
            let log_share = unit + log_q - 0.5 * x * x / scale2 + c * (log_p - log_q) + mask.log(x);
            Point { x, log_share, log_p, log_q }
        };
        // Where the tilted density falls outwards, and goes on doing so: the posterior centre of P
        // lies in [0, reach] and rises with x, that of Q is its mirror image.
        let reach = pair.reach();
        let other = if pair.one_sided() { 0.0 } else { 1.0 };
        let falls = |x: f64, direction: f64| {
            let (p, q) = pair.posterior_means(x);
            let (near, same, against, outermost) = if direction > 0.0 {
                (q, c, 1.0 - c, reach)
            } else {
                (p, 1.0 - c, c, other * reach)
            };
            let pull = outermost * same.max(0.0) + near.abs() * (-against).max(0.0);
            pull - direction * x + scale2 * mask.falls(x, direction) < 0.0
        };
        let single = matches!((pair.numerator(), pair.denominator()), ([_], []));
        // W <= 2 max(1, jump): whether both parts are nothing from here on to the right.
        let mode = c.max(0.0) * reach;
        let jump = point(mode).log_share + c.max(0.0) * LN_2;
        let over = |x: f64| {
            let bulk = unit - 0.5 * x * x / scale2 + c.max(0.0) * LN_2;
            single && c >= 0.0 && x > 0.0 && bulk.max(jump) < light
        };
        let end = |from: f64, direction: f64| -> Option<Vec<Point>> {
            let mut out = Vec::new();
            for index in 1..=MOST_OUTSIDE {
                let next = point(from + direction * step * index as f64);
                let ends = falls(next.x, direction) || direction > 0.0 && over(next.x);
                let done = ends && next.log_share < light - TOGETHER;
                out.push(next);
                if done {
                    return Some(out);
                }
            }
            None
        };
        // Negative tilts grow without end to the left, where Q^{1-c} does.
        let (cut_left, cut_right) = mask.cut();
        let cut_left = cut_left && c < 0.0 && !pair.one_sided();
        let mut points = if cut_left { Vec::new() } else { end(grid.x[0], -1.0)? };
        points.reverse();
        points.extend(grid.x.iter().zip(&shares).enumerate().map(|(j, (&x, &log_share))| {
            let log_q = pair.log_denominator(x);
            Point { x, log_share, log_p: grid.log_ratio[j] + log_q, log_q }
        }));
        if !cut_right {
            points.extend(end(grid.x[grid.len() - 1], 1.0)?);
        }
        let count_light = |points: &mut dyn Iterator<Item = &Point>| {
            let mut sum = 0.0;
            points
                .take_while(|point| {
                    sum += exp(point.log_share + target + TOGETHER);
                    point.log_share < light && sum < 1.0
                })
                .count()
        };
        let outer = count_light(&mut points.iter());
        let rest = count_light(&mut points.iter().rev());
        let last = points.len() - 1 - rest;
        // No more points than the widest strip asks for, and no fewer where there may be more.
        let spare = spare(widest, target, step);
        points.truncate(last + spare + 1);
        while points.len() <= last + spare && !cut_right {
            points.push(point(points[points.len() - 1].x + step));
        }
        let missing = if cut_left { 0 } else { spare.saturating_sub(outer) };
        let start = points[0].x;
        let mut kept: Vec<Point> =
            (1..=missing).rev().map(|n| point(start - step * n as f64)).collect();
        kept.extend(points.drain(outer.saturating_sub(spare)..));
        let first = missing + outer.min(spare);
        let last = first + last - outer;
        Some(Self { pair, c, target, step, points: kept, first, last, mask_bend: mask.bend() })
    }

    /// The largest step of a trapezoid rule that this strip of half-height d allows, for
    /// frequencies up to `frequency`.
    pub(crate) fn step(&self, d: f64, frequency: f64, mask: &impl Mask) -> f64 {
        // The three terms W^s, 1 and s W; of the last two the modulus is at most that of the
        // Gaussian, which grows by e^{d^2/(2 s^2)}.
        let scale = self.pair.scale();
        let size = self.log_size(d, frequency, mask).max(d * d / (2.0 * scale * scale));
        2.0 * PI * d / (self.target + size + 0.1)
    }

    /// log of the integral of the modulus on an edge, divided by A(c), or of what the short sides
    /// ask for if that is more.
    pub(crate) fn log_size(&self, d: f64, frequency: f64, mask: &impl Mask) -> f64 {
        let pair = self.pair;
        let scale2 = pair.scale() * pair.scale();
        let gaussian = d * d / (2.0 * scale2);
        let theta = d * pair.reach() / scale2;
        // The ends lie half-way between nodes, beyond the points that count by one step of theirs
        // and less than one step of the rule.
        let spare = spare(d, self.target, self.step);
        if self.first < spare || self.last + spare >= self.points.len() {
            return f64::INFINITY;
        }
        let (first, last) = (self.first - spare, self.last + spare);
        let cell = self.step * self.step / 8.0;
        let logs: Vec<f64> = self.points[first..=last]
            .iter()
            .map(|point| {
                let off = pair.complex_logs(point.x, d);
                point.log_share
                    + gaussian
                    + self.c * (off.numerator.0 - point.log_p)
                    + (1.0 - self.c) * (off.denominator.0 - point.log_q)
                    + frequency * (off.numerator.1 - off.denominator.1)
                    + mask.growth(point.x, d, self.step)
                    + self.bend(point.x, theta, frequency) * cell
            })
            .collect();
        let long = log_sum(&logs);
        let short = [first..self.first, self.last + 1..last + 1]
            .into_iter()
            .map(|beyond| {
                let beyond = &self.points[beyond];
                let most = |f: &dyn Fn(&Point) -> f64| {
                    beyond.iter().map(f).fold(f64::NEG_INFINITY, f64::max)
                };
                let (low, high) = (beyond[0].x, beyond[beyond.len() - 1].x);
                most(&|point| point.log_share + self.bend(point.x, 0.0, 0.0) * cell)
                    + gaussian
                    + most(&|point| mask.growth(point.x, d, self.step))
                    + (self.side(true).off(high, theta, frequency))
                    + (self.side(false).off(low, theta, frequency))
            })
            .fold(f64::NEG_INFINITY, f64::max);
        long.max(short + ln(d / self.step).max(0.0) + 2.0)
    }

    /// A bound on minus the second derivative of log |f| within a step of x.
    fn bend(&self, x: f64, theta: f64, frequency: f64) -> f64 {
        let scale2 = self.pair.scale() * self.pair.scale();
        1.0 / scale2
            + self.mask_bend
            + self.side(true).bend(x, self.step, theta, frequency)
            + self.side(false).bend(x, self.step, theta, frequency)
    }

    /// P^s, or Q^{1-s}.
    fn side(&self, numerator: bool) -> Side<'_> {
        let (components, power) = if numerator {
            (self.pair.numerator(), self.c)
        } else {
            (self.pair.denominator(), 1.0 - self.c)
        };
        Side { pair: self.pair, components, power, numerator }
    }
}

/// One of the two factors of W^s Q, with the real part of its power.
struct Side<'a> {
    pair: &'a MixtureRatio,
    components: &'a [Component],
    power: f64,
    numerator: bool,
}

impl Side<'_> {
    /// log of the odds of a single component against the constant part, and how far it is.
    fn odds(&self, x: f64) -> Option<(f64, f64)> {
        let [one] = self.components else { return None };
        let scale2 = self.pair.scale() * self.pair.scale();
        let log = one.centre * (2.0 * x - one.centre) / (2.0 * scale2);
        Some((log + ln(one.weight / (1.0 - one.weight)), one.centre.abs()))
    }

    /// A bound on its part in minus the second derivative, within `near` of x.
    fn bend(&self, x: f64, near: f64, theta: f64, frequency: f64) -> f64 {
        let scale2 = self.pair.scale() * self.pair.scale();
        let slide = near * self.pair.reach() / scale2;
        let Some((log_odds, centre)) = self.odds(x) else {
            if self.components.is_empty() {
                return 0.0;
            }
            let (p, q) = self.pair.posterior_variances(x);
            let variance = if self.numerator { p } else { q }.max(0.0);
            let cone = 1.0 / cos(0.5 * theta);
            let turned = (cone + cone * cone) * exp(slide) / (scale2 * scale2);
            return turned * variance * hypot(self.power, frequency);
        };
        let size = if log_odds + slide > 0.0 {
            hypot(self.power, frequency)
        } else if self.power >= 0.0 && theta <= 0.5 * PI {
            return 0.0;
        } else {
            self.power.abs()
        };
        let ratio = exp(-(log_odds.abs() - slide).max(0.0));
        let turned = ratio / (1.0 + ratio * (2.0 * cos(theta) + ratio));
        size * turned * powi(centre / scale2, 2)
    }

    /// A bound on the logarithm of its growth from the axis up to any height below that of theta,
    /// for x or what lies farther from its centres; linear and convex terms in the height.
    fn off(&self, x: f64, theta: f64, frequency: f64) -> f64 {
        if self.components.is_empty() {
            return 0.0;
        }
        let odds = self.odds(x).map(|(log_odds, _)| log_odds);
        // |1 - w + w e^{i theta}|^2 = 1 - a (1 - cos theta), a = 2 w (1 - w), and the cone says what
        // a = 1/2 does. Minus its logarithm is convex where cos theta >= -a/(1 - a).
        let w = odds.map_or(0.5, |log_odds| 1.0 / (1.0 + exp(-log_odds)));
        let inner = w.min(0.5);
        let a = (2.0 * inner * (1.0 - inner)).max(-cos(theta) / (1.0 - cos(theta)));
        let sine = sin(0.5 * theta);
        let fallen = -0.5 * ln_1p(-2.0 * a * sine * sine);
        let turned = if odds.is_some() {
            if w <= 0.5 { w } else { 1.0 }
        } else {
            let (p, q) = self.pair.posterior_means(x);
            let mean = if self.numerator { p } else { -q } / self.pair.reach();
            (mean / cos(0.5 * theta)).min(1.0)
        };
        (-self.power).max(0.0) * fallen + frequency * turned * theta
    }
}

/// Points beyond the last that counts within which an end lies, for strips of half-height d.
fn spare(d: f64, target: f64, step: f64) -> usize {
    (2.0 * PI * d / (target * step)).ceil() as usize + 1
}

/// Heights worth trying, from the highest down: within the strip of analyticity, and before the
/// Gaussian's own growth takes over.
pub(crate) fn heights(pair: &MixtureRatio, target: f64) -> impl Iterator<Item = f64> {
    let widest = widest(pair, target);
    (0..12).map(move |index| widest * powi(0.6f64, index))
}

fn widest(pair: &MixtureRatio, target: f64) -> f64 {
    let strip = 0.9 * PI * pair.scale() * pair.scale() / pair.reach();
    strip.min(1.5 * pair.scale() * (2.0 * target).sqrt())
}

fn log_sum(logs: &[f64]) -> f64 {
    if logs.iter().any(|log| log.is_nan()) {
        // No bound.
        return f64::INFINITY;
    }
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !top.is_finite() {
        return top;
    }
    top + ln(logs.iter().map(|log| exp(log - top)).sum::<f64>())
}
