//! The three pairwise rules of Hu et al. (2025, section 5) and how often they are right.
//!
//! At one (epsilon, delta), with C = bT and U = bT eta:
//!
//! - **Updates**: equal U, then the smaller learning rate is safer.
//! - **Compute**: equal U and C (hence equal learning rate), then the larger batch is safer.
//! - **Individual**: one is at most the other in b, T and eta, and smaller in one: it is safer.
//!
//! Accuracy: over all pairs to which a rule applies (equal clip norm), the share in which the one
//! called safer has the smaller score; equal scores count one half; guessing gives one half.
//!
//! Pairs share configurations, so they are not independent. The interval is that of Clopper and
//! Pearson for the number of independent pairs that would have the same variance, which a
//! jackknife over configurations estimates (Korn and Graubard 1998). Where the jackknife sees no
//! variance (all right, or all wrong) that number is how many pairs share no configuration.

use crate::configuration::same;
use crate::{Configuration, EpsilonGroup, student_quantile};
use numerics::beta::{beta_lower_quantile, beta_upper_quantile};
use numerics::special::inverse_normal_cdf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rule that calls one of two configurations safer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    Updates,
    Compute,
    Individual,
}

impl Rule {
    pub const ALL: [Rule; 3] = [Rule::Updates, Rule::Compute, Rule::Individual];

    pub fn as_str(self) -> &'static str {
        match self {
            Rule::Updates => "updates",
            Rule::Compute => "compute",
            Rule::Individual => "individual",
        }
    }

    /// Whether `a` is called safer than `b`; false also where the rule does not apply.
    pub fn safer(self, a: &Configuration, b: &Configuration) -> bool {
        if a.clip_norm != b.clip_norm {
            return false;
        }
        let equal_updates = same(a.log_updates(), b.log_updates());
        let equal_rate = same(a.learning_rate.ln(), b.learning_rate.ln());
        match self {
            Rule::Updates => equal_updates && !equal_rate && a.learning_rate < b.learning_rate,
            Rule::Compute => {
                equal_updates
                    && same(a.log_compute(), b.log_compute())
                    && !same(a.batch_size.ln(), b.batch_size.ln())
                    && a.batch_size > b.batch_size
            }
            Rule::Individual => {
                let at_most = a.batch_size <= b.batch_size
                    && a.steps <= b.steps
                    && a.learning_rate <= b.learning_rate;
                let smaller = a.batch_size < b.batch_size
                    || a.steps < b.steps
                    || a.learning_rate < b.learning_rate;
                at_most && smaller
            }
        }
    }
}

/// How often a rule is right.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Accuracy {
    pub rule: Rule,
    /// Pairs to which the rule applies.
    pub pairs: usize,
    /// Absent where it applies to none.
    pub accuracy: Option<f64>,
    pub lower: Option<f64>,
    pub upper: Option<f64>,
    pub ties: usize,
    /// Independent pairs with the same variance.
    pub effective_pairs: Option<f64>,
    /// Pairs whose scores differ by more than two standard errors of seed noise.
    pub clear_pairs: Option<usize>,
    pub clear_accuracy: Option<f64>,
}

/// (safer, other, points: 1 right, 1/2 tie, 0 wrong), over numbered configurations.
type Pair = (usize, usize, f64);

/// The accuracy of every rule over one or more groups; pairs are formed within a group.
pub fn accuracies(groups: &[&EpsilonGroup], confidence: f64) -> Vec<Accuracy> {
    Rule::ALL.into_iter().map(|rule| accuracy(rule, groups, confidence)).collect()
}

