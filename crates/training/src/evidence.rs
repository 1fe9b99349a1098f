//! The evidence of one step about a record that may be in its batch.

/// ln(1 - q + q e^x), without overflow: the log-likelihood ratio of a step in which the record is
/// with probability q, where x is the ratio if it is.
///
/// ```
/// let ratio = training::log_mixture(0.1, 0.3);
/// assert!((ratio - (0.9 + 0.1 * f64::exp(0.3)).ln()).abs() < 1e-12);
/// ```
pub fn log_mixture(q: f64, x: f64) -> f64 {
    if q >= 1.0 {
        return x;
    }
    let (a, b) = ((-q).ln_1p(), q.ln() + x);
    a.max(b) + (-(a - b).abs()).exp().ln_1p()
}

#[cfg(test)]
mod tests {
    use super::log_mixture;

    #[test]
    fn the_mixture_is_exact_where_it_can_be_computed_directly() {
        for (q, x) in [(0.1, 0.3), (0.5, -2.0), (1e-3, 5.0), (1.0, 0.7)] {
            let direct = (1.0 - q + q * f64::exp(x)).ln();
            assert!((log_mixture(q, x) - direct).abs() < 1e-12, "{q} {x}");
        }
        assert!((log_mixture(0.1, 5000.0) - (5000.0 + 0.1_f64.ln())).abs() < 1e-9);
        assert_eq!(log_mixture(0.25, -5000.0), 0.75_f64.ln());
    }
}
