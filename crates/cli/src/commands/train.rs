//! `train`: one DP-SGD or DP-Adam run, with its ledger.

use crate::args::{Format, OutputArgs, RunArgs};
use crate::commands::show;
use crate::console::Console;
use crate::progress::Progress;
use answers::{Ended, Refusal, TrainQuestion};
use clap::Args;
use std::path::Path;
use training::Ledger;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter train adult.toml
  dosimeter train adult.toml --noise-multiplier 2 --epochs 5 --out noisier
  dosimeter train mnist.toml --noise secure --out release
  dosimeter train adult.toml --explain
  dosimeter account adult/ledger.json --delta 1e-5

adult.toml:
  [run]
  noise_multiplier = 1.0
  batch_size = 256
  epochs = 10
  seed = 1
  [data]
  name = \"adult\"
  [model]
  kind = \"mlp\"
  hidden = [128]
  activation = \"tanh\"
  [optimizer]
  kind = \"adam\"
  learning_rate = 1e-3

A language model is fine-tuned with
  [data]
  path = \"texts.jsonl\"  # one object per line: prompt and completion, or text
  [model]
  kind = \"language\"
  path = \"SmolLM2.gguf\" # or a folder with safetensors, or a llama2.c file
  train = \"lora\"        # or \"full\"
  rank = 4
  projections = [\"query\", \"value\"]
An NVIDIA device is used where there is one (--device cpu prevents it);
--precision tf32 or bf16 is faster there.

Run the same command again to resume.
")]
pub struct TrainArgs {
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    question: TrainQuestion,
    /// Do not train; print how each layer's gradients are clipped, and what that costs
    #[arg(long, help_heading = "The work")]
    explain: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &TrainArgs, console: &mut Console) -> Result<u8, Refusal> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let question = TrainQuestion { run: args.run.description().into(), ..args.question.clone() };
    let work = Progress::new(console);
    if args.explain {
        let found = answers::explain_training(&question, &work)?;
        drop(work);
        return show(&found, format, console, super::explain::human);
    }
    let ended = answers::train(&question, &work)?;
    drop(work);
    let done = match ended {
        Ended::Answered(done) => done,
        Ended::Stopped(code) => {
            console.hint("run the same command again to resume");
            return Ok(code);
        }
    };
    let out = &done.out;
    let code = show(&done, format, console, |done| human(&done.ledger, &done.out))?;
    if out.join("canaries.csv").exists() {
        console.hint(&format!("dosimeter audit {}", out.join("canaries.csv").display()));
    }
    console.hint(&format!(
        "dosimeter account {} --delta {}",
        out.join("ledger.json").display(),
        done.delta
    ));
    Ok(code)
}

fn human(ledger: &Ledger, out: &Path) -> String {
    let mut text = format!(
        "{} with {} parameters on {}: {} records, {} steps\n",
        ledger.model.description.name(),
        ledger.model.parameters,
        ledger.data.provenance.name,
        ledger.data.records,
        ledger.run.steps()
    );
    text.push_str("\nnot private (computed from records):\n");
    let measured = &ledger.not_private;
    for (what, accuracy) in
        [("test accuracy", measured.test_accuracy), ("train accuracy", measured.train_accuracy)]
    {
        if let Some(accuracy) = accuracy {
            text.push_str(&format!("  {what:<16} {:.2} %\n", 100.0 * accuracy));
        }
    }
    if let Some(loss) = measured.test_loss {
        text.push_str(&format!("  {:<16} {loss:.4} nats per token\n", "test loss"));
    }
    if let Some(statistics) = &measured.statistics {
        let sizes = &statistics.batch_sizes;
        text.push_str(&format!(
            "  {:<16} {:.1} records on average, {} to {}\n",
            "batches", sizes.mean, sizes.smallest, sizes.largest
        ));
        text.push_str(&format!(
            "  {:<16} {:.1} % of the gradients, at {}\n",
            "clipped",
            100.0 * statistics.fraction_clipped,
            ledger.clipping.norm
        ));
        let quantiles: Vec<String> = statistics
            .gradient_norm_quantiles
            .iter()
            .map(|quantile| {
                format!("{} ({:.0} %)", three_digits(quantile.norm), 100.0 * quantile.level)
            })
            .collect();
        // Three on a line fit a screen.
        for (line, three) in quantiles.chunks(3).enumerate() {
            let what = if line == 0 { "gradient norms" } else { "" };
            text.push_str(&format!("  {what:<16} {}\n", three.join("  ")));
        }
    }
    text.push_str(&format!(
        "\n{}\n{}\n",
        out.join("model.safetensors").display(),
        out.join("ledger.json").display()
    ));
    text
}

/// A number without a side, to three digits.
fn three_digits(value: f64) -> String {
    if value != 0.0 && !(1e-3..1e6).contains(&value) {
        return format!("{value:.2e}");
    }
    let digits = (2.0 - value.abs().max(1e-3).log10().floor()).clamp(0.0, 5.0) as usize;
    format!("{value:.digits$}")
}
