//! A bound on |A(c + iu)| / A(c) for **all** u beyond a height, by moving the path of integration.
//!
//! A(c + iu) = integral of N(0)(x) P^{c+iu} Q^{1-c-iu} dx (P, Q relative to N(0)) may be taken along x + i y(x)
//! for any smooth y >= 0 inside the strip of analyticity. There |integrand dz| = g(x) e^{E(x)} dx, g the integrand
//! on the axis for u = 0, and
//!   E = y^2/(2 s^2) + log sqrt(1 + y'^2) + c log|P(z)/P(x)| + (1-c) log|Q(z)/Q(x)| - u (arg P - arg Q).
//!
//! **What a point saves.** Let m be the reach, a = m^2/s^2, y = theta s^2/m, theta = theta_0 rho(x) < pi, with rho = 1 or
//! rho = R/sides. J in [0, 1] is |centre|/m under the posterior at x, of P and of Q; r and V are its mean and variance, R = r_P + r_Q.
//! P(z)/P(x) = E e^{i theta J}, Q(z)/Q(x) = E e^{-i theta J}. Then
//! - |arg| >= sigma r theta: sigma = sin(theta)/theta, as |arg| >= Im >= E sin(theta J) >= r sin theta. Up to pi/2,
//!   sigma = sinc(theta)/sinc(r theta), as E cos(theta J) <= cos(r theta) and tan(v sigma) cos v <= sigma sin v. For one component:
//!   sigma = 1 where r >= 1/2, and 1 - (1-r) theta^2/6 where theta <= 2.
//! - 1 - |E e^{i theta J}|^2 is at least 2 V (1 - cos theta) and at most theta^2 V.
//! - |y'| <= theta_0 rho k, k = max V/R <= 1.
//!
//! So -E >= R rho B, B = u theta_0 sigma - cost, and both factors of R rho change slowly: with x in units of s^2/m, logit r,
//! log V, log R and log rho have derivatives of at most 1. B is made from the ends of these ranges over a cell.
//!
//! **Sums that are bounds.** -(log g)'' <= K, known at each cell. Over a cell of width h about its point
//! - Jensen: the mean of F = g (1 - e^{-B R rho}) is at least F(point) e^{-K' h^2/24} where B >= 0, K' = K + 2.9 (m/s^2)^2, since
//!   -(log(1 - e^{-B R rho}))'' <= 2.9 in those units. What is saved on the whole line is taken from 1.
//! - Where B < 0 the path costs at most e^cost - 1 on the mass of the cell, and log g lies at most K h^2/8 above its chords.
//! - Where nearly all is saved, the integral of g e^{-B R rho} is bounded from above instead, by chords as well.
//!
//! Beyond the last points the path goes on if B >= 0 there for all x, and else returns to the axis along a vertical side.
//! For a fixed path B grows with u: what is shown at one height holds for every greater one.

use super::grid::Grid;
use super::strip::Mask;
use crate::elementary::{exp, exp_m1, ln, ln_1p, sin};
use crate::mixture::MixtureRatio;
use std::f64::consts::PI;

/// A fixed path: log of |A(c+iu)| / A(c) is at most `log_ratio(u)`, which falls as u grows.
pub(crate) struct Path {
    cells: Vec<Cell>,
    ends: [End; 2],
}

/// What a path does with the cell around one point.
struct Cell {
    /// log of a lower bound on what F's integral is to 1 - e^{-B R rho}, and of an upper bound on the point's share.
    log_low: f64,
    log_high: f64,
    /// R rho at the point, and B = u gain - cost.
    weight: f64,
    gain: f64,
    cost: f64,
    /// -E >= u least - most anyhow.
    least: f64,
    most: f64,
    /// K h^2/8, and what |B| adds to it.
    bend: f64,
    curve: f64,
}

/// What lies beyond the first or the last point.
struct End {
    /// B and R rho beyond it, at least.
    gain: f64,
    cost: f64,
    weight: f64,
    /// The vertical side, and the mass beyond it, as parts of A(c).
    side: f64,
    beyond: f64,
}

/// The tilted law of one step on a grid.
pub(crate) struct Law<'a> {
    pair: &'a MixtureRatio,
    points: Vec<Point>,
    step: f64,
    /// Half a step in units of s^2/m.
    half: f64,
    /// Powers of P and of Q.
    powers: [f64; 2],
    c: f64,
}

