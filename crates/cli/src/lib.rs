//! The command line as a library: [`main_with_args`] takes the arguments and gives the exit
//! code, so that the binary and other front ends share every word.
//!
//! One file per command under `commands/`; the dispatch table is [`Command`]. Answers go to
//! stdout, narration to stderr, through a [`Console`].

pub mod args;
mod commands;
mod console;
pub mod exit;
mod failure;
mod interrupt;
pub mod print;
mod progress;
pub mod reporting;

pub use commands::{Cli, Command};
pub use console::Console;
pub use failure::Failure;

use clap::Parser;
use std::ffi::OsString;

/// Runs the command line `args` (the first one is the program's name) and gives the exit code.
pub fn main_with_args<A: Into<OsString> + Clone>(args: impl IntoIterator<Item = A>) -> u8 {
    main_with_console(args, &mut Console::standard())
}

/// As [`main_with_args`], writing to streams of the caller's choice.
pub fn main_with_console<A: Into<OsString> + Clone>(
    args: impl IntoIterator<Item = A>,
    console: &mut Console,
) -> u8 {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, console),
    };
    match cli.command.run(console) {
        Ok(code) => code,
        Err(failure) => {
            if !failure.silent {
                console.note(&format!("error: {failure}"));
                if let Some(hint) = &failure.hint {
                    console.note("");
                    console.hint(hint);
                }
            }
            failure.code
        }
    }
}

/// Help and version are answers; everything else is a usage error.
fn usage(error: &clap::Error, console: &mut Console) -> u8 {
    let rendered = error.render();
    if error.use_stderr() {
        console.note(rendered.to_string().trim_end());
        return exit::BAD_INPUT;
    }
    let text = if console.colour() { rendered.ansi().to_string() } else { rendered.to_string() };
    match console.answer(&text) {
        Ok(()) => exit::ANSWERED,
        Err(failure) => failure.code,
    }
}
