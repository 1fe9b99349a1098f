//! Through which lenses a run is looked at.

use super::lens;
use clap::Args;
use vocabulary::{Claim, LensName, Secret};

/// The lenses of commands that answer questions about a run.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "What to compute")]
pub struct LensArgs {
    /// Use only this lens (may be repeated); `all` prints every lens in full
    #[arg(long, value_name = "LENS", value_parser = lens_or_all, value_delimiter = ',')]
    pub lens: Vec<Lenses>,
}

/// A lens, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lenses {
    All,
    One(LensName),
}

impl LensArgs {
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
    pub fn whole(&self, directions: bool, claims: &[Claim]) -> bool {
        !self.lens.is_empty()
            || directions
            || claims.iter().any(|claim| claim.secret == Secret::Attribute)
    }
}

fn lens_or_all(text: &str) -> Result<Lenses, String> {
    if text == "all" { Ok(Lenses::All) } else { lens(text).map(Lenses::One) }
}
