//! The two programs that measure: our example `speed` and the peers' Python file. One JSON object
//! each, within a time limit; what fails once is tried once more.

use crate::process::root;
use serde_json::Value;
use std::cell::Cell;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Where to find them, and how far the run is.
pub struct Programs {
    python: PathBuf,
    begun: Instant,
    done: Cell<usize>,
    all: usize,
}

impl Programs {
    pub fn new(python: PathBuf, all: usize) -> Self {
        Self { python, begun: Instant::now(), done: Cell::new(0), all }
    }

    /// PyTorch and Opacus.
    pub fn peer(&self, arguments: &[&str], limit: u64) -> Option<Value> {
        self.measure("peer", arguments, limit, || {
            let mut command = Command::new(&self.python);
            command.arg(root().join("xtask/bench/training_peers.py")).args(arguments);
            command
        })
    }

    /// Ours, on this many threads.
    pub fn ours(&self, arguments: &[&str], threads: usize, limit: u64) -> Option<Value> {
        self.measure("ours", arguments, limit, || {
            let mut command = Command::new(root().join("target/release/examples/speed"));
            command.args(arguments).env("RAYON_NUM_THREADS", threads.to_string());
            command
        })
    }

    fn measure(
        &self,
        who: &str,
        arguments: &[&str],
        limit: u64,
        command: impl Fn() -> Command,
    ) -> Option<Value> {
        self.done.set(self.done.get() + 1);
        let (done, all, passed) = (self.done.get(), self.all, self.begun.elapsed().as_secs());
        eprint!("[{done}/{all}, {passed} s] {who} {} ... ", arguments.join(" "));
        let limit = Duration::from_secs(limit);
        let mut answer = object(command(), limit);
        if answer.is_err() {
            eprint!("once more ... ");
            answer = object(command(), limit);
        }
        match &answer {
            Ok(found) => eprintln!("{found}"),
            Err(problem) => eprintln!("{problem}"),
        }
        answer.ok()
    }
}

/// The object that a command prints, unless it fails or takes longer than the limit.
fn object(mut command: Command, limit: Duration) -> Result<Value, String> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("cannot start: {error}"))?;
    let begun = Instant::now();
    // An object is shorter than a pipe holds, so that the child never waits for us.
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status,
            None if begun.elapsed() > limit => {
                // Both fail only when it has ended meanwhile.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("stopped after {} s", limit.as_secs()));
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let mut text = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_string(&mut text).map_err(|error| error.to_string())?;
    }
    let last = text.lines().last().unwrap_or_default();
    serde_json::from_str(last).map_err(|_| format!("no answer ({status})"))
}
