//! Every m-th term of a sum over the count stands for all of them, with a bound on the difference.
//!
//! **Lemma.** Let b_k be the law of K, a sure number plus binomials Bin(n, q), phi the normal density, v = s^2. For real lambda let
//! M = E e^(lambda K), q' the rate with odds e^lambda q/(1-q), V the sum of n q'(1-q'). Then for every residue r and every m >= 7
//!
//! ```text
//! |m sum_(k = r mod m) b_k phi((y-k)/s) - sum_k b_k phi((y-k)/s)| <= M e^(-lambda y + lambda^2 v/2) E / sqrt(2 pi),
//! E = 3.17 (m-1) e^-x,    x = 0.45 (2 pi/m)^2 vV/(v+V).
//! ```
//!
//! *Proof.* The difference is the sum over l = 1 .. m-1 of e^(-i theta r) sum_k b_k phi((y-k)/s) e^(i theta k),
//! theta = 2 pi l/m. Here b_k = M e^(-lambda k) b'_k, b' the law with the rates q', and e^(-lambda k) phi((y-k)/s) =
//! e^(-lambda y + lambda^2 v/2) phi(z/s), z = k - y + lambda v. With sqrt(2 pi) phi(z/s) = s/sqrt(2 pi) times
//! the integral of e^(-v u^2/2) e^(iuz) over u, the inner sum is at most M e^(-lambda y + lambda^2 v/2)/sqrt(2 pi)
//! times s/sqrt(2 pi) times the integral of e^(-v u^2/2) times the product of all |1 - q' + q' e^(i(theta+u))|^n, which is at most
//! e^(-V(1 - cos(theta+u))). theta is at least d = 2 pi/m away from multiples of 2 pi, so theta + u is at least
//! d - |u| away; 1 - cos rises up to pi and is at least 0.45 a^2 for |a| <= 1; d < 0.9. Split e^(-v u^2/2) into
//! e^(-0.45 v u^2) and e^(-0.05 v u^2): the latter integrates to 1/sqrt(0.1) < 3.17, and
//! 0.45 v u^2 + 0.45 V (d-|u|)^2 >= x. []
//!
//! P(N > (y-k)/s) is the integral of phi((x-k)/s)/s over x > y: for lambda > 0 the bound for tails is that of the
//! lemma divided by s lambda; P(N < (y-k)/s) likewise for lambda < 0. Without a Gaussian (v infinite, lambda = 0)
//! the bound for sum_k b_k is E itself.

use super::law::CountLaw;
use super::sums::{Step, Sums};
use numerics::elementary::{exp, exp_m1, ln, ln_1p};
use numerics::special::{HALF_LN_TWO_PI, ROUND};
use std::f64::consts::PI;

/// x of the lemma is at least this: differences below 1e-25 of the largest terms.
const DEPTH: f64 = 64.0;
/// The smallest stride of the lemma.
const LEAST: f64 = 7.0;

/// A tilt of the count: ln M and V.
#[derive(Clone, Copy)]
struct Tilt {
    lambda: f64,
    log_moment: f64,
    variance: f64,
}

impl Tilt {
    fn new(law: &CountLaw, lambda: f64) -> Self {
        let (certain, parts) = law.parts();
        let (mut log_moment, mut variance) = (certain * lambda, 0.0);
        for part in parts {
            let (n, q) = (part.trials(), part.rate());
            let growth = q * exp_m1(lambda);
            let tilted = q * exp(lambda) / (1.0 + growth);
            log_moment += n * ln_1p(growth);
            variance += n * tilted * ((1.0 - q) / (1.0 + growth));
        }
        // Rounded down: a few roundings of each q', and one for each of at most a thousand parts.
        Self { lambda, log_moment, variance: variance * (1.0 - 1e-12) }
    }

    /// x of the lemma times (m / 2 pi)^2.
    fn depth(&self, noise: f64) -> f64 {
        0.45 * self.variance * noise / (self.variance + noise)
    }
}

impl Sums {
    /// The tilts whose bounds are used at y: of the terms, of upper and of lower tails, and none.
    fn tilts(&self, y: f64, anchor: f64) -> [Tilt; 4] {
        let lambda = (y - anchor) / self.variance;
        // Tails of order one: any small tilt, in units of the distance from the mean.
        let unit = (self.scale + (y - self.law.mean()).abs()).recip();
        [lambda, lambda.max(unit), lambda.min(-unit), 0.0]
            .map(|lambda| Tilt::new(&self.law, lambda))
    }

