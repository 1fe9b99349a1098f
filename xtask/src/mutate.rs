//! Whether the contract suites can fail: `xtask/mutations.toml` breaks one property at a time, and the suite that promises it
//! has to notice. All breaks of a suite are compiled at once, into a copy of git's index in `target/mutate`; the environment
//! says which of them is made. Nothing here is touched.

use crate::process::{cargo, root};
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, ExitCode};

#[derive(Deserialize)]
struct Break {
    breaks: String,
    file: String,
    from: String,
    to: String,
}

/// What a file with breaks asks: the number of the one that is made.
const CHOSEN: &str = "
fn mutation() -> usize {
    static CHOSEN: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *CHOSEN.get_or_init(|| std::env::var(\"MUTATION\").map_or(0, |number| number.parse().unwrap_or(0)))
}
";

fn table() -> Result<BTreeMap<String, Vec<Break>>> {
    Ok(toml::from_str(&std::fs::read_to_string(root().join("xtask/mutations.toml"))?)?)
}

/// Tries every break of the suites whose names contain one of the words; of all suites without any.
pub fn run(words: &[String]) -> Result<ExitCode> {
    let copy = root().join("target/mutate");
    let mut copied = Command::new("git");
    copied.args(["checkout-index", "--all", "--force"]);
    copied.arg(format!("--prefix={}/", copy.display()));
    ensure!(copied.current_dir(root()).status()?.success(), "git makes no copy of its index");
    let mut survived = 0;
    for (suite, breaks) in table()? {
        if !words.is_empty() && !words.iter().any(|word| suite.contains(word.as_str())) {
            continue;
        }
        for (number, one) in (1..).zip(&breaks) {
            let path = copy.join(&one.file);
            let whole = std::fs::read_to_string(&path)?;
            let either =
                format!("(if mutation() == {number} {{ {} }} else {{ {} }})", one.to, one.from);
            std::fs::write(&path, whole.replacen(&one.from, &either, 1))?;
        }
        for file in breaks.iter().map(|one| &one.file).collect::<BTreeSet<_>>() {
            let path = copy.join(file);
            let whole = std::fs::read_to_string(&path)?;
            std::fs::write(&path, whole + CHOSEN)?;
        }
        let (passed, output) = tested(&copy, &suite, 0)?;
        ensure!(passed, "{suite} fails without any break:\n{output}");
        for (number, one) in (1..).zip(&breaks) {
            let (passed, output) = tested(&copy, &suite, number)?;
            survived += u64::from(passed);
            let failed = output
                .lines()
                .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
            let noticed: Vec<&str> =
                failed.map(|name| name.trim_start_matches("contract::")).collect();
            let verdict = if passed { "SURVIVED".to_owned() } else { noticed.join(", ") };
            println!("{suite}: {}: {verdict}", one.breaks);
        }
    }
    println!("{survived} survived");
    Ok(if survived == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs a suite, named by its package, its file of tests and a part of their names, with one break made.
fn tested(copy: &Path, suite: &str, number: usize) -> Result<(bool, String)> {
    let [package, file, part] = suite.split(' ').collect::<Vec<_>>()[..] else {
        bail!("`{suite}` is not a package, a file of tests and a part of their names");
    };
    let mut command = cargo(&["test", "--release", "-p", package, "--test", file, part]);
    command.env("CARGO_TARGET_DIR", root().join("target/mutated"));
    command.env("MUTATION", number.to_string());
    let done = command.current_dir(copy).output().context("cargo cannot be started")?;
    let said = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok((done.status.success(), said.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A break that is not made would survive, or would be an error long after the line was changed.
    #[test]
    fn every_break_has_its_place() {
        let all = table().unwrap();
        assert!(all.values().map(Vec::len).sum::<usize>() > 30);
        for one in all.values().flatten() {
            let text = std::fs::read_to_string(root().join(&one.file)).unwrap();
            assert_eq!(text.matches(&one.from).count(), 1, "{}: {}", one.file, one.breaks);
        }
    }
}
