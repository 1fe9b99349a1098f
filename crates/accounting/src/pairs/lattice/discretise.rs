//! One step on a lattice of losses: an upper pair that dominates it and a lower pair that it
//! dominates. See the proof in the parent module. All weights are tilted, weight(k) e^{c y_k - K},
//! because that is what keeps relative accuracy for tiny delta.

use super::balance::{Cell, Cut, dominated};
use super::step::{Kept, Step, UNIT};
use numerics::elementary::{exp, exp_m1, ln_1p};
use numerics::lattice::gauss::{REACH, rule_for};

/// Losses anchor + k * spacing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    pub anchor: f64,
    pub spacing: f64,
}

impl Grid {
    fn at(&self, k: i64) -> f64 {
        self.anchor + k as f64 * self.spacing
    }

    /// Bound on the rounding of `at`.
    fn error(&self, k: i64) -> f64 {
        2.0 * UNIT * (self.anchor.abs() + (k as f64 * self.spacing).abs())
    }
}

/// The tilt: weights are multiplied by exp(slope * loss - norm).
#[derive(Clone, Copy, Debug)]
pub(super) struct Tilt {
    pub slope: f64,
    pub norm: f64,
}

/// Tilted weights on consecutive lattice points.
#[derive(Clone, Debug)]
pub(super) struct Atoms {
    pub grid: Grid,
    pub first: i64,
    pub weights: Vec<f64>,
    /// Bound on the tilted mass outside the edges (upper pair only; the lower pair drops it).
    pub dropped: f64,
}

/// Cuts [from, to] into pieces short enough for the quadrature and hands out nodes:
/// (x, weight, relative remainder of the piece).
fn nodes(step: &Step, from: f64, to: f64, wanted: f64, mut visit: impl FnMut(f64, f64, f64)) {
    let mut left = from;
    while left < to {
        let distance = step.distance(left).max(step.distance(to.min(left + step.sigma)));
        let widest = 2.0 * REACH * step.sigma / (1.0 + distance);
        let right = if to - left <= widest {
            to
        } else {
            (left + widest).min(0.5 * (left + to)).max(left + 0.5 * widest)
        };
        let half = 0.5 * (right - left);
        let middle = 0.5 * (left + right);
        let reach = (half / step.sigma * (1.0 + distance)).min(REACH);
        let (rule, remainder) = rule_for(reach, wanted);
        for (node, weight) in rule.nodes.iter().zip(&rule.weights) {
            visit(middle + half * node, weight * half, remainder);
        }
        left = right;
    }
}

/// Connect-the-dots integrals over [from, to], a part of cell k.
fn integrate(step: &Step, grid: Grid, k: i64, tilt: Tilt, from: f64, to: f64) -> Cell {
    let h = grid.spacing;
    let bottom = grid.at(k);
    let shift = tilt.slope * bottom - tilt.norm;
    let bottom_error = grid.error(k);
    let shift_error = tilt.slope.abs() * bottom_error
        + 2.0 * UNIT * ((tilt.slope * bottom).abs() + tilt.norm.abs() + 1.0);
    let (grow, shrink) = (exp_m1(h), -exp_m1(-h));
    let mut cell = Cell::default();
    nodes(step, from, to, 1e-17 * h.min(1.0), |x, weight, remainder| {
        let density = step.log_density(x);
        let loss = step.loss(x);
        let above = (loss.value - bottom).clamp(0.0, h);
        let mass = weight * exp(density.value + shift);
        let split_error = mass * 1.3 * (loss.error + bottom_error + 3.0 * remainder) / h.min(1.0);
        let relative = density.error + shift_error + 16.0 * UNIT;
        let high = mass * -exp_m1(-above) / shrink;
        let low = mass * exp_m1(h - above) / grow;
        cell.high += high;
        cell.high_error += high * relative + split_error;
        cell.low += low;
        cell.low_error += low * relative + split_error;
    });
    cell
}

