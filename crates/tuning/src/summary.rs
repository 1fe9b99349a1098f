//! Everything about the scores at each (epsilon, delta) in one document: spread, the rules'
//! accuracy, correlations, and the configurations in order of what they memorise.

use crate::heuristics::{Accuracy, accuracies};
use crate::ranks::{Correlation, correlate};
use crate::spread::{Spread, spread};
use crate::{Configuration, EpsilonGroup, STATEMENT, TuningError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::Problem;

/// One (epsilon, delta).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupRanking {
    pub epsilon: f64,
    pub delta: f64,
    /// From the least memorising to the most.
    pub configurations: Vec<Configuration>,
    pub spread: Spread,
    pub heuristics: Vec<Accuracy>,
    /// Of configurations' means.
    pub correlations: Vec<Correlation>,
    /// Runs left out because they have no such score.
    pub runs_without_score: usize,
}

/// The `dosimeter.tune-rank/1` document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ranking {
    pub schema: String,
    pub score: String,
    pub confidence: f64,
    pub groups: Vec<GroupRanking>,
    /// The rules over all groups together.
    pub heuristics: Vec<Accuracy>,
    pub statement: String,
    pub warnings: Vec<String>,
}

impl Ranking {
    pub const SCHEMA: &'static str = "dosimeter.tune-rank/1";
}

/// Ranks the configurations of every group.
///
/// # Errors
/// `InvalidInput` for a confidence outside (0, 1).
pub fn rank(groups: &[EpsilonGroup], score: &str, confidence: f64) -> Result<Ranking, TuningError> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(TuningError::invalid(Problem::outside("confidence", confidence, "(0, 1)")));
    }
    let mut warnings = Vec::new();
    let mut found = Vec::new();
    for group in groups {
        let spread = spread(group, confidence);
        if spread.seed_noise.is_none() {
            warnings.push(format!(
                "at epsilon {} no configuration has two runs: what seeds do and what hyper-parameters do cannot be told apart",
                group.epsilon
            ));
        }
        if group.without_score > 0 {
            warnings.push(format!(
                "at epsilon {} {} runs have no such score and are left out",
                group.epsilon, group.without_score
            ));
        }
        let mut configurations = group.configurations.clone();
        configurations.sort_by(|a, b| a.score.total_cmp(&b.score));
        found.push(GroupRanking {
            epsilon: group.epsilon,
            delta: group.delta,
            correlations: correlations(group, score, confidence),
            heuristics: accuracies(&[group], confidence),
            spread,
            configurations,
            runs_without_score: group.without_score,
        });
    }
    Ok(Ranking {
        schema: Ranking::SCHEMA.into(),
        score: score.into(),
        confidence,
        groups: found,
        heuristics: accuracies(&groups.iter().collect::<Vec<_>>(), confidence),
        statement: STATEMENT.into(),
        warnings,
    })
}

/// Audited epsilon with score and utility, score with utility and with the composites.
fn correlations(group: &EpsilonGroup, score: &str, confidence: f64) -> Vec<Correlation> {
    type Column<'a> = (&'a str, fn(&Configuration) -> Option<f64>);
    let score_of: Column = (score, |c| Some(c.score));
    let utility: Column = ("utility", |c| c.utility);
    let audit: Column = ("audit_epsilon", |c| c.audit_epsilon);
    let compute: Column = ("C = bT", |c| Some(c.log_compute()));
    let updates: Column = ("U = bT eta", |c| Some(c.log_updates()));
    let pairs = [
        (audit, score_of),
        (audit, utility),
        (score_of, utility),
        (score_of, compute),
        (score_of, updates),
    ];
    pairs
        .into_iter()
        .filter_map(|((of, a), (with, b))| {
            let both = group.configurations.iter().filter_map(|c| Some((a(c)?, b(c)?)));
            let (x, y): (Vec<f64>, Vec<f64>) = both.unzip();
            correlate(of, with, &x, &y, confidence)
        })
        .collect()
}
