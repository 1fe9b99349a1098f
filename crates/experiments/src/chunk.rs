//! A chunk file: one comment line with the plan's name, the chunk's place and the checksum, then
//! an ordinary CSV table. Readers that skip lines beginning with `#` read it as it is.

use crate::plan::hex;
use crate::{ExperimentError, Plan};
use sha2::{Digest, Sha256};
use std::path::Path;

const MAGIC: &str = "# dosimeter.chunk/1";

/// The bytes of a chunk file.
pub(crate) fn encode(plan: &Plan, index: u64, rows: &str) -> String {
    let table = format!("{}\n{rows}", plan.header);
    format!("{}{table}", first_line(plan, index, &table))
}

fn first_line(plan: &Plan, index: u64, table: &str) -> String {
    let range = plan.chunk_range(index);
    let checksum = hex(&Sha256::digest(table.as_bytes()));
    format!(
        "{MAGIC} plan={} chunk={index} trials={}..{} bytes={} sha256={checksum}\n",
        plan.digest(),
        range.start,
        range.end,
        table.len()
    )
}

/// What a chunk file holds.
pub(crate) enum Content {
    /// The rows, all of them.
    Whole(String),
    /// An honest chunk of the same plan with fewer trials: from before the experiment grew.
    Shorter,
}

/// Checks a chunk file and returns its rows.
///
/// # Errors
/// `ForeignChunk` when it belongs elsewhere, `CorruptChunk` when bytes are missing or wrong.
pub(crate) fn decode(
    plan: &Plan,
    index: u64,
    path: &Path,
    bytes: Vec<u8>,
) -> Result<Content, ExperimentError> {
    let foreign = |reason: &str| ExperimentError::ForeignChunk {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    let corrupt = |reason: String| ExperimentError::CorruptChunk { path: path.to_owned(), reason };
    if bytes.is_empty() {
        return Err(corrupt("it is empty".to_owned()));
    }
    let mut text = String::from_utf8(bytes).map_err(|_| corrupt("it is not text".to_owned()))?;
    let end = text.find('\n').unwrap_or(text.len());
    let line = text[..end].to_owned();
    if !line.starts_with(MAGIC) {
        return Err(foreign("its first line is not a chunk's"));
    }
    let field = |name: &str| {
        line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).unwrap_or("")
    };
    if field("plan") != plan.digest() {
        return Err(foreign("another plan wrote it"));
    }
    if field("chunk") != index.to_string() {
        return Err(foreign("it is another chunk"));
    }
    let table = text.get(end + 1..).unwrap_or("");
    if field("bytes") != table.len().to_string() {
        return Err(corrupt(format!("{} bytes instead of {}", table.len(), field("bytes"))));
    }
    if field("sha256") != hex(&Sha256::digest(table.as_bytes())) {
        return Err(corrupt("the checksum does not match".to_owned()));
    }
    let range = plan.chunk_range(index);
    if field("trials") != format!("{}..{}", range.start, range.end) {
        let last: u64 =
            field("trials").split("..").nth(1).unwrap_or("").parse().unwrap_or(u64::MAX);
        return if last < range.end {
            Ok(Content::Shorter)
        } else {
            Err(foreign("it holds other trials"))
        };
    }
    let head = plan.header.len() + 1;
    if table.get(..head).is_none_or(|found| found != format!("{}\n", plan.header)) {
        return Err(foreign("its table has other columns"));
    }
    text.drain(..end + 1 + head);
    Ok(Content::Whole(text))
}
