//! Decided before looking, from (canaries, delta, level) alone: all strategies together, or a hold-out.
//!
//! At delta > 0 every strategy pays 2 m delta times a density. When that is not small against the
//! level, many strategies on all canaries show less than one strategy on some of them: canaries that
//! choose do not count, so they do not pay. How many should choose follows from what each plan could
//! show: it is played on the expected counts of Gaussian attacks from weak to strong and of a perfect
//! one, and the plan with the largest mean share of the best is taken. The choice reads no
//! scores, so it costs no confidence.

use super::strategies::{Guesses, Strategy, chains, choices};
use super::union::together;
use super::{one_run_epsilon, one_run_p_value};
use crate::AttackDirection;
use numerics::special::normal_cdf;

/// What the `union` rule does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Planned {
    /// All strategies on all canaries.
    Together,
    /// This share of the canaries chooses one strategy for the others.
    Choosers { share: f64 },
}

/// Attacks from weak to strong; the last one is perfect.
const ATTACKS: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 6.0, f64::INFINITY];
/// Fewer choosers choose by chance.
const FEWEST: f64 = 100.0;
/// From this many canaries on a sixteenth of them chooses well enough.
const SIXTEENTH: u64 = 6_400;

/// The plan for this many canaries.
pub(crate) fn plan(canaries: u64, direction: AttackDirection, level: f64, delta: f64) -> Planned {
    thread_local! {
        // The last answer: audits and simulations ask again and again for the same numbers.
        static LAST: std::cell::Cell<Option<(Question, Planned)>> = const { std::cell::Cell::new(None) };
    }
    let question = (canaries, direction, level.to_bits(), delta.to_bits());
    match LAST.get() {
        Some((known, plan)) if known == question => plan,
        _ => {
            let plan = best_plan(canaries, direction, level, delta);
            LAST.set(Some((question, plan)));
            plan
        }
    }
}

type Question = (u64, AttackDirection, u64, u64);

fn best_plan(canaries: u64, direction: AttackDirection, level: f64, delta: f64) -> Planned {
    // Less than a thousandth of the error: nothing to save.
    if 2.0 * canaries as f64 * delta <= 1e-3 * level || (canaries as f64) < 4.0 * FEWEST {
        return Planned::Together;
    }
    let mut plans = vec![Planned::Together];
    let sixteenth = (canaries >= SIXTEENTH).then_some(0.0625);
    let shares =
        sixteenth.into_iter().chain([0.125, 0.25]).chain((1..14).map(|j| 1.0 - 0.5_f64.powi(j)));
    for share in shares {
        let (choose, count) = (share * canaries as f64, (1.0 - share) * canaries as f64);
        if choose >= FEWEST && count >= FEWEST {
            plans.push(Planned::Choosers { share });
        }
    }
    let shown: Vec<[f64; ATTACKS.len()]> = plans
        .iter()
        .map(|plan| ATTACKS.map(|mu| expected(plan, canaries, direction, level, delta, mu)))
        .collect();
    let best: Vec<f64> = (0..ATTACKS.len())
        .map(|attack| shown.iter().map(|row| row[attack]).fold(0.0, f64::max))
        .collect();
    let worth = |row: &[f64; ATTACKS.len()]| -> f64 {
        row.iter()
            .zip(&best)
            .map(|(value, best)| if *best > 0.0 { value / best } else { 1.0 })
            .sum()
    };
    let mut chosen = (0, worth(&shown[0]));
    for (place, row) in shown.iter().enumerate().skip(1) {
        if worth(row) > chosen.1 {
            chosen = (place, worth(row));
        }
    }
    plans[chosen.0]
}

/// What a plan shows on the expected counts of an attack.
fn expected(
    plan: &Planned,
    canaries: u64,
    direction: AttackDirection,
    level: f64,
    delta: f64,
    mu: f64,
) -> f64 {
    let counted = counted(plan, canaries);
    match plan {
        Planned::Together => {
            let guesses: Vec<Vec<Guesses>> = chains(counted, direction)
                .iter()
                .map(|chain| chain.iter().map(|strategy| usual(*strategy, counted, mu)).collect())
                .collect();
            together(&guesses, level, delta).epsilon
        }
        Planned::Choosers { .. } => {
            let mut best = 0.0;
            // From all guesses down: one test tells whether a search is worth it.
            for strategy in choices(counted, direction).iter().rev() {
                let one = usual(*strategy, counted, mu);
                let (guesses, right) = (one.planned, one.right);
                if one_run_p_value(counted, guesses, right, best, delta) <= level {
                    best = one_run_epsilon(counted, guesses, right, level, delta).max(best);
                }
            }
            best
        }
    }
}

/// Canaries that count.
pub(super) fn counted(plan: &Planned, canaries: u64) -> u64 {
    match plan {
        Planned::Together => canaries,
        Planned::Choosers { share } => ((1.0 - share) * canaries as f64) as u64,
    }
}

/// The guesses of a strategy when scores are N(mu, 1) and N(0, 1) and everything is as expected.
fn usual(strategy: Strategy, canaries: u64, mu: f64) -> Guesses {
    let planned = strategy.planned(canaries);
    let m = canaries as f64;
    let right = if mu == f64::INFINITY {
        planned
    } else {
        let one_end = |count: u64| {
            let share = count as f64 / m;
            let (mut low, mut high) = (-40.0, 40.0 + mu);
            for _ in 0..60 {
                let middle: f64 = 0.5 * (low + high);
                let beyond = 0.5 * (normal_cdf(mu - middle) + normal_cdf(-middle));
                if beyond > share { low = middle } else { high = middle }
            }
            0.5 * m * normal_cdf(mu - high)
        };
        let right = match strategy {
            Strategy::Everything => m * normal_cdf(0.5 * mu),
            Strategy::Ends { inside, outside } => one_end(inside) + one_end(outside),
        };
        (right as u64).min(planned)
    };
    Guesses { canaries, guessed_in: planned, guessed_out: 0, right, planned }
}
