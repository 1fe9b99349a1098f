//! The inversion integral along one vertical line, with every error carried.

use super::decay::Decay;
use super::grid::{Demand, Grid, Point, TooFine};
use super::law::Law;
use super::solve::Times;
use crate::contour::Zone;
use std::f64::consts::PI;

const UNIT: f64 = f64::EPSILON / 2.0;
/// Natural logarithm of the part of the value to which each error is pushed.
pub(super) const TOLERANCE: f64 = 29.0;
const MOST_NODES: f64 = 30_000.0;

/// Why no line could be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The transform does not fall within the permitted number of nodes.
    SlowDecay,
    /// The quadrature of the transform would need too many points.
    TooFine,
}

impl From<TooFine> for Obstacle {
    fn from(_: TooFine) -> Self {
        Obstacle::TooFine
    }
}

/// A positive number mantissa * e^log_scale with absolute errors of the mantissa.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) log_scale: f64,
    pub(super) mantissa: f64,
    pub(super) below: f64,
    pub(super) above: f64,
    /// Derivative of mantissa * e^log_scale in t, in units of e^log_scale.
    pub(super) slope: f64,
}

/// T ln K(c + iku) at the nodes, and what bounds the rest.
#[derive(Debug)]
pub(super) struct Line {
    zone: Zone,
    c: f64,
    spacing: f64,
    /// (log modulus, argument, error, log of a bound on the modulus) of the product of transforms.
    nodes: Vec<(f64, f64, f64, f64)>,
    level: f64,
    /// What the nodes beyond the last add at most, in units of e^level.
    truncation: f64,
    aliases: [Alias; 2],
}

/// A second tilt with a bound on its T ln K.
#[derive(Clone, Copy, Debug)]
struct Alias {
    tilt: f64,
    log_bound: f64,
}

/// K(c + iu) - 1.
pub(super) struct Transform {
    pub(super) re: f64,
    pub(super) im: f64,
}

/// Sum over the points at s = c + iu, term by term without cancellation.
pub(super) fn transform(points: &[Point], c: f64, u: f64) -> Transform {
    let (mut re, mut im) = (0.0f64, 0.0f64);
    for block in points.chunks(BLOCK) {
        let (mut part_re, mut part_im) = (0.0f64, 0.0f64);
        for point in block {
            let l = point.loss;
            let lifted = l.exp_m1();
            let (sin, cos) = (0.5 * u * l).sin_cos();
            let (fall, turn) = (2.0 * sin * sin, 2.0 * sin * cos);
            let grown = (c * l).exp_m1();
            part_re += point.weight * (grown - (1.0 + grown) * fall - c * lifted);
            part_im += point.weight * ((1.0 + grown) * turn - u * lifted);
            if point.mirror {
                let grown = ((1.0 - c) * l).exp_m1();
                part_re += point.weight * (grown - (1.0 + grown) * fall - (1.0 - c) * lifted);
                part_im -= point.weight * ((1.0 + grown) * turn - u * lifted);
            }
        }
        re += part_re;
        im += part_im;
    }
    Transform { re, im }
}

const BLOCK: usize = 64;
/// Nodes after which turned points are computed afresh.
const REFRESH: usize = 32;

/// Bound on the round-off of [`transform`] for heights up to `height` at tilt c.
fn round_off(points: &[Point], c: f64, height: f64) -> f64 {
    let mut error = 0.0;
    let mut size = 0.0;
    for point in points {
        let l = point.loss;
        let lifted = l.exp_m1().abs();
        for a in [c, 1.0 - c].into_iter().take(if point.mirror { 2 } else { 1 }) {
            let s = a.hypot(height);
            let grown = (a * l).max(0.0).exp();
            let top = grown.max(l.exp());
            // |e^{sl} - 1| and |r| and |dr/dl|.
            let turned = (s * l.abs() * grown).min(grown + 1.0);
            let rest = (0.5 * s * (s + 1.0) * l * l * top).min(turned + s * lifted);
            let slope = (s * (s + 1.0) * l.abs() * top).min(s * (grown + l.exp()));
            let arithmetic =
                UNIT * (12.0 + a.abs() * l.abs() + height * l.abs()) * (turned + s * lifted);
            error +=
                point.weight * (arithmetic + point.weight_slip * rest + point.loss_slip * slope);
            size += point.weight * rest;
        }
    }
    1.01 * error + UNIT * (BLOCK + points.len() / BLOCK + 8) as f64 * size
}

/// All nodes at once, by turning every point from node to node: faster, with an error of some hundred
/// units in K itself, which does for up to `MOST_TURNED` steps.
struct Turned {
    /// w e^{cl} and the mirror's w e^{(1-c)l}.
    grown: Vec<f64>,
    mirror: Vec<f64>,
    loss: Vec<f64>,
    turn: Vec<(f64, f64)>,
    now: Vec<(f64, f64)>,
    /// What is subtracted: constant, and times s.
    fixed: f64,
    linear: f64,
    error: f64,
}

