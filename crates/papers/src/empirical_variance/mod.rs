//! "Empirical Privacy Variance" (Hu et al., ICML 2025, arXiv 2503.12314).

mod hypothesis_2;

use crate::Entry;

pub(crate) const PAPER: &str =
    "Empirical Privacy Variance (Hu et al., ICML 2025, arXiv 2503.12314)";

pub(crate) const ENTRIES: &[Entry] = &[hypothesis_2::ENTRY];
