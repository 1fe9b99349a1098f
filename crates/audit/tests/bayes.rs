//! The credible interval is calibrated under its own prior: rates drawn from Jeffreys' prior,
//! counts drawn from the rates, then epsilon lies above the 95 % lower end in 95 % of draws.

use crate::common;

use audit::{AttackDirection, Errors, bayes};
use common::{Rng, tally};

#[test]
fn calibrated_under_its_prior() {
    let (n, delta, draws) = (40_u64, 0.01, 4_000);
    let inside = tally(draws, |trial| {
        let mut rng = Rng::new(4_242 + trial);
        // Beta(1/2, 1/2) is the arcsine law.
        let mut rate = || (0.5 * std::f64::consts::PI * rng.uniform()).sin().powi(2);
        let (fpr, fnr) = (rate(), rate());
        let mut count = |p: f64| (0..n).filter(|_| rng.bernoulli(p)).count() as u64;
        let errors = Errors {
            false_positives: count(fpr),
            nonmembers: n,
            false_negatives: count(fnr),
            members: n,
        };
        let truth = (((1.0 - delta - fnr) / fpr).max((1.0 - delta - fpr) / fnr)).max(1.0).ln();
        let found = bayes::credible_epsilon(&errors, delta, 0.9, AttackDirection::Both);
        // Both ends: 10 % below the lower one, 10 % above the upper one; an epsilon of exactly 0
        // is never below the lower end.
        if truth < found.lower {
            -1.0
        } else if truth > found.upper {
            1.0
        } else {
            0.0
        }
    });
    let share = |side: f64| inside.iter().filter(|x| **x == side).count() as f64 / draws as f64;
    let error = 4.0 * (0.1_f64 * 0.9 / draws as f64).sqrt();
    // About half of the prior's draws have epsilon 0, which either end covers for certain when it
    // is 0 itself; the rest must use up a good part of the 10 %.
    for side in [-1.0, 1.0] {
        assert!(share(side) <= 0.1 + error && share(side) > 0.03, "{side}: {}", share(side));
    }
}
