//! What is known about a game without playing it: the epsilon of what it releases, the epsilon of
//! all iterates, and the last-iterate heuristic it argues with.

use super::{QuadraticPair, best_bit_threshold, bit_ceiling};
use crate::{DpSgd, Game, Observe, RepeaterVariant, ShiftRegister};
use accounting::pairs::{BinomialGaussian, Composed};
use accounting::{AccountingError, Pair, directions};
use vocabulary::{Direction, Interval, Run};

/// An epsilon with certified ends and what it is about.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownEpsilon {
    /// `release`: this game's own; `composition`, `last-iterate`: for comparison; others by name.
    pub name: &'static str,
    pub epsilon: Interval,
    pub note: String,
}

/// The epsilons at delta, larger of both orders.
///
/// # Errors
/// Those of the pairs, for parameters beyond their domain.
pub fn known(
    game: &Game,
    trainer: &DpSgd,
    observe: Observe,
    delta: f64,
) -> Result<Vec<KnownEpsilon>, AccountingError> {
    let DpSgd { noise_multiplier, sample_rate, steps, .. } = *trainer;
    let whole = run(&[(noise_multiplier, sample_rate, steps)])?;
    let of = |pair: &dyn Pair| directions::epsilon(pair, delta, Direction::Both);
    let composition = of(&Composed::for_run(&whole)?)?;
    let heuristic = of(&BinomialGaussian::for_run(&whole)?)?;
    let mut found = Vec::new();
    let mut add = |name, epsilon, note: &str| {
        found.push(KnownEpsilon { name, epsilon, note: note.to_owned() });
    };
    match (observe, game) {
        (Observe::All, _) => {
            add("release", composition, "every iterate is seen: the composition of all steps");
        }
        (_, Game::Linear) => {
            add("release", heuristic, "the last iterate of linear losses is the heuristic's pair");
        }
        (_, Game::Zeroing) => {
            let one = of(&Composed::for_run(&run(&[(noise_multiplier, sample_rate, 1)])?)?)?;
            add("release", one, "only the last step is left: one subsampled Gaussian");
        }
        (_, Game::Quadratic { alpha }) => {
            let pair = QuadraticPair::new(*alpha, noise_multiplier, sample_rate, steps)?;
            add("release", of(&pair)?, "weighted Bernoulli sum, enclosed from both sides");
            let printed = of(&pair.rounded_as_printed()?)?;
            add("as-printed", printed, "with the paper's rounding of the support (Figure 5)");
        }
        (_, Game::ShiftRegister { spread }) => {
            let phases: Vec<(f64, f64, u64)> = ShiftRegister::new(steps, *spread)
                .noise_inflation()
                .iter()
                .map(|factor| (noise_multiplier * factor, sample_rate, 1))
                .collect();
            let pair = Composed::for_run(&run(&group(phases))?)?;
            add(
                "release",
                of(&pair)?,
                "heterogeneous composition: one subsampled Gaussian per step",
            );
        }
        (_, Game::Repeaters { variant: RepeaterVariant::Printed { threshold } }) => {
            let ceiling = bit_ceiling(noise_multiplier, sample_rate, steps, *threshold);
            let value = Interval::around(ceiling.epsilon(delta), 1e-9);
            add("release", value, "one bit per step: two binomial laws");
            let (best, epsilon) = best_bit_threshold(noise_multiplier, sample_rate, steps, delta);
            let note = format!("one bit per step with the best threshold, {best:.2}");
            add("best-threshold", Interval::around(epsilon, 1e-9), &note);
        }
        (_, Game::Repeaters { variant: RepeaterVariant::Analog }) => {
            let note =
                "at most all iterates; the played curve reaches them up to 1/400 of the noise";
            add("release", at_most(composition), note);
        }
        (_, Game::OurLoss { .. }) => {
            let note =
                "at most all iterates; the encoded ratio of all steps, as far as it is readable";
            add("release", at_most(composition), note);
        }
    }
    add("composition", composition, "all iterates, for comparison");
    add("last-iterate", heuristic, "the linear-loss heuristic, for comparison");
    Ok(found)
}

/// The last iterate is a post-processing of all of them; nothing is certified from below.
fn at_most(composition: Interval) -> Interval {
    Interval { lower: 0.0, ..composition }
}

/// Equal neighbours become one phase.
fn group(steps: Vec<(f64, f64, u64)>) -> Vec<(f64, f64, u64)> {
    let mut phases: Vec<(f64, f64, u64)> = Vec::new();
    for step in steps {
        match phases.last_mut() {
            Some(last) if (last.0, last.1) == (step.0, step.1) => last.2 += step.2,
            _ => phases.push(step),
        }
    }
    phases
}

fn run(phases: &[(f64, f64, u64)]) -> Result<Run, AccountingError> {
    phases
        .iter()
        .fold(Run::builder(), |builder, (sigma, q, steps)| builder.phase(*sigma, *q, *steps))
        .build()
        .map_err(AccountingError::invalid)
}
