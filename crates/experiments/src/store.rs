//! The files of an experiment: every write goes to a partial file that is synced and then renamed.

use crate::chunk::{self, Content};
use crate::{ExperimentError, Plan};
use formats::files::{self, empty, put_in_place, with_suffix};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Where an experiment keeps its work, beside its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    /// The work folder that belongs to an output file.
    ///
    /// ```
    /// use experiments::Folder;
    /// let folder = Folder::beside("runs/scores.csv".as_ref());
    /// assert!(folder.path().ends_with("scores.csv.work"));
    /// ```
    pub fn beside(output: &Path) -> Self {
        Self { root: with_suffix(output, ".work") }
    }

    /// A folder given by its own path.
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub fn path(&self) -> &Path {
        &self.root
    }

    pub(crate) fn plan_path(&self) -> PathBuf {
        self.root.join("plan.json")
    }

    pub(crate) fn chunk_path(&self, index: u64) -> PathBuf {
        self.root.join("chunks").join(format!("{index:08}.csv"))
    }

    pub(crate) fn failure_path(&self, index: u64) -> PathBuf {
        self.root.join("chunks").join(format!("{index:08}.failed"))
    }

    /// The plan stored here, if there is one.
    ///
    /// # Errors
    /// `CorruptPlan` when it cannot be understood.
    pub fn plan(&self) -> Result<Option<Plan>, ExperimentError> {
        let path = self.plan_path();
        let Some(bytes) = read_if_there(&path)? else { return Ok(None) };
        let plan: Plan = serde_json::from_slice(&bytes).map_err(|error| {
            ExperimentError::CorruptPlan { path: path.clone(), reason: error.to_string() }
        })?;
        if plan.schema != crate::plan::PLAN_SCHEMA || plan.chunk_trials == 0 {
            let reason = format!("schema {} is not known", plan.schema);
            return Err(ExperimentError::CorruptPlan { path, reason });
        }
        Ok(Some(plan))
    }

    /// Creates the folder for a plan, or checks that the one here is the same, grown at most.
    pub(crate) fn open(&self, plan: &Plan) -> Result<(), ExperimentError> {
        if let Some(found) = self.plan()? {
            if found.digest() != plan.digest() {
                let difference = plan.difference(&found);
                return Err(ExperimentError::OtherPlan { path: self.root.clone(), difference });
            }
            if found.trials > plan.trials {
                return Err(ExperimentError::FewerTrials {
                    path: self.root.clone(),
                    found: found.trials,
                    asked: plan.trials,
                });
            }
            if found.trials == plan.trials {
                return Ok(());
            }
        }
        let chunks = self.root.join("chunks");
        fs::create_dir_all(&chunks).map_err(ExperimentError::io("create the folder", &chunks))?;
        let mut text = serde_json::to_string_pretty(plan).expect("a plan is plain data");
        text.push('\n');
        let path = self.plan_path();
        files::write(&path, text).map_err(ExperimentError::io("write", &path))
    }

    /// The rows of a chunk, `None` when they are still to be computed.
    pub(crate) fn chunk(&self, plan: &Plan, index: u64) -> Result<Option<String>, ExperimentError> {
        let path = self.chunk_path(index);
        let Some(bytes) = read_if_there(&path)? else { return Ok(None) };
        match chunk::decode(plan, index, &path, bytes)? {
            Content::Whole(rows) => Ok(Some(rows)),
            Content::Shorter => Ok(None),
        }
    }

    /// Claims a chunk, so that no other process works on it; `None` when one does.
    pub(crate) fn claim(&self, index: u64) -> Result<Option<Claimed>, ExperimentError> {
        let path = self.chunk_path(index);
        let partial = with_suffix(&path, ".partial");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&partial)
            .map_err(ExperimentError::io("create", &partial))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Ok(None),
            // A file system without locks: two processes on one chunk write the same bytes.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(Claimed { file, partial, path })),
        }
    }

    /// Removes what interrupted runs left behind. Only partial files that nobody holds.
    pub(crate) fn sweep(&self) -> Result<(), ExperimentError> {
        let chunks = self.root.join("chunks");
        for entry in fs::read_dir(&chunks).map_err(ExperimentError::io("list", &chunks))? {
            let path = entry.map_err(ExperimentError::io("list", &chunks))?.path();
            if path.extension().is_some_and(|extension| extension == "partial") {
                let held = File::open(&path)
                    .is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)));
                if !held {
                    remove_if_there(&path)?;
                }
            }
        }
        Ok(())
    }

    /// Deletes the plan and its chunks; other files in the folder stay, and keep it.
    pub(crate) fn clear(&self) -> Result<(), ExperimentError> {
        let chunks = self.root.join("chunks");
        if let Ok(entries) = fs::read_dir(&chunks) {
            for path in entries.flatten().map(|entry| entry.path()) {
                let ours =
                    path.extension().is_some_and(|e| e == "csv" || e == "partial" || e == "failed");
                if ours {
                    remove_if_there(&path)?;
                }
            }
        }
        remove_if_there(&self.plan_path())
    }
}

/// A chunk that this process may write.
pub(crate) struct Claimed {
    file: File,
    partial: PathBuf,
    path: PathBuf,
}

impl Claimed {
    /// Writes, syncs, renames. After this returns the chunk survives a loss of power.
    pub(crate) fn store(mut self, bytes: &[u8]) -> Result<(), ExperimentError> {
        empty(&self.file)
            .and_then(|()| self.file.write_all(bytes))
            .and_then(|()| put_in_place(&self.file, &self.partial, &self.path))
            .map_err(ExperimentError::io("write", &self.path))
    }
}

pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, ExperimentError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ExperimentError::io("read", path)(error)),
    }
}

pub(crate) fn remove_if_there(path: &Path) -> Result<(), ExperimentError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(ExperimentError::io("delete", path)(error))
        }
        _ => Ok(()),
    }
}
