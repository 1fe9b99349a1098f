//! The experiments below one folder: those work folders with a plan, a few levels deep. Links
//! are not followed.

use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

const DEEPEST: usize = 4;
const MOST: usize = 500;
const MOST_ENTRIES: usize = 20_000;

/// A folder to look through.
#[derive(Clone, Debug)]
pub(crate) struct ExperimentList {
    root: PathBuf,
}

/// One experiment.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Names it in addresses.
    pub(crate) id: String,
    /// Relative to the root, for people.
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
}

impl Found {
    /// The merged table, if it is there.
    pub(crate) fn output(&self) -> Option<PathBuf> {
        let text = self.folder.to_str()?;
        let output = PathBuf::from(text.strip_suffix(".work")?);
        output.is_file().then_some(output)
    }
}

impl ExperimentList {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// What is there now, by name.
    pub(crate) fn scan(&self) -> Vec<Found> {
        let mut found = Vec::new();
        let mut left = MOST_ENTRIES;
        self.visit(&self.root, 0, &mut left, &mut found);
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    fn visit(&self, folder: &Path, depth: usize, left: &mut usize, found: &mut Vec<Found>) {
        if folder.join("plan.json").is_file() {
            let path = folder.strip_prefix(&self.root).unwrap_or(folder);
            let name = path.display().to_string();
            let name = name.strip_suffix(".work").unwrap_or(&name);
            let name = if name.is_empty() { "." } else { name }.to_owned();
            let hash = Sha256::digest(name.as_bytes());
            let id = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            found.push(Found { id, name, folder: folder.to_owned() });
            return;
        }
        if depth >= DEEPEST || found.len() >= MOST {
            return;
        }
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            if *left == 0 || found.len() >= MOST {
                return;
            }
            *left -= 1;
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            let ours = entry.file_name() == ".dosimeter";
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && (!hidden || ours) {
                self.visit(&entry.path(), depth + 1, left, found);
            }
        }
    }
}
