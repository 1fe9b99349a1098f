//! `attack`: play a game and write its scores.

mod attribute;
mod command;
pub(super) mod decided;
mod matrix;
#[cfg(feature = "language")]
pub(super) mod token;

use super::trained;
use crate::args::{Format, OutputArgs, RunArgs, integer, nonnegative_integer, real, word};
use crate::console::Console;
use crate::exit;
use crate::print::with_commas;
use crate::print::{WIDTH, wrap};
use crate::progress::Progress;
use answers::{Kind, Play, Played, Refusal};
use clap::{Args, Subcommand, ValueEnum};
use decided::DecidedArgs;
use experiments::{Experiment, Outcome};
use games::exact::{Known, known};
use games::{Attack, DpSgd, Encoding, Game, GameError, RepeaterVariant};
use std::path::{Path, PathBuf};
use vocabulary::{Adjacency, Direction, Observe};

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter attack linear --noise-multiplier 1 --sample-rate 0.01 --steps 1000 \\
      --trials 1e5 --out scores.csv
  dosimeter attack our-loss --noise-multiplier 0.5 --sample-rate 0.01 \\
      --steps 1024 --trials 5000 --out encoded.csv
  dosimeter attack quadratic --alpha 0.5 --noise-multiplier 1 \\
      --sample-rate 0.1 --steps 3 --delta 1e-6
  dosimeter attack gradient adult.toml --trials 2000 --out trained.csv
  dosimeter attack linear --noise-multiplier 0.5 --sample-rate 0.1 --steps 100 \\
      --trials 1e5 --until-decided --claim-epsilon 2 --delta 1e-5 \\
      --out scores.csv
  dosimeter attack lira losses.npy members.npy --out lira.csv
  dosimeter audit scores.csv --delta 1e-5

Run the same command again to resume it, or with more --trials to extend it.
")]
pub struct AttackArgs {
    #[command(subcommand)]
    game: GameArgs,
}

/// The games.
#[derive(Debug, Subcommand)]
enum GameArgs {
    /// Simulate a constant canary gradient, all others zero: here `last-iterate` is exact
    Linear(PlayArgs),
    /// Simulate `linear` with a regulariser that resets the model at each step
    Zeroing(PlayArgs),
    /// Simulate `linear` with a quadratic regulariser
    Quadratic {
        /// Share of the model that a step forgets, 0 (linear) to 1 (zeroing)
        #[arg(long, value_name = "A", value_parser = real, allow_hyphen_values = true)]
        alpha: f64,
        #[command(flatten)]
        play: PlayArgs,
    },
    /// Simulate a regulariser that moves the value of each step to a separate place
    ShiftRegister {
        /// By how much a value grows at each shift
        #[arg(long, value_name = "V", value_parser = real, allow_hyphen_values = true, default_value = "4")]
        spread: f64,
        #[command(flatten)]
        play: PlayArgs,
    },
    /// Simulate a malicious data set whose records rewrite the model
    Repeaters {
        /// One bit per step, as in the paper, or the value itself
        #[arg(long, value_enum, default_value_t = Variant::Analog)]
        variant: Variant,
        /// Threshold of the printed variant [default: the one with the largest epsilon at delta
        /// 1e-5]
        #[arg(long, value_name = "T", value_parser = real, allow_hyphen_values = true)]
        threshold: Option<f64>,
        #[command(flatten)]
        play: PlayArgs,
    },
    /// Simulate a loss that encodes the likelihood ratio into the model (--dataset-size: its number of records)
    OurLoss {
        /// Distance between encoded values [default: chosen so that nothing is misread]
        #[arg(long, value_name = "S", value_parser = real, allow_hyphen_values = true)]
        spacing: Option<f64>,
        /// Unit of the encoded log-likelihood ratio [default: chosen from the step's evidence]
        #[arg(long, value_name = "R", value_parser = real, allow_hyphen_values = true)]
        resolution: Option<f64>,
        /// Play even where the encoding must fail
        #[arg(long)]
        anyway: bool,
        #[command(flatten)]
        play: PlayArgs,
    },
    /// Train with and without a gradient canary; the score is how far the model moved along it
    Gradient(Box<trained::GradientArgs>),
    /// Train with and without a canary record; the score is its loss
    Input(Box<trained::InputArgs>),
    /// Train once with many canaries, each included by a coin flip: one-run auditing
    Canaries(Box<trained::CanariesArgs>),
    /// Measure how much a training depends on one attribute of a record, or guess the attribute
    Attribute(Box<attribute::AttributeGameArgs>),
    /// Score members by the losses of many models: likelihood-ratio attack; lists records at risk
    Lira(Box<matrix::LiraArgs>),
    /// Score members by the losses of many models: relative membership attack; lists records at
    /// risk
    Rmia(Box<matrix::RmiaArgs>),
    /// Run any program that trains once and prints a score: `-- ./train.sh --member {member} --seed
    /// {seed}`
    Command(Box<command::CommandArgs>),
    /// Fine-tune a language model once with many token canaries: one-run auditing
    #[cfg(feature = "language")]
    Token(Box<token::TokenArgs>),
    /// Fine-tune a language model once with many token canaries (not part of this build)
    #[cfg(not(feature = "language"))]
    Token(super::absent::AbsentArgs),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Variant {
    Printed,
    Analog,
}

/// Flags of every simulated game.
#[derive(Clone, Debug, Args)]
struct PlayArgs {
    #[command(flatten)]
    run: RunArgs,
    /// What the attacker sees
    #[arg(long, value_parser = word::<Observe>(["last", "all"]), default_value = "last", help_heading = "The game")]
    observe: Observe,
    /// What a large score should mean: trained with the canary (remove) or without it (add)
    #[arg(long, value_parser = word::<Direction>(["add", "remove"]), default_value = "remove", help_heading = "The game")]
    direction: Direction,
    /// Number of games with the canary; as many are played without it
    #[arg(long, value_name = "N", value_parser = integer, default_value = "10000", help_heading = "The game")]
    trials: u64,
    /// Seed of all randomness
    #[arg(long, value_name = "SEED", value_parser = nonnegative_integer, default_value = "0", help_heading = "The game")]
    seed: u64,
    /// Print what is known exactly at this delta; without --out, nothing is played
    #[arg(short = 'd', long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true, help_heading = "The game")]
    delta: Option<f64>,
    #[command(flatten)]
    decided: DecidedArgs,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Flags of commands that run an experiment.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "The work")]
