//! `account`: what does this DP-SGD run leak, under every lens.

use crate::args::{
    AttributeArgs, CandidateArgs, Format, LossArgs, OutputArgs, QuestionArgs, RunArgs, ShuffleArgs,
};
use crate::console::Console;
use crate::exit;
use crate::failure::Failure;
use crate::print::{claims, describe};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter account --noise-multiplier 1 --sample-rate 0.01 --steps 1000 --delta 1e-5
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
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &AccountArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&[Format::Human, Format::Json, Format::Csv])?;
    let loaded = args.run.load_all(&args.files)?;
    let questions = args.questions.questions(&loaded.resolved.notes);
    let (attribute, loss) = (args.attribute.load()?, args.loss.loss());
    let candidates = args.candidates.priors()?;
    let beyond = accounting::Beyond {
        loss: loss.as_ref(),
        attribute: attribute.as_ref(),
        candidates: &candidates,
        attack_priors: &args.candidates.attack_prior,
    };
    let mut account = accounting::account_beyond(&loaded.resolved.run, &questions, &beyond)?;
    account.asides.extend(args.shuffle.asides(&account.run, &questions.epsilons)?);
    let certificate = args.certify.then(|| prover::certify(&account));
    match format {
        Format::Json => match &certificate {
            Some(certificate) => console.json(&super::prove::sealed(&account, certificate)?)?,
            None => console.json(&account)?,
        },
        Format::Csv => console.answer(&claims::csv(&account.claims))?,
        _ => {
            let mut text = describe::run(&account.run);
            text.push('\n');
            text.push_str(&claims::table(&account.claims));
            text.push_str(&claims::asides(&account.asides));
            text.push_str(&claims::footer(&account.claims, &account.unsupported));
            console.answer(&text)?;
        }
    }
    for warning in &account.warnings {
        console.warn(warning);
    }
    if questions.deltas.is_empty() && format != Format::Csv {
        console.hint("give --delta (well below 1/n) for epsilon and mu");
    }
    match certificate {
        Some(certificate) => Ok(super::prove::tell(&certificate, console)),
        None => Ok(exit::ANSWERED),
    }
}
