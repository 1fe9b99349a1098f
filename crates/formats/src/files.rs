//! The one way a file is written: to a partial file beside it, synced, renamed. Under its name
//! there is always the old or the new content, whole, also after `kill -9` or a power cut, and
//! also where several processes write it at once: each waits for the one before.

use std::fs::{self, File, OpenOptions};
use std::io::{Result, Write};
use std::path::{Path, PathBuf};

/// Writes these bytes.
///
/// # Errors
/// What the file system says.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    write_with(path, false, |file| file.write_all(bytes.as_ref()))
}

/// Writes these bytes for the owner's eyes only, where the file system knows owners.
///
/// # Errors
/// What the file system says.
pub fn write_secret(path: &Path, bytes: &[u8]) -> Result<()> {
    write_with(path, true, |file| file.write_all(bytes))
}

/// Writes what `fill` puts into the file. After a failure nothing is left behind. A pipe or a
/// device under this name stays and is written to.
///
/// # Errors
/// What the file system says, or `fill`.
pub fn write_with(
    path: &Path,
    secret: bool,
    fill: impl FnOnce(&mut File) -> Result<()>,
) -> Result<()> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return fill(&mut OpenOptions::new().write(true).open(path)?);
    }
    let partial = with_suffix(path, ".partial");
    let mut file = open_alone(&partial, secret)?;
    empty(&file)
        .and_then(|()| fill(&mut file))
        .and_then(|()| put_in_place(&file, &partial, path))
        .inspect_err(|_| drop(fs::remove_file(&partial)))
}

/// Syncs a written file, gives it its name, and has the name reach the disk.
///
/// # Errors
/// What the file system says.
pub fn put_in_place(file: &File, partial: &Path, path: &Path) -> Result<()> {
    file.sync_all()?;
    fs::rename(partial, path)?;
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Platforms that cannot open a folder have no need to sync it.
    File::open(parent).map_or(Ok(()), |folder| folder.sync_all())
}

/// The path with more at the end of its name.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Drops what an interrupted writer left in a partial file.
///
/// # Errors
/// What the file system says.
pub fn empty(file: &File) -> Result<()> {
    if file.metadata()?.len() > 0 { file.set_len(0) } else { Ok(()) }
}

/// A file that is locked and still under its name: the one before may have renamed it meanwhile.
fn open_alone(path: &Path, secret: bool) -> Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    if secret {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    #[cfg(not(unix))]
    let _ = secret;
    loop {
        let file = options.open(path)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scores.csv");
        write(&path, "old").unwrap();
        let failed = write_with(&path, false, |file| {
            file.write_all(b"half")?;
            Err(std::io::Error::other("the disk is full"))
        });
        assert!(failed.unwrap_err().to_string().contains("full"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        // What an interrupted writer left does not show in the new content.
        fs::write(with_suffix(&path, ".partial"), "a long rest").unwrap();
        write(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_secret_is_for_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        write_secret(&path, b"key").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn writers_at_once_leave_one_content_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.json");
        std::thread::scope(|scope| {
            for writer in 0..8u8 {
                let path = &path;
                scope.spawn(move || write(path, vec![b'a' + writer; 100_000]).unwrap());
            }
        });
        let found = fs::read(&path).unwrap();
        assert!(found.len() == 100_000 && found.iter().all(|byte| *byte == found[0]));
    }
}
