//! `attack token`, and `attack canaries` on a language model: one fine-tuning with many canaries, of
//! tokens or of gradients, and what it shows.

use super::{WorkArgs, exit_code, narrate};
use crate::args::{Format, OutputArgs, RunArgs, integer, nonnegative_integer, real};
use crate::commands::finetune::bad_input;
use crate::commands::train::PrecisionArg;
use crate::commands::trained;
use crate::console::Console;
use crate::failure::Failure;
use crate::print::rounded;
use accounting::{Solution, Target, Unknown, calibrate};
use answers::Refusal;
use audit::{Audit, AuditError, Design, Method, Plan, Scores, Table, analyse};
use clap::{Args, ValueEnum};
use experiments::{Experiment, Outcome};
use language::finetune::canaries::CanaryScore;
use language::finetune::game::{CanaryGame, Site};
use language::finetune::gradient_canaries::Observe;
use language::finetune::{CanaryDescription, CanaryKind, FinetuneDescription, Start};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use vocabulary::{LensName, Run, Side};

#[derive(Clone, Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter attack token tune.toml --canaries 1000 --delta 1e-5 --out canaries.csv
  dosimeter attack token tune.toml --score loss --canaries 2000 --out canaries.csv
  dosimeter audit canaries.csv --delta 1e-5 --claim canaries.csv.run.json

A canary is a few tokens of the data and then one that the data never uses; each is in with
probability 1/2. One training, one score per canary. Interrupted, the same command goes on.
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
    /// Tokens before the canary's own [default: the file's, or 8]
    #[arg(long, value_name = "K", value_parser = integer, help_heading = "The game")]
    prefix: Option<u64>,
    /// Root of all randomness [default: the file's]
    #[arg(long, value_name = "SEED", value_parser = nonnegative_integer, help_heading = "The game")]
    seed: Option<u64>,
    /// Also what the canaries show at this delta: lower bounds on epsilon
    #[arg(short = 'd', long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true, help_heading = "The game")]
    delta: Option<f64>,
    /// Where to compute: auto, cpu or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "auto", help_heading = "The work")]
    device: String,
    /// f32, or tf32 or bf16 on an NVIDIA device
    #[arg(long, value_enum, default_value_t = PrecisionArg::F32, help_heading = "The work")]
    precision: PrecisionArg,
    /// Seconds between states of the training on the disk; the result does not depend on it
    #[arg(long, value_name = "SECONDS", value_parser = real, default_value = "5", help_heading = "The work")]
    checkpoint_every: f64,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Gradient canaries in place of tokens, and what their attacker sees.
    #[arg(skip)]
    gradients: Option<Observe>,
}

/// What `attack canaries` asks of a language model.
pub(in crate::commands) struct Asked<'a> {
    pub(in crate::commands) file: &'a Path,
    pub(in crate::commands) run: &'a RunArgs,
    pub(in crate::commands) canaries: u64,
    pub(in crate::commands) observe: Observe,
    pub(in crate::commands) seed: Option<u64>,
    pub(in crate::commands) device: &'a str,
    pub(in crate::commands) precision: PrecisionArg,
    pub(in crate::commands) checkpoint_every: f64,
    pub(in crate::commands) work: &'a WorkArgs,
    pub(in crate::commands) output: &'a OutputArgs,
}

