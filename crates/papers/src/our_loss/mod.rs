//! "It's Our Loss" (Annamalai 2024, arXiv 2407.06496).

mod figure_1;
mod figure_2;

use crate::Entry;

pub(crate) const PAPER: &str = "It's Our Loss: No Privacy Amplification for Hidden State DP-SGD With Non-Convex Loss (Annamalai 2024, arXiv 2407.06496)";

pub(crate) const ENTRIES: &[Entry] = &[figure_1::ENTRY, figure_2::ENTRY];
