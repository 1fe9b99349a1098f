//! `account`: what does this DP-SGD run leak, under every lens.

use super::show;
use crate::args::{AttributeArgs, Format, LensArgs, LimitArgs, OutputArgs, RunArgs, read_files};
use crate::console::Console;
use crate::print::claims;
use answers::{AccountQuestion, Ask, Refusal};
use clap::Args;
use std::path::PathBuf;
use vocabulary::Account;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter account --noise-multiplier 1 --sample-rate 0.01 --steps 1000 \\
      --delta 1e-5
  dosimeter account -s 1 -q 0.01 -T 1000 -d 1e-5 --lens all
  dosimeter account --noise-multiplier 0.8 --dataset-size 50000 \\
      --batch-size 512 --epochs 60 --delta 1e-5 --fpr 0.001 --format json
  dosimeter account pretraining.toml finetuning.toml --delta 1e-6
  dosimeter account run.toml --attribute-sensitivity age.csv \\
      --attribute-mode record

A lens is one way to bound the leakage. `composition` is proven for every model
and is the one to sign; the others are for comparison.
")]
pub struct AccountArgs {
    /// Runs (TOML) or ledgers (JSON); several are composed in order
    #[arg(value_name = "RUN.toml|LEDGER.json")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    question: AccountQuestion,
    #[command(flatten)]
    lens: LensArgs,
    #[command(flatten)]
    attribute: AttributeArgs,
    /// Verify every certified end in ball arithmetic (takes seconds): exit 3 when one is wrong, 5
    /// when one is undecided
    #[arg(long, help_heading = "Certificates")]
    certify: bool,
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl AccountArgs {
    fn asked(&self, brief: bool) -> Result<AccountQuestion, Refusal> {
        Ok(AccountQuestion {
            files: read_files(&self.files)?,
            run: self.run.description().into(),
            lens: self.lens.lenses(),
            brief,
            attribute_sensitivity: self.attribute.file()?,
            attribute_mode: self.attribute.attribute_mode,
            time_limit: self.limit.time_limit,
            ..self.question.clone()
        })
    }
}

pub(super) fn run(args: &AccountArgs, console: &mut Console) -> Result<u8, Refusal> {
    let format = args.output.among(&[Format::Human, Format::Json, Format::Csv])?;
    let shown = |account: &Account| {
        if format == Format::Csv {
            return claims::csv(&account.claims);
        }
        if !args.lens.whole(args.question.directions, &account.claims) {
            return claims::overview(account);
        }
        let mut text = claims::head(account);
        text.push_str(&claims::table(&account.claims));
        text.push_str(&claims::asides(&account.asides));
        text.push_str(&claims::footer(&account.claims, &account.unsupported));
        text
    };
    // A summary needs no more than it shows.
    let whole = args.lens.whole(args.question.directions, &[])
        || args.attribute.file()?.is_some()
        || args.certify;
    let account = args.asked(format == Format::Human && !whole)?.ask()?;
    let code = if args.certify {
        let certified = answers::certified(account);
        let code = show(&certified, format, console, |one| shown(&one.account))?;
        super::prove::tell(&certified.certificate, console);
        code
    } else {
        show(&account, format, console, shown)?
    };
    if args.question.delta.is_empty() && format != Format::Csv {
        console.hint("give --delta (well below 1/n) for epsilon and mu");
    }
    Ok(code)
}
