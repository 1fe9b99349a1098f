//! Random runs over the domain, and random questions in random company.

use accounting::Questions;
use vocabulary::{
    Adjacency, Drawing, FurtherRelease, LensName, Matrix, Permutation, Quantity, Run, RunBuilder,
    Sampling,
};

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

impl Draw {
    /// The question without its company.
    pub fn alone(&self) -> Questions {
        let all = &self.questions;
        let last = |list: &[f64]| list.last().copied().into_iter().collect();
        let mut alone = Questions {
            lenses: all.lenses.clone(),
            quantities: vec![self.quantity],
            time_limit: all.time_limit,
            ..Questions::default()
        };
        match self.quantity {
            Quantity::Epsilon | Quantity::Mu => alone.deltas = last(&all.deltas),
            Quantity::Delta => alone.epsilons = last(&all.epsilons),
            Quantity::Tpr => alone.fprs = last(&all.fprs),
            Quantity::Reconstruction => alone.priors = last(&all.priors),
            Quantity::AttackAccuracy => alone.attack_priors = last(&all.attack_priors),
            _ => {}
        }
        alone
    }
}

fn rate(source: &mut Source) -> f64 {
    match source.below(20) {
        0 => 1.0 - source.spread(1e-8, 1e-2),
        1 => source.spread(0.1, 1.0),
        _ => source.spread(1e-7, 1.0),
    }
}

/// Whole numbers, log-uniform.
fn whole(source: &mut Source, low: u64, high: u64) -> u64 {
    (source.spread(low as f64, high as f64 + 1.0) as u64).clamp(low, high)
}

const NOISE: (f64, f64) = (0.2, 100.0);

/// Phases of coins: noise multiplier 0.2 to 100, sample rate 1e-7 to 1, steps 1 to 1e9 in all.
fn phases(source: &mut Source, mut builder: RunBuilder, count: u64) -> RunBuilder {
    for index in 0..count {
        let steps = whole(source, 1, 1_000_000_000 / count);
        let q = if index > 0 && source.chance(0.1) { 1.0 } else { rate(source) };
        builder = builder.phase(source.spread(NOISE.0, NOISE.1), q, steps);
    }
    builder
}

