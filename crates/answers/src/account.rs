//! What a run leaks, under every lens.

use crate::run::{Described, TextFile, load};
use crate::{Refusal, Several};
use accounting::bayes_security::attribute::{Mode, Sensitivities};
use accounting::hidden_state::Loss;
use accounting::{Questions, Subject};
use random::{Purpose, Stream};
use serde::Deserialize;
use vocabulary::{Account, Aside, LensName, Problem, Quantity, Run, Sampling};

/// The question of `account`. Keys are the command's flags in snake case.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccountQuestion {
    pub files: Vec<TextFile>,
    pub run: Described,
    /// Epsilon and mu at each.
    pub delta: Several<f64>,
    /// Delta at each.
    pub epsilon: Several<f64>,
    /// True positive rate at each.
    pub fpr: Several<f64>,
    /// Reconstruction success at each.
    pub prior: Several<f64>,
    /// Adding and removing a record separately, too.
    pub directions: bool,
    pub lens: Several<LensName>,
    pub quantity: Several<Quantity>,
    /// All numbers of the first proven and the first heuristic lens, the first of every other.
    pub brief: bool,
    /// The record is one of this many equally likely candidates.
    pub candidates: Option<u64>,
    /// The candidates' prior probabilities.
    pub candidate_priors: Several<f64>,
    /// Accuracy of the best attacker at each prior of one of two secrets.
    pub attack_prior: Several<f64>,
    /// CSV of gradient sensitivities to a secret attribute.
    pub attribute_sensitivity: Option<TextFile>,
    pub attribute_mode: Option<Mode>,
    pub learning_rate: Option<f64>,
    pub smoothness: Option<f64>,
    pub strong_convexity: Option<f64>,
    pub diameter: Option<f64>,
    /// Delta of balls-and-bins sampling at each epsilon, by this many samples.
    pub monte_carlo: Option<u64>,
    pub monte_carlo_confidence: Option<f64>,
    pub monte_carlo_seed: Option<u64>,
    /// Seconds of processor time that one number may take [default: 10].
    pub time_limit: Option<f64>,
}

impl AccountQuestion {
    pub(crate) fn questions(&self, notes: Vec<String>) -> Result<Questions, Refusal> {
        Ok(Questions {
            deltas: self.delta.0.clone(),
            epsilons: self.epsilon.0.clone(),
            fprs: self.fpr.0.clone(),
            priors: self.prior.0.clone(),
            directions: self.directions,
            lenses: self.lens.0.clone(),
            quantities: self.quantity.0.clone(),
            brief: self.brief,
            candidates: candidates(self)?,
            attack_priors: self.attack_prior.0.clone(),
            notes,
            time_limit: time_limit(self.time_limit)?,
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
    Sensitivities::from_csv(&file.text, mode.unwrap_or_default())
        .map(Some)
        .map_err(|error| Refusal::from(error).at(&file.name))
}

fn time_limit(seconds: Option<f64>) -> Result<Option<f64>, Refusal> {
    match seconds {
        Some(seconds) if !(seconds > 0.0 && seconds.is_finite()) => {
            let message =
                format!("a time limit of {seconds} s is not a positive number of seconds");
            Err(Problem::from(message).about("time limit", seconds, "above 0").into())
        }
        other => Ok(other),
    }
}

fn loss(question: &AccountQuestion) -> Result<Option<Loss>, Refusal> {
    match (question.learning_rate, question.smoothness) {
        (Some(learning_rate), Some(smoothness)) => Ok(Some(Loss {
            learning_rate,
            smoothness,
            strong_convexity: question.strong_convexity.unwrap_or(0.0),
            diameter: question.diameter,
        })),
        (None, None) if question.strong_convexity.is_none() && question.diameter.is_none() => {
            Ok(None)
        }
        _ => Err(Refusal::bad_input(
            "the constants of the loss need each other: give --learning-rate and --smoothness",
        )),
    }
}

fn candidates(question: &AccountQuestion) -> Result<Vec<f64>, Refusal> {
    match question.candidates {
        Some(_) if !question.candidate_priors.is_empty() => Err(Refusal::bad_input(
            "--candidates and --candidate-priors say the same twice; drop one of them",
        )),
        Some(count) if !(2..=1_000_000).contains(&count) => {
            let message = format!("{count} candidates are not between 2 and 1,000,000");
            Err(Problem::from(message).about("candidates", count, "[2, 1000000]").into())
        }
        Some(count) => Ok(vec![1.0 / count as f64; count as usize]),
        None => Ok(question.candidate_priors.0.clone()),
    }
}

/// Numbers by simulation to show beside the claims about shuffled batches.
fn monte_carlo(question: &AccountQuestion, run: &Run) -> Result<Vec<Aside>, Refusal> {
    let Some(samples) = question.monte_carlo else { return Ok(Vec::new()) };
    if run.sampling() != Sampling::Shuffle {
        return Err(Refusal::bad_input(format!(
            "--monte-carlo is about --sampling shuffle, but the run's is {}",
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