fn accuracy(rule: Rule, groups: &[&EpsilonGroup], confidence: f64) -> Accuracy {
    let mut pairs: Vec<Pair> = Vec::new();
    let (mut clear, mut clear_points, mut seeds_repeat) = (0, 0.0, false);
    let mut offset = 0;
    for group in groups {
        let noise = crate::spread::spread(group, confidence).seed_noise;
        seeds_repeat |= noise.is_some();
        let means: Vec<f64> = group.configurations.iter().map(|c| c.score).collect();
        let means = crate::ranks::snapped(&means);
        for (i, a) in group.configurations.iter().enumerate() {
            for (j, b) in group.configurations.iter().enumerate() {
                if i == j || !rule.safer(a, b) {
                    continue;
                }
                let points = match means[i].partial_cmp(&means[j]) {
                    Some(std::cmp::Ordering::Less) => 1.0,
                    Some(std::cmp::Ordering::Equal) => 0.5,
                    _ => 0.0,
                };
                pairs.push((offset + i, offset + j, points));
                if let Some(noise) = noise {
                    let inverse = 1.0 / a.run_scores.len() as f64 + 1.0 / b.run_scores.len() as f64;
                    if (a.score - b.score).abs() > 2.0 * noise * inverse.sqrt() {
                        clear += 1;
                        clear_points += points;
                    }
                }
            }
        }
        offset += group.configurations.len();
    }
    let total: f64 = pairs.iter().map(|pair| pair.2).sum();
    let mut found = Accuracy {
        rule,
        pairs: pairs.len(),
        accuracy: None,
        lower: None,
        upper: None,
        ties: pairs.iter().filter(|pair| pair.2 == 0.5).count(),
        effective_pairs: None,
        clear_pairs: seeds_repeat.then_some(clear),
        clear_accuracy: (clear > 0).then(|| clear_points / f64::from(clear as u32)),
    };
    if pairs.is_empty() {
        return found;
    }
    let share = total / pairs.len() as f64;
    let effective = effective_pairs(&pairs, offset, share, confidence);
    let (lower, upper) = clopper_pearson(share, effective, confidence);
    found.accuracy = Some(share);
    found.lower = Some(lower);
    found.upper = Some(upper);
    found.effective_pairs = Some(effective);
    found
}

fn effective_pairs(pairs: &[Pair], configurations: usize, share: f64, confidence: f64) -> f64 {
    let disjoint = disjoint_pairs(pairs);
    let total: f64 = pairs.iter().map(|pair| pair.2).sum();
    // Leaving a configuration out leaves all its pairs out.
    let (mut points, mut counts) = (vec![0.0; configurations], vec![0_usize; configurations]);
    for &(a, b, value) in pairs {
        for place in [a, b] {
            points[place] += value;
            counts[place] += 1;
        }
    }
    let without: Vec<f64> = (0..configurations)
        .filter(|c| counts[*c] > 0 && counts[*c] < pairs.len())
        .map(|c| (total - points[c]) / (pairs.len() - counts[c]) as f64)
        .collect();
    let m = without.len() as f64;
    let centre = without.iter().sum::<f64>() / m.max(1.0);
    let variance = (m - 1.0) / m * without.iter().map(|x| (x - centre) * (x - centre)).sum::<f64>();
    let binomial = share * (1.0 - share);
    if without.len() < 2 || !(variance > 0.0) || !(binomial > 0.0) {
        return disjoint;
    }
    let normal = inverse_normal_cdf(0.5 + 0.5 * confidence);
    let student = student_quantile(confidence, m - 1.0);
    (binomial / variance * (normal / student).powi(2)).clamp(1.0, pairs.len() as f64)
}

/// How many pairs can be taken one after the other without using a configuration twice.
fn disjoint_pairs(pairs: &[Pair]) -> f64 {
    let mut used = Vec::new();
    let mut count = 0.0;
    for &(a, b, _) in pairs {
        if !used.contains(&a) && !used.contains(&b) {
            used.extend([a, b]);
            count += 1.0;
        }
    }
    count
}

/// The two-sided interval for a share of a (not necessarily whole) number of trials.
fn clopper_pearson(share: f64, trials: f64, confidence: f64) -> (f64, f64) {
    let tail = (0.5 * (1.0 - confidence)).ln();
    let right = share * trials;
    let wrong = trials - right;
    let lower = if right > 0.0 { beta_lower_quantile(tail, right, wrong + 1.0) } else { 0.0 };
    let upper = if wrong > 0.0 { beta_upper_quantile(tail, right + 1.0, wrong) } else { 1.0 };
    (lower, upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_give_the_usual_interval() {
        let (lower, upper) = clopper_pearson(0.8, 10.0, 0.95);
        let known = (
            numerics::beta::clopper_pearson_lower(8, 10, 0.025),
            numerics::beta::clopper_pearson_upper(8, 10, 0.025),
        );
        assert!((lower - known.0).abs() < 1e-12 && (upper - known.1).abs() < 1e-12);
        assert_eq!(clopper_pearson(1.0, 4.0, 0.95).1, 1.0);
    }

    #[test]
    fn pairs_that_share_a_configuration_are_not_counted_twice() {
        assert_eq!(disjoint_pairs(&[(0, 1, 1.0), (0, 2, 1.0), (0, 3, 1.0)]), 1.0);
        assert_eq!(disjoint_pairs(&[(0, 1, 1.0), (2, 3, 1.0)]), 2.0);
    }
}
