//! `cargo xtask test`: everything that has to hold before a change is merged, in the order in
//! which it fails fastest. Later steps run even when an earlier one failed, so that one run
//! shows everything. The last line counts: `N passed, N failed`.

use crate::process::{answers, cargo, watch};
use anyhow::Result;
use std::process::ExitCode;
use std::time::Instant;

/// All crates, with all commands of the program (its default leaves the heavy ones out) and with
/// Parquet, which no build has unless asked. One set of features in every step: another one would
/// compile most crates again.
pub const EVERYTHING: &[&str] = &["--workspace", "--features", "dosimeter/full,dosimeter/parquet"];

/// Passed and failed checks; a step without tests counts as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

pub fn run() -> Result<ExitCode> {
    let mut total = Tally::default();
    let mut broken = Vec::new();
    let mut record = |name: &str, tally: Tally| {
        total.add(tally);
        if tally.failed > 0 {
            broken.push(name.to_owned());
        }
    };

    // Fetching waits for the network, compiling does not: both at once.
    let fetching = std::thread::spawn(|| {
        crate::poppler::prepare();
        crate::browser::fetch();
        crate::python::fetch();
    });
    if answers(cargo(&["fmt", "--version"])) {
        record("format", step("format", &["fmt", "--all", "--check"])?);
    } else {
        println!("== format: rustfmt is not installed, not checked");
    }
    if answers(cargo(&["clippy", "--version"])) {
        let small = ["clippy", "--release", "-p", "dosimeter", "--", "-D", "warnings"];
        record("small build", step("small build", &small)?);
        let lints =
            [&["clippy", "--release"], EVERYTHING, &["--all-targets", "--", "-D", "warnings"]];
        record("lints", step("lints", &lints.concat())?);
    } else {
        println!("== lints: clippy is not installed, not checked");
    }
    let build = step("build", &[&["build", "--release"], EVERYTHING].concat())?;
    record("build", build);
    // A panic in there is the steps' own to repeat.
    let _ = fetching.join();
    if build.failed == 0 {
        record("tests", tests()?);
        let doctests = [&["test", "--release"], EVERYTHING, &["--doc", "--no-fail-fast"]].concat();
        record("doctests", counted("doctests", &doctests, libtest_line)?);
        record("page", page()?);
        record("python", python()?);
    }
    if answers(cargo(&["deny", "--version"])) {
        let deny = ["deny", "--offline", "check", "bans", "licenses", "sources"];
        record("cargo deny", step("cargo deny", &deny)?);
    } else {
        println!("== cargo deny: not installed; licences and sources were held by the xtask tests");
    }

    if !broken.is_empty() {
        println!("\nbroken: {}", broken.join(", "));
    }
    println!("\n{} passed, {} failed", total.passed, total.failed);
    Ok(if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One command that either holds or does not.
fn step(name: &str, arguments: &[&str]) -> Result<Tally> {
    let started = announce(name, arguments);
    let success = watch(cargo(arguments))?.success;
    conclude(name, started, success);
    Ok(Tally { passed: u64::from(success), failed: u64::from(!success) })
}

/// All tests but the doctests, by nextest where it is installed.
fn tests() -> Result<Tally> {
    if answers(cargo(&["nextest", "--version"])) {
        let arguments = [&["nextest", "run", "--release"], EVERYTHING, &["--no-fail-fast"]];
        return counted("tests", &arguments.concat(), nextest_line);
    }
    let kinds = ["--lib", "--bins", "--tests", "--no-fail-fast"];
    let arguments = [&["test", "--release"], EVERYTHING, &kinds].concat();
    counted("tests", &arguments, libtest_line)
}

/// The page, in a browser.
fn page() -> Result<Tally> {
    println!("\n== page: types, built files, tests in a browser");
    let started = Instant::now();
    let Some(counted) = crate::browser::run()? else { return Ok(Tally::default()) };
    conclude("page", started, counted.failed == 0);
    Ok(Tally { passed: counted.passed, failed: counted.failed })
}

/// The Python package, on the interpreters that are there.
fn python() -> Result<Tally> {
    println!("\n== python: tests, types, stubs, every interpreter");
    let started = Instant::now();
    let Some(counted) = crate::python::run()? else { return Ok(Tally::default()) };
    conclude("python", started, counted.failed == 0);
    Ok(Tally { passed: counted.passed, failed: counted.failed })
}

/// A command that runs many tests and says how many.
fn counted(name: &str, arguments: &[&str], read: fn(&str) -> Option<Tally>) -> Result<Tally> {
    let started = announce(name, arguments);
    let watched = watch(cargo(arguments))?;
    let mut tally = Tally::default();
    watched.lines.iter().filter_map(|line| read(line)).for_each(|part| tally.add(part));
    if !watched.success && tally.failed == 0 {
        // It did not even get to count: a test that does not compile, a crash.
        tally.failed = 1;
    }
    conclude(name, started, watched.success);
    Ok(tally)
}

fn announce(name: &str, arguments: &[&str]) -> Instant {
    println!("\n== {name}: cargo {}", arguments.join(" "));
    Instant::now()
}

fn conclude(name: &str, started: Instant, success: bool) {
    let verdict = if success { "ok" } else { "FAILED" };
    println!("== {name}: {verdict} ({:.0} s)", started.elapsed().as_secs_f64());
}

/// `test result: ok. 3 passed; 0 failed; 0 ignored; …`
fn libtest_line(line: &str) -> Option<Tally> {
    line.starts_with("test result:").then(|| Tally {
        passed: number_before(line, " passed").unwrap_or(0),
        failed: number_before(line, " failed").unwrap_or(0),
    })
}

/// `Summary [ 1.2s] 12 tests run: 10 passed, 1 failed, 1 timed out, 0 skipped`
fn nextest_line(line: &str) -> Option<Tally> {
    let line = line.trim_start();
    line.starts_with("Summary [").then(|| Tally {
        passed: number_before(line, " passed").unwrap_or(0),
        failed: number_before(line, " failed").unwrap_or(0)
            + number_before(line, " timed out").unwrap_or(0),
    })
}

fn number_before(line: &str, word: &str) -> Option<u64> {
    let head = &line[..line.find(word)?];
    head.rsplit(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_both_runners_are_read() {
        assert_eq!(
            libtest_line("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured"),
            Some(Tally { passed: 3, failed: 2 })
        );
        assert_eq!(
            nextest_line(
                "     Summary [   0.3s] 5 tests run: 2 passed (1 slow), 2 failed, 1 timed out, 7 skipped"
            ),
            Some(Tally { passed: 2, failed: 3 })
        );
        assert_eq!(libtest_line("running 3 tests"), None);
        assert_eq!(nextest_line("  PASS [ 0.01s] xtask counts 3 passed"), None);
    }
}
