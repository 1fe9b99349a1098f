//! What it costs to account for Poisson batches and train with others: numbers beside the
//! claims, each labelled, for runs whose sampling no lens covers. For shuffled batches the
//! published lower bound (Chua et al. 2024) is put beside what the Poisson analysis would say;
//! where it is larger, the usual mismatch understates the leakage.

use crate::account::Questions;
use crate::lenses::Lens;
use crate::{AccountingError, schemes, shuffling};
use vocabulary::{
    Account, Adjacency, Aside, At, AtLeast, Claim, Direction, Interval, LensName, Quantity, Run,
    Sampling, Side, Standing,
};

/// Adds the asides and the warning for shuffled and fixed-size batches.
pub(crate) fn add(run: &Run, questions: &Questions, account: &mut Account) {
    if run.sampling().by_coins() || run.renyi_filter().is_some() {
        return;
    }
    // Only where other neighbours help: not where a limit of time left the numbers out, or the rate is the reason.
    let zeroed = run.to_builder().adjacency(Adjacency::ZeroOut).build();
    let helps = || zeroed.is_ok_and(|zeroed| schemes::supports(&zeroed).is_ok());
    if account.claims.is_empty() && schemes::supports(run).is_err() && helps() {
        account.warnings.push(format!(
            "no lens covers {} with {} as the relation between data sets, so nothing is claimed about \
             this run; choose --adjacency zero-out or substitute for a proven number",
            run.batches_in_words(),
            run.adjacency().as_str()
        ));
    }
    if run.sampling() == Sampling::CyclicPoisson || run.matrix().is_some() {
        return;
    }
    let shuffled = run.sampling() == Sampling::Shuffle;
    let game = shuffling::game(run).filter(|_| shuffled);
    let lower = game.as_ref().and_then(|game| Some((game, schemes::shuffle::event_bound(run)?)));
    let poisson = run
        .with_sampling(Sampling::Poisson)
        .map_err(AccountingError::invalid)
        .and_then(|run| Lens::named(LensName::SIGNED).look(&run));
    for delta in &questions.deltas {
        let at = At { delta: Some(*delta), ..At::default() };
        // What is claimed has its lower end beside it; the published one is for where nothing is.
        let claimed = |claim: &&Claim| {
            claim.source == LensName::SIGNED
                && claim.quantity == Quantity::Epsilon
                && claim.at == at
        };
        let mut known = account.claims.iter().find(claimed).and_then(|claim| claim.at_least);
        if known.is_none()
            && let Some((game, bound)) = &lower
            && let Ok(epsilon) = bound.epsilon(*delta)
        {
            known = Some(epsilon.lower);
            let interval =
                Interval { lower: epsilon.lower, value: epsilon.lower, upper: f64::INFINITY };
            account.asides.push(aside("shuffle-lower-bound", at, Side::Lower, interval, format!(
                "published lower bound for {} of shuffled batches, for a record that is zeroed out; \
                 the truth is at least this",
                if game.epochs == 1 { "one epoch".into() } else { format!("{} epochs", game.epochs) }
            )));
            account.asides.extend(shuffling::least_epsilon(game, *delta));
        }
        let known = known.filter(|_| shuffled);
        let Ok(view) = &poisson else { continue };
        match view.epsilon(*delta, Direction::Both) {
            Ok(epsilon) => {
                account.asides.push(aside(
                    "if-poisson",
                    at,
                    Side::Upper,
                    epsilon,
                    "what composition would prove if the batches had been Poisson; not a bound for \
                     this run"
                        .into(),
                ));
                if let Some(known) = known.filter(|known| *known > epsilon.upper) {
                    // Each rounded towards its side: the warning is true as printed.
                    account.warnings.push(format!(
                        "at delta {delta:e} shuffled batches leak at least epsilon {}, above the {} \
                         that a Poisson analysis would report",
                        AtLeast::new(known),
                        epsilon.at_most()
                    ));
                }
            }
            Err(error) => {
                account.warnings.push(format!("no Poisson number for comparison: {error}"))
            }
        }
    }
}

fn aside(name: &str, at: At, side: Side, interval: Interval, note: String) -> Aside {
    Aside {
        name: name.into(),
        quantity: Quantity::Epsilon,
        at,
        standing: Standing::Proven,
        side,
        ends: interval.into(),
        note,
    }
}
