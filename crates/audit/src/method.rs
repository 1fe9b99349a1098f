//! The methods by name, and for which data each is valid.

use crate::{AuditError, Design};
use schemars::JsonSchema;
use serde::Serialize;
use std::str::FromStr;
use vocabulary::{MethodName, Source};

/// A way to read scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
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
}

impl Method {
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

    pub fn name(self) -> &'static str {
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

    /// The method as the maker of a claim.
    pub fn source(self) -> Source {
        // The names are those of the vocabulary; a test holds the two lists together.
        Source::Method(MethodName::parse(self.name()).unwrap_or(MethodName::ClopperPearson))
    }

    /// The bound that needs no family, shown beside every other one.
    pub fn distribution_free(design: Design) -> Self {
        match design {
            Design::Runs => Self::ClopperPearson,
            Design::OneRun => Self::OneRun,
        }
    }

    /// Whether the method needs the sampling rate and the steps.
    pub fn needs_training(self) -> bool {
        matches!(self, Self::Composition | Self::LastIterate | Self::Grid)
    }

    /// Whether the number is a bound with a confidence.
    pub fn is_confidence_bound(self) -> bool {
        !matches!(self, Self::Bayes) && !self.is_estimate()
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
                "needs canaries of one training, each in with probability 1/2; these rows are trainings of their own (design runs)",
            ),
            (Design::OneRun, false) => Some(
                "needs rows that are independent trainings; canaries of one training are not (design one-run)",
            ),
            _ => None,
        }
    }
}

impl FromStr for Method {
    type Err = AuditError;

    fn from_str(text: &str) -> Result<Self, AuditError> {
        Self::ALL.into_iter().find(|method| method.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            AuditError::InvalidInput(format!("method `{text}` is not one of {names}, all"))
        })
    }
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_makes_claims_in_its_own_name() {
        for method in Method::ALL {
            assert_eq!(method.source().as_str(), method.name());
        }
    }
}
