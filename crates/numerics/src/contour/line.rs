//! The inversion integral on one vertical line, certified.
//!
//! With W the likelihood ratio, Y the sum of log W over all steps and A(s)^T = E_Q e^{sY},
//!   E_Q f(Y - t) = 1/(2 pi i) * integral over Re s = c of A(s)^T e^{-st} k(s) ds,
//! where k(s) = +-1/(s(s-1)) and
//!   c > 1      f(y) = (e^y - 1)_+
//!   0 < c < 1  f(y) = min(e^y, 1)
//!   c < 0      f(y) = (1 - e^y)_+ .
//! The trapezoid sum with spacing eta is, by Poisson summation, the sum over all integers m of
//! e^{c m L} E f(Y - t - m L), L = 2 pi/eta: every alias is positive and has a Chernoff bound.
//! What is added to it: nodes beyond the last (module `tail`), round-off and the quadrature of A.

use super::Part;
use super::grid::{Design, Grid};
use super::saddle;
use super::smooth::Smoothing;
use super::strip::Unmasked;
use super::tail::{self, Law, Path};
use super::transform::{self, Transform};
use crate::complex::Complex;
use crate::elementary::{exp, ln, powi, sin_cos};
use crate::sum::Sum;
use std::f64::consts::PI;

/// Which function of Y - t is averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// E_Q (e^{Y-t} - 1)_+ ; times e^t it is the divergence of P from Q at e^t.
    Above,
    /// E_Q min(e^{Y-t}, 1).
    Between,
    /// E_Q (1 - e^{Y-t})_+ : the divergence of Q from P at e^{-t}.
    Below,
}

impl Zone {
    /// Real parts of s allowed for this function.
    pub(crate) fn ends(self) -> (f64, f64) {
        match self {
            Zone::Above => (1.0, f64::INFINITY),
            Zone::Between => (0.0, 1.0),
            Zone::Below => (f64::NEG_INFINITY, 0.0),
        }
    }

    /// log of sup_y f(y) e^{-cy}.
    pub(crate) fn log_chernoff(self, c: f64) -> f64 {
        let xlogx = |x: f64| if x <= 0.0 { 0.0 } else { x * ln(x) };
        match self {
            Zone::Above => xlogx(c - 1.0) - xlogx(c),
            Zone::Between => 0.0,
            Zone::Below => xlogx(-c) - xlogx(1.0 - c),
        }
    }
}

/// A positive number as mantissa * e^log_scale, with the absolute errors of the mantissa.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value {
    pub(crate) log_scale: f64,
    pub(crate) mantissa: f64,
    /// The truth may be smaller by this much ...
    pub(crate) below: f64,
    /// ... or larger by this much.
    pub(crate) above: f64,
    /// Derivative of the mantissa (times e^log_scale) with respect to t.
    pub(crate) slope: f64,
}

impl Value {
    /// Both errors relative to the value; infinite where the value is not positive.
    pub(crate) fn relative_error(&self) -> f64 {
        if self.mantissa > 0.0 { (self.below + self.above) / self.mantissa } else { f64::INFINITY }
    }
}

/// The nodes of one line, good for any threshold near the one it was made for.
#[derive(Debug)]
pub(crate) struct Line {
    zone: Zone,
    c: f64,
    spacing: f64,
    nodes: Nodes,
    /// T log A(c), the common factor.
    level: f64,
    /// Bound on what the nodes beyond the last add to the mantissa.
    truncation: f64,
    left: Alias,
    right: Alias,
    /// The threshold it was made for, and how far from it the line is worth trying.
    home: f64,
    range: f64,
    /// Relative error at home.
    error: f64,
}

/// The transform at the nodes of a line: logarithm, its error, and a bound on its modulus.
#[derive(Debug)]
pub(crate) struct Nodes {
    pub(crate) log: Vec<Complex>,
    pub(crate) error: Vec<f64>,
    pub(crate) upper: Vec<f64>,
}

/// Half-line sums of the integrand, of its derivative in t, and of its error.
pub(crate) struct Sums {
    pub(crate) sum: f64,
    pub(crate) slope: f64,
    pub(crate) round: f64,
}

