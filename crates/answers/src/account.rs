//! What a run leaks, under every lens.

use crate::flags::{nonnegative_integer, quantity, real};
use crate::run::{Described, TextFile, load};
use crate::several::several;
use crate::{Refusal, limit};
use accounting::bayes_security::attribute::{Mode, Sensitivities};
use accounting::hidden_state::Loss;
use accounting::{Questions, Subject};
use attacks::attribute::read_csv;
use clap::Args;
use random::{Purpose, Stream};
use serde::Deserialize;
use vocabulary::{Account, Aside, LensName, Problem, Quantity, Run, Sampling};

/// The question of `account`. Keys are the command's flags in snake case.
#[derive(Clone, Debug, Default, Deserialize, Args)]
#[serde(deny_unknown_fields, default)]
pub struct AccountQuestion {
    #[arg(skip)]
    pub files: Vec<TextFile>,
    #[arg(skip)]
    pub run: Described,
    /// Print epsilon and mu at this delta (may be repeated)
    #[arg(short, long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true, value_delimiter = ',', help_heading = "What to compute")]
    #[serde(deserialize_with = "several")]
    pub delta: Vec<f64>,
    /// Print delta at this epsilon (may be repeated)
    #[arg(long, value_name = "EPSILON", value_parser = real, allow_hyphen_values = true, value_delimiter = ',', help_heading = "What to compute")]
    #[serde(deserialize_with = "several")]
    pub epsilon: Vec<f64>,
    /// Print the best attack's true positive rate at this false positive rate [default: 0.001 and
    /// 0.01]
    #[arg(long, value_name = "FPR", value_parser = real, allow_hyphen_values = true, value_delimiter = ',', help_heading = "What to compute")]
    #[serde(deserialize_with = "several")]
    pub fpr: Vec<f64>,
    /// Print the success of the best reconstruction, where a blind guess succeeds with this
    /// probability (may be repeated)
    #[arg(long, value_name = "PRIOR", value_parser = real, allow_hyphen_values = true, value_delimiter = ',', help_heading = "What to compute")]
    #[serde(deserialize_with = "several")]
    pub prior: Vec<f64>,
    /// Also print adding and removing a record separately
    #[arg(long, help_heading = "What to compute")]
    pub directions: bool,
    #[arg(skip)]
    #[serde(deserialize_with = "several")]
    pub lens: Vec<LensName>,
    /// Print only this quantity, e.g. epsilon or tpr (may be repeated) [default: all]
    #[arg(long, value_name = "QUANTITY", value_parser = quantity, value_delimiter = ',', help_heading = "What to compute")]
    #[serde(deserialize_with = "several")]
    pub quantity: Vec<Quantity>,
    /// All numbers of the first proven and the first heuristic lens, the first of every other.
    #[arg(skip)]
    pub brief: bool,
    /// Print the best attacker's chance to pick the record among this many equally likely
    /// candidates
    #[arg(long, value_name = "M", value_parser = nonnegative_integer, conflicts_with = "candidate_priors", help_heading = "Guessing among candidates")]
    pub candidates: Option<u64>,
    /// The same for candidates with these probabilities, e.g. 0.5,0.3,0.2
    #[arg(long, value_name = "P,P,…", value_parser = real, allow_hyphen_values = true, value_delimiter = ',', help_heading = "Guessing among candidates")]
    #[serde(deserialize_with = "several")]
    pub candidate_priors: Vec<f64>,
    /// Print the accuracy of the best attacker who tells two secrets apart, one of which has this
    /// prior probability (may be repeated)
    #[arg(long, value_name = "PRIOR", value_parser = real, allow_hyphen_values = true, value_delimiter = ',', help_heading = "Guessing among candidates")]
    #[serde(deserialize_with = "several")]
    pub attack_prior: Vec<f64>,
    /// CSV of gradient sensitivities to a secret attribute.
    #[arg(skip)]
    pub attribute_sensitivity: Option<TextFile>,
    #[arg(skip)]
    pub attribute_mode: Option<Mode>,
    /// Constant learning rate; it multiplies the noisy sum divided by the expected batch size
    #[arg(long, value_name = "ETA", value_parser = real, allow_hyphen_values = true, requires = "smoothness", help_heading = "The loss (for the hidden-state lenses)")]
    pub learning_rate: Option<f64>,
    /// Every record's gradient is Lipschitz with this constant
    #[arg(long, value_name = "M", value_parser = real, allow_hyphen_values = true, requires = "learning_rate", help_heading = "The loss (for the hidden-state lenses)")]
    pub smoothness: Option<f64>,
    /// Every record's loss is strongly convex with this constant
    #[arg(long, value_name = "m", value_parser = real, allow_hyphen_values = true, requires = "learning_rate", help_heading = "The loss (for the hidden-state lenses)")]
    pub strong_convexity: Option<f64>,
    /// Parameters are projected onto a set of this diameter
    #[arg(long, value_name = "D", value_parser = real, allow_hyphen_values = true, requires = "learning_rate", help_heading = "The loss (for the hidden-state lenses)")]
    pub diameter: Option<f64>,
    /// With --sampling shuffle: estimate delta at each --epsilon by this many samples, as if every
    /// record were thrown into one batch per epoch
    #[arg(long, value_name = "SAMPLES", value_parser = nonnegative_integer, help_heading = "Shuffled batches")]
    pub monte_carlo: Option<u64>,
    /// Confidence of the Monte Carlo intervals
    #[arg(long, value_name = "C", value_parser = real, allow_hyphen_values = true, default_value = "0.999", requires = "monte_carlo", help_heading = "Shuffled batches")]
    pub monte_carlo_confidence: Option<f64>,
    /// Seed of the Monte Carlo samples
    #[arg(long, value_name = "SEED", value_parser = nonnegative_integer, default_value = "0", requires = "monte_carlo", help_heading = "Shuffled batches")]
    pub monte_carlo_seed: Option<u64>,
    /// Seconds of processor time that the answer may take [default: 10].
    #[arg(skip)]
    pub time_limit: Option<f64>,
}

