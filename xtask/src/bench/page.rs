//! `docs/benchmarks.md` as it is put together.

use super::bars::Bar;
use super::measure::Bench;
use crate::process::root;
use anyhow::Result;
use std::fmt::Write as _;
use std::fs::{read_to_string, write};
use std::process::Command;

#[derive(Default)]
pub struct Page {
    machine: String,
    sections: String,
    bars: Vec<Bar>,
}

impl Page {
    pub fn new(bench: &Bench) -> Self {
        Self { machine: machine(bench), sections: String::new(), bars: Vec::new() }
    }

    pub fn heading(&mut self, title: &str, text: &str) {
        let _ = write!(self.sections, "\n## {title}\n\n{text}\n\n");
    }

    pub fn line(&mut self, line: impl AsRef<str>) {
        self.sections.push_str(line.as_ref());
        self.sections.push('\n');
    }

    pub fn bar(&mut self, bar: Bar) {
        self.bars.push(bar);
    }

    /// Prints one part alone and says how many of its bars were not kept.
    pub fn print(&self) -> usize {
        println!("{}", self.sections);
        self.bars.iter().for_each(|bar| print!("{}", bar.row()));
        self.missed()
    }

    fn missed(&self) -> usize {
        self.bars.iter().filter(|bar| !bar.kept()).count()
    }

    /// Writes the page and says how many bars were not kept.
    pub fn write(&self) -> Result<usize> {
        let mut text = String::from(
            "# Benchmarks\n\nWritten by `cargo xtask bench`, which installs the peers from PyPI and measures \
             both sides in one run on one machine. CPU seconds are medians of the calls \
             themselves: imports, process start and reading of input are left out on both \
             sides. Everything runs on one thread. The ratios are the result; the seconds \
             depend on the machine.\n\n",
        );
        text.push_str(&self.machine);
        text.push_str("\n## The bars\n\n| promise | measured | |\n|---|---|---|\n");
        self.bars.iter().for_each(|bar| text.push_str(&bar.row()));
        text.push_str(&self.sections);
        write(root().join("docs/benchmarks.md"), text)?;
        Ok(self.missed())
    }
}

fn machine(bench: &Bench) -> String {
    let mut rows = String::from("| | |\n|---|---|\n");
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(rows, "| {name} | {value} |");
    };
    let processor = read_to_string("/proc/cpuinfo").unwrap_or_default().lines().find_map(|line| {
        line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name.to_owned())
    });
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    row("processor", &format!("{} ({cores} cores)", processor.as_deref().unwrap_or("unknown")));
    row(
        "load before the run",
        read_to_string("/proc/loadavg").unwrap_or_default().split(' ').next().unwrap_or("?"),
    );
    let rustc = Command::new("rustc").arg("-V").output().ok();
    let rustc = rustc.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    row("Rust", rustc.as_deref().unwrap_or("unknown"));
    row("Dosimeter", env!("CARGO_PKG_VERSION"));
    if let Some(versions) = bench.versions().as_object() {
        let named: Vec<String> = versions
            .iter()
            .filter(|(name, _)| *name != "peak_mb")
            .map(|(name, version)| {
                format!("{name} {}", version.as_str().unwrap_or("not installed"))
            })
            .collect();
        row("peers", &named.join(", "));
    } else {
        row("peers", "none could be installed");
    }
    rows
}
