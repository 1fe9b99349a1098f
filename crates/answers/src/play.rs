//! Games that are played: where the scores go, how much of the work is done here, and what is
//! said about it.

use crate::flags::integer;
use crate::{Kind, Refusal, Work, exit};
use clap::Args;
use experiments::{Experiment, Outcome, Settings, Shard};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use vocabulary::Run;

/// How an experiment is carried out; its result does not depend on it.
#[derive(Clone, Debug, Default, Deserialize, Args)]
#[serde(default)]
#[command(next_help_heading = "The work")]
pub struct Play {
    /// File for the scores; unfinished work is kept beside it in F.work
    #[arg(long, value_name = "F")]
    pub out: Option<PathBuf>,
    /// Number of threads; it does not change the result [default: all cores]
    #[arg(long, value_name = "N", value_parser = integer)]
    pub threads: Option<u64>,
    /// Compute part K of N only, for job arrays
    #[arg(long, value_name = "K/N")]
    pub shard: Option<String>,
    /// Replace files that another experiment wrote under this name
    #[arg(long)]
    pub force: bool,
}

impl Play {
    /// Where the scores go.
    ///
    /// # Errors
    /// No file was named.
    pub fn out(&self) -> Result<&Path, Refusal> {
        self.out.as_deref().ok_or_else(|| {
            Refusal::bad_input("`attack` needs a file for the scores").hint("add --out F")
        })
    }

    /// Computes the chunks that are missing.
    ///
    /// # Errors
    /// A shard that is none, and those of the experiment.
    pub fn carry_out(
        &self,
        experiment: &dyn Experiment,
        out: &Path,
        work: &dyn Work,
    ) -> Result<Outcome, Refusal> {
        let shard = match &self.shard {
            Some(text) => text.parse::<Shard>()?,
            None => Shard::ALL,
        };
        let threads = threads(self.threads);
        let stop = work.stop();
        let settings = Settings { threads, shard, force: self.force, reporter: work, stop: &stop };
        Ok(experiments::run(experiment, out, &settings)?)
    }

    /// As [`Play::carry_out`] for an experiment that trains: one chunk at a time, whose replicas share
    /// the threads, so that no more models are in memory than a chunk has.
    ///
    /// # Errors
    /// As [`Play::carry_out`].
    pub fn train(
        &self,
        experiment: &dyn Experiment,
        out: &Path,
        work: &dyn Work,
    ) -> Result<Outcome, Refusal> {
        let one = Self { threads: Some(1), ..self.clone() };
        on_threads(self.threads, || one.carry_out(experiment, out, work))?
    }
}

/// What the command line exits with.
pub fn exit_of(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Complete { .. } => exit::ANSWERED,
        Outcome::Incomplete { .. } => exit::INCOMPLETE,
        Outcome::Interrupted { .. } => exit::INTERRUPTED,
    }
}

/// This many threads, or all cores.
pub(crate) fn threads(stated: Option<u64>) -> usize {
    match stated {
        Some(threads) => usize::try_from(threads).unwrap_or(usize::MAX),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    }
}

/// Computes on this many threads, or on those that there are.
///
/// # Errors
/// Threads that the operating system refuses.
pub(crate) fn on_threads<T: Send>(
    threads: Option<u64>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Refusal> {
    let Some(threads) = threads else { return Ok(work()) };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(usize::try_from(threads).unwrap_or(usize::MAX).min(1024))
        .build()
        .map_err(|error| Refusal::new(Kind::Bug, error.to_string()))?;
    Ok(pool.install(work))
}

/// The `dosimeter.run/1` document.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunDocument<R> {
    schema: &'static str,
    run: R,
}

impl RunDocument<Run> {
    pub const SCHEMA: &'static str = "dosimeter.run/1";
}

/// What trainings claim to be, beside their scores, for the audit: sizes and flags are resolved in it.
///
/// # Errors
/// A file that cannot be written.
pub(crate) fn write_run(out: &Path, run: &impl Serialize) -> Result<(), Refusal> {
    let document = RunDocument { schema: RunDocument::SCHEMA, run };
    let path = beside(out, crate::RUN_ENDING);
    formats::files::write(&path, crate::text(&document) + "\n")
        .map_err(|error| Refusal::unwritable(&path, &error))
}

/// The file with another ending on its name.
pub fn beside(out: &Path, ending: &str) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
