//! What is known beyond the run: sensitivities of gradients to a secret attribute.

use accounting::bayes_security::attribute::Mode;
use answers::{Refusal, TextFile};
use clap::Args;
use std::path::PathBuf;

/// Flags about a secret attribute.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "A secret attribute")]
pub struct AttributeArgs {
    /// CSV of gradient sensitivities, as `attack attribute --sensitivity` writes it. Columns:
    /// sensitivity (or norm_a, norm_b and inner), step, record
    #[arg(long, value_name = "FILE")]
    pub attribute_sensitivity: Option<PathBuf>,
    /// What each sensitivity is the largest of [default: dataset] [possible values: batch, dataset,
    /// record]
    #[arg(long, value_name = "MODE", value_parser = mode, requires = "attribute_sensitivity")]
    pub attribute_mode: Option<Mode>,
}

impl AttributeArgs {
    /// The file of sensitivities, if one was given.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub fn file(&self) -> Result<Option<TextFile>, Refusal> {
        let Some(path) = &self.attribute_sensitivity else { return Ok(None) };
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Refusal::bad_input(format!("cannot read {name}: {error}")))?;
        Ok(Some(TextFile { name, text }))
    }
}

fn mode(text: &str) -> Result<Mode, String> {
    Mode::ALL.iter().find(|(name, _)| *name == text).map(|(_, mode)| *mode).ok_or_else(|| {
        let names: Vec<&str> = Mode::ALL.iter().map(|(name, _)| *name).collect();
        format!("it must be one of: {}", names.join(", "))
    })
}
