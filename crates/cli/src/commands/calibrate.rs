//! `calibrate`: which noise, steps, rate, batch size or epochs meets a target.

use super::answer;
use crate::args::{AttributeArgs, Format, LimitArgs, OutputArgs, RunArgs, nonnegative_integer};
use crate::console::Console;
use crate::print::{Align, TextTable, WIDTH, claims, describe, plain, wrap};
use accounting::{Advice, Calibration, Target};
use answers::legends;
use answers::{CalibrateQuestion, Refusal};
use clap::Args;
use vocabulary::AtMost;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter calibrate --target-epsilon 2 --delta 1e-5 --sample-rate 0.01 \\
      --steps 1000
  dosimeter calibrate --target-epsilon 3 --delta 1e-6 --dataset-size 100000 \\
      --epochs 20 --batch-sizes 256,512,1024,2048
  dosimeter calibrate --solve steps --target-tpr 0.05 --fpr 0.01 \\
      --noise-multiplier 1 --sample-rate 0.01
  dosimeter calibrate --solve sample-rate --target-bayes-security 0.9 \\
      --noise-multiplier 0.8 --steps 5000
  dosimeter calibrate --solve noise-multiplier --target-attack-accuracy 0.55 \\
      --attribute-sensitivity age.csv --attribute-mode record \\
      --sample-rate 0.01 --steps 1000
")]
pub struct CalibrateArgs {
    #[command(flatten)]
    question: CalibrateQuestion,
    /// Print the noise for each of these batch sizes, and recommend one [without a value: powers of
    /// two]
    #[arg(long, value_name = "B,B,…", value_parser = nonnegative_integer, value_delimiter = ',', num_args = 0..)]
    batch_sizes: Option<Vec<u64>>,
    #[command(flatten)]
    attribute: AttributeArgs,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl CalibrateArgs {
    fn question(&self) -> Result<CalibrateQuestion, Refusal> {
        Ok(CalibrateQuestion {
            time_limit: self.limit.time_limit,
            run: self.run.description().into(),
            attribute_sensitivity: self.attribute.file()?,
            attribute_mode: self.attribute.attribute_mode,
            ..self.question.clone()
        })
    }
}

pub(super) fn run(args: &CalibrateArgs, console: &mut Console) -> Result<u8, Refusal> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let question = args.question()?;
    match &args.batch_sizes {
        Some(sizes) => answer(&question.for_sizes(sizes), format, console, advised),
        None => answer(&question, format, console, human),
    }
}

fn advised(advice: &Advice) -> String {
    let mut table = TextTable::new([
        ("", Align::Left),
        ("batch\nsize", Align::Right),
        ("\nsteps", Align::Right),
        ("noise\nmultiplier", Align::Right),
        ("noise per record\nin a step", Align::Right),
        ("\nin all", Align::Right),
        (legends::ADVICE_COLUMNS[0], Align::Right),
        (legends::ADVICE_COLUMNS[1], Align::Right),
    ]);
    let number = |end: Option<AtMost>| end.map_or_else(|| "-".into(), |end| end.to_string());
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
    for row in &advice.rows {
        let mark = if advice.recommended == Some(row.batch_size) { "*" } else { "" };
        let [per_record, of_training] = row.noises_at_most();
        table.row([
            mark.to_owned(),
            row.batch_size.to_string(),
            row.steps.to_string(),
            text(&row.noise_shown),
            number(per_record),
            number(of_training),
            text(&row.proven),
            text(&row.heuristic),
        ]);
    }
    let mut shown = format!("{}, lens {}\n\n", wanted(&advice.target), advice.lens);
    shown.push_str(&table.render_within(0, 2, WIDTH));
    shown.push('\n');
    shown.push_str(&wrap(&format!("{}.", advice.reason), "* ", 2, WIDTH));
    for row in &advice.rows {
        if let Some(reason) = &row.reason {
            shown.push_str(&wrap(reason, &format!("size {}: ", row.batch_size), 2, WIDTH));
        }
    }
    shown
}

/// The target as a sentence without a verb.
fn wanted(target: &Target) -> String {
    let (_, sign) = target.quantity().limit();
    format!("{} {sign} {}", claims::title(target.quantity(), target.at()), plain(target.value()))
}

fn human(answer: &Calibration) -> String {
    let claim = &answer.achieved;
    let wanted = wanted(&answer.target);
    let mut text = format!("{}\n\n", answer.solution_in_words());
    text.push_str(&format!("meets     {wanted}\n"));
    let slack = answer.slack_in_words();
    text.push_str(&format!(
        "achieved  {} ({}, lens {}), {slack}\n",
        claims::number(claim),
        claim.standing.as_str(),
        claim.source,
    ));
    text.push_str(&wrap(&describe::run(&answer.run_as_shown()), "run       ", 10, WIDTH));
    text.push_str(&claims::footer(std::slice::from_ref(claim), &[]));
    text
}
