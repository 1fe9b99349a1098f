//! A bound on |A(c + iu)| for all u beyond a height, by moving the path of integration.
//!
//! A(c + iu) = integral of N(0)(x) P^{c+iu} Q^{1-c-iu} dx (P, Q relative to N(0)) may be taken
//! along x + i y(x) for any smooth y inside the strip of analyticity, where
//! |integrand| = N(0)(x) e^{y^2/(2 s^2)} |P|^c |Q|^{1-c} e^{-u (arg P - arg Q)}.
//! With y > 0 the argument is positive, so for a fixed path the bound falls as u grows: checked at
//! one height, it holds for every greater one. For P = N(1), Q = N(0) the constant path y = u
//! gives the exact modulus.

use super::grid::Grid;
use super::strip::{Mask, Unmasked};
use crate::elementary::{cos, exp, exp_m1, ln, ln_1p};
use crate::mixture::MixtureRatio;

/// A fixed path: log of |A(c+iu)| / A(c) is at most `log_ratio(u)`, decreasing in u.
pub(crate) struct Path {
    /// Logarithms of the tilted weights, which sum to 1.
    log_share: Vec<f64>,
    /// Growth of the modulus off the real axis.
    growth: Vec<f64>,
    /// arg P - arg Q.
    angle: Vec<f64>,
    /// What the points left out may add, all together.
    rest: f64,
}

/// Points that cannot carry e^this of the whole, on the axis or off it, are left out.
const FLOOR: f64 = -92.0;
/// The integral of the modulus is a sum over a grid that was made for real tilts. Its error is not
/// bounded; over the domain it is at most a fiftieth of the logarithm (tests in modules `line` and
/// `masked`), so this part of the logarithm is not counted on.
pub(crate) const ROOM: f64 = 0.05;
/// log of a share that has no say in the choice of a path.
const NOTHING: f64 = -40.0;
/// Points tried beyond either end of the grid.
const MOST_OUTSIDE: u32 = 4000;

impl Path {
    /// The better of two families of paths at height `u`: constant, or following the posterior
    /// (which leaves the bulk on the real axis where it contributes nothing). A quick choice is made
    /// by what second order says of them.
    pub(crate) fn best(pair: &MixtureRatio, grid: &Grid, c: f64, u: f64, quick: bool) -> Self {
        crate::patience::look();
        let shares = log_shares(grid, c);
        let scale2 = pair.scale() * pair.scale();
        let sides = if pair.one_sided() { 1.0 } else { 2.0 };
        let full = sides * pair.reach();
        let cap = 0.8 * std::f64::consts::PI * scale2 / pair.reach();
        // Second-order gain and cost of y = d (constant) and y = d r(x), r in [0, 1].
        let (mut gain0, mut cost0, mut gain1, mut cost1) = (0.0, 1.0 / scale2, 0.0, 0.0);
        for (j, &log_share) in shares.0.iter().enumerate() {
            // Only the choice of a path: what is nothing on the axis does not count.
            if log_share < NOTHING {
                continue;
            }
            let (shift, slope) = pair.posterior_shift(grid.x[j]);
            let (r, dr) = (shift / full, slope / full);
            let share = exp(log_share);
            let slant = shift / scale2;
            let curvature = c * slope / scale2;
            gain0 += share * slant;
            cost0 -= share * curvature.min(0.5 / scale2);
            gain1 += share * slant * r;
            cost1 += share * (r * r / scale2 + dr * dr - r * r * curvature.min(0.5 / scale2));
        }
        let constant = (u * gain0 / cost0).min(cap);
        let bent = if cost1 > 0.0 { (u * gain1 / cost1).min(cap) } else { 0.0 };
        let capped = constant >= cap || bent >= cap;
        // Second order tells which is better while neither is cut short.
        let (flat, following) =
            (gain0 * gain0 / cost0, gain1 * gain1 / cost1.max(f64::MIN_POSITIVE));
        let straight = || Self::build(pair, grid, c, &shares, |_| (constant, 0.0), &Unmasked);
        let curved = || {
            let path = |x: f64| {
                let (shift, slope) = pair.posterior_shift(x);
                (bent * shift / full, bent * slope / full)
            };
            Self::build(pair, grid, c, &shares, path, &Unmasked)
        };
        if !capped && flat > 1.2 * following || quick && flat > following {
            return straight();
        }
        if !capped && following > 1.2 * flat || quick {
            return curved();
        }
        let (straight, curved) = (straight(), curved());
        if straight.log_ratio(u) < curved.log_ratio(u) { straight } else { curved }
    }

