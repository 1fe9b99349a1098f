//! Mechanisms with a known epsilon, and seeded samples of their scores.
#![allow(dead_code)]

pub(crate) mod planned_faults;

use audit::{Design, Scores};

/// xoshiro256++ (Blackman and Vigna 2019), seeded through SplitMix64.
pub(crate) struct Rng([u64; 4]);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Self([next(), next(), next(), next()])
    }

    pub(crate) fn next(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in (0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Two independent standard normals (Marsaglia's polar method).
    pub(crate) fn normals(&mut self) -> (f64, f64) {
        loop {
            let (x, y) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let s = x * x + y * y;
            if s > 0.0 && s < 1.0 {
                let scale = (-2.0 * s.ln() / s).sqrt();
                return (x * scale, y * scale);
            }
        }
    }

    pub(crate) fn normal(&mut self) -> f64 {
        self.normals().0
    }

    pub(crate) fn bernoulli(&mut self, p: f64) -> bool {
        self.uniform() < p
    }
}

/// What a row's score is drawn from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mechanism {
    /// No leakage.
    Null,
    /// N(mu, 1) against N(0, 1).
    Gaussian { mu: f64 },
    /// Laplace noise: pure epsilon.
    Laplace { epsilon: f64 },
    /// One bit told truthfully with probability e^epsilon / (1 + e^epsilon).
    RandomisedResponse { epsilon: f64 },
    /// One subsampled Gaussian step: (1-q) N(0, s^2) + q N(1, s^2) against N(0, s^2).
    Subsampled { sample_rate: f64, noise_multiplier: f64 },
    /// The last iterate of linear losses: Bin(T, q) + N(0, T s^2) against N(0, T s^2).
    LastIterate { sample_rate: f64, noise_multiplier: f64, steps: u64 },
}

impl Mechanism {
    pub(crate) fn draw(&self, member: bool, rng: &mut Rng) -> f64 {
        match *self {
            Self::Null => rng.normal(),
            Self::Gaussian { mu } => rng.normal() + if member { mu } else { 0.0 },
            Self::Laplace { epsilon } => {
                let u = rng.uniform() - 0.5;
                let noise = -u.signum() * (1.0 - 2.0 * u.abs()).ln() / epsilon;
                noise + if member { 1.0 } else { 0.0 }
            }
            Self::RandomisedResponse { epsilon } => {
                let truthful = rng.bernoulli(1.0 / (1.0 + (-epsilon).exp()));
                f64::from(u8::from(truthful == member))
            }
            Self::Subsampled { sample_rate, noise_multiplier } => {
                let shift = member && rng.bernoulli(sample_rate);
                noise_multiplier * rng.normal() + f64::from(u8::from(shift))
            }
            Self::LastIterate { sample_rate, noise_multiplier, steps } => {
                let count = if member {
                    (0..steps).filter(|_| rng.bernoulli(sample_rate)).count()
                } else {
                    0
                };
                noise_multiplier * (steps as f64).sqrt() * rng.normal() + count as f64
            }
        }
    }

    /// `n` members and `n` non-members.
    pub(crate) fn scores(&self, n: usize, rng: &mut Rng) -> Scores {
        let members = (0..n).map(|_| self.draw(true, rng)).collect();
        let nonmembers = (0..n).map(|_| self.draw(false, rng)).collect();
        Scores::new(Design::Runs, members, nonmembers).unwrap()
    }

    /// `m` canaries of one run, each in by a fair coin; at least one on each side.
    pub(crate) fn canaries(&self, m: usize, rng: &mut Rng) -> Scores {
        loop {
            let (mut members, mut nonmembers) = (Vec::new(), Vec::new());
            for _ in 0..m {
                let member = rng.bernoulli(0.5);
                let score = self.draw(member, rng);
                if member { members.push(score) } else { nonmembers.push(score) }
            }
            if !members.is_empty() && !nonmembers.is_empty() {
                return Scores::new(Design::OneRun, members, nonmembers).unwrap();
            }
        }
    }
}

/// 5 % plus four standard errors of a share of `trials`.
pub(crate) fn allowed(trials: usize) -> f64 {
    0.05 + 4.0 * (0.05 * 0.95 / trials as f64).sqrt()
}

/// `DOSIMETER_COVERAGE=full` asks for every trial, and more of them.
pub(crate) fn full() -> bool {
    std::env::var("DOSIMETER_COVERAGE").is_ok_and(|asked| asked == "full")
}

/// Bounds of trials, the first ones alone where they are far from the bar of 5 %: at most one in fifty above the
/// truth. Of rules that miss in a tenth of trials, 100 trials let one in 500 off so early, 60 one in 70. Of fewer trials,
/// whose bar is above 16 %, the first half.
pub(crate) fn enough(trials: usize, truth: f64, trial: impl Fn(u64) -> f64 + Sync) -> Vec<f64> {
    let first = if trials > 60 { (trials / 4).max(60) } else { trials / 2 };
    let mut values = between(0, first, &trial);
    if full() || summary(&values, truth).0 > 0.02 {
        values.append(&mut between(first, trials, &trial));
    }
    values
}

/// Runs trials on the machine's two cores; `trial` gets its index.
pub(crate) fn tally(trials: usize, trial: impl Fn(u64) -> f64 + Sync) -> Vec<f64> {
    between(0, trials, &trial)
}

fn between(from: usize, to: usize, trial: &(impl Fn(u64) -> f64 + Sync)) -> Vec<f64> {
    let half = from + (to - from) / 2;
    std::thread::scope(|scope| {
        let first = scope.spawn(|| (from as u64..half as u64).map(trial).collect::<Vec<_>>());
        let mut second: Vec<f64> = (half as u64..to as u64).map(trial).collect();
        let mut all = first.join().unwrap();
        all.append(&mut second);
        all
    })
}

/// Share of trials above the truth, and their mean.
pub(crate) fn summary(values: &[f64], truth: f64) -> (f64, f64) {
    // Bounds may exceed an exactly known truth by rounding only.
    let above = values.iter().filter(|value| **value > truth * (1.0 + 1e-9) + 1e-12).count();
    let finite: f64 = values.iter().sum::<f64>() / values.len() as f64;
    (above as f64 / values.len() as f64, finite)
}

/// Seconds of the processor that this thread has had, where the kernel tells; other work on the machine
/// does not count.
pub(crate) fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0) * 1e-9
}
