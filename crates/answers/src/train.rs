//! One training with its ledger, of a network or of a language model.

use crate::flags::{integer, real, word};
use crate::play::on_threads;
use crate::{Described, Document, Ended, Kind, Refusal, Work, exit};
use accounting::{Solution, Target, Unknown, calibrate};
use clap::Args;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use training::{
    Device, Explanation, Ledger, NoiseSource, PrecisionName, Training, TrainingDescription,
    TrainingError, TrainingOptions, TrainingOutcome,
};
use vocabulary::rounding::plain;
use vocabulary::{AtLeast, LensName, Run, RunDescription, RunFile};

/// The names of [`PrecisionName`].
pub const PRECISIONS: [&str; 3] = ["f32", "tf32", "bf16"];

/// The question of `train`; it names the file of the training.
#[derive(Clone, Debug, Default, Deserialize, Args)]
#[serde(deny_unknown_fields, default)]
pub struct TrainQuestion {
    /// The training: [run], [data], [model], [optimizer]
    #[arg(value_name = "RUN.toml", help_heading = Option::<&str>::None)]
    pub file: PathBuf,
    /// Keys that override those of the file.
    #[arg(skip)]
    pub run: Described,
    /// Choose the noise that gives this epsilon, instead of a noise multiplier
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true, help_heading = "The run")]
    pub target_epsilon: Option<f64>,
    /// Delta of the target [default: records^-1.1]
    #[arg(short = 'd', long, value_name = "D", value_parser = real, allow_hyphen_values = true, requires = "target_epsilon", help_heading = "The run")]
    pub delta: Option<f64>,
    /// Folder for model.safetensors and ledger.json [default: the file's name without .toml]
    #[arg(long, value_name = "DIR", help_heading = "The work")]
    pub out: Option<PathBuf>,
    /// Where to compute: auto, cpu or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "auto", help_heading = "The work")]
    pub device: Option<String>,
    /// f32, or on an NVIDIA device TF32: faster, and a record can contribute 1 + 2^-10 clip norms;
    /// bf16 for language models and convolutions
    #[arg(long, value_parser = word::<PrecisionName>(PRECISIONS), default_value = "f32", help_heading = "The work")]
    pub precision: PrecisionName,
    /// fast: Philox from the seed, for audits; secure: for a model to be released
    #[arg(long, value_parser = word::<NoiseSource>(["fast", "secure"]), default_value = "fast", help_heading = "The work")]
    pub noise: NoiseSource,
    /// Number of threads; it does not change the result [default: all cores]
    #[arg(long, value_name = "N", value_parser = integer, help_heading = "The work")]
    pub threads: Option<u64>,
    /// Seconds between checkpoints; they do not change the result
    #[arg(long, value_name = "SECONDS", value_parser = real, default_value = "5", help_heading = "The work")]
    pub checkpoint_every: Option<f64>,
    /// Replace files that another training wrote into the folder
    #[arg(long, help_heading = "The work")]
    pub force: bool,
}

/// A training that is finished. The document is its ledger.
#[derive(Clone, Debug)]
pub struct Trained {
    pub ledger: Box<Ledger>,
    pub out: PathBuf,
    /// At which the training may be accounted for: that of the target or of the policy, or one that fits the records.
    pub delta: String,
}

impl Serialize for Trained {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.ledger.serialize(serializer)
    }
}

impl Document for Trained {
    fn warnings(&self) -> Vec<String> {
        self.ledger.warnings.clone()
    }
}

impl Document for Explanation {}

/// Trains, or goes on where an earlier call was stopped.
///
/// # Errors
/// What is wrong with the question, the file or the data, and a noise that cannot be found.
pub fn train(question: &TrainQuestion, work: &dyn Work) -> Result<Ended<Trained>, Refusal> {
    let every = checkpoints(question.checkpoint_every)?;
    let text = question.text()?;
    #[cfg(feature = "language")]
    if language::finetune::FinetuneDescription::describes(&text) {
        return finetune(question, &text, every, work);
    }
    let (mut training, delta) = question.network(&text, work)?;
    question.carry_out(every, delta, &Device::with_precision, work, &mut |options| {
        training.carry_out(options)
    })
}

/// How each layer's gradients are clipped, and what that costs, in place of training.
///
/// # Errors
/// As [`train`]; a language model.
pub fn explain_training(question: &TrainQuestion, work: &dyn Work) -> Result<Explanation, Refusal> {
    let text = question.text()?;
    #[cfg(feature = "language")]
    if language::finetune::FinetuneDescription::describes(&text) {
        return Err(Refusal::bad_input("--explain is for networks, not for language models")
            .hint("docs/language.md says how their gradients are clipped"));
    }
    let (training, _) = question.network(&text, work)?;
    let device = Device::with_precision(question.device(), question.precision).map_err(refused)?;
    Ok(Explanation::new(training.recipe(), &device.record))
}

