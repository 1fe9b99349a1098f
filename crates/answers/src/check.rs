//! A gate: does the run keep its policy? What cannot be shown has not been kept.

use crate::run::{Described, TextFile, load};
use crate::{Kind, Refusal, limit};
use accounting::Questions;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::rounding::plain;
use vocabulary::{At, Claim, LensName, Policy, Quantity, Run};

/// The question of `check`: the policy overrides that of the files.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CheckQuestion {
    pub files: Vec<TextFile>,
    pub run: Described,
    pub policy: Policy,
    /// Seconds of processor time that the answer may take [default: 10].
    pub time_limit: Option<f64>,
}

/// One limit and how the run stands to it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LimitVerdict {
    /// The policy's key.
    pub limit: String,
    pub allowed: f64,
    pub passed: bool,
    pub claim: Claim,
}

/// The `dosimeter.check/1` document.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Check {
    pub schema: String,
    pub run: Run,
    pub policy: Policy,
    pub passed: bool,
    pub verdicts: Vec<LimitVerdict>,
    pub warnings: Vec<String>,
}

impl Check {
    pub const SCHEMA: &'static str = "dosimeter.check/1";
}

pub(crate) fn ask(question: &CheckQuestion) -> Result<Check, Refusal> {
    let loaded = load(&question.files, &question.run)?;
    let policy = loaded.policy.unwrap_or_default().overridden_by(&question.policy);
    let limits = limits(&policy)?;
    let lens = policy.lens.unwrap_or(LensName::SIGNED);
    let questions = Questions {
        deltas: policy.delta.into_iter().collect(),
        fprs: policy.fpr.into_iter().collect(),
        lenses: vec![lens],
        time_limit: Some(limit::seconds(question.time_limit)?),
        notes: loaded.resolved.notes,
        ..Questions::default()
    };
    let account = accounting::account(&loaded.resolved.run, &questions)?;
    let mut verdicts = Vec::new();
    for (name, quantity, at, allowed) in limits {
        let claim =
            account.claims.iter().find(|claim| claim.quantity == quantity && claim.at == at);
        let claim = claim.cloned().ok_or_else(|| {
            Refusal::new(
                Kind::NotCertified,
                format!(
                    "the lens `{lens}` gives no {} for this run, so `{name}` cannot be checked",
                    quantity.as_str()
                ),
            )
        })?;
        // Only the certified end may pass: what cannot be shown has not been shown.
        let passed = if quantity.is_leakage() {
            claim.interval.upper <= allowed
        } else {
            claim.interval.lower >= allowed
        };
        verdicts.push(LimitVerdict { limit: name.into(), allowed, passed, claim });
    }
    Ok(Check {
        schema: Check::SCHEMA.into(),
        run: account.run,
        policy,
        passed: verdicts.iter().all(|verdict| verdict.passed),
        verdicts,
        warnings: account.warnings,
    })
}

type Limit = (&'static str, Quantity, At, f64);

fn limits(policy: &Policy) -> Result<Vec<Limit>, Refusal> {
    if policy.is_empty() {
        return Err(Refusal::bad_input(
            "there is no policy to check; give e.g. --max-epsilon 8 --delta 1e-5, or a [policy] table",
        ));
    }
    let missing = |limit: &str, flag: &str| {
        Refusal::bad_input(format!(
            "{limit} needs {flag}; add it to the flags or the [policy] table"
        ))
    };
    let mut limits: Vec<Limit> = Vec::new();
    let at_delta = |limit: &str| -> Result<At, Refusal> {
        let delta = policy.delta.ok_or_else(|| missing(limit, "a delta (--delta 1e-5)"))?;
        Ok(At { delta: Some(delta), ..At::default() })
    };
    if let Some(allowed) = policy.max_epsilon {
        limits.push(("max_epsilon", Quantity::Epsilon, at_delta("max_epsilon")?, allowed));
    }
    if let Some(allowed) = policy.max_mu {
        limits.push(("max_mu", Quantity::Mu, at_delta("max_mu")?, allowed));
    }
    if let Some(allowed) = policy.max_advantage {
        limits.push(("max_advantage", Quantity::Advantage, At::default(), allowed));
    }
    if let Some(allowed) = policy.min_bayes_security {
        limits.push(("min_bayes_security", Quantity::BayesSecurity, At::default(), allowed));
    }
    if let Some(allowed) = policy.max_tpr {
        let fpr = policy.fpr.ok_or_else(|| missing("max_tpr", "a rate (--fpr 0.01)"))?;
        limits.push(("max_tpr", Quantity::Tpr, At { fpr: Some(fpr), ..At::default() }, allowed));
    }
    for (name, quantity, _, allowed) in &limits {
        let unbounded = matches!(quantity, Quantity::Epsilon | Quantity::Mu);
        if !(*allowed >= 0.0 && (unbounded || *allowed <= 1.0) && allowed.is_finite()) {
            let range = if unbounded { "a finite number of at least 0" } else { "in [0, 1]" };
            return Err(Refusal::bad_input(format!(
                "{name} {} is not {range}; correct it",
                plain(*allowed)
            )));
        }
    }
    Ok(limits)
}
