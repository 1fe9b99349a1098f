//! Where a reproduction keeps its games, and how it plays them.

use crate::PaperError;
use audit::{Design, Scores, Table};
use experiments::{Experiment, ExperimentError, Outcome, Reporter, Settings, Shard, run};
use games::{Attack, DpSgd, Game, Observe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use vocabulary::Direction;

/// What an entry computes with.
pub struct Context<'a> {
    /// The folder of the entry; score files go to `scores/` in it.
    pub folder: &'a Path,
    pub threads: usize,
    /// In place of the number of games that the paper plays.
    pub trials: Option<u64>,
    pub seed: u64,
    /// Folder of the data sets that are not built in.
    pub data: Option<&'a Path>,
    pub reporter: &'a dyn Reporter,
    pub stop: &'a AtomicBool,
}

impl Context<'_> {
    /// Plays a game, or finds it played, and reads its scores.
    pub(crate) fn play(
        &self,
        name: &str,
        game: Game,
        trainer: &DpSgd,
        observe: Observe,
        seed: u64,
        trials: u64,
    ) -> Result<Scores, PaperError> {
        let trials = self.trials.unwrap_or(trials);
        let attack = Attack::new(game, trainer.clone(), observe, Direction::Remove, seed, trials)?;
        let output = self.carry_out(name, &attack)?;
        let mut table = Table::default();
        table.add_file(&output)?;
        Ok(table.settle()?.into_scores(Design::Runs)?)
    }

    /// Carries an experiment out, or finds it done, and says where its table is.
    pub(crate) fn carry_out(
        &self,
        name: &str,
        experiment: &dyn Experiment,
    ) -> Result<PathBuf, PaperError> {
        let folder = self.folder.join("scores");
        std::fs::create_dir_all(&folder)
            .map_err(|source| PaperError::Write { path: folder.clone(), source })?;
        let output = folder.join(format!("{name}.csv"));
        let settings = Settings {
            threads: self.threads,
            shard: Shard::ALL,
            force: false,
            reporter: self.reporter,
            stop: self.stop,
        };
        let outcome = run(experiment, &output, &settings);
        if let Err(ExperimentError::ChunkFailed { .. }) = &outcome {
            // A training that was told to stop has no rows.
            self.go_on()?;
        }
        match outcome? {
            Outcome::Complete { .. } => Ok(output),
            Outcome::Incomplete { .. } | Outcome::Interrupted { .. } => {
                Err(PaperError::Interrupted)
            }
        }
    }

    /// An error when the user asked to stop; called between long computations.
    pub(crate) fn go_on(&self) -> Result<(), PaperError> {
        if self.stop.load(Ordering::Relaxed) { Err(PaperError::Interrupted) } else { Ok(()) }
    }
}