/// Mass of [from, to], a bound on its error, and its excess over losses of `base`, tilted there.
fn excess(step: &Step, base: f64, tilt: Tilt, from: f64, to: f64) -> (f64, f64, f64) {
    let shift = tilt.slope * base - tilt.norm;
    let shift_error = 4.0 * UNIT * ((tilt.slope * base).abs() + tilt.norm.abs() + 1.0);
    let (mut total, mut error, mut over) = (0.0, 0.0, 0.0);
    nodes(step, from, to, 1e-18, |x, weight, remainder| {
        let density = step.log_density(x);
        let mass = weight * exp(density.value + shift);
        total += mass;
        error += mass * (density.error + shift_error + 3.0 * remainder + 16.0 * UNIT);
        over += mass * -exp_m1(base - step.loss(x).value);
    });
    (total, error, over)
}

/// The range of cells that [low edge, high edge] touches.
fn cells(step: &Step, grid: Grid, edges: (f64, f64)) -> (i64, i64) {
    let index = |x: f64| ((step.loss(x).value - grid.anchor) / grid.spacing).floor() as i64;
    (index(edges.0), index(edges.1))
}

/// Positions of lattice points first+1 ..= last, with the two edges around them.
fn boundaries(
    step: &Step,
    grid: Grid,
    edges: (f64, f64),
    first: i64,
    last: i64,
    below: bool,
) -> Vec<f64> {
    let mut cuts = Vec::with_capacity((last - first + 2) as usize);
    cuts.push(edges.0);
    let mut x = edges.0;
    for k in first + 1..=last {
        x = step.position(grid.at(k), grid.error(k), x, below).clamp(x, edges.1);
        cuts.push(x);
    }
    cuts.push(edges.1);
    cuts
}

/// The dominating pair (connect the dots), cut to the edges; what is cut off is bounded.
pub(super) fn upper(step: &Step, grid: Grid, tilt: Tilt, kept: Kept) -> Atoms {
    let edges = (kept.low, kept.high);
    let (first, last) = cells(step, grid, edges);
    let cuts = boundaries(step, grid, edges, first, last, true);
    let mut weights = vec![0.0; (last - first + 2) as usize];
    let raise = tilt.slope * grid.spacing;
    let lift_above = exp(raise) * (1.0 + (12.0 + 4.0 * raise.abs()) * UNIT);
    for (i, pair) in cuts.windows(2).enumerate() {
        let cell = integrate(step, grid, first + i as i64, tilt, pair[0], pair[1]);
        weights[i] += (cell.low + cell.low_error) * (1.0 + 8.0 * UNIT);
        weights[i + 1] += (cell.high + cell.high_error) * lift_above;
    }
    let tail = |log: f64| exp(log - tilt.norm) * (1.0 + 1e-9);
    Atoms { grid, first, weights, dropped: tail(kept.log_left) + tail(kept.log_right) }
}

/// A bin at one end of the losses that is merged into a single atom.
struct EndBin {
    /// Where the bin ends.
    cut: f64,
    /// Its loss: not above the logarithm of its masses' ratio.
    loss: f64,
    mass: f64,
}