pub(crate) struct WorkArgs {
    /// File for the scores; unfinished work is kept beside it in F.work
    #[arg(long, value_name = "F")]
    pub(crate) out: Option<PathBuf>,
    /// Number of threads; it does not change the result [default: all cores]
    #[arg(long, value_name = "N", value_parser = integer)]
    pub(crate) threads: Option<u64>,
    /// Compute part K of N only, for job arrays
    #[arg(long, value_name = "K/N")]
    pub(crate) shard: Option<String>,
    /// Replace files that another experiment wrote under this name
    #[arg(long)]
    pub(crate) force: bool,
}

pub(super) fn run(args: &AttackArgs, console: &mut Console) -> Result<u8, Refusal> {
    match &args.game {
        GameArgs::Linear(play) => simulate(play, console, |_| Ok(Game::Linear)),
        GameArgs::Zeroing(play) => simulate(play, console, |_| Ok(Game::Zeroing)),
        GameArgs::Quadratic { alpha, play } => {
            simulate(play, console, |_| Ok(Game::Quadratic { alpha: *alpha }))
        }
        GameArgs::ShiftRegister { spread, play } => {
            simulate(play, console, |_| Ok(Game::ShiftRegister { spread: *spread }))
        }
        GameArgs::Repeaters { variant, threshold, play } => simulate(play, console, |place| {
            let variant = match variant {
                Variant::Analog => RepeaterVariant::Analog,
                Variant::Printed => RepeaterVariant::Printed {
                    threshold: threshold.unwrap_or_else(|| place.best_threshold()),
                },
            };
            Ok(Game::Repeaters { variant })
        }),
        GameArgs::OurLoss { spacing, resolution, anyway, play } => {
            simulate(play, console, |place| place.our_loss(*spacing, *resolution, *anyway))
        }
        GameArgs::Gradient(args) => trained::gradient(args, console),
        GameArgs::Input(args) => trained::input(args, console),
        GameArgs::Canaries(args) => trained::canaries(args, console),
        GameArgs::Attribute(args) => attribute::run(args, console),
        GameArgs::Lira(args) => matrix::lira(args, console),
        GameArgs::Rmia(args) => matrix::rmia(args, console),
        GameArgs::Command(args) => command::run(args, console),
        #[cfg(feature = "language")]
        GameArgs::Token(args) => token::run(args, console),
        #[cfg(not(feature = "language"))]
        GameArgs::Token(args) => super::absent::run(args, console, "`attack token`", "language"),
    }
}