impl Nodes {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            log: vec![Complex::new(0.0, 0.0); count],
            error: vec![0.0; count],
            upper: vec![0.0; count],
        }
    }

    /// Multiplies by the T-th power of a transform.
    pub(crate) fn multiply(&mut self, transform: &Transform, times: f64) {
        for k in 0..self.log.len() {
            let log = self.log[k] + transform.log[k].scale(times);
            self.log[k] = log;
            // The product and the sum are rounded.
            let rounded = transform.log[k].re.abs() + transform.log[k].im.abs();
            self.error[k] += times * (transform.error[k] + 0.5 * f64::EPSILON * rounded)
                + 0.5 * f64::EPSILON * (log.re.abs() + log.im.abs());
            self.upper[k] += times * transform.upper[k];
            self.upper[k] +=
                f64::EPSILON * (times * transform.upper[k].abs() + self.upper[k].abs());
        }
    }

    /// Sums of e^{log - level - iut} k(s), smoothed; the slope is that of e^{-(s - offset) t}.
    pub(crate) fn sums(
        &self,
        c: f64,
        spacing: f64,
        level: f64,
        t: f64,
        offset: f64,
        smoothing: Smoothing,
    ) -> Sums {
        let mut out = Sums { sum: 0.0, slope: 0.0, round: 0.0 };
        let mut sum = Sum::default();
        for (k, log) in self.log.iter().enumerate() {
            let u = spacing * k as f64;
            let argument = smoothing.argument(c, u);
            let phase = log.im - u * t + argument;
            let fall = smoothing.log_factor(c, u);
            let size = exp(log.re - level + fall);
            let (sin, cos) = sin_cos(phase);
            // k(s) = 1/(s(s-1)) with s = c + iu
            let (a, b) = (c * (c - 1.0) - u * u, u * (2.0 * c - 1.0));
            let norm = 1.0 / (a * a + b * b);
            let (re, im) = (a * norm, -b * norm);
            let term_re = size * (cos * re - sin * im);
            let term_im = size * (cos * im + sin * re);
            let factor = if k == 0 { 0.5 } else { 1.0 };
            sum.add(factor * term_re);
            out.slope -= factor * ((c - offset) * term_re - u * term_im);
            // Half an epsilon for each rounding: u t has four, the angles have two besides their own.
            let turned = 2.0 * u * t.abs() + log.im.abs() + 2.0 * argument.abs();
            let unit = f64::EPSILON * (10.0 + turned + (log.re - level).abs() + 2.0 * fall.abs());
            let err = self.error[k] + unit;
            // Where the relative error is large the node itself is small: bound it by its size.
            let slip =
                if err < 0.5 { 1.5 * err * size } else { size + exp(self.upper[k] - level + fall) };
            out.round += factor * slip * norm.sqrt();
        }
        // A sum of at most 1e6 positive terms of few roundings each.
        out.round *= 1.0 + 1e-9;
        out.sum = sum.total();
        out
    }
}

/// A second tilt for the Chernoff bound of the aliases on one side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alias {
    pub(crate) tilt: f64,
    /// T log A(tilt) + log sup f e^{-tilt y}
    pub(crate) log_bound: f64,
}

impl Alias {
    /// The same tilt, with an upper bound in place of a sum over coarse grids.
    fn proven(self, zone: Zone, parts: &[Part], coarse: &[Grid]) -> Self {
        let level: f64 = (parts.iter().zip(coarse))
            .map(|(part, grid)| part.times * log_moment_above(part, grid, self.tilt))
            .sum();
        Self { log_bound: level + zone.log_chernoff(self.tilt), ..self }
    }
}

/// An upper bound on log A(tilt): by the coarse grid if that is close enough for this number of steps.
fn log_moment_above(part: &Part, coarse: &Grid, tilt: f64) -> f64 {
    if tilt == 0.0 || tilt == 1.0 {
        return 0.0;
    }
    let quick = coarse.log_above(&part.pair, tilt);
    if part.times * (quick - transform::cumulant(coarse, tilt).0) <= WASTE {
        return quick;
    }
    let design = Design {
        highest: tilt.max(1.0),
        lowest: tilt.min(0.0),
        frequency: 0.0,
        digits: 6.0 + ln(part.times * (2.0 + tilt.abs())),
    };
    match Grid::economical(&part.pair, &design, tilt, coarse) {
        Ok(grid) => transform::along(&grid, tilt, 1.0, 1).upper[0].min(quick),
        Err(_) => quick,
    }
}