    /// How many counts one term may stand for; 1 where every term is needed.
    pub(super) fn stride_at(&self, y: f64, anchor: f64) -> f64 {
        // The usual short sums.
        if self.law.variance().min(self.variance) < 60.0 {
            return 1.0;
        }
        let tilts = self.tilts(y, anchor);
        let least =
            tilts.iter().map(|tilt| tilt.depth(self.variance)).fold(f64::INFINITY, f64::min);
        let stride = (2.0 * PI * (least / DEPTH).sqrt()).floor();
        let sane = tilts.iter().all(|tilt| {
            tilt.log_moment.abs() < 1e9 && (tilt.lambda * y).abs() < 1e9 && tilt.lambda.abs() < 1.0
        });
        if sane && stride >= LEAST { stride.min(self.longest) } else { 1.0 }
    }

    /// ln E of the lemma, rounded up.
    fn log_lost(&self, tilt: &Tilt, stride: f64) -> f64 {
        let turn = 2.0 * PI / stride;
        ln(3.17 * (stride - 1.0)) - tilt.depth(self.variance) * turn * turn * (1.0 - 1e-12)
    }

    /// A bound on what the stride changes in sum_k b_k phi(x_k), as a part of the anchor's term.
    pub(super) fn lost_weights(&self, y: f64, anchor: f64, stride: f64) -> f64 {
        if stride <= 1.0 {
            return 0.0;
        }
        let tilt = Tilt::new(&self.law, (y - anchor) / self.variance);
        // -lambda y + lambda^2 v/2 + x_0^2/2 = -lambda anchor.
        let log = tilt.log_moment - tilt.lambda * anchor - self.law.log_pmf(anchor).0;
        // The logarithms are at most 1e9: off by less than 1e-5.
        exp(log + self.log_lost(&tilt, stride) + 1e-4)
    }

    /// ln of a bound on what the stride changes in sum_k b_k P(N > x_k) (or of P(N < x_k)).
    pub(super) fn log_lost_tail(&self, y: f64, anchor: f64, stride: f64, above: bool) -> f64 {
        if stride <= 1.0 {
            return f64::NEG_INFINITY;
        }
        let [_, upper, lower, _] = self.tilts(y, anchor);
        let tilt = if above { upper } else { lower };
        let lambda = tilt.lambda;
        tilt.log_moment - lambda * y + 0.5 * lambda * lambda * self.variance
            - HALF_LN_TWO_PI
            - ln(self.scale * lambda.abs())
            + self.log_lost(&tilt, stride)
            + 1e-4
    }

    /// A bound on what the stride changes in sum_k b_k.
    pub(super) fn lost_mass(&self, stride: f64) -> f64 {
        if stride <= 1.0 {
            return 0.0;
        }
        // With the noise of the run in place of none the bound is larger.
        exp(self.log_lost(&Tilt::new(&self.law, 0.0), stride))
    }

