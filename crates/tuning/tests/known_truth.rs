//! Synthetic tables whose truth is known: the regression recovers it, the intervals cover it, the
//! selection beats best utility, and without any effect nothing is found more often than it may.

use tuning::regression::{Errors, RegressionOptions, Unit, regress};
use tuning::selection::{Better, Chooser, select};
use tuning::{EpsilonGroup, TrainingTable, groups};

/// A generator good enough for simulations (splitmix64), normal by the sum of twelve.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// The truth: effects of ln b, ln T, ln eta, noise of configurations and of seeds.
#[derive(Clone, Copy)]
struct Truth {
    effects: [f64; 3],
    configurations: f64,
    seeds: f64,
}

fn table(truth: Truth, noise: &mut Noise) -> Vec<EpsilonGroup> {
    let mut text =
        String::from("batch_size,steps,learning_rate,epsilon,delta,seed,score_air,utility\n");
    for b in [64.0, 256.0, 1024.0_f64] {
        for t in [125.0, 500.0, 2000.0_f64] {
            for eta in [0.0005, 0.002, 0.008_f64] {
                let own = truth.configurations * noise.normal();
                for seed in 0..2 {
                    let logs = [b.ln(), t.ln(), eta.ln()];
                    let mean: f64 = logs.iter().zip(truth.effects).map(|(l, e)| l * e).sum();
                    let score = 1.0 + mean + own + truth.seeds * noise.normal();
                    let utility = 0.1 * logs.iter().sum::<f64>() + 0.02 * noise.normal();
                    text += &format!("{b},{t},{eta},8,1e-5,{seed},{score},{utility}\n");
                }
            }
        }
    }
    let table = TrainingTable::from_csv(&text, "synthetic").unwrap();
    groups(&table, 0).unwrap()
}

const PAPER: Truth = Truth { effects: [0.029, 0.048, 0.068], configurations: 0.01, seeds: 0.02 };

#[test]
fn the_regression_recovers_the_truth() {
    let groups = table(PAPER, &mut Noise(1));
    let found = regress(&groups, "air", &RegressionOptions::default()).unwrap();
    for (effect, truth) in found.coefficients[1..].iter().zip(PAPER.effects) {
        assert!(effect.lower < truth && truth < effect.upper, "{effect:?} {truth}");
        assert!(effect.p_value < 1e-6, "{effect:?}");
    }
    // a_b < a_T < a_eta, as the heuristics say.
    assert!(found.contrasts.iter().all(|contrast| contrast.estimate < 0.0));
    let binary = RegressionOptions { log_base: 2.0, ..RegressionOptions::default() };
    let halved = regress(&groups, "air", &binary).unwrap();
    let ratio = halved.coefficients[1].estimate / found.coefficients[1].estimate;
    assert!((ratio - std::f64::consts::LN_2).abs() < 1e-12);
    assert!((halved.coefficients[1].p_value / found.coefficients[1].p_value - 1.0).abs() < 1e-9);
}

/// 400 tables: a 95 % interval misses the truth in 5 %, give or take 4 standard errors (1.1 %).
/// Clustered errors with 27 clusters are allowed a little more.
#[test]
fn intervals_cover_the_truth() {
    let mut noise = Noise(7);
    let options = [
        (
            RegressionOptions { errors: Some(Errors::Classical), ..RegressionOptions::default() },
            0.094,
        ),
        (RegressionOptions::default(), 0.094),
        (
            RegressionOptions {
                unit: Unit::Runs,
                errors: Some(Errors::Configuration),
                ..RegressionOptions::default()
            },
            0.12,
        ),
    ];
    let mut misses = [0; 3];
    let mut between = 0;
    const TABLES: u32 = 400;
    for _ in 0..TABLES {
        let truth = Truth { configurations: 0.02, ..PAPER };
        let groups = table(truth, &mut noise);
        for (miss, (options, _)) in misses.iter_mut().zip(&options) {
            let found = regress(&groups, "air", options).unwrap();
            let effect = &found.coefficients[3];
            *miss += u32::from(!(effect.lower < 0.068 && 0.068 < effect.upper));
        }
        let flat = Truth { effects: [0.0; 3], ..truth };
        let spread = tuning::spread::spread(&table(flat, &mut noise)[0], 0.95);
        let (lower, upper) = (spread.between_lower.unwrap(), spread.between_upper.unwrap());
        between += u32::from(!(lower <= 0.02 && 0.02 <= upper));
    }
    for (miss, (options, most)) in misses.iter().zip(&options) {
        let rate = f64::from(*miss) / f64::from(TABLES);
        assert!(rate <= *most, "{options:?}: {rate}");
        assert!(rate >= 0.005, "{options:?} never misses, so it is far too wide: {rate}");
    }
    let rate = f64::from(between) / f64::from(TABLES);
    assert!(rate <= 0.094, "spread: {rate}");
}

