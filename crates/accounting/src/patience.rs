//! A computation that lets its caller look up now and then, for instance for Ctrl-C.
//!
//! Most answers take microseconds, some take seconds; whoever asks does not know which. So the
//! loops of this crate call [`look`] between two evaluations of a pair, which costs a nanosecond and
//! does nothing unless a caller left a function there with [`looking_up`]. That function may end
//! the computation by unwinding (`std::panic::resume_unwind`): nothing here holds state that
//! outlives a call.

use std::cell::Cell;

thread_local! {
    static LOOK: Cell<Option<fn()>> = const { Cell::new(None) };
}

/// Runs `work`, calling `look` from this thread between two steps of it.
///
/// ```
/// use std::cell::Cell;
/// thread_local!(static LOOKS: Cell<u32> = const { Cell::new(0) });
/// let run = vocabulary::Run::builder().phase(1.0, 0.01, 1000).build()?;
/// let asked = accounting::Questions { deltas: vec![1e-5], ..Default::default() };
/// accounting::patience::looking_up(
///     || LOOKS.set(LOOKS.get() + 1),
///     || accounting::account(&run, &asked),
/// )?;
/// assert!(LOOKS.get() > 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
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
pub(crate) fn look() {
    if let Some(look) = LOOK.get() {
        look();
    }
}
