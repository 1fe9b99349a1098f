//! What the process says when it ends.

pub use answers::exit::*;
