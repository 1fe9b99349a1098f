//! Auditing with one training run: m canaries, each in the data with probability 1/2,
//! independently, and guesses about some of them.
//!
//! The guesses may depend on the scores in any way, never on who was in. Here at most g1 of the highest
//! scores are guessed "in" and at most g0 of the lowest "out"; everything between is passed over, and
//! so are scores that tie across an edge. Which (g1, g0) is best is not known beforehand. The
//! `union` rule makes one statement about a list that depends on m alone ([`union`]); `holdout` and `k-fold` let some canaries choose
//! for the others ([`chosen`]); `fixed:V`
//! guesses "in" at V and above and passes over the rest.
//!
//! At delta 0 a bound holds given the scores, so it counts the guesses that were made. At delta > 0 and for
//! f-DP the theorems ask for a number of guesses fixed beforehand: the most that the strategy could
//! make, those that ties left out counted as wrong. Only `fixed:V` lets the scores decide how many
//! guesses there are at delta > 0 too; its delta term is then the published practice and not the letter of the theorem
//! (the error can exceed the level by at most 2 m delta times the largest density of the
//! count, a fraction of the delta term itself).
//!
//! Both bounds need the bits to be independent and fair. [`fair_bits`] tests the count of
//! members against Binomial(m, 1/2); an audit of unbalanced canaries is refused.

mod chosen;
mod epsilon_delta;
mod gaussian;
mod guesses;
mod strategies;
mod union;

pub(crate) use chosen::{Chosen, NO_CHOICE};
pub use epsilon_delta::{OneRunZero, one_run_epsilon, one_run_p_value};
pub use gaussian::{one_run_gaussian_mu, one_run_gaussian_rejects};
pub(crate) use guesses::one_run_reach;
pub use guesses::{OneRunBound, OneRunStatistic, one_run_bound};
pub use strategies::Guesses;
pub(crate) use strategies::{Strategy, chains, choices};
pub(crate) use union::critical_counts;

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
