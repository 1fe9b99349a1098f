//! Quadrature of K(s) - 1 = sum over strands of the integral of
//! r(s, l) = e^{sl} - 1 - s (e^l - 1), l = ln W(x), with its error.
//!
//! Both subtracted terms integrate to zero over the whole law, so that the atom at 0 has no share and
//! a transform that is nearly 1 keeps its digits. A mirrored strand has r(1-s, l).
//!
//! Gauss-Legendre panels. For f analytic in the Bernstein ellipse E_rho of a panel of half-width a and
//! |f| <= M there, the n-point rule errs by at most
//! a (64/15) M rho^{-2(n-1)} / (1 - rho^-2) (Trefethen, Approximation Theory and Approximation
//! Practice, theorem 19.3). On |Im z| <= y all components of N and D lie in a cone of angle
//! theta = y reach, so |N| <= N(Re z), |N| >= cos(theta/2) N(Re z), and
//! |arg N| <= y (posterior mean of the centres at Re z) / cos(theta/2).

use super::law::{Law, Strand, slopes};
use crate::elementary::{cos, exp, exp_m1, hypot, ln, powi};
use crate::mixture::LogsAndMeans;
use std::sync::OnceLock;

const POINTS: usize = 20;
const UNIT: f64 = f64::EPSILON / 2.0;
const LN_SQRT_TWO_PI: f64 = 0.918_938_533_204_672_8;

/// What a grid must serve: a tilt, and frequencies up to a height.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    pub(super) tilt: f64,
    pub(super) height: f64,
    /// ln of the unit in which the error is counted: about K(tilt).
    pub(super) scale: f64,
}

impl Demand {
    pub(super) fn new(law: &Law, tilt: f64, height: f64) -> Self {
        let mut scale = ln(law.atom.max(1e-12));
        for strand in &law.strands {
            for (c, _) in strand.tilts(tilt) {
                let (from, to) = strand.extent(c);
                let step = (to - from) / 60.0;
                for index in 0..=60 {
                    let x = from + step * f64::from(index);
                    let here = strand.height(x, c) + ln(0.3 * strand.weight);
                    scale = scale.max(here);
                }
            }
        }
        Self { tilt, height, scale }
    }
}

/// Points of all strands.
#[derive(Debug)]
pub(super) struct Grid {
    pub(super) points: Vec<Point>,
    /// Bound on the error of K(s) by panels, tails and the left-out ends, for every demand in its
    /// unit.
    pub(super) quadrature: f64,
}

/// One point: its weight (of Q), its loss, whether it has a mirror image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) weight: f64,
    pub(super) loss: f64,
    /// e^loss - 1.
    pub(super) lifted: f64,
    pub(super) mirror: bool,
    /// Bounds on the errors of the weight (relative) and of the loss (absolute), the displacement
    /// of the node included.
    pub(super) weight_slip: f64,
    pub(super) loss_slip: f64,
}

/// Too many points would be needed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TooFine;

const MOST_POINTS: usize = 100_000;

impl Grid {
    /// A grid whose quadrature error is at most `wanted`.
    pub(super) fn new(law: &Law, demands: &[Demand], wanted: f64) -> Result<Self, TooFine> {
        let mut grid = Self { points: Vec::new(), quadrature: 0.0 };
        let share = wanted / law.strands.len() as f64;
        for strand in &law.strands {
            grid.add(strand, demands, share / strand.weight.max(1e-300), law.weight_error)?;
        }
        Ok(grid)
    }

