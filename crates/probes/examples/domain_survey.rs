//! How much of the domain composition answers, and how narrowly: random runs, log-uniform over
//! noise 0.2 to 100, rate 1e-7 to 1, steps 1 to 1e9; delta log-uniform in [1e-15, 0.5] for even
//! runs, in [1e-100, 0.5] for odd ones. The table of `docs/accuracy.md`:
//! `cargo run --release -p probes --example domain_survey -- 500 1`. With six more numbers, those
//! are the ends of noise, rate and steps: `-- 500 1 0.2 0.7 1e-7 1e-4 1 30` is the hardest corner.
#![allow(clippy::print_stdout)]

use accounting::directions;
use accounting::pairs::Composed;
use std::time::Instant;
use vocabulary::{Direction, Run};

/// SplitMix64: the same runs on every machine.
struct Uniform(u64);

impl Uniform {
    fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn log(&mut self, low: f64, high: f64) -> f64 {
        (low.ln() + self.draw() * (high.ln() - low.ln())).exp()
    }
}

fn main() {
    let numbers: Vec<f64> =
        std::env::args().skip(1).map(|word| word.parse().expect("a number")).collect();
    let number = |index: usize, default: f64| numbers.get(index).copied().unwrap_or(default);
    let runs = number(0, 500.0) as u64;
    let mut random = Uniform(number(1, 1.0) as u64);
    // For delta at least 1e-15 and below: answered within 1e-9, 1e-6, wider, refused.
    let mut counts = [[0u64; 4]; 2];
    let mut times = Vec::new();
    for index in 0..runs {
        let sigma = random.log(number(2, 0.2), number(3, 100.0));
        let rate = random.log(number(4, 1e-7), number(5, 1.0));
        let steps = random.log(number(6, 1.0), number(7, 1e9)) as u64;
        let delta = random.log(if index % 2 == 0 { 1e-15 } else { 1e-100 }, 0.5);
        let run = Run::builder().phase(sigma, rate, steps.max(1)).build().expect("in the domain");
        let start = Instant::now();
        let answer = Composed::for_run(&run)
            .and_then(|pair| directions::epsilon(&pair, delta, Direction::Both));
        times.push(start.elapsed().as_secs_f64());
        let place = match &answer {
            Ok(interval) if interval.relative_width() <= 1e-9 => 0,
            Ok(interval) if interval.relative_width() <= 1e-6 => 1,
            Ok(_) => 2,
            Err(_) => 3,
        };
        counts[usize::from(delta < 1e-15)][place] += 1;
        if place >= 2 {
            println!("sigma {sigma} q {rate} T {steps} delta {delta:e}: {answer:?}");
        }
    }
    for (name, row) in ["delta >= 1e-15", "delta <  1e-15"].iter().zip(counts) {
        println!(
            "{name}: {} runs, width <= 1e-9: {}, <= 1e-6: {}, wider: {}, refused: {}",
            row.iter().sum::<u64>(),
            row[0],
            row[1],
            row[2],
            row[3]
        );
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "seconds: median {:.2e}, 90 % {:.2e}, 99 % {:.2e}, slowest {:.2e}",
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    );
}
