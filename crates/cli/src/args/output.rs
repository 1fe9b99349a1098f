//! How the answer is printed.

use answers::Refusal;
use clap::{Args, ValueEnum};

/// The forms an answer can take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text for a person; numbers are rounded to their safe side
    #[default]
    Human,
    /// One document; numbers are not rounded
    Json,
    /// A table or a curve, where the command has one
    Csv,
    /// A figure, where the command has one
    Svg,
}

/// Flags of every command that answers.
#[derive(Clone, Debug, Args)]
pub struct OutputArgs {
    /// How to print the answer
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", help_heading = "Output")]
    pub format: Format,
}

impl OutputArgs {
    /// The format, if this command can print it.
    ///
    /// # Errors
    /// Names the formats that the command has.
    pub fn among(&self, allowed: &[Format]) -> Result<Format, Refusal> {
        if allowed.contains(&self.format) {
            return Ok(self.format);
        }
        let name = |format: &Format| {
            format.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
        };
        let names: Vec<String> = allowed.iter().map(name).collect();
        Err(Refusal::bad_input(format!(
            "this command has no `--format {}`; it prints {}",
            name(&self.format),
            names.join(", ")
        )))
    }
}
