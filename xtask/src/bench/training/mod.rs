//! `cargo xtask bench training`: DP-SGD beside PyTorch and Opacus on the same processor, in an
//! environment of its own because PyTorch is a download of gigabytes. Writes
//! `docs/benchmarks-training.md`.
//!
//! Rates are taken in turns, ours and theirs, so that a busy machine slows both. Ours draw a
//! Poisson batch and gather its rows at every step; the peers get one batch, made beforehand.

mod programs;
mod rates;

use self::programs::Programs;
use self::rates::{MODES, NETS, TURNS, three};
use super::bars::Bar;
use super::measure::{install, virtual_environment};
use crate::process::{cargo, root, watch};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

const PEERS: &[&str] = &["torch==2.15.0", "opacus==1.6.0"];

pub fn run() -> Result<ExitCode> {
    let build = ["build", "--release", "-p", "probes", "--example", "speed"];
    if !watch(cargo(&build))?.success {
        bail!("`cargo {}` failed", build.join(" "));
    }
    let python = environment()?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kinds = if cores == 1 { 1 } else { 2 };
    // Versions, rates, roofs, Adult, many models, memory.
    let all = 1 + NETS.len() * kinds * TURNS * (1 + MODES.len()) + TURNS + 1 + 2 * SEEDS.len() + 2;
    let bench = Programs::new(python, all);
    let mut text = String::from(
        "# Benchmarks of training\n\nWritten by `cargo xtask bench training`: DP-SGD with \
         exact per-example clipping, noise and update, beside PyTorch and Opacus on the same \
         processor in the same run. Rates on one thread are steps per second of processor time, which a \
         busy machine disturbs less; rates on all cores are steps per second of the clock, where the \
         replicas scale and the threads of one PyTorch model wait for each other, so that they are compared \
         with their bars only when no other program took the cores. Every number is the median of three \
         turns, a ratio the median of the ratios within a turn; ours and theirs take turns. Ours draw \
         a Poisson batch of 256 records on average at every step, each replica its own; the peers are \
         given one batch of 256.\n\n",
    );
    let versions = bench.peer(&["versions"], 120).unwrap_or(Value::Null);
    let _ = writeln!(
        text,
        "PyTorch {}, Opacus {}, {cores} cores, load before the run {}.\n",
        versions["torch"].as_str().unwrap_or("not installed"),
        versions["opacus"].as_str().unwrap_or("not installed"),
        std::fs::read_to_string("/proc/loadavg")
            .unwrap_or_default()
            .split(' ')
            .next()
            .unwrap_or("?")
    );
    let mut bars = Vec::new();
    let mut tables = String::new();
    rates::all(&bench, cores, &mut bars, &mut tables);
    adult(&bench, &mut bars, &mut tables)?;
    many(&bench, cores, &mut tables);
    memory(&bench, &mut bars, &mut tables);
    text.push_str("## The bars\n\n| promise | measured | |\n|---|---|---|\n");
    bars.iter().for_each(|bar| text.push_str(&bar.row()));
    text.push_str(&tables);
    std::fs::write(root().join("docs/benchmarks-training.md"), text)?;
    let missed = bars.iter().filter(|bar| !bar.kept()).count();
    println!("wrote docs/benchmarks-training.md; {missed} bars missed or not measured");
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Seeds of the trainings on Adult.
const SEEDS: [&str; 3] = ["0", "1", "2"];

/// The same network, data, noise and steps: accuracies have to agree within a point.
fn adult(bench: &Programs, bars: &mut Vec<Bar>, tables: &mut String) -> Result<()> {
    let folder = root().join("target/bench/adult");
    std::fs::create_dir_all(&folder)?;
    let folder = folder.to_str().context("the path is text")?.to_owned();
    bench.ours(&["adult-export", &folder], 1, 60);
    tables.push_str(
        "\n## Adult, 108-128-tanh-2\n\nAdam 1e-4, clip norm 2, Poisson batches of 256, noise \
         multiplier 3.51, 30 epochs (Cherubin et al. 2024); accuracy on the same held-out fifth. \
         One model each, one thread.\n\n| seed | Dosimeter | seconds | Opacus | seconds |\n|---|---|---|---|---|\n",
    );
    let mut accuracies = [Vec::new(), Vec::new()];
    for seed in SEEDS {
        let found = [
            bench.ours(&["adult-accuracy", seed], 1, 300),
            bench.peer(&["adult", seed, &folder], 900),
        ];
        let _ = write!(tables, "| {seed} |");
        for (found, accuracies) in found.iter().zip(&mut accuracies) {
            let number = |key: &str| found.as_ref().and_then(|found| found[key].as_f64());
            accuracies.extend(number("accuracy"));
            let _ = write!(
                tables,
                " {} | {} |",
                number("accuracy").map_or("—".into(), |x| format!("{:.2} %", 100.0 * x)),
                number("wall_s").map_or("—".into(), three)
            );
        }
        tables.push('\n');
    }
    let mean = |values: &[f64]| {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let [ours, theirs] = &accuracies;
    let apart = mean(ours).zip(mean(theirs)).map(|(a, b)| 100.0 * (a - b).abs());
    let promise = "Adult: at most one point of accuracy between Dosimeter and Opacus";
    bars.push(Bar::at_most(promise, 1.0, apart).plain());
    Ok(())
}

/// A tenth of a thousand models, and what a thousand take.
fn many(bench: &Programs, cores: usize, tables: &mut String) {
    let found = bench.ours(&["adult-many", "100", "1000"], cores, 900);
    let used = found.as_ref().and_then(|found| found["cpu_s"].as_f64());
    if let Some(used) = used {
        let _ = write!(
            tables,
            "\n1,000 such models of 1,000 steps need {} s of processor time, {} minutes of two cores \
             (ten times what 100 models took: {} s).\n",
            three(10.0 * used),
            three(10.0 * used / 120.0),
            three(used)
        );
    }
}

fn memory(bench: &Programs, bars: &mut Vec<Bar>, tables: &mut String) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let found = bench.ours(&["wide-resnet", "4096"], cores, 1800);
    let number = |key: &str| found.as_ref().and_then(|found| found[key].as_f64());
    if let (Some(seconds), Some(megabytes), Some(parameters)) =
        (number("wall_s"), number("peak_mb"), number("parameters"))
    {
        let _ = write!(
            tables,
            "\n## WideResNet-16-4, one step with batch 4096\n\n{parameters} parameters, group norm and \
             weight standardisation, images of 32 x 32: {} s on {cores} cores, {megabytes} MB at \
             the peak.\n",
            three(seconds)
        );
    }
    // The roof before and after, in processor time as the step's.
    let roof = || bench.ours(&["roof"], 1, 120).and_then(|found| found["gflop_s"].as_f64());
    if let (Some(work), Some(used), Some(roof)) = (number("gflop"), number("cpu_s"), roof()) {
        let share = work / used / roof;
        let _ = write!(
            tables,
            "\nThe products of a step are {} TFLOP (forward, gradients of inputs and of weights, each \
             once): {} GFLOP per second of one core's time, {:.0} % of the {} that one core does with \
             all numbers in its registers.\n",
            three(work / 1e3),
            three(work / used),
            100.0 * share,
            three(roof)
        );
        let promise =
            "WideResNet-16-4: at least 0.6 of the multiply-adds that the processor can do";
        bars.push(Bar::at_least(promise, 0.6, Some(share)).plain());
    }
    let promise = "WideResNet-16-4, batch 4096 in micro-batches: below 8000 MB";
    bars.push(Bar::megabytes_below(promise, 8000.0, number("peak_mb")));
}

/// The interpreter of a virtual environment with PyTorch and Opacus.
pub(super) fn environment() -> Result<PathBuf> {
    let python = virtual_environment("training-venv")?;
    if !install(&python, PEERS)? {
        eprintln!("PyTorch and Opacus cannot be installed; their rows stay empty");
    }
    Ok(python)
}
