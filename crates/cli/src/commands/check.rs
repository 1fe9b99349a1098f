//! `check`: a gate for other people's continuous integration. Exit 3 when the run breaks its
//! policy, or cannot be shown to keep it.

use super::show;
use crate::args::{Format, LimitArgs, OutputArgs, RunArgs, lens, read_files, real};
use crate::console::Console;
use crate::print::{WIDTH, claims, describe, plain, wrap};
use answers::{Ask, Check, CheckQuestion, Refusal};
use clap::Args;
use std::path::PathBuf;
use vocabulary::{LensName, Policy};

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
    limit: LimitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "The policy (or a [policy] table with the same keys)")]
struct PolicyArgs {
    /// Epsilon at --delta must not exceed this
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true)]
    max_epsilon: Option<f64>,
    /// Mu at --delta must not exceed this
    #[arg(long, value_name = "M", value_parser = real, allow_hyphen_values = true)]
    max_mu: Option<f64>,
    /// Delta of --max-epsilon and --max-mu
    #[arg(short = 'd', long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true)]
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

pub(super) fn run(args: &CheckArgs, console: &mut Console) -> Result<u8, Refusal> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let question = CheckQuestion {
        time_limit: args.limit.time_limit,
        files: read_files(&args.files)?,
        run: args.run.description().into(),
        policy: args.policy.policy(),
    };
    let check = question.ask()?;
    let code = show(&check, format, console, human)?;
    let broken: Vec<String> = check
        .verdicts
        .iter()
        .filter(|verdict| !verdict.passed)
        .map(|verdict| format!("{} {}", verdict.limit, plain(verdict.allowed)))
        .collect();
    if !check.passed {
        console.note(&format!("check failed: {}", broken.join(", ")));
    }
    Ok(code)
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

fn human(report: &Check) -> String {
    let mut text = describe::run(&report.run);
    text.push('\n');
    for verdict in &report.verdicts {
        let claim = &verdict.claim;
        let (limit, _) = claim.quantity.limit();
        let line = format!(
            "{} {} ({}, lens {}); the limit is {limit} {}",
            claims::title(claim.quantity, claim.at),
            claims::number(claim),
            claim.standing.as_str(),
            claim.source,
            plain(verdict.allowed),
        );
        let mark = if verdict.passed { "pass  " } else { "FAIL  " };
        text.push_str(&wrap(&line, mark, 6, WIDTH));
    }
    if let Some(verdict) = report.verdicts.first() {
        text.push_str(&claims::footer(std::slice::from_ref(&verdict.claim), &[]));
    }
    text
}