struct Point {
    x: f64,
    log_low: f64,
    log_high: f64,
    /// Means and variances of J for P and for Q.
    mean: [f64; 2],
    variance: [f64; 2],
    /// The error of these variances.
    slip: f64,
}

/// How high a path is at x.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shape {
    Constant,
    Posterior,
}

/// What is known over a stretch of x.
struct Ranges {
    mean: [(f64, f64); 2],
    variance: [(f64, f64); 2],
    /// R, rho and rho/R.
    total: (f64, f64),
    height: (f64, f64),
    ratio: (f64, f64),
    /// Least and largest part of P in R.
    part: (f64, f64),
    /// Bound on |rho'|/rho.
    steep: f64,
}

/// log of a share that has no say in the choice of a path.
const NOTHING: f64 = -40.0;
/// Room for the roundings of a bound, relative to its terms.
const ROUNDED: f64 = 1e-9;
/// theta_0 of the highest path.
pub(crate) const HIGHEST: f64 = 0.8 * PI;

impl<'a> Law<'a> {
    /// `excess` bounds |log| of the grid's sum over A(c), but for roundings.
    pub(crate) fn new(pair: &'a MixtureRatio, grid: &Grid, c: f64, excess: f64) -> Self {
        crate::patience::look();
        let (shares, total) = log_shares(grid, c);
        let moved = |j: usize| {
            let sizes = grid.log_weight[j].abs() + (c * grid.log_ratio[j]).abs() + total.abs();
            f64::EPSILON * (grid.weight_slip[j] + c.abs() * grid.ratio_slip[j] + sizes + 8.0)
        };
        // A share of a centre has an exponent of at most this size, which is rounded three times, and a logarithm of no larger
        // size is taken off; a variance is a square less a square, that is three shares.
        let largest =
            |x: f64| pair.reach() * (x.abs() + pair.reach()) / (pair.scale() * pair.scale());
        let sum_moved: f64 = shares.iter().enumerate().map(|(j, log)| exp(*log) * moved(j)).sum();
        let excess = excess + 2.0 * sum_moved + ROUNDED;
        let points = (shares.iter().enumerate())
            .map(|(j, &log_share)| {
                let x = grid.x[j];
                let log_q = pair.log_denominator(x);
                let [p, q] = pair.centres(x, [grid.log_ratio[j] + log_q, log_q]);
                let off = excess + moved(j);
                Point {
                    x,
                    log_low: log_share - off,
                    log_high: log_share + off,
                    mean: [p.0, q.0],
                    variance: [p.1, q.1],
                    slip: f64::EPSILON * (24.0 * (1.0 + largest(x)) + 3.0 * grid.ratio_slip[j]),
                }
            })
            .collect();
        let step = grid.x[1] - grid.x[0];
        let half = 0.5 * step * pair.reach() / (pair.scale() * pair.scale());
        Self { pair, points, step, half, powers: [c, 1.0 - c], c }
    }

    /// The better of the two shapes at height `u`. A quick choice is made by what second order says of them.
    pub(crate) fn best(&self, u: f64, mask: &impl Mask, quick: bool) -> Path {
        let inverse = 1.0 / self.size();
        let sides = self.sides();
        // Second-order gain and cost of either shape.
        let (mut gain0, mut cost0, mut gain1, mut cost1) = (0.0, 0.0, 0.0, 0.0);
        for point in &self.points {
            if point.log_low < NOTHING {
                continue;
            }
            let share = exp(point.log_low);
            let total = point.mean[0] + point.mean[1];
            let bent: f64 = self.powers.iter().zip(&point.variance).map(|(c, v)| c * v).sum();
            let stiff = (inverse - bent).max(0.5 * inverse);
            let steep = point.variance[0].max(point.variance[1]) / total.max(f64::MIN_POSITIVE);
            let height = total / sides;
            gain0 += share * total;
            cost0 += share * stiff;
            gain1 += share * total * height;
            cost1 += share * height * height * (stiff + steep * steep);
        }
        let highest = |gain: f64, cost: f64| (u * gain / cost.max(f64::MIN_POSITIVE)).min(HIGHEST);
        // The best paths lie lower than second order says.
        let (constant, bent) = (highest(0.85 * gain0, cost0), highest(0.75 * gain1, cost1));
        let capped = constant >= HIGHEST || bent >= HIGHEST;
        let (flat, following) =
            (gain0 * gain0 / cost0, gain1 * gain1 / cost1.max(f64::MIN_POSITIVE));
        let straight = || self.path(Shape::Constant, constant, mask);
        let curved = || self.path(Shape::Posterior, bent, mask);
        if !capped && flat > 1.2 * following || quick && flat > following {
            return straight();
        }
        if !capped && following > 1.2 * flat || quick {
            return curved();
        }
        let (straight, curved) = (straight(), curved());
        if straight.log_ratio(u) < curved.log_ratio(u) { straight } else { curved }
    }

