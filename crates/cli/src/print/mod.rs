//! How numbers and tables look to a person.

mod rounding;
mod table;

pub use rounding::{plain, quote, quoted_end, rounded};
pub use table::{Align, Table, csv_line, wrap};
