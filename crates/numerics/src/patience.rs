//! A computation that lets its caller look up now and then, for instance for Ctrl-C, and that may be
//! given a limit of time.
//!
//! Most numbers take microseconds, some take seconds; whoever asks does not know which. So the
//! loops of this crate and of those above it call [`look`] between two pieces of work, which costs a
//! nanosecond and does nothing unless a caller left a function there with [`looking_up`]. That
//! function may end the computation by unwinding (`std::panic::resume_unwind`): nothing in a
//! computation outlives its call.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

thread_local! {
    static LOOK: Cell<Option<fn()>> = const { Cell::new(None) };
    static LIMIT: Cell<Option<Limit>> = const { Cell::new(None) };
    static BUDGET: Cell<Option<Limit>> = const { Cell::new(None) };
    static KNOWN: RefCell<Option<String>> = const { RefCell::new(None) };
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
    fn new(seconds: f64) -> Self {
        // Where nothing is left, the first look ends the work.
        let looks = if seconds > 0.0 { LOOKS } else { 1 };
        Self { seconds, started: Instant::now(), spent: processor_seconds(), looks }
    }

    fn is_over(&self) -> bool {
        self.started.elapsed().as_secs_f64() >= self.seconds && self.left() <= 0.0
    }

    /// Seconds that are left.
    fn left(&self) -> f64 {
        let spent = match (self.spent, processor_seconds()) {
            (Some(before), Some(now)) => now - before,
            _ => self.started.elapsed().as_secs_f64(),
        };
        self.seconds - spent
    }
}

/// The processor time of this thread, as Linux counts it; elsewhere the clock on the wall has to do.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse::<f64>().ok().map(|nanoseconds| 1e-9 * nanoseconds)
}

/// The payload with which a computation is ended.
struct OutOfTime;

/// Puts back what was there, also when the work is unwound.
struct Before(&'static std::thread::LocalKey<Cell<Option<Limit>>>, Option<Limit>);

impl Drop for Before {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

/// Runs `work` for at most about `seconds` of processor time; `None` where it was ended for taking longer.
///
/// ```
/// use numerics::patience::{look, within};
/// assert_eq!(within(10.0, || 7), Some(7));
/// assert_eq!(within(0.05, || loop { look() }), None::<()>);
/// // The sooner of two limits ends the work, for whoever set it.
/// assert_eq!(within(0.05, || within(10.0, || loop { look() })), None::<Option<()>>);
/// ```
pub fn within<T>(seconds: f64, work: impl FnOnce() -> T) -> Option<T> {
    let left = BUDGET.get().map_or(seconds, |budget| budget.left());
    let seconds = seconds.min(left);
    let limit = Limit::new(seconds);
    // A limit that is in force already and ends sooner stays.
    let outer = LIMIT.get().filter(|outer| outer.left() < seconds);
    let before = Before(&LIMIT, LIMIT.replace(Some(outer.unwrap_or(limit))));
    let ended = catch_unwind(AssertUnwindSafe(work));
    drop(before);
    match ended {
        Ok(answer) => Some(answer),
        Err(payload) if payload.is::<OutOfTime>() && outer.is_none() => None,
        Err(payload) => resume_unwind(payload),
    }
}

/// Runs `work`, all of whose calls of [`within`] together get `seconds` of processor time. It is not ended itself: what
/// it has by then it may keep.
///
/// ```
/// use numerics::patience::{budget, look, within};
/// let each = || within(10.0, || loop { look() });
/// assert_eq!(budget(0.05, || [each(), each()]), [None::<()>; 2]);
/// ```
pub fn budget<T>(seconds: f64, work: impl FnOnce() -> T) -> T {
    let left = BUDGET.get().map_or(seconds, |budget| budget.left());
    let _before = Before(&BUDGET, BUDGET.replace(Some(Limit::new(seconds.min(left)))));
    work()
}

/// Runs `work` for at most this part of what is left of the [`budget`]; without a budget as long as it takes.
///
/// ```
/// use numerics::patience::{budget, look, share};
/// assert_eq!(budget(0.1, || [share(0.3, || loop { look() }), share(0.3, || ())]), [None, Some(())]);
/// ```
pub fn share<T>(part: f64, work: impl FnOnce() -> T) -> Option<T> {
    within(BUDGET.get().map_or(f64::INFINITY, |budget| part * budget.left()), work)
}

/// The limits that this thread has left, for threads that work for it.
#[derive(Clone, Copy, Debug)]
pub struct Handed {
    limit: Option<f64>,
    budget: Option<f64>,
}

/// What to hand to a thread: it may take as long as this one.
pub fn handed() -> Handed {
    let left = |limit: Option<Limit>| limit.map(|limit| limit.left());
    Handed { limit: left(LIMIT.get()), budget: left(BUDGET.get()) }
}

impl Handed {
    /// Runs `work` on another thread under the limits it was handed; the end of time unwinds it.
    pub fn during<T>(self, work: impl FnOnce() -> T) -> T {
        let _limit = Before(&LIMIT, LIMIT.replace(self.limit.map(Limit::new)));
        let _budget = Before(&BUDGET, BUDGET.replace(self.budget.map(Limit::new)));
        work()
    }
}

/// Whether this thread works under a limit.
pub fn is_limited() -> bool {
    LIMIT.get().is_some()
}

/// Leaves what is known so far, for a refusal should time run out.
pub fn tell(known: String) {
    KNOWN.set(Some(known));
}

/// What was told last on this thread; it is forgotten.
pub fn told() -> Option<String> {
    KNOWN.take()
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
