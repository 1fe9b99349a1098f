//! How batches are drawn, as data: the scheme, what a scheme needs beyond a rate, and what else is
//! released beside the gradients. What each means for privacy is said by the accounting's table of
//! schemes; here are only the names.

use crate::Run;
use crate::rounding::with_commas;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the records of a batch are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Each record is in each batch independently with probability `sample_rate`.
    #[default]
    Poisson,
    /// Every record is in every batch.
    Full,
    /// The data set is put into a random order and cut into batches.
    Shuffle,
    /// Each batch is a uniform subset of fixed size, drawn anew at each step.
    FixedSize,
    /// Each record is thrown into one batch of every epoch, independently of the others.
    BallsAndBins,
    /// As Poisson, but of a batch above the largest size a uniform part is kept.
    TruncatedPoisson,
    /// The records are split into groups, which are sampled in turn.
    CyclicPoisson,
    /// The data set is cut into batches in its own order, the same in every pass.
    InOrder,
}

impl Sampling {
    /// The names users write.
    pub const ALL: &'static [(&'static str, Self)] = &[
        ("poisson", Self::Poisson),
        ("full", Self::Full),
        ("shuffle", Self::Shuffle),
        ("fixed-size", Self::FixedSize),
        ("balls-and-bins", Self::BallsAndBins),
        ("truncated-poisson", Self::TruncatedPoisson),
        ("cyclic-poisson", Self::CyclicPoisson),
        ("in-order", Self::InOrder),
    ];

    /// Whether every record joins every batch by its own coin (of any weight, 1 included).
    pub fn by_coins(self) -> bool {
        matches!(self, Self::Poisson | Self::Full)
    }

    /// Whether an order of the data is cut into batches, so that a pass uses every record at most once.
    pub fn cuts_the_data(self) -> bool {
        matches!(self, Self::Shuffle | Self::InOrder)
    }

    /// Whether a record that is added or removed changes which batches the others are in.
    pub fn moves_others(self) -> bool {
        self.cuts_the_data()
    }

    /// The keys of a run that belong to this scheme alone.
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Poisson | Self::Full | Self::InOrder => &[],
            Self::Shuffle => &["permutation"],
            Self::FixedSize => &["replacement"],
            Self::BallsAndBins => &["uses_per_epoch"],
            Self::TruncatedPoisson => &["max_batch_size"],
            Self::CyclicPoisson => &["cycle_length"],
        }
    }

    /// The name in a list of choices.
    pub fn label(self) -> &'static str {
        match self {
            Self::Poisson => "Poisson",
            Self::Full => "full",
            Self::Shuffle => "shuffled",
            Self::FixedSize => "fixed size",
            Self::BallsAndBins => "balls and bins",
            Self::TruncatedPoisson => "truncated Poisson",
            Self::CyclicPoisson => "cyclic Poisson",
            Self::InOrder => "in order",
        }
    }

    /// The batches in a few words, for the middle of a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::Poisson => "Poisson batches",
            Self::Full => "full batches",
            Self::Shuffle => "shuffled batches",
            Self::FixedSize => "batches of a fixed size",
            Self::BallsAndBins => "balls-and-bins batches",
            Self::TruncatedPoisson => "truncated Poisson batches",
            Self::CyclicPoisson => "cyclic Poisson batches",
            Self::InOrder => "batches in the order of the data",
        }
    }

    /// What happens to the records, as a sentence without its full stop.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Poisson => "Poisson batches: every record joins every batch independently",
            Self::Full => "Every record is in every batch",
            Self::Shuffle => "The records are put into a random order and cut into batches",
            Self::FixedSize => {
                "Each batch is a uniform subset of fixed size, drawn anew at each step"
            }
            Self::BallsAndBins => {
                "Every record is thrown into one batch of every epoch, independently of the others"
            }
            Self::TruncatedPoisson => {
                "Every record joins every batch independently, and of too large a batch a uniform \
                 part is kept"
            }
            Self::CyclicPoisson => {
                "The records are split into groups, and each step draws a Poisson batch from one \
                 group, in turn"
            }
            Self::InOrder => {
                "The records are cut into batches in their own order, the same in every pass"
            }
        }
    }

    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, scheme)| *scheme == self).map_or("", |(name, _)| name)
    }
}

/// Whether a shuffled data set gets a new order for every epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Permutation {
    /// A new order for every epoch.
    #[default]
    Fresh,
    /// One order for all epochs.
    Kept,
}

impl Permutation {
    /// The names users write.
    pub const ALL: &'static [(&'static str, Self)] =
        &[("fresh", Self::Fresh), ("kept", Self::Kept)];
}

