//! `cargo xtask bench`.

use anyhow::{Result, bail};
use std::process::ExitCode;

pub fn run(_arguments: &[String]) -> Result<ExitCode> {
    bail!("not there yet")
}
