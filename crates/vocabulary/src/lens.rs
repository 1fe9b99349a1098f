//! Lenses: their names, their roles, and what they are called in words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The lenses, by the names users know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LensName {
    Composition,
    LastIterate,
    LastIterateMax,
    FullBatch,
    Renyi,
    GaussianClt,
    AdvancedComposition,
    ClosedForm,
    ClosedFormClt,
    ClosedFormCertified,
    HiddenState,
    HiddenStateRenyi,
}

impl LensName {
    /// The lens whose number may be signed, and which is asked where none is named.
    pub const SIGNED: Self = Self::Composition;
    /// The heuristic to read beside it.
    pub const BESIDE: Self = Self::LastIterate;
    /// What it costs that batches are drawn at all: every record in every batch.
    pub const UNSAMPLED: Self = Self::FullBatch;
    /// The lens that errs on the safe side about a secret attribute, and is asked about one where none is named.
    pub const OF_ATTRIBUTES: Self = Self::ClosedFormCertified;

    /// The lenses whose claims carry certified ends of a pair: they are proven again, and the page solves for them.
    pub const CERTIFIED: [Self; 4] =
        [Self::Composition, Self::LastIterate, Self::LastIterateMax, Self::FullBatch];

    /// Every lens, in the order in which they are shown.
    pub const ALL: [Self; 12] = [
        Self::Composition,
        Self::LastIterate,
        Self::LastIterateMax,
        Self::FullBatch,
        Self::Renyi,
        Self::GaussianClt,
        Self::AdvancedComposition,
        Self::ClosedForm,
        Self::ClosedFormClt,
        Self::ClosedFormCertified,
        Self::HiddenState,
        Self::HiddenStateRenyi,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Composition => "composition",
            Self::LastIterate => "last-iterate",
            Self::LastIterateMax => "last-iterate-max",
            Self::FullBatch => "full-batch",
            Self::Renyi => "renyi",
            Self::GaussianClt => "gaussian-clt",
            Self::AdvancedComposition => "advanced-composition",
            Self::ClosedForm => "closed-form",
            Self::ClosedFormClt => "closed-form-clt",
            Self::ClosedFormCertified => "closed-form-certified",
            Self::HiddenState => "hidden-state",
            Self::HiddenStateRenyi => "hidden-state-renyi",
        }
    }

    /// The name in words.
    pub fn label(self) -> &'static str {
        match self {
            Self::Composition => "composition",
            Self::LastIterate => "last iterate",
            Self::LastIterateMax => "last iterate (any stop)",
            Self::FullBatch => "full batch",
            Self::Renyi => "R\u{e9}nyi",
            Self::GaussianClt => "Gaussian limit",
            Self::AdvancedComposition => "advanced composition",
            Self::ClosedForm => "closed form",
            Self::ClosedFormClt => "closed form (limit)",
            Self::ClosedFormCertified => "closed form (certified)",
            Self::HiddenState => "hidden state",
            Self::HiddenStateRenyi => "hidden state (R\u{e9}nyi)",
        }
    }

    /// The lens of a name, if there is one.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lens| lens.as_str() == name)
    }
}

impl std::fmt::Display for LensName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(self.as_str())
    }
}
