//! The files of an experiment: every write goes to a partial file that is synced and then renamed.

use crate::chunk::{self, Content};
use crate::{ExperimentError, Plan};
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
        write_atomically(&self.plan_path(), |file| file.write_all(text.as_bytes()))
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
        let write = |file: &mut File| {
            empty(file)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        write(&mut self.file).map_err(ExperimentError::io("write", &self.partial))?;
        fs::rename(&self.partial, &self.path)
            .map_err(ExperimentError::io("rename", &self.partial))?;
        sync_folder(&self.path)
    }
}

pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
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

/// Writes a file so that under its name there is always the old or the new content, whole, also
/// when several processes write it at once: each waits for the one before.
pub(crate) fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut File) -> std::io::Result<()>,
) -> Result<(), ExperimentError> {
    let partial = with_suffix(path, ".partial");
    let mut file = open_alone(&partial).map_err(ExperimentError::io("create", &partial))?;
    empty(&file)
        .and_then(|()| write(&mut file))
        .and_then(|()| file.sync_all())
        .map_err(ExperimentError::io("write", &partial))?;
    fs::rename(&partial, path).map_err(ExperimentError::io("rename", &partial))?;
    sync_folder(path)
}

/// A file that is locked and still under its name: the one before may have renamed it meanwhile.
fn open_alone(path: &Path) -> std::io::Result<File> {
    loop {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        // Where the file system has no locks, two processes write the same bytes.
        if file.lock().is_err() || is_still(&file, path) {
            return Ok(file);
        }
    }
}

#[cfg(unix)]
fn is_still(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(here), Ok(there)) => (here.dev(), here.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_still(_file: &File, path: &Path) -> bool {
    path.exists()
}

/// Drops what an interrupted run left in a partial file.
fn empty(file: &File) -> std::io::Result<()> {
    if file.metadata()?.len() > 0 { file.set_len(0) } else { Ok(()) }
}

/// The rename itself must reach the disk. Platforms that cannot open a folder have no such need.
fn sync_folder(path: &Path) -> Result<(), ExperimentError> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match File::open(parent) {
        Ok(folder) => folder.sync_all().map_err(ExperimentError::io("sync", parent)),
        Err(_) => Ok(()),
    }
}
