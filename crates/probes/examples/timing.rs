//! How long the default questions take, per lens and quantity: `cargo run --release -p probes --example
//! timing`.

#![allow(clippy::print_stdout)]

use accounting::{Questions, account};
use vocabulary::{LensName, Quantity, Run};

/// Milliseconds of processor time of this thread, as Linux counts them.
fn processor_ms() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0) * 1e-6
}

fn main() {
    let runs = [
        ("A", 1.0, 0.01, 1000),
        ("B", 0.8, 0.004, 5000),
        ("C", 2.0, 0.1, 1000),
        ("D", 1.1, 1.0 / 240.0, 14_400),
        ("E", 0.6, 0.05, 200),
        ("F", 10.0, 0.5, 2000),
        ("1e9", 1.0, 1e-4, 1_000_000_000),
        ("9e8", 30.0, 0.3, 900_000_000),
    ];
    let quantities = [
        Quantity::Epsilon,
        Quantity::Advantage,
        Quantity::BayesSecurity,
        Quantity::Mu,
        Quantity::Tpr,
    ];
    let only = std::env::args().nth(1);
    for (name, noise, rate, steps) in runs {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let run = Run::builder().phase(noise, rate, steps).build().expect("a valid run");
        let mut total = 0.0;
        for lens in LensName::ALL {
            let mut line = format!("{name:4} {:24}", lens.as_str());
            for quantity in quantities {
                let questions = Questions {
                    deltas: vec![1e-5],
                    lenses: vec![lens],
                    quantities: vec![quantity],
                    ..Questions::default()
                };
                let start = processor_ms();
                let mut answer = account(&run, &questions);
                // Linux counts in steps of some milliseconds.
                let mut times = 1.0;
                while processor_ms() - start < 30.0 {
                    answer = account(&run, &questions);
                    times += 1.0;
                }
                let took = (processor_ms() - start) / times;
                total += took;
                let claim = answer.ok().and_then(|account| account.claims.first().cloned());
                let Some(claim) = claim else { continue };
                let width = claim.interval.relative_width();
                line += &format!(
                    "  {}: {took:.2} ms ({:.8}, {width:.0e})",
                    quantity.as_str(),
                    claim.interval.value
                );
            }
            println!("{line}");
        }
        println!("{name}: {total:.1} ms in all");
    }
}
