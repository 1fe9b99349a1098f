//! What is known beyond the run: sensitivities of gradients to a secret attribute, and constants
//! of the loss.

use super::{integer, nonnegative_integer, real};
use crate::failure::Failure;
use accounting::bayes_security::attribute::Mode;
use answers::TextFile;
use clap::Args;
use std::path::PathBuf;

/// Flags about a secret attribute.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "A secret attribute")]
pub struct AttributeArgs {
    /// CSV of gradient sensitivities: columns sensitivity, or norm_a,norm_b,inner; step, record
    #[arg(long, value_name = "FILE")]
    pub attribute_sensitivity: Option<PathBuf>,
    /// What the sensitivities are maxima over [default: dataset] [possible values: batch, dataset, record]
    #[arg(long, value_name = "MODE", value_parser = mode, requires = "attribute_sensitivity")]
    pub attribute_mode: Option<Mode>,
}

impl AttributeArgs {
    /// The file of sensitivities, if one was given.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub fn file(&self) -> Result<Option<TextFile>, Failure> {
        let Some(path) = &self.attribute_sensitivity else { return Ok(None) };
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::bad_input(format!("cannot read {name}: {error}")))?;
        Ok(Some(TextFile { name, text }))
    }
}

fn mode(text: &str) -> Result<Mode, String> {
    Mode::ALL.iter().find(|(name, _)| *name == text).map(|(_, mode)| *mode).ok_or_else(|| {
        let names: Vec<&str> = Mode::ALL.iter().map(|(name, _)| *name).collect();
        format!("it must be one of: {}", names.join(", "))
    })
}

/// Flags about candidates for the record.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Secrets with priors")]
pub struct CandidateArgs {
    /// The record is one of this many equally likely candidates
    #[arg(long, value_name = "M", value_parser = integer, conflicts_with = "candidate_priors")]
    pub candidates: Option<u64>,
    /// The candidates' prior probabilities, e.g. 0.5,0.3,0.2
    #[arg(long, value_name = "P,P,…", value_parser = real, allow_hyphen_values = true, value_delimiter = ',')]
    pub candidate_priors: Vec<f64>,
    /// Accuracy of the best attacker who tells two secrets apart, one with this prior (may be
    /// repeated)
    #[arg(long, value_name = "PRIOR", value_parser = real, allow_hyphen_values = true, value_delimiter = ',')]
    pub attack_prior: Vec<f64>,
}

/// Flags about shuffled batches.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Shuffled batches")]
pub struct ShuffleArgs {
    /// Delta at each --epsilon for balls-and-bins sampling, by this many samples
    #[arg(long, value_name = "SAMPLES", value_parser = integer)]
    pub monte_carlo: Option<u64>,
    /// Confidence of the Monte Carlo intervals
    #[arg(long, value_name = "C", value_parser = real, allow_hyphen_values = true, default_value = "0.999", requires = "monte_carlo")]
    pub monte_carlo_confidence: f64,
    /// Seed of the Monte Carlo samples
    #[arg(long, value_name = "SEED", value_parser = nonnegative_integer, default_value = "0", requires = "monte_carlo")]
    pub monte_carlo_seed: u64,
}

/// Flags about the loss.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "The loss (for the hidden-state lenses)")]
pub struct LossArgs {
    /// Constant learning rate, on the noisy sum divided by the expected batch
    #[arg(long, value_name = "ETA", value_parser = real, allow_hyphen_values = true, requires = "smoothness")]
    pub learning_rate: Option<f64>,
    /// Every record's gradient is Lipschitz with this constant
    #[arg(long, value_name = "M", value_parser = real, allow_hyphen_values = true, requires = "learning_rate")]
    pub smoothness: Option<f64>,
    /// Every record's loss is strongly convex with this constant
    #[arg(long, value_name = "m", value_parser = real, allow_hyphen_values = true, requires = "learning_rate")]
    pub strong_convexity: Option<f64>,
    /// Iterates are projected to a set of this diameter
    #[arg(long, value_name = "D", value_parser = real, allow_hyphen_values = true, requires = "learning_rate")]
    pub diameter: Option<f64>,
}