const MOST_TURNED: f64 = 3e4;

impl Turned {
    fn new(points: &[Point], c: f64, spacing: f64, height: f64) -> Self {
        let (mut fixed, mut linear, mut size) = (Sum::default(), Sum::default(), 0.0);
        let (mut grown, mut mirror) = (Vec::new(), Vec::new());
        let (mut loss, mut turn) = (Vec::new(), Vec::new());
        for point in points {
            let (l, w) = (point.loss, point.weight);
            let lifted = l.exp_m1();
            let (a, b) =
                (w * (c * l).exp(), if point.mirror { w * ((1.0 - c) * l).exp() } else { 0.0 });
            grown.push(a);
            mirror.push(b);
            loss.push(l);
            let (sin, cos) = (spacing * l).sin_cos();
            turn.push((cos, sin));
            // r(s) = e^{sl} - 1 - s lifted, r(1-s) = e^{(1-s)l} - 1 - (1-s) lifted.
            fixed.add(w);
            linear.add(w * lifted);
            if point.mirror {
                fixed.add(w + w * lifted);
                linear.add(-w * lifted);
            }
            let s = 1.0 + c.abs().max((1.0 - c).abs()).hypot(height);
            size +=
                (a + b) * (1.0 + 0.1 * height * l.abs()) + 2.0 * w * (1.0 + 0.1 * s * lifted.abs());
        }
        let steps = REFRESH + BLOCK / 4 + points.len() / BLOCK + 40;
        Self {
            now: vec![(0.0, 0.0); loss.len()],
            grown,
            mirror,
            loss,
            turn,
            fixed: fixed.total,
            linear: linear.total,
            error: UNIT * 4.0 * steps as f64 * size,
        }
    }

    fn at(&mut self, k: usize, c: f64, u: f64) -> Transform {
        if k.is_multiple_of(REFRESH) {
            for (now, l) in self.now.iter_mut().zip(&self.loss) {
                let (sin, cos) = (u * l).sin_cos();
                *now = (cos, sin);
            }
        }
        let (mut re, mut im) = (0.0, 0.0);
        let n = self.loss.len();
        for start in (0..n).step_by(BLOCK) {
            let end = (start + BLOCK).min(n);
            let (grown, mirror) = (&self.grown[start..end], &self.mirror[start..end]);
            let (turn, now) = (&self.turn[start..end], &mut self.now[start..end]);
            let (mut part_re, mut part_im) = ([0.0f64; 4], [0.0f64; 4]);
            for j in 0..end - start {
                let (cos, sin) = now[j];
                part_re[j & 3] += (grown[j] + mirror[j]) * cos;
                part_im[j & 3] += (grown[j] - mirror[j]) * sin;
                now[j] = (cos * turn[j].0 - sin * turn[j].1, cos * turn[j].1 + sin * turn[j].0);
            }
            re += (part_re[0] + part_re[1]) + (part_re[2] + part_re[3]);
            im += (part_im[0] + part_im[1]) + (part_im[2] + part_im[3]);
        }
        Transform { re: re - self.fixed - c * self.linear, im: im - u * self.linear }
    }
}

/// Compensated summation.
#[derive(Default)]
struct Sum {
    total: f64,
    lost: f64,
}

impl Sum {
    fn add(&mut self, x: f64) {
        let y = x - self.lost;
        let next = self.total + y;
        self.lost = (next - self.total) - y;
        self.total = next;
    }
}

/// ln(1 + z) as (log modulus, argument), and a bound on its relative-to-one error in units of UNIT.
fn log_one_plus(z: &Transform) -> (f64, f64, f64) {
    let near = z.re.abs().max(z.im.abs()) < 0.4;
    let modulus = if near {
        0.5 * (z.re * (2.0 + z.re) + z.im * z.im).ln_1p()
    } else {
        (1.0 + z.re).hypot(z.im).ln()
    };
    let size = z.re.hypot(z.im);
    (modulus, z.im.atan2(1.0 + z.re), if near { 12.0 * size } else { 12.0 * (1.0 + size) })
}

