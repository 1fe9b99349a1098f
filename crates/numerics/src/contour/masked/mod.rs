//! The hard region: few steps, rare or large jumps, where the loss is close to an atom plus a
//! heavy continuum and the plain contour does not converge or cancels.
//!
//! Smooth masks split each step by x into class 0 (low), 1 (middle) and 2 (high):
//! keep(x) = Phi((upper - x)/width) excludes class 2, and rise(x) = Phi((x - lower)/width) within
//! `keep` is class 1. With b = transform of `keep`, a1 of class 1, a0 = b - a1, the measure of Y
//! under Q splits exactly into
//!   H  at least one step of class 2:   A^T - b^T
//!   M  none of class 2, one of class 1: b^T - a0^T
//!   L  all of class 0:                  a0^T
//! - H: (e^y - 1)_+ = (e^y - 1) + (1 - e^y)_+, and the first part needs only b at s = 0 and 1,
//!   which are normal probabilities; the second has a Chernoff bound (a high step puts Y above t).
//! - M: a contour of its own. The far jumps are gone, so the tilt can be chosen for the threshold;
//!   the near-atom is gone, so the transform decays as fast as the masks are smooth.
//! - L: below the threshold; a Chernoff bound.
//!
//! All three are positive, so nothing cancels between them.

mod bounds;
mod classes;
mod masks;

pub(crate) use masks::{Edge, Masks};

use super::Part;
use super::grid::Grid;
use super::line::{Alias, MOST_NODES, Nodes, Obstacle, Value, Zone, alias};
use super::saddle;
use super::smooth::{SMOOTH_NODES, Smoothing};
use super::transform::{self, Transform};
use crate::complex::Complex;
use crate::elementary::{exp, ln, sin_cos};
use crate::special::log_add_exp;
use bounds::{Tail, chernoff, chernoff_high, chernoff_low, high_mass, high_value, middle_level};
use classes::{Known, Masked};
use masks::Class;
use std::f64::consts::PI;

/// A contour for M and the bounds for H and L, good for thresholds near the one it was made for.
#[derive(Debug)]
pub(crate) struct MaskedLine {
    c: f64,
    spacing: f64,
    /// b^T - a0^T along the line.
    nodes: Nodes,
    level: f64,
    truncation: f64,
    smoothing: Smoothing,
    left: Alias,
    right: Alias,
    /// P and Q probability that some step is of class 2, with relative errors.
    high: [Known; 2],
    /// (tilt, log of the Chernoff factor) for H's remainder (tilt < 0) and for L (tilt > 1).
    high_rest: Vec<(f64, f64)>,
    low: Vec<(f64, f64)>,
    /// Relative error at the threshold it was made for.
    error: f64,
}

/// The parts of the split that a line answers for, besides M.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answers {
    pub(crate) high: bool,
    pub(crate) low: bool,
}

/// A tilt for M, before any node is computed.
pub(crate) struct MaskedTilt<'a> {
    masked: Vec<Masked<'a>>,
    answers: Answers,
    has_low: bool,
    c: f64,
    level: f64,
    spread: f64,
    /// log of M in units of e^{level - ct}, as the saddle promises it.
    log_size: f64,
    low: Vec<(f64, f64)>,
}

