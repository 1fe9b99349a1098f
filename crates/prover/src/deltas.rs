//! Whether a delta is at most or at least a bound: an epsilon, a delta, an advantage or an accuracy is proven by this.

use crate::arithmetic::Ball;
use crate::model::{Model, Order};
use crate::obstacle::Obstacle;
use crate::proof::Outcome;
use crate::prove::{Found, compare, enclosure, log_scale, sentence};
use vocabulary::{Claim, Quantity};

/// Whether the largest delta at epsilon is at most (at least) a bound.
pub(crate) fn deltas<const N: usize>(
    model: &Model<N>,
    claim: &Claim,
    epsilon: Ball<N>,
    name: String,
    bound: Ball<N>,
    at_most: bool,
    bits: f64,
) -> Result<Found, Obstacle> {
    // Close to 1 the digits are in what is missing.
    let missing = Ball::one() - bound;
    let near_one = bound.to_f64() > 0.9;
    let scale = log_scale(if near_one { missing.to_f64() } else { bound.to_f64() });
    // Total variation is the same in both orders.
    let all =
        if epsilon.mid.is_zero() { &[Order::Remove][..] } else { model.orders(claim.direction) };
    if !at_most && bound.is_at_most(&Ball::ZERO) {
        let statement = "delta is at least 0".into();
        return Ok(Found { outcome: Outcome::Proven, statement, enclosures: Vec::new() });
    }
    if at_most && bound.is_negative() {
        let statement = "delta is at least 0, which is above the bound".into();
        return Ok(Found { outcome: Outcome::Wrong, statement, enclosures: Vec::new() });
    }
    // What is enough at epsilon 0 is enough beyond it.
    if at_most
        && epsilon.is_not_negative()
        && let Some(most) = model.sum_of_steps()
        && most.is_at_most(&bound)
    {
        let (_, shown) = bound.doubles();
        return Ok(Found {
            outcome: Outcome::Proven,
            statement: sentence(
                &format!("delta({name})"),
                true,
                Outcome::Proven,
                &shown.to_string(),
            ),
            enclosures: vec![enclosure("delta(0) of all steps one by one".into(), &most)],
        });
    }
    if !at_most {
        if let Some(found) = crude(model, all, (epsilon, &name), bound, missing) {
            return Ok(found);
        }
        if let Some(found) = well_above(model, claim, all, (epsilon, &name), bound, bits)? {
            return Ok(found);
        }
    }
    let (mut balls, mut enclosures, mut first_error) = (Vec::new(), Vec::new(), None);
    for order in all {
        let found = if near_one {
            model.rest(epsilon, *order, scale, bits).map(|rest| {
                enclosures
                    .push(enclosure(format!("1 - delta({name}), {order:?}").to_lowercase(), &rest));
                Ball::one() - rest
            })
        } else {
            model.delta(epsilon, *order, scale, bits).inspect(|ball| {
                enclosures
                    .push(enclosure(format!("delta({name}), {order:?}").to_lowercase(), ball));
            })
        };
        let told = |ball: &Ball<N>| ball.is_at_most(&bound) || bound.is_below(ball);
        match found {
            Ok(ball) if told(&ball) || !at_most || near_one => balls.push(ball),
            Err(reason) if !at_most || near_one => first_error = Some(reason),
            // One moment may be enough from above.
            found => match (model.by_moment(epsilon, *order), found) {
                (Some(ball), _) if ball.is_at_most(&bound) => {
                    enclosures
                        .push(enclosure(format!("delta({name}), {order:?}").to_lowercase(), &ball));
                    balls.push(ball);
                }
                (_, Ok(ball)) => balls.push(ball),
                (_, Err(reason)) => first_error = Some(reason),
            },
        }
        // One order may settle it.
        let settled = if at_most { Outcome::Wrong } else { Outcome::Proven };
        if !balls.is_empty() && compare(&balls, &bound, at_most) == settled {
            first_error = None;
            break;
        }
    }
    if let Some(reason) = first_error {
        return Err(reason);
    }
    let outcome = compare(&balls, &bound, at_most);
    let (_, shown) = bound.doubles();
    let statement = sentence(&format!("delta({name})"), at_most, outcome, &shown.to_string());
    Ok(Found { outcome, statement, enclosures })
}

/// Whether delta is shown to be at least `bound` by a few digits of a chain, by one step alone, or by one moment of what is missing.
fn crude<const N: usize>(
    model: &Model<N>,
    orders: &[Order],
    (epsilon, name): (Ball<N>, &str),
    bound: Ball<N>,
    missing: Ball<N>,
) -> Option<Found> {
    let shown = |of: String, ball: &Ball<N>| Found {
        outcome: Outcome::Proven,
        statement: sentence(
            &format!("delta({name})"),
            false,
            Outcome::Proven,
            &bound.to_f64().to_string(),
        ),
        enclosures: vec![enclosure(of, ball)],
    };
    for order in orders {
        // The bound of a chain may be far above 1, which a few digits show.
        if let Model::Chain(chain) = model
            && let Ok(delta) = chain.delta(epsilon, *order, 0.0, 12.0)
            && bound.is_at_most(&delta)
        {
            return Some(shown(format!("delta({name}), {order:?}").to_lowercase(), &delta));
        }
        for step in model.steps() {
            let delta = step.delta(epsilon, *order, 0.0, 0.0);
            if let Ok(delta) = delta.as_ref()
                && bound.is_at_most(delta)
            {
                return Some(shown(
                    format!("delta({name}) of one step, {order:?}").to_lowercase(),
                    delta,
                ));
            }
        }
        if bound.to_f64() > 0.9
            && let Some(most) = model.rest_by_moment(epsilon, *order)
            && most.is_at_most(&missing)
        {
            let of = format!("at least 1 - delta({name}), {order:?}").to_lowercase();
            return Some(shown(of, &most));
        }
    }
    None
}

/// A lower end far below the upper one: delta is looked for from above, to a few digits of what it may be, so that
/// the end itself, which may be as small as it likes, asks for none.
fn well_above<const N: usize>(
    model: &Model<N>,
    claim: &Claim,
    orders: &[Order],
    (epsilon, name): (Ball<N>, &str),
    bound: Ball<N>,
    bits: f64,
) -> Result<Option<Found>, Obstacle> {
    let own = matches!(claim.quantity, Quantity::Delta | Quantity::Advantage);
    let (end, mut size) = (bound.to_f64(), claim.interval.upper.min(0.5));
    while own && size > 8.0 * end && size > 1e-300 {
        for order in orders {
            let delta = match model.delta(epsilon, *order, size.ln(), bits.min(30.0)) {
                Ok(delta) => delta,
                // The end itself would need even more.
                Err(obstacle @ Obstacle::Words(_)) => return Err(obstacle),
                Err(_) => return Ok(None),
            };
            if bound.is_at_most(&delta) {
                let statement =
                    sentence(&format!("delta({name})"), false, Outcome::Proven, &end.to_string());
                let of = format!("delta({name}), {order:?}").to_lowercase();
                let enclosures = vec![enclosure(of, &delta)];
                let outcome = Outcome::Proven;
                return Ok(Some(Found { outcome, statement, enclosures }));
            }
            // It is smaller than that: look there.
            size = size.min(delta.upper().to_f64().abs()) * 1e-6;
        }
    }
    Ok(None)
}
