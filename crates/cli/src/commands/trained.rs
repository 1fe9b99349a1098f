//! `attack gradient`, `attack input`, `attack canaries`: games that train.

use super::attack::decided::DecidedArgs;
#[cfg(feature = "language")]
use super::attack::token;
use super::attack::{WorkArgs, narrate};
use crate::args::{Format, OutputArgs, RunArgs, integer, nonnegative_integer, real, word};
use crate::console::Console;
use crate::exit;
use crate::print::with_commas;
use crate::progress::Progress;
#[cfg(feature = "language")]
use answers::CanariesQuestion;
use answers::PRECISIONS;
use answers::{Document, Played, Refusal, beside, write_run};
use attacks::{
    AttackError, CanaryKind, Conditions, Coordinate, InputCanary, ManyCanaries, Others, StartFrom,
    Target, TrainedGame,
};
use clap::{Args, ValueEnum};
use experiments::{Experiment, Outcome};
use std::path::{Path, PathBuf};
use training::{Device, Fault, PrecisionName, TrainingDescription};
use vocabulary::{Adjacency, Direction, Observe};

#[derive(Clone, Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter attack gradient adult.toml --trials 2000 --out scores.csv
  dosimeter attack gradient adult.toml --rest zero --observe all --trials 5000 \\
      --out worst.csv
  dosimeter attack gradient adult.toml --coordinate quiet --every 10 \\
      --out crafted.csv
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
    /// Direction of the canary's gradient: random, quiet (the coordinate that moves least without
    /// noise) or the number of a coordinate
    #[arg(long, value_name = "J", value_parser = coordinate, default_value = "random", help_heading = "The game")]
    coordinate: Coordinate,
    /// Insert the gradient at every K-th step only
    #[arg(long, value_name = "K", value_parser = integer, default_value = "1", help_heading = "The game")]
    every: u64,
}

#[derive(Clone, Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter attack input adult.toml --canary mislabelled --trials 1000 \\
      --out scores.csv
  dosimeter attack input adult.toml --canary clip-bkd --start pretrained \\
      --out worst.csv
  dosimeter attack input adult.toml --canary blank --rest blank --out blank.csv
")]
pub(super) struct InputArgs {
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten)]
    trials: TrialsArgs,
    /// The canary record
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
  dosimeter attack canaries adult.toml --canary mislabelled --canaries 1000 \\
      --out one.csv
  dosimeter attack canaries tune.toml --canaries 1000 --observe all \\
      --out language.csv
  dosimeter audit one.csv --delta 1e-5

One training contains each canary with probability 1/2 and gives one score per
canary.
")]
pub(super) struct CanariesArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// What a canary is
    #[arg(long, value_enum, default_value_t = ManyArg::Gradient, help_heading = "The game")]
    canary: ManyArg,
    /// Seconds between checkpoints; they do not change the result
    #[arg(long, value_name = "SECONDS", value_parser = real, default_value = "5", help_heading = "The work")]
    checkpoint_every: f64,
    /// f32, or tf32 or bf16 on an NVIDIA device
    #[arg(long, value_parser = word::<PrecisionName>(PRECISIONS), default_value = "f32", help_heading = "The work")]
    precision: PrecisionName,
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
    #[arg(long, value_parser = word::<Observe>(["last", "all"]), default_value = "last", help_heading = "The game")]
    observe: Observe,
    /// Where the models start
    #[arg(long, value_enum, default_value_t = StartArg::Shared, help_heading = "The game")]
    start: StartArg,
    /// Train on N of the records, evenly spread
    #[arg(long, value_name = "N", value_parser = integer, help_heading = "The game")]
    records: Option<u64>,
    /// Plant a mistake in the training, to see whether the audit finds it
    #[arg(long, value_enum, default_value_t = FaultArg::None, help_heading = "The game")]
    fault: FaultArg,
    /// Seed of all randomness [default: the file's]
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
    /// Number of trainings with the canary; as many are done without it
    #[arg(long, value_name = "N", value_parser = integer, default_value = "1000", help_heading = "The game")]
    trials: u64,
    /// What a large score should mean: trained with the canary (remove) or without it (add)
    #[arg(long, value_parser = word::<Direction>(["add", "remove"]), default_value = "remove", help_heading = "The game")]
    direction: Direction,
    /// With --adjacency substitute: number of candidate records, one of which is in the data
    #[arg(long, value_name = "M", value_parser = integer, default_value = "2", help_heading = "The game")]
    candidates: u64,
    /// With --until-decided: the delta of the claim
    #[arg(short = 'd', long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true, requires = "until_decided", help_heading = "Until decided")]
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
    /// Gradients of the same records with all features zero
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
    /// Every step uses the batch of the first step
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

pub(super) fn gradient(args: &GradientArgs, console: &mut Console) -> Result<u8, Refusal> {
    let canary = CanaryKind::Gradient { coordinate: args.coordinate, every: args.every };
    let others = match args.rest {
        GradientRest::Natural => Others::Natural,
        GradientRest::Zero => Others::Zero,
    };
    many_trainings(&args.common, &args.trials, canary, others, console)
}