    /// A given path (x to y and its slope) on a masked grid.
    pub(crate) fn masked(
        pair: &MixtureRatio,
        grid: &Grid,
        c: f64,
        path: impl Fn(f64) -> (f64, f64),
        mask: &impl Mask,
    ) -> Self {
        Self::build(pair, grid, c, &log_shares(grid, c), path, mask)
    }

    fn build(
        pair: &MixtureRatio,
        grid: &Grid,
        c: f64,
        (log_share, total): &(Vec<f64>, f64),
        path: impl Fn(f64) -> (f64, f64),
        mask: &impl Mask,
    ) -> Self {
        let scale2 = pair.scale() * pair.scale();
        // Negative powers of P or Q grow off the axis: all components lie in a cone of angle theta.
        let negative = (-c).max(0.0) + if pair.one_sided() { 0.0 } else { (c - 1.0).max(0.0) };
        let mut out =
            Self { log_share: Vec::new(), growth: Vec::new(), angle: Vec::new(), rest: 0.0 };
        // Adds a point; tells whether it could matter at all.
        let mut add = |x: f64, log_share: f64, log_p: f64, log_q: f64| {
            let (y, slope) = path(x);
            let fixed =
                y * y / (2.0 * scale2) + 0.5 * ln_1p(slope * slope) + mask.growth(x, y, 0.0);
            let theta = (y * pair.reach() / scale2).min(std::f64::consts::PI);
            let mut most = log_share;
            if negative > 0.0 {
                most -= negative * ln(cos(0.5 * theta));
                // Within a right angle |P| is at least its constant part.
                if pair.one_sided() && theta <= std::f64::consts::FRAC_PI_2 {
                    let constant = pair.infimum() - (log_p - log_q);
                    most = most.min(log_share + c * constant);
                }
            }
            if most + fixed <= FLOOR {
                out.rest += exp(FLOOR);
                return false;
            }
            let logs = pair.complex_logs(x, y);
            let growth =
                fixed + c * (logs.numerator.0 - log_p) + (1.0 - c) * (logs.denominator.0 - log_q);
            out.log_share.push(log_share);
            out.growth.push(growth);
            out.angle.push(logs.numerator.1 - logs.denominator.1);
            true
        };
        for (j, (&x, &log_share)) in grid.x.iter().zip(log_share).enumerate() {
            let log_q = pair.log_denominator(x);
            add(x, log_share, grid.log_ratio[j] + log_q, log_q);
        }
        if negative > 0.0 {
            // What is nothing on the axis may be everything off it: on beyond the grid's ends.
            let step = (0.5 * pair.scale()).min(0.5 * scale2 / pair.reach());
            let unit = ln(step / (pair.scale() * (2.0 * std::f64::consts::PI).sqrt())) - total;
            for (end, direction) in [(grid.x[0], -1.0), (grid.x[grid.len() - 1], 1.0)] {
                let mut ended = false;
                for index in 1..=MOST_OUTSIDE {
                    let x = end + direction * step * f64::from(index);
                    let (log_p, log_q) = (pair.log_numerator(x), pair.log_denominator(x));
                    let log =
                        unit + log_q - 0.5 * x * x / scale2 + c * (log_p - log_q) + mask.log(x);
                    if !add(x, log, log_p, log_q) {
                        ended = true;
                        break;
                    }
                }
                if !ended {
                    // Unknown: no bound at all.
                    out.log_share.push(f64::INFINITY);
                    out.growth.push(0.0);
                    out.angle.push(0.0);
                    break;
                }
            }
        }
        out
    }

    /// log of the bound on |A(c+iu)| / A(c), u >= 0, as far as the sum over the points goes: what
    /// is promised on the strength of it leaves `ROOM`.
    pub(crate) fn log_ratio(&self, u: f64) -> f64 {
        let points = || {
            self.log_share
                .iter()
                .zip(&self.growth)
                .zip(&self.angle)
                .map(|((s, g), a)| (s, g - u * a))
        };
        let change: f64 = points()
            .map(|(&log_share, exponent)| {
                // A light point may grow beyond all others.
                if exponent < 30.0 && log_share < 1.0 {
                    exp(log_share) * exp_m1(exponent)
                } else {
                    exp(log_share + exponent)
                }
            })
            .sum();
        if change > -0.5 {
            ln_1p(change + self.rest)
        } else {
            // Little is left: without the difference from 1.
            let sum: f64 = points().map(|(log_share, exponent)| exp(log_share + exponent)).sum();
            ln(sum + self.rest)
        }
    }
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