/// A candidate tilt with the aliases it has.
struct Candidate {
    c: f64,
    variance: f64,
    level: f64,
    spread: f64,
    /// log of the value in units of e^{level - ct}.
    log_size: f64,
    right: (Alias, f64),
    left: (Alias, f64),
}

impl Candidate {
    fn length(&self) -> f64 {
        self.right.1.max(self.left.1)
    }
}

/// Natural logarithm of the cancellation that is accepted to save nodes.
const MOST_CANCELLATION: f64 = 7.0;
/// The part of the value that round-off may take for it.
const ROUND_OFF: f64 = 1e-9;

/// Why a line could not be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The transform does not decay within the permitted number of nodes.
    SlowDecay,
    /// The quadrature of the transform would need too many points.
    TooFine,
    /// Two routes gave enclosures that do not meet.
    Contradiction,
}

/// Relative size to which aliases and truncation are pushed.
pub(crate) const LOG_TOLERANCE: f64 = 32.0;
/// Room for the roundings of a Chernoff bound's exponent, whose terms are below 1e6.
const ROOM: f64 = 1e-6;
/// A bound on T log A of a second tilt may lie this much above its value on a coarse grid; else it gets a grid
/// of its own.
const WASTE: f64 = 0.1;
pub(crate) const MOST_WORK: f64 = 3e7;
/// More parts than this are looked at more cheaply.
const MANY_PARTS: usize = 16;
/// Nodes of a line, each of 48 bytes while it is built.
pub(crate) const MOST_NODES: f64 = 80_000.0;

impl Line {
    /// Builds the line Re s = c for thresholds near t. `coarse` holds a grid per part that covers
    /// tilts up to `farthest`; `variance` is T K''(c).
    pub(crate) fn new(
        parts: &[Part],
        coarse: &[Grid],
        zone: Zone,
        (c, farthest): (f64, f64),
        t: f64,
        variance: f64,
    ) -> Result<Self, Obstacle> {
        let level_at = |tilt: f64| -> f64 {
            if tilt == 0.0 || tilt == 1.0 {
                return 0.0;
            }
            parts
                .iter()
                .zip(coarse)
                .map(|(part, grid)| part.times * transform::cumulant(grid, tilt).0)
                .sum()
        };
        let place = |c: f64, variance: f64, log_value: Option<f64>| {
            let level = level_at(c);
            let spread = saddle::spread(c, variance);
            let log_size = match log_value {
                Some(log_value) => log_value - (level - c * t),
                None => -ln((c * (c - 1.0)).abs() * spread * (2.0 * PI).sqrt()),
            };
            let (low, _) = zone.ends();
            let right = alias(zone, c, t, level, log_size, farthest, spread, 1.0, &level_at);
            let left = alias(zone, c, t, level, log_size, low, spread, -1.0, &level_at);
            Candidate { c, variance, level, spread, log_size, right, left }
        };
        let mut best = place(c, variance, None);
        // A saddle that leans on far jumps has aliases that need a long period. A smaller tilt
        // costs a few digits of cancellation and saves most of the nodes.
        let log_value = best.level - best.c * t + best.log_size;
        let steps: f64 = parts.iter().map(|part| part.times).sum();
        let affordable = ln(ROUND_OFF / (f64::EPSILON * steps)).clamp(0.0, MOST_CANCELLATION);
        let least = best.log_size - affordable;
        for step in 1..=8 {
            if zone != Zone::Above || best.right.1 < 2.0 * best.left.1 {
                break;
            }
            let tilt = 1.0 + (c - 1.0) * powi(0.86f64, step);
            let variance = parts
                .iter()
                .zip(coarse)
                .map(|(part, grid)| part.times * transform::cumulant(grid, tilt).2)
                .sum();
            let other = place(tilt, variance, Some(log_value));
            if other.log_size < least || other.length() > best.length() {
                break;
            }
            best = other;
        }
        let Candidate {
            c,
            variance,
            level: _,
            spread,
            log_size,
            right: (right, _),
            left: (left, _),
        } = best;
        let length = best.length();
        let [left, right] = [left, right].map(|alias| alias.proven(zone, parts, coarse));
        let spacing = 2.0 * PI / length;

        let (height, decay) = height(parts, coarse, c, variance, log_size, spacing)?;
        let nodes = (height / spacing).ceil() + 1.0;
        if nodes.is_nan() || nodes > MOST_NODES {
            return Err(Obstacle::SlowDecay);
        }
        let count = nodes as usize;

        let mut nodes = Nodes::new(count);
        for (part, coarse) in parts.iter().zip(coarse) {
            let top = spacing * count as f64;
            let design = Design {
                highest: c.max(1.0),
                lowest: c.min(0.0),
                frequency: top,
                digits: LOG_TOLERANCE + ln(part.times * (2.0 + top + c.abs())).max(0.0),
            };
            let grid =
                Grid::economical(&part.pair, &design, c, coarse).map_err(|_| Obstacle::TooFine)?;
            if grid.len() as f64 * count as f64 > MOST_WORK {
                return Err(Obstacle::SlowDecay);
            }
            nodes.multiply(&transform::along(&grid, c, spacing, count), part.times);
        }
        let level = nodes.log[0].re;
        // The path's bound is in terms of A(c), the nodes in terms of its computed value.
        let truncation = exp(decay + nodes.error[0] + ROOM) / (PI * spacing * (count - 1) as f64);
        let mut line = Self {
            zone,
            c,
            spacing,
            nodes,
            level,
            truncation,
            left,
            right,
            home: t,
            range: 6.0 * spread,
            error: f64::INFINITY,
        };
        line.error = line.value(t).relative_error();
        Ok(line)
    }