impl TrainQuestion {
    fn device(&self) -> &str {
        self.device.as_deref().unwrap_or("auto")
    }

    fn text(&self) -> Result<String, Refusal> {
        let place = self.file.display();
        let text = std::fs::read_to_string(&self.file).map_err(|error| {
            Refusal::bad_input(format!("cannot read {place}: {error}"))
                .hint("`dosimeter train --help` shows such a file")
        })?;
        #[cfg(not(feature = "language"))]
        if text.lines().any(|line| line.replace(' ', "") == "kind=\"language\"") {
            return Err(Refusal::absent("fine-tuning language models", "language").at(&place));
        }
        Ok(text)
    }

    fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new(""))
    }

    /// The training of a network that the file describes, and the delta that the question or the file's target states.
    fn network(&self, text: &str, work: &dyn Work) -> Result<(Training, Option<f64>), Refusal> {
        let described = TrainingDescription::from_toml_str(text)
            .map_err(|error| refused(error).at(self.file.display()))?;
        let split = described
            .data
            .load(self.folder())
            .map_err(|error| Refusal::bad_input(error.to_string()))?;
        let unused = &split.train.provenance.unused;
        if !unused.is_empty() {
            let names = unused.join(", ");
            work.note(&format!("columns that [data] does not list are not used: {names}"));
        }
        let target = described.privacy.map(|privacy| (privacy.target_epsilon, privacy.delta));
        let run = self.resolve(&described.run, split.train.len() as u64, target, work)?;
        let delta = self.stated_delta(text, target);
        Ok((Training::new(described, run, split).map_err(refused)?, delta))
    }

    /// The delta of the target; where no target is stated, that of the file's policy.
    fn stated_delta(&self, text: &str, target: Option<(f64, Option<f64>)>) -> Option<f64> {
        if self.target_epsilon.is_some() || target.is_some() {
            return self.delta.or_else(|| target?.1);
        }
        RunFile::from_toml_str(text).ok()?.policy?.delta
    }

    /// The run of a description and keys; without a noise multiplier, the noise that meets the target of
    /// the question or of the file (epsilon, and delta).
    fn resolve(
        &self,
        described: &RunDescription,
        records: u64,
        target: Option<(f64, Option<f64>)>,
        work: &dyn Work,
    ) -> Result<Run, Refusal> {
        let keys = self.run.description()?;
        let mut described = described.clone().overridden_by(&keys)?;
        described.dataset_size.get_or_insert(records);
        let target = self.target_epsilon.map(|epsilon| (epsilon, self.delta)).or(target);
        // Keys override the file: a noise multiplier given by hand wins over a file's target.
        let target = target
            .filter(|_| self.target_epsilon.is_some() || keys.whole.noise_multiplier.is_none());
        if target.is_some()
            && (described.whole.noise_multiplier.is_some() || !described.phases.is_empty())
        {
            return Err(Refusal::bad_input(
                "a noise multiplier (or phases) and a target epsilon are both given",
            )
            .hint("leave one of them out"));
        }
        meeting(target, described, &keys, self.file.display(), records, work)
    }

    /// Trains with progress. `delta` is that of the target, `named` finds the device of a name.
    fn carry_out(
        &self,
        checkpoint_every: Duration,
        delta: Option<f64>,
        named: &dyn Fn(&str, PrecisionName) -> Result<Device, TrainingError>,
        work: &dyn Work,
        training: &mut (
                 dyn FnMut(&TrainingOptions<'_>) -> Result<TrainingOutcome, TrainingError> + Send
             ),
    ) -> Result<Ended<Trained>, Refusal> {
        // Noise that is secure is made on the CPU; only naming another device is a contradiction.
        let device = match (self.noise, self.device()) {
            (NoiseSource::Secure, "auto") => Device::cpu(),
            (_, name) => named(name, self.precision).map_err(refused)?,
        };
        let default = || PathBuf::from(self.file.file_stem().unwrap_or_default());
        let out = self.out.clone().unwrap_or_else(default);
        let stop = work.stop();
        let options = TrainingOptions {
            out: &out,
            noise: self.noise,
            device: &device,
            force: self.force,
            checkpoint_every,
            stop: &stop,
            report: &|event| work.training(event),
        };
        match on_threads(self.threads, || training(&options))?.map_err(refused)? {
            TrainingOutcome::Interrupted { done, steps } => {
                work.note(&format!("interrupted after {done} of {steps} steps"));
                Ok(Ended::Stopped(exit::INTERRUPTED))
            }
            TrainingOutcome::Complete { ledger, resumed_from, found } => {
                if found {
                    work.note(&format!("{} was finished already", out.display()));
                } else if resumed_from > 0 {
                    work.note(&format!("resumed after step {resumed_from}"));
                }
                let usual = || usual_delta(ledger.data.records as u64);
                let delta = format!("{:e}", delta.unwrap_or_else(usual));
                Ok(Ended::Answered(Trained { ledger, out, delta }))
            }
        }
    }
}

