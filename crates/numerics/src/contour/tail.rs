//! A bound on |A(c + iu)| for all u beyond a height, by moving the path of integration.
//!
//! A(c + iu) = integral of N(0)(x) P^{c+iu} Q^{1-c-iu} dx (P, Q relative to N(0)) may be taken
//! along x + i y(x) for any smooth y inside the strip of analyticity, where
//! |integrand| = N(0)(x) e^{y^2/(2 s^2)} |P|^c |Q|^{1-c} e^{-u (arg P - arg Q)}.
//! With y > 0 the argument is positive, so for a fixed path the bound falls as u grows: checked at
//! one height, it holds for every greater one. For P = N(1), Q = N(0) the constant path y = u
//! gives the exact modulus.

use super::grid::Grid;
use crate::mixture::MixtureRatio;

/// A fixed path: log of |A(c+iu)| / A(c) is at most `log_ratio(u)`, decreasing in u.
pub(crate) struct Path {
    /// Tilted weights, summing to 1.
    share: Vec<f64>,
    /// Growth of the modulus off the real axis.
    growth: Vec<f64>,
    /// arg P - arg Q.
    angle: Vec<f64>,
}

/// Points lighter than this part of the whole are left out.
const FLOOR: f64 = 1e-40;

impl Path {
    /// The better of two families of paths at height `u`: constant, or following the posterior
    /// (which leaves the bulk on the real axis where it contributes nothing).
    pub(crate) fn best(pair: &MixtureRatio, grid: &Grid, c: f64, u: f64) -> Self {
        crate::patience::look();
        let top = tilted_top(grid, c);
        let mut total = 0.0;
        let tilted: Vec<f64> = (0..grid.len())
            .map(|j| {
                let w = (grid.log_weight[j] + c * grid.log_ratio[j] - top).exp();
                total += w;
                w
            })
            .collect();
        let scale2 = pair.scale() * pair.scale();
        let sides = if pair.one_sided() { 1.0 } else { 2.0 };
        let full = sides * pair.reach();
        let cap = 0.8 * std::f64::consts::PI * scale2 / pair.reach();
        // Second-order gain and cost of y = d (constant) and y = d r(x), r in [0, 1].
        let (mut gain0, mut cost0, mut gain1, mut cost1) = (0.0, 1.0 / scale2, 0.0, 0.0);
        let mut shifts = Vec::with_capacity(grid.len());
        let floor = FLOOR * total;
        for (j, &w) in tilted.iter().enumerate() {
            if w <= floor {
                shifts.push((0.0, 0.0));
                continue;
            }
            let (shift, slope) = pair.posterior_shift(grid.x[j]);
            let (r, dr) = (shift / full, slope / full);
            let share = w / total;
            let slant = shift / scale2;
            let curvature = c * slope / scale2;
            gain0 += share * slant;
            cost0 -= share * curvature.min(0.5 / scale2);
            gain1 += share * slant * r;
            cost1 += share * (r * r / scale2 + dr * dr - r * r * curvature.min(0.5 / scale2));
            shifts.push((r, dr));
        }
        let constant = (u * gain0 / cost0).min(cap);
        let bent = if cost1 > 0.0 { (u * gain1 / cost1).min(cap) } else { 0.0 };
        let capped = constant >= cap || bent >= cap;
        // Second order tells which is better while neither is cut short.
        let (flat, following) =
            (gain0 * gain0 / cost0, gain1 * gain1 / cost1.max(f64::MIN_POSITIVE));
        if !capped && flat > 1.2 * following {
            return Self::along(pair, grid, c, &tilted, total, |_| (constant, 0.0));
        }
        if !capped && following > 1.2 * flat {
            return Self::along(pair, grid, c, &tilted, total, |j| {
                (bent * shifts[j].0, bent * shifts[j].1)
            });
        }
        let straight = Self::along(pair, grid, c, &tilted, total, |_| (constant, 0.0));
        let curved = Self::along(pair, grid, c, &tilted, total, |j| {
            (bent * shifts[j].0, bent * shifts[j].1)
        });
        if straight.log_ratio(u) < curved.log_ratio(u) { straight } else { curved }
    }

    /// The constant path y = d; at u < 0 the bound is that on the opposite side of the strip.
    pub(crate) fn straight(pair: &MixtureRatio, grid: &Grid, c: f64, d: f64) -> Self {
        Self::masked(pair, grid, c, |_| (d, 0.0), |_, _| 0.0)
    }

    /// A given path (x to y and its slope) on a masked grid; `mask` bounds the growth of the mask.
    pub(crate) fn masked(
        pair: &MixtureRatio,
        grid: &Grid,
        c: f64,
        path: impl Fn(f64) -> (f64, f64),
        mask: impl Fn(f64, f64) -> f64,
    ) -> Self {
        let top = tilted_top(grid, c);
        let tilted: Vec<f64> = (0..grid.len())
            .map(|j| (grid.log_weight[j] + c * grid.log_ratio[j] - top).exp())
            .collect();
        let total = tilted.iter().sum();
        let mut out = Self::along(pair, grid, c, &tilted, total, |j| path(grid.x[j]));
        let kept = (0..grid.len()).filter(|&j| tilted[j] > FLOOR * total);
        for (growth, j) in out.growth.iter_mut().zip(kept) {
            *growth += mask(grid.x[j], path(grid.x[j]).0);
        }
        out
    }

    fn along(
        pair: &MixtureRatio,
        grid: &Grid,
        c: f64,
        tilted: &[f64],
        total: f64,
        path: impl Fn(usize) -> (f64, f64),
    ) -> Self {
        let scale2 = pair.scale() * pair.scale();
        let mut out = Self { share: Vec::new(), growth: Vec::new(), angle: Vec::new() };
        for (j, &w) in tilted.iter().enumerate() {
            // Dropped points can only carry e^{growth} of their share; growth is bounded by the cap.
            if w <= FLOOR * total {
                continue;
            }
            let (y, slope) = path(j);
            let x = grid.x[j];
            let logs = pair.complex_logs(x, y);
            let growth = y * y / (2.0 * scale2)
                + c * (logs.numerator.0 - pair.log_numerator(x))
                + (1.0 - c) * (logs.denominator.0 - pair.log_denominator(x))
                + 0.5 * (slope * slope).ln_1p();
            out.share.push(w / total);
            out.growth.push(growth);
            out.angle.push(logs.numerator.1 - logs.denominator.1);
        }
        out
    }

    /// log of the bound on |A(c+iu)| / A(c).
    pub(crate) fn log_ratio(&self, u: f64) -> f64 {
        let change: f64 = self
            .share
            .iter()
            .zip(&self.growth)
            .zip(&self.angle)
            .map(|((&share, &growth), &angle)| share * (growth - u * angle).exp_m1())
            .sum();
        change.max(-1.0 + 1e-300).ln_1p()
    }
}

fn tilted_top(grid: &Grid, c: f64) -> f64 {
    grid.log_weight
        .iter()
        .zip(&grid.log_ratio)
        .map(|(lw, l)| lw + c * l)
        .fold(f64::NEG_INFINITY, f64::max)
}
