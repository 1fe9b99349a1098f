//! What a DP-SGD training leaks, and which noise would have met a target.
//!
//! `cargo run --release -p dosimeter-accounting --example what_to_sign`
#![allow(clippy::print_stdout)]

use accounting::vocabulary::{LensName, Run};
use accounting::{Questions, Solution, Target, Unknown, account, calibrate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // 50,000 records in batches of 512, 60 epochs, noise multiplier 1.1.
    let rate = 512.0 / 50_000.0_f64;
    let steps = (60.0 / rate).ceil() as u64;
    let run = Run::builder().phase(1.1, rate, steps).build()?;
    let delta = 1e-5;

    let account = account(&run, &Questions { deltas: vec![delta], ..Questions::default() })?;
    if let Some(sign) = &account.sign {
        println!("{}\n", sign.statement);
    }
    for claim in &account.claims {
        let source = claim.source.to_string();
        println!("{source:<22} {:<14} {}", claim.quantity.as_str(), claim.shown());
    }

    let target = Target::Epsilon { epsilon: 2.0, delta };
    let found = calibrate(&run, Unknown::NoiseMultiplier, &target, LensName::Composition, &[])?;
    if let Solution::NoiseMultiplier(noise) = found.solution {
        println!("\nepsilon 2 takes a noise multiplier of {noise:.4}");
        println!("then epsilon is certified to be {}", found.achieved.shown());
        assert!(found.achieved.interval.upper <= 2.0);
    }
    Ok(())
}
