//! One number in other terms. The number becomes pairs ([`accounting::translation`]), and epsilon,
//! mu, advantage, Bayes security, attack accuracy and true positive rate are read off them. Each
//! reading says what it assumes. A run beside it is read by the composition lens.

use crate::flags::real;
use crate::run::{Described, TextFile, load};
use crate::{Refusal, limit};
use accounting::translation::{Known, Reading, Worst};
use accounting::{Questions, account, domain};
use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::rounding::plain;
use vocabulary::words::title;
use vocabulary::{At, AtLeast, Ends, Interval, LensName, Quantity, Quoted, Side, Standing};

/// The question of `translate`: a number to translate from, a run, or both; and where to.
#[derive(Clone, Debug, Default, Deserialize, Args)]
#[serde(deny_unknown_fields, default)]
pub struct TranslateQuestion {
    /// From: Bayes security, 1 = no leakage
    #[arg(long, value_name = "B", value_parser = real, allow_hyphen_values = true, group = "from")]
    pub bayes_security: Option<f64>,
    /// From: the membership advantage, TPR - FPR of the best attack
    #[arg(long, value_name = "A", value_parser = real, allow_hyphen_values = true, group = "from")]
    pub advantage: Option<f64>,
    /// From: epsilon (with --delta)
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true, group = "from")]
    pub epsilon: Option<f64>,
    /// From: Gaussian mu
    #[arg(long, value_name = "M", value_parser = real, allow_hyphen_values = true, group = "from")]
    pub mu: Option<f64>,
    /// From: the accuracy of the best attack, at --prior
    #[arg(long, value_name = "A", value_parser = real, allow_hyphen_values = true, group = "from")]
    pub attack_accuracy: Option<f64>,
    /// From: the true positive rate of the best attack, at --fpr
    #[arg(long, value_name = "P", value_parser = real, allow_hyphen_values = true, group = "from")]
    pub tpr: Option<f64>,
    /// Prior probability of one of the two secrets
    #[arg(long, value_name = "PRIOR", value_parser = real, allow_hyphen_values = true, default_value = "0.5")]
    pub prior: Option<f64>,
    /// False positive rate
    #[arg(long, value_name = "FPR", value_parser = real, allow_hyphen_values = true, default_value = "0.01")]
    pub fpr: Option<f64>,
    /// Delta of epsilon and mu
    #[arg(short = 'd', long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true)]
    pub delta: Option<f64>,
    #[arg(skip)]
    pub files: Vec<TextFile>,
    #[arg(skip)]
    pub run: Option<Described>,
    /// Seconds of processor time that the answer may take [default: 10].
    #[arg(skip)]
    pub time_limit: Option<f64>,
}

/// One number in other terms: the `dosimeter.translate/2` document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Translation {
    pub schema: String,
    pub from: String,
    /// What holds because of it, by what is assumed.
    pub readings: Vec<TranslatedReading>,
    /// For a rate or an accuracy that is to be kept: what is enough for it, each alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub enough: Vec<TranslatedNumber>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What a reading assumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Assumed {
    /// Nothing beyond the number.
    AnyMechanism,
    /// The trade-off curve is that of two Gaussians.
    GaussianCurve,
    /// The mechanism is the run, every iterate seen.
    Run,
}

/// The numbers under one assumption.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TranslatedReading {
    pub assumes: Assumed,
    /// The assumption in words.
    pub words: String,
    pub standing: Standing,
    pub entries: Vec<TranslatedNumber>,
}

/// A number with the side on which it bounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TranslatedNumber {
    pub quantity: Quantity,
    pub at: At,
    /// The quantity and where it is taken, in words.
    pub label: String,
    pub side: Side,
    #[serde(flatten)]
    pub ends: Ends,
    /// The number, rounded towards its side, with its sign.
    pub shown: String,
    /// Why the number is infinite, when it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Translation {
    pub const SCHEMA: &'static str = "dosimeter.translate/2";
}

/// Where the numbers are read.
struct Places {
    prior: f64,
    fpr: f64,
    delta: Option<f64>,
}

