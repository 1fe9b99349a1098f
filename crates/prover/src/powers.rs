//! Powers of tests: true positive rates and reconstruction.

use crate::arithmetic::Ball;
use crate::model::{Model, Order};
use crate::obstacle::Obstacle;
use crate::proof::Outcome;
use crate::prove::{End, Found, compare, enclosure, log_scale, sentence};
use crate::slopes;
use crate::tradeoff::{self, Curve, Power};
use vocabulary::{Claim, Direction};

/// The power where the best test is known to be a half-line, and the other distribution normal: it is a lower bound for both orders together, the line
/// with the slope of its threshold an upper one; and it is the power of one order.
fn by_threshold<const N: usize>(
    model: &Model<N>,
    claim: &Claim,
    side: End,
    end: f64,
    fpr: f64,
    bits: f64,
) -> Result<Option<Found>, Obstacle> {
    let Model::HalfLine(pair) = model else { return Ok(None) };
    if pair.substitute {
        // The rate is that of a mixture, whose quantiles are not normal ones.
        return Ok(None);
    }
    let end_ball = Ball::from_f64(end);
    let shown = |outcome: Outcome, what: String, ball: &Ball<N>| Found {
        outcome,
        statement: sentence(&what, side == End::Upper, outcome, &end.to_string()),
        enclosures: vec![enclosure("power".into(), ball)],
    };
    if claim.direction == Direction::Add {
        if !(end > 0.0 && end < 1.0) {
            return Ok(None);
        }
        // {X < x} with Q(X < x) = end: its size P(X < x) is at least the rate where the power is at most the end.
        let size = pair.size_below(-tradeoff::normal_quantile(end)?);
        let outcome = compare(&[-size], &Ball::from_f64(-fpr), side == End::Upper);
        let what = format!("the power at {fpr} of a half-line");
        return Ok(Some(shown(outcome, what, &size)));
    }
    let (power, loss) = pair.power_above(tradeoff::normal_quantile(fpr)?);
    let what = format!("the power at {fpr} of a half-line");
    if claim.direction == Direction::Remove || side == End::Lower {
        let outcome = compare(&[power], &end_ball, side == End::Upper);
        // Both orders together may have more power than one.
        if claim.direction == Direction::Remove || outcome == Outcome::Proven {
            return Ok(Some(shown(outcome, what, &power)));
        }
        return Ok(None);
    }
    let curve =
        Curve { model, orders: model.orders(claim.direction), fpr, log_scale: log_scale(end) };
    let line = curve.line(loss, bits)?;
    let what = format!("the power at {fpr} by the line of slope e^{loss}");
    Ok(line.is_at_most(&end_ball).then(|| shown(Outcome::Proven, what, &line)))
}

