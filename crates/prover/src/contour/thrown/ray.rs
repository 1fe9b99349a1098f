//! Where E[e^(-zW)] is sampled, for one factor and a range of u: chosen in doubles.

use super::Factor;
use super::power::{Power, products};
use super::rough::{Rough, log_gamma};
use crate::contour::fast;
use std::f64::consts::{FRAC_PI_2, PI};

/// z = e^(tau + i alpha), tau = j h, for Gamma(p + iu) E W^(m-p-iu).
#[derive(Debug)]
pub(super) struct Ray {
    pub(super) power: Power,
    pub(super) alpha: f64,
    pub(super) spacing: f64,
    pub(super) first: i64,
    pub(super) last: i64,
    /// Angles of the strip below and above alpha.
    pub(super) strips: [f64; 2],
    /// What lies to the right is bounded by E W^(m-q).
    pub(super) q: f64,
    pub(super) inner: Inner,
    /// Nats to which E e^(-zY) is summed.
    pub(super) digits: f64,
    /// Bits to which sums along it are needed, of the sum of their moduli.
    bits: f64,
}

/// E e^(-zY) as a sum over g = sigma m h j, |j| <= reach, with z turned by -rho: an angle of omega is left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inner {
    pub(super) rho: f64,
    pub(super) every: i64,
    pub(super) reach: i64,
    /// Half-width of the strip in g.
    pub(super) width: f64,
}

/// Units of work for one turn of a sum.
const TURN: f64 = 3e-5;

/// Nats that the far nodes of a ray may lose.
const LOSS: f64 = 25.0;

/// A double with few bits, not above x.
fn short(x: f64) -> f64 {
    let power = x.log2().floor() - 5.0;
    (x / power.exp2()).floor() * power.exp2()
}

/// ln of the integral of |z^(p+iu) e^(-z)| along arg z = beta, relative to |Gamma(p+iu)|.
fn loss(p: f64, u: f64, beta: f64) -> f64 {
    -u * beta - p * beta.cos().ln() + log_gamma(p, 0.0) - log_gamma(p, u)
}

/// The angle of the ray for u in this range.
fn angle(p: f64, (from, to): (f64, f64)) -> f64 {
    (0.5 * (from + to)).atan2(p)
}

/// The last u >= from that one ray may serve.
pub(super) fn end_of_block(p: f64, from: f64, most: f64) -> f64 {
    let within = |to: f64| {
        let alpha = angle(p, (from, to));
        loss(p, from, alpha).max(loss(p, to, alpha)) < LOSS
    };
    if within(most) {
        return most;
    }
    let (mut low, mut high) = (from, most);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if within(middle) { low = middle } else { high = middle }
    }
    low
}

impl Ray {
    /// A ray for |u| in a range with an error of e^-depth of E W^(m-p).
    pub(super) fn new(
        rough: &Rough,
        sigma: f64,
        factor: &Factor,
        power: Power,
        range: (f64, f64),
        depth: f64,
    ) -> Option<Self> {
        let Power { m, p } = power;
        let alpha = angle(p, range);
        let worst = |beta: f64| loss(p, range.0, beta).max(loss(p, range.1, beta));
        let mut strips = [0.0; 2];
        let mut spacing = f64::INFINITY;
        for (strip, (room, sign)) in
            strips.iter_mut().zip([(FRAC_PI_2 + alpha, -1.0), (FRAC_PI_2 - alpha, 1.0)])
        {
            let (mut best, mut d) = (0.0, 0.98 * room);
            while d > 1e-6 * room {
                let step = 2.0 * PI * d / (worst(alpha + sign * d).max(0.0) + depth + 2.0);
                if step > best {
                    (best, *strip) = (step, d);
                }
                d *= 0.85;
            }
            spacing = spacing.min(best);
        }
        // The ends: e^(p tau) E W^m on the left, a higher moment on the right.
        let goal = |u: f64| log_gamma(p, u) + u * alpha - depth - 3.0;
        let goal = goal(range.0).min(goal(range.1));
        let goal = goal + rough.log_moment(factor, power.tilt()).min(0.0);
        let whole = m as f64;
        let right = |spacing: f64| {
            let mut right = (f64::INFINITY, p);
            let mores = [0.3, 0.7, 1.5, 3.0, 6.0, 12.0, 0.2 * p, 0.5 * p, p, 2.0 * p];
            let lifted = [0.0, 0.5, 2.0, 5.0, 12.0, 30.0].map(|more| more + whole - p);
            for more in mores.into_iter().chain(lifted) {
                let q = p + more;
                if more < 0.2 || q < whole - 1.0 {
                    continue;
                }
                let log = q * q.ln() - q - q * alpha.cos().ln()
                    + log_crude(sigma, factor, q - whole)
                    - (more * spacing).min(1.0).ln();
                let end = (log - goal) / more;
                if end < right.0 {
                    right = (end, q);
                }
            }
            right
        };
        // The sum over g.
        let lost = worst(alpha).max(0.0);
        let inner_depth = lost + inner_depth(rough, factor, power, right(spacing).0, depth);
        let rho = if sigma * alpha <= 3.0 { alpha } else { 3.0 / sigma };
        let turned = 0.5 * (sigma * rho).powi(2);
        let most = sigma * (FRAC_PI_2 - (alpha - rho));
        let (mut width, mut step, mut d) = (0.0, 0.0, 0.999 * most);
        while d > 1e-3 * most {
            let here = 2.0 * PI * d / (inner_depth + turned + 0.5 * d * d + sigma * rho * d);
            if here > step {
                (step, width) = (here, d);
            }
            d *= 0.9;
        }
        // Its points are a multiple of the ray's own apart.
        if sigma * spacing > step {
            spacing = step / sigma;
        }
        let spacing = short(spacing);
        let every = (step / (sigma * spacing)).floor().max(1.0);
        let reach = ((2.0 * (inner_depth + turned)).sqrt() / (sigma * spacing * every)).ceil();
        let left = (goal + (p * spacing).min(1.0).ln() - rough.log_whole(factor, m).max(0.0)) / p;
        let right = right(spacing);
        let points = (right.0 - left) / spacing;
        (points < 2e5 && reach < 5e4).then_some(Self {
            power,
            alpha,
            spacing,
            first: (left / spacing).floor() as i64,
            last: (right.0 / spacing).ceil() as i64,
            strips,
            q: right.1,
            inner: Inner { rho, every: every as i64, reach: reach as i64, width },
            digits: inner_depth,
            bits: (depth + LOSS + 3.0) * std::f64::consts::LOG2_E,
        })
    }

