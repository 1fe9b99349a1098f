//! Project commands. `cargo xtask test` is the gate, `cargo xtask bench` measures Dosimeter
//! beside its peers, `cargo xtask generate` writes the names that Python and the page know,
//! `cargo xtask fuzz` runs the coverage-guided fuzzers.

mod bench;
mod browser;
mod fuzz;
mod gate;
mod generate;
mod mutate;
mod package;
mod poppler;
mod process;
mod prove;
mod python;

use anyhow::{Result, bail};
use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask test                   format, lints, walls, build, tests, doctests
cargo xtask test --python          the Python package alone, from what is built
cargo xtask test --bridges         the Python package beside PyTorch, Opacus, JAX and Ray
cargo xtask bench                  measure beside the peers and write docs/benchmarks.md
cargo xtask bench audit            the part about audits alone
cargo xtask bench recorder [BATCH] a recorder's cost on a step in PyTorch (downloads it)
cargo xtask bench training         training beside PyTorch and Opacus (downloads them)
cargo xtask generate               names for Python and the page, from the vocabulary
cargo xtask prove --runs N [--seed S] [--part K/N]
                                   prove the ends of random runs in ball arithmetic, on all cores;
                                   a part that was broken off goes on; --table writes docs/accuracy.md
cargo xtask mutate [WORD …]         break what the contract suites promise, see them fail
cargo xtask package [PART …]        binary, wheel, sdist, Debian package in target/package/out
cargo xtask fuzz [--seconds N] [TARGET …]
                                   coverage-guided fuzzing (default 60 s per target)";

/// Writes what is generated.
fn generate() -> Result<ExitCode> {
    for (path, text) in generate::files() {
        std::fs::write(process::root().join(path), text)?;
        println!("{path}");
    }
    Ok(ExitCode::SUCCESS)
}

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("--help", &[][..]),
    };
    match command {
        "test" if rest == ["--python"] => python::alone(),
        "test" if rest == ["--bridges"] => python::bridges(),
        "test" => gate::run(),
        "bench" => bench::run(rest),
        "fuzz" => fuzz::run(rest),
        "generate" => generate(),
        "prove" => prove::run(rest),
        "package" => package::run(rest),
        "mutate" => mutate::run(rest),
        "--help" | "-h" | "help" => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        other => bail!("unknown command `{other}`\n{USAGE}"),
    }
}
