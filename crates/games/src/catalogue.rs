//! The papers' games by name, each with its parameters, as an experiment.

use crate::counterexamples::{
    AnalogReader, AnalogRepeaters, Coordinate, Encoding, Linear, OurLoss, PrintedReader,
    PrintedRepeaters, Quadratic, RegisterReader, ShiftRegister, Zeroing,
};
use crate::{Crafter, Distinguisher, DpSgd, LikelihoodRatio, Trial, play};
use experiments::{Experiment, Plan};
use formats::csv::row;
use serde_json::{Value, json};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use vocabulary::rounding::plain;
use vocabulary::{Direction, Observe};

/// How the repeaters keep a step's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RepeaterVariant {
    /// One bit, decided at this threshold.
    Printed { threshold: f64 },
    /// The value itself, amplified.
    Analog,
}

/// A game of the papers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Game {
    Linear,
    Zeroing,
    Quadratic { alpha: f64 },
    ShiftRegister { spread: f64 },
    Repeaters { variant: RepeaterVariant },
    OurLoss { encoding: Encoding },
}

/// What is wrong with a game's description.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GameError {
    #[error("noise multiplier {} is not a finite number above 0", plain(*.0))]
    NoiseMultiplier(f64),
    #[error("sample rate {} is outside (0, 1]", plain(*.0))]
    SampleRate(f64),
    #[error("{0} steps are not between 1 and {1}")]
    Steps(u64, u64),
    #[error("alpha {} is outside [0, 1]; 0 is the linear game, 1 the zeroing one", plain(*.0))]
    Alpha(f64),
    #[error("spread {} is not a finite number above 1", plain(*.0))]
    Spread(f64),
    #[error("threshold {} is not a finite number", plain(*.0))]
    Threshold(f64),
    #[error("spacing {} is not a finite number above 0", plain(*.0))]
    Spacing(f64),
    #[error("resolution {} is not a finite number above 0", plain(*.0))]
    Resolution(f64),
    #[error("data set size {0} is not between 1 and 10^15")]
    DatasetSize(u64),
    #[error("trials must be at least 1")]
    Trials,
    #[error("a game is played for `add` or for `remove`, one at a time")]
    Direction,
}

/// A game to be played, described completely.
#[derive(Clone, Debug)]
pub struct Attack {
    pub game: Game,
    pub trainer: DpSgd,
    pub observe: Observe,
    pub direction: Direction,
    plan: Plan,
}

impl Attack {
    /// Checks the description.
    ///
    /// # Errors
    /// The first part that is out of range, by name and value.
    pub fn new(
        game: Game,
        trainer: DpSgd,
        observe: Observe,
        direction: Direction,
        seed: u64,
        trials: u64,
    ) -> Result<Self, GameError> {
        let DpSgd { noise_multiplier, sample_rate, steps, .. } = trainer;
        let positive = |x: f64| x > 0.0 && x.is_finite();
        if !positive(noise_multiplier) {
            return Err(GameError::NoiseMultiplier(noise_multiplier));
        }
        if !(sample_rate > 0.0 && sample_rate <= 1.0) {
            return Err(GameError::SampleRate(sample_rate));
        }
        let most_steps = game.most_steps();
        if steps == 0 || steps > most_steps {
            return Err(GameError::Steps(steps, most_steps));
        }
        match game {
            Game::Quadratic { alpha } if !(0.0..=1.0).contains(&alpha) => {
                return Err(GameError::Alpha(alpha));
            }
            Game::ShiftRegister { spread } if !(spread > 1.0 && spread.is_finite()) => {
                return Err(GameError::Spread(spread));
            }
            Game::Repeaters { variant: RepeaterVariant::Printed { threshold } }
                if !threshold.is_finite() =>
            {
                return Err(GameError::Threshold(threshold));
            }
            Game::OurLoss { encoding } if !positive(encoding.spacing) => {
                return Err(GameError::Spacing(encoding.spacing));
            }
            Game::OurLoss { encoding } if !positive(encoding.resolution) => {
                return Err(GameError::Resolution(encoding.resolution));
            }
            Game::OurLoss { encoding }
                if !(1..=1_000_000_000_000_000).contains(&encoding.dataset_size) =>
            {
                return Err(GameError::DatasetSize(encoding.dataset_size));
            }
            _ => {}
        }
        if trials == 0 {
            return Err(GameError::Trials);
        }
        let direction_name = match direction {
            Direction::Remove => "remove",
            Direction::Add => "add",
            Direction::Both => return Err(GameError::Direction),
        };
        let mut parameters = json!({
            "design": "runs",
            "noise_multiplier": noise_multiplier,
            "sample_rate": sample_rate,
            "steps": steps,
            "observe": observe.as_str(),
            "direction": direction_name,
        });
        if let (Value::Object(all), Value::Object(own)) = (&mut parameters, game.parameters()) {
            all.extend(own);
        }
        // About a tenth of a second of work, by a cost that is the same on every machine.
        let chunk_trials = (20_000_000 / game.cost(steps)).clamp(1, 20_000);
        let kind = format!("attack {}", game.name());
        let plan =
            Plan::new(kind, parameters, seed, "# design: runs\nscore,member", chunk_trials, trials);
        Ok(Self { game, trainer, observe, direction, plan })
    }

