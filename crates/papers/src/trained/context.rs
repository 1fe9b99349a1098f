use crate::PaperError;
use attacks::{Conditions, Target, TrainedGame};
use audit::{Design, Scores, Table};
use experiments::{Event, Experiment, Metadata, Outcome, Reporter, Settings, Shard, run};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use training::Device;

/// What an entry computes with.
pub struct TrainedContext<'a> {
    /// The folder of the entry; score files go to `scores/` in it.
    pub folder: &'a Path,
    /// Folder of the data sets, each in a folder of its name, or of one data set.
    pub data: Option<&'a Path>,
    /// A language model in place of the small one, where one is trained.
    pub model: Option<&'a Path>,
    pub device: Arc<Device>,
    /// Only the settings of these models, where not empty.
    pub models: &'a [String],
    /// Trainings per side, in place of ours.
    pub trials: Option<u64>,
    /// Records of the attacked trainings, in place of ours.
    pub records: Option<u64>,
    pub seed: u64,
    /// When to stop and report what there is.
    pub deadline: Option<Instant>,
    pub reporter: &'a dyn Reporter,
    /// Set by the user, who wants no report then.
    pub stop: &'a AtomicBool,
    /// Set where the time was not enough.
    pub incomplete: &'a AtomicBool,
}

/// Passes events on, and says stop when the time is up.
struct Watch<'a> {
    context: &'a TrainedContext<'a>,
    stop: AtomicBool,
}

impl Reporter for Watch<'_> {
    fn event(&self, event: &Event) {
        self.context.reporter.event(event);
        if self.context.is_late() || self.context.stop.load(Ordering::Relaxed) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

impl TrainedContext<'_> {
    pub(crate) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Whether the settings of a model are asked for.
    pub(crate) fn wants(&self, model: &str) -> bool {
        self.models.is_empty() || self.models.iter().any(|name| name == model)
    }

    pub(crate) fn game(
        &self,
        target: &Target,
        conditions: &Conditions,
        trials: u64,
    ) -> Result<TrainedGame, PaperError> {
        Ok(TrainedGame::new(target, conditions, Arc::clone(&self.device), trials)?)
    }

    /// Where the table of an experiment is.
    pub(crate) fn output(&self, name: &str) -> PathBuf {
        self.folder.join("scores").join(format!("{name}.csv"))
    }

    /// The devices that finished tables were made on, which need not be the one at hand: what there is
    /// can be drawn again anywhere.
    pub(crate) fn devices<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> String {
        let mut all: Vec<String> = Vec::new();
        for name in names {
            let metadata = Metadata::beside(&self.output(name)).ok().flatten();
            let device = metadata.and_then(|metadata| {
                Some(metadata.parameters["device"]["instructions"].as_str()?.to_owned())
            });
            all.extend(device.filter(|device| !all.contains(device)));
        }
        if all.is_empty() { self.device.record.instructions.clone() } else { all.join(", ") }
    }

    /// Carries an experiment on; `false` when the time was up before it was finished.
    pub(crate) fn carry_on(
        &self,
        name: &str,
        experiment: &dyn Experiment,
    ) -> Result<bool, PaperError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(PaperError::Interrupted);
        }
        let output = self.output(name);
        let folder = self.folder.join("scores");
        std::fs::create_dir_all(&folder)
            .map_err(|source| PaperError::Write { path: folder, source })?;
        let watch = Watch { context: self, stop: AtomicBool::new(self.is_late()) };
        let settings = Settings {
            threads: 1,
            shard: Shard::ALL,
            force: false,
            reporter: &watch,
            stop: &watch.stop,
        };
        match run(experiment, &output, &settings)? {
            Outcome::Complete { .. } => Ok(true),
            _ if self.stop.load(Ordering::Relaxed) => Err(PaperError::Interrupted),
            _ => {
                self.incomplete.store(true, Ordering::Relaxed);
                Ok(false)
            }
        }
    }

    /// The scores of a game that were finished, if any.
    pub(crate) fn scores(&self, name: &str) -> Result<Option<Scores>, PaperError> {
        let output = self.output(name);
        if !output.exists() {
            return Ok(None);
        }
        let mut table = Table::default();
        table.add_file(&output)?;
        Ok(Some(table.settle()?.into_scores(Design::Runs)?))
    }
}
