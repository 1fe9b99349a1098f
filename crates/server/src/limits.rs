//! How much one visitor may take: bytes, seconds, connections, computations.

use std::time::Duration;

/// Bounds on what requests may use. The defaults suit one person and many tabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a JSON question.
    pub question_bytes: usize,
    /// Bytes of a dropped score file.
    pub upload_bytes: usize,
    /// Uploads held in memory at the same time.
    pub uploads: usize,
    /// For the head of a request, and for silence between two requests.
    pub head_time: Duration,
    /// For the body of a question.
    pub question_time: Duration,
    /// For the body of an upload.
    pub upload_time: Duration,
    /// For the answer, waiting and computing together.
    pub answer_time: Duration,
    /// Open connections. When they are all taken the one silent for longest is closed.
    pub connections: usize,
    /// Questions waiting for a thread; more are turned away.
    pub waiting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            question_bytes: 64 * 1024,
            upload_bytes: 64 * 1024 * 1024,
            uploads: 2,
            head_time: Duration::from_secs(10),
            question_time: Duration::from_secs(10),
            upload_time: Duration::from_secs(60),
            answer_time: Duration::from_secs(30),
            // Below the 1024 files that a process may usually open.
            connections: 512,
            waiting: 1024,
        }
    }
}
