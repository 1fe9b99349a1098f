//! The trade-off curve when the attacker may have either order of the pair:
//! f(a) = sup over epsilon >= 0 of max(0, 1 - delta - e^epsilon a, e^-epsilon (1 - delta - a)),
//! with delta = delta(epsilon) the larger of both orders (Dong, Roth, Su 2022, Proposition 6).
//! It is the convex hull of the smaller of the two one-sided curves.
//!
//! The lines above have the slopes s = e^epsilon and s = e^-epsilon. As a function of s over
//! (0, infinity) the power that a line allows,
//! H(s) = delta(ln s) + s a for s >= 1, 1 - s (1 - delta(-ln s) - a) for s < 1,
//! is convex (a conjugate), so TPR(a) = min H is found and certified by [`super::convex`]: any s
//! gives an upper bound, convexity the lower one. About twenty evaluations of delta.
//!
//! With one order in place of the larger, H is convex on either side of s = 1, but not always across
//! it: its slope jumps there by 1 - P(W > 1) - Q(W > 1). So one order is only searched on one side.

use super::convex::{self, Guess};
use super::{advantage, most_missed};
use crate::{AccountingError, Order, Pair};
use numerics::elementary::{exp, ln};
use vocabulary::{Direction, Interval};

type Result<T> = std::result::Result<T, AccountingError>;

/// The true positive rate at false positive rate `fpr` in [0, 1].
///
/// # Errors
/// Those of the pair.
pub fn tpr(pair: &dyn Pair, fpr: f64) -> Result<Interval> {
    if fpr >= 1.0 {
        return Ok(Interval::exact(1.0));
    }
    if fpr <= 0.0 {
        // No line of finite slope touches there.
        let (remove, add) = (pair.tpr(0.0, Order::Remove)?, pair.tpr(0.0, Order::Add)?);
        return Ok(remove.max(add).clamp(0.0, 1.0));
    }
    if let Some(found) = by_single_order(pair, fpr)? {
        return Ok(found);
    }
    let solved = solve(pair, fpr, power);
    let mut found = match &solved {
        Ok(found) => *found,
        Err(AccountingError::NotCertified(_)) => Interval::new(fpr, fpr, 1.0),
        Err(error) => return Err(error.clone()),
    };
    if found.width() > 1e-6 * found.upper {
        // Where the curve is too straight for convexity to tell: whoever may choose the order
        // is at least as strong as with either, and gains no more than the total variation.
        for order in super::orders(pair, Direction::Both) {
            found.lower = found.lower.max(pair.tpr(fpr, *order)?.lower).min(found.upper);
        }
        let most = (fpr + advantage(pair)?.upper) * (1.0 + 2.0 * f64::EPSILON);
        found.upper = found.upper.min(most).max(found.lower);
        found.value = found.value.clamp(found.lower, found.upper);
    }
    match solved {
        Err(refusal) if found.width() > 0.5 * found.upper => Err(refusal),
        _ => Ok(found.clamp(fpr, 1.0)),
    }
}

/// Whoever may choose the order is at least as strong as with one; the line that supports that order's
/// curve bounds both from above. Where these meet, nothing needs to be searched.
fn by_single_order(pair: &dyn Pair, fpr: f64) -> Result<Option<Interval>> {
    for &order in super::orders(pair, Direction::Both) {
        let slopes = pair.log_slopes(fpr, order);
        if slopes.is_empty() {
            return Ok(None);
        }
        let alone = pair.tpr(fpr, order)?.clamp(fpr, 1.0);
        for log_slope in slopes {
            let Ok(line) = power(pair, fpr, log_slope, Direction::Both) else { continue };
            if line.upper <= alone.upper + 1e-9 * alone.lower {
                let upper = line.upper.clamp(alone.lower, 1.0);
                return Ok(Some(Interval::new(alone.lower, alone.value, upper)));
            }
        }
    }
    Ok(None)
}

/// Flatter lines are not looked at.
const FLATTEST: f64 = 1e-30;

