//! The page's server under load: distinct questions from `wrk` on the same cores, with and
//! without a thousand idle connections beside it, and its memory all the while.

use super::bars::Bar;
use super::format::{seconds, three_digits};
use super::page::Page;
use crate::process::{answers, cargo, root};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Seconds of each load.
const SECONDS: u32 = 10;

/// What is asked in one load.
struct Load {
    name: &'static str,
    quantities: &'static str,
    idle: usize,
}

const LOADS: [Load; 4] = [
    Load { name: "epsilon, advantage, Bayes security", quantities: LIVE, idle: 0 },
    Load { name: "the same beside 1,000 idle connections", quantities: LIVE, idle: 1000 },
    Load { name: "epsilon alone", quantities: "\"epsilon\"", idle: 0 },
    Load { name: "everything (with mu and two TPR)", quantities: ALL, idle: 0 },
];
const LIVE: &str = "\"epsilon\",\"advantage\",\"bayes-security\"";
const ALL: &str = "\"epsilon\",\"mu\",\"tpr\",\"advantage\",\"bayes-security\"";

/// What `wrk` saw.
struct Seen {
    rate: f64,
    /// Seconds of processor time of one answer, on Linux.
    cost: Option<f64>,
    errors: f64,
    median: f64,
    worst: f64,
}

pub fn server(page: &mut Page) {
    page.heading(
        "The page's server",
        "`POST /api/account` under two lenses (composition and last iterate), every question \
         different, nothing cached; `wrk` with one thread and 16 connections on the same cores. \
         While a slider moves the page asks the first of these; mu and true positive rates, which \
         cost ten times as much, when it rests.",
    );
    let Some(mut served) = Served::start() else {
        page.line("Not measured: `wrk` or the server could not be started.");
        page.bar(Bar::at_least("1,000 distinct /api/account requests/s, as a multiple", 1.0, None));
        return;
    };
    page.line("| asked | requests/s | processor time of one | errors | median | 99 % | memory |");
    page.line("|---|---|---|---|---|---|---|");
    let mut rates = Vec::new();
    let mut memory = Vec::new();
    for load in &LOADS {
        let idle: Vec<TcpStream> =
            (0..load.idle).filter_map(|_| TcpStream::connect(&served.address).ok()).collect();
        let seen = served.load(load.quantities);
        drop(idle);
        memory.push(served.megabytes());
        let Some(seen) = seen else {
            page.line(format!("| {} | not measured | | | | | |", load.name));
            rates.push(None);
            continue;
        };
        page.line(format!(
            "| {} | {} | {} | {} | {} ms | {} ms | {} MB |",
            load.name,
            three_digits(seen.rate),
            seen.cost.map_or_else(|| "?".into(), seconds),
            seen.errors,
            three_digits(seen.median),
            three_digits(seen.worst),
            memory.last().copied().flatten().map_or_else(|| "?".into(), three_digits)
        ));
        rates.push((seen.errors == 0.0).then_some(seen.rate));
    }
    let multiple = |place: usize| rates[place].map(|rate| rate / 1000.0);
    page.bar(Bar::at_least(
        "1,000 distinct /api/account requests/s (epsilon, advantage, Bayes security), as a multiple",
        1.0,
        multiple(0),
    ));
    page.bar(Bar::at_least("the same beside 1,000 idle connections", 1.0, multiple(1)));
    let growth = match (memory[0], memory[LOADS.len() - 1]) {
        (Some(first), Some(last)) => Some(last / first),
        _ => None,
    };
    page.bar(Bar::at_most(
        "memory of the server after all loads, over after the first",
        1.5,
        growth,
    ));
    served.stop();
}

/// A running server.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start() -> Option<Self> {
        if !answers(command("wrk", &["-v"])) && !installed() {
            return None;
        }
        if !cargo(&["build", "--release", "-p", "dosimeter", "--features", "full"])
            .status()
            .is_ok_and(|s| s.success())
        {
            return None;
        }
        let program = root().join("target/release/dosimeter");
        let mut child = Command::new(program)
            .args(["serve", "--port", "0", "--no-open"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take()?).read_line(&mut line).ok()?;
        let address = line.trim().strip_prefix("http://")?.strip_suffix('/')?.to_owned();
        Some(Self { child, address })
    }

    fn load(&self, quantities: &str) -> Option<Seen> {
        let before = self.processor_seconds();
        let script: PathBuf = root().join("xtask/bench/account.lua");
        let output = Command::new("wrk")
            .args(["-t1", "-c16", &format!("-d{SECONDS}s"), "-s"])
            .arg(script)
            .arg(format!("http://{}", self.address))
            .env("QUANTITIES", quantities)
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let words: Vec<&str> = text.lines().last()?.split_whitespace().collect();
        let number = |name: &str| -> Option<f64> {
            let place = words.iter().position(|word| *word == name)?;
            words.get(place + 1)?.parse().ok()
        };
        let spent = || Some(self.processor_seconds()? - before?);
        let requests = number("requests")?;
        Some(Seen {
            rate: requests / number("seconds")?,
            cost: spent().map(|seconds| seconds / requests),
            errors: number("errors")?,
            median: number("p50")?,
            worst: number("p99")?,
        })
    }

    /// Processor time of the server so far, which Linux counts in hundredths of a second.
    fn processor_seconds(&self) -> Option<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let ticks = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
        Some(ticks / 100.0)
    }

    /// Resident memory; on Linux.
    fn megabytes(&self) -> Option<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
        let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kilobytes / 1024.0)
    }

    fn stop(&mut self) {
        // It has nothing to finish.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// `wrk -v` answers with an error code although it is there.
fn installed() -> bool {
    let there = || Command::new("wrk").arg("-v").output().is_ok();
    there() || (answers(command("apt-get", &["install", "-y", "-qq", "wrk"])) && there())
}
