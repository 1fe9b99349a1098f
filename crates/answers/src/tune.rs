//! `tune`: hyper-parameters and empirical privacy, asked of a table of results.

use crate::flags::{nonnegative_integer, real, word};
use crate::several::several;
use crate::{Document, Refusal};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::path::Path;
use tuning::profiles::{Profiles, profiles};
use tuning::regression::{Errors, Regression, RegressionOptions, Unit, regress};
use tuning::search::{SearchCost, Trials, search_table};
use tuning::selection::{Better, Selection, select};
use tuning::{EpsilonGroup, Ranking, TrainingTable, TuningError, rank};
use vocabulary::Figure;

/// What is asked of the table.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "question", rename_all = "kebab-case")]
pub enum TuneQuestion {
    /// Which hyper-parameters explain memorisation.
    Regress(RegressQuestion),
    /// How much memorisation varies at one epsilon, and how often the heuristics are right.
    Rank(RankQuestion),
    /// Which configuration to choose, and what the choice costs against the oracle.
    Select(SelectQuestion),
    /// What accounting says of the same configurations.
    Profiles(ProfilesQuestion),
    /// The epsilon of a search with a random number of trials.
    Search(SearchQuestion),
}

#[derive(Clone, Debug, Default, Deserialize, Args)]
#[serde(deny_unknown_fields, default)]
pub struct RegressQuestion {
    /// Which score; needed if there are several score_* columns
    #[arg(long, value_name = "NAME")]
    pub score: Option<String>,
    /// Only the runs at this epsilon
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true)]
    pub epsilon: Option<f64>,
    /// What one observation is: a configuration (the mean over its seeds) or a run
    #[arg(long, value_parser = word::<Unit>(["configurations", "runs"]), default_value = "configurations")]
    pub unit: Unit,
    /// How errors are estimated [default: hc3 for configurations, clustered by configuration for runs]
    #[arg(long, value_parser = word::<Errors>(["classical", "hc1", "hc3", "configuration", "seed"]))]
    pub errors: Option<Errors>,
    /// Base of the logarithms [default: e]
    #[arg(long, value_name = "BASE", value_parser = real, allow_hyphen_values = true)]
    pub log_base: Option<f64>,
    /// Regressors and score in units of their standard deviation
    #[arg(long)]
    pub standardize: bool,
    /// Confidence of the intervals
    #[arg(long, value_name = "C", value_parser = real, default_value = "0.95", allow_hyphen_values = true)]
    pub confidence: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize, Args)]
#[serde(deny_unknown_fields, default)]
pub struct RankQuestion {
    /// Which score; needed if there are several score_* columns
    #[arg(long, value_name = "NAME")]
    pub score: Option<String>,
    /// Only the runs at this epsilon
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true)]
    pub epsilon: Option<f64>,
    /// Confidence of the intervals
    #[arg(long, value_name = "C", value_parser = real, default_value = "0.95", allow_hyphen_values = true)]
    pub confidence: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize, Args)]
#[serde(deny_unknown_fields, default)]
pub struct SelectQuestion {
    /// Which score; needed if there are several score_* columns
    #[arg(long, value_name = "NAME")]
    pub score: Option<String>,
    /// Only the runs at this epsilon
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true)]
    pub epsilon: Option<f64>,
    /// Choose among configurations with at least this utility (at most, with
    /// --lower-utility-is-better) [default: the median]
    #[arg(long, value_name = "U", value_parser = real, value_delimiter = ',', allow_hyphen_values = true)]
    #[serde(deserialize_with = "several")]
    pub min_utility: Vec<f64>,
    /// Utility is a loss or a perplexity
    #[arg(long)]
    pub lower_utility_is_better: bool,
}

#[derive(Clone, Debug, Deserialize, Args)]
#[serde(deny_unknown_fields)]
pub struct ProfilesQuestion {
    /// Which score; needed if there are several score_* columns
    #[arg(long, value_name = "NAME")]
    #[serde(default)]
    pub score: Option<String>,
    /// Only the runs at this epsilon
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true)]
    #[serde(default)]
    pub epsilon: Option<f64>,
    /// Records in the training data
    #[arg(long, value_name = "N", value_parser = nonnegative_integer)]
    pub dataset_size: u64,
}

