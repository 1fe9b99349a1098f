//! `cargo xtask bench language`: a LoRA DP-Adam step beside a hand-written one in PyTorch, on the same
//! processor in turns; the memory of SmolLM2's shape; forward passes of the search for the shortest
//! prompt. Writes `docs/benchmarks-language.md`. PyTorch is in the environment of `bench training`.

use super::bars::Bar;
use crate::process::{cargo, root, watch};
use anyhow::{Result, bail};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// Layers, width, heads, key heads, hidden, vocabulary, batch, length, rank, steps; with the ratio
/// that is promised.
///
/// SmolLM2's shape: 94 % of our step are products at 94 % of the multiply-adds that one core can do;
/// at all of them, and nothing else to do, the step would be about 1.5 times PyTorch's. So the promise
/// is lower there.
const SHAPES: [(&str, f64, [u32; 10]); 3] = [
    ("stories260K: 5 layers of 64, batch 64 x 48", 1.5, [5, 64, 8, 4, 172, 512, 64, 48, 8, 8]),
    ("6 layers of 256, batch 16 x 64", 1.4, [6, 256, 4, 2, 768, 4096, 16, 64, 8, 4]),
    ("SmolLM2-135M, batch 8 x 128", 1.25, [30, 576, 9, 3, 1536, 49_152, 8, 128, 4, 2]),
];

/// SmolLM2-135M, batch 64 x 128: one step.
const SMOL: [u32; 10] = [30, 576, 9, 3, 1536, 49_152, 64, 128, 4, 1];

const TURNS: usize = 3;

/// Steps, texts and seeds of the searches for the shortest prompt.
const SEARCHES: [&str; 3] = ["200", "6", "2"];

