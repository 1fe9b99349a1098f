//! The certified closed form against the exact Bayes security on random runs:
//! `certified_survey [RUNS] [SEED]`. Prints one JSON object: how often the formula was above the
//! truth (must be 0), and quantiles of (1 - bound)/(1 - truth).
//!
//! The truth is Fourier inversion (`bayes_security::inversion`), which is good to 1e-7 from ten steps on
//! and costs little for further step counts of the same noise and rate; a run counts as above the
//! truth beyond 2e-7. Single steps are compared with composition's closed form.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use accounting::bayes_security::{Inversion, certified_lower_bound};
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

/// Step counts for each noise and rate.
const COUNTS: u64 = 50;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let runs: u64 = arguments.next().map_or(1000, |word| word.parse().expect("a count"));
    let seed: u64 = arguments.next().map_or(1, |word| word.parse().expect("a seed"));
    let mut words = Words(seed);
    let (mut above, mut done, mut vacuous) = (0, 0, 0);
    let mut ratios: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    while done < runs {
        let adjacency =
            if words.uniform() < 0.5 { Adjacency::AddRemove } else { Adjacency::Substitute };
        let (noise, rate) = (words.between(0.3, 20.0), words.between(1e-5, 0.9));
        let run = |steps: u64| {
            let run = Run::builder().phase(noise, rate, steps).adjacency(adjacency);
            run.build().expect("a run in the domain")
        };
        let transform = Inversion::new(&run(1)).expect("one record, Poisson batches");
        for count in 0..COUNTS.min(runs - done) {
            let (steps, truth) = if count == 0 {
                let pair = Composed::for_run(&run(1)).expect("a single step");
                (1, directions::bayes_security(&pair).expect("a closed form").upper)
            } else {
                let steps = words.between(10.0, 1e6) as u64;
                (steps, transform.security(steps))
            };
            let bound = certified_lower_bound(&run(steps)).expect("a formula");
            if bound > truth + 2e-7 {
                above += 1;
                eprintln!("above: {bound} {truth} {:?}", run(steps));
            }
            vacuous += u32::from(bound <= 0.0 && truth > 1e-6);
            if truth > 1e-3 && truth < 1.0 - 1e-4 {
                ratios[usize::from(adjacency == Adjacency::Substitute)]
                    .push((1.0 - bound) / (1.0 - truth));
            }
        }
        done += COUNTS.min(runs - done);
    }
    let quantiles = ratios.map(|mut all| {
        all.sort_by(f64::total_cmp);
        [0.0, 0.1, 0.5, 0.9, 1.0].map(|share| {
            let at = ((all.len().max(1) - 1) as f64 * share) as usize;
            (1e4 * all.get(at).copied().unwrap_or(f64::NAN)).round() / 1e4
        })
    });
    println!(
        "{{\"runs\":{done},\"seed\":{seed},\"above_the_truth\":{above},\"vacuous\":{vacuous},\"leakage_ratio_quantiles_0_10_50_90_100\":{{\"add_remove\":{:?},\"substitute\":{:?}}}}}",
        quantiles[0], quantiles[1]
    );
}