    fn add(
        &mut self,
        strand: &Strand,
        demands: &[Demand],
        wanted: f64,
        weight_error: f64,
    ) -> Result<(), TooFine> {
        let terms = Term::of(strand, demands);
        let depth = ln((0.05 * wanted).max(1e-300));
        let (low, low_tail) = match strand.from.is_finite() {
            true => (strand.from, 0.0),
            false => end(strand, &terms, depth, -1.0).ok_or(TooFine)?,
        };
        let (high, high_tail) = end(strand, &terms, depth, 1.0).ok_or(TooFine)?;
        let high = high.max(low + 1.0);
        self.quadrature += strand.weight * (low_tail + high_tail) * 1.001;
        // Panels are halved until each is good enough for its share of the budget.
        let width = (2.0 / strand.pair.reach()).min(1.5);
        let first = ((high - low) / width).ceil();
        if !(first <= 1000.0) {
            return Err(TooFine);
        }
        let budget = 0.5 * wanted / first;
        let step = (high - low) / first;
        let mut waiting: Vec<(f64, f64, u32)> = (0..first as usize)
            .rev()
            .map(|index| {
                let left = low + step * index as f64;
                (left, if index + 1 == first as usize { high } else { left + step }, 0)
            })
            .collect();
        while let Some((left, right, depth)) = waiting.pop() {
            let error = panel_error(strand, &terms, left, right);
            // Halves get a third each: what is halved often has a little less than its share.
            if error <= budget * powi(0.45f64, depth as i32) {
                self.quadrature += strand.weight * error * 1.001;
                self.fill(strand, left, right - left, weight_error);
                if self.points.len() > MOST_POINTS {
                    return Err(TooFine);
                }
                continue;
            }
            if depth > 12 {
                return Err(TooFine);
            }
            let middle = 0.5 * (left + right);
            waiting.push((middle, right, depth + 1));
            waiting.push((left, middle, depth + 1));
        }
        Ok(())
    }

    fn fill(&mut self, strand: &Strand, low: f64, step: f64, weight_error: f64) {
        static RULE: OnceLock<([f64; POINTS], [f64; POINTS])> = OnceLock::new();
        let (nodes, weights) = RULE.get_or_init(crate::legendre::rule);
        {
            let middle = low + 0.5 * step;
            for (node, weight) in nodes.iter().zip(weights) {
                let x = middle + 0.5 * step * node;
                let seen = strand.pair.logs_and_means(x);
                let denominator = seen.denominator;
                let loss = seen.numerator - denominator;
                let log = denominator - 0.5 * x * x - LN_SQRT_TWO_PI;
                let reach = strand.pair.reach();
                let displaced = UNIT * (4.0 * x.abs() + 8.0 * step);
                let slope = (seen.means.0 - seen.means.1).abs();
                self.points.push(Point {
                    weight: strand.weight * 0.5 * step * weight * exp(log),
                    loss,
                    lifted: exp_m1(loss),
                    mirror: strand.mirror,
                    weight_slip: UNIT * (40.0 + x * x + 4.0 * log.abs())
                        + displaced * (x.abs() + reach)
                        + weight_error,
                    loss_slip: displaced * slope + own_slip(strand, x, &seen, weight_error),
                });
            }
        }
    }
}

/// Error of ln N - ln D at a given x: each component's exponent is good to a few units.
fn own_slip(strand: &Strand, x: f64, seen: &LogsAndMeans, weight_error: f64) -> f64 {
    let side = |of_p: bool, log: f64| -> f64 {
        let size: f64 = strand
            .pair
            .with_zero(of_p)
            .filter(|component| component.centre != 0.0)
            .map(|component| {
                let e = component.centre * (x - 0.5 * component.centre);
                let change = component.weight * exp(e - log);
                let still = component.weight * exp(-log);
                ((8.0 + 4.0 * e.abs()) * UNIT + weight_error) * (change - still).abs()
                    + 6.0 * UNIT * e.abs() * change
            })
            .sum();
        size + 4.0 * UNIT * log.abs()
    };
    side(true, seen.numerator) + side(false, seen.denominator)
}

/// Where a strand may end on one side, and a bound on what lies beyond.
fn end(strand: &Strand, terms: &[Term], depth: f64, sign: f64) -> Option<(f64, f64)> {
    let tail = |x: f64| -> f64 {
        terms
            .iter()
            .map(|&Term { tilt, log_factor, .. }| {
                // The slope away from zero is at least this beyond x.
                let slope = -strand.pulled(-sign * x, tilt, sign);
                if slope <= 0.1 {
                    return f64::INFINITY;
                }
                exp(strand.height(x, tilt) + log_factor - LN_SQRT_TWO_PI) / slope
            })
            .sum()
    };
    let mut x = sign;
    let limit = exp(depth).max(f64::MIN_POSITIVE);
    for _ in 0..4000 {
        let beyond = tail(x);
        if beyond <= limit {
            return Some((x, 1.01 * beyond));
        }
        x += sign * if beyond.is_finite() { 0.5 } else { 1.0 };
    }
    None
}

