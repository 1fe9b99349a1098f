//! Where E[e^(-zW)] is sampled, for one factor and a range of u: chosen in doubles.

use super::Factor;
use super::rough::{Rough, log_gamma};
use std::f64::consts::{FRAC_PI_2, PI};

/// z = e^(tau + i alpha), tau = j h, for Gamma(p) E W^-p with p = c + iu.
#[derive(Debug)]
pub(super) struct Ray {
    pub(super) c: f64,
    pub(super) alpha: f64,
    pub(super) spacing: f64,
    pub(super) first: i64,
    pub(super) last: i64,
    /// Angles of the strip below and above alpha.
    pub(super) strips: [f64; 2],
    /// What lies to the right is bounded by E W^-q.
    pub(super) q: f64,
    pub(super) inner: Inner,
    /// Nats to which E e^(-zY) is summed.
    pub(super) digits: f64,
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

/// Nats that the far nodes of a ray may lose.
const LOSS: f64 = 25.0;

/// A double with few bits, not above x.
fn short(x: f64) -> f64 {
    let power = x.log2().floor() - 5.0;
    (x / power.exp2()).floor() * power.exp2()
}

/// ln of the integral of |z^p e^(-z)| along arg z = beta, relative to |Gamma(p)|.
fn loss(c: f64, u: f64, beta: f64) -> f64 {
    -u * beta - c * beta.cos().ln() + log_gamma(c, 0.0) - log_gamma(c, u)
}

/// The angle of the ray for u in this range.
fn angle(c: f64, (from, to): (f64, f64)) -> f64 {
    (0.5 * (from + to)).atan2(c)
}

/// The last u >= from that one ray may serve.
pub(super) fn end_of_block(c: f64, from: f64, most: f64) -> f64 {
    let within = |to: f64| {
        let alpha = angle(c, (from, to));
        loss(c, from, alpha).max(loss(c, to, alpha)) < LOSS
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
    /// A ray for |u| in a range with an error of e^-depth of E W^-c.
    pub(super) fn new(
        rough: &Rough,
        sigma: f64,
        factor: &Factor,
        c: f64,
        range: (f64, f64),
        depth: f64,
    ) -> Option<Self> {
        let alpha = angle(c, range);
        let worst = |beta: f64| loss(c, range.0, beta).max(loss(c, range.1, beta));
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
        // The ends: e^(c tau) on the left, a higher moment on the right.
        let goal = |u: f64| log_gamma(c, u) + u * alpha - depth - 3.0;
        let goal = goal(range.0).min(goal(range.1)) + rough.log_moment(factor, c).min(0.0);
        let right = |spacing: f64| {
            let mut right = (f64::INFINITY, c);
            for more in [0.3, 0.7, 1.5, 3.0, 6.0, 12.0, 0.2 * c, 0.5 * c, c, 2.0 * c] {
                let q = c + more;
                let log = q * q.ln() - q - q * alpha.cos().ln() + log_crude(sigma, factor, q)
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
        let inner_depth = lost + inner_depth(rough, factor, c, right(spacing).0, depth);
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
        let left = (goal + (c * spacing).min(1.0).ln()) / c;
        let right = right(spacing);
        let points = (right.0 - left) / spacing;
        (points < 2e5 && reach < 5e4).then_some(Self {
            c,
            alpha,
            spacing,
            first: (left / spacing).floor() as i64,
            last: (right.0 / spacing).ceil() as i64,
            strips,
            q: right.1,
            inner: Inner { rho, every: every as i64, reach: reach as i64, width },
            digits: inner_depth,
        })
    }

    /// The single point tau = j h on the real axis.
    pub(super) fn at(&self, j: i64) -> Self {
        let inner = Inner { rho: 0.0, ..self.inner };
        Self { alpha: 0.0, first: j, last: j, inner, ..*self }
    }

    pub(super) fn points(&self) -> f64 {
        (self.last - self.first + 1) as f64
    }

    /// Units of work for the values along the ray, of mantissas of `words`.
    pub(super) fn work(&self, words: usize) -> f64 {
        let inner = (2 * self.inner.reach + 1) as f64;
        let table = self.points() + inner * self.inner.every as f64;
        (0.003 * table + 0.01 * self.points() + 7e-5 * self.points() * inner)
            * (words * words) as f64
            / 4.0
    }
}

/// Nats to which phi = E e^(-zY) has to be known for an error of e^-depth of the whole. An error e at tau changes phi^n by
/// about n e phi^(n-1), or by (2e)^n where phi is smaller than that; and phi falls on while z^c grows.
fn inner_depth(rough: &Rough, factor: &Factor, c: f64, right: f64, depth: f64) -> f64 {
    let (tau, peak) = rough.peak(factor, c);
    let (seen, log_all) = (factor.seen as f64, (factor.batches as f64).ln());
    let needed = |tau: f64| {
        let (fall, more) = (rough.fall(tau - log_all), rough.log_at(factor, c, tau) - peak);
        let one = depth + seen.ln() + 4.0 + more + fall;
        let all = (depth + more + seen * fall + 4.0) / seen + 0.7;
        if all < fall { all } else { one.max(fall) }
    };
    let count = 60;
    let at = |i: i32| tau + (right - tau).max(0.0) * f64::from(i) / f64::from(count);
    (0..=count).map(|i| needed(at(i))).fold(depth + seen.ln() + 4.0, f64::max)
}

/// ln of a bound on E W^-q: a weighted mean is at least the geometric one, and at least what does not vary.
fn log_crude(sigma: f64, factor: &Factor, q: f64) -> f64 {
    let (all, seen) = (factor.batches as f64, factor.seen as f64);
    let share = q / all;
    let geometric = 0.5 * seen * (share * share + share) / (sigma * sigma);
    geometric.min(-q * ((all - seen) / all).ln())
}
