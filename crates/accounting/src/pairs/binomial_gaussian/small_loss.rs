//! The log-likelihood ratio with relative accuracy where it is small.

use super::law::CountLaw;
use super::sums::{Log, NEGLIGIBLE, Sum, Sums};
use numerics::elementary::{exp, exp_m1, ln_1p};
use numerics::special::ROUND;

impl Sums {
    /// f(y) = ln(1 + sum_{k>=1} b_k (e^{k(2y-k)/(2v)} - 1)): relative accuracy where f is small.
    pub(super) fn small_loss(&self, y: f64) -> Option<Log> {
        let least = self.law.smallest().max(1.0);
        let anchor = self.law.mean().floor().max(least).min(self.law.largest());
        let (log_pmf, pmf_error) = self.law.log_pmf(anchor);
        let exponent = |k: f64| k * (y - 0.5 * k) / self.variance;
        // Where P and Q lie far apart, f passes through 0 between large numbers: nothing is small
        // there and the two windows may be far from each other.
        let peak = self.mode(y);
        if self.law.log_pmf(peak).0 < log_pmf - 40.0 || log_pmf < -600.0 {
            return None;
        }
        let (mut sum, mut error, mut size) = (Sum::default(), 0.0, 0.0);
        let mut take = |k: f64, b: f64, drift: f64| {
            let e = exponent(k);
            // The exponent is known to 8 roundings; e^e - 1 forgives them where e < 0.
            let term = b * exp_m1(e);
            sum.add(term);
            size += term.abs();
            error += term.abs() * (drift + ROUND * (4.0 + 8.0 * (1.0 + e.max(0.0))));
            (b * exp(e).max(1.0), size)
        };
        take(anchor, 1.0, 0.0);
        let mut left_out = 0.0;
        let stride = self.stride_at(y, anchor);
        let by_ratios = stride <= 1.0 && matches!(self.law, CountLaw::One(_));
        for up in [true, false].into_iter().filter(|_| !by_ratios) {
            let (mut k, mut log_b) = (anchor, 0.0);
            loop {
                k += if up { stride } else { -stride };
                if k < self.law.smallest() || k > self.law.largest() {
                    break;
                }
                let (log, log_error) = self.law.log_pmf(k);
                let (before, b) = (log_b, exp(log - log_pmf));
                log_b = log - log_pmf;
                let drift = log_error + pmf_error + 4.0 * ROUND * (1.0 + log.abs() + log_pmf.abs());
                let (here, size) = take(k, b, drift);
                let ratio = exp(log_b - before);
                let tilted =
                    ratio * exp(exponent(k) - exponent(if up { k - stride } else { k + stride }));
                let fall = ratio.max(tilted);
                if fall < 1.0 && here * fall / (1.0 - fall) <= 0.5 * NEGLIGIBLE * size {
                    left_out += 2.0 * here * fall / (1.0 - fall);
                    break;
                }
            }
        }
        for up in [true, false].into_iter().filter(|_| by_ratios) {
            let (mut k, mut b, mut drift) = (anchor, 1.0, 0.0);
            let last = if up { self.law.largest() } else { least };
            while k != last {
                let ratio = if up { self.law.ratio(k) } else { 1.0 / self.law.ratio(k - 1.0) };
                k += if up { 1.0 } else { -1.0 };
                b *= ratio;
                drift += ROUND * 10.0;
                let (here, size) = take(k, b, drift);
                // b and b e^exponent are both log-concave, and the envelope is at most their sum.
                let tilted =
                    ratio * exp(exponent(k) - exponent(if up { k - 1.0 } else { k + 1.0 }));
                let fall = ratio.max(tilted);
                if fall < 1.0 && here * fall / (1.0 - fall) <= 0.5 * NEGLIGIBLE * size {
                    left_out += 2.0 * here * fall / (1.0 - fall);
                    break;
                }
            }
        }
        // phi(x_k)/phi(a) and 1, each with what the stride changes in its sum.
        let lost = self.lost_weights(y, anchor, stride) * exp(exponent(anchor));
        let lost = if stride > 1.0 { lost + self.lost_mass(stride) * exp(-log_pmf) } else { 0.0 };
        left_out += lost / stride;
        let scale = exp(log_pmf) * stride;
        let value = sum.get() * scale;
        let error = (error + left_out + (pmf_error + 4.0 * ROUND) * size) * scale;
        if !(value.is_finite() && error.is_finite() && value > -0.9) {
            return None;
        }
        let log = ln_1p(value);
        Some(Log {
            value: log,
            error: error / (1.0 + value - error).max(0.05) + 4.0 * ROUND * log.abs(),
        })
    }
}