impl Line {
    /// The line Re s = c for thresholds near t. `spread` is the standard deviation along it, and
    /// `log_size` the logarithm of the value in units of e^{T ln K(c) - ct}, roughly.
    pub(super) fn new(
        parts: &[Times],
        zone: Zone,
        c: f64,
        t: f64,
        spread: f64,
        log_size: f64,
        rough: &dyn Fn(f64) -> f64,
    ) -> Result<Self, Obstacle> {
        let log_size = log_size.min(0.0);
        let (low, high) = zone.ends();
        let level = rough(c);
        let (left, left_length) = alias(zone, c, t, level, log_size, low, spread, -1.0, rough);
        let (right, right_length) = alias(zone, c, t, level, log_size, high, spread, 1.0, rough);
        let length = left_length.max(right_length);
        if !(length.is_finite() && length > 0.0) {
            return Err(Obstacle::SlowDecay);
        }
        let spacing = 2.0 * PI / length;
        let decay = Decay::find(parts, c, spacing, log_size, spread)?;
        let count = (decay.height / spacing).ceil() + 1.0;
        if !(count <= MOST_NODES) {
            return Err(Obstacle::SlowDecay);
        }
        let count = count as usize;
        let height = spacing * count as f64;
        let mut nodes = vec![(0.0, 0.0, 0.0, 0.0); count];
        let mut bounds = [0.0; 2];
        for part in parts {
            let demands = [(c, height), (left, 0.0), (right, 0.0)]
                .map(|(tilt, height)| Demand::new(&part.law, tilt, height));
            let wanted = (log_size.exp() * (-TOLERANCE).exp() / part.times).max(1e-19 / part.times);
            let grid = Grid::new(&part.law, &demands, wanted)?;
            if grid.points.len() as f64 * count as f64 > 2e7 {
                return Err(Obstacle::TooFine);
            }
            let mut error =
                grid.quadrature * demands[0].scale.exp() + round_off(&grid.points, c, height);
            let mut turned =
                (part.times <= MOST_TURNED).then(|| Turned::new(&grid.points, c, spacing, height));
            if let Some(turned) = &turned {
                error += turned.error;
            }
            for (k, node) in nodes.iter_mut().enumerate() {
                if k % 64 == 0 {
                    crate::patience::look();
                }
                let u = spacing * k as f64;
                let z = match &mut turned {
                    Some(turned) => turned.at(k, c, u),
                    None => transform(&grid.points, c, u),
                };
                let (log, argument, units) = log_one_plus(&z);
                let modulus = log.exp();
                let slip = error / (modulus - error).max(f64::MIN_POSITIVE) + UNIT * units;
                node.0 += part.times * log;
                node.1 += part.times * argument;
                node.2 += part.times * slip + UNIT * part.times * (log.abs() + argument.abs());
                // Where the modulus drowns in its error, a bound on the node itself.
                node.3 += part.times * ((modulus + error).ln() + 4.0 * UNIT);
            }
            for (bound, demand) in bounds.iter_mut().zip(&demands[1..]) {
                let z = transform(&grid.points, demand.tilt, 0.0).re;
                let error = grid.quadrature * demand.scale.exp()
                    + round_off(&grid.points, demand.tilt, 0.0);
                *bound += part.times * ((z + error).ln_1p() + 8.0 * UNIT);
            }
        }
        let level = nodes[0].0;
        let alias = |tilt: f64, bound: f64| {
            let exact = tilt == 0.0 || tilt == 1.0;
            let bound = if exact { 0.0 } else { bound };
            Alias { tilt, log_bound: bound + zone.log_chernoff(tilt) + UNIT * 64.0 * bound.abs() }
        };
        Ok(Self {
            zone,
            c,
            spacing,
            level,
            truncation: decay.log_ratio.exp() * (1.0 + 1e-9) / (PI * spacing * (count - 1) as f64)
                * nodes[0].2.min(1.0).exp(),
            aliases: [alias(left, bounds[0]), alias(right, bounds[1])],
            nodes,
        })
    }

