use std::path::PathBuf;
use vocabulary::RunError;

/// Why a training did not happen or did not finish.
#[derive(Debug, thiserror::Error)]
pub enum TrainingError {
    #[error("{0}")]
    Run(#[from] RunError),
    #[error("the model cannot be built: {0}")]
    Model(String),
    #[error("{0}")]
    Recipe(String),
    #[error("{place}: {message}")]
    Description { place: String, message: String },
    #[error(
        "at step {step} of replica {replica} a gradient is not finite; lower the learning rate, \
         or look for extreme values in the data"
    )]
    NotFinite { step: u64, replica: u64 },
    #[error("cannot {action} {path}: {source}")]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{path} cannot be resumed from: {reason}")]
    Checkpoint { path: PathBuf, reason: String },
    #[error("{0}")]
    Device(String),
}

impl TrainingError {
    pub(crate) fn io(
        action: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}