pub(crate) fn ask(question: &TranslateQuestion) -> Result<Translation, Refusal> {
    let places = Places {
        prior: question.prior.unwrap_or(0.5),
        fpr: question.fpr.unwrap_or(0.01),
        delta: question.delta,
    };
    domain::check_probability("prior", places.prior)?;
    domain::check_probability("false positive rate", places.fpr)?;
    if let Some(delta) = places.delta {
        domain::check_delta(delta)?;
    }
    let known = known(question, &places)?;
    let mut answer = Translation {
        schema: Translation::SCHEMA.into(),
        from: known.map_or_else(|| "this run".into(), words),
        readings: Vec::new(),
        enough: Vec::new(),
        warnings: Vec::new(),
    };
    if let Some(known) = known {
        for reading in [Reading::AnyMechanism, Reading::GaussianCurve] {
            if let Some(worst) = known.read(reading)? {
                answer.readings.push(read(known, reading, &worst, &places)?);
            }
        }
        answer.enough = enough(known, &places)?;
    }
    if question.run.is_some() || !question.files.is_empty() {
        answer.readings.push(of_the_run(question, &places, &mut answer.warnings)?);
    }
    Ok(answer)
}

/// The one number that was given, if any.
fn known(question: &TranslateQuestion, places: &Places) -> Result<Option<Known>, Refusal> {
    let mut given = Vec::new();
    given.extend(question.bayes_security.map(Known::BayesSecurity));
    given.extend(question.advantage.map(Known::Advantage));
    if let Some(epsilon) = question.epsilon {
        domain::check_epsilon(epsilon)?;
        let delta = places
            .delta
            .ok_or_else(|| Refusal::bad_input("--epsilon needs a delta; add --delta, e.g. 1e-5"))?;
        given.push(Known::Epsilon { epsilon, delta });
    }
    if let Some(mu) = question.mu {
        if !(mu >= 0.0 && mu.is_finite()) {
            return Err(Refusal::bad_input(format!(
                "mu {mu} is not a finite number of at least 0"
            )));
        }
        given.push(Known::Mu(mu));
    }
    let prior = places.prior;
    given
        .extend(question.attack_accuracy.map(|accuracy| Known::AttackAccuracy { accuracy, prior }));
    given.extend(question.tpr.map(|tpr| Known::Tpr { tpr, fpr: places.fpr }));
    match given.as_slice() {
        [] if question.run.is_none() && question.files.is_empty() => {
            Err(Refusal::bad_input("there is nothing to translate").hint(
                "give one of --epsilon, --mu, --tpr, --advantage, --bayes-security, \
                 --attack-accuracy, or a run",
            ))
        }
        [] => Ok(None),
        [one] => Ok(Some(*one)),
        _ => Err(Refusal::bad_input("several numbers were given; translate one at a time")),
    }
}

fn quantity_of(known: Known) -> Quantity {
    match known {
        Known::Mu(_) => Quantity::Mu,
        Known::Epsilon { .. } => Quantity::Epsilon,
        Known::Tpr { .. } => Quantity::Tpr,
        Known::Advantage(_) => Quantity::Advantage,
        Known::BayesSecurity(_) => Quantity::BayesSecurity,
        Known::AttackAccuracy { .. } => Quantity::AttackAccuracy,
    }
}

/// What is known, in words.
fn words(known: Known) -> String {
    match known {
        Known::Mu(mu) => format!("mu {}", plain(mu)),
        Known::Epsilon { epsilon, delta } => {
            format!("epsilon {} at delta {}", plain(epsilon), plain(delta))
        }
        Known::Tpr { tpr, fpr } => format!("TPR {} at FPR {}", plain(tpr), plain(fpr)),
        Known::Advantage(advantage) => format!("advantage {}", plain(advantage)),
        Known::BayesSecurity(security) => format!("Bayes security {}", plain(security)),
        Known::AttackAccuracy { accuracy, prior } => {
            format!("attack accuracy {} at prior {}", plain(accuracy), plain(prior))
        }
    }
}

