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

    /// Prints the sections and bars of a part, puts them in the place of those on the page, and says
    /// how many of its bars were not kept.
    pub fn write_part(&self) -> Result<usize> {
        let missed = self.print();
        let path = root().join("docs/benchmarks.md");
        let mut text = read_to_string(&path)?;
        for bar in &self.bars {
            text = with_bar(&text, bar);
        }
        for section in self.sections.split("\n## ").skip(1) {
            let load = load();
            let section = format!(
                "{}\n\nMeasured apart from the rest of this page, at a load of {load}.\n",
                section.trim_end()
            );
            text = with_section(&text, &section);
        }
        write(path, text)?;
        Ok(missed)
    }
}

/// The page with a bar's row in the place of the one with the same promise, or as the last.
fn with_bar(page: &str, bar: &Bar) -> String {
    let start = format!("| {} |", bar.promise());
    let row = bar.row();
    if page.lines().any(|line| line.starts_with(&start)) {
        let row = row.trim_end();
        let lines = page.lines().map(|line| if line.starts_with(&start) { row } else { line });
        return lines.flat_map(|line| [line, "\n"]).collect();
    }
    let bars = page.find("## The bars").unwrap_or(0);
    let end = page[bars..].find("|\n\n").map_or(page.len(), |end| bars + end + 2);
    format!("{}{row}{}", &page[..end], &page[end..])
}

/// The page with a section (its title first) in the place of the one with the same title, or as
/// the last.
fn with_section(page: &str, section: &str) -> String {
    let title = section.lines().next().unwrap_or_default();
    let heading = format!("\n## {title}\n");
    let (before, after) = match page.find(&heading) {
        Some(start) => {
            let rest = &page[start + 1..];
            (&page[..start], rest.find("\n## ").map_or("", |end| &rest[end..]))
        }
        None => (page, ""),
    };
    format!("{before}\n## {section}{after}")
}

fn load() -> String {
    let text = read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("?").to_owned()
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
    row("load before the run", &load());
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

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# B\n\n## The bars\n\n| p | m | |\n|---|---|---|\n| a | 1.00× | pass |\n\n## One\n\nold\n\n## Two\n\nkept\n";

    #[test]
    fn a_part_takes_the_place_of_what_stood_there() {
        let page = with_section(PAGE, "One\n\nnew\n");
        assert_eq!(page, PAGE.replace("old", "new"));
        assert!(with_section(PAGE, "Three\n\nnew\n").ends_with("kept\n\n## Three\n\nnew\n"));
        let page = with_bar(PAGE, &Bar::at_least("a", 3.0, Some(2.0)));
        assert_eq!(page, PAGE.replace("| 1.00× | pass |", "| 2.00× | **fail** |"));
        let page = with_bar(PAGE, &Bar::at_least("b", 1.0, Some(2.0)));
        assert!(page.contains("| a | 1.00× | pass |\n| b | 2.00× | pass |\n\n## One"));
    }
}
