//! The trade-off curve from points of the privacy profile.
//!
//! (epsilon, delta)-privacy bounds the power of any test of size `fpr` by
//! `delta + e^epsilon fpr` and by `1 - e^-epsilon (1 - delta - fpr)` (Kairouz, Oh and
//! Viswanath 2015, theorem 2.1). The smallest of these over known points of the profile is an
//! upper bound, and tends to the curve itself as the points become dense: they are its
//! tangents. It costs no more than the profile, so it can follow a slider.

use numerics::elementary::exp;

/// An upper bound on the true positive rate at `fpr` from `(epsilon, delta)` points, each of
/// which must hold for both directions.
///
/// ```
/// use accounting::curve::most_power;
/// // One point, as in a claim of (ln 2, 0.01).
/// let power = most_power(&[(2_f64.ln(), 0.01)], 0.1);
/// assert!((power - 0.21).abs() < 1e-12);
/// assert_eq!(most_power(&[], 0.1), 1.0);
/// ```
pub fn most_power(profile: &[(f64, f64)], fpr: f64) -> f64 {
    let most = profile.iter().fold(1.0_f64, |most, &(epsilon, delta)| {
        let direct = delta + exp(epsilon) * fpr;
        let mirrored = 1.0 - exp(-epsilon) * (1.0 - delta - fpr);
        most.min(direct).min(mirrored)
    });
    // A handful of roundings, upwards.
    (most * (1.0 + 1e-14)).clamp(fpr, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lenses::Lens;
    use vocabulary::{Direction, LensName, Run};

    #[test]
    fn it_is_above_the_curve_and_close_to_it() {
        let run = Run::builder().phase(1.0, 0.01, 1000).build().unwrap();
        for name in [LensName::SIGNED, LensName::BESIDE] {
            let view = Lens::named(name).look(&run).unwrap();
            let farthest = view.epsilon(1e-8, Direction::Both).unwrap().upper;
            let profile: Vec<(f64, f64)> = (0..=64)
                .map(|part| farthest * f64::from(part) / 64.0)
                .map(|epsilon| (epsilon, view.delta(epsilon, Direction::Both).unwrap().upper))
                .collect();
            for fpr in [1e-5, 1e-3, 0.01, 0.1, 0.5, 0.9] {
                let bound = most_power(&profile, fpr);
                let truth = view.tpr(fpr, Direction::Both).unwrap();
                assert!(bound >= truth.lower, "{name} at {fpr}: {bound} < {truth:?}");
                // Between two tangents the gap is second order in their distance.
                assert!(bound <= truth.upper * 1.01, "{name} at {fpr}: {bound} > {truth:?}");
            }
        }
    }
}
