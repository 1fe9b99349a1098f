//! How numbers and tables look to a person.

pub mod claims;
pub mod describe;
mod rounding;
mod table;

pub use rounding::{plain, quote, quoted_end, rounded};
pub use table::{Align, Table, csv_line, wrap};
