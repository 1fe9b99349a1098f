//! What somebody else's continuous integration demands of a run.

use crate::LensName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits; the keys of a file's `[policy]` table and, in kebab-case, the flags of `check`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lens: Option<LensName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_epsilon: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_mu: Option<f64>,
    /// Where `max_epsilon` and `max_mu` are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_advantage: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_bayes_security: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tpr: Option<f64>,
    /// Where `max_tpr` is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fpr: Option<f64>,
}

impl Policy {
    pub const KEYS: &'static [&'static str] = &[
        "lens",
        "max_epsilon",
        "max_mu",
        "delta",
        "max_advantage",
        "min_bayes_security",
        "max_tpr",
        "fpr",
    ];

    /// The same policy with `flags` laid over it.
    pub fn overridden_by(self, flags: &Self) -> Self {
        Self {
            lens: flags.lens.or(self.lens),
            max_epsilon: flags.max_epsilon.or(self.max_epsilon),
            max_mu: flags.max_mu.or(self.max_mu),
            delta: flags.delta.or(self.delta),
            max_advantage: flags.max_advantage.or(self.max_advantage),
            min_bayes_security: flags.min_bayes_security.or(self.min_bayes_security),
            max_tpr: flags.max_tpr.or(self.max_tpr),
            fpr: flags.fpr.or(self.fpr),
        }
    }

    /// Whether nothing at all is demanded.
    pub fn is_empty(&self) -> bool {
        self.max_epsilon.is_none()
            && self.max_mu.is_none()
            && self.max_advantage.is_none()
            && self.min_bayes_security.is_none()
            && self.max_tpr.is_none()
    }
}
