use std::path::PathBuf;

/// Why something could not be reproduced.
#[derive(Debug, thiserror::Error)]
pub enum PaperError {
    #[error("there is nothing called `{id}` to reproduce; there are {known}")]
    Unknown { id: String, known: String },
    #[error(transparent)]
    Accounting(#[from] accounting::AccountingError),
    #[error(transparent)]
    Attribute(#[from] attacks::attribute::AttributeError),
    #[error(transparent)]
    Audit(#[from] audit::AuditError),
    #[error(transparent)]
    Experiment(#[from] experiments::ExperimentError),
    #[error(transparent)]
    Game(#[from] games::GameError),
    #[error(transparent)]
    Run(#[from] vocabulary::RunError),
    #[error("{0}")]
    Data(String),
    #[error("cannot write `{}`: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("interrupted; run the same command again to resume")]
    Interrupted,
}
