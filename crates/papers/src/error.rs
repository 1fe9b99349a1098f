use std::path::PathBuf;

/// Why something could not be reproduced.
#[derive(Debug, thiserror::Error)]
pub enum PaperError {
    #[error("there is nothing called `{id}` to reproduce; there are {known}")]
    Unknown { id: String, known: String },
    #[error("no model is called `{asked}` here; there are {known}")]
    NoModel { asked: String, known: String },
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
    #[error(transparent)]
    Attack(#[from] attacks::AttackError),
    #[error(transparent)]
    Training(#[from] training::TrainingError),
    #[error(transparent)]
    Data(#[from] training::data::DataError),
    #[error(
        "this needs image data with a test part: --data DIR with cifar-10-batches-bin or \
         fashion-mnist in it; `dosimeter data` says where to get them"
    )]
    NeedsData,
    #[error("there is no folder {}; `dosimeter data` says where to get its files", .0.display())]
    NoFolder(PathBuf),
    #[error("cannot read `{}`: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{0}")]
    FineTuning(String),
    #[error("{0}")]
    Unusable(String),
    #[error("cannot write `{}`: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("interrupted; run the same command again to resume")]
    Interrupted,
}
