//! The game: one of M candidate records is in the data set, and a model is trained.
//!
//! For an attribute the candidates are one record with M values of it; for membership by
//! substitution they are M records. All candidates take part equally often. The table has `secret` and
//! `guess` (names of candidates) and, for two candidates, `score` (evidence for the second over the
//! first) and `member` (whether the second was in), as audits of substitution read them.

use super::attacker::Attacker;
use super::error::invalid;
use super::{Attribute, AttributeError, Observe, follow};
use experiments::{Experiment, Plan};
use formats::csv::row;
use serde_json::{Value as Json, json};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use training::data::Dataset;
use training::{Canary, Device, Injection, Recipe, Replica};

/// A record that could be the one.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub name: String,
    pub features: Arc<[f32]>,
    pub label: u32,
}

/// The game as an experiment: trial i trains M models, each with another candidate.
pub struct AttributeGame {
    plan: Plan,
    recipe: Arc<Recipe>,
    data: Arc<Dataset>,
    candidates: Vec<Candidate>,
    without: Arc<[u32]>,
    observe: Observe,
}

impl AttributeGame {
    /// One record with several values of an attribute.
    ///
    /// # Errors
    /// Records that are not there, fewer than two candidates, batches that are not made of
    /// independent coins.
    pub fn about_attribute(
        recipe: Arc<Recipe>,
        data: Arc<Dataset>,
        attribute: &Attribute,
        record: u32,
        values: &[usize],
        observe: Observe,
        trials: u64,
    ) -> Result<Self, AttributeError> {
        let row = existing(&data, record)?;
        let candidate = |value: &usize| {
            let mut features = Vec::new();
            attribute.substitute(*value, data.row(row), &mut features);
            Candidate {
                name: attribute.values[*value].name.clone(),
                features: features.into(),
                label: data.labels[row],
            }
        };
        let candidates = values.iter().map(candidate).collect();
        let secret = json!({"attribute": attribute.name, "record": record});
        Self::new(recipe, data, candidates, vec![record], secret, observe, trials)
    }

    /// One of several records.
    ///
    /// # Errors
    /// As for an attribute.
    pub fn about_records(
        recipe: Arc<Recipe>,
        data: Arc<Dataset>,
        records: &[u32],
        observe: Observe,
        trials: u64,
    ) -> Result<Self, AttributeError> {
        let mut candidates = Vec::new();
        for record in records {
            let row = existing(&data, *record)?;
            candidates.push(Candidate {
                name: record.to_string(),
                features: data.row(row).into(),
                label: data.labels[row],
            });
        }
        let mut without = records.to_vec();
        without.sort_unstable();
        without.dedup();
        Self::new(recipe, data, candidates, without, json!({"records": records}), observe, trials)
    }

    fn new(
        recipe: Arc<Recipe>,
        data: Arc<Dataset>,
        candidates: Vec<Candidate>,
        without: Vec<u32>,
        secret: Json,
        observe: Observe,
        trials: u64,
    ) -> Result<Self, AttributeError> {
        if candidates.len() < 2 {
            return invalid("a game needs at least two candidates");
        }
        let mut names: Vec<&str> =
            candidates.iter().map(|candidate| candidate.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return invalid(format!("candidate `{}` is listed twice", twice[0]));
        }
        if !recipe.sampling.by_coins() {
            return invalid(
                "the game needs batches drawn by independent coins; use poisson or full",
            );
        }
        let names: Vec<&str> = candidates.iter().map(|candidate| candidate.name.as_str()).collect();
        let parameters = json!({
            "secret": secret,
            "candidates": names,
            "observe": observe.as_str(),
            "data": data.provenance,
            "records": data.len(),
            "phases": recipe.phases,
            "sampling": recipe.sampling,
            "clip_norm": recipe.clip_norm,
            "model": recipe.network.tensors.iter().map(|tensor| (&tensor.name, &tensor.shape)).collect::<Vec<_>>(),
            "optimizer": recipe.optimizer,
            "micro_batch": recipe.micro_batch,
            "instructions": Device::cpu().record.instructions,
        });
        let header = if candidates.len() == 2 {
            "# design: runs\nscore,member,secret,guess"
        } else {
            "# design: candidates\nsecret,guess"
        };
        let chunk = chunk_trials(&recipe, candidates.len());
        let plan = Plan::new("attack attribute", parameters, recipe.seed, header, chunk, trials);
        Ok(Self { plan, recipe, data, candidates, without: without.into(), observe })
    }

    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// The replica of a trial with one of the candidates in.
    fn replica(&self, trial: u64, secret: usize) -> Replica {
        let Candidate { features, label, .. } = &self.candidates[secret];
        let injection = Injection::Example { features: Arc::clone(features), label: *label };
        Replica {
            without: Arc::clone(&self.without),
            canaries: Arc::from([Canary { injection, member: true }]),
            ..Replica::new(trial * self.candidates.len() as u64 + secret as u64)
        }
    }

    fn play(&self, trial: u64, secret: usize) -> Result<Vec<f64>, AttributeError> {
        let replica = self.replica(trial, secret);
        let coin = self.data.len() as u32;
        let mut attacker = Attacker::new(
            &self.recipe,
            &self.candidates,
            self.observe,
            secret,
            coin,
            replica.number,
        );
        let never = AtomicBool::new(false);
        follow(&self.recipe, &self.data, replica, &never, |moment| attacker.see(moment))?;
        Ok(attacker.scores().to_vec())
    }
}

/// Trials of a chunk: some seconds of work, so that files are few and little is lost.
fn chunk_trials(recipe: &Recipe, candidates: usize) -> u64 {
    let examples = recipe.steps() as f64 * (recipe.normaliser(0) + candidates as f64);
    let numbers = recipe.steps() as f64 * recipe.network.parameters as f64;
    let work = 6.0 * examples * recipe.network.multiplications() as f64 + 20.0 * numbers;
    (2e10 / (work * candidates as f64)).clamp(1.0, 256.0) as u64
}

fn existing(data: &Dataset, record: u32) -> Result<usize, AttributeError> {
    let row = record as usize;
    if row < data.len() {
        return Ok(row);
    }
    invalid(format!("there is no record {record}; records are 0 to {}", data.len() - 1))
}

impl Experiment for AttributeGame {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn rows(&self, trials: Range<u64>, table: &mut String) -> Result<(), String> {
        for trial in trials {
            for secret in 0..self.candidates.len() {
                let scores = self.play(trial, secret).map_err(|error| error.to_string())?;
                let best = |best: usize, next: usize| {
                    if scores[next] > scores[best] { next } else { best }
                };
                let guess = (0..scores.len()).fold(0, best);
                let name = |candidate: usize| self.candidates[candidate].name.replace(',', ";");
                let (right, guessed) = (name(secret), name(guess));
                match scores[..] {
                    [first, second] => {
                        let score = format!("{:?}", second - first);
                        row(table, &[&score, &secret, &right, &guessed]);
                    }
                    _ => row(table, &[&right, &guessed]),
                }
            }
        }
        Ok(())
    }
}
