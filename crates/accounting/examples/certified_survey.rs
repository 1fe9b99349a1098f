//! The certified closed form against the exact Bayes security on random runs:
//! `certified_survey [RUNS] [SEED]`. Prints one JSON object: how often the formula was above the
//! truth (must be 0), how often the truth was refused, and quantiles of (1 - bound)/(1 - truth).
#![allow(clippy::print_stdout)]

use accounting::bayes_security::certified_lower_bound;
use accounting::directions;
use accounting::pairs::Composed;
use vocabulary::{Adjacency, Run};

/// A small generator (splitmix64); the survey needs no more.
struct Words(u64);

impl Words {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.uniform())
    }
}

fn random(words: &mut Words) -> Run {
    let adjacency =
        if words.uniform() < 0.5 { Adjacency::AddRemove } else { Adjacency::Substitute };
    let phases = if words.uniform() < 0.8 { 1 } else { 2 };
    let mut run = Run::builder().adjacency(adjacency);
    for _ in 0..phases {
        let noise = words.between(0.3, 20.0);
        let rate = words.between(1e-5, 0.9);
        run = run.phase(noise, rate, words.between(1.0, 1e6) as u64);
    }
    run.build().expect("a run in the domain")
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let runs: u64 = arguments.next().map_or(1000, |word| word.parse().expect("a count"));
    let seed: u64 = arguments.next().map_or(1, |word| word.parse().expect("a seed"));
    let mut words = Words(seed);
    let (mut above, mut undecided, mut refused, mut vacuous) = (0, 0, 0, 0);
    let mut ratios: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..runs {
        let run = random(&mut words);
        let bound = certified_lower_bound(&run).expect("a formula");
        let Ok(truth) = Composed::for_run(&run).and_then(|pair| directions::bayes_security(&pair))
        else {
            refused += 1;
            continue;
        };
        if bound > truth.upper {
            above += 1;
            eprintln!("above: {bound} {truth:?} {run:?}");
        }
        // The exact interval is too wide to tell.
        if bound > truth.lower && bound <= truth.upper {
            undecided += 1;
        }
        if bound <= 0.0 && truth.lower > 1e-9 {
            vacuous += 1;
        }
        if truth.value > 1e-3 && truth.width() < 1e-3 * (1.0 - truth.value) {
            ratios[usize::from(run.adjacency() == Adjacency::Substitute)]
                .push((1.0 - bound) / (1.0 - truth.value));
        }
    }
    let quantiles = ratios.map(|mut all| {
        all.sort_by(f64::total_cmp);
        [0.0, 0.1, 0.5, 0.9, 1.0].map(|share| {
            all.get(((all.len().max(1) - 1) as f64 * share) as usize).copied().unwrap_or(f64::NAN)
        })
    });
    println!(
        "{{\"runs\":{runs},\"seed\":{seed},\"above_the_truth\":{above},\"undecided\":{undecided},\"refused\":{refused},\"vacuous\":{vacuous},\"leakage_ratio_quantiles_0_10_50_90_100\":{{\"add_remove\":{:?},\"substitute\":{:?}}}}}",
        quantiles[0], quantiles[1]
    );
}