    /// The path of a shape with the largest angle `theta`.
    pub(crate) fn path(&self, shape: Shape, theta: f64, mask: &impl Mask) -> Path {
        let last = self.points.len() - 1;
        let scale2 = self.pair.scale() * self.pair.scale();
        let bend = self.step * self.step / scale2;
        let mask_bend = self.step * self.step * mask.bend();
        let cells: Vec<Cell> = (self.points.iter())
            .map(|point| {
                let ranges = self.around(point, shape);
                let grown = self.grown(point.x, theta * ranges.height.1, mask, 0.5 * self.step);
                let (gain, cost, least, most) = self.coefficients(theta, &ranges, grown);
                let stiff: f64 = (self.powers.iter().zip(&ranges.variance))
                    .map(|(power, variance)| (-power).max(0.0) * variance.1)
                    .sum();
                let bend = bend * (1.0 + self.size() * stiff) + mask_bend;
                let weight = (point.mean[0] + point.mean[1]) * self.height(point, shape);
                Cell {
                    log_low: point.log_low - bend / 24.0 - 2.9 / 6.0 * self.half * self.half,
                    log_high: point.log_high,
                    weight,
                    gain,
                    cost,
                    least,
                    most,
                    bend: bend / 8.0,
                    curve: 2.0 * self.half * self.half * ranges.total.1 * ranges.height.1,
                }
            })
            .collect();
        let ends = [(1, -1.0), (last - 1, 1.0)]
            .map(|(index, direction)| (index, direction, cells[index].bend))
            .map(|place| self.end(place, shape, theta, mask));
        Path { cells, ends }
    }

    /// m^2/s^2
    fn size(&self) -> f64 {
        let reach = self.pair.reach() / self.pair.scale();
        reach * reach
    }

    fn sides(&self) -> f64 {
        if self.pair.one_sided() { 1.0 } else { 2.0 }
    }

    fn height(&self, point: &Point, shape: Shape) -> f64 {
        match shape {
            Shape::Constant => 1.0,
            Shape::Posterior => (point.mean[0] + point.mean[1]) / self.sides(),
        }
    }

    /// What a mask grows by within `near` of x, at an angle up to theta.
    fn grown(&self, x: f64, theta: f64, mask: &impl Mask, near: f64) -> f64 {
        let unit = self.pair.scale() * self.pair.scale() / self.pair.reach();
        mask.growth(x, theta * unit, near)
    }

    /// The ranges over the cell around a point.
    fn around(&self, point: &Point, shape: Shape) -> Ranges {
        let more = exp(self.half);
        let mean = point.mean.map(|r| (r / (r + (1.0 - r) * more), r / (r + (1.0 - r) / more)));
        let mut variance = [(0.0, 0.0); 2];
        for side in 0..2 {
            let v = point.variance[side];
            variance[side] = (
                (v - point.slip).max(0.0) / more,
                (v * more + point.slip).min(0.25).min(mean[side].1),
            );
        }
        let total = if self.pair.one_sided() {
            mean[0]
        } else {
            let total = point.mean[0] + point.mean[1];
            (total / more, total * more)
        };
        let odds = point.mean[0] / point.mean[1];
        let part = if self.pair.one_sided() {
            (1.0, 1.0)
        } else {
            let (low, high) = (odds / (more * more), odds * (more * more));
            (low / (1.0 + low), if high.is_finite() { high / (1.0 + high) } else { 1.0 })
        };
        self.ranges(mean, variance, total, part, shape)
    }

    fn ranges(
        &self,
        mean: [(f64, f64); 2],
        variance: [(f64, f64); 2],
        total: (f64, f64),
        part: (f64, f64),
        shape: Shape,
    ) -> Ranges {
        let sides = self.sides();
        let (height, ratio, steep) = match shape {
            Shape::Constant => ((1.0, 1.0), (1.0 / total.1, 1.0 / total.0), 0.0),
            Shape::Posterior => {
                let most = variance[0].1.max(variance[1].1) / total.0;
                let one = if sides == 1.0 { 1.0 - mean[0].0 } else { 1.0 };
                ((total.0 / sides, total.1 / sides), (1.0 / sides, 1.0 / sides), most.min(one))
            }
        };
        Ranges { mean, variance, total, height, ratio, part, steep }
    }