    /// E f(Y - t) as a mantissa and a scale.
    pub(crate) fn value(&self, t: f64) -> Value {
        let c = self.c;
        let sign = if self.zone == Zone::Between { -1.0 } else { 1.0 };
        let Sums { sum, slope, round } =
            self.nodes.sums(c, self.spacing, self.level, t, 0.0, Smoothing::none());
        let scale = self.spacing / PI;
        let mantissa = sign * scale * sum;
        let log_scale = self.level - c * t;
        // The sum's last rounding; and the scale: a product and a difference of logarithms.
        let slip = f64::EPSILON * (4.0 + (c * t).abs() + log_scale.abs());
        let round = scale * round + slip * mantissa.abs() + self.truncation;
        let alias = self.alias_bound(&self.left, t, log_scale)
            + self.alias_bound(&self.right, t, log_scale);
        Value {
            log_scale,
            mantissa,
            below: round + alias,
            above: round,
            slope: sign * scale * slope,
        }
    }

    fn alias_bound(&self, alias: &Alias, t: f64, log_scale: f64) -> f64 {
        let length = 2.0 * PI / self.spacing;
        let ratio = exp(-(alias.tilt - self.c).abs() * length);
        if ratio >= 0.5 {
            return f64::INFINITY;
        }
        exp(alias.log_bound + ROOM - alias.tilt * t - log_scale) * ratio / (1.0 - ratio)
    }

    pub(crate) fn zone(&self) -> Zone {
        self.zone
    }

    pub(crate) fn nodes(&self) -> usize {
        self.nodes.log.len()
    }

    /// Relative error at the threshold it was made for: what a fresh line would have.
    pub(crate) fn error(&self) -> f64 {
        self.error
    }

    /// Whether t is close enough to the line's own threshold for an accurate answer to be likely.
    pub(crate) fn near(&self, t: f64) -> bool {
        (t - self.home).abs() <= self.range
    }
}

