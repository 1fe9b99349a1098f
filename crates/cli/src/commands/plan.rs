//! `plan`: how many runs or canaries an audit needs.

use super::answer;
use crate::args::{Format, LimitArgs, OutputArgs, RunArgs, claimed};
use crate::console::Console;
use crate::print::{WIDTH, confidence, plain, with_commas, wrap};
use answers::{NeededRows, PlanQuestion, Planned, Refusal};
use audit::{Design, Method};
use clap::Args;
use std::path::PathBuf;
use vocabulary::Quoted;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter plan --target-epsilon 1 --mu 1
  dosimeter plan --target-epsilon 2 --delta 1e-5 --noise-multiplier 0.8 \\
      --sample-rate 0.1 --steps 50
  dosimeter plan --claim run.toml --delta 1e-5 --attack-fpr 0.001 \\
      --attack-tpr 0.9
  dosimeter plan --claim run.toml --delta 1e-5 --method composition \\
      --noise-multiplier 0.5 --sample-rate 0.1 --steps 50
  dosimeter plan --target-epsilon 1 --mu 1.5 --design one-run

Assume an attack: --mu, or --attack-fpr with --attack-tpr, or a run for the best
attack on it. The answer is how many scores show the target with this power.
")]
pub struct PlanArgs {
    #[command(flatten)]
    question: PlanQuestion,
    /// The claimed run; its proven epsilon is the target unless --target-epsilon is given
    #[arg(long, value_name = "RUN.toml")]
    claim: Option<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &PlanArgs, console: &mut Console) -> Result<u8, Refusal> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let question = PlanQuestion {
        time_limit: args.limit.time_limit,
        claim: claimed(args.claim.as_deref())?,
        run: (!args.run.is_empty()).then(|| args.run.description().into()),
        ..args.question.clone()
    };
    answer(&question, format, console, human)
}

fn human(answer: &Planned) -> String {
    let goal = format!(
        "epsilon {} at delta {} with {} confidence",
        answer.target_at_least().shown(),
        plain(answer.target.delta),
        confidence(answer.confidence)
    );
    let needed = match answer.needed {
        NeededRows::Runs { runs_per_side, .. } => format!(
            "{0} trainings with the canary and {0} without show {goal}",
            with_commas(runs_per_side)
        ),
        NeededRows::Canaries { canaries } => format!(
            "{} canaries in one training, each in with probability 1/2, show {goal}",
            with_commas(canaries)
        ),
    };
    let mut text = wrap(&needed, "", 0, WIDTH);
    let mut line = |label: &str, words: &str| {
        text.push_str(&wrap(words, &format!("  {label:13}"), 15, WIDTH));
    };
    let simulated =
        if answer.power_simulated { " (simulated, less two standard errors)" } else { "" };
    let power = answer.power_at_least();
    line("probability", &format!("{power}{simulated}"));
    line("method", &format!("{}, threshold {}", answer.method, answer.threshold_rule));
    let attack = &answer.attack;
    let threshold = attack
        .fpr
        .zip(attack.tpr_at_least())
        .map(|(fpr, tpr)| format!("; best threshold at FPR {}, TPR {tpr}", Quoted::about(fpr)));
    line("attack", &format!("{}{}", attack.description, threshold.unwrap_or_default()));
    match answer.largest_at_most() {
        Some(largest) if answer.method == Method::distribution_free(Design::Runs) => {
            line("at most", &format!("{largest}, by any number of scores of this attack"));
        }
        _ => {}
    }
    if let Some(note) = answer.method.proviso() {
        text.push_str(&wrap(note, "  ", 2, WIDTH));
    }
    text
}
