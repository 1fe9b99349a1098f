//! The papers' figures and tables, computed again from nothing but their parameters.
//!
//! An [`Entry`] is one figure or table: it knows what the paper shows, computes its own
//! [`Reproduction`] (tables, figures, what we get, why it differs), and [`write`] puts it into a
//! folder. Entries that play games keep the scores as resumable experiments in that folder.
//! One folder of this crate per paper.

mod closed_form;
mod context;
mod empirical_variance;
mod error;
mod index;
mod last_iterate;
mod our_loss;
mod reproduction;
mod tools;
mod trained;

pub use context::Context;
#[cfg(feature = "language")]
pub use empirical_variance::audited_canaries;
pub use error::PaperError;
pub use index::write_index;
pub(crate) use reproduction::row;
pub use reproduction::{PaperTable, Reproduction, write};
pub use trained::{TrainedContext, TrainedEntry};

/// One figure or table of a paper.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What `reproduce` calls it: the paper's folder here, and the figure or table.
    pub id: &'static str,
    pub paper: &'static str,
    pub title: &'static str,
    /// What the paper shows, in our words.
    pub shows: &'static str,
    /// About how long it takes on two cores.
    pub seconds: u32,
    compute: fn(&Context<'_>) -> Result<Reproduction, PaperError>,
}

impl Entry {
    /// Computes it.
    ///
    /// # Errors
    /// Those of the accounting, the audit and the files; `Interrupted` when asked to stop.
    pub fn reproduce(&self, context: &Context<'_>) -> Result<Reproduction, PaperError> {
        (self.compute)(context)
    }
}

/// Everything that can be reproduced, in the order of the papers.
///
/// ```
/// assert!(papers::entries().iter().any(|entry| entry.id == "last-iterate-section-4.2"));
/// ```
pub fn entries() -> Vec<Entry> {
    [closed_form::ENTRIES, empirical_variance::ENTRIES, our_loss::ENTRIES, last_iterate::ENTRIES]
        .concat()
}

/// Everything that can be reproduced with data of the user's.
///
/// ```
/// let trained = papers::trained_entries();
/// assert!(trained.iter().any(|trained| trained.entry.id == "last-iterate-figure-2"));
/// ```
pub fn trained_entries() -> Vec<TrainedEntry> {
    [last_iterate::trained::ENTRIES, empirical_variance::TRAINED].concat()
}

/// The papers by number, and what entries of theirs begin with.
const NUMBERS: [(&str, &str); 4] = [
    ("p1-", "closed-form-"),
    ("p2-", "empirical-variance-"),
    ("p3-", "our-loss-"),
    ("p4-", "last-iterate-"),
];

/// The name of an entry, which may begin with the paper's number.
///
/// ```
/// assert_eq!(papers::named("last-iterate-figure-2"), "last-iterate-figure-2");
/// assert_eq!(papers::named("p4-figure-2"), "last-iterate-figure-2");
/// assert_eq!(papers::entry("p1-figure-9").unwrap().id, "closed-form-figure-9");
/// ```
pub fn named(id: &str) -> String {
    let numbered = NUMBERS.iter().find_map(|(number, name)| Some((name, id.strip_prefix(number)?)));
    numbered.map_or_else(|| id.to_owned(), |(name, rest)| format!("{name}{rest}"))
}

/// The entry of this name, or of its number.
///
/// # Errors
/// `Unknown`, with all names, those of trained entries as well.
pub fn entry(id: &str) -> Result<Entry, PaperError> {
    let (all, name) = (entries(), named(id));
    all.iter().find(|entry| entry.id == name).copied().ok_or_else(|| {
        let trained = trained_entries();
        let known = all.iter().chain(trained.iter().map(|trained| &trained.entry));
        PaperError::Unknown {
            id: id.to_owned(),
            known: known.map(|entry| entry.id).collect::<Vec<_>>().join(", "),
        }
    })
}
