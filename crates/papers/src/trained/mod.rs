//! Figures and tables that need models: what their entries have in common.

mod context;

pub use context::TrainedContext;

use crate::{Context, Entry, PaperError, Reproduction};

/// A figure or table whose data the user brings.
#[derive(Clone, Copy, Debug)]
pub struct TrainedEntry {
    pub entry: Entry,
    pub(crate) compute: fn(&TrainedContext<'_>) -> Result<Reproduction, PaperError>,
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

/// What an entry answers without data.
pub(crate) fn needs_data(_: &Context<'_>) -> Result<Reproduction, PaperError> {
    Err(PaperError::NeedsData)
}
