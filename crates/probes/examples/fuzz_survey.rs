//! Runs the numerics target on many pseudo-random inputs without stopping at the first broken
//! law: `fuzz_survey [CASES] [SEED]` prints what broke and what was slow. `fuzz_survey FILE` times one
//! input, such as one that the fuzzer kept.
#![allow(clippy::print_stdout)]

use fuzzing::Pseudorandom;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

fn main() {
    if let Some(input) = std::env::args().nth(1).and_then(|path| std::fs::read(path).ok()) {
        println!("{}", fuzzing::numerics_times(&input));
        return;
    }
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u64>().expect("a number"));
    let cases = numbers.next().unwrap_or(1000);
    let mut words = Pseudorandom::new(numbers.next().unwrap_or(1));
    let (mut broken, mut answered, mut times) = (0, 0, Vec::new());
    for case in 0..cases {
        let input = words.bytes(96);
        let start = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| fuzzing::numerics(&input))) {
            Ok(count) => answered += count,
            Err(_) => broken += 1,
        }
        let seconds = start.elapsed().as_secs_f64();
        if seconds > 1.0 {
            println!("case {case}: {}", fuzzing::numerics_times(&input));
        }
        times.push((seconds, case));
    }
    times.sort_by(|one, other| other.0.total_cmp(&one.0));
    println!("{cases} cases, {answered} answers, {broken} broken");
    for (seconds, case) in times.iter().take(5) {
        println!("case {case}: {seconds:.3} s");
    }
}
