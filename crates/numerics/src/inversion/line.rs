//! The inversion integral along one vertical line, with every error carried.

use super::decay::Decay;
use super::grid::{Demand, Grid, TooFine};
use super::nodes::{Tilted, Transform};
use super::rough::Rough;
use super::solve::Times;
use crate::contour::Zone;
use crate::elementary::{atan2, exp, hypot, ln, ln_1p, powi, sin_cos};
use std::f64::consts::PI;
use std::ops::Range;

const UNIT: f64 = f64::EPSILON / 2.0;
const MOST_NODES: f64 = 120_000.0;
/// Points times nodes: about a second of work.
const MOST_TERMS: f64 = 4e8;
/// Parts of a line's height for which errors are bounded separately.
pub(super) const RUNGS: usize = 8;

/// The top of a part, of the height.
pub(super) fn top_of_rung(rung: usize) -> f64 {
    powi((rung + 1) as f64 / RUNGS as f64, 2)
}

/// Where a line is to stand, and how good it is to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineRequest {
    pub(super) zone: Zone,
    pub(super) c: f64,
    /// Thresholds are near this.
    pub(super) t: f64,
    /// The standard deviation along the line.
    pub(super) spread: f64,
    /// The logarithm of the value in units of e^{T ln K(c) - ct}, roughly; at most 0.
    pub(super) log_size: f64,
    /// Minus the natural logarithm of the part of the value to which each error is pushed.
    pub(super) tolerance: f64,
}

impl LineRequest {
    /// The period that the aliases of the line need.
    pub(super) fn period(&self, rough: &Rough<'_>) -> f64 {
        let [left, right] = self.aliases(rough);
        left.1.max(right.1)
    }

    /// On either side the second tilt and the period that its aliases need.
    fn aliases(&self, rough: &Rough<'_>) -> [(f64, f64); 2] {
        let level = rough.level(self.c);
        let (low, high) = self.zone.ends();
        [(low, -1.0), (high, 1.0)].map(|(end, sign)| self.alias(level, end, sign, rough))
    }

    fn alias(&self, level: f64, end: f64, sign: f64, rough: &Rough<'_>) -> (f64, f64) {
        let &Self { zone, c, t, spread, log_size, tolerance } = self;
        let mut best = (c, f64::INFINITY);
        let mut consider = |tilt: f64| {
            let distance = (tilt - c).abs();
            let inside = if sign > 0.0 { tilt <= end } else { tilt >= end };
            if !inside || distance <= 0.0 {
                return false;
            }
            let bound = if tilt == 0.0 || tilt == 1.0 { 0.0 } else { rough.level(tilt) };
            let excess = bound + zone.log_chernoff(tilt) - tilt * t - (level - c * t) - log_size
                + tolerance
                + 0.5;
            let length = (excess / distance).max(1.0 / distance);
            let better = excess.is_finite() && length < best.1;
            if better {
                best = (tilt, length);
            }
            better
        };
        // The period falls with the distance and then rises.
        let (mut step, mut worse) = (0.25, 0);
        while step < 20.0 && worse < 2 {
            worse = if consider(c + sign * step / spread) { 0 } else { worse + 1 };
            step *= 1.5;
        }
        if end.is_finite() {
            consider(end);
        }
        best
    }
}

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

impl Value {
    /// The width of what is certain, as a part of the value.
    pub(super) fn relative(&self) -> f64 {
        (self.below + self.above) / self.mantissa
    }
}

/// T ln K(c + iku) at the nodes, and what bounds the rest.
#[derive(Debug)]
pub(super) struct Line {
    zone: Zone,
    c: f64,
    spacing: f64,
    nodes: Vec<Node>,
    level: f64,
    /// What the nodes beyond the last add at most, in units of e^level.
    truncation: f64,
    aliases: [Alias; 2],
}

/// The product of transforms at a node: log modulus, argument, their error, and the log of a bound on the
/// modulus.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    log: f64,
    argument: f64,
    error: f64,
    most: f64,
}

