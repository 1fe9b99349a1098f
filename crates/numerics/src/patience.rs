//! A computation that lets its caller look up now and then, for instance for Ctrl-C.
//!
//! Most numbers take microseconds, some take seconds; whoever asks does not know which. So the
//! loops of this crate and of those above it call [`look`] between two pieces of work, which costs a
//! nanosecond and does nothing unless a caller left a function there with [`looking_up`]. That
//! function may end the computation by unwinding (`std::panic::resume_unwind`): nothing in a
//! computation outlives its call.

use std::cell::Cell;

thread_local! {
    static LOOK: Cell<Option<fn()>> = const { Cell::new(None) };
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
}
