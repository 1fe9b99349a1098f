//! Computations on threads of their own: as many at a time as there are cores, the rest wait,
//! and nobody waits for ever.
//!
//! The accounting cannot be interrupted. A computation that overruns its time gives its place
//! to the next question and is left to end by itself; when too many such are running, new
//! questions are turned away until one ends.

use crate::error::ApiError;
use crate::limits::Limits;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// The places at which questions are worked on.
#[derive(Debug)]
pub(crate) struct Work {
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
    overdue: Arc<AtomicUsize>,
    most_overdue: usize,
    limits: Limits,
}

impl Work {
    pub(crate) fn new(limits: Limits) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from).max(2);
        Self {
            places: Arc::new(Semaphore::new(cores)),
            waiting: AtomicUsize::new(0),
            overdue: Arc::new(AtomicUsize::new(0)),
            most_overdue: 2 * cores,
            limits,
        }
    }

    /// Carries out a computation. Dropping the future while it waits takes it out of the queue.
    ///
    /// # Errors
    /// Its own; `busy` when the queue is full; `too_slow`; `bug` when it panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        compute: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let deadline = Instant::now() + self.limits.answer_time;
        let slow = || ApiError::too_slow(self.limits.answer_time.as_secs());
        if self.overdue.load(Ordering::Relaxed) >= self.most_overdue {
            return Err(ApiError::busy());
        }
        let permit = {
            let _queued = Queued::join(&self.waiting, self.limits.waiting)?;
            let place = Arc::clone(&self.places).acquire_owned();
            timeout_at(deadline, place).await.map_err(|_| slow())?.map_err(|_| ApiError::busy())?
        };
        let place = Arc::new(Mutex::new(Running { permit: Some(permit), overdue: None }));
        let held = Arc::clone(&place);
        let task = tokio::task::spawn_blocking(move || {
            let result = compute();
            drop(held);
            result
        });
        match timeout_at(deadline, task).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(ApiError::bug()),
            Err(_) => {
                let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
                place.overdue = Some(Overdue::begin(&self.overdue));
                place.permit = None;
                Err(slow())
            }
        }
    }
}

/// A place in use: freed when the computation ends, or handed on when it is overdue.
struct Running {
    permit: Option<OwnedSemaphorePermit>,
    overdue: Option<Overdue>,
}

struct Overdue(Arc<AtomicUsize>);

impl Overdue {
    fn begin(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Overdue {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A place in the queue.
struct Queued<'a>(&'a AtomicUsize);

impl<'a> Queued<'a> {
    fn join(count: &'a AtomicUsize, most: usize) -> Result<Self, ApiError> {
        let queued = Self(count);
        if count.fetch_add(1, Ordering::Relaxed) >= most {
            Err(ApiError::busy())
        } else {
            Ok(queued)
        }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn work(answer: Duration) -> Work {
        Work::new(Limits { answer_time: answer, ..Limits::default() })
    }

    #[tokio::test]
    async fn a_panic_is_a_bug_and_the_place_is_free_again() {
        let work = work(Duration::from_secs(5));
        for _ in 0..50 {
            let failed = work.run::<()>(|| panic!("on purpose")).await.unwrap_err();
            assert!(format!("{failed:?}").contains("500"), "{failed:?}");
        }
        assert_eq!(work.run(|| Ok(7)).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn an_overdue_computation_hands_its_place_on() {
        let work = work(Duration::from_millis(50));
        let cores = work.places.available_permits();
        let release = Arc::new(AtomicUsize::new(0));
        for _ in 0..work.most_overdue {
            let release = Arc::clone(&release);
            let slow = work.run(move || {
                while release.load(Ordering::Relaxed) == 0 {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Ok(())
            });
            assert!(format!("{:?}", slow.await.unwrap_err()).contains("504"));
        }
        assert_eq!(work.places.available_permits(), cores);
        // As many as are tolerated are overdue: turned away until they end.
        assert!(format!("{:?}", work.run(|| Ok(())).await.unwrap_err()).contains("503"));
        release.store(1, Ordering::Relaxed);
        for _ in 0..200 {
            if work.overdue.load(Ordering::Relaxed) == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(work.run(|| Ok(3)).await.unwrap(), 3);
    }
}
