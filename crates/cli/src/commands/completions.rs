//! `completions`: a completion script for a shell, or man pages, from the same tree as the help.

use crate::console::Console;
use crate::exit;
use answers::Refusal;
use clap::Args;
use clap_complete::Shell;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter completions bash > dosimeter.bash    # then: source dosimeter.bash
  dosimeter completions zsh > ~/.zfunc/_dosimeter
  dosimeter completions --man ~/.local/share/man/man1
")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, required_unless_present = "man")]
    shell: Option<Shell>,
    /// Write man pages into this folder
    #[arg(long, value_name = "DIR")]
    man: Option<PathBuf>,
}

pub(super) fn run(args: &CompletionsArgs, console: &mut Console) -> Result<u8, Refusal> {
    if let Some(folder) = &args.man {
        super::manual::write_all(folder)?;
        console.note(&format!("man pages: {}", folder.display()));
    }
    if let Some(shell) = args.shell {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut crate::command(), "dosimeter", &mut script);
        console.answer(&String::from_utf8_lossy(&script))?;
    }
    Ok(exit::ANSWERED)
}
