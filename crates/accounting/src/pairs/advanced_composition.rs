//! The textbook: classical Gaussian mechanism, amplification by subsampling, advanced composition.
//! Proven and very loose; for comparison only.
//!
//! Each step with noise sigma and reach k (the group) is (eps0, delta0)-private for
//! eps0 = k sqrt(2 ln(1.25/delta0))/sigma, if eps0 < 1 (Dwork and Roth 2014, Theorem A.1). The group is
//! touched with probability p = 1 - (1-q)^k, so the step is (ln(1 + p(e^eps0 - 1)), p delta0)-private
//! (Li, Qardaji, Su 2012). T steps with (eps_i, delta_i) are, for any slack, (eps, sum delta_i + slack)
//! with eps = sqrt(2 ln(1/slack) sum eps_i^2) + sum eps_i (e^eps_i - 1) (Dwork, Rothblum, Vadhan 2010,
//! Theorem III.3), or (sum eps_i, sum delta_i) by basic composition; the better of the two, at the best
//! split of delta between steps and slack.

use super::ends::{check_epsilon, check_probability};
use crate::AccountingError;
use crate::pairs::by_coins;
use numerics::elementary::{exp, exp_m1, ln, ln_1p, powf};
use vocabulary::{Adjacency, Interval, NotCovered, Phase, Run};

/// The textbook bound of a run.
///
/// ```
/// use accounting::pairs::AdvancedComposition;
/// use vocabulary::Run;
/// let run = Run::builder().phase(10.0, 0.01, 1000).build().unwrap();
/// let textbook = AdvancedComposition::for_run(&run)?;
/// assert!(textbook.epsilon(1e-5)?.upper > 0.11); // the exact value is 0.109
/// // Little noise: the classical theorem says nothing about a step.
/// let run = Run::builder().phase(1.0, 0.01, 1000).build().unwrap();
/// let textbook = AdvancedComposition::for_run(&run)?;
/// assert_eq!(textbook.epsilon(1e-5)?.upper, f64::INFINITY);
/// assert!(textbook.vacuous(1e-5).unwrap().contains("below 1"));
/// # Ok::<(), accounting::AccountingError>(())
/// ```
#[derive(Clone, Debug)]
pub struct AdvancedComposition {
    phases: Vec<Phase>,
    group: f64,
}

impl AdvancedComposition {
    /// The textbook bound for Poisson or full batches, any phases and any group size.
    ///
    /// # Errors
    /// `Unsupported` for substitution and for other sampling schemes.
    pub fn for_run(run: &Run) -> Result<Self, AccountingError> {
        by_coins(run, "advanced composition holds")?;
        if run.adjacency() == Adjacency::Substitute {
            return Err(NotCovered::Adjacency {
                found: Adjacency::Substitute,
                covered: &[Adjacency::AddRemove, Adjacency::ZeroOut],
                why: "the textbook's amplification by Poisson sampling is stated for a record added or removed",
            }
            .into());
        }
        Ok(Self { phases: run.phases().to_vec(), group: f64::from(run.group_size()) })
    }

    /// An epsilon that holds at delta; infinite where the textbook says nothing (see
    /// [`AdvancedComposition::vacuous`]). Lower end 0.
    ///
    /// # Errors
    /// `InvalidInput` if delta is not in [0, 1].
    pub fn epsilon(&self, delta: f64) -> Result<Interval, AccountingError> {
        check_probability("delta", delta)?;
        if delta == 1.0 {
            return Ok(Interval::exact(0.0));
        }
        let upper = self.best(delta) * (1.0 + 1e-13);
        Ok(Interval { lower: 0.0, value: upper, upper })
    }

    /// A delta that holds at epsilon; 1 where the textbook says nothing. Lower end 0.
    ///
    /// # Errors
    /// `InvalidInput` if epsilon is not a number.
    pub fn delta(&self, epsilon: f64) -> Result<Interval, AccountingError> {
        check_epsilon(epsilon)?;
        // best() falls with delta; the upper end of the bisection always holds.
        let (mut low, mut high) = (-700.0_f64, 0.0_f64);
        if self.best(exp(low)) * (1.0 + 1e-13) <= epsilon {
            high = low;
        }
        for _ in 0..80 {
            let middle = 0.5 * (low + high);
            if self.best(exp(middle)) * (1.0 + 1e-13) <= epsilon {
                high = middle;
            } else {
                low = middle;
            }
        }
        let upper = exp(high).min(1.0);
        Ok(Interval { lower: 0.0, value: upper, upper })
    }

