//! What is asked about a run.

use super::{lens, real};
use clap::Args;
use vocabulary::{Claim, LensName, Quantity, Secret};

/// Flags of commands that answer questions about a run.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "The questions")]
pub struct QuestionArgs {
    /// Epsilon and mu at this delta (may be repeated)
    #[arg(short, long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true, value_delimiter = ',')]
    pub delta: Vec<f64>,
    /// Delta at this epsilon (may be repeated)
    #[arg(long, value_name = "EPSILON", value_parser = real, allow_hyphen_values = true, value_delimiter = ',')]
    pub epsilon: Vec<f64>,
    /// True positive rate at this false positive rate [default: 0.001 and 0.01]
    #[arg(long, value_name = "FPR", value_parser = real, allow_hyphen_values = true, value_delimiter = ',')]
    pub fpr: Vec<f64>,
    /// Reconstruction success at this prior, e.g. 1/candidates (may be repeated)
    #[arg(long, value_name = "PRIOR", value_parser = real, allow_hyphen_values = true, value_delimiter = ',')]
    pub prior: Vec<f64>,
    /// Also adding and removing a record separately
    #[arg(long)]
    pub directions: bool,
    /// Only this lens (may be repeated); `all` for the whole table
    #[arg(long, value_name = "LENS", value_parser = lens_or_all, value_delimiter = ',')]
    pub lens: Vec<Lenses>,
    /// Only this quantity, e.g. epsilon or tpr (may be repeated) [default: all]
    #[arg(long, value_name = "QUANTITY", value_parser = quantity, value_delimiter = ',')]
    pub quantity: Vec<Quantity>,
}

/// A lens, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lenses {
    All,
    One(LensName),
}

impl QuestionArgs {
    /// The lenses that were named; none for all.
    pub fn lenses(&self) -> Vec<LensName> {
        let named = |one: &Lenses| match one {
            Lenses::All => None,
            Lenses::One(lens) => Some(*lens),
        };
        // Whoever asks for all of them asks for no one by name.
        self.lens.iter().map(named).collect::<Option<_>>().unwrap_or_default()
    }

    /// Whether every claim is asked for, so that a summary would hide some.
    pub fn whole(&self, claims: &[Claim]) -> bool {
        !self.lens.is_empty()
            || self.directions
            || claims.iter().any(|claim| claim.secret == Secret::Attribute)
    }
}

fn lens_or_all(text: &str) -> Result<Lenses, String> {
    if text == "all" { Ok(Lenses::All) } else { lens(text).map(Lenses::One) }
}

fn quantity(text: &str) -> Result<Quantity, String> {
    Quantity::parse(text).ok_or_else(|| {
        format!("it must be one of: {}", Quantity::ALL.map(Quantity::as_str).join(", "))
    })
}
