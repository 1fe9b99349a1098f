//! One measurement is one process that prints one JSON object, on either side.

use crate::gate::EVERYTHING;
use crate::process::{cargo, root, watch};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What comes from PyPI. The first two are pinned, as in every published comparison; the
/// others are the newest, and the page names their versions.
const PEERS: &[&str] = &[
    "dp-accounting==0.6.0",
    "prv-accountant==0.2.0",
    "riskcal",
    "gdpnum",
    "PLD_accounting[performance]",
];

/// Longest time one measurement may take.
const LIMIT: Duration = Duration::from_secs(300);

pub struct Bench {
    python: Option<PathBuf>,
    probe: PathBuf,
    dosimeter: PathBuf,
    /// The most memory any of our processes held, in megabytes.
    peak: Cell<Option<f64>>,
}

/// An answer with its cost, or why there is none.
pub enum Measured {
    Answer(Box<Value>),
    Nothing(String),
}

impl Measured {
    pub fn number(&self, key: &str) -> Option<f64> {
        match self {
            Self::Answer(object) => object[key].as_f64(),
            Self::Nothing(_) => None,
        }
    }

    pub fn seconds(&self) -> Option<f64> {
        self.number("cpu_s")
    }

    pub fn why(&self) -> &str {
        match self {
            Self::Answer(_) => "",
            Self::Nothing(why) => why,
        }
    }
}

/// How many times faster the second is than the first.
pub fn faster(slow: &Measured, fast: &Measured) -> Option<f64> {
    Some(slow.seconds()? / fast.seconds()?)
}

impl Bench {
    /// Builds our side and installs theirs.
    pub fn prepare() -> Result<Self> {
        let bench = Self::of_program()?;
        build(&["--example", "bench_probe"])?;
        let python = match environment() {
            Ok(python) => Some(python),
            Err(error) => {
                eprintln!("peers are left out: {error:#}");
                None
            }
        };
        Ok(Self { python, ..bench })
    }

    /// For parts that need the program and examples, and peers of their own.
    pub fn of_program() -> Result<Self> {
        build(&["--bin", "dosimeter"])?;
        let release = root().join("target/release");
        Ok(Self {
            python: None,
            probe: release.join("examples/bench_probe"),
            dosimeter: release.join("dosimeter"),
            peak: Cell::new(None),
        })
    }

    /// The command line.
    pub fn program(&self) -> &Path {
        &self.dosimeter
    }

    /// One measurement of a peer: `what tool numbers…`.
    pub fn peer(&self, what: &str, tool: &str, numbers: &[f64]) -> Measured {
        let Some(python) = &self.python else {
            return Measured::Nothing("not installed".to_owned());
        };
        let mut command = Command::new(python);
        command.arg(root().join("xtask/bench/peers.py")).args([what, tool]);
        command.args(numbers.iter().map(f64::to_string));
        take(command, &format!("{tool} {what} {numbers:?}"))
    }

    /// One measurement of our library: `what numbers…`.
    pub fn ours(&self, what: &str, numbers: &[f64]) -> Measured {
        let mut command = Command::new(&self.probe);
        command.arg(what).args(numbers.iter().map(f64::to_string));
        self.remember(take(command, &format!("dosimeter {what} {numbers:?}")))
    }

    /// One measurement by an example program, which is built first.
    pub fn example(&self, name: &str, arguments: &[String]) -> Measured {
        if let Err(error) = build(&["--quiet", "--example", name]) {
            return Measured::Nothing(error.to_string());
        }
        let mut command = Command::new(root().join("target/release/examples").join(name));
        command.args(arguments);
        take(command, &format!("{name} {}", arguments.join(" ")))
    }

    pub fn peak_megabytes(&self) -> Option<f64> {
        self.peak.get()
    }

    fn remember(&self, measured: Measured) -> Measured {
        if let Some(megabytes) = measured.number("peak_mb") {
            self.peak.set(Some(megabytes.max(self.peak.get().unwrap_or(0.0))));
        }
        measured
    }

    /// CPU, wall time and memory of the whole command-line process.
    pub fn process(&self, arguments: &[&str]) -> Measured {
        let mut command = Command::new("python3");
        command.args(["-S", "-E"]).arg(root().join("xtask/bench/launch.py")).arg("5");
        command.arg(&self.dosimeter).args(arguments);
        match self.remember(take(command, &format!("dosimeter {}", arguments.join(" ")))) {
            Measured::Answer(object) if object["code"] != 0 => {
                Measured::Nothing(format!("exit code {}", object["code"]))
            }
            other => other,
        }
    }

    /// As [`Bench::process`], for commands that hold a large input in memory: counted apart from
    /// the peak of the others.
    pub fn large(&self, arguments: &[String]) -> Measured {
        let mut command = Command::new("python3");
        command.args(["-S", "-E"]).arg(root().join("xtask/bench/launch.py")).arg("5");
        command.arg(&self.dosimeter).args(arguments);
        match take(command, &format!("dosimeter {}", arguments.join(" "))) {
            Measured::Answer(object) if object["code"] != 0 => {
                Measured::Nothing(format!("exit code {}", object["code"]))
            }
            other => other,
        }
    }

    pub fn versions(&self) -> Value {
        match self.peer("versions", "all", &[]) {
            Measured::Answer(object) => *object,
            Measured::Nothing(_) => Value::Null,
        }
    }
}

/// Builds with the features of the gate, so that nothing is compiled twice.
fn build(target: &[&str]) -> Result<()> {
    let arguments = [&["build", "--release"], EVERYTHING, target].concat();
    if !watch(cargo(&arguments))?.success {
        bail!("`cargo {}` failed", arguments.join(" "));
    }
    Ok(())
}

/// The interpreter of a virtual environment, which is made if it is not there.
pub fn virtual_environment(name: &str) -> Result<PathBuf> {
    let folder = root().join("target/bench").join(name);
    let python = folder.join("bin/python");
    if !python.exists() {
        let mut create = Command::new("python3");
        create.args(["-m", "venv"]).arg(&folder);
        if !watch(create)?.success {
            bail!("`python3 -m venv` failed");
        }
    }
    Ok(python)
}

/// Installs packages from the registry; says whether they could be had.
pub fn install(python: &Path, packages: &[&str]) -> Result<bool> {
    let mut install = Command::new(python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    install.args(packages);
    Ok(watch(install)?.success)
}

/// The interpreter of the virtual environment with all peers in it.
fn environment() -> Result<PathBuf> {
    let python = virtual_environment("venv")?;
    if install(&python, PEERS)? {
        return Ok(python);
    }
    // One of them cannot be had: the others still can.
    for peer in PEERS {
        if !install(&python, &[peer])? {
            eprintln!("`{peer}` cannot be installed and is left out");
        }
    }
    Ok(python)
}

pub fn take(command: Command, name: &str) -> Measured {
    eprintln!("measuring {name}");
    match object(command) {
        Ok(object) => match object["refused"].as_str() {
            Some(reason) => Measured::Nothing(format!("refused: {reason}")),
            None => Measured::Answer(Box::new(object)),
        },
        Err(error) => {
            eprintln!("  {error:#}");
            Measured::Nothing(error.to_string())
        }
    }
}

fn object(mut command: Command) -> Result<Value> {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let started = Instant::now();
    // The answer is far smaller than a pipe's buffer, so nothing blocks while we wait.
    while child.try_wait()?.is_none() {
        if started.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            bail!("not finished in {} s", LIMIT.as_secs());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("failed");
    }
    serde_json::from_slice(&output.stdout).context("printed no JSON")
}
