//! Lines of a stream through one reused buffer.

use super::refuse;
use crate::AuditError;
use std::io::Read;
use std::path::Path;

/// Longer lines are not scores.
const LONGEST: usize = 1 << 20;
const CHUNK: usize = 1 << 18;

/// Calls `each` with every line (without its end) and its number from 1.
pub(super) fn for_each(
    mut source: impl Read,
    path: &Path,
    mut each: impl FnMut(&[u8], u64) -> Result<(), AuditError>,
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
        for newline in memchr::memchr_iter(b'\n', &buffer[filled..end]) {
            let stop = filled + newline;
            number += 1;
            each(trim_end(&buffer[start..stop]), number)?;
            start = stop + 1;
        }
        if read == 0 {
            if start < end {
                each(trim_end(&buffer[start..end]), number + 1)?;
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