impl<'a> MaskedTilt<'a> {
    pub(crate) fn new(
        parts: &'a [Part],
        masks: Vec<Masks>,
        t: f64,
        answers: Answers,
    ) -> Result<Self, Obstacle> {
        let has_low = masks.iter().any(|m| m.lower.is_some());
        let masked: Vec<Masked> = parts
            .iter()
            .zip(masks)
            .map(|(part, masks)| Masked::new(part, masks))
            .collect::<Result<_, _>>()?;
        let level_at = |c: f64| middle_level(&masked, has_low, c);

        // The tilt: minimum of a convex function of c, by golden section on log(c - 1).
        let objective = |v: f64| {
            let c = 1.0 + exp(v);
            level_at(c) - c * t - ln(c * (c - 1.0))
        };
        let v = golden(objective, -12.0, 40.0);
        let c = 1.0 + exp(v);
        let level = level_at(c);
        if !level.is_finite() {
            return Err(Obstacle::SlowDecay);
        }
        let low = if has_low && answers.low { chernoff_low(&masked, c) } else { Vec::new() };
        let step = 0.02 * (c - 1.0);
        let curvature = (level_at(c + step) - 2.0 * level + level_at(c - step)) / (step * step);
        let variance = curvature.max(0.0);
        let spread = saddle::spread(c, variance);
        let log_size = -ln(c * (c - 1.0)) - ln(spread * (2.0 * PI).sqrt());
        let place = Self { masked, answers, has_low, c, level, spread, log_size, low };
        // The all-low part must be negligible beside what is promised.
        if has_low && answers.low && chernoff(&place.low, t) > place.promised(t) - 20.0 {
            return Err(Obstacle::SlowDecay);
        }
        Ok(place)
    }

    /// log of e^t times what the line will say at t, roughly; H may be all there is.
    pub(crate) fn promised(&self, t: f64) -> f64 {
        let middle = self.level - (self.c - 1.0) * t + self.log_size;
        if self.answers.high { middle.max(ln(high_value(&self.masked, t))) } else { middle }
    }

    /// A Chernoff factor (tilt and logarithm) for M, if its sums are certain there.
    pub(crate) fn bound(&self) -> Option<(f64, f64)> {
        self.certain(self.c)
            .then(|| (self.c, self.level + Zone::Above.log_chernoff(self.c) + self.slack()))
    }

    /// More than the error of T log A on grids that are certain, and its roundings.
    fn slack(&self) -> f64 {
        0.01 + 1e-13 * self.masked.iter().map(|m| m.part.times).sum::<f64>()
    }

    /// The best Chernoff factor at t for the runs of class-0 steps only.
    pub(crate) fn bound_below(&self, t: f64) -> Option<(f64, f64)> {
        let size = |bound: &(f64, f64)| chernoff(&[*bound], t);
        let bounds = if self.has_low { chernoff_low(&self.masked, self.c) } else { Vec::new() };
        bounds.into_iter().min_by(|a, b| size(a).total_cmp(&size(b)))
    }

    fn certain(&self, tilt: f64) -> bool {
        let middle = |m: &Masked| m.masks.lower.is_none() || m.certain(Class::Middle, tilt);
        self.masked.iter().all(|m| m.certain(Class::Keep, tilt) && middle(m))
    }

