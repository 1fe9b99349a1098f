//! Connections: accepted, bounded in number, and closed when they stay silent.
//!
//! HTTP/1.1 only. The head of a request must arrive within a time, so a client that sends a
//! byte now and then holds nothing. When every connection is taken, the one that has been
//! silent for longest makes room, so idle ones cannot lock others out; while all of them are
//! being answered, a new one is closed at once.

use crate::limits::Limits;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::Instant;
use tower::ServiceExt;

/// How often `stop` is looked at.
const HEARTBEAT: Duration = Duration::from_millis(100);

pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stop: &AtomicBool,
) -> io::Result<()> {
    let open = Arc::new(Open::new(limits.connections));
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    if let Some(ticket) = open.admit() {
                        tokio::spawn(answer(stream, router.clone(), limits, ticket));
                    }
                }
                // Out of files, or the visitor has gone: neither is a reason to stop.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            },
            _ = heartbeat.tick() => {
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
            }
        }
    }
}

async fn answer(stream: TcpStream, router: Router, limits: Limits, ticket: Ticket) {
    let _ = stream.set_nodelay(true);
    let seat = Arc::clone(&ticket.seat);
    let service = service_fn(|request: Request<Incoming>| {
        let seat = Arc::clone(&seat);
        let router = router.clone();
        async move {
            seat.begin();
            let response = router.oneshot(request.map(Body::new)).await;
            seat.end();
            response
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_headers(64)
        .max_buf_size(64 * 1024)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // How it ends is the visitor's business.
        _ = connection => {}
        () = seat.close.notified() => {}
    }
    drop(ticket);
}

/// The open connections.
struct Open {
    most: usize,
    seats: Mutex<Seats>,
}

#[derive(Default)]
struct Seats {
    next: u64,
    taken: HashMap<u64, Arc<Seat>>,
}

/// One connection, as the others see it.
struct Seat {
    close: Notify,
    state: Mutex<SeatState>,
}

struct SeatState {
    answering: bool,
    since: Instant,
}

impl Seat {
    fn begin(&self) {
        self.set(true);
    }

    fn end(&self) {
        self.set(false);
    }

    fn set(&self, answering: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = SeatState { answering, since: Instant::now() };
    }

    /// Since when it has been silent; `None` while it is answered.
    fn silent_since(&self) -> Option<Instant> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (!state.answering).then_some(state.since)
    }
}

impl Open {
    fn new(most: usize) -> Self {
        Self { most: most.max(1), seats: Mutex::default() }
    }

    /// A seat, freed by whoever has been silent for longest if there is no other.
    fn admit(self: &Arc<Self>) -> Option<Ticket> {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        if seats.taken.len() >= self.most {
            let silent =
                seats.taken.iter().filter_map(|(id, seat)| Some((seat.silent_since()?, *id)));
            let (_, oldest) = silent.min()?;
            let seat = seats.taken.remove(&oldest)?;
            seat.close.notify_one();
        }
        let id = seats.next;
        seats.next += 1;
        let state = SeatState { answering: false, since: Instant::now() };
        let seat = Arc::new(Seat { close: Notify::new(), state: Mutex::new(state) });
        seats.taken.insert(id, Arc::clone(&seat));
        Some(Ticket { id, seat, open: Arc::clone(self) })
    }
}

/// Gives the seat back when the connection ends.
struct Ticket {
    id: u64,
    seat: Arc<Seat>,
    open: Arc<Open>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut seats = self.open.seats.lock().unwrap_or_else(PoisonError::into_inner);
        seats.taken.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_longest_silent_connection_makes_room() {
        let open = Arc::new(Open::new(2));
        let first = open.admit().unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
        let second = open.admit().unwrap();
        first.seat.begin();
        let third = open.admit().unwrap();
        // The second was the only silent one.
        assert!(
            tokio::time::timeout(Duration::from_secs(1), second.seat.close.notified())
                .await
                .is_ok()
        );
        third.seat.begin();
        assert!(open.admit().is_none(), "nobody is silent");
        drop(third);
        assert!(open.admit().is_some());
    }
}
