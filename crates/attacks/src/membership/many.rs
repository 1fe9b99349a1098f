//! One training with many canaries, each in with probability 1/2 on its own: the design of one-run
//! auditing (Steinke, Nasr and Jagielski 2023). A gradient canary has a coordinate of its own, an
//! input canary a record of its own.

use super::candidates::{Candidates, candidates};
use super::checkpoint::Checkpointed;
use super::conditions::Conditions;
use super::game::parameters;
use super::statistic::Statistic;
use super::target::Target;
use crate::AttackError;
use experiments::{Experiment, Plan};
use random::{Purpose, Stream};
use serde_json::json;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use training::data::Dataset;
use training::{Canary, Device, Recipe, Replica, Start, TrainingError};
use vocabulary::Adjacency;

/// One training, one score per canary.
pub struct ManyCanaries {
    recipe: Arc<Recipe>,
    data: Arc<Dataset>,
    device: Arc<Device>,
    start: Start,
    candidates: Candidates,
    statistic: Statistic,
    /// Where the training's state is kept meanwhile, and how often it is written.
    checkpoint: Option<(PathBuf, Duration)>,
    plan: Plan,
}

impl ManyCanaries {
    /// Prepares the training: makes the start and the canaries.
    ///
    /// # Errors
    /// Conditions that do not fit the training, and more canaries than there can be.
    pub fn new(
        target: &Target,
        conditions: &Conditions,
        device: impl Into<Arc<Device>>,
        count: usize,
    ) -> Result<Self, AttackError> {
        let device = device.into();
        if count == 0 {
            return Err(AttackError::Trials);
        }
        if target.run.adjacency() == Adjacency::Substitute {
            return Err(AttackError::OneRunSubstitution);
        }
        let start = target.start(conditions.start)?;
        let candidates = candidates(target, conditions.canary, &start, count, false)?;
        let (recipe, data) = target.under(conditions.others, conditions.fault);
        let mut recipe = (*recipe).clone();
        recipe.lanes = recipe.suggested_lanes();
        let statistic = Statistic::new(&recipe, &data, &candidates.injections, conditions.observe)?;
        let mut parameters = parameters("one-run", target, conditions, &device);
        parameters["canaries"] = json!(count);
        parameters["lanes"] = json!(recipe.lanes);
        let plan = Plan::new(
            format!("attack canaries {}", conditions.game()),
            parameters,
            recipe.seed,
            "# design: one-run\nscore,member,canary",
            count as u64,
            count as u64,
        );
        let recipe = Arc::new(recipe);
        let checkpoint = None;
        Ok(Self { recipe, data, device, start, candidates, statistic, checkpoint, plan })
    }

    /// Saves the training's state to a file every so often, and goes on from it: a training that
    /// was interrupted ends in the same scores. Where every iterate is observed it starts over.
    #[must_use]
    pub fn checkpointed(mut self, path: PathBuf, every: Duration) -> Self {
        self.checkpoint = Some((path, every));
        self
    }

    fn is_in(&self, canary: u64) -> bool {
        Stream::new(self.plan.seed, Purpose::MEMBERSHIP, u64::MAX).word(0, canary) & 1 == 1
    }

    /// Trains, and gives each canary's score and whether it was in.
    ///
    /// # Errors
    /// Trouble with the device, or a gradient that is not finite.
    pub fn play(&self) -> Result<Vec<(f64, bool)>, TrainingError> {
        let injections = self.candidates.injections.iter().zip(0..);
        let canaries = injections.map(|(injection, number)| Canary {
            injection: injection.clone(),
            member: self.is_in(number),
        });
        let replica = Replica {
            start: self.start.clone(),
            without: Arc::clone(&self.candidates.without),
            canaries: canaries.collect(),
            ..Replica::new(0)
        };
        let (recipe, data) = (Arc::clone(&self.recipe), Arc::clone(&self.data));
        let mut replicas = (self.device.open)(recipe, data, vec![replica])?;
        if let (Some((path, every)), true) = (&self.checkpoint, self.statistic.is_of_the_last()) {
            let recipe = &self.recipe;
            replicas = Box::new(Checkpointed {
                inner: replicas,
                path: path.clone(),
                plan: self.plan.digest(),
                every: *every,
                shape: (recipe.network.parameters, 1 + recipe.optimizer.moments()),
            });
        }
        let scores = self.statistic.scores(&self.recipe, replicas.as_mut())?;
        Ok(scores.into_iter().zip(0..).map(|(score, number)| (score, self.is_in(number))).collect())
    }
}

impl Experiment for ManyCanaries {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    /// One training has all canaries, so that there is one chunk.
    fn rows(&self, trials: Range<u64>, table: &mut String) -> Result<(), String> {
        let scores = self.play().map_err(|error| error.to_string())?;
        for (number, (score, member)) in scores.into_iter().enumerate() {
            if trials.contains(&(number as u64)) {
                let member = u8::from(member);
                formats::csv::row(table, &[&score, &member, &number]);
            }
        }
        Ok(())
    }
}
