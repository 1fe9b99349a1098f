//! A computation that lets its caller look up now and then, for instance for Ctrl-C, and that may be
//! given a limit of time.
//!
//! Most numbers take microseconds, some take seconds; whoever asks does not know which. So the
//! loops of this crate and of those above it call [`look`] between two pieces of work, which costs a
//! nanosecond and does nothing unless a caller left a function there with [`looking_up`]. That
//! function may end the computation by unwinding (`std::panic::resume_unwind`): nothing in a
//! computation outlives its call.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

thread_local! {
    static LOOK: Cell<Option<fn()>> = const { Cell::new(None) };
    static LIMIT: Cell<Option<Limit>> = const { Cell::new(None) };
}

/// How long the computation of this thread may take.
#[derive(Clone, Copy)]
struct Limit {
    seconds: f64,
    started: Instant,
    /// Processor time of the thread at the start, where the system tells it.
    spent: Option<f64>,
    /// Looks until the clock is read again.
    looks: u32,
}

/// Reading a clock costs as much as some short pieces of work.
const LOOKS: u32 = 32;

impl Limit {
    fn is_over(&self) -> bool {
        if self.started.elapsed().as_secs_f64() < self.seconds {
            return false;
        }
        match (self.spent, processor_seconds()) {
            (Some(before), Some(now)) => now - before >= self.seconds,
            _ => true,
        }
    }
}

/// The processor time of this thread, as Linux counts it; elsewhere the clock on the wall has to do.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse::<f64>().ok().map(|nanoseconds| 1e-9 * nanoseconds)
}

/// The payload with which a computation is ended.
struct OutOfTime;

/// Runs `work` for at most about `seconds` of processor time; `None` where it was ended for taking longer.
///
/// ```
/// use numerics::patience::{look, within};
/// assert_eq!(within(10.0, || 7), Some(7));
/// assert_eq!(within(0.05, || loop { look() }), None::<()>);
/// ```
pub fn within<T>(seconds: f64, work: impl FnOnce() -> T) -> Option<T> {
    /// Puts back what was there, also when the work is unwound.
    struct Before(Option<Limit>);
    impl Drop for Before {
        fn drop(&mut self) {
            LIMIT.set(self.0);
        }
    }
    let limit =
        Limit { seconds, started: Instant::now(), spent: processor_seconds(), looks: LOOKS };
    let before = Before(LIMIT.replace(Some(limit)));
    let ended = catch_unwind(AssertUnwindSafe(work));
    drop(before);
    match ended {
        Ok(answer) => Some(answer),
        Err(payload) if payload.is::<OutOfTime>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

/// Runs `work`, calling `look` from this thread between two steps of it.
///
/// ```
/// use numerics::patience::{look, looking_up};
/// use std::panic::{catch_unwind, resume_unwind};
/// let work = || looking_up(|| resume_unwind(Box::new("enough")), || loop { look() });
/// assert!(catch_unwind(work).is_err());
/// // Afterwards nobody looks any more.
/// look();
/// ```
pub fn looking_up<T>(look: fn(), work: impl FnOnce() -> T) -> T {
    /// Puts back what was there, also when the work is unwound.
    struct Before(Option<fn()>);
    impl Drop for Before {
        fn drop(&mut self) {
            LOOK.set(self.0);
        }
    }
    let _before = Before(LOOK.replace(Some(look)));
    work()
}

/// A place between two steps of a computation.
pub fn look() {
    if let Some(look) = LOOK.get() {
        look();
    }
    if let Some(mut limit) = LIMIT.get() {
        limit.looks = limit.looks.checked_sub(1).unwrap_or(LOOKS);
        LIMIT.set(Some(limit));
        if limit.looks == 0 {
            stop_if_over(limit);
        }
    }
}

/// A place between two long steps, of milliseconds or more: the clock is read every time.
pub fn look_at_the_clock() {
    look();
    if let Some(limit) = LIMIT.get() {
        stop_if_over(limit);
    }
}

fn stop_if_over(limit: Limit) {
    if limit.is_over() {
        resume_unwind(Box::new(OutOfTime));
    }
}
