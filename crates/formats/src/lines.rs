//! Lines of a stream through one reused buffer.
//!
//! A reader may take whole lines straight from the buffer where they are plain, without looking
//! for their ends first; what it does not take comes line by line.

use std::io::Read;

/// Longer lines are not of a table.
const LONGEST: usize = 1 << 20;
const CHUNK: usize = 1 << 18;

/// Calls `each` with every line (without its end) and its number from 1. `refuse` makes an error of a row and what is
/// wrong with it.
///
/// # Errors
/// Those of `each`; a source that cannot be read, and a line longer than a mebibyte.
///
/// ```
/// let mut lines = Vec::new();
/// formats::lines::for_each(
///     &b"a\r\n\nb"[..],
///     |row, problem| format!("row {row}: {problem}"),
///     |line, number| {
///         lines.push((line.to_vec(), number));
///         Ok(())
///     },
/// )?;
/// assert_eq!(lines, [(b"a".to_vec(), 1), (b"".to_vec(), 2), (b"b".to_vec(), 3)]);
/// # Ok::<(), String>(())
/// ```
pub fn for_each<E>(
    source: impl Read,
    refuse: impl Fn(u64, &str) -> E,
    each: impl FnMut(&[u8], u64) -> Result<(), E>,
) -> Result<(), E> {
    let mut lines = OneByOne(each);
    read(source, refuse, &mut lines)
}

struct OneByOne<F>(F);

impl<E, F: FnMut(&[u8], u64) -> Result<(), E>> Lines<E> for OneByOne<F> {
    fn line(&mut self, line: &[u8], number: u64) -> Result<(), E> {
        (self.0)(line, number)
    }
}

/// What happens to lines.
pub trait Lines<E> {
    /// One line, without its end, and its number from 1.
    ///
    /// # Errors
    /// What is wrong with it; then reading ends.
    fn line(&mut self, line: &[u8], number: u64) -> Result<(), E>;

    /// Takes as many whole lines from the start as it likes; gives their bytes and their number.
    fn take(&mut self, _buffer: &[u8]) -> (usize, u64) {
        (0, 0)
    }
}

/// Hands every line of a source to `lines`.
///
/// # Errors
/// As [`for_each`].
pub fn read<E>(
    mut source: impl Read,
    refuse: impl Fn(u64, &str) -> E,
    lines: &mut impl Lines<E>,
) -> Result<(), E> {
    let mut buffer = vec![0_u8; CHUNK];
    let (mut filled, mut number) = (0, 0_u64);
    loop {
        if filled == buffer.len() {
            if buffer.len() >= LONGEST {
                let problem = "the line is longer than a mebibyte; is this a score file?";
                return Err(refuse(number + 1, problem));
            }
            buffer.resize(2 * buffer.len(), 0);
        }
        let read = match source.read(&mut buffer[filled..]) {
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(refuse(number + 1, &error.to_string())),
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
