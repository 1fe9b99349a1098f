//! "Empirical Privacy Variance" (Hu et al., ICML 2025, arXiv 2503.12314).

mod hypothesis_2;
#[cfg(feature = "language")]
pub(crate) mod tofu;

use crate::{Entry, TrainedEntry};

pub(crate) const PAPER: &str =
    "Empirical Privacy Variance (Hu et al., ICML 2025, arXiv 2503.12314)";

#[cfg(feature = "language")]
pub use tofu::audited_canaries;

pub(crate) const ENTRIES: &[Entry] = &[
    hypothesis_2::ENTRY,
    #[cfg(feature = "language")]
    tofu::ENTRY,
];

pub(crate) const TRAINED: &[TrainedEntry] = &[
    #[cfg(feature = "language")]
    tofu::smollm2::ENTRY,
];