impl Node {
    /// Multiplies by the power of a transform that is known up to an error.
    fn add(&mut self, z: &Transform, times: f64, error: f64) {
        let (log, argument, units) = log_one_plus(z);
        let modulus = exp(log);
        let slip = error / (modulus - error).max(f64::MIN_POSITIVE) + UNIT * units;
        self.log += times * log;
        self.argument += times * argument;
        // The products and the sums are rounded.
        self.error += times * slip
            + UNIT * times * (log.abs() + argument.abs())
            + UNIT * (self.log.abs() + self.argument.abs());
        // Where the modulus drowns in its error, a bound on the node itself.
        let bound = ln(modulus + error);
        self.most += times * (bound + UNIT * (4.0 + 2.0 * bound.abs()));
        self.most += 2.0 * UNIT * self.most.abs();
    }
}

/// 1/(s(s-1)) at s = c + iu: real part, imaginary part, modulus.
fn kernel_at(c: f64, u: f64) -> (f64, f64, f64) {
    let (a, b) = (c * (c - 1.0) - u * u, u * (2.0 * c - 1.0));
    let norm = 1.0 / (a * a + b * b);
    (a * norm, -b * norm, norm.sqrt())
}

/// A second tilt with a bound on its T ln K.
#[derive(Clone, Copy, Debug)]
struct Alias {
    tilt: f64,
    log_bound: f64,
}

/// ln(1 + z) as (log modulus, argument), and a bound on its relative-to-one error in units of UNIT.
fn log_one_plus(z: &Transform) -> (f64, f64, f64) {
    let near = z.re.abs().max(z.im.abs()) < 0.4;
    let modulus = if near {
        0.5 * ln_1p(z.re * (2.0 + z.re) + z.im * z.im)
    } else {
        ln(hypot(1.0 + z.re, z.im))
    };
    let size = hypot(z.re, z.im);
    (modulus, atan2(z.im, 1.0 + z.re), if near { 12.0 * size } else { 12.0 * (1.0 + size) })
}

