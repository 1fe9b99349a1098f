//! Opening files, plain or gzipped, hashed on the way; and reading exactly as many bytes as a
//! header promises without making room for them before they are there.

use super::error::{DataError, refuse};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Room that is made before any byte was seen.
const FIRST_ROOM: u64 = 1 << 20;

/// A file being read. The hash is of the bytes on the disk, whether they were gzipped or not.
pub(super) struct Source {
    path: PathBuf,
    reader: Box<dyn Read>,
    hash: Rc<RefCell<Sha256>>,
    /// The length of a plain file; of a gzipped one nobody knows it beforehand.
    pub(super) length: Option<u64>,
}

struct Hashing {
    file: File,
    hash: Rc<RefCell<Sha256>>,
}

impl Read for Hashing {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.hash.borrow_mut().update(&buffer[..count]);
        Ok(count)
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.reader.read(buffer)
    }
}

impl Source {
    /// Opens a file; gzip is told by its first two bytes, whatever the name says.
    pub(super) fn open(path: &Path) -> Result<Self, DataError> {
        let broken = |error: std::io::Error| refuse(path, format!("cannot be read: {error}"));
        let mut file = File::open(path).map_err(broken)?;
        let metadata = file.metadata().map_err(broken)?;
        if metadata.is_dir() {
            return Err(refuse(path, "is a folder; give the file itself"));
        }
        let mut magic = Vec::new();
        file.by_ref().take(2).read_to_end(&mut magic).map_err(broken)?;
        file.seek(SeekFrom::Start(0)).map_err(broken)?;
        let hash = Rc::new(RefCell::new(Sha256::new()));
        let file = BufReader::with_capacity(1 << 17, Hashing { file, hash: Rc::clone(&hash) });
        let gzipped = magic == [0x1F, 0x8B];
        let reader: Box<dyn Read> = if gzipped {
            Box::new(flate2::bufread::MultiGzDecoder::new(file))
        } else {
            Box::new(file)
        };
        let length = (!gzipped && metadata.is_file()).then_some(metadata.len());
        Ok(Self { path: path.to_owned(), reader, hash, length })
    }

    /// Exactly `count` bytes; what is missing is said in terms of `what`.
    pub(super) fn exactly(&mut self, count: u64, what: &str) -> Result<Vec<u8>, DataError> {
        let mut bytes = Vec::with_capacity(count.min(FIRST_ROOM) as usize);
        self.reader
            .by_ref()
            .take(count)
            .read_to_end(&mut bytes)
            .map_err(|error| refuse(&self.path, format!("cannot be read: {error}")))?;
        if bytes.len() as u64 != count {
            let problem = format!("ends after {} of the {count} bytes of {what}", bytes.len());
            return Err(refuse(&self.path, problem));
        }
        Ok(bytes)
    }

    /// Refuses bytes after the end, and gives the SHA-256 of the file.
    pub(super) fn end(mut self) -> Result<String, DataError> {
        match self.reader.read(&mut [0_u8; 1]) {
            Ok(0) => Ok(hexadecimal(self.hash.borrow().clone().finalize().as_slice())),
            Ok(_) => Err(refuse(&self.path, "is longer than its header says")),
            Err(error) => Err(refuse(&self.path, format!("cannot be read: {error}"))),
        }
    }
}

/// The SHA-256 of a file and its length.
pub(super) fn digest(path: &Path) -> std::io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let length = std::io::copy(&mut file, &mut hash)?;
    Ok((hexadecimal(hash.finalize().as_slice()), length))
}

/// The SHA-256 of what is inside a gzipped file; of another, nothing.
pub(super) fn unpacked_digest(path: &Path) -> std::io::Result<Option<String>> {
    let mut file = BufReader::with_capacity(1 << 17, File::open(path)?);
    if !file.fill_buf()?.starts_with(&[0x1F, 0x8B]) {
        return Ok(None);
    }
    let mut hash = Sha256::new();
    std::io::copy(&mut flate2::bufread::MultiGzDecoder::new(file), &mut hash)?;
    Ok(Some(hexadecimal(hash.finalize().as_slice())))
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `folder/name`, or `folder/name.gz`, whichever exists.
pub(super) fn either(folder: &Path, name: &str) -> Option<PathBuf> {
    [folder.join(name), folder.join(format!("{name}.gz"))].into_iter().find(|path| path.is_file())
}
