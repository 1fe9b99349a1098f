//! How numbers and tables look to a person.

pub(crate) mod audit;
pub mod claims;
pub mod describe;
mod table;

/// Columns of a screen.
pub const WIDTH: usize = 80;

pub use formats::csv::line as csv_line;
pub use table::{Align, TextTable, wrap};
pub use vocabulary::rounding::{about, confidence, plain, with_commas};