    /// The single point tau = j h on the real axis.
    pub(super) fn at(&self, j: i64) -> Self {
        let inner = Inner { rho: 0.0, ..self.inner };
        let power = Power { m: 0, p: 1.0 };
        Self { power, alpha: 0.0, first: j, last: j, inner, ..*self }
    }

    pub(super) fn points(&self) -> f64 {
        (self.last - self.first + 1) as f64
    }

    /// Bits to which sums along it are needed, of the sum of their moduli: what far nodes lose is among them.
    pub(super) fn bits(&self) -> f64 {
        self.bits
    }

    /// Units of work for the sums over it, of E e^(-zW) and of e^-z, at this many nodes.
    pub(super) fn sums_work(&self, nodes: f64, words: usize) -> f64 {
        // Losses are equally spaced numbers, so a point costs less than where they are logarithms.
        let direct = self.points() * (nodes + 130.0);
        let rotations = direct.min(fast::work(self.points(), nodes as usize, self.bits, true));
        2.0 * TURN * rotations * (words * words) as f64 / 4.0
    }

    /// Units of work for the values along the ray of a factor with `seen` batches, of mantissas of `words`.
    pub(super) fn work(&self, seen: u64, words: usize) -> f64 {
        let inner = (2 * self.inner.reach + 1) as f64;
        let table = self.points() + inner * self.inner.every as f64;
        let tables = 1.0 + self.power.m as f64;
        let series = if self.power.m == 0 { 0.0 } else { products(self.power.m, seen) };
        (tables * (0.003 * table + 7e-5 * self.points() * inner)
            + (0.01 + 2e-4 * series) * self.points())
            * (words * words) as f64
            / 4.0
    }
}

/// Nats to which phi = E e^(-zY) has to be known for an error of e^-depth of the whole. An error e at tau changes phi^n by
/// about n e phi^(n-1), or by (2e)^n where phi is smaller than that; and phi falls on while z^c grows.
fn inner_depth(rough: &Rough, factor: &Factor, power: Power, right: f64, depth: f64) -> f64 {
    let (tau, peak) = rough.peak(factor, power);
    let (seen, log_all) = (factor.seen as f64, (factor.batches as f64).ln());
    let furthest = power.m as f64 / (rough.sigma() * rough.sigma());
    let needed = |tau: f64| {
        // Of powers of Y, phi further out.
        let fall = rough.fall(tau - log_all + furthest);
        let more = rough.log_at(factor, power, tau) - peak;
        let one = depth + seen.ln() + 4.0 + more + fall;
        let all = (depth + more + seen * fall + 4.0) / seen + 0.7;
        if all < fall { all } else { one.max(fall) }
    };
    let count = 60;
    let at = |i: i32| tau + (right - tau).max(0.0) * f64::from(i) / f64::from(count);
    (0..=count).map(|i| needed(at(i))).fold(depth + seen.ln() + 4.0, f64::max)
}

/// ln of a bound on E W^-q, q >= -1: a weighted mean is at least the geometric one, and at least what does not vary; and E W = 1.
fn log_crude(sigma: f64, factor: &Factor, q: f64) -> f64 {
    if q <= 0.0 {
        return 0.0;
    }
    let (all, seen) = (factor.batches as f64, factor.seen as f64);
    let share = q / all;
    let geometric = 0.5 * seen * (share * share + share) / (sigma * sigma);
    geometric.min(-q * ((all - seen) / all).ln())
}
