//! Claims and figures in, one self-contained document out: a page, Markdown, or PDF.
//!
//! A [`Report`] is data: what is claimed about a run, what was measured, the verdict, the
//! figures, and where everything comes from. It is gathered elsewhere; nothing here computes a
//! privacy number. [`html`] and [`markdown`] are pure functions of it: the same report gives the
//! same bytes. Every number that a reader sees is in the report's JSON, which the page carries
//! in `<script type="application/json" id="dosimeter">`.
//!
//! ```
//! use report::{Provenance, Report};
//! use vocabulary::Verdict;
//!
//! let report = Report::new("0.1.0", 1e-5, Verdict::nothing("no lens holds"), Provenance::default());
//! let page = report::html(&report);
//! assert!(page.starts_with("<!DOCTYPE html>") && page.contains("no lens holds"));
//! assert!(page.contains(r#""schema":"dosimeter.report/1""#));
//! ```

mod assumption;
mod card;
mod content;
mod cover;
mod document;
mod grid;
mod html;
mod markdown;
mod paragraph;
#[cfg(feature = "pdf")]
mod pdf;
mod registry;
mod statement;
mod table;
mod training;
mod words;
mod yaml;

pub use assumption::{Assumption, AssumptionMark, Origin, assumptions};
pub use card::card;
pub use cover::{Cover, calendar_day};
pub use document::{Change, Input, Provenance, Report, Seed, Shown};
pub use html::html;
pub use markdown::markdown;
pub use paragraph::paragraph;
#[cfg(feature = "pdf")]
pub use pdf::{PdfError, pdf};
pub use registry::{NotAnswered, registry};
pub use statement::statement;
pub use training::{Fact, SearchGroup, SearchSection, Training};
