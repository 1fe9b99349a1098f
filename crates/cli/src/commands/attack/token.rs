//! `attack token`, and `attack canaries` on a language model: one fine-tuning with many canaries, of
//! tokens or of gradients, and what it shows.

use super::{WorkArgs, narrate};
use crate::args::{Format, OutputArgs, RunArgs, integer, nonnegative_integer, real, word};
use crate::commands::show;
use crate::console::Console;
use crate::print::audit::interval;
use crate::progress::Progress;
use answers::legends;
use answers::{CanariesPlayed, CanariesQuestion};
use answers::{PRECISIONS, Refusal};
use clap::{Args, ValueEnum};
use language::finetune::canaries::CanaryScore;
use std::path::{Path, PathBuf};
use training::PrecisionName;

#[derive(Clone, Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter attack token tune.toml --canaries 1000 --delta 1e-5 \\
      --out canaries.csv
  dosimeter attack token tune.toml --score loss --canaries 2000 \\
      --out canaries.csv
  dosimeter audit canaries.csv --delta 1e-5 --claim canaries.csv.run.json

A canary is a few tokens of the data and then one that the data never uses; each
is included with probability 1/2. One training gives one score per canary. Run
the same command again to resume.
")]
pub(in crate::commands) struct TokenArgs {
    /// The fine-tuning, as `train` reads it: [run], [data], [model] kind = "language", [optimizer]
    #[arg(value_name = "RUN.toml")]
    file: PathBuf,
    #[command(flatten)]
    run: RunArgs,
    /// How many canaries [default: the file's, or 1000]
    #[arg(long, value_name = "M", value_parser = integer, help_heading = "The game")]
    canaries: Option<u64>,
    /// What is scored [default: the file's, or the embedding where that is trained, else the loss]
    #[arg(long, value_enum, help_heading = "The game")]
    score: Option<ScoreArg>,
    /// Number of tokens before the canary's own [default: the file's, or 8]
    #[arg(long, value_name = "K", value_parser = integer, help_heading = "The game")]
    prefix: Option<u64>,
    /// Seed of all randomness [default: the file's]
    #[arg(long, value_name = "SEED", value_parser = nonnegative_integer, help_heading = "The game")]
    seed: Option<u64>,
    /// Also print the lower bounds on epsilon that the canaries show at this delta
    #[arg(short = 'd', long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true, help_heading = "The game")]
    delta: Option<f64>,
    /// Where to compute: auto, cpu or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "auto", help_heading = "The work")]
    device: String,
    /// f32, or tf32 or bf16 on an NVIDIA device
    #[arg(long, value_parser = word::<PrecisionName>(PRECISIONS), default_value = "f32", help_heading = "The work")]
    precision: PrecisionName,
    /// Seconds between checkpoints; they do not change the result
    #[arg(long, value_name = "SECONDS", value_parser = real, default_value = "5", help_heading = "The work")]
    checkpoint_every: f64,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ScoreArg {
    /// The change of the token's row of the embedding, along the canary's gradient
    Embedding,
    /// How much the canary's loss fell
    Loss,
}

pub(super) fn run(args: &TokenArgs, console: &mut Console) -> Result<u8, Refusal> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let question = CanariesQuestion {
        file: args.file.clone(),
        run: args.run.description().into(),
        canaries: args.canaries,
        score: args.score.map(|score| match score {
            ScoreArg::Embedding => CanaryScore::Embedding,
            ScoreArg::Loss => CanaryScore::Loss,
        }),
        prefix: args.prefix,
        gradients: None,
        seed: args.seed,
        delta: args.delta,
        device: Some(args.device.clone()),
        precision: args.precision,
        checkpoint_every: Some(args.checkpoint_every),
        play: args.work.play(),
    };
    ask(&question, format, console)
}

/// Plays the canaries and shows what came out.
pub(in crate::commands) fn ask(
    question: &CanariesQuestion,
    format: Format,
    console: &mut Console,
) -> Result<u8, Refusal> {
    let done = answers::canaries(question, &Progress::new(console))?;
    let out = question.play.out()?;
    let complete = done.played.is_complete();
    let code = if complete || format == Format::Json {
        show(&done, format, console, |done| human(done, out))?
    } else {
        answers::Document::exit_code(&done)
    };
    if let Some(outcome) = &done.played.outcome {
        narrate(outcome, out, console);
    }
    if complete {
        let delta = question.delta.unwrap_or(1e-5);
        console.hint(&format!(
            "dosimeter audit {} --delta {delta:e} --claim {}",
            out.display(),
            answers::beside(out, answers::RUN_ENDING).display()
        ));
    }
    Ok(code)
}

fn human(done: &CanariesPlayed, out: &Path) -> String {
    let mut text = format!(
        "one training with {} {}: {}\n",
        done.canaries,
        match done.score.as_str() {
            "embedding" => {
                "token canaries, each in with probability 1/2, scored by the change of their row of \
                 the embedding"
            }
            "loss" => {
                "token canaries, each in with probability 1/2, scored by the fall of their loss"
            }
            "last-iterate" => {
                "gradient canaries, each in with probability 1/2, scored by the model's move along \
                 them"
            }
            _ => {
                "gradient canaries, each in with probability 1/2, scored by the noisy sums along them"
            }
        },
        out.display()
    );
    if let Some(found) = &done.audit {
        let [value, from, to] = interval(&found.auroc);
        text.push_str(&format!(
            "\n  {:<14} {} ({}: {} to {})\n",
            "AUROC",
            value,
            legends::measured_with(found.plan.confidence),
            from,
            to,
        ));
        for bound in &found.bounds {
            text.push_str(&format!(
                "  {:<14} epsilon {} at delta {:e} ({}; {})\n",
                bound.method().as_str(),
                bound.claim.shown(),
                bound.delta(),
                legends::measured_with(bound.level().unwrap_or(0.0)),
                bound.valid_for
            ));
        }
    }
    text
}
