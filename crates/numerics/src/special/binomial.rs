//! The binomial law in Loader's saddle-point form, which loses no digits for large counts.
//!
//! ln b_k = -ln(2 pi k (n-k)/n)/2 + e(n) - e(k) - e(n-k) - D(k, nq) - D(n-k, n(1-q)), with e the
//! remainder of Stirling's formula and D(x, m) = x ln(x/m) + m - x (Loader 2000, "Fast and
//! accurate computation of binomial probabilities"). Both D are functions of the one difference
//! k - nq, which is formed with a product in double the precision; so the error is a few
//! roundings of D itself rather than of nq.

use super::ROUND;
use super::gamma::stirling_remainder;
use crate::elementary::{ln, ln_1p};

const LN_TWO_PI: f64 = 1.837_877_066_409_345_5;

/// m [(1+t) ln(1+t) - t] with t = difference/mean: D(mean + difference, mean), within 16
/// roundings. `difference >= -mean`.
pub fn relative_entropy_term(difference: f64, mean: f64) -> f64 {
    let t = difference / mean;
    if t.abs() > 0.4 {
        let one_plus = (mean + difference) / mean;
        let product = if one_plus > 0.0 { one_plus * ln(one_plus) } else { 0.0 };
        return mean * (product - t);
    }
    // With v = t/(2+t), ln(1+t) = 2 atanh v, and the leading terms combine to t v exactly.
    let v = t / (2.0 + t);
    let s = v * v;
    let mut series = 0.0;
    for n in (1..=14).rev() {
        series = s * (1.0 / (2 * n + 1) as f64 + series);
    }
    mean * (t * v + 2.0 * (1.0 + t) * v * series)
}

/// Bin(trials, rate).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Binomial {
    trials: f64,
    rate: f64,
    mean: f64,
    mean_rest: f64,
    odds: f64,
}

impl Binomial {
    /// The law of `trials` draws with success probability 0 < rate < 1, at most 2^52 of them.
    pub fn new(trials: u64, rate: f64) -> Option<Self> {
        if trials == 0 || trials > 1 << 52 || !(rate > 0.0 && rate < 1.0) {
            return None;
        }
        let n = trials as f64;
        let mean = n * rate;
        Some(Self {
            trials: n,
            rate,
            mean,
            mean_rest: n.mul_add(rate, -mean),
            odds: rate / (1.0 - rate),
        })
    }

    /// The number of draws.
    pub fn trials(&self) -> f64 {
        self.trials
    }

    /// The probability of success.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// n q.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// What the rounded product n q leaves of its exact value.
    pub(super) fn mean_rest(&self) -> f64 {
        self.mean_rest
    }

    /// n q (1 - q).
    pub fn variance(&self) -> f64 {
        self.mean * (1.0 - self.rate)
    }

    /// b_{k+1} / b_k, within 6 roundings; 0 at k = n.
    #[inline]
    pub fn ratio(&self, k: f64) -> f64 {
        (self.trials - k) / (k + 1.0) * self.odds
    }

    /// ln b_k and a bound on its absolute error.
    pub fn log_pmf(&self, k: f64) -> (f64, f64) {
        let n = self.trials;
        if k < 0.0 || k > n {
            return (f64::NEG_INFINITY, 0.0);
        }
        if k == 0.0 {
            let value = n * ln_1p(-self.rate);
            return (value, 4.0 * ROUND * value.abs());
        }
        if k == n {
            let value = n * ln(self.rate);
            return (value, 4.0 * ROUND * value.abs());
        }
        let difference = (k - self.mean) - self.mean_rest;
        let up = relative_entropy_term(difference, self.mean);
        let down = relative_entropy_term(-difference, (n - self.mean) - self.mean_rest);
        let spread = ln(k / n * (n - k));
        let stirling = stirling_remainder(n) - stirling_remainder(k) - stirling_remainder(n - k);
        let value = -0.5 * (LN_TWO_PI + spread) + stirling - up - down;
        (value, ROUND * (20.0 * (up + down) + 3.0 * spread.abs() + 8.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Reference values: mpmath with 50 digits, the rate being the f64 written.
    #[test]
    fn log_pmf_matches_high_precision_within_its_bound() {
        for (n, q, k, want) in [
            (1, 0.1, 1.0, -2.3025850929940456285),
            (10, 0.3, 4.0, -1.6088333502186696163),
            (1000, 0.01, 10.0, -2.0735373169590644571),
            (1000, 0.01, 100.0, -147.6490334336958593),
            (1_000_000, 0.001, 900.0, -9.5003190508782890035),
            (1_000_000_000, 0.1, 100_030_000.0, -15.076287581888488509),
            (1_000_000_000, 1e-7, 90.0, -3.6873228862811060901),
            (1_000_000_000, 1e-7, 400.0, -258.43266838801381551),
            (100_000, 0.5, 70_000.0, -8234.1829310316627267),
        ] {
            let (got, error): (f64, f64) = Binomial::new(n, q).unwrap().log_pmf(k);
            assert!(
                (got - want).abs() <= error,
                "{n} {q} {k}: {got} misses {want} by more than {error:e}"
            );
            assert!(error < 3e-15 * f64::max(1.0, f64::abs(want)), "{error}");
        }
    }

    #[test]
    fn ratios_agree_with_probabilities() {
        for (n, q) in [(3, 0.1), (100, 0.01), (100_000, 0.3), (1_000_000, 1e-6)] {
            let law = Binomial::new(n, q).unwrap();
            let middle = law.mean().floor();
            for k in [0.0, 1.0, 2.0, middle, middle + 1.0] {
                if k + 1.0 > law.trials() {
                    continue;
                }
                let ((a, ea), (b, eb)) = (law.log_pmf(k), law.log_pmf(k + 1.0));
                assert!((b - a - law.ratio(k).ln()).abs() <= ea + eb + 1e-14, "{n} {q} {k}");
            }
        }
    }

    #[test]
    fn refuses_what_is_not_a_law() {
        assert!(Binomial::new(0, 0.5).is_none());
        assert!(Binomial::new(10, 1.0).is_none());
        assert!(Binomial::new(10, f64::NAN).is_none());
    }
}