#[derive(Clone, Debug, Deserialize, Args)]
#[serde(deny_unknown_fields)]
pub struct SearchQuestion {
    /// Only the configurations at this epsilon
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true)]
    #[serde(default)]
    pub epsilon: Option<f64>,
    /// Records in the training data
    #[arg(long, value_name = "N", value_parser = nonnegative_integer)]
    pub dataset_size: u64,
    /// Expected number of trials
    #[arg(long, value_name = "M", value_parser = real, allow_hyphen_values = true)]
    pub expected_trials: f64,
    /// How the number of trials is drawn
    #[arg(long, value_parser = word::<Trials>(["geometric", "logarithmic", "poisson"]), default_value = "geometric")]
    #[serde(default)]
    pub trials: Trials,
    /// Delta of the search [default: the table's]
    #[arg(short = 'd', long, value_name = "D", value_parser = real, allow_hyphen_values = true)]
    #[serde(default)]
    pub delta: Option<f64>,
}

/// The answer: the document of the question.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Tuned {
    Regression(Regression),
    Ranking(Ranking),
    Selection(Selection),
    Profiles(Profiles),
    Search(SearchCost),
}

/// The confidence of intervals, where none is asked for.
const CONFIDENCE: f64 = 0.95;

/// Reads a table of trainings: CSV, JSONL or Parquet.
///
/// # Errors
/// Names the file, the line and the value that is wrong.
pub fn read_trainings(path: &Path) -> Result<TrainingTable, Refusal> {
    Ok(TrainingTable::read(path)?)
}

/// Asks the table.
///
/// # Errors
/// A question that does not fit the table, and a table that says too little.
pub fn tune(question: &TuneQuestion, table: &TrainingTable) -> Result<Tuned, Refusal> {
    match question {
        TuneQuestion::Regress(asked) => {
            let (score, groups) = chosen(table, asked.score.as_deref(), asked.epsilon)?;
            let default = RegressionOptions::default();
            let options = RegressionOptions {
                unit: asked.unit,
                errors: asked.errors,
                confidence: asked.confidence.unwrap_or(default.confidence),
                log_base: asked.log_base.unwrap_or(default.log_base),
                standardise: asked.standardize,
            };
            Ok(Tuned::Regression(regress(&groups, score, &options)?))
        }
        TuneQuestion::Rank(asked) => {
            let (score, groups) = chosen(table, asked.score.as_deref(), asked.epsilon)?;
            Ok(Tuned::Ranking(rank(&groups, score, asked.confidence.unwrap_or(CONFIDENCE))?))
        }
        TuneQuestion::Select(asked) => {
            let (score, groups) = chosen(table, asked.score.as_deref(), asked.epsilon)?;
            let better = if asked.lower_utility_is_better { Better::Lower } else { Better::Higher };
            Ok(Tuned::Selection(select(&groups, score, &asked.min_utility, better)?))
        }
        TuneQuestion::Profiles(asked) => {
            let (score, groups) = chosen(table, asked.score.as_deref(), asked.epsilon)?;
            Ok(Tuned::Profiles(profiles(&groups, score, asked.dataset_size)?))
        }
        TuneQuestion::Search(asked) => {
            let (trials, mean) = (asked.trials, asked.expected_trials);
            let size = asked.dataset_size;
            let found = search_table(table, asked.epsilon, size, mean, trials, asked.delta)?;
            Ok(Tuned::Search(found))
        }
    }
}

