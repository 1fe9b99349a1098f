//! Any run, any delta, any epsilon, in the domain and beyond it: an answer or a refusal, never
//! a panic or a NaN, ends in order, and the quantities agree with one another.
//!
//! The laws need no tolerance: certified ends enclose the truth, so a law about the truth
//! becomes an inequality between ends that holds exactly (up to the rounding of the sums
//! formed here, which `SLACK` covers).

use crate::Bytes;
use accounting::pairs::{BinomialGaussian, Composed};
use accounting::{AccountingError, Order, Pair};
use vocabulary::{Adjacency, Interval, Run, Sampling};

/// Rounding of the few operations done in this file, relative to 1.
const SLACK: f64 = 1e-14;

/// One question about one run.
struct Case {
    run: Run,
    delta: f64,
    epsilon: f64,
    false_positive_rate: f64,
}

impl Case {
    /// `None` where the bytes describe no run.
    fn read(data: &[u8]) -> Option<Self> {
        let mut bytes = Bytes::new(data);
        Some(Self {
            run: run(&mut bytes)?,
            delta: bytes.parameter(1e-100, 0.5),
            epsilon: signed(&mut bytes, 1e-6, 1e3),
            false_positive_rate: bytes.parameter(1e-12, 1.0),
        })
    }
}

/// The body of the `numerics` target. Returns how many quantities were answered.
pub fn numerics(data: &[u8]) -> usize {
    let Some(case) = Case::read(data) else { return 0 };
    let pairs: [Option<Box<dyn Pair>>; 2] = [
        Composed::for_run(&case.run).ok().map(|pair| Box::new(pair) as Box<dyn Pair>),
        BinomialGaussian::for_run(&case.run).ok().map(|pair| Box::new(pair) as Box<dyn Pair>),
    ];
    pairs.iter().flatten().map(|pair| laws(pair.as_ref(), &case)).sum()
}

fn run(bytes: &mut Bytes) -> Option<Run> {
    let choice = bytes.byte();
    let sampling = if choice & 1 == 0 { Sampling::Poisson } else { Sampling::Full };
    let adjacency = if choice & 6 == 6 { Adjacency::Substitute } else { Adjacency::AddRemove };
    let phases = if choice & 24 == 24 { 2 } else { 1 };
    let mut builder = Run::builder().sampling(sampling).adjacency(adjacency);
    for _ in 0..phases {
        let noise_multiplier = bytes.parameter(0.2, 100.0);
        let sample_rate = bytes.parameter(1e-7, 1.0);
        let sample_rate = if sampling == Sampling::Full { 1.0 } else { sample_rate };
        let steps = bytes.logarithmic(1.0, 1e9) as u64;
        builder = builder.phase(noise_multiplier, sample_rate, steps);
    }
    if choice & 224 == 224 {
        builder = builder.group_size(u32::from(bytes.byte()));
    }
    builder.build().ok()
}

fn signed(bytes: &mut Bytes, low: f64, high: f64) -> f64 {
    let negative = bytes.byte() & 1 == 1;
    let size = bytes.parameter(low, high);
    if negative { -size } else { size }
}

/// Holds the laws for one pair in both directions; returns how many quantities were answered.
fn laws(pair: &dyn Pair, case: &Case) -> usize {
    let Case { run, delta, epsilon, false_positive_rate: fpr } = case;
    [Order::Remove, Order::Add]
        .into_iter()
        .map(|way| {
            let at = format!("{way:?}, {run:?}, delta {delta:e}, epsilon {epsilon:e}, fpr {fpr:e}");
            one_way(pair, way, *delta, *epsilon, *fpr, &at)
        })
        .sum()
}

fn one_way(pair: &dyn Pair, way: Order, delta: f64, epsilon: f64, fpr: f64, at: &str) -> usize {
    let mut answered = 0;
    let mut keep = |answer: Result<Interval, AccountingError>, low: f64, high: f64, name: &str| {
        let interval = answer.ok()?;
        in_order(interval, low, high, &format!("{name} ({at})"));
        answered += 1;
        Some(interval)
    };

    let profile = keep(pair.delta(epsilon, way), 0.0, 1.0, "delta");
    let complement = keep(pair.one_minus_delta(epsilon, way), 0.0, 1.0, "1 - delta");
    if let (Some(profile), Some(complement)) = (profile, complement) {
        assert!(
            profile.lower + complement.lower <= 1.0 + SLACK
                && profile.upper + complement.upper >= 1.0 - SLACK,
            "delta {profile:?} and its complement {complement:?} do not add up ({at})"
        );
    }

    let bound = keep(pair.epsilon(delta, way), 0.0, f64::INFINITY, "epsilon");
    if let Some(bound) = bound.filter(|_| delta > 0.0 && delta < 1.0) {
        // delta(epsilon) falls: at the upper end it is at most the target, at the lower end
        // at least.
        if bound.upper.is_finite()
            && let Some(reached) = keep(pair.delta(bound.upper, way), 0.0, 1.0, "delta at upper")
        {
            assert!(
                reached.lower <= delta,
                "epsilon {bound:?} is below the truth: {reached:?} ({at})"
            );
        }
        if bound.lower > 0.0
            && let Some(reached) = keep(pair.delta(bound.lower, way), 0.0, 1.0, "delta at lower")
        {
            assert!(
                reached.upper >= delta,
                "epsilon {bound:?} is above the truth: {reached:?} ({at})"
            );
        }
    }

    let power = keep(pair.tpr(fpr, way), 0.0, 1.0, "tpr");
    let missed = keep(pair.fnr(fpr, way), 0.0, 1.0, "fnr");
    // What is not a rate may be refused or answered, but it obeys no law.
    if let Some(power) = power.filter(|_| (0.0..=1.0).contains(&fpr)) {
        assert!(power.upper >= fpr * (1.0 - SLACK), "tpr {power:?} is below a coin's ({at})");
        if let Some(profile) = profile {
            // e^epsilon may overflow where the rate is 0.
            let most = if fpr > 0.0 { epsilon.exp() * fpr } else { 0.0 } + profile.upper;
            assert!(
                power.lower <= most * (1.0 + SLACK),
                "tpr {power:?} is above e^epsilon fpr + delta = {most:e} ({at})"
            );
        }
        if let Some(missed) = missed {
            assert!(
                power.lower + missed.lower <= 1.0 + SLACK
                    && power.upper + missed.upper >= 1.0 - SLACK,
                "tpr {power:?} and fnr {missed:?} do not add up ({at})"
            );
        }
    }
    answered
}

fn in_order(interval: Interval, low: f64, high: f64, what: &str) {
    let Interval { lower, value, upper } = interval;
    assert!(
        low <= lower && lower <= value && value <= upper && upper <= high,
        "{what}: {interval:?} is not in order within [{low}, {high}]"
    );
}