    /// B = u gain - cost, and -E >= u least - most.
    fn coefficients(&self, theta: f64, ranges: &Ranges, grown: f64) -> (f64, f64, f64, f64) {
        let (lowest, highest) = (theta * ranges.height.0, theta * ranges.height.1);
        let components = [self.pair.numerator(), self.pair.denominator()];
        let turned = sinc(highest);
        let mut sigma = [1.0; 2];
        for side in 0..2 {
            let least = ranges.mean[side].0;
            sigma[side] = match components[side] {
                [] => continue,
                [_] if least >= 0.5 => 1.0,
                [_] if highest <= 2.0 => 1.0 - (1.0 - least) * highest * highest / 6.0,
                [_] => turned,
                _ if highest <= 0.5 * PI => turned / sinc(least * lowest),
                _ => turned,
            };
        }
        let part = if sigma[0] >= sigma[1] { ranges.part.0 } else { ranges.part.1 };
        let sigma = sigma[1] + part * (sigma[0] - sigma[1]);
        let half = sinc(0.5 * highest);
        // Of both powers: what grows, what falls, and what grows by more than its variance tells.
        let (mut grows, mut falls, mut cone) = (0.0, 0.0, 0.0);
        for (side, of_side) in components.iter().enumerate() {
            let (least, most) = ranges.variance[side];
            let power = self.powers[side];
            if of_side.is_empty() {
                continue;
            }
            if power >= 0.0 {
                falls += 0.5 * power * least * half * half;
                continue;
            }
            let x = highest * highest * most;
            if x < 0.8 {
                // -log(1 - x) <= x + x^2/2 / (1 - x)
                grows += 0.5 * -power * most * (1.0 + 0.5 * x / (1.0 - x));
            } else {
                cone -= -power * ln(crate::elementary::cos(0.5 * highest));
            }
        }
        let square = theta * theta;
        let size = self.size();
        let rises = 0.5 / size + 0.5 * ranges.steep * ranges.steep + grows;
        let apart = cone + grown;
        let beside = if apart > 0.0 { apart / (ranges.total.0 * ranges.height.0) } else { 0.0 };
        let gain = theta * sigma;
        let cost = square * (ranges.ratio.1 * rises - ranges.ratio.0 * falls) + beside;
        let least = gain * ranges.total.0 * ranges.height.0;
        let most = highest * highest * rises + apart;
        (
            gain * (1.0 - ROUNDED),
            cost + ROUNDED * square * (rises + falls) * ranges.ratio.1,
            least,
            most,
        )
    }

    /// What lies beyond a point on one side.
    fn end(
        &self,
        (index, direction, bend): (usize, f64, f64),
        shape: Shape,
        theta: f64,
        mask: &impl Mask,
    ) -> End {
        let point = &self.points[index];
        let (pair, c) = (self.pair, self.c);
        let unit = pair.scale() * pair.scale() / pair.reach();
        let cut = if direction < 0.0 { mask.cut().0 } else { mask.cut().1 };
        let here = self.around(point, shape);
        let grown = self.grown(point.x, theta * here.height.1, mask, 0.0);
        let (.., most) = self.coefficients(theta, &here, grown);
        let side = theta * here.height.1 * unit / self.step * exp(point.log_high + most);
        // The mean of the side that lies there rises to 1 at most, the other's falls to 0.
        let towards = usize::from(direction < 0.0);
        let mut mean = [(0.0, 0.0); 2];
        mean[towards] = (here.mean[towards].0, 1.0);
        mean[1 - towards] = (0.0, here.mean[1 - towards].1);
        if pair.one_sided() {
            mean[1] = (0.0, 0.0);
        }
        let variance = mean.map(|(low, high)| (0.0, (high * (1.0 - low)).min(0.25)));
        let total = (mean[0].0 + mean[1].0, mean[0].1 + mean[1].1);
        // A total that goes to nothing does so with its variance.
        let mut far = self.ranges(mean, variance, total, (0.0, 1.0), shape);
        if !(far.steep <= 1.0) {
            far.steep = 1.0;
        }
        if pair.one_sided() {
            far.part = (1.0, 1.0);
        }
        let (gain, cost, ..) = self.coefficients(theta, &far, 0.0);
        let known = !cut && cost.is_finite() && mask.bend() == 0.0;
        let cost = if known { cost } else { f64::INFINITY };
        // The density falls outwards at least so fast: the posterior centre of P lies in [0, reach] and rises with x.
        let pull = if direction > 0.0 {
            c.max(0.0) + (c - 1.0).max(0.0) * point.mean[1]
        } else {
            (1.0 - c).max(0.0) * (self.sides() - 1.0) + (-c).max(0.0) * point.mean[0]
        };
        let slope = (direction * point.x - pull * pair.reach()) / (pair.scale() * pair.scale())
            - mask.falls(point.x, direction);
        let beyond = if slope > 0.0 {
            exp(point.log_high) / (self.step * slope)
        } else if cut {
            // One cell more, by its chord.
            let outer = if direction < 0.0 { index - 1 } else { index + 1 };
            exp(bend) * (exp(point.log_high) + exp(self.points[outer].log_high))
        } else {
            f64::INFINITY
        };
        End { gain, cost, weight: total.0 * far.height.0, side, beyond }
    }
}