/// What a game's own parameters may depend on.
struct Setting<'a> {
    trainer: &'a DpSgd,
    dataset_size: Option<u64>,
    warnings: Vec<String>,
}

impl Setting<'_> {
    fn best_threshold(&self) -> f64 {
        let DpSgd { noise_multiplier, sample_rate, steps, .. } = *self.trainer;
        games::exact::best_bit_threshold(noise_multiplier, sample_rate, steps, 1e-5).0
    }

    fn our_loss(
        &mut self,
        spacing: Option<f64>,
        resolution: Option<f64>,
        anyway: bool,
    ) -> Result<Game, Refusal> {
        let DpSgd { noise_multiplier, sample_rate, steps, .. } = *self.trainer;
        let chosen = Encoding::choose(noise_multiplier, sample_rate, steps);
        let encoding = Encoding {
            spacing: spacing.unwrap_or(chosen.spacing),
            resolution: resolution.unwrap_or(chosen.resolution),
            dataset_size: self.dataset_size.unwrap_or(chosen.dataset_size),
        };
        for (flag, number) in [("--spacing", spacing), ("--resolution", resolution)] {
            if let Some(number) = number.filter(|number| !(*number > 0.0 && number.is_finite())) {
                return Err(Refusal::bad_input(format!(
                    "{flag} {} is not a finite number above 0",
                    crate::print::plain(number)
                )));
            }
        }
        let suitability = encoding.check(noise_multiplier, sample_rate, steps);
        self.warnings.extend(suitability.warnings);
        if anyway {
            self.warnings.extend(suitability.refusals);
        } else if let Some(refusal) = suitability.refusals.first() {
            return Err(Refusal::new(Kind::NotCertified, format!("the encoding must fail: {refusal}")).hint(format!(
                "the rules choose --spacing {} --resolution {} --dataset-size {:e}; --anyway plays it as it is",
                chosen.spacing, chosen.resolution, chosen.dataset_size as f64
            )));
        }
        Ok(Game::OurLoss { encoding })
    }
}

fn simulate(
    args: &PlayArgs,
    console: &mut Console,
    choose: impl FnOnce(&mut Setting<'_>) -> Result<Game, Refusal>,
) -> Result<u8, Refusal> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let (trainer, dataset_size) = trainer(&args.run)?;
    let mut place = Setting { trainer: &trainer, dataset_size, warnings: Vec::new() };
    let game = choose(&mut place)?;
    for warning in &place.warnings {
        console.warn(warning);
    }
    let warnings = place.warnings.clone();
    let (observe, direction) = (args.observe, args.direction);
    let game_of = |trials: u64| {
        Attack::new(game, trainer.clone(), observe, direction, args.seed, trials)
            .map_err(|error: GameError| Refusal::bad_input(error.to_string()))
    };
    let run = args.run.run()?;
    let out = args.work.out.as_deref();
    let decided = args.decided.play(
        Some(&run),
        args.delta,
        args.trials,
        out,
        console,
        |trials, console| {
            carry_out(&game_of(trials)?, out.unwrap_or(Path::new("")), &args.work, console)
        },
    )?;
    let trials = decided.as_ref().map_or(args.trials, |decided| decided.trials);
    let attack = game_of(trials)?;
    let facts = match args.delta {
        Some(delta) => known(&game, &trainer, observe, delta)?,
        None => Vec::new(),
    };
    let (code, outcome) = match &args.work.out {
        Some(out) => {
            let outcome = carry_out(&attack, out, &args.work, console)?;
            if matches!(outcome, Outcome::Complete { .. }) {
                answers::write_run(out, &run)?;
            }
            (exit_code(&outcome), Some((out, outcome)))
        }
        None if args.delta.is_some() => (exit::ANSWERED, None),
        None => {
            return Err(Refusal::bad_input("nothing to do: neither --out nor --delta was given")
                .hint("--out scores.csv plays the game; --delta 1e-5 says what is known exactly"));
        }
    };
    if format == Format::Json {
        let (out, outcome) = outcome.unzip();
        let document = Played::new(&attack, out.map(PathBuf::as_path), outcome)
            .warning(&warnings)
            .decided(decided.as_ref().map(|decided| &decided.document));
        let known = facts.iter().map(|fact| (fact.name, fact.epsilon, fact.note.clone()));
        console.json(&document.knowing(args.delta.unwrap_or_default(), known))?;
    } else {
        let mut text = String::new();
        if let (Some(delta), false) = (args.delta, facts.is_empty()) {
            text.push_str(&human_facts(delta, &facts));
        }
        if let Some((out, Outcome::Complete { .. })) = outcome {
            text.push_str(&format!(
                "{0} trials with the canary and {0} without: {1}\n",
                with_commas(trials),
                out.display()
            ));
        }
        if !text.is_empty() {
            console.answer(&text)?;
        }
    }
    if let Some((out, outcome)) = outcome {
        narrate(&outcome, out, console);
        if matches!(outcome, Outcome::Complete { .. }) {
            console.hint(&format!(
                "dosimeter audit {} --delta 1e-5 --claim {}",
                out.display(),
                answers::beside(out, answers::RUN_ENDING).display()
            ));
        }
    }
    match decided {
        Some(decided) if code == exit::ANSWERED => {
            decided.narrate(console);
            Ok(decided.exit_code())
        }
        _ => Ok(code),
    }
}