impl Line {
    /// The line Re s = c for thresholds near t.
    pub(super) fn new(
        parts: &[Times],
        rough: &mut Rough<'_>,
        place: &LineRequest,
    ) -> Result<Self, Obstacle> {
        let &LineRequest { zone, c, spread, log_size, tolerance, .. } = place;
        let [(left, left_length), (right, right_length)] = place.aliases(rough);
        let length = left_length.max(right_length);
        if !(length.is_finite() && length > 0.0) {
            return Err(Obstacle::SlowDecay);
        }
        let spacing = 2.0 * PI / length;
        let decay = Decay::find(rough, c, spacing, log_size - tolerance, spread)?;
        let count = (decay.height / spacing).ceil() + 1.0;
        if !(count <= MOST_NODES) {
            return Err(Obstacle::SlowDecay);
        }
        let count = count as usize;
        // What an error of T ln K may be: the kernel is 1/(c(c-1)) at most, over some spreads.
        let kernel = (c * (c - 1.0)).abs() * spread;
        let log_wanted = (log_size + ln(kernel)).min(0.0) - tolerance;
        // From this rung on the product is far too small to matter, and a coarse grid shows it.
        let free = |rung: usize| decay.falls[rung] + log_wanted - 2.0;
        let fallen = (1..RUNGS).find(|rung| free(*rung) > 8.0).unwrap_or(RUNGS);
        let top = |rung: usize| (count as f64 * top_of_rung(rung)).floor() as usize;
        let kept = if fallen < RUNGS { top(fallen - 1) + 1 } else { count };
        let mut nodes = vec![Node::default(); count];
        let mut bounds = [0.0; 2];
        for part in parts {
            let here = Demand::new(&part.law, c, 0.0);
            let demand = |rung: usize| {
                // An error matters less where the product has fallen. It leaves the value a size, or
                // lifts one that is far too small to matter, and not by too much.
                let slack = if rung < fallen {
                    (0.9 * decay.falls[rung] - 1.0).min(-log_wanted - 7.0)
                } else {
                    ln(0.4 * free(rung) / parts.len() as f64) - log_wanted
                };
                let height = spacing * top(rung).min(count) as f64;
                Demand { height, scale: here.scale + slack.max(0.0), ..here }
            };
            let mut add = |rungs: Range<usize>, others: &[f64]| -> Result<(), Obstacle> {
                let mut demands: Vec<Demand> = rungs.clone().map(demand).collect();
                demands.extend(others.iter().map(|tilt| {
                    let other = Demand::new(&part.law, *tilt, 0.0);
                    Demand { scale: other.scale + (-log_wanted - 5.0).max(0.0), ..other }
                }));
                let grid = Grid::new(&part.law, &demands, exp(log_wanted) / part.times)?;
                let from = if rungs.start == 0 { 0 } else { kept };
                let to = if rungs.end == RUNGS { count } else { kept };
                if grid.points.len() as f64 * (to - from) as f64 > MOST_TERMS {
                    return Err(Obstacle::TooFine);
                }
                let tilted = Tilted::new(&grid.points, c);
                let transforms = tilted.at_nodes(spacing, from..to);
                let mut done = from;
                for (rung, demand) in rungs.zip(&demands) {
                    let end = if rung + 1 == RUNGS { count } else { (top(rung) + 1).min(to) };
                    let error = grid.quadrature * exp(demand.scale)
                        + tilted.round_off(demand.height, spacing);
                    for k in done..end {
                        nodes[k].add(&transforms[k - from], part.times, error);
                    }
                    done = end.max(done);
                }
                for (tilt, bound) in [left, right].into_iter().zip(&mut bounds) {
                    let Some(index) = others.iter().position(|other| *other == tilt) else {
                        continue;
                    };
                    let demand = &demands[demands.len() - others.len() + index];
                    let tilted = Tilted::new(&grid.points, tilt);
                    let error = grid.quadrature * exp(demand.scale) + tilted.round_off(0.0, 0.0);
                    *bound += part.times * (ln_1p(tilted.real() + error) + 8.0 * UNIT);
                }
                Ok(())
            };
            // The moments of order 0 and 1 are 1.
            let others: Vec<f64> =
                [left, right].into_iter().filter(|tilt| *tilt != 0.0 && *tilt != 1.0).collect();
            add(0..fallen, &others)?;
            if fallen < RUNGS {
                add(fallen..RUNGS, &[])?;
            }
        }
        let level = nodes[0].log;
        let alias = |tilt: f64, bound: f64| {
            let exact = tilt == 0.0 || tilt == 1.0;
            let bound = if exact { 0.0 } else { bound };
            Alias { tilt, log_bound: bound + zone.log_chernoff(tilt) + UNIT * 64.0 * bound.abs() }
        };
        let beyond = exp(decay.log_ratio) * (1.0 + 1e-9) / (PI * spacing * (count - 1) as f64)
            * exp(nodes[0].error.min(1.0));
        let unused: f64 = nodes
            .drain(kept..)
            .zip(kept..)
            .map(|(node, k)| exp(node.most - level) * kernel_at(c, spacing * k as f64).2)
            .sum();
        Ok(Self {
            zone,
            c,
            spacing,
            level,
            truncation: beyond + spacing / PI * unused * (1.0 + 1e-9),
            aliases: [alias(left, bounds[0]), alias(right, bounds[1])],
            nodes,
        })
    }

    /// E f(Y - t).
    pub(super) fn value(&self, t: f64) -> Value {
        let c = self.c;
        let sign = if self.zone == Zone::Between { -1.0 } else { 1.0 };
        let (mut sum, mut slope, mut round) = (0.0, 0.0, 0.0);
        for (k, &Node { log, argument, error, most }) in self.nodes.iter().enumerate() {
            let u = self.spacing * k as f64;
            let size = exp(log - self.level);
            let (sin, cos) = sin_cos(argument - u * t);
            let (re, im, modulus) = kernel_at(c, u);
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
            let off = if slip < 0.5 { 1.3 * slip * size } else { size + exp(most - self.level) };
            round += factor * off * modulus;
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
                let ratio = exp(-(alias.tilt - c).abs() * length);
                if ratio >= 0.5 {
                    return f64::INFINITY;
                }
                let log = alias.log_bound - alias.tilt * t - log_scale;
                exp(log + 1e-9) * ratio / (1.0 - ratio)
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
                exp(node.log - self.level) * kernel_at(c, u).2
            })
            .sum()
    }
}
