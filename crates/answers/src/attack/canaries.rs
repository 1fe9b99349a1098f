//! One fine-tuning of a language model with many canaries, of tokens or of gradients, and what it
//! shows.

use super::NothingElse;
use super::played::Played;
use crate::flags::{integer, nonnegative_integer, real, word};
use crate::play::{Play, beside, write_run};
use crate::train::{PRECISIONS, bad_language, checkpoints, meeting};
use crate::{AuditQuestion, Described, Document, Refusal, Work};
use audit::{Audit, Design, Method};
use clap::Args;
use experiments::{Experiment, Outcome};
use language::finetune::canaries::CanaryScore;
use language::finetune::game::{CanaryGame, Site};
use language::finetune::{CanaryDescription, CanaryKind, FinetuneDescription, Start};
use serde::{Deserialize, Serialize, Serializer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use training::PrecisionName;
use vocabulary::{Observe, Problem, Run};

/// The question of `attack token`, and of `attack canaries` about a language model.
#[derive(Clone, Debug, Default, Deserialize, Args)]
#[serde(default)]
pub struct CanariesQuestion {
    /// The fine-tuning, as `train` reads it: [run], [data], [model] kind = "language", [optimizer]
    #[arg(value_name = "RUN.toml", help_heading = Option::<&str>::None)]
    pub file: PathBuf,
    /// Keys that override those of the file.
    #[arg(skip)]
    pub run: Described,
    /// How many canaries [default: the file's, or 1000]
    #[arg(long, value_name = "M", value_parser = integer, help_heading = "The game")]
    pub canaries: Option<u64>,
    /// What is scored: the change of the token's row of the embedding along the canary's gradient,
    /// or how much its loss fell [default: the file's, or the embedding where that is trained, else
    /// the loss]
    #[arg(long, value_parser = word::<CanaryScore>(["embedding", "loss"]), help_heading = "The game")]
    pub score: Option<CanaryScore>,
    /// Number of tokens before the canary's own [default: the file's, or 8]
    #[arg(long, value_name = "K", value_parser = integer, help_heading = "The game")]
    pub prefix: Option<u64>,
    /// Canaries are gradients in place of tokens, and this is what their attacker sees.
    #[arg(skip)]
    #[serde(skip)]
    pub gradients: Option<Observe>,
    /// Seed of all randomness [default: the file's]
    #[arg(long, value_name = "SEED", value_parser = nonnegative_integer, help_heading = "The game")]
    pub seed: Option<u64>,
    /// Also print the lower bounds on epsilon that the canaries show at this delta
    #[arg(short = 'd', long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true, help_heading = "The game")]
    pub delta: Option<f64>,
    /// Where to compute: auto, cpu or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "auto", help_heading = "The work")]
    pub device: Option<String>,
    /// f32, or tf32 or bf16 on an NVIDIA device
    #[arg(long, value_parser = word::<PrecisionName>(PRECISIONS), default_value = "f32", help_heading = "The work")]
    pub precision: PrecisionName,
    /// Seconds between checkpoints; they do not change the result
    #[arg(long, value_name = "SECONDS", value_parser = real, default_value = "5", help_heading = "The work")]
    pub checkpoint_every: Option<f64>,
    #[command(flatten)]
    #[serde(flatten)]
    pub play: Play,
    #[arg(skip)]
    #[serde(flatten)]
    pub(super) _rest: NothingElse,
}

/// The game, and what its scores show.
#[derive(Clone, Debug)]
pub struct CanariesPlayed {
    pub played: Played,
    pub audit: Option<Audit>,
    /// How many canaries there were.
    pub canaries: u64,
    /// What was scored.
    pub score: String,
    /// Where the scores go.
    pub out: PathBuf,
    /// The delta at which they are audited.
    pub delta: Option<f64>,
}

impl Serialize for CanariesPlayed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.played.serialize(serializer)
    }
}

impl Document for CanariesPlayed {
    fn exit_code(&self) -> u8 {
        self.played.exit_code()
    }
}

