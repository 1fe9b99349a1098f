//! `account`: what does this DP-SGD run leak, under every lens.

use super::show;
use crate::args::{
    AttributeArgs, CandidateArgs, Format, LossArgs, OutputArgs, QuestionArgs, RunArgs, ShuffleArgs,
    read_files, real,
};
use crate::console::Console;
use crate::failure::Failure;
use crate::print::{claims, describe};
use answers::{AccountQuestion, Ask};
use clap::Args;
use std::path::PathBuf;
use vocabulary::Account;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter account --noise-multiplier 1 --sample-rate 0.01 --steps 1000 --delta 1e-5
  dosimeter account -s 1 -q 0.01 -T 1000 -d 1e-5 --lens all
  dosimeter account --noise-multiplier 0.8 --dataset-size 50000 --batch-size 512 \\
      --epochs 60 --delta 1e-5 --fpr 0.001 --format json
  dosimeter account pretraining.toml finetuning.toml --delta 1e-6
  dosimeter account run.toml --attribute-sensitivity age.csv --attribute-mode record
")]
pub struct AccountArgs {
    /// Runs (TOML) or ledgers (JSON); several are composed in order
    #[arg(value_name = "RUN.toml|LEDGER.json")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    questions: QuestionArgs,
    #[command(flatten)]
    candidates: CandidateArgs,
    #[command(flatten)]
    attribute: AttributeArgs,
    #[command(flatten)]
    loss: LossArgs,
    #[command(flatten)]
    shuffle: ShuffleArgs,
    /// Check every certified end again in ball arithmetic (seconds): exit 3 when one is wrong, 5 when
    /// one is undecided
    #[arg(long)]
    certify: bool,
    /// Seconds of processor time that one number may take; then it is refused, with what is known
    /// [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = real, allow_hyphen_values = true)]
    time_limit: Option<f64>,
    #[command(flatten)]
    output: OutputArgs,
}

impl AccountArgs {
    fn question(&self, brief: bool) -> Result<AccountQuestion, Failure> {
        Ok(AccountQuestion {
            files: read_files(&self.files)?,
            run: self.run.description().into(),
            delta: self.questions.delta.clone().into(),
            epsilon: self.questions.epsilon.clone().into(),
            fpr: self.questions.fpr.clone().into(),
            prior: self.questions.prior.clone().into(),
            directions: self.questions.directions,
            lens: self.questions.lenses().into(),
            quantity: self.questions.quantity.clone().into(),
            brief,
            candidates: self.candidates.candidates,
            candidate_priors: self.candidates.candidate_priors.clone().into(),
            attack_prior: self.candidates.attack_prior.clone().into(),
            attribute_sensitivity: self.attribute.file()?,
            attribute_mode: self.attribute.attribute_mode,
            learning_rate: self.loss.learning_rate,
            smoothness: self.loss.smoothness,
            strong_convexity: self.loss.strong_convexity,
            diameter: self.loss.diameter,
            monte_carlo: self.shuffle.monte_carlo,
            monte_carlo_confidence: Some(self.shuffle.monte_carlo_confidence),
            monte_carlo_seed: Some(self.shuffle.monte_carlo_seed),
            time_limit: self.time_limit,
        })
    }
}

pub(super) fn run(args: &AccountArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&[Format::Human, Format::Json, Format::Csv])?;
    let shown = |account: &Account| {
        if format == Format::Csv {
            return claims::csv(&account.claims);
        }
        if !args.questions.whole(&account.claims) {
            return claims::overview(account);
        }
        let mut text = format!("{}\n{}\n", claims::sign(account), describe::run(&account.run));
        text.push_str(&claims::table(&account.claims));
        text.push_str(&claims::asides(&account.asides));
        text.push_str(&claims::footer(&account.claims, &account.unsupported));
        text
    };
    // A summary needs no more than it shows.
    let whole = args.questions.whole(&[]) || args.attribute.file()?.is_some() || args.certify;
    let account = args.question(format == Format::Human && !whole)?.ask()?;
    let code = if args.certify {
        let certified = answers::certified(account);
        let code = show(&certified, format, console, |one| shown(&one.account))?;
        super::prove::tell(&certified.certificate, console);
        code
    } else {
        show(&account, format, console, shown)?
    };
    if args.questions.delta.is_empty() && format != Format::Csv {
        console.hint("give --delta (well below 1/n) for epsilon and mu");
    }
    Ok(code)
}