/// Scores without any effect: accuracy is one half and its interval covers that; the F-test and
/// the joint test find something in about 5 %.
#[test]
fn nothing_is_found_where_nothing_is() {
    let mut noise = Noise(3);
    let truth = Truth { effects: [0.0; 3], configurations: 0.0, seeds: 0.05 };
    const TABLES: u32 = 300;
    let (mut f, mut joint, mut missed) = (0, 0, [0; 3]);
    for _ in 0..TABLES {
        let groups = table(truth, &mut noise);
        let ranking = tuning::rank(&groups, "air", 0.95).unwrap();
        f += u32::from(ranking.groups[0].spread.p_value.unwrap() < 0.05);
        let found = regress(&groups, "air", &RegressionOptions::default()).unwrap();
        joint += u32::from(found.joint.unwrap().p_value < 0.05);
        for (miss, accuracy) in missed.iter_mut().zip(&ranking.heuristics) {
            let (lower, upper) = (accuracy.lower.unwrap(), accuracy.upper.unwrap());
            *miss += u32::from(!(lower <= 0.5 && 0.5 <= upper));
        }
    }
    // 5 % and four standard errors of 300 tables.
    for (what, count) in [("F", f), ("joint", joint)] {
        assert!(count <= 30, "{what}: {count} of {TABLES}");
    }
    assert!(missed.iter().all(|miss| *miss <= 30), "{missed:?} of {TABLES}");
}

#[test]
fn the_selection_beats_best_utility() {
    let mut noise = Noise(11);
    let (mut ours, mut best, mut random) = (0.0, 0.0, 0.0);
    for _ in 0..20 {
        let selection = select(&table(PAPER, &mut noise), "air", &[], Better::Higher).unwrap();
        let risk =
            |chooser| selection.average.iter().find(|a| a.chooser == chooser).unwrap().normalised;
        ours += risk(Chooser::Algorithm1) / 20.0;
        best += risk(Chooser::BestUtility) / 20.0;
        random += risk(Chooser::Random) / 20.0;
        assert_eq!(risk(Chooser::Oracle), 0.0);
    }
    assert!(ours < 0.5 * best && ours < 0.5 * random, "{ours} {best} {random}");
}

#[test]
fn seed_noise_is_not_called_spread() {
    let mut noise = Noise(5);
    let only_seeds = Truth { effects: [0.0; 3], configurations: 0.0, seeds: 0.05 };
    let (mut observed, mut between) = (0.0, 0.0);
    for _ in 0..50 {
        let spread = tuning::spread::spread(&table(only_seeds, &mut noise)[0], 0.95);
        observed += spread.observed.unwrap() / 50.0;
        between += spread.between.unwrap() / 50.0;
    }
    assert!((observed - 0.05 / 2.0_f64.sqrt()).abs() < 0.003, "{observed}");
    // The truth is 0; the estimate is cut at 0, so that its mean is a little above.
    assert!(between < 0.3 * observed, "{between} {observed}");
}
