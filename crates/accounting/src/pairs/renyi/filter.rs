//! A Rényi filter (Feldman, Zrnic 2021): outputs choose the noise, the rate and the number of steps, and the
//! training ends before the sum of the steps' divergences at one order alpha exceeds a budget B. Order and
//! budget were fixed beforehand.
//!
//! *Why B bounds the whole.* Let L_t be dP_t/dQ_t of step t given the outputs before it, and rho_t the largest
//! divergence of order alpha that the step can have with the noise and rate that these outputs chose: then
//! E_Q[L_t^alpha | past] <= e^{(alpha-1) rho_t}, and rho_t is known before the step. So
//! M_t = prod_{s <= t} L_s^alpha e^{-(alpha-1) rho_s} is a supermartingale under Q, and E_Q M_T <= 1 at the end T,
//! which is bounded (pad with steps that release nothing). Since the sum of rho_s up to T is at most B,
//! E_Q prod L_s^alpha <= e^{(alpha-1) B}: divergence at most B at order alpha. Both orders of the pair alike.
//!
//! The conversion to epsilon and delta is that of [`RenyiBound`] at this one order, with B in place of the sum.

use super::super::ends::{check_epsilon, check_probability};
use super::{RenyiBound, delta_of, epsilon_at, log_delta_at};
use crate::AccountingError;
use vocabulary::{AtMost, NotCertified, RenyiFilter, Run};

/// The budget is taken this much larger, relative to itself: sums that meet it up to roundings are within it.
const ROUNDINGS: f64 = 1e-12;

/// What a filter promises, whatever outputs chose within its budget.
///
/// ```
/// use accounting::pairs::FilterBound;
/// use vocabulary::{RenyiFilter, Run};
/// let run = Run::builder().phase(2.0, 1.0, 10).build().unwrap();
/// // Full batches spend alpha/(2 sigma^2) per step: 10 steps at order 8 are 10 in all.
/// let within = FilterBound::for_run(&run, RenyiFilter { order: 8.0, budget: 10.0 })?;
/// assert!((within.epsilon(1e-5)? - 11.214_109).abs() < 1e-6);
/// assert!(FilterBound::for_run(&run, RenyiFilter { order: 8.0, budget: 9.9 }).is_err());
/// # Ok::<(), accounting::AccountingError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FilterBound {
    order: f64,
    /// (alpha - 1) times the budget.
    moment: f64,
}

impl FilterBound {
    /// The bound for a run whose phases are what was spent.
    ///
    /// # Errors
    /// `InvalidInput` where the phases spend more than the budget; as [`RenyiBound::for_run`] otherwise.
    pub fn for_run(run: &Run, filter: RenyiFilter) -> Result<Self, AccountingError> {
        let RenyiFilter { order, budget } = filter;
        let spent = RenyiBound::for_run(run)?.divergence(order)?.upper;
        if !spent.is_finite() {
            return Err(NotCertified::Spent { order }.into());
        }
        let most = budget * (1.0 + ROUNDINGS);
        if spent > most {
            return Err(AccountingError::invalid(format!(
                "the steps spend a Rényi divergence of {} at order {order}, more than the budget {budget}; a \
                 filter ends the run before that",
                AtMost::new(spent).digits(6)
            )));
        }
        Ok(Self { order, moment: (order - 1.0) * most })
    }

    /// An epsilon that holds at delta.
    ///
    /// # Errors
    /// `InvalidInput` if delta is not in [0, 1].
    pub fn epsilon(&self, delta: f64) -> Result<f64, AccountingError> {
        check_probability("delta", delta)?;
        Ok(if delta == 0.0 {
            f64::INFINITY
        } else if delta == 1.0 {
            0.0
        } else {
            epsilon_at(self.order, self.moment, delta).max(0.0)
        })
    }

    /// A delta that holds at epsilon.
    ///
    /// # Errors
    /// `InvalidInput` if epsilon is not a number.
    pub fn delta(&self, epsilon: f64) -> Result<f64, AccountingError> {
        check_epsilon(epsilon)?;
        Ok(if epsilon < 0.0 {
            1.0
        } else if epsilon == f64::INFINITY {
            0.0
        } else {
            delta_of(log_delta_at(self.order, self.moment, epsilon))
        })
    }
}
