//! Draws from binomial laws, exactly below thirty expected, by the normal law with its skewness beyond.

use crate::split::Dealer;
use numerics::special::inverse_normal_cdf;

/// A draw from Binomial(n, p).
pub(super) fn binomial(n: u64, p: f64, dealer: &mut Dealer) -> u64 {
    if n == 0 || p <= 0.0 {
        return 0;
    }
    if p >= 1.0 {
        return n;
    }
    if p > 0.5 {
        return n - binomial(n, 1.0 - p, dealer);
    }
    let uniform = ((dealer.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    let (size, mean) = (n as f64, n as f64 * p);
    if mean < 30.0 {
        let mut mass = (size * (-p).ln_1p()).exp();
        let (mut sum, mut k) = (mass, 0_u64);
        while sum < uniform && k < n {
            k += 1;
            mass *= (size - k as f64 + 1.0) / k as f64 * p / (1.0 - p);
            sum += mass;
            if mass < 1e-18 && k as f64 > mean {
                break;
            }
        }
        return k;
    }
    let z = inverse_normal_cdf(uniform);
    let skew = (1.0 - 2.0 * p) / 6.0 * (z * z - 1.0);
    (mean + (mean * (1.0 - p)).sqrt() * z + skew).round().clamp(0.0, size) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_mean_and_variance_of_the_binomial() {
        let mut dealer = Dealer::new(5);
        for (n, p) in [(10_u64, 0.3), (1000, 0.01), (1000, 0.2), (100_000, 0.9)] {
            let draws: Vec<f64> = (0..20_000).map(|_| binomial(n, p, &mut dealer) as f64).collect();
            let mean = draws.iter().sum::<f64>() / 2e4;
            let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 2e4;
            let (expected, spread) = (n as f64 * p, n as f64 * p * (1.0 - p));
            // Four standard errors of a mean and of a variance (kurtosis near 3).
            assert!((mean - expected).abs() < 4.0 * (spread / 2e4).sqrt(), "{n} {p}: {mean}");
            assert!((variance / spread - 1.0).abs() < 4.5 * (2.0_f64 / 2e4).sqrt(), "{n} {p}");
        }
    }
}
