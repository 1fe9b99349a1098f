//! What must hold for the claims to be true, and who says so: the training itself (its ledger),
//! a person, or nobody.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::Run;
use vocabulary::rounding::plain;

/// Who vouches for an assumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AssumptionMark {
    /// The ledger that the training wrote says so.
    Verified,
    /// A person said so, in a file or a flag.
    Declared,
    /// Nobody said so; a default, or outside of what this program can see.
    Unknown,
    /// The ledger says that it is not so.
    Broken,
}

impl AssumptionMark {
    pub fn words(self) -> &'static str {
        match self {
            Self::Verified => "verified by the ledger",
            Self::Declared => "declared",
            Self::Unknown => "unknown",
            Self::Broken => "not so, by the ledger",
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Declared => "declared",
            Self::Unknown => "unknown",
            Self::Broken => "broken",
        }
    }
}

/// One assumption.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Assumption {
    pub text: String,
    pub mark: AssumptionMark,
    /// What that means, or what goes wrong otherwise.
    pub note: String,
}

/// Where the run's description comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// All of it stands in a ledger, and no flag changed it.
    pub ledger: bool,
    /// The sampling scheme was stated, not taken by default.
    pub sampling_stated: bool,
    /// The clip norm was stated.
    pub clip_stated: bool,
    /// The neighbouring relation was stated.
    pub adjacency_stated: bool,
    /// The ledger says that updates were divided by a public constant.
    pub public_normaliser: bool,
    /// Whether the ledger's noise came from a cryptographic generator with precautions against
    /// floating-point attacks; nothing where no ledger says.
    pub secure_noise: Option<bool>,
}

/// The assumptions behind the claims about a run.
pub fn assumptions(run: &Run, origin: Origin) -> Vec<Assumption> {
    let fact = |stated: bool| match (origin.ledger, stated) {
        (true, _) => AssumptionMark::Verified,
        (_, true) => AssumptionMark::Declared,
        _ => AssumptionMark::Unknown,
    };
    let assumption = |text: String, mark: AssumptionMark, note: &str| Assumption {
        text,
        mark,
        note: note.to_owned(),
    };
    let default = |stated: bool, note: &'static str| {
        if stated || origin.ledger { note } else { "taken by default: nobody stated it" }
    };
    let records = match run.group_size() {
        1 => "one record".to_owned(),
        size => format!("{size} records"),
    };
    vec![
        assumption(
            format!(
                "Every summed gradient gets Gaussian noise in units of the clip norm: {}",
                run.phases_in_words()
            ),
            fact(true),
            "less noise, or noise on the mean, voids the claim",
        ),
        assumption(
            run.batches_in_a_sentence(),
            fact(origin.sampling_stated),
            default(
                origin.sampling_stated,
                "batches drawn in another way are another mechanism and can leak far more",
            ),
        ),
        assumption(
            format!(
                "Each record's gradient is clipped to norm {} before it is summed",
                plain(run.clip_norm())
            ),
            fact(origin.clip_stated),
            default(
                origin.clip_stated,
                "clipping the mean of a batch, or layers with statistics over a batch, void it",
            ),
        ),
        assumption(
            format!("Neighbouring data sets differ by {} {records}", run.adjacency().words()),
            AssumptionMark::Declared,
            if origin.adjacency_stated || origin.ledger {
                "a definition, not a fact: it says what the claim is about"
            } else {
                "a definition, taken by default: it says what the claim is about"
            },
        ),
        assumption(
            "A person has at most one record".into(),
            AssumptionMark::Unknown,
            "someone with k records has the protection of a group of k",
        ),
        assumption(
            "Updates are normalised by a public constant; the data set's size is public".into(),
            if origin.public_normaliser {
                AssumptionMark::Verified
            } else {
                AssumptionMark::Unknown
            },
            if origin.public_normaliser {
                "the constant is verified; that the size is public is a definition"
            } else {
                "dividing by the realised batch size leaks it"
            },
        ),
        assumption(
            "Settings were not chosen by looking at these records".into(),
            AssumptionMark::Unknown,
            "the epsilon of a chosen run is not the epsilon of the search",
        ),
        assumption(
            "The noise comes from a sound generator, safe against floating-point attacks".into(),
            match origin.secure_noise {
                Some(true) => AssumptionMark::Verified,
                Some(false) => AssumptionMark::Broken,
                None => AssumptionMark::Unknown,
            },
            match origin.secure_noise {
                Some(true) => "a cryptographic generator, with precautions against rounding",
                Some(false) => {
                    "reproducible noise from a seed is for experiments, not for a model that is \
                     released"
                }
                None => "the analysis assumes real numbers and perfect randomness",
            },
        ),
    ]
}
