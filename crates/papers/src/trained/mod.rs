//! Figures and tables that need models: "The Last Iterate Advantage", figures 2 and 4 and Table 2,
//! on image data sets that the user has.
//!
//! The work is experiments in the entry's folder. It goes round: every setting gets some trainings,
//! then twice as many, and so on; when the time is up, what is finished is reported, and the same
//! command adds to it.

mod audits;
mod context;
mod data;
mod figure_2;
mod figure_4;
mod rounds;
mod settings;
#[cfg(feature = "language")]
mod table_1;
mod table_2;
#[cfg(feature = "language")]
mod tofu;

pub use context::TrainedContext;

use crate::{Context, Entry, PaperError, Reproduction};

/// A figure or table whose data the user brings.
#[derive(Clone, Copy, Debug)]
pub struct TrainedEntry {
    pub entry: Entry,
    compute: fn(&TrainedContext<'_>) -> Result<Reproduction, PaperError>,
}

impl TrainedEntry {
    /// Computes it, or as much of it as the time allows.
    ///
    /// # Errors
    /// Data that cannot be read, trouble with device or files, `Interrupted`.
    pub fn reproduce(&self, context: &TrainedContext<'_>) -> Result<Reproduction, PaperError> {
        (self.compute)(context)
    }
}

/// Everything that can be reproduced with data of the user's.
///
/// ```
/// assert!(papers::trained_entries().iter().any(|trained| trained.entry.id == "p4-figure-2"));
/// ```
pub fn trained_entries() -> Vec<TrainedEntry> {
    vec![
        figure_2::ENTRY,
        figure_4::ENTRY,
        table_2::ENTRY,
        #[cfg(feature = "language")]
        table_1::ENTRY,
        #[cfg(feature = "language")]
        tofu::ENTRY,
    ]
}

/// What an entry answers without data.
fn needs_data(_: &Context<'_>) -> Result<Reproduction, PaperError> {
    Err(PaperError::NeedsData)
}
