//! Auditing with one training run: m canaries, each in the data with probability 1/2,
//! independently, and guesses about some of them.
//!
//! The guesses may depend on the scores in any way, never on who was in. Here the g1 highest
//! scores are guessed "in" and the g0 lowest "out"; everything between is passed over. Which
//! (g1, g0) is best is not known beforehand, so the `union` rule tries a short list that depends
//! on m alone and splits the error over it; `holdout` and `k-fold` let some canaries choose and
//! the others count (given the bits of the choosing canaries the run is still private in the
//! bits of the rest); `fixed:V` guesses "in" at V and above and passes over the rest. Ties at an
//! edge are decided by lot, so that the number of guesses is fixed, as the theorems ask.
//!
//! Only `fixed:V` lets the scores decide how many guesses there are. At delta 0 the bound holds
//! given any number of guesses; at delta > 0 the delta term is then the published practice and not
//! the letter of the theorem (the error can exceed the level by at most 2 m delta times the
//! largest density of the count, a fraction of the delta term itself).
//!
//! Both bounds need the bits to be independent and fair. [`fair_bits`] tests the count of
//! members against Binomial(m, 1/2); an audit of unbalanced canaries is refused.

mod epsilon_delta;
mod gaussian;
mod guesses;

pub use epsilon_delta::{OneRunZero, one_run_epsilon, one_run_p_value};
pub use gaussian::{one_run_gaussian_mu, one_run_gaussian_rejects};
pub(crate) use guesses::strategies;
pub use guesses::{Guesses, OneRunBound, OneRunStatistic, one_run_bound};

use numerics::beta::binomial_log_tails;

/// Below this two-sided p-value the canaries cannot have been included by fair coins.
pub const FAIRNESS_LEVEL: f64 = 1e-3;

/// The two-sided exact binomial p-value of `members` among `members + nonmembers` fair bits.
///
/// ```
/// assert!(audit::one_run::fair_bits(520, 480) > 0.1);
/// assert!(audit::one_run::fair_bits(200, 2000) < 1e-300);
/// ```
pub fn fair_bits(members: u64, nonmembers: u64) -> f64 {
    let smaller = members.min(nonmembers);
    (2.0 * binomial_log_tails(smaller, members + nonmembers, 0.5).lower.exp()).min(1.0)
}