/// A term of r: its tilt, its highest frequency, and the logarithm of its factor, in units of the error.
#[derive(Clone, Copy, Debug)]
struct Term {
    tilt: f64,
    frequency: f64,
    log_factor: f64,
}

impl Term {
    /// e^{sl} for every demand; 1 and e^l, which have the same shape for all, once each.
    fn of(strand: &Strand, demands: &[Demand]) -> Vec<Self> {
        let mut terms = Vec::with_capacity(2 * demands.len() + 2);
        let (mut ones, mut lifted) = (0.0f64, 0.0f64);
        for demand in demands {
            let unit = exp(-demand.scale);
            let (mut one, mut other) = (0.0, 0.0);
            for (tilt, _) in strand.tilts(demand.tilt) {
                let size = hypot(tilt, demand.height);
                one += (1.0 + size) * unit;
                other += size * unit;
                terms.push(Self { tilt, frequency: demand.height, log_factor: -demand.scale });
            }
            (ones, lifted) = (ones.max(one), lifted.max(other));
        }
        terms.push(Self { tilt: 0.0, frequency: 0.0, log_factor: ln(ones) });
        terms.push(Self { tilt: 1.0, frequency: 0.0, log_factor: ln(lifted) });
        terms
    }
}

/// What the bounds need to know about a stretch, whatever the tilt.
#[derive(Clone, Copy)]
struct Edge {
    x: f64,
    /// Posterior means of P and of Q.
    means: (f64, f64),
}

impl Edge {
    fn at(strand: &Strand, x: f64) -> Self {
        Self { x, means: strand.pair.posterior_means(x) }
    }
}

/// The bound on a panel's error, the best over some ellipses. A demand has at most four terms (two of them
/// for a strand with a mirror image), and their sum is at most four times the largest.
fn panel_error(strand: &Strand, terms: &[Term], left: f64, right: f64) -> f64 {
    const PIECES: usize = 4;
    let (half, middle) = (0.5 * (right - left), 0.5 * (left + right));
    let reach = strand.pair.reach();
    let one_sided = strand.pair.one_sided();
    let mut best = f64::INFINITY;
    for rho in [1.7f64, 2.3, 3.0, 4.0, 5.5, 8.0, 12.0] {
        let (along, across) = (0.5 * half * (rho + 1.0 / rho), 0.5 * half * (rho - 1.0 / rho));
        let theta = across * reach;
        if theta > 1.5 {
            break;
        }
        let cosine = cos(0.5 * theta);
        let cone = -ln(cosine);
        let piece = 2.0 * along / PIECES as f64;
        let mut largest = f64::NEG_INFINITY;
        let mut from = Edge::at(strand, middle - along);
        for index in 1..=PIECES {
            let to = Edge::at(strand, middle - along + piece * index as f64);
            // |arg N| is the integral of Re (ln N)', and |(ln N)'| <= posterior mean / cos(theta/2).
            let turn = across * strand.means(from.means, to.means) / cosine;
            let place = 0.5 * (from.x + to.x);
            let (n, d) = (strand.pair.log_numerator(place), strand.pair.log_denominator(place));
            for &Term { tilt, frequency, log_factor } in terms {
                let negative =
                    (-tilt).max(0.0) + if one_sided { 0.0 } else { (tilt - 1.0).max(0.0) };
                let (low, high) = slopes((from.x, from.means), (to.x, to.means), tilt);
                let height = -0.5 * place * place
                    + tilt * n
                    + (1.0 - tilt) * d
                    + 0.5 * (to.x - from.x) * low.abs().max(high.abs());
                largest = largest.max(height + negative * cone + frequency * turn + log_factor);
            }
            from = to;
        }
        let log = largest + 0.5 * across * across - LN_SQRT_TWO_PI;
        let factor = powi(rho, -2 * (POINTS as i32 - 1)) / (1.0 - powi(rho, -2));
        let bound = 4.0 * half * (64.0 / 15.0) * exp(log) * factor;
        if bound > best {
            break;
        }
        best = bound;
    }
    best
}
