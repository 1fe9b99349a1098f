//! Scores of an attack in; a bound on epsilon and a verdict against a claim out. The scores here are
//! those of a training with a third of the noise that it states.
//!
//! `cargo run --release -p dosimeter-audit --example is_it_refuted`
#![allow(clippy::print_stdout)]

use accounting::{Questions, account};
use audit::vocabulary::{LensName, Quantity, Run, Status};
use audit::{Design, Plan, Scores, analyse};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // What is claimed: one full-batch step with noise multiplier 1.
    let (delta, run) = (1e-3, Run::builder().phase(1.0, 1.0, 1).build()?);
    let questions = Questions {
        deltas: vec![delta],
        lenses: vec![LensName::Composition],
        quantities: vec![Quantity::Epsilon],
        ..Questions::default()
    };
    let claim = account(&run, &questions)?.claims.remove(0);
    println!("claimed: epsilon {} at delta {delta}", claim.shown());

    // 1,000 trainings with the canary and 1,000 without; quantiles stand for random draws.
    let gaussian = |place: usize| numerics::special::inverse_normal_cdf((place as f64 + 0.5) / 1e3);
    let nonmembers: Vec<f64> = (0..1_000).map(gaussian).collect();
    let members: Vec<f64> = nonmembers.iter().map(|score| score + 3.0).collect();
    let scores = Scores::new(Design::Runs, members, nonmembers)?;

    let plan = Plan { deltas: vec![delta], ..Plan::new(Design::Runs) };
    let audit = analyse(&scores, &plan, Some(&claim))?;
    let bound = audit.primary().ok_or("no bound")?;
    println!("measured: epsilon {}, for {}", bound.claim.shown(), bound.valid_for);
    let verdict = audit.verdict.ok_or("no verdict")?;
    println!("{}", verdict.reason);
    assert_eq!(verdict.status, Status::Contradiction);
    Ok(())
}
