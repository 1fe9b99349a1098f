//! Man pages, from the same tree as the help: one for the program, one for each command.

use crate::failure::Failure;
use std::path::Path;

/// Writes `dosimeter.1`, `dosimeter-account.1`, … into a folder.
///
/// # Errors
/// A folder that cannot be written to.
pub(super) fn write_all(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(crate::command(), folder))
        .map_err(|error| {
            Failure::bad_input(format!("cannot write man pages into {}: {error}", folder.display()))
        })
}
