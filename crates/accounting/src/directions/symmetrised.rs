//! The trade-off curve when the attacker may have either order of the pair:
//! f(a) = sup over epsilon >= 0 of max(0, 1 - delta - e^epsilon a, e^-epsilon (1 - delta - a)),
//! with delta = delta(epsilon) the larger of both orders (Dong, Roth, Su 2022, Proposition 6).
//! It is the convex hull of the smaller of the two one-sided curves.
//!
//! The lines above have the slopes s = e^epsilon and s = e^-epsilon. As a function of s over
//! (0, infinity) the power that a line allows,
//! H(s) = delta(ln s) + s a for s >= 1, 1 - s (1 - delta(-ln s) - a) for s < 1,
//! is convex (it is a conjugate), so TPR(a) = min H is found and certified by
//! [`super::convex`]: any s gives an upper bound, convexity gives the lower one. A dozen
//! evaluations of delta.

use super::{advantage, convex, worst_delta};
use crate::{AccountingError, OneWay, Pair};
use vocabulary::Interval;

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
        let (remove, add) = (pair.tpr(0.0, OneWay::Remove)?, pair.tpr(0.0, OneWay::Add)?);
        return Ok(remove.max(add).clamp(0.0, 1.0));
    }
    solve(pair, fpr, |delta, slope, epsilon| {
        Ok(if slope >= 1.0 {
            delta(epsilon, false)?.map_increasing(|delta| delta + slope * fpr)
        } else {
            delta(epsilon, true)?.map_decreasing(|rest| 1.0 - slope * (rest - fpr))
        })
    })
    .map(|tpr| tpr.clamp(fpr, 1.0))
}

/// The false negative rate at false positive rate `fpr` in [0, 1].
///
/// # Errors
/// Those of the pair.
pub fn fnr(pair: &dyn Pair, fpr: f64) -> Result<Interval> {
    if fpr >= 1.0 {
        return Ok(Interval::exact(0.0));
    }
    if fpr <= 0.0 {
        let (remove, add) = (pair.fnr(0.0, OneWay::Remove)?, pair.fnr(0.0, OneWay::Add)?);
        return Ok(remove.min(add).clamp(0.0, 1.0));
    }
    solve(pair, fpr, |delta, slope, epsilon| {
        let rest = delta(epsilon, true)?;
        // The negative of the line, so that both functions are minimised.
        Ok(rest.map_decreasing(|rest| {
            if slope >= 1.0 { slope * fpr - rest } else { slope * (fpr - rest) }
        }))
    })
    .map(|negative| negative.map_decreasing(|x| -x).clamp(0.0, 1.0 - fpr))
}

/// delta(epsilon), or 1 - delta(epsilon) where the flag asks for it.
type Profile<'a> = &'a dyn Fn(f64, bool) -> Result<Interval>;

fn solve(
    pair: &dyn Pair,
    fpr: f64,
    line: impl Fn(Profile<'_>, f64, f64) -> Result<Interval>,
) -> Result<Interval> {
    // Slopes beyond these are worse than slope 1, whose line allows delta(0) + fpr.
    let total_variation = advantage(pair)?;
    if total_variation.upper <= 0.0 {
        return line(&|_, rest| Ok(Interval::exact(f64::from(u8::from(rest)))), 1.0, 0.0);
    }
    let steepest = (total_variation.upper + fpr) / fpr * 1.001;
    let flattest = ((1.0 - total_variation.upper - fpr) / (1.0 - fpr)).max(1e-3) * 0.999;
    let at = |slope: f64, profile: Profile<'_>| line(profile, slope, slope.ln().abs());

    // Removal alone: a lower bound always, and the answer where addition leaks less at the
    // best slope, which is one more evaluation.
    let remove = |epsilon: f64, rest: bool| {
        if rest {
            pair.one_minus_delta(epsilon, OneWay::Remove)
        } else {
            pair.delta(epsilon, OneWay::Remove)
        }
    };
    let (slope, alone) = convex::minimise(|slope| at(slope, &remove), flattest, steepest)?;
    let both = |epsilon: f64, rest: bool| {
        if rest {
            super::one_minus_delta(pair, epsilon, vocabulary::Direction::Both)
        } else {
            worst_delta(pair, epsilon)
        }
    };
    let checked = at(slope, &both)?;
    let alone_there = at(slope, &remove)?;
    if checked.upper <= alone_there.upper {
        return Ok(Interval::new(alone.lower.min(checked.upper), alone.value, checked.upper));
    }
    Ok(convex::minimise(|slope| at(slope, &both), flattest, steepest)?.1)
}