    /// Plays trials in order.
    pub fn play(&self, trials: Range<u64>, each: impl FnMut(Trial)) {
        let DpSgd { noise_multiplier, sample_rate, steps, .. } = self.trainer;
        match self.game {
            Game::Linear => self.with(&Linear, &Coordinate(0), trials, each),
            Game::Zeroing => self.with(&Zeroing, &Coordinate(0), trials, each),
            Game::Quadratic { alpha } => {
                self.with(&Quadratic { alpha }, &Coordinate(0), trials, each);
            }
            Game::ShiftRegister { spread } => {
                let register = ShiftRegister::new(steps, spread);
                let reader = RegisterReader::new(&register, noise_multiplier, sample_rate);
                self.with(&register, &reader, trials, each);
            }
            Game::Repeaters { variant: RepeaterVariant::Printed { threshold } } => {
                let repeaters = PrintedRepeaters::new(steps, noise_multiplier, threshold);
                self.with(&repeaters, &PrintedReader { threshold }, trials, each);
            }
            Game::Repeaters { variant: RepeaterVariant::Analog } => {
                let repeaters = AnalogRepeaters::new(steps, noise_multiplier, sample_rate);
                let gain = repeaters.gain();
                let reader = AnalogReader { gain, noise_multiplier, sample_rate };
                self.with(&repeaters, &reader, trials, each);
            }
            Game::OurLoss { encoding } => {
                let loss = OurLoss::new(encoding, noise_multiplier, sample_rate);
                self.with(&loss, &loss, trials, each);
            }
        }
    }

    fn with(
        &self,
        crafter: &impl Crafter,
        last: &impl Distinguisher,
        trials: Range<u64>,
        each: impl FnMut(Trial),
    ) {
        let seed = self.plan.seed;
        match self.observe {
            Observe::Last => play(crafter, &self.trainer, last, seed, trials, each),
            Observe::All => {
                let DpSgd { noise_multiplier, sample_rate, clip_norm, .. } = self.trainer;
                let all = LikelihoodRatio { noise_multiplier, sample_rate, clip_norm };
                play(crafter, &self.trainer, &all, seed, trials, each);
            }
        }
    }
}

impl Experiment for Attack {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Two rows per trial. For `remove` the positive world has the canary; for `add` it lacks it,
    /// and the score is turned round: in both, larger means the positive world.
    fn rows(&self, trials: Range<u64>, table: &mut String) -> Result<(), String> {
        self.play(trials, |trial| {
            let Trial { with_canary, without_canary } = trial;
            let (positive, negative) = match self.direction {
                Direction::Add => (-without_canary, -with_canary),
                _ => (with_canary, without_canary),
            };
            row(table, &[&positive, &1]);
            row(table, &[&negative, &0]);
        });
        Ok(())
    }
}

/// Plays all trials of an attack on several threads and keeps the scores, in order.
pub fn play_in_memory(attack: &Attack, threads: usize) -> Vec<Trial> {
    let plan = attack.plan();
    let next = AtomicU64::new(0);
    let parts = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= plan.chunks() {
                        break;
                    }
                    let mut part = Vec::new();
                    attack.play(plan.chunk_range(index), |trial| part.push(trial));
                    parts.lock().expect("no player panics").push((index, part));
                }
            });
        }
    });
    let mut parts = parts.into_inner().expect("no player panics");
    parts.sort_by_key(|(index, _)| *index);
    parts.into_iter().flat_map(|(_, part)| part).collect()
}

impl Game {
    /// The name users know.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Zeroing => "zeroing",
            Self::Quadratic { .. } => "quadratic",
            Self::ShiftRegister { .. } => "shift-register",
            Self::Repeaters { .. } => "repeaters",
            Self::OurLoss { .. } => "our-loss",
        }
    }

    fn parameters(&self) -> Value {
        match self {
            Self::Linear | Self::Zeroing => json!({}),
            Self::Quadratic { alpha } => json!({ "alpha": alpha }),
            Self::ShiftRegister { spread } => json!({ "spread": spread }),
            Self::Repeaters { variant: RepeaterVariant::Printed { threshold } } => {
                json!({ "variant": "printed", "threshold": threshold })
            }
            Self::Repeaters { variant: RepeaterVariant::Analog } => json!({ "variant": "analog" }),
            Self::OurLoss { encoding } => json!({
                "spacing": encoding.spacing,
                "resolution": encoding.resolution,
                "dataset_size": encoding.dataset_size,
            }),
        }
    }

    /// Work of one trial, in Gaussians.
    fn cost(&self, steps: u64) -> u64 {
        match self {
            Self::Linear | Self::Zeroing | Self::Quadratic { .. } => 2 * steps + 20,
            Self::ShiftRegister { .. } => 3 * steps * steps + 40,
            Self::Repeaters { .. } => 6 * steps * steps + 60 * steps + 40,
            Self::OurLoss { .. } => 60 * steps + 40,
        }
    }

    /// Games whose model has a coordinate per step are quadratic in the steps.
    fn most_steps(&self) -> u64 {
        match self {
            Self::ShiftRegister { .. } | Self::Repeaters { .. } => 20_000,
            _ => 100_000_000,
        }
    }
}
