//! Commands that this build leaves out: they are listed, and say how to get them.
#![allow(dead_code)] // which of it is used depends on what is left out

use crate::console::Console;
use answers::Refusal;
use clap::Args;

/// Whatever was typed after a command that is not there.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct AbsentArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    words: Vec<String>,
}

/// Says that something needs a feature, and how to build with it.
pub(super) fn absent(what: &str, feature: &str) -> Refusal {
    answers::Refusal::absent(what, feature)
}

/// In place of the command.
///
/// # Errors
/// Always.
pub(super) fn run(
    _: &AbsentArgs,
    _: &mut Console,
    what: &str,
    feature: &str,
) -> Result<u8, Refusal> {
    Err(absent(what, feature))
}
