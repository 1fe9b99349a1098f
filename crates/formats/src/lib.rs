//! Binary formats that several crates read. Nothing in a header is believed before the bytes
//! are there, and every refusal is a fragment that its caller completes with file and row.

pub mod npy;
