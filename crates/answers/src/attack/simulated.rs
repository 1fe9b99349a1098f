//! Games that are simulated: the released distribution is known, and no model is trained.

use super::{Attacked, NothingElse, UntilDecided};
use crate::flags::{integer, nonnegative_integer, real, word};
use crate::play::write_run;
use crate::{Described, Kind, Play, Refusal, Work};
use clap::{Args, ValueEnum};
use games::exact::{best_bit_threshold, known};
use games::{Attack, DpSgd, Encoding, Game, GameError, RepeaterVariant};
use serde::Deserialize;
use std::path::Path;
use vocabulary::rounding::{plain, with_commas};
use vocabulary::{Adjacency, Direction, Observe, Run};

/// A simulated game, with its own parameters.
#[derive(Clone, Debug, Deserialize, Args)]
pub struct SimulatedQuestion<G: Args> {
    #[command(flatten)]
    #[serde(flatten)]
    pub game: G,
    #[command(flatten)]
    #[serde(flatten)]
    pub terms: SimulatedTerms,
    #[command(flatten)]
    #[serde(flatten)]
    pub decided: UntilDecided,
    #[command(flatten)]
    #[serde(flatten)]
    pub play: Play,
    #[arg(skip)]
    #[serde(flatten)]
    _rest: NothingElse,
}

/// The terms of every simulated game.
#[derive(Clone, Debug, Deserialize, Args)]
#[serde(default)]
pub struct SimulatedTerms {
    /// The run that is played.
    #[arg(skip)]
    pub run: Described,
    /// What the attacker sees
    #[arg(long, value_parser = word::<Observe>(["last", "all"]), default_value = "last", help_heading = "The game")]
    pub observe: Observe,
    /// What a large score should mean: trained with the canary (remove) or without it (add)
    #[arg(long, value_parser = word::<Direction>(["add", "remove"]), default_value = "remove", help_heading = "The game")]
    pub direction: Direction,
    /// Number of games with the canary; as many are played without it
    #[arg(long, value_name = "N", value_parser = integer, default_value_t = Self::default().trials, help_heading = "The game")]
    pub trials: u64,
    /// Seed of all randomness
    #[arg(long, value_name = "SEED", value_parser = nonnegative_integer, default_value_t = Self::default().seed, help_heading = "The game")]
    pub seed: u64,
    /// Print what is known exactly at this delta; without --out, nothing is played
    #[arg(short = 'd', long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true, help_heading = "The game")]
    pub delta: Option<f64>,
}

impl Default for SimulatedTerms {
    fn default() -> Self {
        Self {
            run: Described::default(),
            observe: Observe::Last,
            direction: Direction::Remove,
            trials: 10_000,
            seed: 0,
            delta: None,
        }
    }
}

/// A constant canary gradient, all others zero.
#[derive(Clone, Copy, Debug, Default, Deserialize, Args)]
#[serde(default)]
pub struct LinearGame {}

/// With a regulariser that resets the model at each step.
#[derive(Clone, Copy, Debug, Default, Deserialize, Args)]
#[serde(default)]
pub struct ZeroingGame {}

/// With a quadratic regulariser.
#[derive(Clone, Copy, Debug, Deserialize, Args)]
pub struct QuadraticGame {
    /// Share of the model that a step forgets, 0 (linear) to 1 (zeroing)
    #[arg(long, value_name = "A", value_parser = real, allow_hyphen_values = true)]
    pub alpha: f64,
}

/// With a regulariser that moves the value of each step to a separate place.
#[derive(Clone, Copy, Debug, Deserialize, Args)]
#[serde(default)]
pub struct ShiftRegisterGame {
    /// By how much a value grows at each shift
    #[arg(long, value_name = "V", value_parser = real, allow_hyphen_values = true, default_value_t = Self::default().spread)]
    pub spread: f64,
}

impl Default for ShiftRegisterGame {
    fn default() -> Self {
        Self { spread: 4.0 }
    }
}

/// A malicious data set whose records rewrite the model.
#[derive(Clone, Copy, Debug, Default, Deserialize, Args)]
#[serde(default)]
pub struct RepeatersGame {
    /// One bit per step, as in the paper, or the value itself
    #[arg(long, value_enum, default_value_t = Variant::Analog)]
    pub variant: Variant,
    /// Threshold of the printed variant [default: the one with the largest epsilon at delta
    /// 1e-5]
    #[arg(long, value_name = "T", value_parser = real, allow_hyphen_values = true)]
    pub threshold: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    Printed,
    #[default]
    Analog,
}

/// A loss that encodes the likelihood ratio into the model.
#[derive(Clone, Copy, Debug, Default, Deserialize, Args)]
#[serde(default)]
pub struct OurLossGame {
    /// Distance between encoded values [default: chosen so that nothing is misread]
    #[arg(long, value_name = "S", value_parser = real, allow_hyphen_values = true)]
    pub spacing: Option<f64>,
    /// Unit of the encoded log-likelihood ratio [default: chosen from the step's evidence]
    #[arg(long, value_name = "R", value_parser = real, allow_hyphen_values = true)]
    pub resolution: Option<f64>,
    /// Play even where the encoding must fail
    #[arg(long)]
    pub anyway: bool,
}

/// The training that a game is played against. Most games have no parameter that depends on it.
pub(super) struct Setting {
    trainer: DpSgd,
    dataset_size: Option<u64>,
    warnings: Vec<String>,
}

