//! Under which conditions a training is attacked: what the other records do, where the model starts, what
//! the attacker inserts and sees.

use serde::Deserialize;
use serde_json::{Value, json};
use training::Fault;
use vocabulary::{Direction, Observe};

/// What the records other than the canary contribute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Others {
    /// Their clipped gradients: the data set as it is.
    #[default]
    Natural,
    /// Their clipped gradients, with every feature set to zero and the labels kept.
    Blank,
    /// Nothing, as if all their gradients were zero: the worst case of the analysis.
    Zero,
}

/// Where the replicas start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StartFrom {
    /// All from the same drawn parameters, which the attacker knows.
    #[default]
    Shared,
    /// Each from parameters of its own, which the attacker knows.
    Own,
    /// All from parameters trained without noise on records that are not in the training
    /// (Annamalai and De Cristofaro 2024): genuine gradients are small, and the canary stands out.
    Pretrained,
}

/// Which coordinate a Dirac canary uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coordinate {
    /// Drawn from the seed (GC-R of Cebere et al. 2025).
    #[default]
    Random,
    /// Those that move least in one noiseless training (GC-S of Cebere et al. 2025).
    Quiet,
    /// This one.
    Number(u64),
}

/// A record made to be remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputCanary {
    /// A real record with a wrong label.
    Mislabelled,
    /// All features zero, with the label that the start finds least likely.
    Blank,
    /// The direction in which the data vary least, at the data's mean norm, with the label that
    /// the start finds least likely (Jagielski et al. 2020).
    ClipBkd,
    /// A real record as it is.
    Natural,
}

/// What the attacker inserts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CanaryKind {
    /// A gradient of the clip norm along one coordinate, once in this many steps (1: always).
    Gradient { coordinate: Coordinate, every: u64 },
    /// One more record.
    Input(InputCanary),
}

/// Everything but the training itself.
#[derive(Clone, Debug)]
pub struct Conditions {
    pub canary: CanaryKind,
    pub others: Others,
    pub start: StartFrom,
    pub observe: Observe,
    /// For one canary that is there or not: which of the two worlds is to be detected.
    pub direction: Direction,
    /// For substitution: how many candidates there are, one of which is in.
    pub candidates: usize,
    /// A mistake planted on purpose.
    pub fault: Fault,
}

impl Conditions {
    /// A canary in the data set as it is, from a shared start, seen in the last iterate.
    pub fn new(canary: CanaryKind) -> Self {
        Self {
            canary,
            others: Others::Natural,
            start: StartFrom::Shared,
            observe: Observe::Last,
            direction: Direction::Remove,
            candidates: 2,
            fault: Fault::None,
        }
    }

    /// The name users know.
    pub(crate) fn game(&self) -> &'static str {
        match self.canary {
            CanaryKind::Gradient { .. } => "gradient",
            CanaryKind::Input(_) => "input",
        }
    }

    /// Everything that determines the scores beside the training.
    pub(crate) fn parameters(&self) -> Value {
        let canary = match self.canary {
            CanaryKind::Gradient { coordinate, every } => json!({
                "kind": "dirac gradient",
                "coordinate": match coordinate {
                    Coordinate::Random => json!("random"),
                    Coordinate::Quiet => json!("quiet"),
                    Coordinate::Number(number) => json!(number),
                },
                "every": every,
            }),
            CanaryKind::Input(kind) => json!({ "kind": kind.name() }),
        };
        json!({
            "canary": canary,
            "others": match self.others {
                Others::Natural => "natural",
                Others::Blank => "blank",
                Others::Zero => "zero",
            },
            "start": match self.start {
                StartFrom::Shared => "shared",
                StartFrom::Own => "own",
                StartFrom::Pretrained => "pretrained",
            },
            "observe": self.observe.as_str(),
            "fault": match self.fault {
                Fault::None => "none",
                Fault::HalfNoise => "half-noise",
                Fault::NoClipping => "no-clipping",
                Fault::RepeatedBatch => "repeated-batch",
            },
        })
    }
}

impl InputCanary {
    /// The name users know.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mislabelled => "mislabelled",
            Self::Blank => "blank",
            Self::ClipBkd => "clip-bkd",
            Self::Natural => "natural",
        }
    }
}