/// Plays the game.
///
/// # Errors
/// What is wrong with the question, the file or the data.
pub(super) fn canaries(
    question: &CanariesQuestion,
    work: &dyn Work,
) -> Result<CanariesPlayed, Refusal> {
    let out = question.play.out()?;
    let checkpoint_every = checkpoints(question.checkpoint_every)?;
    if let Some(delta) = question.delta.filter(|delta| !(0.0..1.0).contains(delta)) {
        return Err(Problem::outside("delta", delta, "[0, 1)").into());
    }
    let start = question.open()?;
    let run = question.resolve(&start, work)?;
    let seed = question.seed.unwrap_or(start.description.seed);
    let name = question.device.as_deref().unwrap_or("auto");
    let device = start
        .device(name, question.precision)
        .map_err(|error| Refusal::bad_input(error.to_string()))?;
    let stop = work.stop();
    let state = beside(out, ".work").join("state");
    let site = Site {
        folder: state.clone(),
        device: Arc::new(device),
        checkpoint_every,
        stop: Arc::clone(&stop),
    };
    let game = CanaryGame::new(&start, run, seed, site).map_err(bad_language)?;
    let outcome = match question.play.train(&game, out, work) {
        Err(_) if stop.load(Ordering::Relaxed) => Outcome::Interrupted { computed: 0, missing: 1 },
        outcome => outcome?,
    };
    let mut played = Played::new(&game, Some(out), Some(outcome));
    let mut audit = None;
    if played.is_complete() {
        write_run(out, &game.plan().parameters["run"])?;
        // Only the time to train again is lost if it stays.
        drop(std::fs::remove_dir_all(&state));
        audit = question.delta.map(|delta| audited(out, delta)).transpose()?;
    }
    played = played.audited(audit.as_ref());
    let score = game.plan().parameters["score"].as_str().unwrap_or_default().to_owned();
    let canaries = game.plan().trials;
    let (out, delta) = (out.to_owned(), question.delta);
    Ok(CanariesPlayed { played, audit, canaries, score, out, delta })
}

impl CanariesQuestion {
    /// The file with the question laid over it, and what it names.
    fn open(&self) -> Result<Start, Refusal> {
        let place = self.file.display();
        let text = std::fs::read_to_string(&self.file).map_err(|error| {
            Refusal::bad_input(format!("cannot read {place}: {error}"))
                .hint("`dosimeter train --help` shows such a file")
        })?;
        if !FinetuneDescription::describes(&text) {
            return Err(Refusal::bad_input("token canaries need a language model")
                .at(&place)
                .hint("[model] kind = \"language\"; `attack canaries` plays with other models"));
        }
        let mut described = FinetuneDescription::from_toml_str(&text)
            .map_err(|error| bad_language(error).at(&place))?;
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let kind = match self.gradients {
            Some(_) => CanaryKind::Gradient,
            None => CanaryKind::Token,
        };
        // What the file says of canaries of the other kind is not asked here.
        let table = described
            .canaries
            .take_if(|table| table.kind == kind)
            .unwrap_or(CanaryDescription::new(kind, 1000));
        let table = described.canaries.insert(table);
        table.observe = self.gradients;
        table.count = self.canaries.map_or(table.count, size);
        table.prefix = self.prefix.map_or(table.prefix, size);
        table.score = self.score.or(table.score);
        Start::open(described, self.file.parent().unwrap_or(Path::new(""))).map_err(bad_language)
    }

    /// The run of the file and the keys; without a noise multiplier, the noise of the file's target.
    fn resolve(&self, start: &Start, work: &dyn Work) -> Result<Run, Refusal> {
        let keys = self.run.description()?;
        let mut described = start.description.run.clone().overridden_by(&keys)?;
        described.dataset_size.get_or_insert(start.records());
        let noise = described.whole.noise_multiplier;
        let target = start.description.privacy.filter(|_| noise.is_none());
        let target = target.map(|target| (target.target_epsilon, target.delta));
        meeting(target, described, &keys, self.file.display(), start.records(), work)
    }
}

/// What the scores show, with the bound for any mechanism as the primary one.
fn audited(out: &Path, delta: f64) -> Result<Audit, Refusal> {
    let design = Design::OneRun;
    let (primary, beside) = (Method::distribution_free(design), Method::within_family(design));
    let question = AuditQuestion {
        design: Some(design),
        delta: vec![delta],
        method: [primary, beside].map(|method| method.as_str().to_owned()).to_vec(),
        primary: Some(primary),
        ..AuditQuestion::default()
    };
    let table = crate::read_scores(&[out.to_owned()], &[], &[])?;
    Ok(crate::audit(&question, table)?.analysis)
}
