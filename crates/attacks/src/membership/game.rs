//! N trainings with the canary and N without, each with its own start, batches and noise.
//!
//! For add/remove one candidate is there or not. For substitution one of M candidates is in: the
//! secret s is drawn; the positive training has s, the negative one another candidate, and both are
//! scored for s against the mean of the others.

use super::candidates::{Candidates, candidates};
use super::conditions::Conditions;
use super::size::chunk_trials;
use super::statistic::Statistic;
use super::target::Target;
use crate::AttackError;
use experiments::{Experiment, Plan};
use formats::csv::row;
use random::{Purpose, Stream};
use serde_json::{Value, json};
use std::ops::Range;
use std::sync::Arc;
use training::data::Dataset;
use training::{Canary, Device, Recipe, Replica, Start, TrainingError};
use vocabulary::{Adjacency, Direction};

/// Many trainings, one score each.
pub struct TrainedGame {
    recipe: Arc<Recipe>,
    data: Arc<Dataset>,
    device: Arc<Device>,
    start: Start,
    candidates: Candidates,
    statistic: Statistic,
    substitution: bool,
    direction: Direction,
    plan: Plan,
}

impl TrainedGame {
    /// Prepares a game: makes the start and the canaries.
    ///
    /// # Errors
    /// Conditions that do not fit the training.
    pub fn new(
        target: &Target,
        conditions: &Conditions,
        device: impl Into<Arc<Device>>,
        trials: u64,
    ) -> Result<Self, AttackError> {
        let device = device.into();
        if trials == 0 {
            return Err(AttackError::Trials);
        }
        let substitution = target.run.adjacency() == Adjacency::Substitute;
        let count = if substitution { conditions.candidates } else { 1 };
        if substitution && count < 2 {
            return Err(AttackError::Candidates(count));
        }
        let start = target.start(conditions.start)?;
        let candidates = candidates(target, conditions.canary, &start, count, substitution)?;
        let (recipe, data) = target.under(conditions.others, conditions.fault);
        let statistic = Statistic::new(&recipe, &data, &candidates.injections, conditions.observe)?;
        let mut parameters = parameters("runs", target, conditions, &device);
        if substitution {
            parameters["candidates"] = json!(count);
        } else {
            parameters["direction"] =
                json!(if conditions.direction == Direction::Add { "add" } else { "remove" });
        }
        let plan = Plan::new(
            format!("attack {}", conditions.game()),
            parameters,
            recipe.seed,
            "# design: runs\nscore,member",
            Self::chunk_trials(target, conditions, &device),
            trials,
        );
        let direction = conditions.direction;
        Ok(Self {
            recipe,
            data,
            device,
            start,
            candidates,
            statistic,
            substitution,
            direction,
            plan,
        })
    }

    /// Trials that are computed together; more trials later extend whole chunks for nothing.
    pub fn chunk_trials(target: &Target, conditions: &Conditions, device: &Device) -> u64 {
        chunk_trials(target, conditions.others, &device.record.kind)
    }

    /// Which candidate each of the two trainings of a trial has, and which is asked for.
    fn worlds(&self, trial: u64) -> ([Option<usize>; 2], usize) {
        if !self.substitution {
            return ([Some(0), None], 0);
        }
        let count = self.candidates.injections.len() as u64;
        let stream = Stream::new(self.plan.seed, Purpose::MEMBERSHIP, trial);
        let secret = stream.word(0, 0) % count;
        let other = (secret + 1 + stream.word(0, 1) % (count - 1)) % count;
        ([Some(secret as usize), Some(other as usize)], secret as usize)
    }

    fn replica(&self, number: u64, present: Option<usize>) -> Replica {
        let injections = self.candidates.injections.iter().enumerate();
        let canaries = injections.map(|(index, injection)| Canary {
            injection: injection.clone(),
            member: present == Some(index),
        });
        Replica {
            start: self.start.clone(),
            without: Arc::clone(&self.candidates.without),
            canaries: canaries.collect(),
            ..Replica::new(number)
        }
    }

    /// Trains, and gives each trial's pair of scores: positive world, negative world.
    ///
    /// # Errors
    /// Trouble with the device, or a gradient that is not finite.
    pub fn play(&self, trials: Range<u64>) -> Result<Vec<[f64; 2]>, TrainingError> {
        let replicas = trials.clone().flat_map(|trial| {
            let (worlds, _) = self.worlds(trial);
            [self.replica(2 * trial, worlds[0]), self.replica(2 * trial + 1, worlds[1])]
        });
        let mut replicas = (self.device.open)(
            Arc::clone(&self.recipe),
            Arc::clone(&self.data),
            replicas.collect(),
        )?;
        let scores = self.statistic.scores(&self.recipe, replicas.as_mut())?;
        let count = self.candidates.injections.len();
        let mut pairs = Vec::with_capacity((trials.end - trials.start) as usize);
        for (trial, both) in trials.zip(scores.chunks_exact(2 * count)) {
            let (_, secret) = self.worlds(trial);
            let score = |own: &[f64]| {
                if count == 1 {
                    return own[0];
                }
                let others = own.iter().sum::<f64>() - own[secret];
                own[secret] - others / (count - 1) as f64
            };
            let (positive, negative) = (score(&both[..count]), score(&both[count..]));
            pairs.push(if !self.substitution && self.direction == Direction::Add {
                [-negative, -positive]
            } else {
                [positive, negative]
            });
        }
        Ok(pairs)
    }
}

/// The parts of a plan that all trained games share. The device is one of them: another kind
/// rounds differently.
pub(super) fn parameters(
    design: &str,
    target: &Target,
    conditions: &Conditions,
    device: &Device,
) -> Value {
    let record = &device.record;
    let mut all = json!({
        "design": design,
        "device": {
            "kind": record.kind,
            "instructions": record.instructions,
            "precision": record.precision,
        },
    });
    for part in [target.parameters(), conditions.parameters()] {
        if let (Value::Object(all), Value::Object(part)) = (&mut all, part) {
            all.extend(part);
        }
    }
    all
}

impl Experiment for TrainedGame {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn rows(&self, trials: Range<u64>, table: &mut String) -> Result<(), String> {
        for [positive, negative] in self.play(trials).map_err(|error| error.to_string())? {
            row(table, &[&positive, &1]);
            row(table, &[&negative, &0]);
        }
        Ok(())
    }
}
