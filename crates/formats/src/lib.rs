//! Files that several crates read and write. A reader believes nothing in a header before the
//! bytes are there, and every refusal is a fragment that its caller completes with file and row.
//! A writer leaves a whole file or none.

pub mod files;
pub mod npy;