/// The fine-tuning of a language model that the file describes.
#[cfg(feature = "language")]
fn finetune(
    question: &TrainQuestion,
    text: &str,
    every: Duration,
    work: &dyn Work,
) -> Result<Ended<Trained>, Refusal> {
    use language::LanguageError;
    use language::finetune::{FinetuneDescription, Finetuning, Place, Start};

    let described = FinetuneDescription::from_toml_str(text)
        .map_err(|error| bad_language(error).at(question.file.display()))?;
    let start = Start::open(described, question.folder()).map_err(bad_language)?;
    let (records, cut) = (start.records(), start.texts.cut);
    work.note(&format!("{records} records of {}", start.texts.name));
    if cut > 0 {
        work.warn(&format!("{cut} of them are longer than `length` tokens and lose their end"));
    }
    let target = start.description.privacy.map(|p| (p.target_epsilon, p.delta));
    let delta = question.stated_delta(text, target);
    let run = question.resolve(&start.description.run, records, target, work)?;
    let named = |name: &str, precision: PrecisionName| start.device(name, precision);
    question.carry_out(every, delta, &named, work, &mut |options| {
        let refused = |error: LanguageError| TrainingError::Recipe(error.to_string());
        let place = Place::of(options.device).map_err(refused)?;
        Finetuning::new(&start, run.clone(), start.description.seed, &place)
            .map_err(refused)?
            .carry_out(options)
    })
}

/// A described run; with a target, which is epsilon and delta, the one whose noise meets it.
///
/// # Errors
/// What is wrong with the run, and a target that no noise meets.
pub(crate) fn meeting(
    target: Option<(f64, Option<f64>)>,
    mut described: RunDescription,
    keys: &RunDescription,
    place: impl Display,
    records: u64,
    work: &dyn Work,
) -> Result<Run, Refusal> {
    if target.is_some() {
        described.whole.noise_multiplier = Some(1.0);
    }
    let run = described.resolve().map_err(|error| Refusal::from(error).of(keys, place))?.run;
    let Some((epsilon, delta)) = target else { return Ok(run) };
    let delta = delta.unwrap_or_else(|| usual_delta(records));
    let target = Target::Epsilon { epsilon, delta };
    let found = calibrate(&run, Unknown::NoiseMultiplier, &target, LensName::SIGNED, &[])?;
    if let Solution::NoiseMultiplier(_) = found.solution {
        let noise = &found.solution_shown;
        work.note(&format!(
            "noise multiplier {noise} for epsilon {epsilon} at delta {}",
            plain(delta)
        ));
    }
    Ok(found.run)
}

/// The delta of a target that states none: well below one in the records, with the digits that are shown.
fn usual_delta(records: u64) -> f64 {
    let exact = (records as f64).powf(-1.1);
    AtLeast::new(exact).to_string().parse().unwrap_or(exact)
}

/// The time between states on the disk.
///
/// # Errors
/// Seconds that are none.
pub fn checkpoints(seconds: Option<f64>) -> Result<Duration, Refusal> {
    let seconds = seconds.unwrap_or(5.0);
    if !(0.0..=1e9).contains(&seconds) {
        return Err(Refusal::bad_input(format!(
            "--checkpoint-every {seconds} is not between 0 and 1e9 seconds"
        )));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// A full disk is work left to do; everything else is the file's or the question's fault.
fn refused(error: TrainingError) -> Refusal {
    let kind = match &error {
        TrainingError::Io { source, .. } => match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Kind::Incomplete,
            _ => Kind::BadInput,
        },
        _ => Kind::BadInput,
    };
    Refusal::new(kind, error.to_string())
}

/// With how a run file names what is missing.
#[cfg(feature = "language")]
pub(crate) fn bad_language(error: language::LanguageError) -> Refusal {
    let refusal = Refusal::bad_input(error.to_string());
    match error {
        language::LanguageError::NoTokenizer { .. } => {
            refusal.hint("add `tokenizer = \"FILE\"` to the table [model]")
        }
        _ => refusal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the noise is found for is what a person reads and types again.
    #[test]
    fn a_delta_that_nobody_stated_is_the_one_that_is_printed() {
        for records in [7, 2_560, 26_048, 32_561, 10_000_000] {
            let (delta, exact) = (usual_delta(records), (records as f64).powf(-1.1));
            assert!(delta <= exact && delta > 0.999 * exact, "{records}: {delta:e} of {exact:e}");
            assert_eq!(plain(delta).parse(), Ok(delta), "{records}");
            assert!(format!("{delta:e}").len() <= "1.086e-5".len(), "{records}: {delta:e}");
        }
    }
}
