//! Why a number could not be enclosed, and how long one may try.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Why a number could not be enclosed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// More digits may help.
    Precision(String),
    /// More digits do not help.
    Other(String),
}

impl Obstacle {
    pub fn message(self) -> String {
        match self {
            Self::Precision(message) | Self::Other(message) => message,
        }
    }

    pub(crate) fn precision(message: &str) -> Self {
        Self::Precision(message.into())
    }
}

impl From<&str> for Obstacle {
    fn from(message: &str) -> Self {
        Self::Other(message.into())
    }
}

impl From<String> for Obstacle {
    fn from(message: String) -> Self {
        Self::Other(message)
    }
}

thread_local! {
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Runs `work` with a time limit: past it every further step is refused, so an end stays undecided.
pub(crate) fn within<T>(limit: Duration, work: impl FnOnce() -> T) -> T {
    let before = DEADLINE.replace(Instant::now().checked_add(limit));
    let result = work();
    DEADLINE.set(before);
    result
}

/// # Errors
/// Past the time limit.
pub(crate) fn look() -> Result<(), Obstacle> {
    if DEADLINE.get().is_some_and(|deadline| Instant::now() > deadline) {
        return Err("the time limit is spent".into());
    }
    Ok(())
}
