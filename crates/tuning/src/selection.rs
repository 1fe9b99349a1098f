//! Choosing one configuration among those that are useful enough, and what the choice costs.
//!
//! Algorithm 1 of Hu et al. (2025), as far as summaries tell (not verified against the text):
//! among the configurations that meet a utility threshold, (1) keep the smallest learning rate of
//! every U-class, (2) the largest batch of every (U, C)-class, (3) drop what another kept one
//! dominates under the Individual rule, (4) of the rest take the worst utility. It never looks at
//! a score. Compared with: best utility, worst utility, one drawn at random, and the oracle (the
//! lowest score), which no one has.
//!
//! Risk of a choice s with oracle o and the most memorising candidate m: excess =
//! (s - o)/o, and normalised = (s - o)/(m - o).

use crate::configuration::same;
use crate::heuristics::Rule;
use crate::{Configuration, EpsilonGroup, STATEMENT, TuningError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a configuration is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Chooser {
    Algorithm1,
    BestUtility,
    WorstUtility,
    /// The average over all candidates.
    Random,
    Oracle,
}

impl Chooser {
    pub const ALL: [Chooser; 5] = [
        Chooser::Algorithm1,
        Chooser::BestUtility,
        Chooser::WorstUtility,
        Chooser::Random,
        Chooser::Oracle,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Chooser::Algorithm1 => "algorithm-1",
            Chooser::BestUtility => "best-utility",
            Chooser::WorstUtility => "worst-utility",
            Chooser::Random => "random",
            Chooser::Oracle => "oracle",
        }
    }
}

/// Which way utility points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    #[default]
    Higher,
    /// Losses and perplexities.
    Lower,
}

/// A choice at one threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    pub chooser: Chooser,
    /// Its place among the group's configurations; absent for `random`.
    pub configuration: Option<usize>,
    pub name: Option<String>,
    pub utility: Option<f64>,
    pub score: f64,
    /// (score - oracle) / oracle; absent where the oracle's score is not above 0.
    pub excess: Option<f64>,
    /// (score - oracle) / (worst candidate - oracle); 0 where all candidates are equal.
    pub normalised: f64,
}

/// All choices at one threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AtThreshold {
    pub threshold: f64,
    pub candidates: usize,
    pub choices: Vec<Choice>,
}

/// A chooser's risk averaged over every threshold that leaves at least two candidates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AverageRisk {
    pub chooser: Chooser,
    pub thresholds: usize,
    pub excess: Option<f64>,
    pub normalised: f64,
}

/// Selection at one (epsilon, delta).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupSelection {
    pub epsilon: f64,
    pub delta: f64,
    pub configurations: Vec<Configuration>,
    /// The thresholds asked for, or the median utility.
    pub at: Vec<AtThreshold>,
    pub average: Vec<AverageRisk>,
}

/// The `dosimeter.tune-select/1` document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Selection {
    pub schema: String,
    pub score: String,
    pub better_utility: Better,
    pub groups: Vec<GroupSelection>,
    /// Averaged over the groups.
    pub average: Vec<AverageRisk>,
    pub statement: String,
    pub warnings: Vec<String>,
}

impl Selection {
    pub const SCHEMA: &'static str = "dosimeter.tune-select/1";
}

/// Selects in every group. Without thresholds the choice is shown at the median utility.
///
/// # Errors
/// `InvalidInput` where a configuration has no utility or no candidate meets a threshold.
pub fn select(
    groups: &[EpsilonGroup],
    score: &str,
    thresholds: &[f64],
    better: Better,
) -> Result<Selection, TuningError> {
    let mut warnings = vec![
        "the oracle is chosen by the same noisy scores that it is measured by, so risks relative to it are somewhat too large".to_owned(),
        "the algorithm is implemented from summaries of the paper, not verified against its text".to_owned(),
    ];
    let mut found = Vec::new();
    for group in groups {
        let utilities = utilities(group, better)?;
        if group.configurations.len() < 2 {
            warnings.push(format!(
                "at epsilon {} there is one configuration; there is nothing to choose",
                group.epsilon
            ));
        }
        let mut sorted = utilities.clone();
        sorted.sort_by(f64::total_cmp);
        let shown: Vec<f64> = if thresholds.is_empty() {
            // Of the two middle ones the lower, so that at least half are candidates.
            vec![sorted[(sorted.len() - 1) / 2]]
        } else {
            thresholds.iter().map(|t| signed(*t, better)).collect()
        };
        let mut at = Vec::new();
        for threshold in shown {
            let candidates = candidates(&utilities, threshold);
            if candidates.is_empty() {
                return Err(TuningError::invalid(format!(
                    "no configuration at epsilon {} meets utility {}; the best has {}",
                    group.epsilon,
                    signed(threshold, better),
                    signed(sorted[sorted.len() - 1], better)
                )));
            }
            at.push(at_threshold(
                group,
                &utilities,
                &candidates,
                signed(threshold, better),
                better,
            ));
        }
        sorted.dedup();
        let every: Vec<AtThreshold> = sorted
            .iter()
            .map(|threshold| (threshold, candidates(&utilities, *threshold)))
            .filter(|(_, candidates)| candidates.len() >= 2)
            .map(|(threshold, candidates)| {
                at_threshold(group, &utilities, &candidates, signed(*threshold, better), better)
            })
            .collect();
        found.push(GroupSelection {
            epsilon: group.epsilon,
            delta: group.delta,
            configurations: group.configurations.clone(),
            at,
            average: average(&every),
        });
    }
    let average = over_groups(&found);
    Ok(Selection {
        schema: Selection::SCHEMA.into(),
        score: score.into(),
        better_utility: better,
        groups: found,
        average,
        statement: STATEMENT.into(),
        warnings,
    })
}

