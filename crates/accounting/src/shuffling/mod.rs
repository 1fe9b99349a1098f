//! Balls and bins: every record is thrown into one of the S batches of an epoch, independently of
//! all others. It looks like shuffling to a record, and its worst pair is known (Chua et al. 2025,
//! "Balls-and-bins sampling for DP-SGD"): in units of the clip norm
//!
//! ```text
//! P = (1/S) sum_t N(e_t, s^2 I),   Q = N(0, s^2 I)   in S dimensions; epochs compose.
//! ```
//!
//! - [`lower_bound`]: **never above** the truth, from the event "some coordinate exceeds C", counted
//!   over epochs; the same machine as [`crate::pairs::shuffle_lower_bound`], which moves by 2 and 1
//!   instead of 1 and 0.
//! - [`monte_carlo`]: delta at an epsilon by sampling the privacy loss
//!   L(x) = ln(mean_t e^{x_t/s^2}) - 1/(2 s^2), summed over epochs, with an **interval at a stated
//!   confidence**: delta = E_P (1 - e^{eps-L})_+ is an average of numbers in [0, 1] (and for adding a
//!   record E_Q (1 - e^{eps+L})_+). Bernstein's inequality with the empirical variance (Maurer, Pontil
//!   2009, Theorem 4) on either side. Deltas far below 1/samples are not seen by it: the upper end then
//!   says about 4 ln(4/error)/samples. Cost: S Gaussians per epoch and sample.
//!
//! Nothing here is a bound for shuffled batches, whose worst pair is not known.

mod asides;

pub use asides::measured;
pub(crate) use asides::{game, least_epsilon};
use numerics::elementary::{exp, exp_m1, ln};

use crate::pairs::{ShuffleLowerBound, shuffle_lower_bound};
use crate::{AccountingError, Order};
use vocabulary::Interval;

/// The lower bound for `epochs` epochs of `steps_per_epoch` batches.
///
/// ```
/// use accounting::shuffling::lower_bound;
/// let epsilon = lower_bound(0.5, 100, 1)?.epsilon(1e-5)?.lower;
/// assert!(epsilon > 1.0, "{epsilon}");
/// # Ok::<(), accounting::AccountingError>(())
/// ```
///
/// # Errors
/// As [`shuffle_lower_bound`].
pub fn lower_bound(
    noise_multiplier: f64,
    steps_per_epoch: u64,
    epochs: u64,
) -> Result<ShuffleLowerBound, AccountingError> {
    Ok(shuffle_lower_bound(noise_multiplier, steps_per_epoch, epochs)?.with_moves(1.0, 0.0))
}

/// A game of balls and bins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BallsAndBins {
    pub noise_multiplier: f64,
    pub steps_per_epoch: u64,
    pub epochs: u64,
}

/// delta at `epsilon` in one order, from `samples` draws: value with the ends of an interval that
/// holds with probability `confidence`. `gaussian` returns independent standard normals.
///
/// # Errors
/// `InvalidInput` for fewer than 2 samples or a confidence outside (0, 1).
pub fn monte_carlo(
    game: &BallsAndBins,
    epsilon: f64,
    order: Order,
    samples: u64,
    confidence: f64,
    gaussian: &mut dyn FnMut() -> f64,
) -> Result<Interval, AccountingError> {
    if samples < 2 || !(confidence > 0.0 && confidence < 1.0) {
        return Err(AccountingError::invalid(format!(
            "{samples} samples at confidence {confidence}: at least 2, and inside (0, 1), are needed"
        )));
    }
    // Welford's recurrence: no cancellation in the variance.
    let (mut mean, mut squares) = (0.0, 0.0);
    for i in 0..samples {
        let loss = game.loss(order, gaussian);
        let share = (-exp_m1(epsilon - loss)).max(0.0);
        let off = share - mean;
        mean += off / (i + 1) as f64;
        squares += off * (share - mean);
    }
    let n = samples as f64;
    // Half of the error on each side.
    let words = ln(4.0 / (1.0 - confidence));
    let slack = (2.0 * squares / (n - 1.0) * words / n).sqrt() + 7.0 * words / (3.0 * (n - 1.0));
    Ok(Interval::new((mean - slack).max(0.0), mean, (mean + slack).min(1.0)))
}

