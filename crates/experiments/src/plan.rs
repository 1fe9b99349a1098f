//! A plan says completely what is computed; its digest names it. The number of trials is not part
//! of the name, so that more trials extend the same experiment.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::ops::Range;

pub(crate) const PLAN_SCHEMA: &str = "dosimeter.plan/1";

/// Everything that determines the rows of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub schema: String,
    /// What is done, for example `attack linear`.
    pub kind: String,
    /// Its parameters, complete: defaults are written out.
    pub parameters: Value,
    pub seed: u64,
    /// What the table begins with: comment lines, if any, and the names of the columns.
    pub header: String,
    /// Trials of one chunk; fixed by the kind and the parameters, never by machine or threads.
    pub chunk_trials: u64,
    pub trials: u64,
}

impl Plan {
    /// A plan; `chunk_trials` is at least 1.
    pub fn new(
        kind: impl Into<String>,
        parameters: Value,
        seed: u64,
        header: impl Into<String>,
        chunk_trials: u64,
        trials: u64,
    ) -> Self {
        Self {
            schema: PLAN_SCHEMA.to_owned(),
            kind: kind.into(),
            parameters,
            seed,
            header: header.into(),
            chunk_trials: chunk_trials.max(1),
            trials,
        }
    }

    /// The name of the plan: SHA-256 of its canonical form without the number of trials.
    pub fn digest(&self) -> String {
        let mut text = String::new();
        for part in [&self.schema, &self.kind, &self.header] {
            canonical(&Value::String(part.clone()), &mut text);
            text.push('\n');
        }
        canonical(&self.parameters, &mut text);
        text.push_str(&format!("\n{}\n{}\n", self.seed, self.chunk_trials));
        hex(&Sha256::digest(text.as_bytes()))
    }

    pub fn chunks(&self) -> u64 {
        self.trials.div_ceil(self.chunk_trials)
    }

    /// The trials of a chunk; the last one may be short.
    pub fn chunk_range(&self, index: u64) -> Range<u64> {
        let first = index * self.chunk_trials;
        first..(first + self.chunk_trials).min(self.trials)
    }

    /// In which respect two plans differ, in words.
    pub(crate) fn difference(&self, other: &Self) -> String {
        if self.kind != other.kind {
            return format!("{} instead of {}", other.kind, self.kind);
        }
        if self.seed != other.seed {
            return format!("seed {} instead of {}", other.seed, self.seed);
        }
        if let (Value::Object(mine), Value::Object(theirs)) = (&self.parameters, &other.parameters)
        {
            let name =
                mine.keys().chain(theirs.keys()).find(|key| mine.get(*key) != theirs.get(*key));
            if let Some(name) = name {
                let show =
                    |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
                return format!(
                    "{name} {} instead of {}",
                    show(theirs.get(name)),
                    show(mine.get(name))
                );
            }
        }
        "another version's chunks or columns".to_owned()
    }
}

/// A plan together with the pure function it names.
pub trait Experiment: Sync {
    fn plan(&self) -> &Plan;

    /// Appends the table's rows of these trials, each ended by a line feed. Must depend on the
    /// plan and the range alone, and rows of a trial must not depend on the range it is asked in.
    ///
    /// # Errors
    /// A reason, when the trials cannot be computed.
    fn rows(&self, trials: Range<u64>, table: &mut String) -> Result<(), String>;
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// JSON with sorted keys and no spaces.
fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            text.push('{');
            for key in keys {
                text.push_str(&Value::String(key.clone()).to_string());
                text.push(':');
                canonical(&map[key], text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        other => text.push_str(&other.to_string()),
    }
}
