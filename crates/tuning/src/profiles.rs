//! What accounting says about configurations of one (epsilon, delta): they agree at that point and
//! nowhere else.
//!
//! A configuration is the pair of a run with rate q = b/n, T steps and the noise multiplier that
//! meets (epsilon, delta), or the one in the table. Its privacy profile delta(epsilon) crosses the
//! others' at the calibrated point; the last-iterate heuristic, the advantage and the true
//! positive rate at a low false positive rate differ (the second hypothesis of Hu et al. 2025:
//! the variance of memorisation could come from here). Numbers are upper ends, certified;
//! `last_iterate` is heuristic. Cost: milliseconds per configuration.

use crate::ranks::{Correlation, correlate};
use crate::{Configuration, EpsilonGroup, STATEMENT, TuningError, noise_for};
use accounting::pairs::{BinomialGaussian, Composed, LastIterateMax};
use accounting::{Pair, directions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::{AtMost, Direction, Run};

/// What one mechanism (b, T at one epsilon) leaks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mechanism {
    pub batch_size: f64,
    pub steps: u64,
    pub sample_rate: f64,
    pub noise_multiplier: f64,
    /// Whether the noise was solved for, or stood in the table.
    pub calibrated: bool,
    /// At the group's delta, all iterates: proven upper end.
    pub epsilon: f64,
    /// At the group's delta, last iterate: heuristic upper end.
    pub last_iterate: f64,
    /// The maximum of the heuristic over all shorter trainings.
    pub last_iterate_max: f64,
    pub advantage: f64,
    /// True positive rate at false positive rate 0.01.
    pub tpr: f64,
    /// Mean score of the configurations with this mechanism.
    pub score: f64,
    /// (epsilon, delta), upper ends.
    pub profile: Vec<(f64, f64)>,
}

impl Mechanism {
    /// Epsilon of all iterates and of the last one, the advantage, and the true positive rate.
    pub fn at_most(&self) -> [AtMost; 4] {
        [self.epsilon, self.last_iterate, self.advantage, self.tpr].map(AtMost::new)
    }
}

/// One (epsilon, delta).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupProfiles {
    pub epsilon: f64,
    pub delta: f64,
    pub mechanisms: Vec<Mechanism>,
    /// Pairs of mechanisms whose profiles change order at the calibrated point.
    pub crossing_pairs: usize,
    pub pairs: usize,
    /// The largest difference of two profiles on the grid, and where it is.
    pub largest_gap: f64,
    pub largest_gap_at: f64,
    pub smallest_last_iterate: f64,
    pub largest_last_iterate: f64,
    /// Of mechanisms: leakage numbers with the score.
    pub correlations: Vec<Correlation>,
}

/// The `dosimeter.tune-profiles/1` document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profiles {
    pub schema: String,
    pub score: String,
    pub dataset_size: u64,
    pub groups: Vec<GroupProfiles>,
    /// Releasing every model of the table: proven upper end of epsilon at the delta beside it.
    pub search: Vec<SearchCost>,
    pub assumptions: Vec<String>,
    pub statement: String,
    pub warnings: Vec<String>,
}

/// What all runs of a group leak together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchCost {
    pub runs: usize,
    pub epsilon: Option<f64>,
    pub delta: f64,
    /// Why there is no epsilon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl SearchCost {
    /// Epsilon of all runs together, where it could be bounded.
    pub fn epsilon_at_most(&self) -> Option<AtMost> {
        self.epsilon.map(AtMost::new)
    }
}

impl Profiles {
    pub const SCHEMA: &'static str = "dosimeter.tune-profiles/1";
}

const POINTS: u32 = 32;
const LOW_RATE: f64 = 0.01;