    /// As [`Sums::walk`], over every `stride`-th count beyond `from`, a count with what a walk to it has lost.
    pub(super) fn stride_walk(
        &self,
        y: f64,
        anchor: f64,
        (from, lost): (f64, f64),
        stride: f64,
        up: bool,
        mut visit: impl FnMut(Step) -> bool,
    ) -> bool {
        let (log_anchor, anchor_error) = self.law.log_pmf(anchor);
        let log_weight = |k: f64, log_pmf: f64| {
            let shift = k - anchor;
            // (y - anchor)^2 - (y - k)^2 over 2v.
            (log_pmf - log_anchor) + shift * ((y - k) + 0.5 * shift) / self.variance
        };
        let (mut log_before, from_error) = self.law.log_pmf(from);
        let mut log_w_before = log_weight(from, log_before);
        // A sum of masses is a product of ratios, with three roundings each.
        let mut lost = lost + from_error;
        let mut k = from;
        loop {
            lost += 4.0 * ROUND;
            k += if up { stride } else { -stride };
            if k < self.law.smallest() || k > self.law.largest() {
                return false;
            }
            let (log_pmf, error) = self.law.log_pmf(k);
            let shift = k - anchor;
            let size = shift.abs() * ((y - k).abs() + 0.5 * shift.abs()) / self.variance;
            let log_w = log_weight(k, log_pmf);
            let drift = lost
                + anchor_error
                + error
                + ROUND * (8.0 + 6.0 * size + 4.0 * (log_pmf.abs() + log_anchor.abs()));
            let step = Step {
                k,
                w: exp(log_w),
                ratio: exp(log_w - log_w_before),
                pmf_ratio: exp(log_pmf - log_before),
                drift,
            };
            (log_before, log_w_before) = (log_pmf, log_w);
            if !visit(step) {
                return true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sums::Log;
    use super::*;

    /// The same law as one binomial and as a table of two, of which every term is summed.
    fn both(n: u64, rate: f64, noise: f64) -> (Sums, Sums) {
        let variance = n as f64 * noise * noise;
        let sums = |parts: &[(f64, u64)]| Sums {
            law: CountLaw::new(0, parts).unwrap(),
            variance,
            scale: variance.sqrt(),
            longest: f64::INFINITY,
        };
        let table = sums(&[(rate, n / 3), (rate, n - n / 3)]);
        (sums(&[(rate, n)]), Sums { longest: 1.0, ..table })
    }

    #[track_caller]
    fn agree(strided: Log, full: Log, what: &str) {
        let slack = strided.error + full.error;
        assert!((strided.value - full.value).abs() <= slack, "{what}: {strided:?} {full:?}");
        // An error of the whole is no agreement.
        assert!(strided.error < 1e-9 * (1.0 + strided.value.abs()), "{what}: {strided:?}");
    }

    #[test]
    fn every_mth_term_stands_for_all() {
        let mut strides = 0;
        for (n, rate, noise) in [
            (2000, 0.5, 10.0),
            (20_000, 0.3, 0.4),
            (20_000, 0.3, 40.0),
            (50_000, 0.02, 1.0),
            (9_000, 0.97, 3.0),
            (40_000, 0.1, 0.2),
        ] {
            let (one, table) = both(n, rate, noise);
            let spread = (one.variance + one.law.variance()).sqrt();
            for z in [-12.0, -5.0, -1.0, 0.0, 0.5, 3.0, 8.0, 20.0] {
                for centre in [0.0, 0.5, 1.0] {
                    let y = centre * one.law.mean() + z * spread;
                    strides += usize::from(one.stride_at(y, one.mode(y)) > 1.0);
                    let at = format!("{n} {rate} {noise} at {y}");
                    agree(one.loss(y).0, table.loss(y).0, &at);
                    agree(one.add(y).delta, table.add(y).delta, &at);
                    agree(one.tail(y, true).0, table.tail(y, true).0, &at);
                    agree(one.tail(y, false).0, table.tail(y, false).0, &at);
                    if y > 0.5 {
                        agree(one.remove(y).delta, table.remove(y).delta, &at);
                    }
                    if let (Some(one), Some(table)) = (one.small_loss(y), table.small_loss(y)) {
                        agree(one, table, &at);
                    }
                }
            }
        }
        assert!(strides > 100, "{strides}");
    }

    /// The bound itself, where it is large enough to be seen: strides beyond what is used.
    #[test]
    fn the_lemma_bounds_what_a_stride_leaves_out() {
        let (one, table) = both(2000, 0.5, 0.5);
        let y = 1030.0;
        let anchor = one.mode(y);
        let mut seen = 0;
        for stride in [20.0, 30.0, 45.0, 60.0] {
            let mut sum = 1.0;
            for up in [true, false] {
                one.stride_walk(y, anchor, (anchor, 0.0), stride, up, |step| {
                    sum += step.w;
                    true
                });
            }
            let mut full = 1.0;
            for up in [true, false] {
                table.walk(y, anchor, 1.0, up, |step| {
                    full += step.w;
                    true
                });
            }
            let (difference, bound) =
                ((stride * sum - full).abs(), one.lost_weights(y, anchor, stride));
            assert!(difference <= bound + 1e-10 * full, "{stride}: {difference:e} {bound:e}");
            seen += usize::from(difference > 1e-6 * full);
        }
        assert!(seen > 0);
    }
}
