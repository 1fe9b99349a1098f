//! Random runs over the domain, and random questions in random company.

use accounting::Questions;
use vocabulary::{Adjacency, LensName, Quantity, Run, Sampling};

/// SplitMix64: the same numbers for the same seed on every machine.
pub struct Source(u64);

impl Source {
    /// The source of one run of a survey.
    pub fn new(seed: u64, index: u64) -> Self {
        let mut source = Self(
            seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index.wrapping_mul(0xd1b5_4a32_d192_ed03),
        );
        source.word();
        source.word();
        source
    }

    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn uniform(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(n)) >> 64) as u64
    }

    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// Log-uniform in [low, high].
    fn spread(&mut self, low: f64, high: f64) -> f64 {
        (low.ln() + self.uniform() * (high / low).ln()).exp().clamp(low, high)
    }

    fn choose<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// A drawn run, what is asked about it, and the company in which it is asked.
pub struct Draw {
    pub kind: String,
    pub run: Run,
    pub lens: LensName,
    pub quantity: Quantity,
    pub questions: Questions,
}

fn rate(source: &mut Source) -> f64 {
    match source.below(20) {
        0 => 1.0 - source.spread(1e-8, 1e-2),
        1 => source.spread(0.1, 1.0),
        _ => source.spread(1e-7, 1.0),
    }
}

/// Noise multiplier 0.2 to 100, sample rate 1e-7 to 1, steps 1 to 1e9, delta 1e-100 to 0.5.
pub fn draw(source: &mut Source) -> Draw {
    let lens = match source.below(10) {
        0..=6 => LensName::Composition,
        7 => LensName::LastIterate,
        8 => LensName::LastIterateMax,
        _ => LensName::FullBatch,
    };
    let substitutes = matches!(lens, LensName::Composition | LensName::FullBatch);
    let adjacency = if substitutes && source.chance(0.2) {
        Adjacency::Substitute
    } else {
        Adjacency::AddRemove
    };
    let group = if source.chance(0.2) { 2 + source.below(9) as u32 } else { 1 };
    let full = source.chance(0.05);
    let phases = if full { 1 } else { source.choose(&[1, 1, 1, 1, 2, 3]) };
    let mut builder = Run::builder().adjacency(adjacency).group_size(group);
    for index in 0..phases {
        let steps = source.spread(1.0, 1e9 / phases as f64).floor() as u64;
        let q = if full || (index > 0 && source.chance(0.1)) { 1.0 } else { rate(source) };
        builder = builder.phase(source.spread(0.2, 100.0), q, steps.max(1));
    }
    if full {
        builder = builder.sampling(Sampling::Full);
    }
    let run = builder.build().unwrap_or_else(|error| panic!("a drawn run is valid: {error}"));
    let quantity = source.choose(&[
        Quantity::Epsilon,
        Quantity::Epsilon,
        Quantity::Epsilon,
        Quantity::Delta,
        Quantity::Delta,
        Quantity::Advantage,
        Quantity::BayesSecurity,
        Quantity::Tpr,
        Quantity::Mu,
        Quantity::Reconstruction,
        Quantity::AttackAccuracy,
    ]);
    let mut questions =
        Questions { lenses: vec![lens], directions: source.chance(0.3), ..Questions::default() };
    let delta = |source: &mut Source| {
        let least = if source.chance(0.5) { 1e-15 } else { 1e-100 };
        source.spread(least, 0.5)
    };
    let many = |source: &mut Source| source.below(3);
    let (deltas, epsilons, fprs) = (many(source), many(source), source.below(2));
    questions.deltas = (0..deltas).map(|_| delta(source)).collect();
    questions.epsilons = (0..epsilons).map(|_| source.spread(1e-4, 50.0)).collect();
    questions.fprs = (0..fprs).map(|_| source.spread(1e-6, 0.9)).collect();
    match quantity {
        Quantity::AttackAccuracy => questions.attack_priors.push(source.spread(1e-6, 0.5)),
        Quantity::Epsilon | Quantity::Mu => questions.deltas.push(delta(source)),
        Quantity::Delta => questions.epsilons.push(source.spread(1e-4, 50.0)),
        Quantity::Tpr => questions.fprs.push(source.spread(1e-6, 0.9)),
        Quantity::Reconstruction => questions.priors.push(source.spread(1e-6, 0.5)),
        _ => {}
    }
    // Company: what is asked for beside it. Mu and the curves cost most, so not always all.
    if source.chance(0.7) {
        questions.quantities =
            vec![quantity, Quantity::Advantage, Quantity::Epsilon, Quantity::Delta];
    }
    let kind = format!(
        "{}{}{}{}",
        lens,
        if phases > 1 { ", phases" } else { "" },
        if group > 1 { ", group" } else { "" },
        if adjacency == Adjacency::Substitute { ", substitution" } else { "" }
    );
    Draw { kind, run, lens, quantity, questions }
}
