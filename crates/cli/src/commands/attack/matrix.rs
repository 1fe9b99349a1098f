//! `attack lira` and `attack rmia`: scores from a matrix of losses that somebody's models have.

use crate::args::{Format, OutputArgs};
use crate::commands::show;
use crate::console::{Console, write_file};
use crate::print::audit::interval;
use crate::print::{Align, TextTable};
use answers::{MatrixQuestion, MembershipDocument, MembershipQuestion, Refusal};
use clap::Args;
use std::path::PathBuf;
use vocabulary::Measured;

#[derive(Clone, Debug, Args)]
pub(super) struct MatrixArgs<A: Args> {
    #[command(flatten)]
    question: MatrixQuestion<A>,
    /// File for the scores of the target
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

impl<A: Args + Clone> MatrixArgs<A> {
    pub(super) fn ask(
        &self,
        attack: impl FnOnce(MatrixQuestion<A>) -> MembershipQuestion,
        console: &mut Console,
    ) -> Result<u8, Refusal> {
        let format = self.output.among(&[Format::Human, Format::Json])?;
        let document = answers::membership(&attack(self.question.clone()))?;
        if let Some(out) = &self.out {
            write_file(out, document.scores.clone())?;
        }
        let code = show(&document, format, console, human)?;
        if let Some(out) = &self.out {
            console.hint(&format!("dosimeter audit {} --delta 1e-5", out.display()));
        }
        Ok(code)
    }
}

fn human(document: &MembershipDocument) -> String {
    let MembershipDocument { attack, models, records, target, members, .. } = document;
    let mut text = format!(
        "{attack}: model {target} of {models} on {records} records, {members} of them its own\n\n"
    );
    let mut table = TextTable::new([
        ("the attack", Align::Left),
        ("value", Align::Right),
        ("from", Align::Right),
        ("to", Align::Right),
    ]);
    let mut row = |name: String, one: &Measured| {
        let [value, lower, upper] = interval(one);
        table.row([name, value, lower, upper]);
    };
    row("AUROC".to_owned(), &document.auroc);
    for one in &document.tpr {
        row(format!("TPR at FPR {}", one.fpr), &one.measured);
    }
    text.push_str(&table.render(2));
    text.push_str("  intervals take the records for independent\n");
    text.push_str(&format!(
        "\nRecords most at risk, over all models (delta {}; the whole table holds together)\n",
        crate::print::plain(document.delta)
    ));
    let mut table = TextTable::new([
        ("record", Align::Right),
        ("epsilon", Align::Right),
        ("advantage", Align::Right),
        ("from", Align::Right),
        ("to", Align::Right),
    ]);
    for one in &document.at_risk {
        let [value, lower, upper] = interval(&one.advantage);
        table.row([one.record.to_string(), one.shown.clone(), value, lower, upper]);
    }
    text.push_str(&table.render(2));
    text
}
