//! Where a claim is from: a lens that looked at a run, or a method that read scores.

use crate::LensName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The methods that turn scores into claims, by the names users know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MethodName {
    ClopperPearson,
    Gdp,
    Composition,
    LastIterate,
    Bayes,
    Grid,
    OneRun,
    OneRunGdp,
    OneRunIndependent,
    GaussianPair,
}

impl MethodName {
    /// Every method, in the order in which they are shown.
    pub const ALL: [Self; 10] = [
        Self::ClopperPearson,
        Self::Gdp,
        Self::Composition,
        Self::LastIterate,
        Self::Bayes,
        Self::Grid,
        Self::OneRun,
        Self::OneRunGdp,
        Self::OneRunIndependent,
        Self::GaussianPair,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClopperPearson => "clopper-pearson",
            Self::Gdp => "gdp",
            Self::Composition => "composition",
            Self::LastIterate => "last-iterate",
            Self::Bayes => "bayes",
            Self::Grid => "grid",
            Self::OneRun => "one-run",
            Self::OneRunGdp => "one-run-gdp",
            Self::OneRunIndependent => "one-run-independent",
            Self::GaussianPair => "gaussian-pair",
        }
    }

    /// The method of a name, if there is one.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == name)
    }
}

/// Who makes a claim. Documents spell it as the key `lens` or the key `method`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A lens, from the description of a run.
    Lens(LensName),
    /// A method, from scores.
    Method(MethodName),
}

impl Source {
    /// The name, whichever kind it is of.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lens(lens) => lens.as_str(),
            Self::Method(method) => method.as_str(),
        }
    }

    /// The name in words.
    pub fn label(self) -> &'static str {
        match self {
            Self::Lens(lens) => lens.label(),
            Self::Method(method) => method.as_str(),
        }
    }

    /// The lens, unless it is a method.
    pub fn lens(self) -> Option<LensName> {
        match self {
            Self::Lens(lens) => Some(lens),
            Self::Method(_) => None,
        }
    }
}

impl From<LensName> for Source {
    fn from(lens: LensName) -> Self {
        Self::Lens(lens)
    }
}

impl From<MethodName> for Source {
    fn from(method: MethodName) -> Self {
        Self::Method(method)
    }
}

impl PartialEq<LensName> for Source {
    fn eq(&self, lens: &LensName) -> bool {
        *self == Self::Lens(*lens)
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(self.as_str())
    }
}
