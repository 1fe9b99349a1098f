//! How long an answer may take.

use super::real;
use clap::Args;

/// The limit of every command that computes an answer.
#[derive(Clone, Copy, Debug, Args)]
pub struct LimitArgs {
    /// Seconds of processor time that the answer may take; then it is refused, with what is known
    /// [default: 10; 60 for a report]
    #[arg(long, value_name = "SECONDS", value_parser = real, allow_hyphen_values = true, help_heading = "Output")]
    pub time_limit: Option<f64>,
}
