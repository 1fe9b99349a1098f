use std::path::{Path, PathBuf};

/// Each is a file that is looked for before work begins.
pub(crate) const MOST_CHUNKS: u64 = 10_000_000;

/// Why an experiment cannot go on. Nothing is overwritten before one of these.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    #[error("cannot {action} `{}`: {source}; check free space and permissions, then run the same command again to resume", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error("`{}` is not a chunk of this plan: {reason}; move it away, then run the same command again", path.display())]
    ForeignChunk { path: PathBuf, reason: String },
    #[error("`{}` is damaged: {reason}; delete it, then run the same command again to compute it anew", path.display())]
    CorruptChunk { path: PathBuf, reason: String },
    #[error("`{}` cannot be read as a plan: {reason}; delete the folder or choose another output", path.display())]
    CorruptPlan { path: PathBuf, reason: String },
    #[error("`{}` belongs to another plan ({difference}); choose another output, or --force to replace it", path.display())]
    OtherPlan { path: PathBuf, difference: String },
    #[error("`{}` exists and was not written by this experiment; choose another output, or --force to replace it", path.display())]
    ForeignOutput { path: PathBuf },
    #[error("`{}` already holds {found} trials, more than the {asked} asked for; ask for at least {found}, or choose another output", path.display())]
    FewerTrials { path: PathBuf, found: u64, asked: u64 },
    #[error(
        "{trials} trials are {chunks} files of results, more than {MOST_CHUNKS}; ask for fewer"
    )]
    TooManyTrials { trials: u64, chunks: u64 },
    #[error("chunk {index} failed: {reason}")]
    ChunkFailed { index: u64, reason: String },
    #[error("`{0}` is not a shard: write K/N with 1 <= K <= N, for example 2/8")]
    Shard(String),
    #[error("`{}` is a folder; choose another output", .0.display())]
    OutputIsFolder(PathBuf),
    #[error("{}; give the output of an attack, or its .work folder", absent(.0))]
    NoExperiment(PathBuf),
}

/// Nothing is there, or nothing that an experiment wrote.
fn absent(path: &Path) -> String {
    let path_shown = path.display();
    if path.exists() {
        format!("no experiment wrote `{path_shown}`: there is no plan.json in its work folder")
    } else {
        format!("there is no `{path_shown}`")
    }
}

impl ExperimentError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}