impl AccountQuestion {
    pub(crate) fn questions(&self, notes: Vec<String>) -> Result<Questions, Refusal> {
        Ok(Questions {
            deltas: self.delta.clone(),
            epsilons: self.epsilon.clone(),
            fprs: self.fpr.clone(),
            priors: self.prior.clone(),
            directions: self.directions,
            lenses: self.lens.clone(),
            quantities: self.quantity.clone(),
            brief: self.brief,
            candidates: candidates(self)?,
            attack_priors: self.attack_prior.clone(),
            notes,
            time_limit: Some(limit::seconds(self.time_limit)?),
        })
    }
}

pub(crate) fn ask(question: &AccountQuestion) -> Result<Account, Refusal> {
    let loaded = load(&question.files, &question.run)?;
    let run = &loaded.resolved.run;
    let questions = question.questions(loaded.resolved.notes.clone())?;
    let attribute =
        sensitivities(question.attribute_sensitivity.as_ref(), question.attribute_mode)?;
    let loss = loss(question)?;
    let subject = Subject { run, loss: loss.as_ref(), attribute: attribute.as_ref() };
    let mut account = accounting::account(subject, &questions)?;
    account.asides.extend(monte_carlo(question, run)?);
    Ok(account)
}

/// The sensitivities of a file, if there is one.
pub(crate) fn sensitivities(
    file: Option<&TextFile>,
    mode: Option<Mode>,
) -> Result<Option<Sensitivities>, Refusal> {
    let Some(file) = file else { return Ok(None) };
    read_csv(&file.text, mode.unwrap_or_default())
        .map(Some)
        .map_err(|error| Refusal::from(error).at(&file.name))
}

fn loss(question: &AccountQuestion) -> Result<Option<Loss>, Refusal> {
    match (question.learning_rate, question.smoothness) {
        (Some(learning_rate), Some(smoothness)) => {
            let loss = Loss {
                learning_rate,
                smoothness,
                strong_convexity: question.strong_convexity.unwrap_or(0.0),
                diameter: question.diameter,
            };
            loss.check()?;
            Ok(Some(loss))
        }
        (None, None) if question.strong_convexity.is_none() && question.diameter.is_none() => {
            Ok(None)
        }
        _ => Err(Refusal::bad_input(
            "constants of the loss were given without --learning-rate or --smoothness; give both",
        )),
    }
}

fn candidates(question: &AccountQuestion) -> Result<Vec<f64>, Refusal> {
    match question.candidates {
        Some(_) if !question.candidate_priors.is_empty() => Err(Refusal::bad_input(
            "--candidates and --candidate-priors were both given; drop one of them",
        )),
        Some(count) if !(2..=1_000_000).contains(&count) => {
            let message = format!("{count} candidates are not between 2 and 1,000,000");
            Err(Problem::from(message).about("candidates", count, "[2, 1000000]").into())
        }
        Some(count) => Ok(vec![1.0 / count as f64; count as usize]),
        None => Ok(question.candidate_priors.clone()),
    }
}

/// Numbers by simulation to show beside the claims about shuffled batches.
fn monte_carlo(question: &AccountQuestion, run: &Run) -> Result<Vec<Aside>, Refusal> {
    let Some(samples) = question.monte_carlo else { return Ok(Vec::new()) };
    if run.sampling() != Sampling::Shuffle {
        return Err(Refusal::bad_input(format!(
            "--monte-carlo is for --sampling shuffle, but the run has --sampling {}",
            run.sampling().as_str()
        )));
    }
    if question.epsilon.is_empty() {
        return Err(Refusal::bad_input("--monte-carlo needs an --epsilon, e.g. 1"));
    }
    let stream = Stream::new(question.monte_carlo_seed.unwrap_or(0), Purpose::NOISE, 0);
    let (mut row, mut buffer, mut next) = (0, vec![0.0; 4096], 4096);
    let mut gaussian = || {
        if next == buffer.len() {
            stream.fill_gaussians(row, 0, &mut buffer);
            (row, next) = (row + 1, 0);
        }
        next += 1;
        buffer[next - 1]
    };
    let confidence = question.monte_carlo_confidence.unwrap_or(0.999);
    Ok(accounting::shuffling::measured(run, &question.epsilon, samples, confidence, &mut gaussian)?)
}
