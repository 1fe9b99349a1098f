//! What the process says when it ends. Scripts rely on these numbers.

/// The question was answered.
pub const ANSWERED: u8 = 0;
/// A bug in this program.
pub const BUG: u8 = 1;
/// The input or the configuration is wrong.
pub const BAD_INPUT: u8 = 2;
/// A check failed: the run breaks its policy, or a measurement contradicts a proven claim.
pub const CHECK_FAILED: u8 = 3;
/// Work is missing; running the same command again resumes it.
pub const INCOMPLETE: u8 = 4;
/// Refused: outside of the domain, or beyond what can be certified.
pub const REFUSED: u8 = 5;
/// Interrupted; can be resumed.
pub const INTERRUPTED: u8 = 130;
