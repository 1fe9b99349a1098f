//! "The Last Iterate Advantage" (Steinke et al., ICLR 2025, arXiv 2410.06186).

mod figure_1;
mod figure_3;
mod figure_5;
mod figure_6;
mod section_4_1;
mod section_4_2;
mod section_4_3;
mod table_2;
pub(crate) mod trained;

use crate::Entry;

pub(crate) const PAPER: &str =
    "The Last Iterate Advantage (Steinke et al., ICLR 2025, arXiv 2410.06186)";

pub(crate) const ENTRIES: &[Entry] = &[
    figure_1::ENTRY,
    figure_3::ENTRY,
    section_4_1::ENTRY,
    section_4_2::ENTRY,
    figure_5::ENTRY,
    section_4_3::ENTRY,
    figure_6::ENTRY,
    table_2::ENTRY,
];