fn read(
    known: Known,
    reading: Reading,
    worst: &Worst,
    places: &Places,
) -> Result<TranslatedReading, Refusal> {
    let mut entries = Vec::new();
    let given = quantity_of(known);
    // What was given is not translated into itself.
    let mut put = |quantity, at, interval| {
        if quantity != given {
            entries.push(number(quantity, at, interval, NO_BOUND));
        }
    };
    if let Some(delta) = places.delta {
        let at = At { delta: Some(delta), ..At::default() };
        put(Quantity::Epsilon, at, worst.epsilon(delta)?);
        put(Quantity::Mu, at, worst.mu(delta)?);
    } else if let Worst::Gaussian(_, mu) = worst {
        put(Quantity::Mu, At::default(), *mu);
    }
    put(Quantity::Advantage, At::default(), worst.advantage()?);
    put(Quantity::BayesSecurity, At::default(), worst.bayes_security()?);
    let at = At { fpr: Some(places.fpr), ..At::default() };
    put(Quantity::Tpr, at, worst.tpr(places.fpr)?);
    let at = At { prior: Some(places.prior), ..At::default() };
    put(Quantity::AttackAccuracy, at, worst.accuracy(places.prior)?);
    let (assumes, words, standing) = match (reading, known) {
        (Reading::AnyMechanism, _) => (
            Assumed::AnyMechanism,
            "any mechanism for which this holds; for each bound there is one that reaches it",
            Standing::Proven,
        ),
        (Reading::GaussianCurve, Known::Mu(_)) => (
            Assumed::GaussianCurve,
            "any mechanism that leaks no more than two Gaussians at distance mu",
            Standing::Proven,
        ),
        (Reading::GaussianCurve, _) => (
            Assumed::GaussianCurve,
            "a mechanism whose trade-off curve is the Gaussian curve through this number",
            Standing::Heuristic,
        ),
    };
    Ok(TranslatedReading { assumes, words: words.into(), standing, entries })
}

/// The same quantities of the run.
fn of_the_run(
    question: &TranslateQuestion,
    places: &Places,
    warnings: &mut Vec<String>,
) -> Result<TranslatedReading, Refusal> {
    let described = question.run.clone().unwrap_or_default();
    let loaded = load(&question.files, &described)?;
    let questions = Questions {
        deltas: places.delta.into_iter().collect(),
        fprs: vec![places.fpr],
        lenses: vec![LensName::SIGNED],
        attack_priors: vec![places.prior],
        time_limit: Some(limit::seconds(question.time_limit)?),
        notes: loaded.resolved.notes,
        ..Questions::default()
    };
    let account = account(&loaded.resolved.run, &questions)?;
    warnings.extend(account.warnings);
    let mut standing = Standing::Proven;
    let entries = account
        .claims
        .iter()
        .map(|claim| {
            if claim.standing != Standing::Proven {
                standing = claim.standing;
            }
            let why = claim.reason.as_deref().unwrap_or(NO_BOUND);
            number(claim.quantity, claim.at, claim.interval, why)
        })
        .collect();
    let words = format!("the run itself, every iterate seen (lens {})", LensName::SIGNED);
    Ok(TranslatedReading { assumes: Assumed::Run, words, standing, entries })
}

/// What keeps a rate or an accuracy, each alone; rounded down.
fn enough(known: Known, places: &Places) -> Result<Vec<TranslatedNumber>, Refusal> {
    let Some(found) = known.enough(places.delta)? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    let mut put = |quantity, at, value: f64| {
        all.push(TranslatedNumber {
            quantity,
            at,
            label: title(quantity, at),
            side: Side::Upper,
            ends: Interval::exact(value).into(),
            // The largest that is enough: below it everything is, so it is rounded down.
            shown: format!("<= {}", AtLeast::new(value)),
            reason: None,
        });
    };
    let at = At { delta: places.delta, ..At::default() };
    if let Some(epsilon) = found.epsilon {
        put(Quantity::Epsilon, at, epsilon);
    }
    if let Some(mu) = found.mu {
        put(Quantity::Mu, At::default(), mu);
    }
    put(Quantity::Advantage, At::default(), decimal(found.advantage));
    Ok(all)
}

const NO_BOUND: &str =
    "infinite: a mechanism may publish the secret with a probability above delta";

fn number(quantity: Quantity, at: At, interval: Interval, why: &str) -> TranslatedNumber {
    let interval = Interval {
        lower: decimal(interval.lower),
        value: decimal(interval.value),
        upper: decimal(interval.upper),
    };
    let end: Quoted =
        if quantity.is_leakage() { interval.at_most().into() } else { interval.at_least().into() };
    TranslatedNumber {
        quantity,
        at,
        label: title(quantity, at),
        side: end.side(),
        ends: interval.into(),
        shown: if interval.upper.is_finite() { end.shown() } else { "no bound".into() },
        reason: (!interval.upper.is_finite()).then(|| why.to_owned()),
    }
}

/// The short decimal that a sum of typed decimals was meant to be: 1 - 0.95 is 0.05, not a bit more.
/// Numbers below a thousandth keep their bits.
fn decimal(value: f64) -> f64 {
    if !(1e-3..=1e3).contains(&value) {
        return value;
    }
    let short = format!("{value:.5e}").parse().unwrap_or(value);
    if (value - short).abs() <= 4.0 * f64::EPSILON { short } else { value }
}
