//! Models trained with one (epsilon, delta) memorise differently; this crate says how much, what
//! explains it, and how to choose among them. It reads a table of results and trains nothing.
//!
//! ```text
//! Table -> EpsilonGroup (one epsilon, delta) -> Configuration (batch size, steps, learning rate)
//!       -> spread, regression, heuristics, selection, correlations
//!       -> profiles (what accounting alone says of the same configurations)
//! search -> what choosing costs
//! ```
//!
//! Scores measure memorisation: larger is worse. The heuristics, the regression and Algorithm 1
//! are those of Hu et al., "Empirical Privacy Variance" (ICML 2025).
//!
//! Everything about scores is an estimate from the runs in the table. The epsilon of the chosen
//! run is not the epsilon of the search that found it: `STATEMENT` stands in every document.

mod configuration;
mod distributions;
mod error;
pub mod figures;
pub mod heuristics;
pub mod least_squares;
pub mod profiles;
pub mod ranks;
pub mod regression;
pub mod search;
pub mod selection;
pub mod spread;
mod summary;
pub mod table;

pub use configuration::{Configuration, EpsilonGroup, groups};
pub use distributions::{
    chi_squared_quantile, f_quantile, f_upper_tail, student_quantile, student_two_sided,
};
pub use error::TuningError;
pub use summary::{Ranking, rank};
pub use table::TrainingTable;

/// What every answer about a search must say.
pub(crate) const STATEMENT: &str = "the epsilon of the chosen run is not the epsilon of the search: every run trained on the same records leaked too, and choosing by a result that depends on them leaks more";

/// The noise multiplier at which a run of plain Poisson batches meets (epsilon, delta), and the
/// epsilon that it has, proven.
///
/// # Errors
/// What the accounting cannot answer.
pub fn noise_for(
    sample_rate: f64,
    steps: u64,
    epsilon: f64,
    delta: f64,
) -> Result<(f64, f64), TuningError> {
    noise_of(&vocabulary::Run::builder().phase(1.0, sample_rate, steps).build()?, epsilon, delta)
}

/// The same for a run whose batches are drawn in any way; its own noise is not looked at.
///
/// # Errors
/// What the accounting cannot answer.
pub fn noise_of(
    run: &vocabulary::Run,
    epsilon: f64,
    delta: f64,
) -> Result<(f64, f64), TuningError> {
    use accounting::{Solution, Target, Unknown, calibrate};
    use vocabulary::LensName;
    let target = Target::Epsilon { epsilon, delta };
    let found = calibrate(run, Unknown::NoiseMultiplier, &target, LensName::SIGNED, &[])?;
    match found.solution {
        Solution::NoiseMultiplier(noise) => Ok((noise, found.achieved.interval.upper)),
        other => Err(TuningError::invalid(format!(
            "calibration answered {other:?} instead of a noise multiplier"
        ))),
    }
}

/// A noise multiplier for a table, which must not depend on the last digits of a root: six digits,
/// rounded up, so that it never has more epsilon.
///
/// ```
/// assert_eq!(tuning::in_six_digits(0.95910000000003), 0.959101);
/// assert_eq!(tuning::in_six_digits(12.5), 12.5);
/// ```
pub fn in_six_digits(noise_multiplier: f64) -> f64 {
    let most = vocabulary::AtMost::new(noise_multiplier);
    most.digits(6).parse().unwrap_or(noise_multiplier)
}
