use training::TrainingError;

/// Why a game cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum AttackError {
    #[error("{0}")]
    Training(#[from] TrainingError),
    #[error("trials must be at least 1")]
    Trials,
    #[error("coordinate {coordinate} is not below {parameters}, the model's parameters")]
    Coordinate { coordinate: u64, parameters: usize },
    #[error("{asked} canaries were asked for, but {reason}")]
    TooManyCanaries { asked: usize, reason: String },
    #[error("{0} candidates are too few to substitute one for another; give at least 2")]
    Candidates(usize),
    #[error(
        "every iterate is read off the updates of plain or momentum SGD; with Adam use \
         `--observe last`"
    )]
    AllIteratesOfAdam,
    #[error("an interval of 0 steps between canaries; give at least 1")]
    Every,
    #[error("{0}")]
    NoHeldOut(String),
    #[error("one run with many canaries adds or removes each of them; use adjacency add-remove")]
    OneRunSubstitution,
}
