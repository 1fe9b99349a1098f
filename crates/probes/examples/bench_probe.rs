//! One measurement in one process, for `cargo xtask bench`: `bench_probe WHAT [NUMBERS]`.
//!
//! Prints one JSON object: the answer with its ends, the median CPU seconds of a call, and the
//! peak memory of this process. Everything runs on one thread.
#![allow(clippy::print_stdout)]

use accounting::bayes_security::{certified_lower_bound, closed_form_mu, security_of_mu};
use accounting::pairs::{BinomialGaussian, Composed};
use accounting::{
    AccountingError, Order, Pair, Solution, Target, Unknown, calibrate, directions, schemes,
};
use std::fs::read_to_string;
use std::hint::black_box;
use std::time::Instant;
use vocabulary::{Adjacency, Direction, Drawing, Interval, LensName, Run, Sampling};

type Answer = Result<Interval, AccountingError>;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<f64> =
        arguments.iter().skip(1).map(|word| word.parse().expect("a number")).collect();
    let what = arguments.first().map_or("", String::as_str);
    match (what, numbers.as_slice()) {
        ("epsilon", &[sigma, rate, steps, delta]) => {
            report(|| epsilon(black_box(sigma), rate, steps, delta));
        }
        ("calibrate", &[target, delta, rate, steps]) => {
            report(|| noise(black_box(target), delta, rate, steps));
        }
        ("heuristic", &[sigma, rate, steps, delta]) => {
            report(|| heuristic(black_box(sigma), rate, steps, delta));
        }
        ("sweep", &[steps, delta]) => report(|| sweep(black_box(steps), delta)),
        ("tpr", &[sigma, rate, steps, fpr]) => {
            report(|| power(black_box(sigma), rate, steps, fpr));
        }
        ("security", &[sigma, rate, steps, replace]) => {
            report(|| security(black_box(sigma), rate, steps, replace));
        }
        ("closed-form", &[sigma, rate, steps, replace]) => {
            report(|| closed_form(black_box(sigma), rate, steps, replace));
        }
        ("certified", &[sigma, rate, steps, replace]) => {
            report(|| certified(black_box(sigma), rate, steps, replace));
        }
        (scheme, &[sigma, records, batch, steps, delta, largest]) => {
            let run = drawn(scheme, sigma, [records, batch, steps, largest]);
            report(|| {
                directions::epsilon(&*schemes::pair(black_box(&run))?, delta, Direction::Both)
            });
        }
        _ => panic!("unknown measurement {arguments:?}"),
    }
}

fn run(sigma: f64, rate: f64, steps: f64) -> Run {
    Run::builder().phase(sigma, rate, steps as u64).build().expect("a checked run")
}

/// A run whose batches are drawn in another way; a largest batch of 0 is none.
fn drawn(scheme: &str, sigma: f64, [records, batch, steps, largest]: [f64; 4]) -> Run {
    let found = Sampling::ALL.iter().find(|(name, _)| *name == scheme);
    let (_, sampling) = found.expect("a way to draw batches");
    let adjacency = match sampling {
        Sampling::FixedSize => Adjacency::Substitute,
        _ => Adjacency::ZeroOut,
    };
    let max_batch_size = (largest > 0.0).then_some(largest as u64);
    let drawing = Drawing { max_batch_size, ..Drawing::default() };
    Run::builder()
        .phase(sigma, batch / records, steps as u64)
        .sampling(*sampling)
        .adjacency(adjacency)
        .drawing(drawing)
        .dataset_size(records as u64)
        .build()
        .expect("a checked run")
}

/// A Poisson run about adding or removing a record, or about replacing one if `replace` is not 0.
fn record(sigma: f64, rate: f64, steps: f64, replace: f64) -> Run {
    let adjacency = if replace == 0.0 { Adjacency::AddRemove } else { Adjacency::Substitute };
    let run = Run::builder().phase(sigma, rate, steps as u64).adjacency(adjacency);
    run.build().expect("a checked run")
}

/// Bayes security by composition, with certified ends.
fn security(sigma: f64, rate: f64, steps: f64, replace: f64) -> Answer {
    directions::bayes_security(&Composed::for_run(&record(sigma, rate, steps, replace))?)
}

/// Bayes security by the published closed form.
fn closed_form(sigma: f64, rate: f64, steps: f64, replace: f64) -> Answer {
    let mu = closed_form_mu(&record(sigma, rate, steps, replace))?;
    Ok(Interval::exact(security_of_mu(mu)))
}

/// Bayes security by the certified closed form.
fn certified(sigma: f64, rate: f64, steps: f64, replace: f64) -> Answer {
    Ok(Interval::exact(certified_lower_bound(&record(sigma, rate, steps, replace))?))
}

