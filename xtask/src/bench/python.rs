//! What Python costs on top of the core: a call of `account`, and the import, beside
//! dp-accounting's.

use super::bars::Bar;
use super::format::{ratio, seconds};
use super::page::Page;
use crate::process::{cargo, root, watch};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Noise multiplier, sample rate, steps, and whether epsilon alone is asked for: usual runs, and
/// one whose epsilon is a closed form.
const CALLS: &[[f64; 4]] = &[
    [1.0, 0.01, 1000.0, 0.0],
    [2.0, 0.1, 1000.0, 0.0],
    [1.0, 0.01, 1000.0, 1.0],
    [10.0, 1.0, 100.0, 1.0],
];

/// What a call may cost beside a fifth of the Rust call.
const ALLOWED: f64 = 20e-6;

pub fn python(page: &mut Page) {
    page.heading(
        "Python",
        "`dosimeter.account(run, delta=1e-5, lens=\"composition\")` with all quantities or epsilon \
         alone, and the Rust call under it in the same process, alternating; CPU seconds of all \
         threads. dp-accounting: epsilon by `PLDAccountant`. Imports in fresh interpreters.",
    );
    let measurer = match Measurer::prepare() {
        Ok(measurer) => Some(measurer),
        Err(error) => {
            page.line(format!("Not measured: {error:#}"));
            None
        }
    };
    let measure = |arguments: &[String]| measurer.as_ref()?.object(arguments).ok();
    page.line("| sigma, q, T | asked | in Rust | from Python | over | dp-accounting |");
    page.line("|---|---|---|---|---|---|");
    let mut worst: Option<f64> = None;
    let mut complete = true;
    for call @ [sigma, rate, steps, alone] in CALLS {
        let numbers = call.map(|number| number.to_string());
        let asked = |what: &str| measure(&[&[what.to_owned()], &numbers[..]].concat());
        let number = |object: &Option<Value>, key: &str| object.as_ref()?[key].as_f64();
        let (ours, peer) = (asked("call"), asked("peer"));
        let both = number(&ours, "rust_s").zip(number(&ours, "python_s"));
        if let Some((rust, python)) = both {
            let over = (python - ALLOWED).max(0.0) / rust;
            worst = Some(worst.map_or(over, |so_far| so_far.max(over)));
        } else {
            complete = false;
        }
        let text = |value: Option<f64>| value.map_or_else(|| "—".to_owned(), seconds);
        page.line(format!(
            "| {sigma}, {rate}, {steps} | {} | {} | {} | {} | {} |",
            if *alone == 0.0 { "everything" } else { "epsilon" },
            text(both.map(|(rust, _)| rust)),
            text(both.map(|(_, python)| python)),
            text(both.map(|(rust, python)| python - rust)),
            text(number(&peer, "python_s"))
        ));
    }
    page.bar(Bar::at_most(
        "`account` from Python, less 20 µs, over the Rust call: at most 1.2",
        1.2,
        worst.filter(|_| complete),
    ));
    imports(page, &measure);
}

fn imports(page: &mut Page, measure: &dyn Fn(&[String]) -> Option<Value>) {
    let import = |module: &str| {
        measure(&["import".to_owned(), module.to_owned()])
            .and_then(|object| object["seconds"].as_f64())
    };
    let (ours, theirs) = (import("dosimeter"), import("dp_accounting"));
    let text = |value: Option<f64>| value.map_or_else(|| "—".to_owned(), seconds);
    page.line(format!(
        "\nImport: dosimeter {}, dp-accounting {} ({}).",
        text(ours),
        text(theirs),
        theirs.zip(ours).map_or_else(|| "—".to_owned(), |(slow, fast)| ratio(slow / fast))
    ));
    page.bar(Bar::at_least(
        "import of the package: 0.2 s over the time taken",
        1.0,
        ours.map(|taken| 0.2 / taken),
    ));
}

/// An interpreter with the package and its peer.
struct Measurer {
    python: PathBuf,
    site: PathBuf,
}

impl Measurer {
    fn prepare() -> Result<Self> {
        if !watch(cargo(&["build", "--release", "-p", "python"]))?.success {
            bail!("the module does not build");
        }
        let (python, site) = crate::python::light()?;
        Ok(Self { python, site })
    }

    fn object(&self, arguments: &[String]) -> Result<Value> {
        eprintln!("measuring python {}", arguments.join(" "));
        let script: &Path = &root().join("xtask/bench/python_calls.py");
        let output = Command::new(&self.python)
            .arg(script)
            .args(arguments)
            .env("PYTHONPATH", &self.site)
            .stderr(Stdio::null())
            .output()?;
        serde_json::from_slice(&output.stdout).context("printed no JSON")
    }
}
