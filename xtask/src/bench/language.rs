//! `cargo xtask bench language`: a LoRA DP-Adam step beside a hand-written one in PyTorch, on the same
//! processor in turns; the memory of SmolLM2's shape; forward passes of the search for the shortest
//! prompt. Writes `docs/benchmarks-language.md`. PyTorch is in the environment of `bench training`.

use super::bars::Bar;
use crate::process::{cargo, root, watch};
use anyhow::{Result, bail};
use serde_json::Value;
use std::fmt::Write as _;
use std::process::{Command, ExitCode, Stdio};

/// Layers, width, heads, key heads, hidden, vocabulary, batch, length, rank, steps.
///
/// Where products of matrices are nearly all of the time both spend it in the same multiplications;
/// the bar is lower there.
const SHAPES: [(&str, f64, [u32; 10]); 2] = [
    ("tiny: 5 layers of 64, batch 64 x 48", 1.5, [5, 64, 8, 4, 172, 512, 64, 48, 8, 8]),
    ("small: 6 layers of 256, batch 16 x 64", 1.2, [6, 256, 4, 2, 768, 4096, 16, 64, 8, 4]),
];

/// SmolLM2-135M, batch 64 x 128: one step.
const SMOL: [u32; 10] = [30, 576, 9, 3, 1536, 49_152, 64, 128, 4, 1];

const TURNS: usize = 3;

pub fn run() -> Result<ExitCode> {
    let build = ["build", "--release", "-p", "language", "--examples"];
    if !watch(cargo(&build))?.success {
        bail!("`cargo {}` failed", build.join(" "));
    }
    let python = super::training::environment()?;
    let mut bars = Vec::new();
    let mut tables = String::from(
        "\n## LoRA DP-Adam step, one thread\n\nProcessor seconds a step, medians of three turns: \
         forward, backward, every example's adapter gradients clipped, noise, Adam. Adapters on \
         queries and values.\n\n| model | Dosimeter | PyTorch, hand-written | times |\n|---|---|---|---|\n",
    );
    for (name, least, shape) in SHAPES {
        let arguments: Vec<String> =
            shape.iter().map(u32::to_string).chain(["1".to_owned()]).collect();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            ours.extend(seconds(Command::new(example("lora_step")), &arguments));
            let mut peer = Command::new(&python);
            peer.arg(root().join("xtask/bench/language_peers.py"));
            theirs.extend(seconds(peer, &arguments));
        }
        let (ours, theirs) = (median(ours), median(theirs));
        let times = ours.zip(theirs).map(|(ours, theirs)| theirs / ours);
        let show = |x: Option<f64>| x.map_or("—".to_owned(), |x| format!("{x:.3}"));
        let _ =
            writeln!(tables, "| {name} | {} | {} | {} |", show(ours), show(theirs), show(times));
        bars.push(Bar::at_least(format!("{name}: at least {least} times PyTorch"), least, times));
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
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
    let mut text = String::from(
        "# Benchmarks of language models\n\nWritten by `cargo xtask bench language`.\n\n\
         ## The bars\n\n| promise | measured | |\n|---|---|---|\n",
    );
    bars.iter().for_each(|bar| text.push_str(&bar.row()));
    text.push_str(&tables);
    text.push_str(
        "\nForward passes of the search for the shortest prompt: [language models](language.md#acr).\n",
    );
    std::fs::write(root().join("docs/benchmarks-language.md"), text)?;
    let missed = bars.iter().filter(|bar| !bar.kept()).count();
    println!("wrote docs/benchmarks-language.md; {missed} bars missed or not measured");
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn example(name: &str) -> std::path::PathBuf {
    root().join("target/release/examples").join(name)
}

fn seconds(command: Command, arguments: &[String]) -> Option<f64> {
    object(command, arguments)?["processor_seconds"].as_f64()
}

fn object(mut command: Command, arguments: &[String]) -> Option<Value> {
    eprintln!("measuring {}", arguments.join(" "));
    let output =
        command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    serde_json::from_slice(&output.stdout).ok()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
