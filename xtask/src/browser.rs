//! The page in a real browser: its types, whether the committed files are what its source
//! builds, and the tests of `web/tests` in Chromium, and in Firefox where it is installed.
//!
//! What is missing is fetched: npm packages into `web/node_modules`, and on Debian, as root,
//! the browsers themselves. Where that cannot be done the step fails; `DOSIMETER_NO_BROWSER=1` leaves
//! it out, aloud.

use crate::process::{answers, root, watch};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Passed and failed tests of the page.
pub struct Counted {
    pub passed: u64,
    pub failed: u64,
}

/// Where a browser may be.
const BROWSERS: &[&str] = &[
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/// Runs everything about the page; `None` when it was left out on purpose.
///
/// # Errors
/// When a command cannot be started.
pub fn run() -> Result<Option<Counted>> {
    if std::env::var_os("DOSIMETER_NO_BROWSER").is_some() {
        println!("== page: DOSIMETER_NO_BROWSER is set, not checked");
        return Ok(None);
    }
    let failed = |why: &dyn std::fmt::Display| {
        println!("== page: {why}");
        Ok(Some(Counted { passed: 0, failed: 1 }))
    };
    let browser = match prepare() {
        Ok(browser) => browser,
        Err(error) => return failed(&error),
    };
    let mut counted = Counted { passed: 0, failed: 0 };
    for script in [["node_modules/typescript/bin/tsc", "--noEmit"], ["build.mjs", "--check"]] {
        let success = watch(node(&script))?.success;
        counted.passed += u64::from(success);
        counted.failed += u64::from(!success);
    }
    let mut tests = node(&["--test", "--test-reporter=tap", "--test-concurrency=1"]);
    tests.args(test_files()?);
    tests.env("CHROMIUM", browser);
    let watched = watch(tests)?;
    let count = |name: &str| {
        let last = watched.lines.iter().rev().find_map(|line| line.strip_prefix(name));
        last.and_then(|number| number.trim().parse::<u64>().ok())
    };
    counted.passed += count("# pass ").unwrap_or(0);
    counted.failed += count("# fail ").unwrap_or(0) + count("# cancelled ").unwrap_or(0);
    if !watched.success && counted.failed == 0 {
        counted.failed = 1;
    }
    Ok(Some(counted))
}

/// Packages and browsers, so that they are there when their turn comes. What fails here fails again
/// there, and says why.
pub fn fetch() {
    if std::env::var_os("DOSIMETER_NO_BROWSER").is_none() {
        let _ = prepare();
    }
}

fn web() -> PathBuf {
    root().join("web")
}

fn node(arguments: &[&str]) -> Command {
    let mut command = Command::new("node");
    command.args(arguments).current_dir(web());
    command
}

fn test_files() -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(web().join("tests"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with(".test.mjs"))
        .collect();
    files.sort();
    Ok(files)
}

/// Packages and a browser, fetched where they are missing; the browser's path.
pub(crate) fn prepare() -> Result<PathBuf> {
    if !answers(node(&["--version"])) {
        bail!("Node.js is not installed; install it, or set DOSIMETER_NO_BROWSER=1");
    }
    if ["playwright-core", "ws"].iter().any(|name| !web().join("node_modules").join(name).exists())
    {
        let mut install = Command::new("npm");
        install.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(web());
        if !watch(install)?.success {
            bail!("npm cannot fetch the page's packages");
        }
    }
    if let Some(found) = browser() {
        return Ok(found);
    }
    println!("== page: no browser here; installing Debian's chromium and firefox-esr");
    for arguments in
        [&["update", "-qq"][..], &["install", "-y", "-qq", "chromium", "firefox-esr"][..]]
    {
        let mut install = Command::new("apt-get");
        install.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        if !answers(install) {
            bail!(
                "apt-get cannot install browsers; install a browser and set CHROMIUM to its path"
            );
        }
    }
    browser().ok_or_else(|| anyhow::anyhow!("chromium was installed and is not where it belongs"))
}

fn browser() -> Option<PathBuf> {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    named
        .into_iter()
        .chain(BROWSERS.iter().map(PathBuf::from))
        .find(|path| Path::new(path).exists())
}
