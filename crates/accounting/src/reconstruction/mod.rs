//! Reconstruction: how often an attacker who sees all iterates can rebuild a record, or name it
//! among candidates. **Upper bounds**, from the trade-off curve of adding a record.
//!
//! *A prior kappa* (Hayes, Mahloujifar, Balle 2023, "reconstruction robustness"): if
//! without the model no guess is close enough to the record with probability above kappa, then
//! with it none is with probability above B = sup{P(E): Q(E) <= kappa} = TPR at FPR kappa. For
//! exact recovery among M equally likely candidates kappa = 1/M. [`success`].
//!
//! *Candidates with prior probabilities pi_i*: the attacker's answers cut the outcomes into sets
//! E_i, so the success is sum_i pi_i P_i(E_i), and P_i(E_i) - x Q(E_i) <= delta(ln x) for every x, Q
//! the run without the record. With x = lambda/pi_i and sum Q(E_i) = 1,
//!
//! ```text
//! success <= lambda + sum_i pi_i delta(ln(lambda/pi_i))     for every lambda > 0,
//! ```
//!
//! convex in lambda; the minimum is reported ([`among`]). For equal priors it is TPR at 1/M, as
//! above; for unequal ones it is smaller than what the largest prior alone would give. Cost: some
//! forty evaluations of delta for each distinct prior.

use crate::directions::convex;
use crate::{AccountingError, Order, Pair};
use numerics::elementary::{exp, ln};
use vocabulary::Interval;

/// Success of reconstruction at a prior `kappa`: at most TPR at FPR kappa of the order in which the
/// record is there.
///
/// # Errors
/// Those of the pair.
pub fn success(pair: &dyn Pair, kappa: f64) -> Result<Interval, AccountingError> {
    crate::domain::check_probability("prior", kappa)?;
    Ok(pair.tpr(kappa, Order::Remove)?.clamp(kappa, 1.0))
}

/// Success of naming the record among candidates with these prior probabilities. The upper end
/// is proven; the lower one is guessing the likeliest.
///
/// ```
/// use accounting::{pairs::Gaussian, reconstruction};
/// let pair = Gaussian::new(1.0)?;
/// let ten = reconstruction::among(&pair, &[0.1; 10])?;
/// assert!((ten.upper - reconstruction::success(&pair, 0.1)?.value).abs() < 1e-7);
/// // Nine candidates that are hardly ever true: little better than guessing the tenth.
/// let uneven = reconstruction::among(&pair, &[[0.99].as_slice(), &[0.01 / 9.0; 9]].concat())?;
/// assert!(uneven.upper < 0.9915);
/// # Ok::<(), accounting::AccountingError>(())
/// ```
///
/// # Errors
/// `InvalidInput` unless the priors are positive and sum to 1; those of the pair.
pub fn among(pair: &dyn Pair, priors: &[f64]) -> Result<Interval, AccountingError> {
    let total: f64 = priors.iter().sum();
    if priors.len() < 2 || priors.iter().any(|prior| !(*prior > 0.0)) || (total - 1.0).abs() > 1e-6
    {
        return Err(AccountingError::invalid(format!(
            "{} priors with sum {total} are not probabilities of at least two candidates",
            priors.len()
        )));
    }
    let mut sorted = priors.to_vec();
    sorted.sort_by(f64::total_cmp);
    let groups: Vec<(f64, f64)> =
        sorted.chunk_by(|a, b| a == b).map(|group| (group[0], group.len() as f64)).collect();
    let largest = sorted.last().copied().unwrap_or(1.0);
    let session = pair.session();
    let pair = session.as_deref().unwrap_or(pair);
    let line = |log_lambda: f64| {
        let lambda = exp(log_lambda);
        let mut sum = Interval::exact(lambda);
        for (prior, count) in &groups {
            let delta = pair.delta(ln(lambda / prior), Order::Remove)?;
            let share = delta.map_increasing(|delta| prior * count * delta);
            sum = Interval {
                lower: sum.lower + share.lower,
                value: sum.value + share.value,
                upper: sum.upper + share.upper,
            };
        }
        Ok(sum)
    };
    // lambda = 1 allows everything; below the smallest prior times this nothing is gained.
    let least = sorted[0] * 1e-3;
    let (_, found) =
        convex::minimise_from(line, least, 1.0, convex::Guess { at: largest, step: 0.0 })?;
    let upper = (found.upper * (1.0 + 1e-12)).min(1.0).max(largest);
    Ok(Interval::new(largest, found.value.min(upper), upper))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::{Composed, Gaussian};
    use vocabulary::Run;

    /// Equal priors: the two routes are the same number.
    #[test]
    fn equal_candidates_are_a_prior_of_one_over_m() {
        let run = Run::builder().phase(1.0, 0.01, 1000).build().unwrap();
        let pair = Composed::for_run(&run).unwrap();
        for m in [2_usize, 10, 100] {
            let by_prior = success(&pair, 1.0 / m as f64).unwrap();
            let by_candidates = among(&pair, &vec![1.0 / m as f64; m]).unwrap();
            let gap = by_candidates.upper - by_prior.upper;
            assert!(gap.abs() < 1e-7, "{m}: {by_prior:?} {by_candidates:?}");
        }
    }

    /// A simulated attacker who knows the mechanism (maximum a posteriori on orthogonal shifts, the
    /// worst case up to the candidates' geometry) stays below the bound and comes close to it.
    #[test]
    fn no_attacker_exceeds_the_bound() {
        let (mu, priors) = (1.2_f64, [0.6, 0.2, 0.1, 0.1]);
        let bound = among(&Gaussian::new(mu).unwrap(), &priors).unwrap().upper;
        let mut state = 9_u64;
        let mut uniform = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        };
        let (mut right, trials) = (0_u32, 40_000);
        for _ in 0..trials {
            let draw = uniform();
            let mut truth = 0;
            let mut sum = priors[0];
            while draw > sum && truth < 3 {
                truth += 1;
                sum += priors[truth];
            }
            let score = |i: usize, noise: f64| {
                let x = noise + if i == truth { mu } else { 0.0 };
                priors[i].ln() + mu * x
            };
            let scores: Vec<f64> = (0..4)
                .map(|i| score(i, numerics::special::inverse_normal_cdf(uniform())))
                .collect();
            let best = (0..4).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap();
            right += u32::from(best == truth);
        }
        let rate = f64::from(right) / f64::from(trials);
        // Four standard deviations of the simulation.
        assert!(rate < bound + 4.0 * (0.25 / f64::from(trials)).sqrt(), "{rate} {bound}");
        assert!(rate > bound - 0.12, "{rate} {bound}");
    }

    #[test]
    fn bad_priors_are_refused() {
        let pair = Gaussian::new(1.0).unwrap();
        assert!(among(&pair, &[0.5, 0.4]).is_err());
        assert!(among(&pair, &[1.0]).is_err());
        assert!(among(&pair, &[1.2, -0.2]).is_err());
    }
}
