//! `check`: a gate for other people's continuous integration. Exit 3 when the run breaks its
//! policy, or cannot be shown to keep it.

use crate::args::{Format, OutputArgs, RunArgs, lens, real};
use crate::console::Console;
use crate::exit;
use crate::failure::Failure;
use crate::print::{claims, describe, plain};
use accounting::Questions;
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;
use vocabulary::{At, Claim, LensName, Policy, Quantity, Run};

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter check run.toml --max-epsilon 8 --delta 1e-5
  dosimeter check ledger.json --min-bayes-security 0.9
  dosimeter check run.toml          # with a [policy] table in the file
")]
pub struct CheckArgs {
    /// The run (TOML) or ledger (JSON); several are composed in order
    #[arg(value_name = "RUN.toml|LEDGER.json")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "The policy (or a [policy] table with the same keys)")]
struct PolicyArgs {
    /// Epsilon at --delta must not exceed this
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true)]
    max_epsilon: Option<f64>,
    /// Mu down to --delta must not exceed this
    #[arg(long, value_name = "M", value_parser = real, allow_hyphen_values = true)]
    max_mu: Option<f64>,
    /// Delta of --max-epsilon and --max-mu
    #[arg(long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true)]
    delta: Option<f64>,
    /// The membership advantage must not exceed this
    #[arg(long, value_name = "A", value_parser = real, allow_hyphen_values = true)]
    max_advantage: Option<f64>,
    /// Bayes security must not fall below this
    #[arg(long, value_name = "B", value_parser = real, allow_hyphen_values = true)]
    min_bayes_security: Option<f64>,
    /// The true positive rate at --fpr must not exceed this
    #[arg(long, value_name = "P", value_parser = real, allow_hyphen_values = true)]
    max_tpr: Option<f64>,
    /// False positive rate of --max-tpr
    #[arg(long, value_name = "FPR", value_parser = real, allow_hyphen_values = true)]
    fpr: Option<f64>,
    /// The lens that decides [default: composition]
    #[arg(long, value_name = "LENS", value_parser = lens)]
    lens: Option<LensName>,
}

/// One limit and how the run stands to it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Verdict {
    /// The policy's key.
    pub limit: String,
    pub allowed: f64,
    pub passed: bool,
    pub claim: Claim,
}

/// The `dosimeter.check/1` document.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct CheckReport {
    pub schema: String,
    pub run: Run,
    pub policy: Policy,
    pub passed: bool,
    pub verdicts: Vec<Verdict>,
    pub warnings: Vec<String>,
}

impl CheckReport {
    pub(super) const SCHEMA: &'static str = "dosimeter.check/1";
}

pub(super) fn run(args: &CheckArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let loaded = args.run.load_all(&args.files)?;
    let policy = loaded.policy.unwrap_or_default().overridden_by(&args.policy.policy());
    let limits = limits(&policy)?;
    let lens = policy.lens.unwrap_or(LensName::Composition);
    let questions = Questions {
        deltas: policy.delta.into_iter().collect(),
        fprs: policy.fpr.into_iter().collect(),
        lenses: vec![lens],
        notes: loaded.resolved.notes.clone(),
        ..Questions::default()
    };
    let account = accounting::account(&loaded.resolved.run, &questions)?;
    let mut verdicts = Vec::new();
    for (name, quantity, at, allowed) in limits {
        let claim =
            account.claims.iter().find(|claim| claim.quantity == quantity && claim.at == at);
        let claim = claim.cloned().ok_or_else(|| {
            Failure::refused(format!(
                "the lens `{lens}` gives no {} for this run, so `{name}` cannot be checked",
                quantity.as_str()
            ))
        })?;
        // Only the certified end may pass: what cannot be shown has not been shown.
        let passed = if quantity.is_leakage() {
            claim.interval.upper <= allowed
        } else {
            claim.interval.lower >= allowed
        };
        verdicts.push(Verdict { limit: name.into(), allowed, passed, claim });
    }
    let report = CheckReport {
        schema: CheckReport::SCHEMA.into(),
        run: account.run,
        policy,
        passed: verdicts.iter().all(|verdict| verdict.passed),
        verdicts,
        warnings: account.warnings,
    };
    match format {
        Format::Json => console.json(&report)?,
        _ => console.answer(&human(&report))?,
    }
    for warning in &report.warnings {
        console.warn(warning);
    }
    if report.passed {
        return Ok(exit::ANSWERED);
    }
    let broken: Vec<String> = report
        .verdicts
        .iter()
        .filter(|verdict| !verdict.passed)
        .map(|verdict| format!("{} {}", verdict.limit, plain(verdict.allowed)))
        .collect();
    console.note(&format!("check failed: {}", broken.join(", ")));
    Ok(exit::CHECK_FAILED)
}

impl PolicyArgs {
    fn policy(&self) -> Policy {
        Policy {
            lens: self.lens,
            max_epsilon: self.max_epsilon,
            max_mu: self.max_mu,
            delta: self.delta,
            max_advantage: self.max_advantage,
            min_bayes_security: self.min_bayes_security,
            max_tpr: self.max_tpr,
            fpr: self.fpr,
        }
    }
}

type Limit = (&'static str, Quantity, At, f64);

fn limits(policy: &Policy) -> Result<Vec<Limit>, Failure> {
    if policy.is_empty() {
        return Err(Failure::bad_input(
            "there is no policy to check; give e.g. --max-epsilon 8 --delta 1e-5, or a [policy] table",
        ));
    }
    let missing = |limit: &str, flag: &str| {
        Failure::bad_input(format!(
            "{limit} needs {flag}; add it to the flags or the [policy] table"
        ))
    };
    let mut limits: Vec<Limit> = Vec::new();
    let at_delta = |limit: &str| -> Result<At, Failure> {
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
            return Err(Failure::bad_input(format!("{name} {allowed} is not {range}; correct it")));
        }
    }
    Ok(limits)
}

fn human(report: &CheckReport) -> String {
    let mut text = describe::run(&report.run);
    text.push('\n');
    for verdict in &report.verdicts {
        let claim = &verdict.claim;
        let sign = if claim.quantity.is_leakage() { "<=" } else { ">=" };
        text.push_str(&format!(
            "{}  {} {sign} {}: {} ({}, lens {})\n",
            if verdict.passed { "pass" } else { "FAIL" },
            claims::title(claim.quantity, claim.at),
            plain(verdict.allowed),
            claims::number(claim),
            claim.standing.as_str(),
            claim.source,
        ));
    }
    if let Some(verdict) = report.verdicts.first() {
        text.push_str(&claims::footer(std::slice::from_ref(&verdict.claim), &[]));
    }
    text
}