impl Path {
    /// log of the bound on |A(c+iu)| / A(c), u >= 0.
    pub(crate) fn log_ratio(&self, u: f64) -> f64 {
        let last = self.cells.len() - 1;
        let (mut saved, mut lost) = (0.0, 0.0);
        for (j, cell) in self.cells.iter().enumerate().take(last).skip(1) {
            let b = cell.slope(u);
            if b < 0.0 {
                // log g lies below its chords, but for the bend.
                let [before, here, after] = [j - 1, j, j + 1].map(|k| exp(self.cells[k].log_high));
                let bend =
                    self.cells[j - 1..=j + 1].iter().map(|cell| cell.bend).fold(0.0, f64::max);
                let mass = 0.125 * (before + 6.0 * here + after) * exp(bend);
                lost += mass * exp_m1(cell.most - u * cell.least).max(0.0);
            } else if j > 1 && j + 1 < last {
                saved -= exp(cell.log_low) * exp_m1(-b * cell.weight);
            }
        }
        for end in &self.ends {
            lost += if end.slope(u) >= 0.0 { 0.0 } else { end.side };
        }
        let fallen = saved * (1.0 - ROUNDED) - lost * (1.0 + ROUNDED);
        let log = if fallen > 0.0 { ln_1p(-fallen) } else { 0.0 };
        if !(fallen > MOSTLY) {
            return log;
        }
        log.min(ln(self.left(u) * (1.0 + ROUNDED)))
    }

    /// The integral of the modulus, from above.
    fn left(&self, u: f64) -> f64 {
        let last = self.cells.len() - 1;
        let mut left = 0.0;
        for pair in self.cells[1..last].windows(2) {
            let b = pair[0].slope(u).min(pair[1].slope(u));
            let above = pair[0].bend.max(pair[1].bend) + b.abs() * pair[0].curve.max(pair[1].curve);
            let term = |cell: &Cell| exp(cell.log_high - b * cell.weight + above);
            left += 0.5 * (term(&pair[0]) + term(&pair[1]));
        }
        for end in &self.ends {
            let b = end.slope(u);
            left +=
                if b >= 0.0 { exp(-b * end.weight) * end.beyond } else { end.beyond + end.side };
        }
        left
    }
}

impl Cell {
    fn slope(&self, u: f64) -> f64 {
        let (gain, cost) = (u * self.gain, self.cost);
        gain - cost - ROUNDED * (gain + cost.abs())
    }
}

impl End {
    fn slope(&self, u: f64) -> f64 {
        u * self.gain - self.cost
    }
}

/// Where this much is saved, what is left is added up.
const MOSTLY: f64 = 0.5;

/// sin(x)/x
fn sinc(x: f64) -> f64 {
    if x < 1e-3 { 1.0 - x * x / 6.0 } else { sin(x) / x }
}

/// Logarithms of the tilted weights, normalised, and of what they were divided by.
pub(super) fn log_shares(grid: &Grid, c: f64) -> (Vec<f64>, f64) {
    let mut logs: Vec<f64> =
        grid.log_weight.iter().zip(&grid.log_ratio).map(|(lw, l)| lw + c * l).collect();
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total = top + ln(logs.iter().map(|log| exp(log - top)).sum::<f64>());
    logs.iter_mut().for_each(|log| *log -= total);
    (logs, total)
}

#[cfg(test)]
mod tests;
