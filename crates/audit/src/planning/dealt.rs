//! The power of `holdout` and `k-fold`, whose threshold is chosen on a part of the scores: no
//! closed form, so the audit is played on simulated counts.
//!
//! The attack's curve is cut at the planning points; a cut attack tells less than the attack
//! itself, so the power is understated. Counts between cuts are drawn as successive binomials
//! (exactly below thirty expected, by the normal law with its skewness beyond), so that a trial
//! costs the same for a hundred trainings and for a million. The share of trials that show the
//! target is lowered by two standard errors.

use super::{Goal, Needed, Target};
use crate::rule::p_value;
use crate::split::Dealer;
use crate::{Errors, FOLDS, RateBounds, rates};
use numerics::special::inverse_normal_cdf;

const TRIALS: u32 = 500;

/// The power of `count` trainings a side, dealt into `parts`: 2 for `holdout`, [`FOLDS`] for
/// `k-fold`.
pub(super) fn power(
    points: &[(f64, f64)],
    goal: &Goal,
    target: &Target,
    parts: usize,
    count: u64,
) -> Needed {
    let level = 1.0 - target.confidence;
    let mut dealer = Dealer::new(0x706c_616e);
    let contours = goal.contours();
    let (mut shown, mut chosen) = (0_u32, vec![0_u32; points.len()]);
    for _ in 0..TRIALS {
        let table = Table::draw(points, parts, count, &mut dealer);
        let shows = if parts == 2 {
            let place = table.choose(0, goal);
            chosen[place] += 1;
            goal.shown(&rates::clopper_pearson(&table.errors(place, |part| part == 1), level))
        } else {
            let folds: Vec<Errors> = (0..parts)
                .map(|fold| {
                    let place = table.choose(fold, goal);
                    chosen[place] += 1;
                    table.errors(place, |part| part != fold)
                })
                .collect();
            match &contours {
                Some(contours) => {
                    let sum: f64 = folds.iter().map(|errors| p_value(errors, contours)).sum();
                    2.0 * sum / parts as f64 <= level
                }
                None => folds.iter().any(|errors| {
                    goal.shown(&rates::clopper_pearson(errors, level / FOLDS as f64))
                }),
            }
        };
        shown += u32::from(shows);
    }
    let share = f64::from(shown) / f64::from(TRIALS);
    let error = (share * (1.0 - share) / f64::from(TRIALS)).sqrt();
    let usual = (0..points.len()).max_by_key(|place| chosen[*place]).unwrap_or(0);
    let (fpr, tpr) = points[usual];
    Needed { count, power: (share - 2.0 * error).max(0.0), fpr, tpr, simulated: true }
}

/// Counts at or above each cut, for each part.
struct Table {
    sizes: Vec<u64>,
    false_positives: Vec<Vec<u64>>,
    true_positives: Vec<Vec<u64>>,
}

impl Table {
    fn draw(points: &[(f64, f64)], parts: usize, count: u64, dealer: &mut Dealer) -> Self {
        let share = |part: u64| count * (part + 1) / parts as u64 - count * part / parts as u64;
        let sizes: Vec<u64> = (0..parts as u64).map(share).collect();
        let side = |rate: &dyn Fn(&(f64, f64)) -> f64, dealer: &mut Dealer| {
            sizes
                .iter()
                .map(|&size| {
                    // Given what lies above the last cut, the rest falls above the next one with
                    // the conditional probability.
                    let (mut above, mut reached) = (0, 0.0);
                    points
                        .iter()
                        .map(|point| {
                            let next = rate(point);
                            let step = ((next - reached) / (1.0 - reached)).clamp(0.0, 1.0);
                            above += binomial(size - above, step, dealer);
                            reached = next;
                            above
                        })
                        .collect()
                })
                .collect::<Vec<Vec<u64>>>()
        };
        let false_positives = side(&|point| point.0, dealer);
        let true_positives = side(&|point| point.1, dealer);
        Self { sizes, false_positives, true_positives }
    }

    fn errors(&self, place: usize, counts: impl Fn(usize) -> bool) -> Errors {
        let mut errors =
            Errors { false_positives: 0, nonmembers: 0, false_negatives: 0, members: 0 };
        for part in (0..self.sizes.len()).filter(|part| counts(*part)) {
            errors.nonmembers += self.sizes[part];
            errors.members += self.sizes[part];
            errors.false_positives += self.false_positives[part][place];
            errors.false_negatives += self.sizes[part] - self.true_positives[part][place];
        }
        errors
    }

    /// The cut that looks best to one part, as the rule itself chooses.
    fn choose(&self, part: usize, goal: &Goal) -> usize {
        let statistic = goal.chooser();
        let mut best = (0, f64::NEG_INFINITY);
        for place in 0..self.false_positives[part].len() {
            let errors = self.errors(place, |other| other == part);
            let value = statistic.value(&RateBounds::wilson(&errors, 1.96));
            if value > best.1 {
                best = (place, value);
            }
        }
        best.0
    }
}

/// A draw from Binomial(n, p).
fn binomial(n: u64, p: f64, dealer: &mut Dealer) -> u64 {
    if n == 0 || p <= 0.0 {
        return 0;
    }
    if p >= 1.0 {
        return n;
    }
    if p > 0.5 {
        return n - binomial(n, 1.0 - p, dealer);
    }
    let uniform = ((dealer.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    let (size, mean) = (n as f64, n as f64 * p);
    if mean < 30.0 {
        let mut mass = (size * (-p).ln_1p()).exp();
        let (mut sum, mut k) = (mass, 0_u64);
        while sum < uniform && k < n {
            k += 1;
            mass *= (size - k as f64 + 1.0) / k as f64 * p / (1.0 - p);
            sum += mass;
            if mass < 1e-18 && k as f64 > mean {
                break;
            }
        }
        return k;
    }
    let z = inverse_normal_cdf(uniform);
    let skew = (1.0 - 2.0 * p) / 6.0 * (z * z - 1.0);
    (mean + (mean * (1.0 - p)).sqrt() * z + skew).round().clamp(0.0, size) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_mean_and_variance_of_the_binomial() {
        let mut dealer = Dealer::new(5);
        for (n, p) in [(10_u64, 0.3), (1000, 0.01), (1000, 0.2), (100_000, 0.9)] {
            let draws: Vec<f64> = (0..20_000).map(|_| binomial(n, p, &mut dealer) as f64).collect();
            let mean = draws.iter().sum::<f64>() / 2e4;
            let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 2e4;
            let (expected, spread) = (n as f64 * p, n as f64 * p * (1.0 - p));
            // Four standard errors of a mean and of a variance (kurtosis near 3).
            assert!((mean - expected).abs() < 4.0 * (spread / 2e4).sqrt(), "{n} {p}: {mean}");
            assert!((variance / spread - 1.0).abs() < 4.5 * (2.0_f64 / 2e4).sqrt(), "{n} {p}");
        }
    }
}
