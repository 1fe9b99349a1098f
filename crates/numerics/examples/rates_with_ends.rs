//! How often does an attack succeed? Three successes in a thousand trials, with ends that hold at 95 %
//! confidence, and what a Gaussian approximation would have said.
//!
//! `cargo run --release -p dosimeter-numerics --example rates_with_ends`
#![allow(clippy::print_stdout)]

use numerics::beta::{clopper_pearson_lower, clopper_pearson_upper};
use numerics::special::inverse_normal_cdf;

fn main() {
    let (successes, trials, confidence) = (3_u64, 1_000_u64, 0.95);
    // Half of the error for each end.
    let level = (1.0 - confidence) / 2.0;
    let lower = clopper_pearson_lower(successes, trials, level);
    let upper = clopper_pearson_upper(successes, trials, level);
    println!("exact:    from {lower:.6} to {upper:.6}");

    let rate = successes as f64 / trials as f64;
    let width = inverse_normal_cdf(1.0 - level) * (rate * (1.0 - rate) / trials as f64).sqrt();
    println!("Gaussian: from {:.6} to {:.6}", rate - width, rate + width);
    assert!(lower > 0.0 && rate - width < 0.0, "the approximation allows a rate below zero");
}