/// A game is one phase of Poisson-sampled DP-SGD about one record, in units of the clip norm.
fn trainer(args: &RunArgs) -> Result<(DpSgd, Option<u64>), Refusal> {
    let run = args.run()?;
    let refuse = |what: &str| Err(Refusal::bad_input(format!("a simulated game {what}")));
    if run.clip_norm() != 1.0 {
        return refuse("is in units of the clip norm; leave --clip-norm out");
    }
    if !run.sampling().by_coins() {
        return refuse("samples batches by independent coins; use --sampling poisson");
    }
    if run.adjacency() != Adjacency::AddRemove || run.group_size() != 1 {
        return refuse("is about one record that is there or not; use --adjacency add-remove");
    }
    let [phase] = run.phases() else { return refuse("has one phase") };
    let trainer = DpSgd::new(phase.noise_multiplier, phase.sample_rate, phase.steps);
    Ok((trainer, run.dataset_size()))
}

impl WorkArgs {
    pub(super) fn play(&self) -> Play {
        Play {
            out: self.out.clone(),
            threads: self.threads,
            shard: self.shard.clone(),
            force: self.force,
        }
    }
}

/// Runs an experiment with progress and Ctrl-C.
pub(super) fn carry_out(
    experiment: &dyn Experiment,
    out: &Path,
    work: &WorkArgs,
    console: &mut Console,
) -> Result<Outcome, Refusal> {
    work.play().carry_out(experiment, out, &Progress::new(console))
}

pub(super) fn exit_code(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Complete { .. } => exit::ANSWERED,
        Outcome::Incomplete { .. } => exit::INCOMPLETE,
        Outcome::Interrupted { .. } => exit::INTERRUPTED,
    }
}

pub(super) fn narrate(outcome: &Outcome, out: &Path, console: &mut Console) {
    let chunks = |count: u64| format!("{count} chunk{}", if count == 1 { "" } else { "s" });
    match *outcome {
        Outcome::Complete { computed: 0 } => {
            console.note(&format!("nothing was left to compute for {}", out.display()));
        }
        Outcome::Complete { computed } => console.note(&format!("{} computed", chunks(computed))),
        Outcome::Incomplete { computed, missing } => {
            console.note(&format!("{} computed, {missing} missing", chunks(computed)));
            console.hint("run the other shards, then any of them again to write the scores");
        }
        Outcome::Interrupted { computed, missing } => {
            console.note(&format!("interrupted: {} computed, {missing} missing", chunks(computed)));
            console.hint("run the same command again to resume");
        }
    }
}

/// What is known exactly, for a person.
fn human_facts(delta: f64, facts: &[Known]) -> String {
    let mut text = format!("epsilon at delta {delta:e}, certified\n");
    for fact in facts {
        let row = format!(
            "  {:<15} {:>8} .. {:<8}  ",
            fact.name,
            fact.epsilon.at_least().digits(6),
            fact.epsilon.at_most().digits(6),
        );
        text.push_str(&wrap(&fact.note, &row, row.len(), WIDTH));
    }
    text
}
