//! The papers' crafters, with their distinguishers.

mod linear;
mod our_loss;
mod repeaters;
mod shift_register;

pub use linear::{Coordinate, Linear, Quadratic, Zeroing};
pub use our_loss::{Encoding, OurLoss, Suitability};
pub use repeaters::{AnalogReader, AnalogRepeaters, PrintedReader, PrintedRepeaters};
pub use shift_register::{RegisterReader, ShiftRegister};