    /// Builds the line for thresholds near t; where the transform decays too slowly, M is
    /// smoothed if that is allowed (module `smooth`).
    pub(crate) fn line(self, t: f64, may_smooth: bool) -> Result<MaskedLine, Obstacle> {
        let Self { c, level, spread, log_size, has_low, .. } = self;
        let level_at = |c: f64| middle_level(&self.masked, has_low, c);
        let (right, right_length) =
            alias(Zone::Above, c, t, level, log_size, f64::INFINITY, spread, 1.0, &level_at);
        let (left, left_length) =
            alias(Zone::Above, c, t, level, log_size, 1.0, spread, -1.0, &level_at);
        let length = right_length.max(left_length);
        // The sums are certain to far less than this; it is counted once for both.
        let slack = self.slack();
        let [left, right] =
            [left, right].map(|alias| Alias { log_bound: alias.log_bound + slack, ..alias });
        let certain = self.certain(left.tilt) && self.certain(right.tilt);
        if !(length.is_finite() && length > 0.0 && certain) {
            return Err(Obstacle::SlowDecay);
        }
        let spacing = 2.0 * PI / length;

        let Self { masked, answers, low, .. } = self;
        let masked: Vec<Masked> = masked.into_iter().map(|m| m.with_paths(c)).collect();
        let tail = Tail { masked: &masked, has_low, c, level, log_size, spacing };
        let (smoothing, height) = match tail.height(Smoothing::none(), MOST_NODES) {
            Some(found) => (Smoothing::none(), found),
            None if may_smooth => {
                let smoothing = Smoothing::within(spacing, c, log_size);
                // Twice the nodes it was made for, should the rest of the decay be unkind.
                let most = 2.0 * SMOOTH_NODES;
                (smoothing, tail.height(smoothing, most).ok_or(Obstacle::SlowDecay)?)
            }
            None => return Err(Obstacle::SlowDecay),
        };
        let count = (height / spacing).ceil() as usize + 1;
        // The average twice as wide may be the larger one at a real tilt far from 0.
        let bound =
            tail.decay(height, smoothing).max(tail.decay(height, smoothing.doubled())) + slack;

        let mut nodes = Nodes::new(count);
        let mut absent = Nodes::new(count);
        for m in &masked {
            let (keep, middle) = m.fine(c, spacing * count as f64)?;
            let times = m.part.times;
            let b = transform::along(&keep, c, spacing, count);
            nodes.multiply(&b, times);
            if let Some(middle) = middle {
                absent.multiply(&without_middle(&b, &middle, c, spacing), times);
            }
        }
        if has_low {
            for k in 0..count {
                // Where b or a0 is lost in rounding, so is their difference: only its bound counts.
                let simple = log_add_exp(nodes.upper[k], absent.upper[k]);
                if !(nodes.error[k] < 0.5 && absent.error[k] < 0.5) {
                    nodes.log[k] = Complex::new(f64::NEG_INFINITY, 0.0);
                    nodes.error[k] = f64::INFINITY;
                    nodes.upper[k] = simple;
                    continue;
                }
                // b^T - a0^T = b^T (1 - e^z), z = T log(1 - a1/b)
                let z = absent.log[k];
                let present = z.exp_m1().scale(-1.0);
                let size = present.modulus();
                let slip = 1.5 * absent.error[k] * exp(z.re);
                nodes.log[k] = nodes.log[k] + present.ln();
                nodes.upper[k] = (nodes.upper[k] + ln(size + slip)).min(simple);
                let relative = slip / size;
                nodes.error[k] += if relative < 0.25 { 1.5 * relative } else { f64::INFINITY };
            }
        }
        let level = nodes.log[0].re;
        let truncation = exp(bound + nodes.error[0]) / (PI * spacing * (count - 1) as f64);
        let (mut high, mut high_rest) = ([Known::default(); 2], Vec::new());
        if answers.high {
            high = [high_mass(&masked, true), high_mass(&masked, false)];
            high_rest = chernoff_high(&masked, spread);
        }
        let mut line = MaskedLine {
            c,
            spacing,
            nodes,
            level,
            truncation,
            smoothing,
            left,
            right,
            high,
            high_rest,
            low,
            error: f64::INFINITY,
        };
        line.error = line.value(t).relative_error();
        Ok(line)
    }
}

impl MaskedLine {
    pub(crate) fn nodes(&self) -> usize {
        self.nodes.log.len()
    }

    /// Relative error at the threshold it was made for: what a fresh line would have.
    pub(crate) fn error(&self) -> f64 {
        self.error
    }