/// Plays gradient canaries on a language model.
pub(in crate::commands) fn gradients(
    asked: &Asked<'_>,
    console: &mut Console,
) -> Result<u8, Failure> {
    let args = TokenArgs {
        file: asked.file.to_owned(),
        run: asked.run.clone(),
        canaries: Some(asked.canaries),
        score: None,
        prefix: None,
        seed: asked.seed,
        delta: None,
        device: asked.device.to_owned(),
        precision: asked.precision,
        checkpoint_every: asked.checkpoint_every,
        work: asked.work.clone(),
        output: asked.output.clone(),
        gradients: Some(asked.observe),
    };
    run(&args, console)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ScoreArg {
    /// The change of the token's row of the embedding, along the canary's gradient
    Embedding,
    /// How much the canary's loss fell
    Loss,
}

pub(super) fn run(args: &TokenArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let Some(out) = &args.work.out else {
        return Err(Failure::bad_input("`attack` needs a file for the scores").hint("add --out F"));
    };
    let seconds = args.checkpoint_every;
    if !(0.0..=1e9).contains(&seconds) {
        return Err(Failure::bad_input(format!(
            "--checkpoint-every {seconds} is not between 0 and 1e9 seconds"
        )));
    }
    if let Some(delta) = args.delta.filter(|delta| !(0.0..1.0).contains(delta)) {
        return Err(Failure::bad_input(format!("delta {delta} is outside [0, 1)")));
    }
    let start = open(args)?;
    let run = resolve(args, &start, console)?;
    let seed = args.seed.unwrap_or(start.description.seed);
    let scope = start.description.scope();
    let device = language::finetune::device(&args.device, args.precision.name(), scope)
        .map_err(|error| Failure::bad_input(error.to_string()))?;
    let stop = console.stop_flag();
    let state = trained::beside(out, ".work").join("state");
    let site = Site {
        folder: state.clone(),
        device: Arc::new(device),
        checkpoint_every: Duration::from_secs_f64(seconds),
        stop: Arc::clone(&stop),
    };
    let game = CanaryGame::new(&start, run, seed, site).map_err(bad_input)?;
    let outcome = match trained::train(&game, out, &args.work, console) {
        Err(_) if stop.load(Ordering::Relaxed) => Outcome::Interrupted { computed: 0, missing: 1 },
        outcome => outcome?,
    };
    let complete = matches!(outcome, Outcome::Complete { .. });
    let claim = trained::beside(out, answers::RUN_ENDING);
    let mut found = None;
    if complete {
        trained::write_run(out, &game.plan().parameters["run"])?;
        // Only the time to train again is lost if it stays.
        drop(std::fs::remove_dir_all(&state));
        found = args.delta.map(|delta| audited(out, delta)).transpose()?;
    }
    if format == Format::Json {
        console.json(&document(&game, &outcome, out, found.as_ref()))?;
    } else if complete {
        console.answer(&human(&game, out, found.as_ref()))?;
    }
    narrate(&outcome, out, console);
    if complete {
        let delta = args.delta.unwrap_or(1e-5);
        console.hint(&format!(
            "dosimeter audit {} --delta {delta:e} --claim {}",
            out.display(),
            claim.display()
        ));
    }
    Ok(exit_code(&outcome))
}

/// The file with the flags laid over it, and what it names.
fn open(args: &TokenArgs) -> Result<Start, Failure> {
    let place = args.file.display();
    let text = std::fs::read_to_string(&args.file).map_err(|error| {
        Failure::bad_input(format!("cannot read {place}: {error}"))
            .hint("`dosimeter train --help` shows such a file")
    })?;
    if !FinetuneDescription::describes(&text) {
        return Err(Failure::bad_input("token canaries need a language model")
            .at(&place)
            .hint("[model] kind = \"language\"; `attack canaries` plays with other models"));
    }
    let mut described =
        FinetuneDescription::from_toml_str(&text).map_err(|error| bad_input(error).at(&place))?;
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let kind = match args.gradients {
        Some(_) => CanaryKind::Gradient,
        None => CanaryKind::Token,
    };
    // What the file says of canaries of the other kind is not asked here.
    let table = described
        .canaries
        .take_if(|table| table.kind == kind)
        .unwrap_or(CanaryDescription::new(kind, 1000));
    let table = described.canaries.insert(table);
    table.observe = args.gradients;
    table.count = args.canaries.map_or(table.count, size);
    table.prefix = args.prefix.map_or(table.prefix, size);
    table.score = match args.score {
        None => table.score,
        Some(ScoreArg::Embedding) => Some(CanaryScore::Embedding),
        Some(ScoreArg::Loss) => Some(CanaryScore::Loss),
    };
    Start::open(described, args.file.parent().unwrap_or(Path::new(""))).map_err(bad_input)
}

/// The run of the file and the flags; without a noise multiplier, the noise of the file's target.
fn resolve(args: &TokenArgs, start: &Start, console: &mut Console) -> Result<Run, Failure> {
    let place = args.file.display();
    let flags = args.run.description();
    let mut described = start.description.run.clone().overridden_by(&flags)?;
    described.dataset_size.get_or_insert(start.records());
    let target = start.description.privacy.filter(|_| described.whole.noise_multiplier.is_none());
    if target.is_some() {
        described.whole.noise_multiplier = Some(1.0);
    }
    let run = described.resolve().map_err(|error| Refusal::from(error).of(&flags, &place))?.run;
    let Some(target) = target else { return Ok(run) };
    let delta = target.delta.unwrap_or_else(|| start.delta());
    let epsilon = target.target_epsilon;
    let wanted = Target::Epsilon { epsilon, delta };
    let found = calibrate(&run, Unknown::NoiseMultiplier, &wanted, LensName::Composition, &[])?;
    if let Solution::NoiseMultiplier(noise) = found.solution {
        console
            .note(&format!("noise multiplier {noise} for epsilon {epsilon} at delta {delta:.3e}"));
    }
    Ok(found.run)
}

/// What the scores show, with the bound for any mechanism as the primary one.
fn audited(out: &Path, delta: f64) -> Result<Audit, Failure> {
    let mut table = Table::default();
    table.add_file(out).map_err(unread)?;
    let scores = Scores::new(table.members.to_vec(), table.nonmembers.to_vec()).map_err(unread)?;
    let mut plan = Plan::new(Design::OneRun);
    plan.deltas = vec![delta];
    plan.methods = vec![Method::OneRun, Method::OneRunGdp];
    plan.primary = Method::OneRun;
    analyse(&scores, &plan, None).map_err(unread)
}

fn human(game: &CanaryGame<'_>, out: &Path, found: Option<&Audit>) -> String {
    let plan = game.plan();
    let mut text = format!(
        "one training with {} {}: {}\n",
        plan.trials,
        match plan.parameters["score"].as_str() {
            Some("embedding") => {
                "token canaries, each in with probability 1/2, scored by the change of their row of \
                 the embedding"
            }
            Some("loss") => {
                "token canaries, each in with probability 1/2, scored by the fall of their loss"
            }
            Some("last-iterate") => {
                "gradient canaries, each in with probability 1/2, scored by the model's move along \
                 them"
            }
            _ => {
                "gradient canaries, each in with probability 1/2, scored by the noisy sums along them"
            }
        },
        out.display()
    );
    if let Some(found) = found {
        text.push_str(&format!(
            "\n  {:<14} {} (measured, {:.0} % confidence: {} to {})\n",
            "AUROC",
            rounded(found.auroc.value, 4, Side::Neither),
            100.0 * found.plan.confidence,
            rounded(found.auroc.lower, 4, Side::Lower),
            rounded(found.auroc.upper, 4, Side::Upper),
        ));
        for bound in &found.bounds {
            text.push_str(&format!(
                "  {:<14} epsilon >= {} at delta {:e} (measured, {:.0} % confidence; {})\n",
                bound.method().as_str(),
                rounded(bound.epsilon(), 4, Side::Lower),
                bound.delta(),
                100.0 * bound.level().unwrap_or(0.0),
                bound.valid_for
            ));
        }
    }
    text
}

fn document(game: &CanaryGame<'_>, outcome: &Outcome, out: &Path, found: Option<&Audit>) -> Value {
    let mut document = trained::document(
        game,
        matches!(outcome, Outcome::Complete { .. }).then_some(&out.to_owned()),
        outcome,
    );
    if let Some(found) = found {
        document["audit"] = serde_json::to_value(found).unwrap_or_default();
    }
    document
}

fn unread(error: AuditError) -> Failure {
    Failure::bad_input(error.to_string())
}