/// The place that Algorithm 1 chooses among `candidates`, given utilities of which larger is better.
pub(crate) fn algorithm_1(
    configurations: &[Configuration],
    candidates: &[usize],
    utilities: &[f64],
) -> Option<usize> {
    let class = |a: &Configuration, b: &Configuration| {
        a.clip_norm == b.clip_norm && same(a.log_updates(), b.log_updates())
    };
    let one = |i: &usize| &configurations[*i];
    let smallest_rate: Vec<usize> = candidates
        .iter()
        .copied()
        .filter(|i| {
            !candidates.iter().any(|j| class(one(i), one(j)) && Rule::Updates.safer(one(j), one(i)))
        })
        .collect();
    let largest_batch: Vec<usize> = smallest_rate
        .iter()
        .copied()
        .filter(|i| !smallest_rate.iter().any(|j| Rule::Compute.safer(one(j), one(i))))
        .collect();
    let undominated = largest_batch.iter().copied().filter(|i| {
        !largest_batch.iter().any(|j| j != i && Rule::Individual.safer(one(j), one(i)))
    });
    undominated.min_by(|a, b| utilities[*a].total_cmp(&utilities[*b]))
}

/// Utilities turned so that larger is better.
fn utilities(group: &EpsilonGroup, better: Better) -> Result<Vec<f64>, TuningError> {
    let one = |c: &Configuration| {
        c.utility.map(|utility| signed(utility, better)).ok_or_else(|| {
            TuningError::invalid(format!(
                "{} at epsilon {} has no utility; selection needs the column `utility`",
                c.name(),
                group.epsilon
            ))
        })
    };
    group.configurations.iter().map(one).collect()
}

fn signed(utility: f64, better: Better) -> f64 {
    match better {
        Better::Higher => utility,
        Better::Lower => -utility,
    }
}

fn candidates(utilities: &[f64], threshold: f64) -> Vec<usize> {
    (0..utilities.len()).filter(|i| utilities[*i] >= threshold).collect()
}

fn at_threshold(
    group: &EpsilonGroup,
    utilities: &[f64],
    candidates: &[usize],
    threshold: f64,
    better: Better,
) -> AtThreshold {
    let scores = |i: &usize| group.configurations[*i].score;
    let by = |key: &dyn Fn(usize) -> f64| {
        candidates.iter().copied().min_by(|a, b| key(*a).total_cmp(&key(*b)))
    };
    let lowest = candidates.iter().map(scores).fold(f64::INFINITY, f64::min);
    let highest = candidates.iter().map(scores).fold(f64::NEG_INFINITY, f64::max);
    let mut choices = Vec::new();
    for chooser in Chooser::ALL {
        let place = match chooser {
            Chooser::Algorithm1 => algorithm_1(&group.configurations, candidates, utilities),
            Chooser::BestUtility => by(&|i| -utilities[i]),
            Chooser::WorstUtility => by(&|i| utilities[i]),
            Chooser::Oracle => by(&|i| group.configurations[i].score),
            Chooser::Random => None,
        };
        let score = match place {
            Some(place) => group.configurations[place].score,
            None => candidates.iter().map(scores).sum::<f64>() / candidates.len() as f64,
        };
        choices.push(Choice {
            chooser,
            configuration: place,
            name: place.map(|place| group.configurations[place].name()),
            utility: place.map(|place| signed(utilities[place], better)),
            score,
            excess: (lowest > 0.0).then(|| (score - lowest) / lowest),
            normalised: if highest > lowest { (score - lowest) / (highest - lowest) } else { 0.0 },
        });
    }
    AtThreshold { threshold, candidates: candidates.len(), choices }
}

fn average(every: &[AtThreshold]) -> Vec<AverageRisk> {
    if every.is_empty() {
        return Vec::new();
    }
    let n = every.len();
    Chooser::ALL
        .into_iter()
        .enumerate()
        .map(|(i, chooser)| {
            let excess: Option<f64> = every.iter().map(|at| at.choices[i].excess).sum();
            AverageRisk {
                chooser,
                thresholds: n,
                excess: excess.map(|sum| sum / n as f64),
                normalised: every.iter().map(|at| at.choices[i].normalised).sum::<f64>() / n as f64,
            }
        })
        .collect()
}

fn over_groups(groups: &[GroupSelection]) -> Vec<AverageRisk> {
    let with: Vec<&GroupSelection> = groups.iter().filter(|g| !g.average.is_empty()).collect();
    if with.is_empty() {
        return Vec::new();
    }
    let n = with.len() as f64;
    Chooser::ALL
        .into_iter()
        .enumerate()
        .map(|(i, chooser)| {
            let excess: Option<f64> = with.iter().map(|g| g.average[i].excess).sum();
            AverageRisk {
                chooser,
                thresholds: with.iter().map(|g| g.average[i].thresholds).sum(),
                excess: excess.map(|sum| sum / n),
                normalised: with.iter().map(|g| g.average[i].normalised).sum::<f64>() / n,
            }
        })
        .collect()
}