/// Computes the profiles of all configurations.
///
/// # Errors
/// `InvalidInput` for a batch larger than the data set; those of the accounting.
pub fn profiles(
    groups: &[EpsilonGroup],
    score: &str,
    dataset_size: u64,
) -> Result<Profiles, TuningError> {
    let (mut found, mut search, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    for group in groups {
        if group.delta > 1.0 / dataset_size as f64 {
            warnings.push(format!(
                "delta {} is above 1/n: publishing one record outright would pass",
                vocabulary::rounding::plain(group.delta)
            ));
        }
        let (profiles, phases) = of_group(group, score, dataset_size, &mut warnings)?;
        search.push(search_cost(group, phases));
        found.push(profiles);
    }
    Ok(Profiles {
        schema: Profiles::SCHEMA.into(),
        score: score.into(),
        dataset_size,
        groups: found,
        search,
        assumptions: vec![
            "Poisson batches: every record joins every batch independently with rate b/n".into(),
            "neighbouring data sets differ by adding or removing one record".into(),
            "last iterate: the loss is linear, which training does not satisfy".into(),
        ],
        statement: STATEMENT.into(),
        warnings,
    })
}

/// (noise multiplier, sample rate, steps) of every run.
type Phases = Vec<(f64, f64, u64)>;

fn of_group(
    group: &EpsilonGroup,
    score: &str,
    dataset_size: u64,
    warnings: &mut Vec<String>,
) -> Result<(GroupProfiles, Phases), TuningError> {
    let mut mechanisms: Vec<(Mechanism, usize)> = Vec::new();
    let mut phases = Phases::new();
    for c in &group.configurations {
        let sample_rate = c.batch_size / dataset_size as f64;
        if sample_rate > 1.0 {
            return Err(TuningError::invalid(format!(
                "batch size {} is larger than the data set of {dataset_size}",
                c.batch_size
            )));
        }
        let known = mechanisms.iter_mut().find(|(m, _)| {
            m.batch_size == c.batch_size
                && m.steps == c.steps
                && (c.noise_multiplier.is_none_or(|noise| noise == m.noise_multiplier))
        });
        let mechanism = match known {
            Some((mechanism, configurations)) => {
                *configurations += 1;
                mechanism.score += c.score;
                mechanism
            }
            None => {
                mechanisms.push((mechanism(group, c, sample_rate, warnings)?, 1));
                let last = mechanisms.len() - 1;
                &mut mechanisms[last].0
            }
        };
        let phase = (mechanism.noise_multiplier, sample_rate, mechanism.steps);
        phases.extend(std::iter::repeat_n(phase, c.run_scores.len()));
    }
    let mechanisms: Vec<Mechanism> = mechanisms
        .into_iter()
        .map(|(mechanism, n)| Mechanism { score: mechanism.score / n as f64, ..mechanism })
        .collect();
    let (crossing_pairs, pairs) = crossings(&mechanisms, group.epsilon);
    let (largest_gap, largest_gap_at) = largest_gap(&mechanisms);
    let last = |fold: fn(f64, f64) -> f64, start: f64| {
        mechanisms.iter().map(|m| m.last_iterate).fold(start, fold)
    };
    let scores: Vec<f64> = mechanisms.iter().map(|m| m.score).collect();
    let against = |name: &str, of: fn(&Mechanism) -> f64| {
        let values: Vec<f64> = mechanisms.iter().map(of).collect();
        correlate(name, score, &values, &scores, 0.95)
    };
    let correlations = [
        against("last-iterate epsilon", |m| m.last_iterate),
        against("advantage", |m| m.advantage),
        against("TPR at FPR 0.01", |m| m.tpr),
        against("noise multiplier", |m| m.noise_multiplier),
    ];
    let found = GroupProfiles {
        epsilon: group.epsilon,
        delta: group.delta,
        crossing_pairs,
        pairs,
        largest_gap,
        largest_gap_at,
        smallest_last_iterate: last(f64::min, f64::INFINITY),
        largest_last_iterate: last(f64::max, 0.0),
        correlations: correlations.into_iter().flatten().collect(),
        mechanisms,
    };
    Ok((found, phases))
}

fn mechanism(
    group: &EpsilonGroup,
    c: &Configuration,
    sample_rate: f64,
    warnings: &mut Vec<String>,
) -> Result<Mechanism, TuningError> {
    let mut achieved = None;
    let noise_multiplier = match c.noise_multiplier {
        Some(noise) => noise,
        None => {
            let (noise, found) = noise_for(sample_rate, c.steps, group.epsilon, group.delta)?;
            achieved = Some(found);
            noise
        }
    };
    let run = Run::builder().phase(noise_multiplier, sample_rate, c.steps).build()?;
    let all = Composed::for_run(&run)?;
    let last = BinomialGaussian::for_run(&run)?;
    let maximum = LastIterateMax::for_run(&run)?;
    let at = |pair: &dyn Pair| {
        Ok::<f64, TuningError>(directions::epsilon(pair, group.delta, Direction::Both)?.upper)
    };
    // Two certified ends of one number: the smaller one is as true.
    let epsilon = at(&all)?.min(achieved.unwrap_or(f64::INFINITY));
    if c.noise_multiplier.is_some() && (epsilon / group.epsilon - 1.0).abs() > 0.01 {
        warnings.push(format!(
            "{} has noise multiplier {noise_multiplier}, which gives epsilon {epsilon:.4} and not {}",
            c.name(),
            group.epsilon
        ));
    }
    let mut profile: Vec<(f64, f64)> = Vec::new();
    // delta falls with epsilon, so that an end that holds further left holds here too.
    let mut least = 1.0_f64;
    for i in 0..=POINTS {
        let at = 2.0 * group.epsilon * f64::from(i) / f64::from(POINTS);
        least = least.min(directions::delta(&all, at, Direction::Both)?.upper);
        profile.push((at, least));
    }
    Ok(Mechanism {
        batch_size: c.batch_size,
        steps: c.steps,
        sample_rate,
        noise_multiplier,
        calibrated: c.noise_multiplier.is_none(),
        epsilon,
        last_iterate: at(&last)?,
        last_iterate_max: at(&maximum)?,
        advantage: directions::advantage(&all)?.upper,
        tpr: directions::tpr(&all, LOW_RATE, Direction::Both)?.upper,
        score: c.score,
        profile,
    })
}

/// Pairs of mechanisms that lie one way before the calibrated point and the other way after it.
fn crossings(mechanisms: &[Mechanism], epsilon: f64) -> (usize, usize) {
    let (mut crossing, mut pairs) = (0, 0);
    let near = |m: &Mechanism, at: f64| {
        let place = m.profile.iter().min_by(|a, b| (a.0 - at).abs().total_cmp(&(b.0 - at).abs()));
        place.map_or(f64::NAN, |point| point.1)
    };
    for (i, a) in mechanisms.iter().enumerate() {
        for b in &mechanisms[..i] {
            pairs += 1;
            let before = near(a, 0.5 * epsilon) - near(b, 0.5 * epsilon);
            let after = near(a, 1.5 * epsilon) - near(b, 1.5 * epsilon);
            crossing += usize::from(before * after < 0.0);
        }
    }
    (crossing, pairs)
}

fn largest_gap(mechanisms: &[Mechanism]) -> (f64, f64) {
    let mut best = (0.0, 0.0);
    for i in 0..=POINTS as usize {
        let deltas = || mechanisms.iter().map(|m| m.profile[i].1);
        let gap = deltas().fold(0.0, f64::max) - deltas().fold(1.0, f64::min);
        if gap > best.0 {
            best = (gap, mechanisms[0].profile[i].0);
        }
    }
    best
}

/// All runs composed: what is released if every model of the sweep is.
fn search_cost(group: &EpsilonGroup, phases: Phases) -> SearchCost {
    let mut merged: Phases = Vec::new();
    for (noise, rate, steps) in phases {
        match merged.iter_mut().find(|(n, r, _)| *n == noise && *r == rate) {
            Some(phase) => phase.2 += steps,
            None => merged.push((noise, rate, steps)),
        }
    }
    let builder = merged.into_iter().fold(Run::builder(), |b, (n, r, t)| b.phase(n, r, t));
    let epsilon = builder.build().map_err(TuningError::from).and_then(|run| {
        let all = Composed::for_run(&run)?;
        Ok(directions::epsilon(&all, group.delta, Direction::Both)?.upper)
    });
    let (epsilon, reason) = match epsilon {
        Ok(epsilon) if epsilon.is_finite() => (Some(epsilon), None),
        Ok(_) => (None, Some("it is not bounded".to_owned())),
        Err(error) => (None, Some(error.to_string())),
    };
    SearchCost { runs: group.runs(), epsilon, delta: group.delta, reason }
}
