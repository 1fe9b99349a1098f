//! `attack gradient`, `attack input`, `attack canaries`: games that train.

use super::attack::decided::DecidedArgs;
#[cfg(feature = "language")]
use super::attack::token;
use super::attack::{WorkArgs, carry_out, exit_code, narrate};
use super::train::PrecisionArg;
use crate::args::{Format, OutputArgs, RunArgs, integer, nonnegative_integer, real};
use crate::console::{Console, write_file};
use crate::exit;
use crate::failure::Failure;
use answers::Refusal;
use attacks::{
    AttackError, CanaryKind, Conditions, Coordinate, InputCanary, ManyCanaries, Observe, Others,
    StartFrom, Target, TrainedGame,
};
use clap::{Args, ValueEnum};
use experiments::{Experiment, Outcome};
#[cfg(feature = "language")]
use language::finetune::FinetuneDescription;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use training::{Device, Fault, TrainingDescription};
use vocabulary::{Adjacency, Direction};

#[derive(Clone, Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter attack gradient adult.toml --trials 2000 --out scores.csv
  dosimeter attack gradient adult.toml --rest zero --observe all --trials 5000 --out worst.csv
  dosimeter attack gradient adult.toml --coordinate quiet --every 10 --out crafted.csv
  dosimeter audit scores.csv --delta 1e-5 --claim scores.csv.run.json
")]
pub(super) struct GradientArgs {
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten)]
    trials: TrialsArgs,
    /// What the other records contribute
    #[arg(long, value_enum, default_value_t = GradientRest::Natural, help_heading = "The game")]
    rest: GradientRest,
    /// Where the canary's gradient points: random, quiet (moves least without noise) or a number
    #[arg(long, value_name = "J", value_parser = coordinate, default_value = "random", help_heading = "The game")]
    coordinate: Coordinate,
    /// Insert the gradient at every K-th step only
    #[arg(long, value_name = "K", value_parser = integer, default_value = "1", help_heading = "The game")]
    every: u64,
}

#[derive(Clone, Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter attack input adult.toml --canary mislabelled --trials 1000 --out scores.csv
  dosimeter attack input adult.toml --canary clip-bkd --start pretrained --out worst.csv
  dosimeter attack input adult.toml --canary blank --rest blank --out blank.csv
")]
pub(super) struct InputArgs {
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten)]
    trials: TrialsArgs,
    /// The record that is in or not
    #[arg(long, value_enum, default_value_t = RecordArg::Mislabelled, help_heading = "The game")]
    canary: RecordArg,
    /// What the other records contribute
    #[arg(long, value_enum, default_value_t = InputRest::Natural, help_heading = "The game")]
    rest: InputRest,
}

#[derive(Clone, Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter attack canaries adult.toml --canaries 100 --out one.csv
  dosimeter attack canaries adult.toml --canary mislabelled --canaries 1000 --out one.csv
  dosimeter attack canaries tune.toml --canaries 1000 --observe all --out language.csv
  dosimeter audit one.csv --delta 1e-5

One training with all canaries, each in with probability 1/2: one score per canary.
")]
pub(super) struct CanariesArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// What a canary is
    #[arg(long, value_enum, default_value_t = ManyArg::Gradient, help_heading = "The game")]
    canary: ManyArg,
    /// Seconds between states of the training on the disk; the result does not depend on it
    #[arg(long, value_name = "SECONDS", value_parser = real, default_value = "5", help_heading = "The work")]
    checkpoint_every: f64,
    /// f32, or tf32 or bf16 on an NVIDIA device
    #[arg(long, value_enum, default_value_t = PrecisionArg::F32, help_heading = "The work")]
    precision: PrecisionArg,
    /// How many canaries
    #[arg(long, value_name = "M", value_parser = integer, default_value = "1000", help_heading = "The game")]
    canaries: u64,
    /// What the other records contribute
    #[arg(long, value_enum, default_value_t = InputRest::Natural, help_heading = "The game")]
    rest: InputRest,
}