impl BallsAndBins {
    /// One draw of the privacy loss of an order: of P against Q under P, or of Q against P under Q.
    fn loss(&self, order: Order, gaussian: &mut dyn FnMut() -> f64) -> f64 {
        let (s, bins) = (self.noise_multiplier, self.steps_per_epoch);
        let gain = 1.0 / (s * s);
        let mut total = 0.0;
        for _ in 0..self.epochs {
            let (mut largest, mut sum) = (f64::NEG_INFINITY, 0.0);
            for t in 0..bins {
                // All coordinates are alike, so the record may as well be in the first.
                let moved = if t == 0 && order == Order::Remove { 1.0 } else { 0.0 };
                let x = gain * (moved + s * gaussian());
                if x > largest {
                    sum = sum * exp(largest - x) + 1.0;
                    largest = x;
                } else {
                    sum += exp(x - largest);
                }
            }
            total += largest + ln(sum / bins as f64) - 0.5 * gain;
        }
        if order == Order::Remove { total } else { -total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pair;
    use crate::pairs::Gaussian;
    use numerics::special::inverse_normal_cdf;

    fn normals(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            inverse_normal_cdf((((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64)
        }
    }

    /// One bin: N(1) against N(0), E epochs of it, in closed form.
    #[test]
    fn one_bin_is_the_gaussian() {
        let game = BallsAndBins { noise_multiplier: 2.0, steps_per_epoch: 1, epochs: 4 };
        for order in [Order::Remove, Order::Add] {
            let exact = Gaussian::new(1.0).unwrap().delta(0.5, order).unwrap().value;
            let found = monte_carlo(&game, 0.5, order, 40_000, 0.9999, &mut normals(3)).unwrap();
            assert!(found.lower <= exact && exact <= found.upper, "{found:?} {exact}");
            assert!(found.width() < 0.05);
        }
        let exact = Gaussian::new(0.5).unwrap().delta(0.3, Order::Remove).unwrap();
        let bound = lower_bound(2.0, 1, 1).unwrap().delta(0.3).unwrap().lower;
        assert!(bound <= exact.upper && bound > exact.value * (1.0 - 1e-6));
    }

    /// Two bins, one epoch, by quadrature over both coordinates: an independent route.
    #[test]
    fn two_bins_by_quadrature() {
        let (s, epsilon) = (0.8_f64, 0.7_f64);
        let density =
            |x: f64, m: f64| (-0.5 * ((x - m) / s).powi(2)).exp() / (s * 2.506_628_274_631);
        let (step, mut delta) = (0.02, 0.0);
        for i in -350..=400 {
            for j in -350..=400 {
                let (x, y) = (step * f64::from(i), step * f64::from(j));
                let (x0, x1, y0, y1) =
                    (density(x, 0.0), density(x, 1.0), density(y, 0.0), density(y, 1.0));
                let with = 0.5 * (x1 * y0 + x0 * y1);
                delta += (with - epsilon.exp() * x0 * y0).max(0.0) * step * step;
            }
        }
        let game = BallsAndBins { noise_multiplier: s, steps_per_epoch: 2, epochs: 1 };
        let found =
            monte_carlo(&game, epsilon, Order::Remove, 60_000, 0.9999, &mut normals(8)).unwrap();
        assert!(found.lower <= delta && delta <= found.upper, "{found:?} {delta}");
        let bound = lower_bound(s, 2, 1).unwrap().delta(epsilon).unwrap().lower;
        assert!(bound <= delta + 1e-6 && bound > 0.7 * delta, "{bound} {delta}");
    }

    /// The interval covers at least as often as it says (one bin, where the truth is known).
    #[test]
    fn coverage() {
        let game = BallsAndBins { noise_multiplier: 1.0, steps_per_epoch: 1, epochs: 1 };
        let exact = Gaussian::new(1.0).unwrap().delta(0.0, Order::Remove).unwrap().value;
        let mut missed = 0;
        for seed in 0..200 {
            let found =
                monte_carlo(&game, 0.0, Order::Remove, 300, 0.9, &mut normals(seed)).unwrap();
            missed += u32::from(!(found.lower <= exact && exact <= found.upper));
        }
        // Binomial(200, 0.1) exceeds 34 with probability below 1e-3.
        assert!(missed <= 34, "{missed}");
    }
}
