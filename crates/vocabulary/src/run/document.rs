//! A run as documents spell it.

use super::{Adjacency, Details, Phase, Run};
use crate::batches::Sampling;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A run as documents spell it: one phase is flat, several are a list.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Run")]
struct RunDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    noise_multiplier: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sample_rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    phases: Vec<Phase>,
    sampling: Sampling,
    adjacency: Adjacency,
    clip_norm: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dataset_size: Option<u64>,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    group_size: u32,
    #[serde(flatten)]
    details: Details,
}

fn one() -> u32 {
    1
}

fn is_one(size: &u32) -> bool {
    *size == 1
}

impl Serialize for Run {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let single = match self.phases.as_slice() {
            [phase] => Some(*phase),
            _ => None,
        };
        RunDocument {
            noise_multiplier: single.map(|phase| phase.noise_multiplier),
            sample_rate: single.map(|phase| phase.sample_rate),
            steps: single.map(|phase| phase.steps),
            phases: if single.is_some() { Vec::new() } else { self.phases.clone() },
            sampling: self.sampling,
            adjacency: self.adjacency,
            clip_norm: self.clip_norm,
            dataset_size: self.dataset_size,
            group_size: self.group_size,
            details: self.details.clone(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Run {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Run::from_json(&value.to_string()).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Run {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        RunDocument::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        RunDocument::json_schema(generator)
    }
}
