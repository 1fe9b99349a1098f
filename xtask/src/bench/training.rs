//! `cargo xtask bench training`: DP-SGD beside PyTorch and Opacus on the same processor, in an
//! environment of its own because PyTorch is a download of gigabytes. Writes
//! `docs/benchmarks-training.md`.
//!
//! Rates are taken in turns, ours and theirs, so that a busy machine slows both. Ours draw a
//! Poisson batch and gather its rows at every step; the peers get one batch, made beforehand.

use super::bars::Bar;
use crate::process::{cargo, root, watch};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

const PEERS: &[&str] = &["torch==2.15.0", "opacus==1.6.0"];

/// Turns of every rate.
const TURNS: usize = 3;

pub fn run() -> Result<ExitCode> {
    let build = ["build", "--release", "-p", "training", "--example", "speed"];
    if !watch(cargo(&build))?.success {
        bail!("`cargo {}` failed", build.join(" "));
    }
    let python = environment()?;
    let bench = Training { python };
    let mut text = String::from(
        "# Benchmarks of training\n\nWritten by `cargo xtask bench training`: DP-SGD with \
         exact per-example clipping, noise and update, beside PyTorch and Opacus on the same \
         processor in the same run. On one thread: steps per second of processor time, which a busy \
         machine disturbs less; on all cores: per second of the clock, where the threads of one PyTorch \
         model wait for each other when other programs run, and a load of more than one before the run \
         makes the row mean little. The bars are those of one thread. Every number is the median \
         of three turns, a ratio the median of the ratios within a turn; ours and theirs take turns. \
         Ours draw a Poisson batch of 256 records on average at every step, each replica its own; \
         the peers are given one batch of 256.\n\n",
    );
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let versions = bench.peer(&["versions"]).unwrap_or(Value::Null);
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
    speed(&bench, cores, &mut bars, &mut tables);
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

struct Training {
    python: PathBuf,
}

impl Training {
    fn peer(&self, arguments: &[&str]) -> Option<Value> {
        let mut command = Command::new(&self.python);
        command.arg(root().join("xtask/bench/training_peers.py")).args(arguments);
        object(command, arguments)
    }

    fn ours(&self, arguments: &[&str], threads: usize) -> Option<Value> {
        let mut command = Command::new(root().join("target/release/examples/speed"));
        command.args(arguments).env("RAYON_NUM_THREADS", threads.to_string());
        object(command, arguments)
    }
}

fn object(mut command: Command, arguments: &[&str]) -> Option<Value> {
    eprintln!("measuring {}", arguments.join(" "));
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    serde_json::from_slice(&output.stdout).ok()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

const MODES: [(&str, &str); 4] = [
    ("hooks", "Opacus, default hooks"),
    ("ghost", "Opacus, ghost clipping"),
    ("functional", "torch.func, vmap of grad"),
    ("plain", "PyTorch without privacy"),
];

/// Arithmetic of one step on 256 records: three products for a weight that is not in the first
/// layer, two for one that is.
const MLP_STEP: f64 = 2.0 * 256.0 * (2.0 * 784.0 * 128.0 + 3.0 * 128.0 * 10.0);

fn speed(bench: &Training, cores: usize, bars: &mut Vec<Bar>, tables: &mut String) {
    for (what, title, replicas, seconds) in [
        ("mlp", "784-128-10 with ReLU (101,770 parameters)", "64", "6"),
        ("cnn", "the network of Opacus' MNIST example (26,010 parameters)", "64", "10"),
    ] {
        let _ = write!(
            tables,
            "\n## {title}\n\nModel-steps a second, batch 256.\n\n| threads | Dosimeter, {replicas} replicas |"
        );
        for (_, name) in MODES {
            let _ = write!(tables, " {name} |");
        }
        tables.push_str("\n|---|---|---|---|---|---|\n");
        let mut threads = vec![1, cores];
        threads.dedup();
        for threads in threads {
            let key = if threads == 1 { "cpu_rate" } else { "rate" };
            let mut ours = Vec::new();
            let mut shares = Vec::new();
            let mut theirs = vec![(Vec::new(), Vec::new()); MODES.len()];
            for _ in 0..TURNS {
                let own = bench.ours(&[what, replicas, seconds], threads);
                let own = own.and_then(|found| found[key].as_f64());
                ours.extend(own);
                if what == "mlp" && threads == 1 {
                    let roof = bench.ours(&["roof"], 1);
                    let roof = roof.and_then(|found| found["gflop_s"].as_f64());
                    shares.extend(own.zip(roof).map(|(own, roof)| own * MLP_STEP / (roof * 1e9)));
                }
                for ((mode, _), (rates, ratios)) in MODES.iter().zip(&mut theirs) {
                    let found = bench.peer(&["rate", what, mode, &threads.to_string(), "3"]);
                    let rate = found.and_then(|found| found[key].as_f64());
                    rates.extend(rate);
                    ratios.extend(own.zip(rate).map(|(own, rate)| own / rate));
                }
            }
            let _ = write!(tables, "| {threads} | {} |", median(ours).map_or("—".into(), three));
            let mut ghost = None;
            for ((mode, name), (rates, ratios)) in MODES.iter().zip(theirs) {
                let times = median(ratios);
                let _ = match (median(rates), times) {
                    (Some(rate), Some(times)) => {
                        write!(tables, " {} ({}x) |", three(rate), three(times))
                    }
                    _ => write!(tables, " — |"),
                };
                let least = match (what, *mode) {
                    ("mlp", "hooks") => 60.0,
                    ("mlp", "ghost") => {
                        ghost = times;
                        4.0
                    }
                    ("cnn", "hooks" | "ghost") => 4.0,
                    _ => continue,
                };
                // By the clock, what else the machine does decides.
                if threads == 1 {
                    let promise = format!("{what}: at least {least} times {name}");
                    bars.push(Bar::at_least(promise, least, times));
                }
            }
            tables.push('\n');
            if let Some(share) = median(shares) {
                roof(share, ghost, bars, tables);
            }
        }
    }
}

/// What of the processor's arithmetic the steps are, and what that leaves to gain.
fn roof(share: f64, ghost: Option<f64>, bars: &mut Vec<Bar>, tables: &mut String) {
    let promise = "mlp: at least 0.6 of the multiply-adds that the processor can do";
    bars.push(Bar::at_least(promise, 0.6, Some(share)).plain());
    // Rows of the table go on below, so the note waits in front of it.
    let most = ghost.map_or("—".into(), |ghost| three(ghost / share));
    let note = format!(
        "A step is {} MFLOP. On one thread these steps are {:.0} % of the multiply-adds that the \
         processor does with all numbers in its registers, noise, batches and updates included; at \
         100 % they would be {most} times Opacus' ghost clipping.\n\n",
        three(MLP_STEP / 1e6),
        100.0 * share
    );
    if let Some(at) = tables.rfind("Model-steps a second") {
        tables.insert_str(at, &note);
    }
}

fn three(value: f64) -> String {
    let digits = (2.0 - value.abs().log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{value:.digits$}")
}

/// The same network, data, noise and steps: accuracies have to agree within a point.
fn adult(bench: &Training, bars: &mut Vec<Bar>, tables: &mut String) -> Result<()> {
    let folder = root().join("target/bench/adult");
    std::fs::create_dir_all(&folder)?;
    let folder = folder.to_str().context("the path is text")?.to_owned();
    bench.ours(&["adult-export", &folder], 1);
    tables.push_str(
        "\n## Adult, 108-128-tanh-2\n\nAdam 1e-4, clip norm 2, Poisson batches of 256, noise \
         multiplier 3.51, 30 epochs (Cherubin et al. 2024); accuracy on the same held-out fifth. \
         One model each, one thread.\n\n| seed | Dosimeter | seconds | Opacus | seconds |\n|---|---|---|---|---|\n",
    );
    let mut accuracies = [Vec::new(), Vec::new()];
    for seed in ["0", "1", "2"] {
        let found =
            [bench.ours(&["adult-accuracy", seed], 1), bench.peer(&["adult", seed, &folder])];
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
fn many(bench: &Training, cores: usize, tables: &mut String) {
    let found = bench.ours(&["adult-many", "100", "1000"], cores);
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

fn memory(bench: &Training, bars: &mut Vec<Bar>, tables: &mut String) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let found = bench.ours(&["wide-resnet", "4096"], cores);
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
    let promise = "WideResNet-16-4, batch 4096 in micro-batches: below 8000 MB";
    bars.push(Bar::megabytes_below(promise, 8000.0, number("peak_mb")));
}

/// The interpreter of a virtual environment with PyTorch and Opacus.
pub(super) fn environment() -> Result<PathBuf> {
    let folder = root().join("target/bench/training-venv");
    let python = folder.join("bin/python");
    if !python.exists() {
        let mut create = Command::new("python3");
        create.args(["-m", "venv"]).arg(&folder);
        if !watch(create)?.success {
            bail!("`python3 -m venv` failed");
        }
    }
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(PEERS);
    if !watch(install)?.success {
        eprintln!("PyTorch and Opacus cannot be installed; their rows stay empty");
    }
    Ok(python)
}
