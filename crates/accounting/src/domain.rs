//! The domain for which numbers are promised: noise multiplier in [0.2, 100], sample rate in
//! [1e-7, 1], steps in [1, 1e9], delta in [1e-100, 0.5]. Outside of it an answer is refused
//! rather than guessed; a value that makes no sense at all is invalid input.

use crate::AccountingError;
use vocabulary::rounding::plain;
use vocabulary::{Phase, Problem, Run};

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
        inside("noise multiplier", phase.noise_multiplier, NOISE_MULTIPLIER).map_err(
            |problem| match convention(run, phase) {
                Some(words) => AccountingError::OutsideDomain(problem.then(&words)),
                None => AccountingError::OutsideDomain(problem),
            },
        )?;
        inside("sample rate", phase.sample_rate, SAMPLE_RATE)
            .map_err(AccountingError::OutsideDomain)?;
    }
    if run.steps() > STEPS.1 {
        let message = format!(
            "{} steps are outside of [1, 1e9], the domain in which numbers are certified",
            run.steps()
        );
        let problem = Problem::from(message).about("steps", run.steps(), "[1, 1e9]");
        return Err(AccountingError::OutsideDomain(problem));
    }
    Ok(())
}

/// What a noise outside of the domain looks like: sigma in another convention.
fn convention(run: &Run, phase: &Phase) -> Option<String> {
    let noise = phase.noise_multiplier;
    let batch = run.dataset_size().map(|size| (size as f64 * phase.sample_rate).round());
    let fits = |value: f64| (NOISE_MULTIPLIER.0..=NOISE_MULTIPLIER.1).contains(&value);
    if noise < NOISE_MULTIPLIER.0 {
        let there = batch
            .filter(|batch| fits(noise * batch))
            .map(|batch| format!(", here {noise} x {batch} = {:.4}", noise * batch));
        return Some(format!(
            "It looks like noise on the mean of a batch; the noise multiplier is about the sum: \
             multiply by the batch size{}",
            there.unwrap_or_default()
        ));
    }
    if noise > NOISE_MULTIPLIER.1 {
        let clip = run.clip_norm();
        let by_clip = (clip != 1.0 && fits(noise / clip))
            .then(|| format!(", here {noise} / {clip} = {:.4}", noise / clip));
        let by_batch = batch
            .filter(|batch| fits(noise / batch))
            .map(|batch| format!(", here {noise} / {batch} = {:.4}", noise / batch));
        return Some(format!(
            "It looks like a standard deviation; the noise multiplier is in units of the clip \
             norm: divide by the clip norm{}, and by the batch size where the noise was multiplied \
             by it{}",
            by_clip.unwrap_or_default(),
            by_batch.unwrap_or_default()
        ));
    }
    None
}

/// Whether a delta makes sense and lies in the domain.
///
/// # Errors
/// `InvalidInput` outside (0, 1), `OutsideDomain` outside [1e-100, 0.5].
pub fn check_delta(delta: f64) -> Result<(), AccountingError> {
    if !(delta > 0.0 && delta < 1.0) {
        return Err(AccountingError::invalid(
            Problem::outside("delta", delta, "(0, 1)").and("give a small probability such as 1e-5"),
        ));
    }
    inside("delta", delta, DELTA).map_err(AccountingError::OutsideDomain)
}

/// Whether an epsilon makes sense.
///
/// # Errors
/// `InvalidInput` for negative and non-finite ones.
pub fn check_epsilon(epsilon: f64) -> Result<(), AccountingError> {
    if epsilon >= 0.0 && epsilon.is_finite() {
        return Ok(());
    }
    Err(AccountingError::invalid(
        Problem::is_not("epsilon", epsilon, "a finite number of at least 0")
            .and("give one such as 1 or 0.5"),
    ))
}

/// Whether a rate or a prior lies in (0, 1).
///
/// # Errors
/// `InvalidInput` otherwise.
pub fn check_probability(what: &str, value: f64) -> Result<(), AccountingError> {
    if value > 0.0 && value < 1.0 {
        return Ok(());
    }
    Err(AccountingError::invalid(
        Problem::outside(what, value, "(0, 1)").and("give a probability such as 0.01"),
    ))
}

fn inside(what: &str, value: f64, (low, high): (f64, f64)) -> Result<(), Problem> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    let range = format!("[{}, {}]", plain(low), plain(high));
    let message = format!(
        "{what} {} is outside of {range}, the domain in which numbers are certified",
        plain(value)
    );
    Err(Problem::from(message).about(what, value, &range))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sigma in another convention is recognised.
    #[test]
    fn conventions_are_hinted_at() {
        let told = |noise: f64, clip: f64| {
            let run = Run::builder()
                .phase(noise, 512.0 / 50_000.0, 100)
                .dataset_size(50_000)
                .clip_norm(clip)
                .build()
                .unwrap();
            check_run(&run).unwrap_err().to_string()
        };
        let mean = told(0.00215, 1.0);
        assert!(mean.contains("noise on the mean") && mean.contains("x 512 = 1.1008"), "{mean}");
        let scaled = told(563.0, 1.0);
        assert!(
            scaled.contains("standard deviation") && scaled.contains("/ 512 = 1.0996"),
            "{scaled}"
        );
        let clipped = told(150.0, 100.0);
        assert!(clipped.contains("150 / 100 = 1.5000"), "{clipped}");
    }
}
