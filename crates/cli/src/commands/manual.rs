//! Man pages, from the same tree as the help: one for the program, one for each command.

use answers::Refusal;
use clap_mangen::Man;
use std::path::Path;

/// Writes `dosimeter.1`, `dosimeter-account.1`, … into a folder.
///
/// # Errors
/// A folder that cannot be written to.
pub(super) fn write_all(folder: &Path) -> Result<(), Refusal> {
    let mut command = crate::command();
    command.build();
    std::fs::create_dir_all(folder).and_then(|()| write(&command, folder)).map_err(|error| {
        Refusal::bad_input(format!("cannot write man pages into {}: {error}", folder.display()))
    })
}

fn write(command: &clap::Command, folder: &Path) -> std::io::Result<()> {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        write(inner, folder)?;
    }
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    if let Some(examples) = command.get_before_help() {
        text.extend(section(&examples.to_string()).into_bytes());
    }
    formats::files::write(&folder.join(page.get_filename()), text)
}

/// The examples of the help as a section of their own, line by line.
fn section(examples: &str) -> String {
    let lines = examples.trim_start_matches("Examples:\n").trim_end();
    format!(".SH EXAMPLES\n.nf\n{}\n.fi\n", lines.replace('\\', "\\e").replace('-', "\\-"))
}
