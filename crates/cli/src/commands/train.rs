//! `train`: one DP-SGD or DP-Adam run, with its ledger.

use crate::args::{Format, OutputArgs, RunArgs, integer, real};
use crate::console::Console;
use crate::exit;
use crate::failure::Failure;
use crate::progress::Progress;
use accounting::{Solution, Target, Unknown, calibrate};
use answers::Refusal;
use clap::{Args, ValueEnum};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use training::{
    Device, Explanation, Ledger, NoiseSource, PrecisionName, Training, TrainingDescription,
    TrainingError, TrainingOptions, TrainingOutcome,
};
use vocabulary::{LensName, Run, RunDescription};

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
  path = \"texts.jsonl\"          # prompt and completion, or text, one object per line
  [model]
  kind = \"language\"
  path = \"SmolLM2.gguf\"         # or a folder with safetensors, or a llama2.c file
  train = \"lora\"                # or \"full\"
  rank = 4
  projections = [\"query\", \"value\"]
on an NVIDIA device where there is one and adapters are trained: --device cuda:0, faster with
--precision tf32 or bf16.

The same command again resumes, or says that it is finished.
")]
pub struct TrainArgs {
    /// The training: [run], [data], [model], [optimizer]
    #[arg(value_name = "RUN.toml")]
    file: PathBuf,
    #[command(flatten)]
    run: RunArgs,
    /// Calibrate the noise to this epsilon, in place of a noise multiplier
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true, help_heading = "The run")]
    target_epsilon: Option<f64>,
    /// Delta of the target [default: records^-1.1]
    #[arg(short = 'd', long, value_name = "D", value_parser = real, allow_hyphen_values = true, requires = "target_epsilon", help_heading = "The run")]
    delta: Option<f64>,
    /// Folder for model.safetensors and ledger.json [default: the file's name without .toml]
    #[arg(long, value_name = "DIR", help_heading = "The work")]
    out: Option<PathBuf>,
    /// Where to compute: auto, cpu or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "auto", help_heading = "The work")]
    device: String,
    /// f32, or on an NVIDIA device TF32: faster, and a record can contribute 1 + 2^-10 clip norms;
    /// bf16 for language models and convolutions
    #[arg(long, value_enum, default_value_t = PrecisionArg::F32, help_heading = "The work")]
    precision: PrecisionArg,
    /// fast: Philox from the seed, for audits; secure: for a model to be released
    #[arg(long, value_enum, default_value_t = NoiseArg::Fast, help_heading = "The work")]
    noise: NoiseArg,
    /// Threads [default: all cores]; the result does not depend on it
    #[arg(long, value_name = "N", value_parser = integer, help_heading = "The work")]
    threads: Option<u64>,
    /// Seconds between checkpoints; the result does not depend on it
    #[arg(long, value_name = "SECONDS", value_parser = real, default_value = "5", help_heading = "The work")]
    checkpoint_every: f64,
    /// Replace what another training left in the folder
    #[arg(long, help_heading = "The work")]
    force: bool,
    /// In place of training: how each layer's gradients are clipped, and what that costs
    #[arg(long, help_heading = "The work")]
    explain: bool,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum NoiseArg {
    Fast,
    Secure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PrecisionArg {
    F32,
    Tf32,
    Bf16,
}

impl PrecisionArg {
    pub(crate) fn name(self) -> PrecisionName {
        match self {
            Self::F32 => PrecisionName::F32,
            Self::Tf32 => PrecisionName::Tf32,
            Self::Bf16 => PrecisionName::Bf16,
        }
    }
}

pub(super) fn run(args: &TrainArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.format()?;
    let seconds = args.checkpoint_every;
    if !(0.0..=1e9).contains(&seconds) {
        return Err(Failure::bad_input(format!(
            "--checkpoint-every {seconds} is not between 0 and 1e9 seconds"
        )));
    }
    let place = args.file.display();
    let text = std::fs::read_to_string(&args.file)
        .map_err(|error| Failure::bad_input(format!("cannot read {place}: {error}")))?;
    let folder = args.file.parent().unwrap_or(Path::new(""));
    #[cfg(feature = "language")]
    if language::finetune::FinetuneDescription::describes(&text) {
        if args.explain {
            return Err(Failure::bad_input("--explain is for networks, not for language models")
                .hint("docs/language.md says how their gradients are clipped"));
        }
        return super::finetune::run(args, &text, folder, console);
    }
    #[cfg(not(feature = "language"))]
    if text.lines().any(|line| line.replace(' ', "") == "kind=\"language\"") {
        return Err(super::absent::absent("fine-tuning language models", "language").at(&place));
    }
    let description =
        TrainingDescription::from_toml_str(&text).map_err(|error| failure(error).at(&place))?;
    let split =
        description.data.load(folder).map_err(|error| Failure::bad_input(error.to_string()))?;
    let unused = &split.train.provenance.unused;
    if !unused.is_empty() {
        console.note(&format!(
            "columns that [data] does not list are not used: {}",
            unused.join(", ")
        ));
    }
    let run = args.resolve(&description.run, split.train.len() as u64, None, console)?;
    let mut training = Training::new(description, run, split).map_err(failure)?;
    let named = Device::with_precision;
    if args.explain {
        let device = named(&args.device, args.precision.name()).map_err(failure)?;
        let found = Explanation::new(training.recipe(), &device.record);
        match format {
            Format::Json => console.json(&found)?,
            _ => console.answer(&super::explain::human(&found))?,
        }
        return Ok(exit::ANSWERED);
    }
    let delta = args.stated_delta(None);
    carry_out(args, format, delta, &named, console, &mut |options| training.carry_out(options))
}

impl TrainArgs {
    pub(super) fn format(&self) -> Result<Format, Failure> {
        self.output.among(&[Format::Human, Format::Json])
    }

    /// The file, for messages.
    #[cfg(feature = "language")]
    pub(super) fn place(&self) -> String {
        self.file.display().to_string()
    }

    /// The delta that a flag or the target of the file states.
    pub(super) fn stated_delta(&self, target: Option<(f64, Option<f64>)>) -> Option<f64> {
        self.delta.or_else(|| target?.1)
    }

    /// The run of a description and flags; without a noise multiplier, the noise that meets the
    /// target of the flags or of the file (epsilon, and delta unless it is records^-1.1).
    pub(super) fn resolve(
        &self,
        described: &RunDescription,
        records: u64,
        target: Option<(f64, Option<f64>)>,
        console: &mut Console,
    ) -> Result<Run, Failure> {
        let place = self.file.display();
        let flags = self.run.description();
        let mut described = described.clone().overridden_by(&flags)?;
        described.dataset_size.get_or_insert(records);
        let target = self.target_epsilon.map(|epsilon| (epsilon, self.delta)).or(target);
        // Flags override the file: a noise multiplier given by hand wins over a file's target.
        let target =
            target.filter(|_| self.target_epsilon.is_some() || self.run.noise_multiplier.is_none());
        let Some((epsilon, delta)) = target else {
            let resolved =
                described.resolve().map_err(|error| Refusal::from(error).of(&flags, &place))?;
            return Ok(resolved.run);
        };
        if described.whole.noise_multiplier.is_some() || !described.phases.is_empty() {
            return Err(Failure::bad_input(
                "a noise multiplier (or phases) and a target epsilon are both given",
            )
            .hint("leave one of them out"));
        }
        described.whole.noise_multiplier = Some(1.0);
        let run = described.resolve().map_err(|error| Refusal::from(error).of(&flags, &place))?.run;
        let delta = delta.unwrap_or_else(|| (records as f64).powf(-1.1));
        let target = Target::Epsilon { epsilon, delta };
        let found = calibrate(&run, Unknown::NoiseMultiplier, &target, LensName::Composition, &[])?;
        if let Solution::NoiseMultiplier(noise) = found.solution {
            console.note(&format!(
                "noise multiplier {noise} for epsilon {epsilon} at delta {delta:.3e}"
            ));
        }
        Ok(found.run)
    }
}

/// Trains with progress and Ctrl-C, and prints what came out. `delta` is that of the target, `named`
/// finds the device of a name.
pub(super) fn carry_out(
    args: &TrainArgs,
    format: Format,
    delta: Option<f64>,
    named: &dyn Fn(&str, PrecisionName) -> Result<Device, TrainingError>,
    console: &mut Console,
    training: &mut (
             dyn FnMut(&TrainingOptions<'_>) -> Result<TrainingOutcome, TrainingError> + Send
         ),
) -> Result<u8, Failure> {
    let seconds = args.checkpoint_every;
    // Noise that is secure is made on the CPU; only naming another device is a contradiction.
    let device = match (args.noise, args.device.as_str()) {
        (NoiseArg::Secure, "auto") => Device::cpu(),
        (_, name) => named(name, args.precision.name()).map_err(failure)?,
    };
    let default = || PathBuf::from(args.file.file_stem().unwrap_or_default());
    let out = args.out.clone().unwrap_or_else(default);
    let stop = console.stop_flag();
    let progress = Progress::new(console);
    let options = TrainingOptions {
        out: &out,
        noise: match args.noise {
            NoiseArg::Fast => NoiseSource::Fast,
            NoiseArg::Secure => NoiseSource::Secure,
        },
        device: &device,
        force: args.force,
        checkpoint_every: Duration::from_secs_f64(seconds),
        stop: &stop,
        report: &|event| progress.training(event),
    };
    let outcome = match args.threads {
        None => training(&options),
        Some(threads) => rayon::ThreadPoolBuilder::new()
            .num_threads(usize::try_from(threads).unwrap_or(usize::MAX).min(1024))
            .build()
            .map_err(|error| Failure::new(exit::BUG, error.to_string()))?
            .install(|| training(&options)),
    };
    drop(progress);
    match outcome.map_err(failure)? {
        TrainingOutcome::Interrupted { done, steps } => {
            console.note(&format!("interrupted after {done} of {steps} steps"));
            console.hint("run the same command again to resume");
            Ok(exit::INTERRUPTED)
        }
        TrainingOutcome::Complete { ledger, resumed_from, found } => {
            if found {
                console.note(&format!("{} was finished already", out.display()));
            } else if resumed_from > 0 {
                console.note(&format!("resumed after step {resumed_from}"));
            }
            if format == Format::Json {
                console.json(&*ledger)?;
            } else {
                console.answer(&human(&ledger, &out))?;
            }
            for warning in &ledger.warnings {
                console.warn(warning);
            }
            if out.join("canaries.csv").exists() {
                console.hint(&format!("dosimeter audit {}", out.join("canaries.csv").display()));
            }
            // The delta that a target would have had: well below one in the records.
            let usual = || (ledger.data.records as f64).powf(-1.1);
            let delta =
                delta.map_or_else(|| format!("{:.3e}", usual()), |delta| format!("{delta:e}"));
            console.hint(&format!(
                "dosimeter account {} --delta {delta}",
                out.join("ledger.json").display()
            ));
            Ok(exit::ANSWERED)
        }
    }
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
        text.push_str(&format!("  {:<16} {}\n", "gradient norms", quantiles.join("  ")));
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

fn failure(error: TrainingError) -> Failure {
    let code = match &error {
        TrainingError::Io { source, .. } => match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => exit::INCOMPLETE,
            _ => exit::BAD_INPUT,
        },
        _ => exit::BAD_INPUT,
    };
    Failure::new(code, error.to_string())
}