    /// e^t E (e^{Y-t} - 1)_+ : mantissa and errors relative to e^log_scale, all three parts.
    pub(crate) fn value(&self, t: f64) -> Value {
        // Everything in units of e^{level - (c-1) t}.
        let log_scale = self.level - (self.c - 1.0) * t;
        let middle = self.middle(t, log_scale);
        let chernoff = |list: &[(f64, f64)]| exp(chernoff(list, t) - log_scale);
        let unscale = exp(-log_scale);
        let [of_p, of_q] = self.high;
        let (with, without) = (of_p.value * unscale, of_q.value * exp(t - log_scale));
        // Exponentials of rounded sums, and the difference.
        let slip = f64::EPSILON * (8.0 + log_scale.abs() + t.abs());
        let round = with * (of_p.error + slip) + without * (of_q.error + slip);
        let high_rest = if of_p.value > 0.0 { chernoff(&self.high_rest) } else { 0.0 };
        let low = if self.low.is_empty() { 0.0 } else { chernoff(&self.low) };
        Value {
            log_scale,
            mantissa: middle.mantissa + with - without,
            below: middle.below + round,
            above: middle.above + round + high_rest + low,
            slope: middle.slope - without,
        }
    }

    /// M alone.
    fn middle(&self, t: f64, log_scale: f64) -> Value {
        let once = self.smoothed(t, log_scale, self.smoothing);
        if self.smoothing.is_none() {
            return once;
        }
        let twice = self.smoothed(t, log_scale, self.smoothing.doubled());
        let step = twice.mantissa - once.mantissa;
        let reach = self.smoothing.reach();
        let extrapolated = once.mantissa - step / 3.0;
        let slips = twice.above + once.below;
        let lower = once.mantissa - once.below - reach * (step + slips).max(0.0);
        let upper = once.mantissa + once.above;
        // Where round-off hides the step, extrapolation may leave the enclosure.
        let mantissa = extrapolated.min(upper).max(lower);
        Value {
            log_scale,
            mantissa,
            below: mantissa - lower,
            above: upper - mantissa,
            slope: once.slope - (twice.slope - once.slope) / 3.0,
        }
    }

    /// The average of M over neighbouring thresholds.
    fn smoothed(&self, t: f64, log_scale: f64, smoothing: Smoothing) -> Value {
        let c = self.c;
        let sums = self.nodes.sums(c, self.spacing, self.level, t, 1.0, smoothing);
        let weight = self.spacing / PI;
        let alias = |alias: &Alias| {
            let ratio = exp(-(alias.tilt - c).abs() * 2.0 * PI / self.spacing);
            if ratio >= 0.5 {
                return f64::INFINITY;
            }
            let grown = alias.log_bound + smoothing.log_factor(alias.tilt, 0.0);
            exp(grown - (alias.tilt - 1.0) * t - log_scale) * ratio / (1.0 - ratio)
        };
        let mantissa = weight * sums.sum;
        // The sum's last rounding; and the scale: a product and a difference of logarithms.
        let slip = f64::EPSILON * (4.0 + 2.0 * ((c - 1.0) * t).abs() + log_scale.abs());
        let round = weight * sums.round + slip * mantissa.abs() + self.truncation;
        Value {
            log_scale,
            mantissa,
            below: round + alias(&self.left) + alias(&self.right),
            above: round,
            slope: weight * sums.slope,
        }
    }
}

/// Minimum of a unimodal function by golden section.
fn golden(f: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    let safe = |v: f64| {
        let y = f(v);
        if y.is_nan() { f64::INFINITY } else { y }
    };
    let (mut a, mut b) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut fa, mut fb) = (safe(a), safe(b));
    while high - low > 1e-3 {
        // Both infinite: the far side overflowed; the minimum is on the near side.
        if fa < fb || (fa.is_infinite() && fb.is_infinite()) {
            high = b;
            (b, fb) = (a, fa);
            a = high - ratio * (high - low);
            fa = safe(a);
        } else {
            low = a;
            (a, fa) = (b, fb);
            b = low + ratio * (high - low);
            fb = safe(b);
        }
    }
    0.5 * (low + high)
}

