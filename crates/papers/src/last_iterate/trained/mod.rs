//! Figures 2 and 4 and both tables, trained on data that the user has.
//!
//! The work is experiments in the entry's folder. It goes round: every setting gets some trainings,
//! then twice as many, and so on; when the time is up, what is finished is reported, and the same
//! command adds to it.

mod audits;
mod data;
mod figure_2;
mod figure_4;
mod rounds;
mod settings;
#[cfg(feature = "language")]
mod table_1;
mod table_2;

use crate::TrainedEntry;

pub(crate) const ENTRIES: &[TrainedEntry] = &[
    figure_2::ENTRY,
    figure_4::ENTRY,
    table_2::ENTRY,
    #[cfg(feature = "language")]
    table_1::ENTRY,
];
