//! Work without the interpreter, so that other threads go on, and Ctrl-C still ends it.
//!
//! Python runs signal handlers on its main thread only, between instructions; a thread inside
//! the core would not see them. Two ways out:
//!
//! - [`here`]: the work stays on the caller's thread and looks up now and then
//!   ([`accounting::patience`]). It costs nothing, which matters for answers of microseconds.
//! - [`run`]: work that does not look up goes to a helper thread, and the caller sleeps without the
//!   interpreter, waking now and then to look. Helpers are kept for a moment, which makes a call
//!   cost some fifty microseconds, and then go, so that a later `fork` finds no threads.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

type Job = Box<dyn FnOnce() + Send>;

/// Between two looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);
/// How long a helper waits for its next job.
const PATIENCE: Duration = Duration::from_millis(300);

/// What to do at Ctrl-C.
pub(crate) enum AtInterrupt<'a> {
    /// Leave the work to end by itself, unseen, and raise at once.
    Abandon,
    /// Ask the work to stop, wait for its last words, then raise. A second Ctrl-C abandons it.
    Ask(&'a dyn Fn()),
}

/// Where a helper leaves its answer; `None` inside means that the work panicked.
struct Slot<T> {
    answer: Mutex<Option<Option<T>>>,
    ready: Condvar,
}

impl<T> Slot<T> {
    fn fill(&self, answer: Option<T>) {
        *lock(&self.answer) = Some(answer);
        self.ready.notify_one();
    }

    /// The answer, if it comes in time.
    fn wait(&self) -> Option<Option<T>> {
        let waiting = self.ready.wait_timeout_while(lock(&self.answer), LOOK, |a| a.is_none());
        waiting.unwrap_or_else(PoisonError::into_inner).0.take()
    }
}

thread_local! {
    static LOOKED: Cell<Option<Instant>> = const { Cell::new(None) };
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Runs `work`, a computation of the accounting crate, on this thread without the interpreter.
///
/// # Errors
/// As [`run`].
pub(crate) fn here<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    LOOKED.set(Some(Instant::now()));
    let outcome = py.detach(|| {
        catch_unwind(AssertUnwindSafe(|| accounting::patience::looking_up(look, work))).ok()
    });
    outcome.ok_or_else(|| RAISED.take().unwrap_or_else(bug))
}

/// Asks the interpreter for signals, if it is time; unwinds the work if a handler raised.
fn look() {
    if LOOKED.get().is_some_and(|before| before.elapsed() < LOOK) {
        return;
    }
    let raised = Python::attach(|py| py.check_signals().err());
    LOOKED.set(Some(Instant::now()));
    if raised.is_some() {
        RAISED.set(raised);
        // Not a panic: nothing is printed.
        resume_unwind(Box::new("interrupted"));
    }
}

fn bug() -> PyErr {
    PyRuntimeError::new_err("a bug in the core; its message is on stderr")
}

/// Runs `work` on another thread.
///
/// # Errors
/// What the handler of a signal raised, usually `KeyboardInterrupt`; a panic of the work as
/// `RuntimeError`.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    at_interrupt: &AtInterrupt<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let slot = Arc::new(Slot { answer: Mutex::new(None), ready: Condvar::new() });
    let theirs = Arc::clone(&slot);
    start(Box::new(move || theirs.fill(catch_unwind(AssertUnwindSafe(work)).ok())));
    let mut raised: Option<PyErr> = None;
    loop {
        match py.detach(|| slot.wait()) {
            Some(Some(answer)) => return raised.map_or(Ok(answer), Err),
            Some(None) => return Err(bug()),
            None => {}
        }
        if let Err(error) = py.check_signals() {
            match at_interrupt {
                AtInterrupt::Ask(ask) if raised.is_none() => {
                    ask();
                    raised = Some(error);
                }
                _ => return Err(error),
            }
        }
    }
}

/// Helpers without a job, and the process they live in: a forked child has none of them.
struct Idle {
    process: u32,
    helpers: Vec<Helper>,
    named: u64,
}

struct Helper {
    name: u64,
    jobs: Sender<Job>,
}

static IDLE: Mutex<Idle> = Mutex::new(Idle { process: 0, helpers: Vec::new(), named: 0 });

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands a job to an idle helper or to a new one.
fn start(mut job: Job) {
    // A lock held by a thread that did not survive a fork must not stop the child.
    if let Ok(mut idle) = IDLE.try_lock() {
        let process = std::process::id();
        if idle.process != process {
            *idle = Idle { process, helpers: Vec::new(), named: 0 };
        }
        while let Some(helper) = idle.helpers.pop() {
            match helper.jobs.send(job) {
                Ok(()) => return,
                Err(refused) => job = refused.0,
            }
        }
    }
    std::thread::spawn(move || help(job));
}

fn help(first: Job) {
    let (sender, jobs) = channel();
    let mut job = first;
    loop {
        job();
        let name = enlist(&sender);
        match next(name, &jobs) {
            Some(found) => job = found,
            None => return,
        }
    }
}

fn enlist(sender: &Sender<Job>) -> u64 {
    let mut idle = lock(&IDLE);
    idle.named += 1;
    let name = idle.named;
    idle.helpers.push(Helper { name, jobs: sender.clone() });
    name
}

/// The next job, or `None` when patience is at its end and nobody has chosen this helper.
fn next(name: u64, jobs: &Receiver<Job>) -> Option<Job> {
    jobs.recv_timeout(PATIENCE).ok().or_else(|| {
        let mut idle = lock(&IDLE);
        match idle.helpers.iter().position(|helper| helper.name == name) {
            Some(place) => {
                idle.helpers.remove(place);
                None
            }
            // Chosen at the last moment: the job was sent under the lock.
            None => jobs.recv().ok(),
        }
    })
}
