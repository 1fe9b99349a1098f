//! The `dosimeter.attack/1` document: a game that was played, or how sensitive a training is.

use crate::play::exit_of;
use crate::{Document, exit};
use attacks::attribute::{Accuracy, accuracy_bound};
use audit::Audit;
use audit::sequential::{Decision, SequentialDocument};
use experiments::{Experiment, Outcome};
use games::exact::KnownEpsilon;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use vocabulary::{Claim, Observe, Standing};

/// The name of the document.
pub const ATTACK_SCHEMA: &str = "dosimeter.attack/1";

/// The schema of its two shapes.
pub fn attack_schema() -> Schema {
    let mut generator = SchemaGenerator::default();
    let shapes = [generator.subschema_for::<Played>(), generator.subschema_for::<Sensitivity>()];
    json_schema!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Attack",
        "type": "object",
        "properties": { "schema": { "type": "string" } },
        "required": ["schema"],
        "anyOf": shapes,
        "$defs": generator.take_definitions(true),
    })
}

/// A game: what is kept of it, and what it showed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Played {
    schema: &'static str,
    game: String,
    /// What the game depends on, by its own names.
    parameters: Value,
    seed: u64,
    trials: u64,
    /// The plan's hash.
    plan: String,
    state: State,
    /// The file of scores, once it is complete.
    scores: Option<String>,
    /// Epsilons of the game that are known exactly.
    exact: Vec<Exact>,
    pub warnings: Vec<String>,
    /// With `--until-decided`: how it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided: Option<SequentialDocument>,
    /// The audit of the scores, where the game makes one.
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<Audit>,
    /// Guesses of the candidate that was in.
    #[serde(flatten)]
    guesses: Option<Guesses>,
    /// Absent where the game was only described.
    #[serde(skip)]
    pub outcome: Option<Outcome>,
}

/// How far the game is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum State {
    #[serde(rename = "not played")]
    NotPlayed,
    Complete,
    Incomplete,
    Interrupted,
}

/// An epsilon that is known exactly.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Exact {
    name: &'static str,
    quantity: &'static str,
    at: At,
    value: f64,
    lower: f64,
    upper: f64,
    note: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct At {
    delta: f64,
}

/// How often the attacker named the right candidate, and how often that is allowed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Guesses {
    observe: Observe,
    /// Absent until the game is complete.
    accuracy: Option<Measured>,
    allowed: Vec<Allowed>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Measured {
    right: u64,
    guesses: u64,
    value: f64,
    lower: f64,
    upper: f64,
    confidence: f64,
    standing: Standing,
    /// The accuracy of guessing.
    blind: f64,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Allowed {
    lens: &'static str,
    standing: Standing,
    bayes_security: f64,
    accuracy: f64,
}

impl Played {
    /// A game that was played, or (without an outcome) only described.
    pub(super) fn new(game: &dyn Experiment, out: Option<&Path>, outcome: Option<Outcome>) -> Self {
        let plan = game.plan();
        let state = match outcome {
            None => State::NotPlayed,
            Some(Outcome::Complete { .. }) => State::Complete,
            Some(Outcome::Incomplete { .. }) => State::Incomplete,
            Some(Outcome::Interrupted { .. }) => State::Interrupted,
        };
        let out = out.filter(|_| state == State::Complete);
        Self {
            schema: ATTACK_SCHEMA,
            game: plan.kind.trim_start_matches("attack ").to_owned(),
            parameters: plan.parameters.clone(),
            seed: plan.seed,
            trials: plan.trials,
            plan: plan.digest(),
            state,
            scores: out.map(|path| path.display().to_string()),
            exact: Vec::new(),
            warnings: Vec::new(),
            decided: None,
            audit: None,
            guesses: None,
            outcome,
        }
    }

    pub fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    /// Epsilons at this delta are known exactly.
    pub(super) fn know(&mut self, delta: f64, facts: &[KnownEpsilon]) {
        let fact = |fact: &KnownEpsilon| Exact {
            name: fact.name,
            quantity: "epsilon",
            at: At { delta },
            value: fact.epsilon.value,
            lower: fact.epsilon.lower,
            upper: fact.epsilon.upper,
            note: fact.note.clone(),
        };
        self.exact = facts.iter().map(fact).collect();
    }

    #[cfg(feature = "language")]
    #[must_use]
    pub(super) fn audited(mut self, audit: Option<&Audit>) -> Self {
        self.audit = audit.cloned();
        self
    }

    #[must_use]
    pub(super) fn guessed(mut self, guesses: Guesses) -> Self {
        self.guesses = Some(guesses);
        self
    }
}

impl Guesses {
    pub(super) fn new(
        observe: Observe,
        accuracy: Option<Accuracy>,
        allowed: &[Claim],
        candidates: usize,
    ) -> Self {
        Self {
            observe,
            accuracy: accuracy.map(|found| Measured {
                right: found.right,
                guesses: found.guesses,
                value: found.value,
                lower: found.lower,
                upper: found.upper,
                confidence: found.confidence,
                standing: Standing::Measured,
                blind: 1.0 / candidates as f64,
            }),
            allowed: allowed
                .iter()
                .map(|claim| Allowed {
                    lens: claim.source.as_str(),
                    standing: claim.standing,
                    bayes_security: claim.interval.value,
                    accuracy: accuracy_bound(claim.interval.value, candidates),
                })
                .collect(),
        }
    }
}

impl Document for Played {
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    fn exit_code(&self) -> u8 {
        let decision = self.decided.as_ref().and_then(|decided| decided.decision);
        match &self.outcome {
            None | Some(Outcome::Complete { .. }) if decision == Some(Decision::Refuted) => {
                exit::CHECK_FAILED
            }
            None => exit::ANSWERED,
            Some(outcome) => exit_of(outcome),
        }
    }
}

/// How sensitive one training is to an attribute of its records.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Sensitivity {
    pub schema: &'static str,
    pub game: &'static str,
    pub attribute: String,
    pub values: Vec<String>,
    pub mode: &'static str,
    /// How many records were looked at; 0 where batches were.
    pub records: usize,
    pub worst_record: Option<String>,
    pub steps: u64,
    pub claims: Vec<Claim>,
    /// The file of sensitivities, where one was asked for.
    pub sensitivity: Option<String>,
}
