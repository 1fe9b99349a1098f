//! Bayes security, epsilon and delta, mu, attack accuracy and true positive rates in terms of
//! each other, each with its direction.

use crate::Refusal;
use accounting::bayes_security::translate as by;
use accounting::domain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::rounding::{plain, shown};
use vocabulary::{Interval, Side};

/// The question of `translate`: one number to translate from, and where to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TranslateQuestion {
    pub bayes_security: Option<f64>,
    pub epsilon: Option<f64>,
    pub mu: Option<f64>,
    pub attack_accuracy: Option<f64>,
    pub tpr: Option<f64>,
    /// Prior of one of two secrets; one half unless given.
    pub prior: Option<f64>,
    /// 0.01 unless given.
    pub fpr: Option<f64>,
    pub delta: Option<f64>,
}

/// One number in other terms: the `dosimeter.translate/1` document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Translation {
    pub schema: String,
    pub from: String,
    /// What holds because of it.
    pub entries: Vec<TranslatedNumber>,
}

/// A number with the side on which it bounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TranslatedNumber {
    pub quantity: String,
    /// Absent when infinite.
    pub value: Option<f64>,
    pub side: Side,
    /// The number, rounded towards its side, with its sign.
    pub shown: String,
    pub note: String,
}

impl Translation {
    pub const SCHEMA: &'static str = "dosimeter.translate/1";
}

pub(crate) fn ask(question: &TranslateQuestion) -> Result<Translation, Refusal> {
    let given = [
        question.bayes_security,
        question.epsilon,
        question.mu,
        question.attack_accuracy,
        question.tpr,
    ];
    if given.iter().flatten().count() > 1 {
        return Err(Refusal::bad_input("several numbers were given; translate one at a time"));
    }
    let (prior, fpr) = (question.prior.unwrap_or(0.5), question.fpr.unwrap_or(0.01));
    domain::check_probability("prior", prior)?;
    domain::check_probability("false positive rate", fpr)?;
    if let Some(delta) = question.delta {
        domain::check_delta(delta)?;
    }
    let mut entries = Vec::new();
    let (from, security) = source(question, prior, fpr)?;
    let mut put = |quantity: String, value: f64, side: Side, note: &str| {
        let value = decimal(value);
        entries.push(TranslatedNumber {
            quantity,
            value: value.is_finite().then_some(value),
            side,
            shown: shown(Interval::exact(value), side),
            note: note.into(),
        });
    };
    put(
        "Bayes security".into(),
        security,
        Side::Lower,
        match () {
            () if question.bayes_security.is_some() => "as given",
            () if question.epsilon.is_some() => {
                "2 (1 - delta)/(e^epsilon + 1); randomised response"
            }
            () if question.mu.is_some() => "2 Phi(-mu/2); the Gaussian mechanism",
            () => "enough for the target; `calibrate` finds the noise",
        },
    );
    put("advantage".into(), 1.0 - security, Side::Upper, "TPR - FPR of any attack");
    put(
        format!("attack accuracy @ prior {}", plain(prior)),
        by::attack_accuracy(security, prior),
        Side::Upper,
        if prior == 0.5 { "1 - beta/2" } else { "the curve may say less" },
    );
    put(
        format!("TPR @ FPR {}", plain(fpr)),
        by::tpr(security, fpr),
        Side::Upper,
        "FPR + advantage; the curve (account, curve) says less",
    );
    if let (Some(delta), None) = (question.delta, question.epsilon) {
        put(
            format!("epsilon @ delta {}", plain(delta)),
            by::least_epsilon(security, delta),
            Side::Lower,
            "every epsilon that holds is at least this; a run says more (account)",
        );
    }
    Ok(Translation { schema: Translation::SCHEMA.into(), from, entries })
}

/// The short decimal that a sum of decimals was meant to be: 1 - 0.95 is 0.05, not a bit more.
fn decimal(value: f64) -> f64 {
    let short = format!("{value:.11e}").parse().unwrap_or(value);
    if (value - short).abs() <= 2.0 * f64::EPSILON { short } else { value }
}

/// What was given, in words, and the Bayes security that it guarantees (or needs).
fn source(question: &TranslateQuestion, prior: f64, fpr: f64) -> Result<(String, f64), Refusal> {
    if let Some(beta) = question.bayes_security {
        if !(0.0..=1.0).contains(&beta) {
            return Err(Refusal::bad_input(format!("Bayes security {beta} is outside [0, 1]")));
        }
        return Ok((format!("Bayes security {}", plain(beta)), beta));
    }
    if let Some(epsilon) = question.epsilon {
        domain::check_epsilon(epsilon)?;
        let delta = question
            .delta
            .ok_or_else(|| Refusal::bad_input("--epsilon needs a delta; add --delta, e.g. 1e-5"))?;
        let from = format!("epsilon {} at delta {}", plain(epsilon), plain(delta));
        return Ok((from, by::security_of_epsilon(epsilon, delta)));
    }
    if let Some(mu) = question.mu {
        if !(mu >= 0.0 && mu.is_finite()) {
            return Err(Refusal::bad_input(format!(
                "mu {mu} is not a finite number of at least 0"
            )));
        }
        return Ok((format!("mu {}", plain(mu)), by::security_of_mu(mu)));
    }
    let (from, needed) = if let Some(accuracy) = question.attack_accuracy {
        let from = format!("attack accuracy {} at prior {}", plain(accuracy), plain(prior));
        (from, by::security_for_accuracy(accuracy, prior))
    } else if let Some(tpr) = question.tpr {
        let from = format!("TPR {} at FPR {}", plain(tpr), plain(fpr));
        (from, by::security_for_tpr(tpr, fpr))
    } else {
        return Err(Refusal::bad_input("there is nothing to translate")
            .hint("give one of --bayes-security, --epsilon, --mu, --attack-accuracy, --tpr"));
    };
    if !(0.0..1.0).contains(&needed) {
        return Err(Refusal::bad_input(format!(
            "{from} would need Bayes security {needed}, which is outside [0, 1); guessing already \
             does as well, or everything meets it"
        )));
    }
    Ok((from, needed))
}
