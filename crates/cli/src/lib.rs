//! The command line as a library: [`main_with_args`] takes the arguments and gives the exit
//! code, so that the binary and other front ends share every word.
//!
//! One file per command under `commands/`; the dispatch table is [`Command`]. Answers go to
//! stdout, narration to stderr, through a [`Console`].

pub mod args;
mod commands;
mod console;
pub mod exit;
mod interrupt;
pub mod print;
mod progress;

pub use commands::{Cli, Command};
pub use console::Console;

use answers::Refusal;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};
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
    let cli = match parsed(args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, console),
    };
    match cli.command.run(console) {
        Ok(code) => code,
        Err(refusal) => {
            console.note(&format!("error: {refusal}"));
            if let Some(hint) = &refusal.hint {
                console.note("");
                console.hint(hint);
            }
            refusal.kind.exit_code()
        }
    }
}

/// As [`main_with_console`], but hands a failure to the caller instead of printing it.
///
/// # Errors
/// The refusal; a usage error is bad input.
pub fn command_with_console<A: Into<OsString> + Clone>(
    args: impl IntoIterator<Item = A>,
    console: &mut Console,
) -> Result<u8, Refusal> {
    let cli = parsed(args).map_err(|error| {
        let text = said(&error);
        // The sentence; what follows it is about the command line.
        let sentence = text.split("\n\nUsage:").next().unwrap_or(&text);
        let sentence = sentence.split("\n\nFor more information").next().unwrap_or(sentence);
        Refusal::bad_input(sentence.trim_start_matches("error: ").trim())
    })?;
    cli.command.run(console)
}

/// The command line, with every negative number taken for a value: the message about it is ours.
fn parsed<A: Into<OsString> + Clone>(
    args: impl IntoIterator<Item = A>,
) -> clap::error::Result<Cli> {
    let mut matches = with_negative_numbers(command()).try_get_matches_from(args)?;
    Cli::from_arg_matches_mut(&mut matches)
}

/// The tree of commands with their help: examples, what the command does, then what else there is to say.
#[must_use]
pub fn command() -> clap::Command {
    told_in_order(Cli::command())
}

/// What follows the examples of a command is moved behind the sentence that says what it does.
fn told_in_order(command: clap::Command) -> clap::Command {
    let text = command.get_before_help().map(ToString::to_string).unwrap_or_default();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let command = match text.split_once("\n\n") {
        Some((examples, rest)) => command
            .before_help(examples.to_owned())
            .long_about(format!("{about}\n\n{}", rest.trim_end())),
        None => command,
    };
    command.mut_subcommands(told_in_order)
}

fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let takes_value = |arg: &clap::Arg| arg.get_action().takes_values() && !arg.is_positional();
    command
        .mut_args(|arg| if takes_value(&arg) { arg.allow_negative_numbers(true) } else { arg })
        .mut_subcommands(with_negative_numbers)
}

/// What is wrong with the arguments, without the advice to give an unknown flag as a file's name.
fn said(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let mut kept: Vec<&str> = Vec::new();
    for line in text.lines().filter(|line| !line.contains("as a value, use '--")) {
        if !(line.is_empty() && kept.last().is_some_and(|last| last.is_empty())) {
            kept.push(line);
        }
    }
    let mut text = kept.join("\n");
    // Where a run is given by flags only.
    let file = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) if error.kind() == ErrorKind::UnknownArgument => {
            word.as_str()
        }
        _ => "",
    };
    if file.ends_with(".toml") || file.ends_with(".json") {
        text = text.trim_end().to_owned();
        text.push_str(
            "\n\nhint: this command reads no file of a run; describe the run with flags\n",
        );
    }
    text
}

/// Help and version are answers; everything else is a usage error.
fn usage(error: &clap::Error, console: &mut Console) -> u8 {
    if error.use_stderr() {
        console.note(said(error).trim_end());
        return exit::BAD_INPUT;
    }
    let rendered = error.render();
    let text = if console.colour() { rendered.ansi().to_string() } else { rendered.to_string() };
    match console.answer(&text) {
        Ok(()) => exit::ANSWERED,
        Err(refusal) => refusal.kind.exit_code(),
    }
}
