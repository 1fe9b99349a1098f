//! What happens to the noisy gradient. g is the noisy clipped sum divided by the public expected
//! batch size; nothing here looks at records, so all of it is post-processing.
//!
//! * SGD: g += (weight_decay + regulariser) theta; v = momentum v + g; theta -= learning_rate v.
//! * Adam (Kingma and Ba 2015): g += (weight_decay + regulariser) theta, moments with bias
//!   correction.
//! * AdamW (Loshchilov and Hutter 2019): as Adam, with theta -= learning_rate weight_decay theta
//!   apart from the moments.
//!
//! `regulariser` is the strength a of the unclipped penalty a/2 |theta|^2 of Steinke et al. 2025,
//! section 5: it costs no privacy and is what their counterexamples vary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `[optimizer]` table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum OptimizerDescription {
    Sgd {
        learning_rate: f64,
        #[serde(default)]
        momentum: f64,
        #[serde(default)]
        weight_decay: f64,
        #[serde(default)]
        regulariser: f64,
    },
    Adam {
        learning_rate: f64,
        #[serde(default = "default_beta1")]
        beta1: f64,
        #[serde(default = "default_beta2")]
        beta2: f64,
        #[serde(default = "default_epsilon")]
        epsilon: f64,
        #[serde(default)]
        weight_decay: f64,
        #[serde(default)]
        regulariser: f64,
    },
    #[serde(rename = "adamw")]
    AdamW {
        learning_rate: f64,
        #[serde(default = "default_beta1")]
        beta1: f64,
        #[serde(default = "default_beta2")]
        beta2: f64,
        #[serde(default = "default_epsilon")]
        epsilon: f64,
        #[serde(default = "default_decay")]
        weight_decay: f64,
        #[serde(default)]
        regulariser: f64,
    },
}

fn default_beta1() -> f64 {
    0.9
}

fn default_beta2() -> f64 {
    0.999
}

fn default_epsilon() -> f64 {
    1e-8
}

fn default_decay() -> f64 {
    0.01
}

impl OptimizerDescription {
    pub fn learning_rate(&self) -> f64 {
        match *self {
            Self::Sgd { learning_rate, .. }
            | Self::Adam { learning_rate, .. }
            | Self::AdamW { learning_rate, .. } => learning_rate,
        }
    }

    /// Plain SGD.
    pub fn sgd(learning_rate: f64) -> Self {
        Self::Sgd { learning_rate, momentum: 0.0, weight_decay: 0.0, regulariser: 0.0 }
    }

    /// Adam with its usual constants.
    pub fn adam(learning_rate: f64) -> Self {
        Self::Adam {
            learning_rate,
            beta1: default_beta1(),
            beta2: default_beta2(),
            epsilon: default_epsilon(),
            weight_decay: 0.0,
            regulariser: 0.0,
        }
    }

    /// What is out of range, in words.
    ///
    /// # Errors
    /// The first number that is.
    pub fn check(&self) -> Result<(), String> {
        let range = |name: &str, value: f64, low: f64, high: f64| {
            if value >= low && value < high {
                Ok(())
            } else {
                Err(format!("{name} {value} is outside [{low}, {high})"))
            }
        };
        let any = f64::INFINITY;
        match *self {
            Self::Sgd { learning_rate, momentum, weight_decay, regulariser } => {
                range("learning_rate", learning_rate, 0.0, any)?;
                range("momentum", momentum, 0.0, 1.0)?;
                range("weight_decay", weight_decay, 0.0, any)?;
                range("regulariser", regulariser, 0.0, any)
            }
            Self::Adam { learning_rate, beta1, beta2, epsilon, weight_decay, regulariser }
            | Self::AdamW { learning_rate, beta1, beta2, epsilon, weight_decay, regulariser } => {
                range("learning_rate", learning_rate, 0.0, any)?;
                range("beta1", beta1, 0.0, 1.0)?;
                range("beta2", beta2, 0.0, 1.0)?;
                range("epsilon", epsilon, f64::MIN_POSITIVE, any)?;
                range("weight_decay", weight_decay, 0.0, any)?;
                range("regulariser", regulariser, 0.0, any)
            }
        }
    }

    /// How many vectors as long as the parameters the optimiser remembers.
    pub fn moments(&self) -> usize {
        match self {
            Self::Sgd { momentum: 0.0, .. } => 0,
            Self::Sgd { .. } => 1,
            Self::Adam { .. } | Self::AdamW { .. } => 2,
        }
    }
}

/// What an optimiser remembers of one replica.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OptimizerState {
    /// Velocity, or first and second moment.
    pub moments: Vec<Vec<f32>>,
}

impl OptimizerState {
    pub fn new(description: &OptimizerDescription, parameters: usize) -> Self {
        Self { moments: vec![vec![0.0; parameters]; description.moments()] }
    }
}
