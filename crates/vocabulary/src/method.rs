//! The methods by name, how rows of scores come about, and which method holds for which.

use crate::Release;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// A name that is not one of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName(String);

impl std::fmt::Display for UnknownName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for UnknownName {}

/// How the rows came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// Each row is a training of its own.
    Runs,
    /// Rows are canaries of one training, each in with probability 1/2, independently.
    OneRun,
}

impl Design {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::OneRun => "one-run",
        }
    }
}

impl FromStr for Design {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let all = [Self::Runs, Self::OneRun].into_iter();
        all.into_iter()
            .find(|design| design.as_str() == text)
            .ok_or_else(|| UnknownName(format!("design `{text}` is not `runs` or `one-run`")))
    }
}

impl std::fmt::Display for Design {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// The methods that turn scores into claims, by the names users know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
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
    /// Trials in their order; it is asked for by a question of its own.
    Sequential,
}

impl Method {
    /// The method that claims least: an estimate.
    pub const CLAIMS_LEAST: Self = Self::Grid;

    /// Every method that can be asked for by name, in the order in which they are shown.
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
            Self::Sequential => "sequential",
        }
    }

    /// The name in words, for figures.
    pub fn label(self) -> &'static str {
        match self {
            Self::ClopperPearson => "Clopper\u{2013}Pearson",
            Self::Gdp => "Gaussian family",
            Self::Composition => "composition family",
            Self::LastIterate => "last iterate family",
            Self::Bayes => "Bayes, credible",
            Self::Grid => "grid estimate",
            Self::OneRun => "one run",
            Self::OneRunGdp => "one run, Gaussian",
            Self::OneRunIndependent => "one run, no shared randomness",
            Self::GaussianPair => "Gaussian pair, estimate",
            Self::Sequential => "trials in their order",
        }
    }

    /// Whether the claim needs no family: it holds for any mechanism.
    pub fn is_distribution_free(self) -> bool {
        matches!(self, Self::ClopperPearson | Self::OneRun | Self::Sequential)
    }

    /// The bound that needs no family, shown beside every other one.
    pub fn distribution_free(design: Design) -> Self {
        match design {
            Design::Runs => Self::ClopperPearson,
            Design::OneRun => Self::OneRun,
        }
    }

    /// The bound within a family of mechanisms that is larger where the family fits.
    pub fn within_family(design: Design) -> Self {
        match design {
            Design::Runs => Self::Gdp,
            Design::OneRun => Self::OneRunGdp,
        }
    }

    /// Whether canaries of one training are read as if each were a training of its own.
    pub fn reads_canaries_as_trainings(self) -> bool {
        matches!(self, Self::OneRunIndependent)
    }

    /// Whether the number is the end of a credible interval under a prior.
    pub fn is_credible(self) -> bool {
        matches!(self, Self::Bayes)
    }

    /// Whether the bound holds within a family of mechanisms, of which one is infinite at delta 0.
    pub fn is_of_family(self) -> bool {
        matches!(self, Self::Gdp | Self::Composition | Self::LastIterate)
    }

    /// What a plan with this method leaves open, in words.
    pub fn proviso(self) -> Option<&'static str> {
        match self {
            Self::Gdp => Some("holds for mechanisms with a Gaussian trade-off curve only"),
            Self::Composition => Some("holds within DP-SGD with every iterate seen only"),
            Self::LastIterate => Some("holds within the last iterate of linear losses only"),
            Self::OneRun => Some(
                "canaries are assumed not to disturb each other; many of them in a small data set do",
            ),
            _ => None,
        }
    }

    /// What is seen of a training in the family of the method, where that is DP-SGD.
    pub fn family_sees(self) -> Option<Release> {
        match self {
            Self::Composition | Self::Grid => Some(Release::AllIterates),
            Self::LastIterate => Some(Release::LastIterate),
            _ => None,
        }
    }

    /// Whether the method needs the sampling rate and the steps.
    pub fn needs_training(self) -> bool {
        self.family_sees().is_some()
    }

    /// Whether the number is a bound with a confidence.
    pub fn is_confidence_bound(self) -> bool {
        !self.is_credible() && !self.is_estimate()
    }

    /// Whether the number is an estimate without any confidence.
    pub fn is_estimate(self) -> bool {
        matches!(self, Self::Grid | Self::GaussianPair)
    }

    /// Why the method does not hold for a design, when it does not.
    pub fn objection(self, design: Design) -> Option<&'static str> {
        let one_run = matches!(
            self,
            Self::OneRun | Self::OneRunGdp | Self::OneRunIndependent | Self::GaussianPair
        );
        match (design, one_run) {
            (Design::Runs, true) => Some(
                "needs canaries of one training, each included with probability 1/2; these rows are \
                 separate trainings (design runs)",
            ),
            (Design::OneRun, false) => Some(
                "needs rows that are independent trainings; canaries of one training are not (design one-run)",
            ),
            _ => None,
        }
    }
}

impl FromStr for Method {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        Self::ALL.into_iter().find(|method| method.as_str() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            UnknownName(format!("method `{text}` is not one of {names}, all"))
        })
    }
}

impl std::fmt::Display for Method {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(self.as_str())
    }
}