/// What some schemes need beyond a rate; the defaults are what the other schemes have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Drawing {
    /// Shuffled batches: a new order for every epoch, or one for all.
    #[serde(skip_serializing_if = "is_default")]
    pub permutation: Permutation,
    /// Fixed-size batches: a record may be drawn several times into one batch.
    #[serde(skip_serializing_if = "is_default")]
    pub replacement: bool,
    /// Truncated Poisson: the largest batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_batch_size: Option<u64>,
    /// Cyclic Poisson: the number of groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycle_length: Option<u64>,
    /// Balls and bins: in how many batches of an epoch each record is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uses_per_epoch: Option<u64>,
}

impl Drawing {
    /// The expected share of all records in a batch: the sample rate, but for a rate within a group
    /// and for several uses per epoch.
    pub fn share(&self, sample_rate: f64) -> f64 {
        let uses = self.uses_per_epoch.unwrap_or(1) as f64;
        sample_rate * uses / self.cycle_length.unwrap_or(1).max(1) as f64
    }
}

impl Run {
    /// How batches are drawn, with its details, in a few words for the middle of a sentence.
    ///
    /// ```
    /// use vocabulary::{Drawing, Run, Sampling};
    /// let run = Run::builder().phase(1.0, 0.01, 100).sampling(Sampling::FixedSize);
    /// let run = run.drawing(Drawing { replacement: true, ..Drawing::default() }).build()?;
    /// assert_eq!(run.batches_in_words(), "batches of a fixed size (with replacement)");
    /// # Ok::<(), vocabulary::RunError>(())
    /// ```
    pub fn batches_in_words(&self) -> String {
        let (words, drawing) = (self.sampling().words(), self.drawing());
        let detail = match self.sampling() {
            Sampling::Shuffle if drawing.permutation == Permutation::Kept => {
                Some("one order for all epochs".to_owned())
            }
            Sampling::FixedSize if drawing.replacement => Some("with replacement".to_owned()),
            Sampling::BallsAndBins => drawing
                .uses_per_epoch
                .filter(|uses| *uses > 1)
                .map(|uses| format!("{uses} uses per epoch")),
            Sampling::TruncatedPoisson => {
                drawing.max_batch_size.map(|most| format!("at most {}", with_commas(most)))
            }
            Sampling::CyclicPoisson => {
                drawing.cycle_length.map(|groups| format!("{groups} groups"))
            }
            _ => None,
        };
        detail.map_or_else(|| words.to_owned(), |detail| format!("{words} ({detail})"))
    }

    /// What happens to the records, as a sentence without its full stop.
    pub fn batches_in_a_sentence(&self) -> String {
        let drawing = self.drawing();
        match self.sampling() {
            Sampling::Shuffle if drawing.permutation == Permutation::Kept => {
                "The records are put into one random order, which all epochs share, and cut into batches".into()
            }
            Sampling::FixedSize if drawing.replacement => {
                "Each batch has a fixed size and is drawn anew at each step, with replacement: a record may be in it \
                 several times"
                    .into()
            }
            Sampling::BallsAndBins if drawing.uses_per_epoch.is_some_and(|uses| uses > 1) => format!(
                "Every record is thrown into {} batches of every epoch, independently of the others",
                drawing.uses_per_epoch.unwrap_or(1)
            ),
            sampling => sampling.sentence().into(),
        }
    }
}

/// Batches of a pass over the data: 1/rate where it is whole up to rounding. Else rounded down, without the short batch at
/// the end, or up, with it.
pub fn batches_per_pass(rate: f64, with_short: bool) -> u64 {
    let exact = 1.0 / rate;
    let near = exact.round();
    let whole = (exact - near).abs() <= 1e-9 * near;
    let count = if whole {
        near
    } else if with_short {
        exact.ceil()
    } else {
        exact.floor()
    };
    count.max(1.0) as u64
}

/// A further release on the same batch: a private count, a layer's own sum, a statistic.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FurtherRelease {
    /// Standard deviation of its Gaussian noise.
    pub noise: f64,
    /// How far one record can move it.
    pub sensitivity: f64,
}

/// Noise that is correlated between steps: the releases are C x + noise, C lower triangular.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Matrix {
    /// Bands of C, its columns of norm at most 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bands: Option<u64>,
    /// First column of a Toeplitz C.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub toeplitz: Vec<f64>,
    /// How often a record takes part at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uses: Option<u64>,
    /// Steps between two uses at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub separation: Option<u64>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
