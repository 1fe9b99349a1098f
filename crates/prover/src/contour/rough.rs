//! Doubles that choose where to look: tilts, spacings, ranges. Nothing here is trusted; a bad
//! choice makes a wide ball, not a wrong one.

use crate::obstacle::spend;
use crate::pairs::{RoughMask, Step, cell};

/// A step in doubles.
pub(super) struct Rough {
    log_coefficients: Vec<f64>,
    /// ln(a_(j+1)/a_j), which fall with j, and the ratios themselves where no product of them runs out.
    falls: Vec<f64>,
    ratios: Option<Vec<f64>>,
    scale: f64,
    substitute: bool,
    mask: RoughMask,
    place: f64,
    /// The width of cells by which integrals are bounded.
    cell: f64,
    /// Outcomes beyond this distance from 0 are left out.
    reach: f64,
}

/// Beside 1 a smaller term is nothing.
const NOTHING: f64 = 1e-17;

/// ln(e^a + e^b).
fn log_add(a: f64, b: f64) -> f64 {
    let (high, low) = if a > b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

/// The highest point of a function with one peak in [low, high], about.
fn summit(value: &dyn Fn(f64) -> f64, mut low: f64, mut high: f64) -> (f64, f64) {
    for _ in 0..24 {
        let third = (high - low) / 3.0;
        let (one, two) = (low + third, high - third);
        if value(one) < value(two) { low = one } else { high = two }
    }
    let middle = 0.5 * (low + high);
    (middle, value(middle))
}

/// Where a function falls to a level between a place above it and one below it.
fn edge(value: &dyn Fn(f64) -> f64, level: f64, mut above: f64, mut below: f64, step: f64) -> f64 {
    while (above - below).abs() > step {
        let middle = 0.5 * (above + below);
        if value(middle) < level { below = middle } else { above = middle }
    }
    below
}

/// What an integral over the real line looks like.
pub(super) struct Shape {
    pub(super) log_integral: f64,
    pub(super) from: f64,
    pub(super) to: f64,
}

impl Rough {
    pub(super) fn new<const N: usize>(step: &Step<N>) -> Self {
        let log_coefficients = step.log_coefficients();
        let falls: Vec<f64> = log_coefficients.windows(2).map(|two| two[1] - two[0]).collect();
        let mild = falls.iter().all(|fall| fall.abs() < 300.0);
        Self {
            log_coefficients,
            ratios: mild.then(|| falls.iter().map(|fall| fall.exp()).collect()),
            falls,
            scale: step.scale,
            substitute: step.substitute,
            mask: step.rough_mask(),
            place: step.mask_place(),
            cell: step.cell(3.0),
            reach: step.reach,
        }
    }

    pub(super) fn reach(&self) -> f64 {
        self.reach
    }

    pub(super) fn scale(&self) -> f64 {
        self.scale
    }

    /// ln of the integrand on the real axis, without 1/(s sqrt(2 pi)).
    pub(super) fn log_at(&self, x: f64, c: f64) -> f64 {
        self.log_integrand(x, c, 0.0, 0.0)
    }

    /// ln of a bound on the integrand's modulus over [a, b] and angles up to theta.
    pub(super) fn log_cell(&self, a: f64, b: f64, c: f64, theta: f64, u: f64) -> f64 {
        let (high, share) = self.up(b);
        let kept = 1.0 - (1.0 - theta.cos()) * share;
        let angle = |share: f64, kept: f64| theta.min(share * theta.sin() / kept);
        let mut size = if c >= 0.0 { c * high } else { c * (self.up(a).0 + kept.ln()) };
        size += u * angle(share, kept);
        if self.substitute {
            let (high, share) = self.up(-a);
            let kept = 1.0 - (1.0 - theta.cos()) * share;
            let log = if c <= 1.0 { high } else { self.up(-b).0 + kept.ln() };
            size += (1.0 - c) * log + u * angle(share, kept);
        }
        let nearest = if a > 0.0 {
            a
        } else if b < 0.0 {
            b
        } else {
            0.0
        };
        size - 0.5 * (nearest / self.scale).powi(2)
    }

    /// arg A where the largest angle is theta.
    pub(super) fn angle(&self, x: f64, theta: f64) -> f64 {
        let turn = theta / self.records();
        let (mut re, mut im) = (0.0, 0.0);
        self.terms(x, 0, |j, size| {
            let (sine, cosine) = (j as f64 * turn).sin_cos();
            re += size * cosine;
            im += size * sine;
        });
        im.atan2(re)
    }

    /// ln |A| and arg A of a step with one record at the angle theta.
    pub(super) fn turned(&self, x: f64, theta: f64) -> (f64, f64) {
        let (log, share) = self.up(x);
        // A = a_0 + a_1 e^(i theta) z: relative to A(x), the real part is 1 - (1 - cos) share.
        let half = (0.5 * theta).sin();
        let (less, im) = (2.0 * half * half * share, share * theta.sin());
        (log + 0.5 * (less * (less - 2.0) + im * im).ln_1p(), im.atan2(1.0 - less))
    }

    pub(super) fn mask(&self) -> &RoughMask {
        &self.mask
    }

    /// The part of the usual angles that a mask allows.
    pub(super) fn narrow(&self) -> f64 {
        let sharpness = self.mask.steepness().0.max(1.0);
        (0.98 * self.records() / sharpness).min(1.0)
    }

    /// As fine as an integral has to be cut, for choosing.
    fn step(&self) -> f64 {
        let fastest = self.records().max(2.0 * self.mask.steepness().0);
        (self.scale / 6.0).min(self.scale * self.scale / fastest)
    }

    pub(super) fn records(&self) -> f64 {
        (self.log_coefficients.len() - 1) as f64
    }

    /// Visits the terms a_j z^j of A from `first` on that count beside the largest, in units of it; ln of that one.
    fn terms(&self, x: f64, first: usize, mut visit: impl FnMut(usize, f64)) -> f64 {
        let slope = x / (self.scale * self.scale);
        let peak = first + self.falls[first..].partition_point(|fall| fall + slope > 0.0);
        let ratios = self.ratios.as_ref().filter(|_| slope.abs() < 400.0);
        let z = slope.exp();
        let ratio = |j: usize| match ratios {
            Some(ratios) => ratios[j] * z,
            None => (self.falls[j] + slope).exp(),
        };
        visit(peak, 1.0);
        let mut size = 1.0;
        for j in peak..self.falls.len() {
            size *= ratio(j);
            if !(size > NOTHING) {
                break;
            }
            visit(j + 1, size);
        }
        size = 1.0;
        for j in (first..peak).rev() {
            size /= ratio(j);
            if !(size > NOTHING) {
                break;
            }
            visit(j, size);
        }
        self.log_coefficients[peak] + peak as f64 * slope
    }

    /// Units of work for one look at A.
    fn look(&self) -> f64 {
        2e-5 * self.records().min(4.0)
    }

    /// ln A and the share of A that is not a_0.
    fn up(&self, x: f64) -> (f64, f64) {
        let mut sum = 0.0;
        let largest = self.terms(x, 1, |_, size| sum += size);
        let above = largest + sum.ln();
        let whole = log_add(above, self.log_coefficients[0]);
        (whole, (above - whole).exp())
    }

    /// ln |integrand| at x for tilt c, on a line where angles are at most `theta`, with e^(u angle).
    fn log_integrand(&self, x: f64, c: f64, theta: f64, u: f64) -> f64 {
        let lower = |share: f64| (-(1.0 - theta.cos()) * share).ln_1p();
        let angle =
            |share: f64| theta.min(share * theta.sin() / (1.0 - (1.0 - theta.cos()) * share));
        let part = |(log, share): (f64, f64), power: f64| {
            power * (log + if power < 0.0 { lower(share) } else { 0.0 }) + u * angle(share)
        };
        // A negative power is bounded by both ends of a cell.
        let off = |left: f64, right: f64, power: f64, at: f64| {
            if theta > 0.0 && power < 0.0 {
                (self.up(left).0, self.up(right).1)
            } else {
                self.up(at)
            }
        };
        let down =
            if self.substitute { part(off(-x - self.cell, -x, 1.0 - c, -x), 1.0 - c) } else { 0.0 };
        let mask = if self.mask.is_whole() {
            0.0
        } else {
            self.mask.log_at(x / (self.scale * self.scale), theta / self.records())
        };
        part(off(x, x + self.cell, c, x), c) + down + mask - 0.5 * (x / self.scale).powi(2)
    }

    /// The integral of the modulus, and where it comes from down to `depth` below its peak.
    pub(super) fn shape(&self, c: f64, theta: f64, u: f64, depth: f64) -> Option<Shape> {
        self.shape_from(f64::NEG_INFINITY, c, (theta, u), depth)
    }

    /// The same for what lies right of `start`.
    pub(super) fn shape_from(
        &self,
        start: f64,
        c: f64,
        (theta, u): (f64, f64),
        depth: f64,
    ) -> Option<Shape> {
        let k = self.records();
        let step = self.step();
        let core = self.scale * (2.0 * depth).sqrt() + 4.0 * self.scale;
        // Growth with u may pull it further, where angles are no longer small.
        let pulled = self.scale * (4.0 * u * theta).sqrt();
        let far = (c.abs() + (1.0 - c).abs()) * k + core + self.place + pulled;
        let value = |x: f64| self.log_integrand(x, c, theta, u);
        // The tilt may pull a part of the mass far out: look for it with growing strides.
        let mut places: Vec<f64> = (-16..=16).map(|i| core * f64::from(i) / 16.0).collect();
        let mut x = core;
        while x < far {
            x *= 1.04;
            places.extend([-x, x]);
        }
        let start = start.max(-self.reach);
        if start.is_finite() {
            places.retain(|x| *x > start);
            places.push(start);
        }
        if self.reach.is_finite() {
            places.retain(|x| *x < self.reach);
            places.push(self.reach);
        }
        places.sort_by(f64::total_cmp);
        let mut scan: Vec<(f64, f64)> = places.into_iter().map(|x| (x, value(x))).collect();
        // Peaks between the places.
        let tops: Vec<(f64, f64)> = scan
            .windows(3)
            .filter(|three| three[1].1 >= three[0].1 && three[1].1 >= three[2].1)
            .map(|three| summit(&value, three[0].0, three[2].0))
            .collect();
        scan.extend(tops);
        scan.sort_by(|a, b| a.0.total_cmp(&b.0));
        let peak = scan.iter().map(|place| place.1).fold(f64::NEG_INFINITY, f64::max);
        if !peak.is_finite() {
            return None;
        }
        spend(self.look() * scan.len() as f64).ok()?;
        // Sums over the stretches above the depth, the ends of which are looked for.
        let level = peak - depth;
        let (mut sum, mut points, mut from, mut to) = (0.0, 0.0, f64::NAN, f64::NAN);
        for cell in scan.windows(2) {
            let (mut left, mut right) = (cell[0], cell[1]);
            if left.1 < level && right.1 < level {
                continue;
            }
            if left.1 < level {
                left.0 = edge(&value, level, right.0, left.0, step);
            }
            if right.1 < level {
                right.0 = edge(&value, level, left.0, right.0, step);
            }
            let count = ((right.0 - left.0) / step).ceil().max(1.0);
            points += count;
            if !(points * k < 3e6) {
                return None;
            }
            let width = (right.0 - left.0) / count;
            // Simpson's rule: a peak is at the end of a cell, however narrow it is.
            let at = |x: f64| (value(x) - peak).exp();
            let mut before = at(left.0);
            for i in 0..count as usize {
                let x = left.0 + i as f64 * width;
                let after = at(x + width);
                sum += width / 6.0 * (before + 4.0 * at(x + 0.5 * width) + after);
                before = after;
            }
            from = if from.is_nan() { left.0 } else { from };
            to = right.0;
        }
        // Some twenty nanoseconds for each term.
        spend(self.look() * points).ok()?;
        Some(Shape {
            log_integral: peak + (sum / (self.scale * 2.506_628_274_631)).ln(),
            from: (from - step).max(start),
            to: (to + step).min(self.reach),
        })
    }

    /// ln M(c).
    pub(super) fn log_moment(&self, c: f64) -> f64 {
        self.shape(c, 0.0, 0.0, 60.0).map_or(f64::INFINITY, |shape| shape.log_integral)
    }

    /// ln of the bound on |M(c + iu)| for all u >= `u`, with the path moved by the angle `theta`.
    pub(super) fn log_tail(&self, c: f64, u: f64, theta: f64, shape: &Shape) -> f64 {
        let y = theta * self.scale * self.scale / self.records();
        // e^(i j turn) of every term.
        let turn = theta / self.records();
        let turns: Vec<(f64, f64)> =
            (0..self.log_coefficients.len()).map(|j| (j as f64 * turn).sin_cos()).collect();
        let step = (self.scale / 6.0).min(self.scale * self.scale / self.records());
        let points = ((shape.to - shape.from) / step).ceil().max(1.0) as usize;
        if spend(self.look() * points as f64).is_err() {
            return f64::INFINITY;
        }
        // ln A(x + iy), scaled by its largest term.
        let at = |x: f64| -> (f64, f64) {
            let (mut re, mut im) = (0.0, 0.0);
            let largest = self.terms(x, 0, |j, size| {
                re += size * turns[j].1;
                im += size * turns[j].0;
            });
            (largest + 0.5 * (re * re + im * im).ln(), im.atan2(re))
        };
        let logs = (0..=points).map(|i| {
            let x = shape.from + i as f64 * step;
            let (up, up_angle) = at(x);
            // The mirror image turns the other way.
            let (down, down_angle) = if self.substitute { at(-x) } else { (0.0, 0.0) };
            c * up + (1.0 - c) * down - u * (up_angle + down_angle) - 0.5 * (x / self.scale).powi(2)
        });
        let logs: Vec<f64> = logs.collect();
        let peak = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = logs.iter().map(|log| (log - peak).exp()).sum();
        peak + (sum * step / (self.scale * 2.506_628_274_631)).ln() + 0.5 * (y / self.scale).powi(2)
    }

    /// ln of the bound on a masked transform at u and beyond, with the path moved by the angle `theta`; what is left of it may be as
    /// far as `depth` below its peak at 0.
    pub(super) fn log_middle(&self, c: f64, u: f64, (theta, depth): (f64, f64)) -> f64 {
        let Some(shape) = self.shape(c, theta, 0.0, depth) else { return f64::INFINITY };
        let square = self.scale * self.scale;
        let turn = theta / self.records();
        let step = cell(self.scale, self.records(), 6.0, &self.mask);
        let points = ((shape.to - shape.from) / step).ceil().max(1.0) as usize;
        if spend(self.look() * points as f64).is_err() {
            return f64::INFINITY;
        }
        let logs: Vec<f64> = (0..points)
            .map(|i| {
                let x = shape.from + i as f64 * step;
                self.log_integrand(x + step, c, theta, 0.0) - u * self.angle(x, theta)
            })
            .collect();
        let peak = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = logs.iter().map(|log| (log - peak).exp()).sum();
        let y = turn * square;
        peak + (sum * step / (self.scale * 2.506_628_274_631)).ln() + 0.5 * (y / self.scale).powi(2)
    }

    /// ln of the bound on |M(c + iu)| and beyond of a clipped step on the whole line, with the angle that gives the least.
    pub(super) fn best_clipped(&self, c: f64, u: f64) -> (f64, f64) {
        let value = |theta: f64| {
            let points = (24.0 * self.reach / self.scale).clamp(24.0, 4000.0);
            if spend(self.look() * points).is_err() {
                return f64::INFINITY;
            }
            let step = 2.0 * self.reach / points;
            let mut sum = 0.0;
            for i in 0..points as usize {
                let a = -self.reach + i as f64 * step;
                let down = if self.substitute { self.angle(-a - step, theta) } else { 0.0 };
                let turned = u * (self.angle(a, theta) + down);
                sum += step * (self.log_cell(a, a + step, c, theta, 0.0) - turned).exp();
            }
            let y = theta * self.scale * self.scale / self.records();
            sum += self.edge(self.reach, c, u, theta) + self.edge(-self.reach, c, u, theta);
            (sum / (self.scale * 2.506_628_274_631)).ln() + 0.5 * (y / self.scale).powi(2)
        };
        [0.001, 0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.9, 1.1, 1.3]
            .map(|angle| (angle, value(angle)))
            .into_iter()
            .fold((0.0, f64::INFINITY), |a, b| if b.1 < a.1 { b } else { a })
    }

    /// [`super::bounds::Lines::edge`] in doubles, without the growth off the axis and 1/(s sqrt(2 pi)).
    pub(super) fn edge(&self, x: f64, c: f64, u: f64, theta: f64) -> f64 {
        if !x.is_finite() {
            return 0.0;
        }
        let (mut sum, mut from, mut to) = (0.0, 0.0, theta * 1e-9);
        while from < theta {
            let other = if self.substitute { self.angle(-x, from) } else { 0.0 };
            sum += (to - from) * (-u * (self.angle(x, from) + other)).exp();
            (from, to) = (to, (1.5 * to).min(theta));
        }
        let unit = self.scale * self.scale / self.records();
        sum * unit * self.log_cell(x, x, c, theta, 0.0).exp()
    }

    /// The angle that gives the smallest tail, and that tail.
    pub(super) fn best_tail(&self, c: f64, u: f64, shape: &Shape) -> (f64, f64) {
        let value = |log_theta: f64| self.log_tail(c, u, log_theta.exp(), shape);
        let (low, high) = (1e-6f64.ln(), 1.2f64.ln());
        let mut best = (low, value(low));
        for i in 1..=12 {
            let at = low + (high - low) * f64::from(i) / 12.0;
            let here = value(at);
            if here < best.1 {
                best = (at, here);
            }
        }
        let mut step = (high - low) / 24.0;
        for _ in 0..5 {
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
}
