//! Why a number could not be enclosed, and how long one may try.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Why a number could not be enclosed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The same digits may be had with longer mantissas.
    Words(String),
    /// More digits may help.
    Precision(String),
    /// More digits do not help.
    Other(String),
}

impl Obstacle {
    pub fn message(self) -> String {
        match self {
            Self::Words(message) | Self::Precision(message) | Self::Other(message) => message,
        }
    }

    /// Whether another attempt may be worth it.
    pub(crate) fn may_pass(&self) -> bool {
        !matches!(self, Self::Other(_))
    }

    /// Whether mantissas of more than `words` words may do it: then nothing less than the number itself is looked for.
    pub(crate) fn asks_for_words(&self, words: usize) -> bool {
        words < 8 && matches!(self, Self::Words(_))
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

/// How long one may try.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// Time on the clock.
    Time(Duration),
    /// Units of work, about a millisecond each on a free core: the same proofs on every machine.
    Work(f64),
}

#[derive(Clone, Copy)]
struct Left {
    deadline: Option<Instant>,
    work: f64,
}

thread_local! {
    static LEFT: Cell<Left> = const { Cell::new(Left { deadline: None, work: f64::INFINITY }) };
}

/// Runs `work` with a limit: past it every further step is refused, so an end stays undecided.
pub(crate) fn within<T>(limit: Limit, work: impl FnOnce() -> T) -> T {
    let left = match limit {
        Limit::Time(time) => {
            Left { deadline: Instant::now().checked_add(time), work: f64::INFINITY }
        }
        Limit::Work(units) => Left { deadline: None, work: units },
    };
    let before = LEFT.replace(left);
    let result = work();
    LEFT.set(before);
    result
}

/// Units of work that are left, about.
pub(crate) fn left() -> f64 {
    let Left { deadline, work } = LEFT.get();
    let time = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    time.map_or(work, |time| work.min(1e3 * time.as_secs_f64()))
}

/// Takes `units` of work from what is left.
///
/// # Errors
/// Past the limit.
pub(crate) fn spend(units: f64) -> Result<(), Obstacle> {
    let mut left = LEFT.get();
    left.work -= units;
    LEFT.set(left);
    if left.work < 0.0 || left.deadline.is_some_and(|deadline| Instant::now() > deadline) {
        return Err("the limit of time or work is spent".into());
    }
    Ok(())
}