/// log(1 - a1/b) along the line; the bound is that of |a0| = |b - a1| itself.
fn without_middle(b: &Transform, middle: &Grid, c: f64, spacing: f64) -> Transform {
    let count = b.log.len();
    let (scale, a1, a1_error) = transform::plain(middle, c, spacing, count);
    let mut out = Transform { log: Vec::new(), error: Vec::new(), upper: Vec::new() };
    for k in 0..count {
        let simple = log_add_exp(b.upper[k], scale + ln(a1[k].modulus() + a1_error[k]));
        if !(b.error[k] < 0.5) {
            out.log.push(Complex::new(0.0, 0.0));
            out.upper.push(simple);
            out.error.push(f64::INFINITY);
            continue;
        }
        let shrink = exp(scale - b.log[k].re);
        let (sin, cos) = sin_cos(-b.log[k].im);
        let ratio = a1[k] * Complex::new(cos * shrink, sin * shrink);
        let absolute =
            a1_error[k] * shrink + ratio.modulus() * (1.5 * b.error[k] + 4.0 * f64::EPSILON);
        let distance = Complex::new(1.0 - ratio.re, ratio.im).modulus();
        let bound = b.upper[k] + ln(distance + absolute);
        // ln of a tiny difference may itself be lost.
        let relative = absolute / distance;
        let lost = !(relative < 0.25);
        let (log, rounded) = ratio.scale(-1.0).ln_1p();
        out.log.push(if lost { Complex::new(0.0, 0.0) } else { log });
        out.upper.push(if bound < simple { bound } else { simple });
        out.error.push(if lost { f64::INFINITY } else { 1.5 * relative + rounded });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mixture::MixtureRatio;

    /// What paths say of the classes' transforms beyond a height, against sums over a grid four times finer.
    #[test]
    fn paths_bound_what_is_beyond_them() {
        let mut compared = 0;
        for (scale, rate, times) in [
            (0.25, 1e-4, 3.0),
            (0.4, 1e-6, 500.0),
            (0.7, 1e-3, 20.0),
            (1.0, 1e-5, 1e4),
            (2.0, 1e-7, 1.0),
            (5.0, 1e-5, 1e6),
            (30.0, 1e-4, 50.0),
        ] {
            let part = Part { pair: MixtureRatio::subsampled(scale, rate), times };
            let parts = [part];
            for depth in [3.0, 6.0, 10.0] {
                let edge = |depth: f64| Edge { centre: depth * scale, width: 0.1 * scale };
                let masks = Masks { uppers: vec![edge(depth)], lower: Some(edge(0.5 * depth)) };
                let t = parts[0].pair.log_ratio(0.8 * depth * scale);
                let answers = Answers { high: true, low: false };
                let Ok(place) = MaskedTilt::new(&parts, vec![masks.clone()], t, answers) else {
                    continue;
                };
                let (c, spread) = (place.c, place.spread);
                let [rough, fine] = [1.0, 4.0].map(|refined| {
                    Masked::refined(&parts[0], masks.clone(), refined).unwrap().with_paths(c)
                });
                for height in [1.0, 10.0, 100.0, 1e3] {
                    let u = height / spread;
                    for middle in [false, true] {
                        let bound = (rough.paths.iter())
                            .filter_map(|(keep, mid)| if middle { mid } else { keep }.as_ref())
                            .map(|path| path.log_ratio(u))
                            .fold(0.0, f64::min);
                        let grid = if middle { &fine.middle } else { &fine.keep };
                        let (_, values, errors) = transform::plain(grid, c, u, 6);
                        // A point may turn by a radian from one to the next.
                        let turn = u * (grid.x[1] - grid.x[0]) / (scale * scale);
                        for k in (1..6).take_while(|k| turn * *k as f64 <= 1.0) {
                            let least = (values[k].modulus() - errors[k]) / values[0].modulus();
                            assert!(
                                exp(bound) >= least,
                                "{scale} {rate} {depth} {middle} {u} {k}: {bound} {least}"
                            );
                        }
                        compared += usize::from(bound < -1e-9 && turn <= 1.0);
                    }
                }
            }
        }
        assert!(compared > 40, "{compared}");
    }
}