/// Merges the losses near a finite limit into one atom. The bin ends `target` cells away from
/// its own loss, so that what it leaves of the next cell can be balanced.
fn end_bin(
    step: &Step,
    spacing: f64,
    tilt: Tilt,
    edges: (f64, f64),
    target: f64,
) -> Option<EndBin> {
    let (limit, at_bottom) = match (step.infimum, step.supremum) {
        (Some(low), _) => (low, true),
        (None, Some(high)) => (high, false),
        (None, None) => return None,
    };
    let start = if at_bottom { edges.0 } else { edges.1 };
    let sign = if at_bottom { 1.0 } else { -1.0 };
    let (mut near, mut far) = (target, target + 3.0);
    let mut found = None;
    for _ in 0..9 {
        let reach = if found.is_none() { near } else { 0.5 * (near + far) };
        let cut = step.position(limit + sign * reach * spacing, 0.0, start, true);
        let (from, to) = if at_bottom { (edges.0, cut) } else { (cut, edges.1) };
        if !(from < to && from >= edges.0 && to <= edges.1) {
            break;
        }
        let (mass, mass_error, over) = excess(step, limit, tilt, from, to);
        let offset = -ln_1p(-over / mass);
        found = Some((cut, from, to, mass, mass_error, offset));
        if sign * (step.loss(cut).value - limit - offset) < target * spacing {
            near = reach;
        } else {
            far = reach;
        }
    }
    let (cut, from, to, mass, mass_error, offset) = found?;
    let loss_error = 2.0 * step.loss(from).error.max(step.loss(to).error);
    let error = loss_error + 8.0 * UNIT * limit.abs() + 1e-11 * offset.abs();
    let loss = limit + offset - error;
    let retilt = exp(tilt.slope * (loss - limit)) * (1.0 - 16.0 * UNIT);
    Some(EndBin { cut, loss, mass: (mass - mass_error) * retilt })
}

/// The dominated pair: every cell's mass goes to its two ends so that each lattice point keeps
/// its likelihood ratio exactly (a post-processing of the step), rounding down where it cannot.
pub(super) fn lower(
    step: &Step,
    spacing: f64,
    anchor: f64,
    tilt: Tilt,
    edges: (f64, f64),
) -> Atoms {
    let mut best: Option<(f64, Atoms)> = None;
    for target in [0.4, 0.55, 0.3, 0.75] {
        let (atoms, lost, has_bin) = lower_at(step, spacing, anchor, tilt, edges, target);
        let enough = lost * step.repeats as f64 <= 1e-9;
        if best.as_ref().is_none_or(|(least, _)| lost < *least) {
            best = Some((lost, atoms));
        }
        if enough || !has_bin {
            break;
        }
    }
    best.expect("at least one target was tried").1
}

fn lower_at(
    step: &Step,
    spacing: f64,
    anchor: f64,
    tilt: Tilt,
    edges: (f64, f64),
    target: f64,
) -> (Atoms, f64, bool) {
    let bin = end_bin(step, spacing, tilt, edges, target);
    let at_bottom = step.infimum.is_some();
    let grid = Grid { anchor: bin.as_ref().map_or(anchor, |bin| bin.loss), spacing };
    let edges = match &bin {
        Some(bin) if at_bottom => (bin.cut, edges.1),
        Some(bin) => (edges.0, bin.cut),
        None => edges,
    };
    let (first, last) = cells(step, grid, edges);
    let cuts = boundaries(step, grid, edges, first, last, false);
    let mut parts = Vec::with_capacity(cuts.len());
    for (i, pair) in cuts.windows(2).enumerate() {
        let k = first + i as i64;
        let mut cell = Cell::default();
        if pair[0] < pair[1] {
            let middle = 0.5 * (pair[0] + pair[1]);
            let half_loss = (step.loss(middle).value - grid.at(k)).clamp(0.0, spacing);
            let above = integrate(step, grid, k, tilt, middle, pair[1]);
            cell = integrate(step, grid, k, tilt, pair[0], middle);
            cell.add(above);
            cell.bound_gap(&above, half_loss, spacing);
        }
        parts.push(cell);
    }
    let cut = match &bin {
        Some(_) if at_bottom && first == 0 && parts.len() > 1 => Cut::First,
        Some(_) if !at_bottom && last == -1 && parts.len() > 1 => Cut::Last,
        _ => Cut::None,
    };
    let (mut weights, lost) = dominated(&parts, spacing, tilt.slope, cut);
    if let Some(bin) = &bin {
        // The bin's own lattice point is the anchor.
        if let Some(weight) = usize::try_from(-first).ok().and_then(|at| weights.get_mut(at)) {
            *weight += bin.mass.max(0.0) * (1.0 - UNIT);
        }
    }
    (Atoms { grid, first, weights, dropped: 0.0 }, lost, bin.is_some())
}
