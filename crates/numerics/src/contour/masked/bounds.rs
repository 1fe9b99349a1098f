//! Bounds for what the contour of M leaves out: class-2 steps that stay below the threshold,
//! runs of class-0 steps that reach it, and the transform beyond the last node.

use super::classes::{Known, Masked, high_step};
use super::masks::Class;
use crate::contour::grid::Grid;
use crate::contour::line::{LOG_TOLERANCE, Zone};
use crate::contour::smooth::Smoothing;
use crate::contour::transform;
use crate::elementary::{exp, exp_m1, ln, ln_1p, powi};
use std::f64::consts::PI;

/// Main part of H at threshold t.
pub(super) fn high_value(masked: &[Masked], t: f64) -> f64 {
    (high_mass(masked, true).value - exp(t) * high_mass(masked, false).value).max(0.0)
}

/// log of the best of several Chernoff bounds at threshold t.
pub(super) fn chernoff(list: &[(f64, f64)], t: f64) -> f64 {
    list.iter().map(|(tilt, bound)| bound - (tilt - 1.0) * t).fold(f64::INFINITY, f64::min)
}

/// Probability under P (or Q) that some step is of class 2. In one part 1 - (1 - p)^T has at most the
/// relative error of p, and parts are put together by a sum of logarithms.
pub(super) fn high_mass(masked: &[Masked], under_p: bool) -> Known {
    let (mut log_none, mut worst) = (0.0, 0.0f64);
    for m in masked {
        let Some(edge) = m.masks.uppers.first() else { continue };
        let [p, q] = high_step(&m.part.pair, edge);
        let one = if under_p { p } else { q };
        log_none += m.part.times * ln_1p(-one.value);
        worst = worst.max(one.error);
    }
    let error = worst + f64::EPSILON * (8.0 + masked.len() as f64);
    Known { value: -exp_m1(log_none), error }
}

/// log of the M transform at a real tilt.
pub(super) fn middle_level(masked: &[Masked], has_low: bool, c: f64) -> f64 {
    let mut level = 0.0;
    let mut absent = 0.0;
    for m in masked {
        if log_total(&m.keep, c) == f64::INFINITY {
            return f64::INFINITY;
        }
        let b = transform::cumulant(&m.keep, c).0;
        level += m.part.times * b;
        if m.masks.lower.is_some() {
            let ratio = exp(log_total(&m.middle, c) - b).min(1.0);
            absent += m.part.times * ln_1p(-ratio);
        }
    }
    if has_low { level + crate::special::log1mexp(absent) } else { level }
}

/// Whether the tilted weights have died out at both ends of the grid.
pub(super) fn covers(grid: &Grid, c: f64, top: f64) -> bool {
    [0, grid.len() - 1].iter().all(|&j| grid.log_weight[j] + c * grid.log_ratio[j] < top - 30.0)
}

/// log of the plain sum at a real tilt; infinite where the grid does not reach far enough for it.
pub(super) fn log_total(grid: &Grid, c: f64) -> f64 {
    let terms = || grid.log_weight.iter().zip(&grid.log_ratio).map(|(lw, l)| lw + c * l);
    let top = terms().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY {
        return top;
    }
    if !covers(grid, c, top) {
        return f64::INFINITY;
    }
    top + ln(terms().map(|x| exp(x - top)).sum::<f64>())
}

