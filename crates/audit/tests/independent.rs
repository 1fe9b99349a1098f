//! `one-run-independent` (after Xiang et al., "Tight privacy audit in one run", 2025): it holds where
//! canaries are alike and share no randomness, at the default seed and at others. Where they do share
//! randomness it does not hold, and says so; the bounds for any mechanism and for the Gaussian family do.
//! `INDEPENDENT_TRIALS=2000` measures more.
#![allow(clippy::print_stdout)]

use crate::common;

use audit::{Design, Method, Plan, Scores, ThresholdRule, analyse, gaussian_epsilon};
use common::{Mechanism, Rng, allowed, tally};

const DELTA: f64 = 1e-5;

fn trials() -> usize {
    let asked = std::env::var("INDEPENDENT_TRIALS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(200)
}

fn bound(scores: &Scores, method: Method, threshold: ThresholdRule, seed: u64) -> f64 {
    let mut plan = Plan::new(Design::OneRun);
    plan.deltas = vec![DELTA];
    plan.methods = vec![method];
    plan.primary = method;
    plan.threshold = threshold;
    plan.seed = seed;
    // Coins that look unfair are refused, which shows nothing.
    let Ok(analysis) = analyse(scores, &plan, None) else { return 0.0 };
    let found = analysis.primary().unwrap();
    let label = found.valid_for.contains("share no randomness");
    assert_eq!(label, method == Method::OneRunIndependent, "{}", found.valid_for);
    found.epsilon()
}

#[test]
fn independent_canaries_are_covered_at_every_seed() {
    for mu in [0.0, 1.0, 2.0] {
        let truth = gaussian_epsilon(mu, DELTA);
        for threshold in [
            ThresholdRule::Union,
            ThresholdRule::Holdout,
            ThresholdRule::KFold,
            ThresholdRule::Fixed(1.5),
        ] {
            for default_seed in [true, false] {
                let above = tally(trials(), |trial| {
                    let mut rng = Rng::new(9_000 + trial);
                    let scores = Mechanism::Gaussian { mu }.canaries(200, &mut rng);
                    let seed = if default_seed { 0 } else { rng.next() };
                    f64::from(u8::from(
                        bound(&scores, Method::OneRunIndependent, threshold, seed) > truth,
                    ))
                });
                let share = above.iter().sum::<f64>() / trials() as f64;
                println!("mu {mu} {threshold} default seed {default_seed}: {share}");
                assert!(share <= allowed(trials()), "mu {mu} {threshold}: {share}");
            }
        }
    }
}

/// Every canary's bit passes through randomised response with the same, random log-odds. The log-odds
/// are |N(mu/2, 1)| times mu, which makes the mechanism exactly mu-Gaussian in each canary, whatever the others are.
fn shared(mu: f64, canaries: usize, rng: &mut Rng) -> Scores {
    let log_odds = mu * (rng.normal() + 0.5 * mu).abs();
    let right = 1.0 / (1.0 + (-log_odds).exp());
    let (mut members, mut nonmembers) = (Vec::new(), Vec::new());
    for _ in 0..canaries {
        let (member, keep) = (rng.bernoulli(0.5), rng.bernoulli(right));
        let score = f64::from(u8::from(member == keep));
        if member { members.push(score) } else { nonmembers.push(score) }
    }
    Scores::new(Design::OneRun, members, nonmembers).unwrap()
}

#[test]
fn shared_randomness_breaks_this_bound_alone() {
    let truth = gaussian_epsilon(1.0, DELTA);
    let share = |method: Method| {
        let above = tally(trials(), |trial| {
            let scores = shared(1.0, 1_000, &mut Rng::new(700 + trial));
            f64::from(u8::from(bound(&scores, method, ThresholdRule::Union, 0) > truth))
        });
        above.iter().sum::<f64>() / trials() as f64
    };
    for method in [Method::OneRun, Method::OneRunGdp] {
        let share = share(method);
        println!("shared randomness, {method}: {share}");
        assert!(share <= allowed(trials()), "{method}: {share}");
    }
    let independent = share(Method::OneRunIndependent);
    println!("shared randomness, one-run-independent: {independent}");
    assert!(independent > 0.2, "{independent}");
}
