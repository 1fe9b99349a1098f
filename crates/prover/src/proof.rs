//! What a proof says: for each end of a claim whether it holds, what was enclosed, and how, so that
//! another person with another library can repeat it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::{At, Direction, Quantity, Run};

/// What balls say about an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The end is on its right side.
    Proven,
    /// Neither side could be shown.
    Undecided,
    /// The end is on the wrong side.
    Wrong,
}

impl Outcome {
    /// The graver of two: wrong, then undecided, then proven.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Wrong, _) | (_, Self::Wrong) => Self::Wrong,
            (Self::Undecided, _) | (_, Self::Undecided) => Self::Undecided,
            _ => Self::Proven,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::Undecided => "undecided",
            Self::Wrong => "wrong",
        }
    }
}

/// A number that was enclosed: doubles outside of the ball.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Enclosure {
    /// What the number is, e.g. `delta(2.5), remove`.
    pub of: String,
    /// `null` where a double cannot hold it.
    pub lower: Option<f64>,
    pub upper: Option<f64>,
    /// The midpoint of the ball, exactly, in hexadecimal.
    pub midpoint: String,
    /// Leading bits of the midpoint that are certain.
    pub bits: i64,
}

/// One end of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndProof {
    /// `null`: infinite, which holds for an upper end.
    pub end: Option<f64>,
    pub outcome: Outcome,
    /// The sentence that the enclosures show, or why they do not.
    pub statement: String,
    pub enclosures: Vec<Enclosure>,
    /// Which route, and with which parameters.
    pub path: String,
    /// Bits of the mantissas.
    pub precision: u32,
}

/// A claim checked again in ball arithmetic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    pub outcome: Outcome,
    pub lens: String,
    pub direction: Direction,
    pub quantity: Quantity,
    pub at: At,
    pub lower: EndProof,
    pub upper: EndProof,
}

/// The `dosimeter.proof/1` document: the proofs of all claims of an account.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Certificate {
    pub schema: String,
    pub run: Run,
    /// The gravest of all.
    pub outcome: Outcome,
    /// One for each claim, in their order; `null` for claims without certified ends.
    pub proofs: Vec<Option<Proof>>,
}

impl Certificate {
    pub const SCHEMA: &'static str = "dosimeter.proof/1";
}
