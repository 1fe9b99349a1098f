//! How numbers and tables look to a person.

pub(crate) mod audit;
pub mod claims;
pub mod describe;
mod table;

pub use table::{Align, Table, csv_line, wrap};
pub use vocabulary::rounding::{plain, quote, quoted_end, rounded};
