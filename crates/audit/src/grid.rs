//! Algorithm 2 of Annamalai, "It's our loss" (arXiv 2407.06496): the first epsilon of the grid
//! 0.5, 0.6, …, 20 whose DP-SGD curve lies below every observed point.
//!
//! Standing: an *estimate*. It compares observed rates with the curve and has no confidence; at
//! thresholds with a handful of false positives it overshoots, so thresholds with fewer than
//! `min_count` errors of either kind are left out.
//!
//! The curve is convex and falls with epsilon, so it suffices to test the vertices of the lower
//! convex hull of the observed points, and the grid is found from the least noise that they
//! violate: the answer of walking the grid from a few dozen values of delta.

use crate::violation::least_noise_of_one_point;
use crate::{AuditError, Errors, Family, RateBounds, Scores};

/// Errors of either kind below which a threshold is not looked at.
pub const MIN_COUNT: u64 = 10;

const FIRST: f64 = 0.5;
const LAST: f64 = 20.0;
const STEP: f64 = 0.1;
/// Noises with a smaller share of each other are not likely to be between the same two epsilons.
const SAME: f64 = 0.9;

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
/// Those of the accounting; a delta of 0, at which the family's epsilon is infinite; scores without
/// a threshold that has enough errors.
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
    if points.is_empty() {
        return Err(AuditError::NotValid(format!(
            "no threshold has at least {min_count} errors of either kind, so there is no point to compare with the curve; more scores are needed, or a smaller --min-count"
        )));
    }
    let mut known: Vec<(f64, f64)> = Vec::new();
    // How many steps above the first epsilon the first one is that a noise reaches.
    let mut steps_of = |noise: f64| {
        if let Some((_, steps)) = known.iter().find(|(at, _)| *at == noise) {
            return Ok(*steps);
        }
        let steps = ((family.epsilon(noise, delta)? - FIRST) / STEP).ceil().max(0.0);
        known.push((noise, steps));
        Ok::<f64, AuditError>(steps)
    };
    // Noises between the same two of the grid say the same, and noises beyond its end say nothing more.
    let enough = |open: Option<f64>, shown: f64| match open {
        None => Ok(steps_of(shown)? * STEP + FIRST > LAST),
        Some(open) => Ok(open > SAME * shown && steps_of(open)? == steps_of(shown)?),
    };
    let Some(noise) = least_noise_of_one_point(family, &points, enough)? else {
        return Ok(GridEstimate { epsilon: FIRST, beyond_grid: false });
    };
    let steps = steps_of(noise)?;
    let epsilon = ((FIRST + STEP * steps) * 10.0).round() / 10.0;
    Ok(GridEstimate { epsilon: epsilon.min(LAST), beyond_grid: epsilon > LAST })
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