/// Chooses the tilt for the aliases on one side and the period they need.
#[allow(clippy::too_many_arguments)]
pub(crate) fn alias(
    zone: Zone,
    c: f64,
    t: f64,
    level: f64,
    log_size: f64,
    end: f64,
    spread: f64,
    sign: f64,
    level_at: &impl Fn(f64) -> f64,
) -> (Alias, f64) {
    let mut best = (Alias { tilt: c, log_bound: f64::INFINITY }, f64::INFINITY);
    let consider = |tilt: f64, best: &mut (Alias, f64)| -> f64 {
        let distance = (tilt - c).abs();
        if distance <= 0.0 {
            return f64::INFINITY;
        }
        let log_bound = level_at(tilt) + zone.log_chernoff(tilt);
        let excess = log_bound - tilt * t - (level - c * t) - log_size + LOG_TOLERANCE;
        let length = (excess / distance).max(1.0 / distance);
        if !excess.is_finite() {
            return f64::INFINITY;
        }
        if length < best.1 {
            *best = (Alias { tilt, log_bound }, length);
        }
        length
    };
    if end.is_finite() {
        consider(end, &mut best);
    }
    // The period needed is quasi-convex in the tilt: walk from a usual place while it shrinks.
    let try_step = |step: f64, best: &mut (Alias, f64)| {
        let tilt = c + sign * step / spread;
        if (end - tilt) * sign <= 0.0 { f64::INFINITY } else { consider(tilt, best) }
    };
    let start = 4.0;
    let first = try_step(start, &mut best);
    for factor in [2.0, 0.5] {
        let (mut step, mut last) = (start * factor, first);
        while (0.1..17.0).contains(&step) {
            let length = try_step(step, &mut best);
            // Beyond the end there is nothing to compare.
            if length >= last && last.is_finite() {
                break;
            }
            last = length;
            step *= factor;
        }
        if last < first {
            break;
        }
    }
    best
}

/// The tilted law of a part at c, on the coarse grid if that is good enough.
fn law<'a>(part: &'a Part, coarse: &Grid, c: f64) -> Law<'a> {
    let excess = coarse.log_above(&part.pair, c) - tail::log_shares(coarse, c).1;
    if excess < WASTE {
        return Law::new(&part.pair, coarse, c, excess);
    }
    let design = Design {
        highest: c.max(1.0),
        lowest: c.min(0.0),
        frequency: 0.0,
        digits: 12.0 + ln(2.0 + c.abs()),
    };
    match Grid::economical(&part.pair, &design, c, coarse) {
        Ok(grid) => {
            let known = transform::along(&grid, c, 1.0, 1);
            let off = (known.log[0].re - tail::log_shares(&grid, c).1).abs() + known.error[0];
            let better = off < excess;
            if better {
                Law::new(&part.pair, &grid, c, off)
            } else {
                Law::new(&part.pair, coarse, c, excess)
            }
        }
        Err(_) => Law::new(&part.pair, coarse, c, excess),
    }
}

/// The height beyond which nodes are left out, and the log of the decay reached there.
fn height(
    parts: &[Part],
    coarse: &[Grid],
    c: f64,
    variance: f64,
    log_size: f64,
    spacing: f64,
) -> Result<(f64, f64), Obstacle> {
    let mut u = (2.2 * LOG_TOLERANCE / variance).sqrt().max(2.0 * spacing);
    // Of many parts each has one path, made for a careful guess: a path holds at every height.
    let many = parts.len() > MANY_PARTS;
    if many {
        let depth = LOG_TOLERANCE - log_size - ln(PI * u);
        u = u.max((2.3 * depth.max(0.0) / variance).sqrt());
    }
    let laws: Vec<Law> =
        (parts.iter().zip(coarse)).map(|(part, grid)| law(part, grid, c)).collect();
    let made_for =
        |u: f64| -> Vec<Path> { laws.iter().map(|law| law.best(u, &Unmasked, many)).collect() };
    let mut paths = made_for(if many { 1.2 * u } else { u });
    let mut made = u;
    loop {
        let outgrown = if many { u > 2.5 * made } else { u != made };
        if outgrown {
            paths = made_for(u);
            made = u;
        }
        let decay: f64 =
            (parts.iter().zip(&paths)).map(|(part, path)| part.times * path.log_ratio(u)).sum();
        let wanted = log_size - LOG_TOLERANCE + ln(PI * u);
        if decay < wanted {
            return Ok((u, decay));
        }
        // The exponent grows at most like u^2.
        u *= if decay < 0.0 { (wanted / decay).sqrt().clamp(1.08, 2.0) * 1.04 } else { 2.0 };
        if !(u / spacing <= MOST_NODES) {
            return Err(Obstacle::SlowDecay);
        }
    }
}

#[cfg(test)]
mod tests;