fn both(answer: impl Fn(Order) -> Answer) -> Answer {
    Ok(answer(Order::Remove)?.max(answer(Order::Add)?))
}

fn epsilon(sigma: f64, rate: f64, steps: f64, delta: f64) -> Answer {
    let pair = Composed::for_run(&run(sigma, rate, steps))?;
    both(|way| pair.epsilon(delta, way))
}

fn power(sigma: f64, rate: f64, steps: f64, fpr: f64) -> Answer {
    let pair = Composed::for_run(&run(sigma, rate, steps))?;
    both(|way| pair.tpr(fpr, way))
}

/// The last iterate's epsilon under the linear heuristic.
fn heuristic(sigma: f64, rate: f64, steps: f64, delta: f64) -> Answer {
    let pair = BinomialGaussian::for_run(&run(sigma, rate, steps))?;
    both(|way| pair.epsilon(delta, way))
}

/// The noise multiplier for an epsilon; the safe side is the solution itself.
fn noise(epsilon: f64, delta: f64, rate: f64, steps: f64) -> Answer {
    let target = Target::Epsilon { epsilon, delta };
    let unknown = Unknown::NoiseMultiplier;
    let answer = calibrate(&run(1.0, rate, steps), unknown, &target, LensName::Composition, &[])?;
    match answer.solution {
        Solution::NoiseMultiplier(sigma) => Ok(Interval::exact(sigma)),
        other => unreachable!("asked for noise, answered {other:?}"),
    }
}

/// The grid of the sweep: 20 noise multipliers from 0.6 to 5, 20 sample rates from 1e-3 to 0.1.
/// The answer is the largest epsilon, so that no cell can be optimised away.
fn sweep(steps: f64, delta: f64) -> Answer {
    let spread = |low: f64, high: f64, index: u32| low * (high / low).powf(f64::from(index) / 19.0);
    let mut largest = Interval::exact(0.0);
    for (i, j) in (0..20).flat_map(|i| (0..20).map(move |j| (i, j))) {
        largest = largest.max(epsilon(spread(0.6, 5.0, i), spread(1e-3, 0.1, j), steps, delta)?);
    }
    Ok(largest)
}

/// Times a call and prints the object.
fn report(call: impl Fn() -> Answer) {
    let answer = match call() {
        Ok(answer) => answer,
        Err(refusal) => {
            println!("{{\"refused\":{:?}}}", refusal.to_string());
            return;
        }
    };
    let (seconds, calls) = median_seconds(|| {
        let _ = black_box(call());
    });
    let Interval { lower, value, upper } = answer;
    println!(
        "{{\"value\":{value:?},\"lower\":{lower:?},\"upper\":{upper:?},\"cpu_s\":{seconds:e},\
         \"n\":{calls},\"peak_mb\":{:.1}}}",
        peak_megabytes()
    );
}

/// Median over batches of the CPU seconds of a call, and how many calls there were. The
/// kernel's counter moves in steps of a few milliseconds, so a batch lasts much longer.
fn median_seconds(call: impl Fn()) -> (f64, u32) {
    const BATCH_SECONDS: f64 = 0.08;
    let start = Instant::now();
    call();
    let once = start.elapsed().as_secs_f64().max(1e-9);
    let size = (BATCH_SECONDS / once).ceil().clamp(1.0, 1e6) as u32;
    let batches = if once > 1.0 { 3 } else { 7 };
    let mut seconds: Vec<f64> = (0..batches)
        .map(|_| {
            let start = Clock::now();
            (0..size).for_each(|_| call());
            start.elapsed_seconds() / f64::from(size)
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    (seconds[seconds.len() / 2], size * batches)
}

/// CPU time of this thread where the kernel tells it, wall time (never less) elsewhere.
struct Clock {
    wall: Instant,
    cpu: Option<u64>,
}

impl Clock {
    fn now() -> Self {
        Self { wall: Instant::now(), cpu: cpu_nanoseconds() }
    }

    fn elapsed_seconds(&self) -> f64 {
        match (self.cpu, cpu_nanoseconds()) {
            (Some(before), Some(after)) if after > before => (after - before) as f64 * 1e-9,
            _ => self.wall.elapsed().as_secs_f64(),
        }
    }
}

fn cpu_nanoseconds() -> Option<u64> {
    let text = read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// The most memory this process ever held, as the kernel counts it.
fn peak_megabytes() -> f64 {
    read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find(|line| line.starts_with("VmHWM:"))?.to_owned();
            line.split_whitespace().nth(1)?.parse::<f64>().ok()
        })
        .map_or(f64::NAN, |kilobytes| kilobytes / 1024.0)
}
