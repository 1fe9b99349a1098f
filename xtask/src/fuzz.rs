//! `cargo xtask fuzz`: builds the targets of `fuzz/` with libFuzzer and coverage counters and
//! runs each for a while. A stable toolchain suffices (no sanitizer); what is needed beside
//! Rust is a C++ compiler for libFuzzer itself. `cargo fuzz run -s none TARGET` does the same.

use crate::process::{root, watch};
use anyhow::{Context, Result, bail};
use std::process::{Command, ExitCode};

/// Every target, with the longest input worth trying.
const TARGETS: &[(&str, u32)] = &[
    ("numerics", 128),
    ("run_description", 1024),
    ("score_file", 2048),
    ("any_scores", 512),
    ("model_file", 4096),
];

/// Edge counters, a table of program counters and traced comparisons: what libFuzzer steers by.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1 \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let mut seconds = 60;
    let mut chosen = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seconds" => {
                let value = words.next().context("--seconds needs a number")?;
                seconds = value.parse().with_context(|| format!("`{value}` is not a number"))?;
            }
            name => match TARGETS.iter().find(|(target, _)| *target == name) {
                Some(target) => chosen.push(*target),
                None => bail!("unknown target `{name}`; there are {:?}", names()),
            },
        }
    }
    if chosen.is_empty() {
        chosen.extend_from_slice(TARGETS);
    }

    let host = host()?;
    let built = root().join("target/fuzz");
    let mut build = crate::process::cargo(&["build", "--release", "--target", &host]);
    build
        .arg("--manifest-path")
        .arg(root().join("fuzz/Cargo.toml"))
        .env("CARGO_TARGET_DIR", &built)
        .env("RUSTFLAGS", COVERAGE);
    if !watch(build)?.success {
        bail!("the fuzz targets do not build");
    }

    let mut broken = Vec::new();
    for (target, longest) in chosen {
        let corpus = root().join("fuzz/corpus").join(target);
        let artifacts = root().join("fuzz/artifacts").join(target);
        std::fs::create_dir_all(&corpus)?;
        std::fs::create_dir_all(&artifacts)?;
        let mut fuzzer = Command::new(built.join(&host).join("release").join(target));
        fuzzer
            .arg(&corpus)
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-max_len={longest}"))
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            // An input is a dozen questions, and instrumented code with debug assertions is several
            // times slower. Fifty megabytes are the promise; the fuzzer's tables come on top.
            .args(["-timeout=120", "-rss_limit_mb=1024", "-print_final_stats=1"]);
        let dictionary = root().join("fuzz").join(format!("{target}.dict"));
        if dictionary.exists() {
            fuzzer.arg(format!("-dict={}", dictionary.display()));
        }
        println!("\n== {target}: {seconds} s");
        let watched = watch(fuzzer)?;
        let executions = watched
            .lines
            .iter()
            .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))
            .map_or("?", str::trim);
        println!("== {target}: {executions} executions");
        if !watched.success {
            broken.push(target);
        }
    }
    if broken.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("broken: {}; the inputs lie in fuzz/artifacts", broken.join(", "));
    Ok(ExitCode::FAILURE)
}

fn names() -> Vec<&'static str> {
    TARGETS.iter().map(|(name, _)| *name).collect()
}

fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot start rustc")?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .context("rustc names no host")
}
