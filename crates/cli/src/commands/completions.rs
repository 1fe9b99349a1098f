//! `completions`: a completion script for a shell, from the same tree as the help.

use super::Cli;
use crate::console::Console;
use crate::exit;
use crate::failure::Failure;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter completions bash > ~/.local/share/bash-completion/completions/dosimeter
  dosimeter completions zsh > ~/.zfunc/_dosimeter
")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(args: &CompletionsArgs, console: &mut Console) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "dosimeter", &mut script);
    console.answer(&String::from_utf8_lossy(&script))?;
    Ok(exit::ANSWERED)
}
