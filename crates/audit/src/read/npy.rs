//! Scores from NumPy's .npy format: one dimension of real numbers, none of them NaN. The header
//! is read by the crate `formats`; no length in it is believed before the bytes are there.

use super::refuse;
use crate::{AuditError, Column};
use formats::npy::Header;
use std::io::Read;
use std::path::Path;

const CHUNK: usize = 1 << 18;

pub(super) fn read(
    values: &mut Column,
    mut source: impl Read,
    length: Option<u64>,
    path: &Path,
) -> Result<(), AuditError> {
    let header = Header::read(&mut source).map_err(|problem| refuse(path, None, &problem))?;
    let count = one_dimension(&header.shape)
        .map_err(|problem| refuse(path, None, &format!("in the .npy header: {problem}")))?;
    let width = header.width();
    let data_bytes = count
        .checked_mul(width as u64)
        .ok_or_else(|| refuse(path, None, "the header promises more scores than can exist"))?;
    if let Some(length) = length {
        let there = length.saturating_sub(header.bytes);
        if there != data_bytes {
            let problem = format!(
                "the header promises {count} scores ({data_bytes} bytes) but {there} bytes follow; the file is {}",
                if there < data_bytes { "truncated" } else { "longer than it says" }
            );
            return Err(refuse(path, None, &problem));
        }
    }
    if count == 0 {
        return Err(refuse(path, None, "holds no score"));
    }
    // Room for what the header says only when the file's length confirms it.
    if length.is_some() {
        values.expect(usize::try_from(count).unwrap_or(0));
    }
    let mut buffer = vec![0_u8; CHUNK - CHUNK % width];
    let (mut row, mut left) = (0_u64, data_bytes);
    while left > 0 {
        let take = left.min(buffer.len() as u64) as usize;
        source.read_exact(&mut buffer[..take]).map_err(|_| {
            refuse(path, Some(row + 1), "the file ends before the scores that its header promises")
        })?;
        let added = take / width;
        let fresh = &mut values.spare(added)[..added];
        header.fill(&buffer[..take], fresh);
        // All of them first: a search that may stop anywhere is several times as slow.
        if fresh.iter().fold(false, |any, score| any | score.is_nan())
            && let Some(place) = fresh.iter().position(|score| score.is_nan())
        {
            let problem = "the score is NaN; an audit needs ordered scores";
            return Err(refuse(path, Some(row + 1 + place as u64), problem));
        }
        values.advance(added);
        row += added as u64;
        left -= take as u64;
    }
    let mut more = [0_u8; 1];
    if length.is_none() && matches!(source.read(&mut more), Ok(1)) {
        return Err(refuse(path, None, "the file is longer than its header says"));
    }
    Ok(())
}

/// The number of scores of a shape (100,) or (100, 1).
fn one_dimension(sizes: &[u64]) -> Result<u64, String> {
    let long: Vec<u64> = sizes.iter().copied().filter(|&size| size != 1).collect();
    match (sizes.len(), long.as_slice()) {
        (0, _) => Err("a single number is not a list of scores".to_owned()),
        (_, []) => Ok(1),
        (_, [size]) => Ok(*size),
        _ => Err(format!("the shape {sizes:?} is not one-dimensional")),
    }
}