/// The score's name and the groups asked for.
fn chosen<'a>(
    table: &'a TrainingTable,
    score: Option<&str>,
    epsilon: Option<f64>,
) -> Result<(&'a str, Vec<EpsilonGroup>), Refusal> {
    let score = table.score(score)?;
    let mut groups = tuning::groups(table, score)?;
    if let Some(epsilon) = epsilon {
        let known: Vec<String> = groups.iter().map(|g| g.epsilon.to_string()).collect();
        groups.retain(|group| group.epsilon == epsilon);
        if groups.is_empty() {
            return Err(Refusal::bad_input(format!(
                "no run has epsilon {epsilon}; the table has {}",
                known.join(", ")
            )));
        }
    }
    Ok((&table.scores[score], groups))
}

impl Tuned {
    /// The answer as a picture.
    ///
    /// # Errors
    /// An answer about several epsilons, where the picture shows one, and one without a picture.
    pub fn figure(&self) -> Result<Figure, Refusal> {
        match self {
            Self::Regression(found) => Ok(tuning::figures::regression(found)),
            Self::Ranking(found) => Ok(tuning::figures::ranking(found)),
            Self::Selection(found) => {
                one(found.groups.iter().map(|group| group.epsilon))?;
                Ok(tuning::figures::selection(found, 0))
            }
            Self::Profiles(found) => {
                one(found.groups.iter().map(|group| group.epsilon))?;
                Ok(tuning::figures::profiles(found, 0))
            }
            Self::Search(_) => Err(Refusal::bad_input("a search has no figure")),
        }
    }
}

/// The picture shows one epsilon.
fn one(epsilons: impl ExactSizeIterator<Item = f64>) -> Result<(), Refusal> {
    if epsilons.len() == 1 {
        return Ok(());
    }
    let known: Vec<String> = epsilons.map(|epsilon| epsilon.to_string()).collect();
    Err(Refusal::bad_input("this figure shows one epsilon")
        .hint(format!("choose one with --epsilon: {}", known.join(", "))))
}

impl Document for Tuned {
    fn warnings(&self) -> Vec<String> {
        match self {
            Self::Regression(found) => found.warnings.clone(),
            Self::Ranking(found) => found.warnings.clone(),
            Self::Selection(found) => found.warnings.clone(),
            Self::Profiles(found) => found.warnings.clone(),
            Self::Search(_) => Vec::new(),
        }
    }
}

impl From<TuningError> for Refusal {
    fn from(error: TuningError) -> Self {
        match error {
            TuningError::Accounting(error) => error.into(),
            TuningError::Run(error) => error.into(),
            TuningError::InvalidInput(problem) => problem.into(),
            TuningError::TooLittle(message) => Self::new(crate::Kind::NotCertified, message),
            TuningError::Read { .. } => Self::bad_input(error.to_string())
                .hint("give a CSV, JSONL or Parquet table of results, one row per training"),
            other => Self::bad_input(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TrainingTable {
        let mut text = String::from(
            "batch_size,steps,learning_rate,clip_norm,epsilon,delta,seed,score_vmr,utility\n",
        );
        for (b, t, s) in [(32, 100, 0), (32, 400, 0), (64, 100, 1), (64, 400, 1)] {
            let score = f64::from(b * t) / 9e4;
            text.push_str(&format!("{b},{t},0.1,1,8,1e-5,{s},{score},0.9\n"));
        }
        TrainingTable::from_csv(&text, "table").unwrap()
    }

    #[test]
    fn a_question_is_read_and_answered() {
        let question: TuneQuestion = crate::parse(r#"{"question": "rank", "epsilon": 8}"#).unwrap();
        let answer = tune(&question, &table()).unwrap();
        assert!(answer.text().contains("dosimeter.tune-rank/1"));
        assert!(answer.figure().is_ok());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for text in [
            r#"{"question": "rank", "depth": 3}"#,
            r#"{"question": "guess"}"#,
            r#"{"question": "profiles"}"#,
        ] {
            assert!(crate::parse::<TuneQuestion>(text).is_err(), "{text}");
        }
        let question: TuneQuestion = crate::parse(r#"{"question": "rank", "epsilon": 3}"#).unwrap();
        let refused = tune(&question, &table()).unwrap_err();
        assert!(refused.message.contains("the table has 8"), "{refused}");
    }
}
