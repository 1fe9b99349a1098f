//! What balls and bins would leak, beside a run with shuffled batches: numbers about another
//! sampling than the run's, each labelled.

use super::{BallsAndBins, lower_bound, monte_carlo};
use crate::{AccountingError, Order};
use vocabulary::{Aside, At, Interval, NotCovered, Problem, Quantity, Run, Side, Standing};

/// The game of a run's complete epochs: one phase, one record, a whole number of batches per epoch.
pub(crate) fn game(run: &Run) -> Option<BallsAndBins> {
    let [phase] = run.phases() else { return None };
    if run.group_size() != 1 {
        return None;
    }
    let steps_per_epoch = crate::schemes::even_batches(phase.sample_rate)?;
    let epochs = phase.steps / steps_per_epoch;
    (epochs > 0).then_some(BallsAndBins {
        noise_multiplier: phase.noise_multiplier,
        steps_per_epoch,
        epochs,
    })
}

/// The lower bound on epsilon at a delta.
pub(crate) fn least_epsilon(game: &BallsAndBins, delta: f64) -> Option<Aside> {
    let bound = lower_bound(game.noise_multiplier, game.steps_per_epoch, game.epochs).ok()?;
    let epsilon = bound.epsilon(delta).ok()?.lower;
    Some(Aside {
        name: "balls-and-bins-lower-bound".into(),
        quantity: Quantity::Epsilon,
        at: At { delta: Some(delta), ..At::default() },
        standing: Standing::Proven,
        side: Side::Lower,
        ends: Interval { lower: epsilon, value: epsilon, upper: f64::INFINITY }.into(),
        note: "at least this if every record were thrown into one batch of each epoch, \
               independently of the others (balls and bins)"
            .into(),
    })
}

/// delta at each epsilon by Monte Carlo, larger of both orders; each interval holds with this
/// confidence.
///
/// # Errors
/// `Unsupported` for runs with several phases, groups, uneven batches or less than an epoch; those of
/// [`monte_carlo`].
pub fn measured(
    run: &Run,
    epsilons: &[f64],
    samples: u64,
    confidence: f64,
    gaussian: &mut dyn FnMut() -> f64,
) -> Result<Vec<Aside>, AccountingError> {
    let Some(game) = game(run) else {
        let why = "balls and bins are covered for one record and whole epochs of one phase, with a whole \
                   number of batches per epoch";
        let problem = Problem::from(why).about("sampling", run.sampling().as_str(), "");
        return Err(NotCovered::Value(problem).into());
    };
    // Half of the error for each order.
    let each = 0.5 + 0.5 * confidence;
    let mut asides = Vec::new();
    for epsilon in epsilons {
        let mut draw = |order| monte_carlo(&game, *epsilon, order, samples, each, gaussian);
        let both = draw(Order::Remove)?.max(draw(Order::Add)?);
        asides.push(Aside {
            name: "balls-and-bins".into(),
            quantity: Quantity::Delta,
            at: At { epsilon: Some(*epsilon), ..At::default() },
            standing: Standing::Measured,
            side: Side::Upper,
            ends: both.into(),
            note: format!(
                "if every record were thrown into one batch of each epoch (balls and bins): Monte \
                 Carlo, {samples} samples, confidence {confidence}; between {:.3e} and {:.3e}",
                both.lower, both.upper
            ),
        });
    }
    Ok(asides)
}