/// A run that the lens `composition` covers, and what it is called.
fn composition(source: &mut Source, group: u32) -> (&'static str, RunBuilder) {
    let builder = Run::builder().group_size(group);
    let adjacency = |source: &mut Source| {
        source.choose(&[Adjacency::AddRemove, Adjacency::Substitute, Adjacency::ZeroOut])
    };
    let poisson = if source.chance(0.2) { Adjacency::Substitute } else { Adjacency::AddRemove };
    let several = |source: &mut Source| source.choose(&[1, 1, 1, 1, 2, 3]);
    let noise = source.spread(NOISE.0, NOISE.1);
    match source.below(20) {
        0 => {
            let steps = whole(source, 1, 1_000_000_000);
            let full = builder.adjacency(poisson).sampling(Sampling::Full);
            ("full batches", full.phase(noise, 1.0, steps))
        }
        1 => {
            let uneven = source.chance(0.3);
            let batches = whole(source, 1, 100_000) as f64;
            let q = if uneven { rate(source).max(1e-6) } else { 1.0 / batches };
            let kept = source.chance(0.3);
            let permutation = if kept { Permutation::Kept } else { Permutation::Fresh };
            let adjacency = source.choose(&[Adjacency::Substitute, Adjacency::ZeroOut]);
            let steps = whole(source, 1, 10_000_000);
            let drawing = Drawing { permutation, ..Drawing::default() };
            let shuffled = builder.adjacency(adjacency).sampling(Sampling::Shuffle);
            ("shuffled", shuffled.drawing(drawing).phase(noise, q, steps))
        }
        2 | 3 => {
            let records = whole(source, 1000, 10_000_000);
            let mut fixed = builder.adjacency(adjacency(source)).dataset_size(records);
            let replacement = source.chance(0.3);
            fixed = fixed.drawing(Drawing { replacement, ..Drawing::default() });
            for _ in 0..several(source) {
                let batch = whole(source, 1, records);
                let steps = whole(source, 1, 100_000_000);
                let noise = source.spread(0.4, NOISE.1);
                fixed = fixed.phase(noise, batch as f64 / records as f64, steps);
            }
            ("fixed size", fixed.sampling(Sampling::FixedSize))
        }
        4 => {
            let batches = whole(source, 1, 10_000);
            let steps = whole(source, 1, 300_000);
            let thrown = builder.adjacency(adjacency(source)).sampling(Sampling::BallsAndBins);
            let noise = source.spread(0.4, 20.0);
            ("balls and bins", thrown.phase(noise, 1.0 / batches as f64, steps))
        }
        5 => {
            let records = whole(source, 1000, 1_000_000);
            let q = source.spread(10.0 / records as f64, 0.9);
            let most = (records as f64 * q * source.spread(0.7, 1.6)).ceil() as u64;
            let drawing = Drawing { max_batch_size: Some(most.max(1)), ..Drawing::default() };
            let cut = builder.adjacency(adjacency(source)).dataset_size(records).drawing(drawing);
            let cut = cut.sampling(Sampling::TruncatedPoisson);
            ("truncated", cut.phase(source.spread(0.4, NOISE.1), q, whole(source, 1, 10_000_000)))
        }
        6 => {
            let groups = whole(source, 1, 1000);
            let drawing = Drawing { cycle_length: Some(groups), ..Drawing::default() };
            let turns = builder.adjacency(poisson).sampling(Sampling::CyclicPoisson);
            let count = several(source);
            ("cyclic", phases(source, turns.drawing(drawing), count))
        }
        7 => {
            let releases: Vec<FurtherRelease> = (0..1 + source.below(3))
                .map(|_| FurtherRelease {
                    noise: source.spread(1.0, 50.0),
                    sensitivity: source.spread(0.1, 1.0),
                })
                .collect();
            let (q, steps) = (rate(source), whole(source, 1, 1_000_000_000));
            let noise = source.spread(0.5, NOISE.1);
            let run = builder.adjacency(poisson).phase(noise, q, steps);
            ("several releases", run.releases(releases))
        }
        8 => {
            let (q, steps) = (rate(source), whole(source, 1, 100_000_000));
            let most = steps + source.below(9 * steps + 1);
            let run = builder.adjacency(poisson).phase(noise, q, steps).stopped_on_output(most);
            ("stopped", run)
        }
        9 => {
            let bands = whole(source, 1, 30) as usize;
            let mut toeplitz = vec![1.0];
            while toeplitz.len() < bands {
                let last = toeplitz[toeplitz.len() - 1];
                toeplitz.push(last * source.uniform());
            }
            let matrix = Matrix {
                toeplitz,
                uses: Some(whole(source, 1, 100)),
                separation: Some(whole(source, 1, 100)),
                ..Matrix::default()
            };
            let run = builder.adjacency(poisson).sampling(Sampling::Full).matrix(matrix);
            ("correlated", run.phase(noise, 1.0, whole(source, 1, 5000)))
        }
        _ => {
            let count = several(source);
            ("Poisson", phases(source, builder.adjacency(poisson), count))
        }
    }
}

/// One run over the domain, and what is asked: noise multiplier 0.2 to 100, sample rate 1e-7 to 1, steps 1 to
/// 1e9, delta 1e-100 to 0.5.
pub fn draw(source: &mut Source) -> Draw {
    let lens = match source.below(10) {
        0..=6 => LensName::Composition,
        7 => LensName::LastIterate,
        8 => LensName::LastIterateMax,
        _ => LensName::FullBatch,
    };
    let group = if source.chance(0.2) { 2 + source.below(9) as u32 } else { 1 };
    let (name, builder) = if lens == LensName::Composition {
        composition(source, group)
    } else {
        let both = lens == LensName::FullBatch && source.chance(0.2);
        let adjacency = if both { Adjacency::Substitute } else { Adjacency::AddRemove };
        let count = source.choose(&[1, 1, 1, 1, 2, 3]);
        (
            lens.as_str(),
            phases(source, Run::builder().group_size(group).adjacency(adjacency), count),
        )
    };
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
        name,
        if run.phases().len() > 1 { ", phases" } else { "" },
        if group > 1 { ", group" } else { "" },
        match run.adjacency() {
            Adjacency::AddRemove => "",
            Adjacency::Substitute => ", substitution",
            Adjacency::ZeroOut => ", zero-out",
        }
    );
    Draw { kind, run, lens, quantity, questions }
}