    /// Why there is no finite epsilon at delta, if there is none.
    pub fn vacuous(&self, delta: f64) -> Option<String> {
        if self.best(delta).is_finite() {
            return None;
        }
        if delta <= 0.0 {
            return Some("no Gaussian mechanism is private with delta 0".to_owned());
        }
        let least = self.phases.iter().map(|p| p.noise_multiplier).fold(f64::INFINITY, f64::min);
        Some(format!(
            "the classical Gaussian mechanism is analysed only for a step's epsilon below 1, and noise multiplier \
             {least} is too small for that at this delta"
        ))
    }

    fn best(&self, delta: f64) -> f64 {
        if delta.is_nan() || delta <= 0.0 {
            return f64::INFINITY;
        }
        if delta >= 1.0 {
            return 0.0;
        }
        let mut best = self.composed(delta, 0.0);
        // The share of delta that goes to the slack; the optimum is flat.
        for i in 1..200 {
            best = best.min(self.composed(delta, f64::from(i) / 200.0));
        }
        for i in 1..40 {
            let share = powf(10f64, -f64::from(i) / 4.0);
            best = best.min(self.composed(delta, share)).min(self.composed(delta, 1.0 - share));
        }
        best
    }

    /// Epsilon with `share` of delta as slack; share 0 is basic composition.
    fn composed(&self, delta: f64, share: f64) -> f64 {
        let steps: f64 = self.phases.iter().map(|p| p.steps as f64).sum();
        let each = (1.0 - share) * delta / steps;
        let (mut sum, mut squares, mut drift) = (0.0, 0.0, 0.0);
        for phase in &self.phases {
            let touched = -exp_m1(self.group * ln_1p(-phase.sample_rate));
            let touched = if phase.sample_rate == 1.0 { 1.0 } else { touched };
            let step_delta = (each / touched).min(0.999);
            let alone = self.group * (2.0 * ln(1.25 / step_delta)).sqrt() / phase.noise_multiplier;
            if alone.is_nan() || alone >= 1.0 {
                return f64::INFINITY;
            }
            let epsilon = ln_1p(touched * exp_m1(alone));
            let count = phase.steps as f64;
            sum += count * epsilon;
            squares += count * epsilon * epsilon;
            drift += count * epsilon * exp_m1(epsilon);
        }
        if share == 0.0 {
            return sum;
        }
        (2.0 * -ln(share * delta) * squares).sqrt() + drift
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::Composed;
    use crate::{Order, Pair};

    fn bound(sigma: f64, q: f64, steps: u64) -> AdvancedComposition {
        AdvancedComposition::for_run(&Run::builder().phase(sigma, q, steps).build().unwrap())
            .unwrap()
    }

    /// One full-batch step is the classical mechanism itself.
    #[test]
    fn one_step_is_the_classical_mechanism() {
        let got = bound(10.0, 1.0, 1).epsilon(1e-5).unwrap().upper;
        let want = (2.0 * (1.25e5f64).ln()).sqrt() / 10.0;
        assert!((got / want - 1.0).abs() < 1e-12, "{got} {want}");
    }

    /// Worked by hand: sigma 20, q 1, T 100, delta 1e-5, half of it slack.
    #[test]
    fn the_best_split_is_no_worse_than_half() {
        let each: f64 = 0.5e-5 / 100.0;
        let step = (2.0 * (1.25 / each).ln()).sqrt() / 20.0;
        let half =
            (2.0 * (2e5f64).ln() * 100.0 * step * step).sqrt() + 100.0 * step * step.exp_m1();
        let got = bound(20.0, 1.0, 100).epsilon(1e-5).unwrap().upper;
        assert!(got <= half * (1.0 + 1e-12) && got > 0.8 * half, "{got} {half}");
    }

    #[test]
    fn never_below_the_exact_value_and_delta_inverts_epsilon() {
        for (sigma, q, steps) in [(10.0, 0.01, 1000), (20.0, 0.5, 50), (8.0, 1.0, 3)] {
            let run = Run::builder().phase(sigma, q, steps).build().unwrap();
            let textbook = AdvancedComposition::for_run(&run).unwrap();
            let got = textbook.epsilon(1e-6).unwrap().upper;
            let exact =
                Composed::for_run(&run).unwrap().epsilon(1e-6, Order::Remove).unwrap().lower;
            assert!(got > exact, "{got} {exact}");
            let delta = textbook.delta(got).unwrap().upper;
            assert!(delta <= 1.0001e-6 && delta > 0.5e-6, "{delta:e}");
        }
        assert_eq!(bound(0.3, 0.01, 10).delta(3.0).unwrap().upper, 1.0);
    }
}
