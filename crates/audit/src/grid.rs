//! Algorithm 2 of Annamalai, "It's our loss" (arXiv 2407.06496): the first epsilon of the grid
//! 0.5, 0.6, …, 20 whose DP-SGD curve lies below every observed point.
//!
//! Standing: an *estimate*. It compares observed rates with the curve and has no confidence; at
//! thresholds with a handful of false positives it overshoots, so thresholds with fewer than
//! `min_count` errors of either kind are left out.
//!
//! The curve is convex and falls with epsilon, so it suffices to test the vertices of the lower
//! convex hull of the observed points, and the grid is found from the least noise that they
//! violate: the answer of walking the grid from a few curves. (The lower of the two orders' curves
//! need not be convex where they cross; there a chord may pass a point that lies within the gap.)

use crate::{AuditError, Errors, Family, RateBounds, Scores};
use accounting::{AccountingError, OneWay};

/// Errors of either kind below which a threshold is not looked at.
pub const MIN_COUNT: u64 = 10;

const FIRST: f64 = 0.5;
const LAST: f64 = 20.0;
const STEP: f64 = 0.1;

/// The estimate, and whether it ran into the end of the grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridEstimate {
    pub epsilon: f64,
    /// The whole grid was violated: epsilon is beyond 20.
    pub beyond_grid: bool,
}

/// The grid estimate at `delta`.
///
/// # Errors
/// Those of the accounting; a delta of 0, at which the family's epsilon is infinite.
pub fn grid_estimate(
    scores: &Scores,
    family: &Family,
    delta: f64,
    min_count: u64,
) -> Result<GridEstimate, AuditError> {
    if delta <= 0.0 {
        return Err(AuditError::NotValid(
            "the grid estimate needs delta > 0: at delta 0 every DP-SGD run with Gaussian noise has infinite epsilon".to_owned(),
        ));
    }
    let points: Vec<RateBounds> =
        hull(scores, min_count).iter().map(RateBounds::observed).collect();
    let Some(noise) = least_noise(family, &points)? else {
        return Ok(GridEstimate { epsilon: FIRST, beyond_grid: false });
    };
    let reached = family.epsilon(noise, delta)?;
    let steps = ((reached - FIRST) / STEP).ceil().max(0.0);
    let epsilon = ((FIRST + STEP * steps) * 10.0).round() / 10.0;
    Ok(GridEstimate { epsilon: epsilon.min(LAST), beyond_grid: epsilon > LAST })
}

/// The least noise that any vertex violates. The most promising vertex (by mu) gives a first
/// noise; the others are compared with the curve at that noise, most of them by a chord between
/// two computed points of the curve, which lies above it.
fn least_noise(family: &Family, hull: &[RateBounds]) -> Result<Option<f64>, AuditError> {
    let statistic = crate::Statistic::GaussianMu;
    let promising = hull.iter().max_by(|a, b| statistic.value(a).total_cmp(&statistic.value(b)));
    let Some(first) = promising else { return Ok(None) };
    let mut least = family.violated_noise(first)?;
    while let Some(noise) = least {
        let found = match violator(family, hull, noise) {
            Ok(Some(found)) => found,
            Ok(None) => break,
            // Where the curve cannot be certified the estimate rests on the vertices so far.
            Err(AuditError::Accounting(AccountingError::NotCertified(_))) => break,
            Err(error) => return Err(error),
        };
        match family.violated_noise(&hull[found])? {
            Some(smaller) if smaller < noise * (1.0 - 1e-6) => least = Some(smaller),
            _ => break,
        }
    }
    Ok(least)
}

/// A vertex below the curve at this noise, if there is one.
fn violator(family: &Family, hull: &[RateBounds], noise: f64) -> Result<Option<usize>, AuditError> {
    // A hair less noise, so that the vertex that gave the noise does not count again.
    let pair = family.pair(noise * (1.0 - 1e-6)).or_else(|_| family.pair(noise))?;
    let curve = |place: usize| -> Result<f64, AuditError> {
        let fpr = hull[place].false_positive_upper;
        let remove = pair.fnr(fpr, OneWay::Remove)?.upper;
        // The other order only matters where this one alone would be violated.
        if hull[place].false_negative_upper >= remove {
            return Ok(remove);
        }
        Ok(remove.min(pair.fnr(fpr, OneWay::Add)?.upper))
    };
    let mut pending = vec![(0, curve(0)?, hull.len() - 1, curve(hull.len() - 1)?)];
    for (place, height) in [(0, pending[0].1), (hull.len() - 1, pending[0].3)] {
        if hull[place].false_negative_upper < height {
            return Ok(Some(place));
        }
    }
    while let Some((from, left, to, right)) = pending.pop() {
        let (a, b) = (hull[from].false_positive_upper, hull[to].false_positive_upper);
        let chord = |x: f64| left + (right - left) * (x - a) / (b - a);
        let clear = (from + 1..to).all(|place| {
            hull[place].false_negative_upper >= chord(hull[place].false_positive_upper)
        });
        if clear {
            continue;
        }
        let middle = (from + to) / 2;
        let height = curve(middle)?;
        if hull[middle].false_negative_upper < height {
            return Ok(Some(middle));
        }
        pending.push((from, left, middle, height));
        pending.push((middle, height, to, right));
    }
    Ok(None)
}

/// The vertices of the lower-left convex hull of the observed (FPR, FNR) points with at least
/// `min_count` errors of each kind.
pub(crate) fn hull(scores: &Scores, min_count: u64) -> Vec<Errors> {
    let (members, nonmembers) = (scores.members(), scores.nonmembers());
    let (m, n) = (members.len(), nonmembers.len());
    let mut hull: Vec<Errors> = Vec::new();
    let mut place = n;
    // Thresholds at member scores from the highest down: false positives rise.
    let mut index = m;
    while index > 0 {
        let threshold = members[index - 1];
        while index > 0 && members[index - 1] == threshold {
            index -= 1;
        }
        while place > 0 && nonmembers[place - 1] >= threshold {
            place -= 1;
        }
        let point = Errors {
            false_positives: (n - place) as u64,
            nonmembers: n as u64,
            false_negatives: index as u64,
            members: m as u64,
        };
        if point.false_positives < min_count || point.false_negatives < min_count {
            continue;
        }
        while hull.len() >= 2 && !turns_up(&hull[hull.len() - 2], &hull[hull.len() - 1], &point) {
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

/// Whether the middle point lies strictly below the chord from `a` to `c`.
fn turns_up(a: &Errors, b: &Errors, c: &Errors) -> bool {
    let x = |p: &Errors| i128::from(p.false_positives);
    let y = |p: &Errors| i128::from(p.false_negatives);
    (x(b) - x(a)) * (y(c) - y(a)) > (y(b) - y(a)) * (x(c) - x(a))
}
