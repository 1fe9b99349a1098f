//! Lines of a stream through one reused buffer.
//!
//! A reader may take whole lines straight from the buffer where they are plain, without looking
//! for their ends first; what it does not take comes line by line.

use super::refuse;
use crate::AuditError;
use std::io::Read;
use std::path::Path;

/// Longer lines are not scores.
const LONGEST: usize = 1 << 20;
const CHUNK: usize = 1 << 18;

/// Calls `each` with every line (without its end) and its number from 1.
pub(super) fn for_each(
    source: impl Read,
    path: &Path,
    each: impl FnMut(&[u8], u64) -> Result<(), AuditError>,
) -> Result<(), AuditError> {
    let mut lines = OneByOne(each);
    read(source, path, &mut lines)
}

struct OneByOne<F>(F);

impl<F: FnMut(&[u8], u64) -> Result<(), AuditError>> Lines for OneByOne<F> {
    fn line(&mut self, line: &[u8], number: u64) -> Result<(), AuditError> {
        (self.0)(line, number)
    }
}

/// What happens to lines.
pub(super) trait Lines {
    /// One line, without its end, and its number from 1.
    fn line(&mut self, line: &[u8], number: u64) -> Result<(), AuditError>;

    /// Takes as many whole lines from the start as it likes; gives their bytes and their number.
    fn take(&mut self, _buffer: &[u8]) -> (usize, u64) {
        (0, 0)
    }
}

/// Hands every line of a source to `lines`.
pub(super) fn read(
    mut source: impl Read,
    path: &Path,
    lines: &mut impl Lines,
) -> Result<(), AuditError> {
    let mut buffer = vec![0_u8; CHUNK];
    let (mut filled, mut number) = (0, 0_u64);
    loop {
        if filled == buffer.len() {
            if buffer.len() >= LONGEST {
                let problem = "the line is longer than a mebibyte; is this a score file?";
                return Err(refuse(path, Some(number + 1), problem));
            }
            buffer.resize(2 * buffer.len(), 0);
        }
        let read = match source.read(&mut buffer[filled..]) {
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(refuse(path, Some(number + 1), &error.to_string())),
        };
        let end = filled + read;
        let mut start = 0;
        // The start of a line is known to have no end before `searched`.
        let mut searched = filled;
        loop {
            let (bytes, count) = lines.take(&buffer[start..end]);
            start += bytes;
            number += count;
            searched = searched.max(start);
            let Some(newline) = memchr::memchr(b'\n', &buffer[searched..end]) else { break };
            let stop = searched + newline;
            number += 1;
            lines.line(trim_end(&buffer[start..stop]), number)?;
            start = stop + 1;
            searched = start;
        }
        if read == 0 {
            if start < end {
                lines.line(trim_end(&buffer[start..end]), number + 1)?;
            }
            return Ok(());
        }
        buffer.copy_within(start..end, 0);
        filled = end - start;
    }
}

fn trim_end(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}
