//! What is wrong with a run as it is described.

use crate::rounding::plain;

/// What is wrong with a run's description. The message names the value and the fix.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    #[error(
        "noise multiplier {} is not a finite number above 0; give sigma, the noise's standard deviation in units of the clip norm",
        plain(*.0)
    )]
    NoiseMultiplier(f64),
    #[error(
        "sample rate {} is outside (0, 1]; give the probability that a record is in a batch, or batch size and data set size",
        plain(*.0)
    )]
    SampleRate(f64),
    #[error("steps {0} is not at least 1; give the number of noisy updates")]
    Steps(u64),
    #[error("clip norm {} is not a finite number above 0", plain(*.0))]
    ClipNorm(f64),
    #[error("group size {0} is not between 1 and 1000")]
    GroupSize(u32),
    #[error("data set size {0} is not at least 1")]
    DatasetSize(u64),
    #[error(
        "full batches mean sample rate 1, but sample rate {0} was given; drop it or choose another sampling"
    )]
    FullBatchRate(f64),
    #[error("the steps of all phases add up to more than 2^53; give the number of noisy updates")]
    TotalSteps,
    #[error("batch size {0} is not at least 1")]
    BatchSize(u64),
    #[error(
        "epochs {} is not a usable number above 0; give the passes over the data, or --steps",
        plain(*.0)
    )]
    Epochs(f64),
    #[error("{0} is missing; give {1}")]
    Missing(&'static str, &'static str),
    #[error("{0}")]
    Contradiction(String),
    #[error("`{key}` must be {expected}, but is {found}")]
    WrongType { key: String, expected: &'static str, found: String },
    #[error("`{key}` is `{value}`, which is none of: {allowed}")]
    Choice { key: String, value: String, allowed: String },
    #[error("unknown key `{key}` in {place}; {hint}")]
    UnknownKey { key: String, place: String, hint: String },
    #[error("`{0}` stands outside of the [run] table; put it below a line `[run]`")]
    Misplaced(String),
    #[error("the file has no [run] table; describe the run below a line `[run]`")]
    NoRunTable,
    #[error("the document has no `run`; give a ledger, or what `account --format json` prints")]
    NoRunKey,
    #[error(
        "schema `{0}` is not one that describes a run; give a dosimeter.run/1, dosimeter.ledger/1 or dosimeter.account/1 document"
    )]
    Schema(String),
    #[error("line {line} is not valid {format}: {message}")]
    Syntax { format: &'static str, line: usize, message: String },
    #[error("{0}; {1}")]
    Scheme(String, &'static str),
    #[error("a run needs at least one phase: give noise multiplier, sample rate and steps")]
    NoPhase,
}
