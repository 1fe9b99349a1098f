//! The domain for which numbers are promised: noise multiplier in [0.2, 100], sample rate in
//! [1e-7, 1], steps in [1, 1e9], delta in [1e-100, 0.5]. Outside of it an answer is refused
//! rather than guessed; a value that makes no sense at all is invalid input.

use crate::AccountingError;
use vocabulary::Run;

pub const NOISE_MULTIPLIER: (f64, f64) = (0.2, 100.0);
pub const SAMPLE_RATE: (f64, f64) = (1e-7, 1.0);
pub const STEPS: (u64, u64) = (1, 1_000_000_000);
pub const DELTA: (f64, f64) = (1e-100, 0.5);

/// Whether every phase and the whole run lie in the domain.
///
/// # Errors
/// `OutsideDomain` with the value and the domain.
pub fn check_run(run: &Run) -> Result<(), AccountingError> {
    for phase in run.phases() {
        inside("noise multiplier", phase.noise_multiplier, NOISE_MULTIPLIER)?;
        inside("sample rate", phase.sample_rate, SAMPLE_RATE)?;
    }
    if run.steps() > STEPS.1 {
        return Err(AccountingError::OutsideDomain(format!(
            "{} steps are outside of [1, 1e9], the domain in which numbers are certified",
            run.steps()
        )));
    }
    Ok(())
}

/// Whether a delta makes sense and lies in the domain.
///
/// # Errors
/// `InvalidInput` outside (0, 1), `OutsideDomain` outside [1e-100, 0.5].
pub fn check_delta(delta: f64) -> Result<(), AccountingError> {
    if !(delta > 0.0 && delta < 1.0) {
        return Err(AccountingError::InvalidInput(format!(
            "delta {delta} is outside (0, 1); give a small probability such as 1e-5"
        )));
    }
    inside("delta", delta, DELTA)
}

/// Whether an epsilon makes sense.
///
/// # Errors
/// `InvalidInput` for negative and non-finite ones.
pub fn check_epsilon(epsilon: f64) -> Result<(), AccountingError> {
    if epsilon >= 0.0 && epsilon.is_finite() {
        return Ok(());
    }
    Err(AccountingError::InvalidInput(format!(
        "epsilon {epsilon} is not a finite number of at least 0; give one such as 1 or 0.5"
    )))
}

/// Whether a rate or a prior lies in (0, 1).
///
/// # Errors
/// `InvalidInput` otherwise.
pub fn check_probability(what: &str, value: f64) -> Result<(), AccountingError> {
    if value > 0.0 && value < 1.0 {
        return Ok(());
    }
    Err(AccountingError::InvalidInput(format!(
        "{what} {value} is outside (0, 1); give a probability such as 0.01"
    )))
}

fn inside(what: &str, value: f64, (low, high): (f64, f64)) -> Result<(), AccountingError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(AccountingError::OutsideDomain(format!(
        "{what} {value} is outside of [{low}, {high}], the domain in which numbers are certified"
    )))
}