    /// E f(Y - t).
    pub(super) fn value(&self, t: f64) -> Value {
        let c = self.c;
        let sign = if self.zone == Zone::Between { -1.0 } else { 1.0 };
        let (mut sum, mut slope, mut round) = (0.0, 0.0, 0.0);
        for (k, &(log, argument, error, most)) in self.nodes.iter().enumerate() {
            let u = self.spacing * k as f64;
            let size = (log - self.level).exp();
            let (sin, cos) = (argument - u * t).sin_cos();
            let (a, b) = (c * (c - 1.0) - u * u, u * (2.0 * c - 1.0));
            let norm = 1.0 / (a * a + b * b);
            let (re, im) = (a * norm, -b * norm);
            let term_re = size * (cos * re - sin * im);
            let term_im = size * (cos * im + sin * re);
            let factor = if k == 0 { 0.5 } else { 1.0 };
            sum += factor * term_re;
            slope -= factor * (c * term_re - u * term_im);
            let unit = UNIT
                * (24.0
                    + 4.0 * u * t.abs()
                    + 2.0 * argument.abs()
                    + 2.0 * (log - self.level).abs());
            let slip = error + unit;
            // |e^z - 1| <= 1.3 |z| for |z| < 1/2; beyond that both are bounded by their size.
            let off = if slip < 0.5 { 1.3 * slip * size } else { size + (most - self.level).exp() };
            round += factor * off * norm.sqrt();
        }
        let scale = self.spacing / PI;
        let mantissa = sign * scale * sum;
        let terms = self.nodes.len() as f64;
        let round = scale * round * (1.0 + 1e-9)
            + (terms + 8.0) * UNIT * scale * self.sizes()
            + self.truncation;
        let log_scale = self.level - c * t;
        let length = 2.0 * PI / self.spacing;
        let alias: f64 = self
            .aliases
            .iter()
            .map(|alias| {
                let ratio = (-(alias.tilt - c).abs() * length).exp();
                if ratio >= 0.5 {
                    return f64::INFINITY;
                }
                let log = alias.log_bound - alias.tilt * t - log_scale;
                (log + 1e-9).exp() * ratio / (1.0 - ratio)
            })
            .sum();
        // The level and ct are rounded as well.
        let common = UNIT
            * (8.0 + self.level.abs() + 2.0 * (c * t).abs() + log_scale.abs())
            * mantissa.abs();
        Value {
            log_scale,
            mantissa,
            below: round + alias + common,
            above: round + common,
            slope: sign * scale * slope,
        }
    }

    /// Sum of the moduli of all terms.
    fn sizes(&self) -> f64 {
        let c = self.c;
        self.nodes
            .iter()
            .enumerate()
            .map(|(k, node)| {
                let u = self.spacing * k as f64;
                let (a, b) = (c * (c - 1.0) - u * u, u * (2.0 * c - 1.0));
                (node.0 - self.level).exp() / a.hypot(b)
            })
            .sum()
    }
}

/// The period that the aliases of a line need.
pub(super) fn period(
    zone: Zone,
    c: f64,
    t: f64,
    log_size: f64,
    spread: f64,
    rough: &dyn Fn(f64) -> f64,
) -> f64 {
    let (low, high) = zone.ends();
    let level = rough(c);
    let size = log_size.min(0.0);
    let left = alias(zone, c, t, level, size, low, spread, -1.0, rough).1;
    left.max(alias(zone, c, t, level, size, high, spread, 1.0, rough).1)
}

/// The second tilt on one side and the period that its aliases need.
#[expect(clippy::too_many_arguments, reason = "one place, one caller")]
fn alias(
    zone: Zone,
    c: f64,
    t: f64,
    level: f64,
    log_size: f64,
    end: f64,
    spread: f64,
    sign: f64,
    rough: &dyn Fn(f64) -> f64,
) -> (f64, f64) {
    let mut best = (c, f64::INFINITY);
    let mut consider = |tilt: f64| {
        let distance = (tilt - c).abs();
        let inside = if sign > 0.0 { tilt <= end } else { tilt >= end };
        if !inside || distance <= 0.0 {
            return;
        }
        let bound = if tilt == 0.0 || tilt == 1.0 { 0.0 } else { rough(tilt) };
        let excess = bound + zone.log_chernoff(tilt) - tilt * t - (level - c * t) - log_size
            + TOLERANCE
            + 0.5;
        let length = (excess / distance).max(1.0 / distance);
        if excess.is_finite() && length < best.1 {
            best = (tilt, length);
        }
    };
    if end.is_finite() {
        consider(end);
    }
    let mut step = 0.25;
    while step < 20.0 {
        consider(c + sign * step / spread);
        step *= 1.5;
    }
    best
}

/// ln K of a law at a real tilt, with first and second derivatives: to choose places by.
pub(super) fn cumulant(points: &[Point], c: f64) -> (f64, f64, f64) {
    let (mut value, mut first, mut second) = (0.0, 0.0, 0.0);
    for point in points {
        let l = point.loss;
        let lifted = l.exp_m1();
        let mut add = |a: f64, sign: f64| {
            let grown = (a * l).exp_m1();
            value += point.weight * (grown - a * lifted);
            first += point.weight * sign * (l * (1.0 + grown) - lifted);
            second += point.weight * l * l * (1.0 + grown);
        };
        add(c, 1.0);
        if point.mirror {
            add(1.0 - c, -1.0);
        }
    }
    let k = 1.0 + value;
    (value.ln_1p(), first / k, second / k - (first / k) * (first / k))
}

/// A grid for choosing places: real tilts between two ends.
pub(super) fn rough_points(law: &Law, low: f64, high: f64) -> Result<Vec<Point>, TooFine> {
    let demands = [low, high].map(|tilt| Demand::new(law, tilt, 0.0));
    Ok(Grid::new(law, &demands, 1e-9)?.points)
}
