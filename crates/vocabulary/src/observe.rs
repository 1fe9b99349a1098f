use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an attacker sees of a training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Observe {
    /// The trained model.
    #[default]
    Last,
    /// Every noisy sum.
    All,
}

impl Observe {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Last => "last",
            Self::All => "all",
        }
    }
}