pub(crate) fn power<const N: usize>(
    model: &Model<N>,
    claim: &Claim,
    side: End,
    end: f64,
    fpr: f64,
    bits: f64,
) -> Result<Found, Obstacle> {
    if fpr <= 0.0 || fpr >= 1.0 {
        // The two distributions have the same null sets.
        let power = Ball::<N>::from_f64(if fpr <= 0.0 { 0.0 } else { 1.0 });
        let outcome = compare(&[power], &Ball::from_f64(end), side == End::Upper);
        let statement = sentence("the power", side == End::Upper, outcome, &end.to_string());
        return Ok(Found { outcome, statement, enclosures: Vec::new() });
    }
    if let Some(found) = by_threshold(model, claim, side, end, fpr, bits)? {
        return Ok(found);
    }
    if let Model::Gaussian(mu) = model {
        let power = tradeoff::of_gaussian(*mu, fpr)?;
        let outcome = compare(&[power], &Ball::from_f64(end), side == End::Upper);
        let statement = sentence("the power", side == End::Upper, outcome, &end.to_string());
        return Ok(Found {
            outcome,
            statement,
            enclosures: vec![enclosure("power".into(), &power)],
        });
    }
    if side == End::Lower && end > 0.9 && model.is_pair() {
        for order in model.orders(claim.direction) {
            if let Some(found) = misses_little(model, *order, end, fpr) {
                return Ok(found);
            }
        }
    }
    let orders = model.orders(claim.direction);
    // Whether no slope of a chain allows less.
    let chain_reaches = |end: f64| match model {
        Model::Chain(chain) => {
            slopes::reach(chain, orders, (Ball::from_f64(fpr), Ball::from_f64(end)), bits)
        }
        _ => Ok(false),
    };
    let shown = |outcome: Outcome| Found {
        outcome,
        statement: sentence(
            &format!("the power at {fpr} by every slope"),
            side == End::Upper,
            outcome,
            &end.to_string(),
        ),
        enclosures: Vec::new(),
    };
    if side == End::Lower && chain_reaches(end)? {
        return Ok(shown(Outcome::Proven));
    }
    let curve = Curve { model, orders, fpr, log_scale: log_scale(end) };
    let end_ball = Ball::from_f64(end);
    let told = |found: &Power<N>| match side {
        End::Upper => (found.upper.is_at_most(&end_ball), end_ball.is_below(&found.lower)),
        End::Lower => (end_ball.is_at_most(&found.lower), found.upper.is_below(&end_ball)),
    };
    let enough = |found: &Power<N>| matches!(told(found), (true, _) | (_, true));
    let found = curve.power(claim.interval.value, bits, enough)?;
    let (holds, fails) = told(&found);
    if side == End::Upper && !holds && chain_reaches(end.next_up())? {
        return Ok(shown(Outcome::Wrong));
    }
    let outcome = match (holds, fails) {
        (true, _) => Outcome::Proven,
        (_, true) => Outcome::Wrong,
        _ => Outcome::Undecided,
    };
    let line = format!("by the line of slope e^{}", found.epsilon);
    Ok(Found {
        outcome,
        statement: sentence(
            &format!("the power at {fpr} {line}"),
            side == End::Upper,
            outcome,
            &end.to_string(),
        ),
        enclosures: vec![
            enclosure("power, from below".into(), &found.lower),
            enclosure("power, from above".into(), &found.upper),
        ],
    })
}

/// No test of size a misses more than 1 - e if rest(ln k) - k a <= 1 - e for every slope k > 0. For k <= 1 - e
/// it is, since rest(ln k) <= k; for k >= 1/a too. Between them the slopes are taken in steps: rest rises with
/// k, so between k_1 and k_2 the left side is at most rest(ln k_2) - k_1 a.
fn misses_little<const N: usize>(
    model: &Model<N>,
    order: Order,
    end: f64,
    fpr: f64,
) -> Option<Found> {
    let (missing, size) = (Ball::<N>::one() - Ball::from_f64(end), Ball::<N>::from_f64(fpr));
    let (last, mut at) = (-fpr.ln() + 1e-9, (1.0 - end).ln() - 1e-9);
    let mut steps = 0;
    let mut enclosures = Vec::new();
    let mut step = last - at;
    while at < last {
        steps += 1;
        if steps > 120 || step < 1e-3 {
            return None;
        }
        let next = (at + step).min(last);
        let allowed = missing + Ball::from_f64(at).exponential() * size;
        let scale = allowed.to_f64().max(1e-300).ln();
        let rest = model.rest(Ball::from_f64(next), order, scale, 20.0).ok()?;
        if rest.is_at_most(&allowed) {
            let name = format!("1 - delta({next}), {order:?}").to_lowercase();
            enclosures.push(enclosure(name, &rest));
            at = next;
            step *= 1.5;
        } else {
            step *= 0.4;
        }
    }
    Some(Found {
        outcome: Outcome::Proven,
        statement: format!("no slope lets a test of size {fpr} miss more than 1 - {end}"),
        enclosures,
    })
}