pub fn run() -> Result<ExitCode> {
    let build = ["build", "--release", "-p", "probes", "--examples"];
    if !watch(cargo(&build))?.success {
        bail!("`cargo {}` failed", build.join(" "));
    }
    let python = super::training::environment()?;
    let mut bars = Vec::new();
    let mut tables = String::new();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    steps(&python, 1, &mut bars, &mut tables);
    // Threads that wait for each other on a busy machine measure the other work.
    if load() < cores as f64 {
        steps(&python, 2, &mut bars, &mut tables);
    } else {
        let _ = write!(
            tables,
            "\n## LoRA DP-Adam step, two threads\n\nNot measured: load {:.1} on {cores} cores.\n",
            load()
        );
    }
    let arguments: Vec<String> =
        SMOL.iter().map(u32::to_string).chain([cores.to_string()]).collect();
    let found = object(Command::new(example("lora_step")), &arguments);
    let number = |key: &str| found.as_ref().and_then(|found| found[key].as_f64());
    if let (Some(clock), Some(kib)) = (number("clock_seconds"), number("memory_kib")) {
        let _ = write!(
            tables,
            "\n## SmolLM2-135M's shape, LoRA, one step of 64 x 128 tokens\n\n{clock:.0} s on {cores} \
             cores, {:.0} MB at the peak.\n",
            kib / 1024.0
        );
    }
    let megabytes = number("memory_kib").map(|kib| kib / 1024.0);
    bars.push(Bar::megabytes_below(
        "SmolLM2 LoRA, 64 x 128 tokens: below 8000 MB",
        8000.0,
        megabytes,
    ));
    passes(&mut bars, &mut tables);
    let mut text = String::from(
        "# Benchmarks of language models\n\nWritten by `cargo xtask bench language`.\n\n\
         ## The bars\n\n| promise | measured | |\n|---|---|---|\n",
    );
    bars.iter().for_each(|bar| text.push_str(&bar.row()));
    text.push_str(&tables);
    std::fs::write(root().join("docs/benchmarks-language.md"), text)?;
    let missed = bars.iter().filter(|bar| !bar.kept()).count();
    println!("wrote docs/benchmarks-language.md; {missed} bars missed or not measured");
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Steps of ours and theirs in turns; on one thread by processor time, which is what is promised, on
/// more by the clock.
fn steps(python: &Path, threads: usize, bars: &mut Vec<Bar>, tables: &mut String) {
    let (key, words) = match threads {
        1 => ("processor_seconds", "one thread, processor seconds per step"),
        _ => ("clock_seconds", "two threads, seconds of the clock per step"),
    };
    let _ = write!(
        tables,
        "\n## LoRA DP-Adam step, {words}\n\nMedians of three turns: forward, backward, every \
         example's adapter gradients clipped, noise, Adam. Adapters on queries and values. Load \
         before: {:.1}. \"Products\": processor seconds of the step's multiplications alone, adapters \
         left out, at the rate of one large product.\n\n\
         | model | Dosimeter | PyTorch, hand-written | times | products |\n|---|---|---|---|---|\n",
        load()
    );
    for (name, least, shape) in SHAPES {
        if threads > 1 && shape[1] > 256 {
            continue;
        }
        let arguments: Vec<String> =
            shape.iter().map(u32::to_string).chain([threads.to_string()]).collect();
        let (mut ours, mut theirs, mut products) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..TURNS {
            if let Some(found) = object(Command::new(example("lora_step")), &arguments) {
                ours.extend(found[key].as_f64());
                products.extend(found["product_seconds"].as_f64());
            }
            let mut peer = Command::new(python);
            peer.arg(root().join("xtask/bench/language_peers.py"));
            theirs.extend(object(peer, &arguments).and_then(|found| found[key].as_f64()));
        }
        let (ours, theirs) = (median(ours), median(theirs));
        let times = ours.zip(theirs).map(|(ours, theirs)| theirs / ours);
        let show = |x: Option<f64>| x.map_or("—".to_owned(), |x| format!("{x:.3}"));
        let _ = writeln!(
            tables,
            "| {name} | {} | {} | {} | {} |",
            show(ours),
            show(theirs),
            show(times),
            show(median(products))
        );
        if threads == 1 {
            let promise = format!("LoRA step, {name}: at least {least} times PyTorch");
            bars.push(Bar::at_least(promise, least, times));
        }
    }
}

/// Forward passes of the search for the shortest prompt, at equal success.
fn passes(bars: &mut Vec<Bar>, tables: &mut String) {
    let data = root().join("crates/language/tests/data/stories260K");
    let files = ["stories260K.bin", "tok512.bin"].map(|name| data.join(name).display().to_string());
    let arguments: Vec<String> = files.into_iter().chain(SEARCHES.map(str::to_owned)).collect();
    let found = lines(Command::new(example("acr_passes")), &arguments)
        .and_then(|text| serde_json::from_str::<Value>(text.lines().last()?).ok());
    let number = |key: &str| found.as_ref().and_then(|found| found[key].as_f64());
    let fewer = number("reference").zip(number("ours")).map(|(theirs, ours)| theirs / ours);
    // Nothing is measured where ours stayed behind.
    let equal = fewer.filter(|_| number("longer") == Some(0.0));
    bars.push(Bar::at_least(
        "ACR: at least 3 times fewer forward passes at equal success",
        3.0,
        equal,
    ));
    let count = |key: &str| number(key).map_or("—".to_owned(), |x| format!("{x:.0}"));
    let _ = write!(
        tables,
        "\n## Forward passes of the search for the shortest prompt\n\nstories260K, {} texts of 12 \
         tokens by {} seeds, {} steps at most, 100 candidates; a backward pass counts as two. Where the \
         reference procedure found a shorter prompt, ours was run again with another seed, at its own \
         cost, until it was as short.\n\n\
         | searches | passes |\n|---|---|\n\
         | reference procedure | {} |\n| ours, until as short | {} |\n| ours, first search only | {} |\n\n\
         {} searches, {} more of ours to be as short; shorter than the reference in {}, longer in {}.\n",
        SEARCHES[1],
        SEARCHES[2],
        SEARCHES[0],
        count("reference"),
        count("ours"),
        count("first"),
        count("cases"),
        count("again"),
        count("shorter"),
        count("longer")
    );
}

/// Of the last minute; nothing where the system does not say.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

fn example(name: &str) -> std::path::PathBuf {
    root().join("target/release/examples").join(name)
}

fn object(command: Command, arguments: &[String]) -> Option<Value> {
    serde_json::from_str(&lines(command, arguments)?).ok()
}

fn lines(mut command: Command, arguments: &[String]) -> Option<String> {
    eprintln!("measuring {}", arguments.join(" "));
    let output =
        command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    String::from_utf8(output.stdout).ok()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
