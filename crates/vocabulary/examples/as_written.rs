//! A run as a person writes it: what is filled in, and what is said where it is wrong.
//!
//! `cargo run --release -p dosimeter-vocabulary --example as_written`
#![allow(clippy::print_stdout)]

use vocabulary::{Problem, RunError, RunFile};

const WRITTEN: &str = "
[run]
dataset_size = 50000
batch_size = 512
noise_multiplier = 1.1
epochs = 60
";

fn main() -> Result<(), RunError> {
    let resolved = RunFile::from_toml_str(WRITTEN)?.run.resolve()?;
    println!(
        "{} steps at sample rate {}",
        resolved.run.steps(),
        resolved.run.phases()[0].sample_rate
    );
    for note in &resolved.notes {
        println!("  {note}");
    }

    // A mistake is a sentence for a person, and a field for a program.
    let mistaken = WRITTEN.replace("noise_multiplier = 1.1", "noise_multiplier = -1.1");
    let problem = RunFile::from_toml_str(&mistaken)?.run.resolve().map_err(Problem::from);
    let problem = problem.expect_err("no noise is below zero");
    println!("{problem}");
    assert_eq!(problem.field().map(|wrong| wrong.field.as_str()), Some("noise_multiplier"));
    Ok(())
}