pub(super) fn input(args: &InputArgs, console: &mut Console) -> Result<u8, Refusal> {
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
) -> Result<u8, Refusal> {
    let target = common.target()?;
    let mut conditions = common.conditions(canary, others);
    conditions.direction = trials.direction;
    conditions.candidates = usize::try_from(trials.candidates).unwrap_or(usize::MAX);
    let game_of = |count: u64| {
        let device = common.device(PrecisionName::F32)?;
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
    let shown = with_commas(count);
    let sentence = if target.run().adjacency() == Adjacency::Substitute {
        format!("{shown} trainings with the candidate asked for and {shown} with another")
    } else {
        format!("{shown} trainings with the canary and {shown} without")
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

pub(super) fn canaries(args: &CanariesArgs, console: &mut Console) -> Result<u8, Refusal> {
    let common = &args.common;
    let checkpoint_every = answers::checkpoints(Some(args.checkpoint_every))?;
    #[cfg(feature = "language")]
    if common.text().is_ok_and(|text| answers::describes_language_model(&text)) {
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
        game = game.checkpointed(kept.clone(), checkpoint_every);
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
fn on_a_language_model(args: &CanariesArgs, console: &mut Console) -> Result<u8, Refusal> {
    let common = &args.common;
    let refuse = |what: &str| {
        Err(Refusal::bad_input(format!(
            "{what} is not available for language models; leave it out"
        )))
    };
    if args.canary != ManyArg::Gradient {
        return Err(Refusal::bad_input("on a language model these canaries are gradients")
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
    let question = CanariesQuestion {
        file: common.file.clone(),
        run: common.run.description().into(),
        canaries: Some(args.canaries),
        gradients: Some(common.observe),
        seed: common.seed,
        device: Some(common.device.clone()),
        precision: args.precision,
        checkpoint_every: Some(args.checkpoint_every),
        play: common.work.play(),
        ..CanariesQuestion::default()
    };
    let format = common.output.among(&[Format::Human, Format::Json])?;
    token::ask(&question, format, console)
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
    fn text(&self) -> Result<String, Refusal> {
        std::fs::read_to_string(&self.file).map_err(|error| {
            Refusal::bad_input(format!("cannot read {}: {error}", self.file.display()))
                .hint("`dosimeter train --help` shows such a file")
        })
    }

    fn target(&self) -> Result<Target, Refusal> {
        let place = self.file.display();
        let text = self.text()?;
        let description = TrainingDescription::from_toml_str(&text)
            .map_err(|error| Refusal::bad_input(error.to_string()).at(&place))?;
        let folder = self.file.parent().unwrap_or(Path::new(""));
        let split =
            description.data.load(folder).map_err(|error| Refusal::bad_input(error.to_string()))?;
        let records = self.records.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        let size = records.map_or(split.train.len(), |count| count.min(split.train.len()));
        let flags = self.run.description();
        let mut described = description.run.clone().overridden_by(&flags)?;
        if described.dataset_size.is_none() || self.records.is_some() {
            described.dataset_size = Some(size as u64);
        }
        let run = described.resolve().map_err(|error| Refusal::from(error).of(&flags, &place))?.run;
        if run.group_size() != 1 {
            return Err(Refusal::bad_input("a canary is one record; leave --group-size out"));
        }
        let seed = self.seed.unwrap_or(description.seed);
        let (model, optimizer) = (description.model, description.optimizer);
        Target::new(model, optimizer, run, split, records, seed).map_err(refused)
    }

    fn device(&self, precision: PrecisionName) -> Result<Device, Refusal> {
        Device::with_precision(&self.device, precision)
            .map_err(|error| Refusal::bad_input(error.to_string()))
    }

    fn conditions(&self, canary: CanaryKind, others: Others) -> Conditions {
        let mut conditions = Conditions::new(canary);
        conditions.others = others;
        conditions.start = match self.start {
            StartArg::Shared => StartFrom::Shared,
            StartArg::Own => StartFrom::Own,
            StartArg::Pretrained => StartFrom::Pretrained,
        };
        conditions.observe = self.observe;
        conditions.fault = match self.fault {
            FaultArg::None => Fault::None,
            FaultArg::HalfNoise => Fault::HalfNoise,
            FaultArg::NoClipping => Fault::NoClipping,
            FaultArg::RepeatedBatch => Fault::RepeatedBatch,
        };
        conditions
    }
}

fn refused(error: AttackError) -> Refusal {
    Refusal::bad_input(error.to_string())
}

fn play(
    common: &CommonArgs,
    game: &dyn Experiment,
    sentence: &str,
    console: &mut Console,
) -> Result<u8, Refusal> {
    let format = common.output.among(&[Format::Human, Format::Json])?;
    let play = common.work.play();
    let out = play.out()?;
    if common.fault != FaultArg::None {
        console.warn("a mistake is planted in these trainings; the scores are for testing audits");
    }
    let played = Played::new(game, Some(out), Some(train(game, out, &common.work, console)?));
    let complete = played.is_complete();
    if complete {
        write_run(out, &game.plan().parameters["run"])?;
    }
    if format == Format::Json {
        console.json(&played)?;
    } else if complete {
        console.answer(&format!("{sentence}: {}\n", out.display()))?;
    }
    if let Some(outcome) = &played.outcome {
        narrate(outcome, out, console);
    }
    if complete {
        console.hint(&format!(
            "dosimeter audit {} --delta 1e-5 --claim {}",
            out.display(),
            beside(out, answers::RUN_ENDING).display()
        ));
    }
    Ok(played.exit_code())
}

/// Runs an experiment that trains.
pub(crate) fn train(
    game: &dyn Experiment,
    out: &Path,
    work: &WorkArgs,
    console: &mut Console,
) -> Result<Outcome, Refusal> {
    work.play().train(game, out, &Progress::new(console))
}
