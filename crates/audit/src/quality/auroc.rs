//! AUROC as the Mann-Whitney probability, ties counted one half, with DeLong's interval
//! (DeLong, DeLong and Clarke-Pearson 1988) on the logit scale.
//!
//! Not the area under the ROC's convex hull, which is biased upwards and hides a reversed sign.
//! Standing: asymptotic. When a side is separated from the other the variance estimate is zero;
//! the interval then falls back to the exact Clopper-Pearson one for "all pairs in order" among
//! min(n, m) disjoint pairs. Cost: one merge of the sorted sides.

use super::Measured;
use crate::Scores;
use numerics::beta::{clopper_pearson_lower, clopper_pearson_upper};
use numerics::special::inverse_normal_sf;

/// AUROC with a two-sided interval.
///
/// ```
/// let scores = audit::Scores::new(vec![1.0, 2.0, 2.0], vec![0.0, 2.0])?;
/// // Pairs: (1,0) (2,0) (2,0) won, (1,2) lost, (2,2) (2,2) tied: 4 of 6.
/// assert_eq!(audit::quality::auroc(&scores, 0.95).value, 4.0 / 6.0);
/// # Ok::<(), audit::AuditError>(())
/// ```
pub fn auroc(scores: &Scores, confidence: f64) -> Measured {
    let (members, nonmembers) = (scores.members(), scores.nonmembers());
    let wins = placements(members, nonmembers);
    let losses = placements(nonmembers, members);
    let (m, n) = (members.len() as f64, nonmembers.len() as f64);
    let value = wins.mean;
    let variance = wins.variance / m + losses.variance / n;
    let tail = 0.5 * (1.0 - confidence);
    if variance <= 0.0 || value <= 0.0 || value >= 1.0 {
        let pairs = members.len().min(nonmembers.len()) as u64;
        let ordered = (value * pairs as f64).round() as u64;
        return Measured {
            value,
            lower: clopper_pearson_lower(ordered, pairs, tail).min(value),
            upper: clopper_pearson_upper(ordered, pairs, tail).max(value),
        };
    }
    // On the logit scale the interval stays inside (0, 1).
    let spread = inverse_normal_sf(tail) * variance.sqrt() / (value * (1.0 - value));
    let logit = (value / (1.0 - value)).ln();
    let back = |x: f64| 1.0 / (1.0 + (-x).exp());
    Measured { value, lower: back(logit - spread), upper: back(logit + spread) }
}

struct Placements {
    mean: f64,
    variance: f64,
}

/// For each value of `of`, the share of `among` below it (ties one half): mean and variance.
fn placements(of: &[f64], among: &[f64]) -> Placements {
    let size = among.len() as f64;
    let (mut below, mut upto) = (0, 0);
    // Twice the counts are integers, summed exactly.
    let (mut sum, mut squares) = (0_u128, 0_u128);
    for value in of {
        while below < among.len() && among[below] < *value {
            below += 1;
        }
        upto = upto.max(below);
        while upto < among.len() && among[upto] <= *value {
            upto += 1;
        }
        let twice = (below + upto) as u128;
        sum += twice;
        squares += twice * twice;
    }
    let count = of.len() as f64;
    let mean = sum as f64 / count / (2.0 * size);
    // sum of squares - sum^2/n in integers, so that nothing cancels.
    let deviation = (squares * of.len() as u128 - sum * sum) as f64 / count;
    let variance = if of.len() > 1 { deviation / (count - 1.0) / (4.0 * size * size) } else { 0.0 };
    Placements { mean, variance }
}