/// What is a game's own: its parameters.
pub(super) trait Simulated {
    fn game(&self, setting: &mut Setting) -> Result<Game, Refusal>;
}

impl Simulated for LinearGame {
    fn game(&self, _: &mut Setting) -> Result<Game, Refusal> {
        Ok(Game::Linear)
    }
}

impl Simulated for ZeroingGame {
    fn game(&self, _: &mut Setting) -> Result<Game, Refusal> {
        Ok(Game::Zeroing)
    }
}

impl Simulated for QuadraticGame {
    fn game(&self, _: &mut Setting) -> Result<Game, Refusal> {
        Ok(Game::Quadratic { alpha: self.alpha })
    }
}

impl Simulated for ShiftRegisterGame {
    fn game(&self, _: &mut Setting) -> Result<Game, Refusal> {
        Ok(Game::ShiftRegister { spread: self.spread })
    }
}

impl Simulated for RepeatersGame {
    fn game(&self, setting: &mut Setting) -> Result<Game, Refusal> {
        let DpSgd { noise_multiplier, sample_rate, steps, .. } = setting.trainer;
        let best = || best_bit_threshold(noise_multiplier, sample_rate, steps, 1e-5).0;
        let variant = match self.variant {
            Variant::Analog => RepeaterVariant::Analog,
            Variant::Printed => {
                RepeaterVariant::Printed { threshold: self.threshold.unwrap_or_else(best) }
            }
        };
        Ok(Game::Repeaters { variant })
    }
}

impl Simulated for OurLossGame {
    fn game(&self, setting: &mut Setting) -> Result<Game, Refusal> {
        let DpSgd { noise_multiplier, sample_rate, steps, .. } = setting.trainer;
        let chosen = Encoding::choose(noise_multiplier, sample_rate, steps);
        let Self { spacing, resolution, anyway } = *self;
        let encoding = Encoding {
            spacing: spacing.unwrap_or(chosen.spacing),
            resolution: resolution.unwrap_or(chosen.resolution),
            dataset_size: setting.dataset_size.unwrap_or(chosen.dataset_size),
        };
        for (flag, number) in [("--spacing", spacing), ("--resolution", resolution)] {
            if let Some(number) = number.filter(|number| !(*number > 0.0 && number.is_finite())) {
                let number = plain(number);
                return Err(Refusal::bad_input(format!(
                    "{flag} {number} is not a finite number above 0"
                )));
            }
        }
        let suitability = encoding.check(noise_multiplier, sample_rate, steps);
        setting.warnings.extend(suitability.warnings);
        if anyway {
            setting.warnings.extend(suitability.refusals);
        } else if let Some(refusal) = suitability.refusals.first() {
            let sentence = format!("the encoding must fail: {refusal}");
            return Err(Refusal::new(Kind::NotCertified, sentence).hint(format!(
                "the rules choose --spacing {} --resolution {} --dataset-size {:e}; --anyway plays it as it is",
                chosen.spacing, chosen.resolution, chosen.dataset_size as f64
            )));
        }
        Ok(Game::OurLoss { encoding })
    }
}

pub(super) fn play<G: Args + Simulated>(
    question: &SimulatedQuestion<G>,
    work: &dyn Work,
) -> Result<Attacked, Refusal> {
    let SimulatedQuestion { game, terms, decided, play, .. } = question;
    let run = terms.run.run()?;
    let mut setting = setting(&run)?;
    let game = game.game(&mut setting)?;
    let Setting { trainer, warnings, .. } = setting;
    for warning in &warnings {
        work.warn(warning);
    }
    let game_of = |trials: u64| {
        Attack::new(game, trainer.clone(), terms.observe, terms.direction, terms.seed, trials)
            .map_err(|error: GameError| Refusal::bad_input(error.to_string()))
    };
    let out = play.out.as_deref();
    let decided = decided.play(Some(&run), terms.delta, terms.trials, out, |trials| {
        play.carry_out(&game_of(trials)?, out.unwrap_or(Path::new("")), work)
    })?;
    let trials = decided.as_ref().map_or(terms.trials, |decided| decided.trials);
    let attack = game_of(trials)?;
    let known = match terms.delta {
        Some(delta) => Some((delta, known(&game, &trainer, terms.observe, delta)?)),
        None => None,
    };
    let outcome = match out {
        Some(out) => Some(play.carry_out(&attack, out, work)?),
        None if known.is_some() => None,
        None => {
            return Err(Refusal::bad_input("nothing to do: neither --out nor --delta was given")
                .hint("--out scores.csv plays the game; --delta 1e-5 says what is known exactly"));
        }
    };
    let mut found = Attacked::new(&attack, play.out.clone(), outcome);
    if let (true, Some(out)) = (found.played.is_complete(), out) {
        write_run(out, &run)?;
    }
    if let Some((delta, facts)) = &known {
        found.played.know(*delta, facts);
    }
    found.played.warnings = warnings;
    found.played.decided = decided.map(|decided| decided.document);
    found.known = known;
    found.sentence = format!("{0} trials with the canary and {0} without", with_commas(trials));
    Ok(found)
}

/// A game is one phase of Poisson-sampled DP-SGD about one record, in units of the clip norm.
fn setting(run: &Run) -> Result<Setting, Refusal> {
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
    Ok(Setting { trainer, dataset_size: run.dataset_size(), warnings: Vec::new() })
}