/// Flags of every game that trains.
#[derive(Clone, Debug, Args)]
struct CommonArgs {
    /// The training: [run], [data], [model], [optimizer], as `train` reads it
    #[arg(value_name = "RUN.toml")]
    file: PathBuf,
    #[command(flatten)]
    run: RunArgs,
    /// What the attacker sees
    #[arg(long, value_enum, default_value_t = ObserveArg::Last, help_heading = "The game")]
    observe: ObserveArg,
    /// Where the models start
    #[arg(long, value_enum, default_value_t = StartArg::Shared, help_heading = "The game")]
    start: StartArg,
    /// Train on N of the records, evenly spread
    #[arg(long, value_name = "N", value_parser = integer, help_heading = "The game")]
    records: Option<u64>,
    /// Plant a mistake in the training, to see whether the audit finds it
    #[arg(long, value_enum, default_value_t = FaultArg::None, help_heading = "The game")]
    fault: FaultArg,
    /// Root of all randomness [default: the file's]
    #[arg(long, value_name = "SEED", value_parser = nonnegative_integer, help_heading = "The game")]
    seed: Option<u64>,
    /// Where to compute: auto, cpu or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "auto", help_heading = "The work")]
    device: String,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Flags of games with a training for each score.
#[derive(Clone, Debug, Args)]
struct TrialsArgs {
    /// Trainings with the canary, and as many without it
    #[arg(long, value_name = "N", value_parser = integer, default_value = "1000", help_heading = "The game")]
    trials: u64,
    /// Which of the two worlds is to be detected: with the canary (remove) or without it (add)
    #[arg(long, value_enum, default_value_t = DirectionArg::Remove, help_heading = "The game")]
    direction: DirectionArg,
    /// With --adjacency substitute: how many candidates there are, one of which is in
    #[arg(long, value_name = "M", value_parser = integer, default_value = "2", help_heading = "The game")]
    candidates: u64,
    /// With --until-decided: the delta of the claim
    #[arg(long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true, requires = "until_decided", help_heading = "Until decided")]
    delta: Option<f64>,
    #[command(flatten)]
    decided: DecidedArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GradientRest {
    /// Their clipped gradients
    Natural,
    /// Nothing: the worst case of the analysis
    Zero,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum InputRest {
    /// Their clipped gradients
    Natural,
    /// Those of the same records with all features zero
    Blank,
    /// Nothing
    Zero,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RecordArg {
    /// A real record with a wrong label
    Mislabelled,
    /// All features zero, with the least likely label
    Blank,
    /// Along the direction in which the data vary least, with the least likely label
    ClipBkd,
    /// A real record as it is
    Natural,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ManyArg {
    /// A clipped gradient along a coordinate of its own
    Gradient,
    /// A real record with a wrong label
    Mislabelled,
    /// Along a direction in which the data vary little, with the least likely label
    ClipBkd,
    /// A real record as it is
    Natural,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ObserveArg {
    Last,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DirectionArg {
    Add,
    Remove,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StartArg {
    /// All from the same random parameters
    Shared,
    /// Each from its own
    Own,
    /// All from a model trained without noise on the test records: the worst case
    Pretrained,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FaultArg {
    None,
    /// Noise with half the standard deviation
    HalfNoise,
    /// Records are not clipped; inserted gradients are four times the clip norm
    NoClipping,
    /// Every step uses the batch of the first
    RepeatedBatch,
}

fn coordinate(text: &str) -> Result<Coordinate, String> {
    match text {
        "random" => Ok(Coordinate::Random),
        "quiet" => Ok(Coordinate::Quiet),
        _ => nonnegative_integer(text)
            .map(Coordinate::Number)
            .map_err(|_| "it must be random, quiet or the number of a parameter".to_owned()),
    }
}

pub(super) fn gradient(args: &GradientArgs, console: &mut Console) -> Result<u8, Failure> {
    let canary = CanaryKind::Gradient { coordinate: args.coordinate, every: args.every };
    let others = match args.rest {
        GradientRest::Natural => Others::Natural,
        GradientRest::Zero => Others::Zero,
    };
    many_trainings(&args.common, &args.trials, canary, others, console)
}

pub(super) fn input(args: &InputArgs, console: &mut Console) -> Result<u8, Failure> {
    let canary = CanaryKind::Input(match args.canary {
        RecordArg::Mislabelled => InputCanary::Mislabelled,
        RecordArg::Blank => InputCanary::Blank,
        RecordArg::ClipBkd => InputCanary::ClipBkd,
        RecordArg::Natural => InputCanary::Natural,
    });
    many_trainings(&args.common, &args.trials, canary, args.rest.into(), console)
}

fn many_trainings(
    common: &CommonArgs,
    trials: &TrialsArgs,
    canary: CanaryKind,
    others: Others,
    console: &mut Console,
) -> Result<u8, Failure> {
    let target = common.target()?;
    let mut conditions = common.conditions(canary, others);
    conditions.direction = match trials.direction {
        DirectionArg::Add => Direction::Add,
        DirectionArg::Remove => Direction::Remove,
    };
    conditions.candidates = usize::try_from(trials.candidates).unwrap_or(usize::MAX);
    let game_of = |count: u64| {
        let device = common.device(PrecisionArg::F32)?;
        TrainedGame::new(&target, &conditions, device, count).map_err(refused)
    };
    let out = common.work.out.as_deref();
    let decided = trials.decided.play(
        Some(target.run()),
        trials.delta,
        trials.trials,
        out,
        console,
        |count, console| {
            train(&game_of(count)?, out.unwrap_or(Path::new("")), &common.work, console)
        },
    )?;
    let count = decided.as_ref().map_or(trials.trials, |decided| decided.trials);
    let game = game_of(count)?;
    let sentence = if target.run().adjacency() == Adjacency::Substitute {
        format!("{count} trainings with the candidate asked for and {count} with another")
    } else {
        format!("{count} trainings with the canary and {count} without")
    };
    let code = play(common, &game, &sentence, console)?;
    match decided {
        Some(decided) if code == exit::ANSWERED => {
            decided.narrate(console);
            Ok(decided.exit_code())
        }
        _ => Ok(code),
    }
}

pub(super) fn canaries(args: &CanariesArgs, console: &mut Console) -> Result<u8, Failure> {
    let common = &args.common;
    let seconds = args.checkpoint_every;
    if !(0.0..=1e9).contains(&seconds) {
        return Err(Failure::bad_input(format!(
            "--checkpoint-every {seconds} is not between 0 and 1e9 seconds"
        )));
    }
    #[cfg(feature = "language")]
    if common.text().is_ok_and(|text| FinetuneDescription::describes(&text)) {
        return on_a_language_model(args, console);
    }
    let target = common.target()?;
    let device = common.device(args.precision)?;
    let canary = match args.canary {
        ManyArg::Gradient => CanaryKind::Gradient { coordinate: Coordinate::Random, every: 1 },
        ManyArg::Mislabelled => CanaryKind::Input(InputCanary::Mislabelled),
        ManyArg::ClipBkd => CanaryKind::Input(InputCanary::ClipBkd),
        ManyArg::Natural => CanaryKind::Input(InputCanary::Natural),
    };
    let conditions = common.conditions(canary, args.rest.into());
    let count = usize::try_from(args.canaries).unwrap_or(usize::MAX);
    let mut game = ManyCanaries::new(&target, &conditions, device, count).map_err(refused)?;
    let kept = common.work.out.as_ref().map(|out| beside(out, ".work").join("state"));
    if let Some(kept) = &kept {
        game = game.checkpointed(kept.clone(), Duration::from_secs_f64(seconds));
    }
    let sentence = format!("one training with {count} canaries, each in with probability 1/2");
    let code = play(common, &game, &sentence, console)?;
    if let (Some(kept), exit::ANSWERED) = (kept, code) {
        // Only the time to write it again is lost if it stays.
        drop(std::fs::remove_file(kept));
    }
    Ok(code)
}

/// Gradient canaries in the fine-tuning of a language model.
#[cfg(feature = "language")]
fn on_a_language_model(args: &CanariesArgs, console: &mut Console) -> Result<u8, Failure> {
    let common = &args.common;
    let refuse = |what: &str| {
        Err(Failure::bad_input(format!("{what} is not there for language models; leave it out")))
    };
    if args.canary != ManyArg::Gradient {
        return Err(Failure::bad_input("on a language model these canaries are gradients")
            .hint("`attack token` plays canaries that are texts"));
    }
    if args.rest != InputRest::Natural {
        return refuse("--rest");
    }
    if common.start != StartArg::Shared {
        return refuse("--start");
    }
    if common.records.is_some() {
        return refuse("--records");
    }
    if common.fault != FaultArg::None {
        return refuse("--fault");
    }
    let asked = token::Asked {
        file: &common.file,
        run: &common.run,
        canaries: args.canaries,
        observe: match common.observe {
            ObserveArg::Last => language::finetune::gradient_canaries::Observe::Last,
            ObserveArg::All => language::finetune::gradient_canaries::Observe::All,
        },
        seed: common.seed,
        device: &common.device,
        precision: args.precision,
        checkpoint_every: args.checkpoint_every,
        work: &common.work,
        output: &common.output,
    };
    token::gradients(&asked, console)
}

impl From<InputRest> for Others {
    fn from(rest: InputRest) -> Self {
        match rest {
            InputRest::Natural => Self::Natural,
            InputRest::Blank => Self::Blank,
            InputRest::Zero => Self::Zero,
        }
    }
}

impl CommonArgs {
    fn text(&self) -> Result<String, Failure> {
        std::fs::read_to_string(&self.file).map_err(|error| {
            Failure::bad_input(format!("cannot read {}: {error}", self.file.display()))
                .hint("`dosimeter train --help` shows such a file")
        })
    }

    fn target(&self) -> Result<Target, Failure> {
        let place = self.file.display();
        let text = self.text()?;
        let description = TrainingDescription::from_toml_str(&text)
            .map_err(|error| Failure::bad_input(error.to_string()).at(&place))?;
        let folder = self.file.parent().unwrap_or(Path::new(""));
        let split =
            description.data.load(folder).map_err(|error| Failure::bad_input(error.to_string()))?;
        let records = self.records.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        let size = records.map_or(split.train.len(), |count| count.min(split.train.len()));
        let flags = self.run.description();
        let mut described = description.run.clone().overridden_by(&flags)?;
        if described.dataset_size.is_none() || self.records.is_some() {
            described.dataset_size = Some(size as u64);
        }
        let run = described.resolve().map_err(|error| Refusal::from(error).of(&flags, &place))?.run;
        if run.group_size() != 1 {
            return Err(Failure::bad_input("a canary is one record; leave --group-size out"));
        }
        let seed = self.seed.unwrap_or(description.seed);
        let (model, optimizer) = (description.model, description.optimizer);
        Target::new(model, optimizer, run, split, records, seed).map_err(refused)
    }

    fn device(&self, precision: PrecisionArg) -> Result<Device, Failure> {
        Device::with_precision(&self.device, precision.name())
            .map_err(|error| Failure::bad_input(error.to_string()))
    }

    fn conditions(&self, canary: CanaryKind, others: Others) -> Conditions {
        let mut conditions = Conditions::new(canary);
        conditions.others = others;
        conditions.start = match self.start {
            StartArg::Shared => StartFrom::Shared,
            StartArg::Own => StartFrom::Own,
            StartArg::Pretrained => StartFrom::Pretrained,
        };
        conditions.observe = match self.observe {
            ObserveArg::Last => Observe::Last,
            ObserveArg::All => Observe::All,
        };
        conditions.fault = match self.fault {
            FaultArg::None => Fault::None,
            FaultArg::HalfNoise => Fault::HalfNoise,
            FaultArg::NoClipping => Fault::NoClipping,
            FaultArg::RepeatedBatch => Fault::RepeatedBatch,
        };
        conditions
    }
}

fn refused(error: AttackError) -> Failure {
    Failure::bad_input(error.to_string())
}

fn play(
    common: &CommonArgs,
    game: &dyn Experiment,
    sentence: &str,
    console: &mut Console,
) -> Result<u8, Failure> {
    let format = common.output.among(&[Format::Human, Format::Json])?;
    let Some(out) = &common.work.out else {
        return Err(Failure::bad_input("`attack` needs a file for the scores").hint("add --out F"));
    };
    if common.fault != FaultArg::None {
        console.warn("a mistake is planted in these trainings; the scores are for testing audits");
    }
    let outcome = train(game, out, &common.work, console)?;
    let complete = matches!(outcome, Outcome::Complete { .. });
    let claim = beside(out, answers::RUN_ENDING);
    if complete {
        write_run(out, &game.plan().parameters["run"])?;
    }
    if format == Format::Json {
        console.json(&document(game, complete.then_some(out), &outcome))?;
    } else if complete {
        console.answer(&format!("{sentence}: {}\n", out.display()))?;
    }
    narrate(&outcome, out, console);
    if complete {
        console.hint(&format!(
            "dosimeter audit {} --delta 1e-5 --claim {}",
            out.display(),
            claim.display()
        ));
    }
    Ok(exit_code(&outcome))
}

/// What these trainings claim to be, beside their scores, for the audit: sizes and flags are resolved in it.
pub(super) fn write_run(out: &Path, run: &impl serde::Serialize) -> Result<(), Failure> {
    let run = json!({"schema": "dosimeter.run/1", "run": run});
    write_file(&beside(out, answers::RUN_ENDING), format!("{run:#}\n"))
}

/// The file with another ending on its name.
pub(super) fn beside(out: &Path, ending: &str) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Runs an experiment that trains: one chunk at a time, whose replicas share the threads, so that
/// no more models are in memory than a chunk has.
pub(crate) fn train(
    game: &dyn Experiment,
    out: &Path,
    work: &WorkArgs,
    console: &mut Console,
) -> Result<Outcome, Failure> {
    let one = WorkArgs { threads: Some(1), ..work.clone() };
    match work.threads {
        None => carry_out(game, out, &one, console),
        Some(threads) => rayon::ThreadPoolBuilder::new()
            .num_threads(usize::try_from(threads).unwrap_or(usize::MAX).min(1024))
            .build()
            .map_err(|error| Failure::new(exit::BUG, error.to_string()))?
            .install(|| carry_out(game, out, &one, console)),
    }
}

pub(super) fn document(
    game: &dyn Experiment,
    scores: Option<&PathBuf>,
    outcome: &Outcome,
) -> Value {
    let plan = game.plan();
    json!({
        "schema": "dosimeter.attack/1",
        "game": plan.kind.trim_start_matches("attack "),
        "parameters": plan.parameters,
        "seed": plan.seed,
        "trials": plan.trials,
        "plan": plan.digest(),
        "state": match outcome {
            Outcome::Complete { .. } => "complete",
            Outcome::Incomplete { .. } => "incomplete",
            Outcome::Interrupted { .. } => "interrupted",
        },
        "scores": scores.map(|path| path.display().to_string()),
        "exact": [],
        "warnings": [],
    })
}
