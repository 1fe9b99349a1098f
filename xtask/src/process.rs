//! Child processes whose output is both shown and read.

use anyhow::{Context, Result};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

/// The root of the repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(PathBuf::from)
        .expect("xtask lies in the root")
}

/// A cargo command in the root.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Whether a command answers to `--version`.
pub fn answers(mut command: Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// What a watched command did.
pub struct Watched {
    pub success: bool,
    /// Every line of stdout and stderr; the order between the two is not kept.
    pub lines: Vec<String>,
}

/// Runs a command, shows its output as it comes, and keeps the lines.
pub fn watch(mut command: Command) -> Result<Watched> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {command:?}"))?;
    let stdout = child.stdout.take().context("stdout is piped")?;
    let stderr = child.stderr.take().context("stderr is piped")?;
    let narration = thread::spawn(move || relay(stderr, |line| eprintln!("{line}")));
    let mut lines = relay(stdout, |line| println!("{line}"));
    lines.extend(narration.join().expect("the relay does not panic"));
    Ok(Watched { success: child.wait()?.success(), lines })
}

fn relay(stream: impl Read, show: impl Fn(&str)) -> Vec<String> {
    let mut lines = Vec::new();
    let mut reader = BufReader::new(stream);
    let mut bytes = Vec::new();
    // Lossy on purpose: a test may print anything.
    while reader.read_until(b'\n', &mut bytes).is_ok_and(|count| count > 0) {
        let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        show(&line);
        lines.push(line);
        bytes.clear();
    }
    lines
}