/// The false negative rate at false positive rate `fpr` in [0, 1].
///
/// # Errors
/// Those of the pair.
pub fn fnr(pair: &dyn Pair, fpr: f64) -> Result<Interval> {
    if fpr >= 1.0 {
        return Ok(Interval::exact(0.0));
    }
    if fpr <= 0.0 {
        let (remove, add) = (pair.fnr(0.0, Order::Remove)?, pair.fnr(0.0, Order::Add)?);
        return Ok(remove.min(add).clamp(0.0, 1.0));
    }
    let solved = solve(pair, fpr, |pair, fpr, log_slope, direction| {
        Ok(missed(pair, fpr, log_slope, direction)?.map_decreasing(|x| -x))
    });
    let mut found = match &solved {
        Ok(negative) => negative.map_decreasing(|x| -x),
        Err(AccountingError::NotCertified(_)) => Interval::new(0.0, 1.0 - fpr, most_missed(fpr)),
        Err(error) => return Err(error.clone()),
    };
    // No flatter line demands more than its slope.
    found.upper = found.upper.max(FLATTEST);
    if found.width() > 1e-6 * (1.0 - fpr) {
        for order in super::orders(pair, Direction::Both) {
            found.upper = found.upper.min(pair.fnr(fpr, *order)?.upper).max(found.lower);
        }
        let least = 1.0 - fpr - advantage(pair)?.upper - 4.0 * f64::EPSILON;
        found.lower = found.lower.max(least).min(found.upper);
        found.value = found.value.clamp(found.lower, found.upper);
    }
    match solved {
        Err(refusal) if found.width() > 0.5 * found.upper => Err(refusal),
        _ => Ok(found.clamp(0.0, most_missed(fpr))),
    }
}

/// The power that the line of a slope allows: an upper bound for every slope.
fn power(pair: &dyn Pair, fpr: f64, log_slope: f64, direction: Direction) -> Result<Interval> {
    let slope = exp(log_slope);
    if log_slope >= 0.0 {
        let delta = super::delta(pair, log_slope, direction)?;
        let sum = delta.map_increasing(|delta| delta + slope * fpr);
        // An exponential, a product and a sum.
        let slack = 4.0 * f64::EPSILON * sum.value;
        Ok(Interval::new((sum.lower - slack).max(0.0), sum.value, sum.upper + slack))
    } else {
        let rest = super::one_minus_delta(pair, -log_slope, direction)?;
        let sum = rest.map_decreasing(|rest| 1.0 - slope * (rest - fpr));
        let slack = 8.0 * f64::EPSILON;
        Ok(Interval::new(sum.lower - slack, sum.value, sum.upper + slack))
    }
}

/// The false negatives that the line of a slope demands: a lower bound for every slope.
fn missed(pair: &dyn Pair, fpr: f64, log_slope: f64, direction: Direction) -> Result<Interval> {
    let slope = exp(log_slope);
    let rest = super::one_minus_delta(pair, log_slope.abs(), direction)?;
    let line = rest.map_increasing(|rest| {
        if log_slope >= 0.0 { rest - slope * fpr } else { slope * (rest - fpr) }
    });
    let slack = 8.0 * f64::EPSILON * (rest.upper + slope * fpr);
    Ok(Interval::new(line.lower - slack, line.value, line.upper + slack))
}

fn solve(
    pair: &dyn Pair,
    fpr: f64,
    line: impl Fn(&dyn Pair, f64, f64, Direction) -> Result<Interval>,
) -> Result<Interval> {
    let total_variation = advantage(pair)?;
    let guess = Guess::gaussian(total_variation.value, 1.0 - total_variation.value, fpr);
    // A line of slope s allows at least s * fpr and at least 1 - s (1 - fpr); slopes for which
    // that is more than the guess allows, or slope 1, cannot be best.
    let known =
        (total_variation.upper + fpr).min(power(pair, fpr, ln(guess.at), Direction::Both)?.upper);
    let steepest = known / fpr * (1.0 + 1e-9);
    // Lines flatter than 1e-30 lie within 1e-30 of power 1; that is far below every slack of a
    // power, and the callers' for false negatives. A known power near 1 is rounded.
    let flattest = ((1.0 - known - 4.0 * f64::EPSILON) / (1.0 - fpr)).max(FLATTEST) * (1.0 - 1e-9);
    // Removal alone bounds from below, and is the answer where addition leaks less at the best
    // slope, which is one more evaluation. It is searched on the guess's side of slope 1; where "either
    // order" is certainly better there than at slope 1, convexity rules out the other side.
    let (low, high) =
        if guess.at >= 1.0 { (1.0, steepest.max(2.0)) } else { (flattest.min(0.5), 1.0) };
    let remove = |log_slope| line(pair, fpr, log_slope, Direction::Remove);
    let (best, alone) = convex::minimise_from(remove, low, high, guess)?;
    let (there, both_there) = (remove(best)?, line(pair, fpr, best, Direction::Both)?);
    let at_one = line(pair, fpr, 0.0, Direction::Both)?;
    if both_there.upper <= there.upper && both_there.upper < at_one.lower {
        return Ok(Interval::new(alone.lower.min(there.upper), alone.value, there.upper));
    }
    let both = |log_slope| line(pair, fpr, log_slope, Direction::Both);
    Ok(convex::minimise_from(both, flattest, steepest, Guess { at: exp(best), ..guess })?.1)
}
