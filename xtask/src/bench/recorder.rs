//! `cargo xtask bench recorder [BATCH]`: what a recorder with 1,000 gradient canaries costs on a
//! step of a model of ResNet-18's size in PyTorch, in processor seconds of one thread, and its
//! memory. The batch is 256 unless it is given.

use super::bars::Bar;
use super::page::Page;
use crate::process::root;
use anyhow::{Context, Result};
use serde_json::Value;
use std::process::{Command, Stdio};

/// Shares of a step, and copies of the parameters, that it may cost.
const SHARE: f64 = 0.05;
const COPIES: f64 = 2.0;

pub fn recorder(page: &mut Page, batch: Option<&String>) -> Result<()> {
    let (python, site) = crate::python::heavy()?;
    let output = Command::new(python)
        .arg(root().join("python/clinic/overhead.py"))
        .args(["--json", "--batch", batch.map_or("256", String::as_str)])
        .env("PYTHONPATH", site)
        .env("OMP_NUM_THREADS", "1")
        .stderr(Stdio::inherit())
        .output()?;
    let found: Value = serde_json::from_slice(&output.stdout).context("printed no JSON")?;
    page.heading(
        "A recorder with 1,000 canaries",
        "`python/clinic/overhead.py`: processor seconds of one thread. The look is taken at every \
         hundredth step, the canaries are added at each.",
    );
    page.line(format!("```json\n{found:#}\n```"));
    let number = |key: &str| found[key].as_f64();
    for (step, key) in [
        ("a private step, record by record", "overhead"),
        ("a step without privacy", "overhead_without_privacy"),
    ] {
        page.bar(
            Bar::at_most(format!("share of {step}: at most 0.05"), SHARE, number(key)).plain(),
        );
    }
    page.bar(
        Bar::at_most(
            "memory in copies of the parameters: at most 2",
            COPIES,
            number("copies_of_the_parameters"),
        )
        .plain(),
    );
    Ok(())
}