/// Chernoff factors of H's remainder E_H (1 - e^{Y-t})_+ for some negative tilts.
pub(super) fn chernoff_high(masked: &[Masked], spread: f64) -> Vec<(f64, f64)> {
    let steps: f64 = masked.iter().map(|m| m.part.times).sum();
    let mut out = Vec::new();
    for step in 0..14 {
        let tilt = -0.5 * powi(2f64, step) / spread.max(1e-12);
        let mut level = 0.0;
        // In logarithms throughout: at large tilts the share of class 2 underflows.
        let mut share = f64::NEG_INFINITY;
        for m in masked {
            let high = m.high.as_ref().map_or(f64::NEG_INFINITY, |high| log_total(high, tilt));
            // All of A: keep plus high.
            let all = crate::special::log_add_exp(log_total(&m.keep, tilt), high);
            level += m.part.times * all;
            share = crate::special::log_add_exp(share, ln(m.part.times) + high - all);
        }
        // A share of zero would be an underflow of the mask, not a bound.
        let certain =
            masked.iter().all(|m| m.certain(Class::Keep, tilt) && m.certain(Class::High, tilt));
        if !(level.is_finite() && share.is_finite() && certain) {
            continue;
        }
        out.push((tilt, level + share + Zone::Below.log_chernoff(tilt) + 0.01 + 1e-13 * steps));
    }
    out
}

/// Chernoff factors of L for some tilts around and beyond c.
/// The sums are plain, so their logarithm times T is only as good as T round-offs: added.
pub(super) fn chernoff_low(masked: &[Masked], c: f64) -> Vec<(f64, f64)> {
    let steps: f64 = masked.iter().map(|m| m.part.times).sum();
    let mut out = Vec::new();
    for step in -2..16 {
        let tilt = 1.0 + (c - 1.0) * powi(1.6f64, step);
        let mut level = 0.0;
        for m in masked {
            level += m.part.times * log_total(&m.low, tilt);
        }
        if level < f64::INFINITY && masked.iter().all(|m| m.certain(Class::Low, tilt)) {
            out.push((tilt, level + Zone::Above.log_chernoff(tilt) + 0.01 + 1e-13 * steps));
        }
    }
    out
}

/// What is known of the transform beyond a height.
pub(super) struct Tail<'a> {
    pub(super) masked: &'a [Masked<'a>],
    pub(super) has_low: bool,
    pub(super) c: f64,
    pub(super) level: f64,
    pub(super) log_size: f64,
    pub(super) spacing: f64,
}

impl Tail<'_> {
    /// log of a bound on the transform beyond height u, in units of its value at the real tilt.
    pub(super) fn decay(&self, u: f64, smoothing: Smoothing) -> f64 {
        let best = |m: &Masked, middle: bool| {
            m.paths
                .iter()
                .filter_map(|(keep, mid)| if middle { mid.as_ref() } else { keep.as_ref() })
                .map(|path| path.log_ratio(u))
                .fold(0.0f64, f64::min)
        };
        let decay = if self.has_low {
            // |b^T - a0^T| <= sum_i T_i |a1_i| prod b(c)^T / b_i(c)
            let mut sum = 0.0;
            let mut whole = 0.0;
            for m in self.masked {
                let b = transform::cumulant(&m.keep, self.c).0;
                whole += m.part.times * b;
                sum += m.part.times * exp(log_total(&m.middle, self.c) - b + best(m, true));
            }
            ln(sum) + whole - self.level
        } else {
            self.masked.iter().map(|m| m.part.times * best(m, false)).sum()
        };
        decay + smoothing.log_factor(self.c, u)
    }

    /// The height beyond which nodes are left out; none if that takes more than `most` nodes.
    /// Decay falls with height, so the farthest is asked first and the rest by bisection.
    pub(super) fn height(&self, smoothing: Smoothing, most: f64) -> Option<f64> {
        let enough = |u: f64| {
            let decay = self.decay(u, smoothing);
            (decay - ln(PI * u) < self.log_size - LOG_TOLERANCE).then_some(u)
        };
        let mut found = enough(most * self.spacing)?;
        let (mut low, mut high) = (ln(2.0 * self.spacing), ln(found));
        while high - low > 0.15 {
            let middle = 0.5 * (low + high);
            match enough(exp(middle)) {
                Some(better) => {
                    found = better;
                    high = middle;
                }
                None => low = middle,
            }
        }
        Some(found)
    }
}
