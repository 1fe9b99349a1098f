//! SHA-256 of what was analysed and how.

use crate::{AuditError, Plan, Scores};
use sha2::{Digest, Sha256};

/// Scores a piece, so that the bytes stay in the innermost cache.
const CHUNK: usize = 1024;

/// The hash of the scores: both sides sorted, as little-endian doubles, members first, each side
/// led by its count. The same scores give the same hash from any file format and row order.
pub fn scores(scores: &Scores) -> String {
    let mut hasher = Sha256::new();
    hasher.update(b"dosimeter.scores/1\n");
    let mut buffer = [0_u8; 8 * CHUNK];
    for side in [scores.members(), scores.nonmembers()] {
        hasher.update((side.len() as u64).to_le_bytes());
        for chunk in side.chunks(CHUNK) {
            let bytes = &mut buffer[..8 * chunk.len()];
            for (to, value) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(chunk) {
                *to = value.to_le_bytes();
            }
            hasher.update(bytes);
        }
    }
    written(hasher)
}

/// The hash of the plan's JSON document.
///
/// # Errors
/// None in practice: the document always serialises.
pub fn plan(plan: &Plan) -> Result<String, AuditError> {
    let text = serde_json::to_string(&plan.document())
        .map_err(|error| AuditError::invalid(error.to_string()))?;
    let mut hasher = Sha256::new();
    hasher.update(text.as_bytes());
    Ok(written(hasher))
}

fn written(hasher: Sha256) -> String {
    let mut text = String::from("sha256:");
    for byte in hasher.finalize() {
        text.push_str(&format!("{byte:02x}"));
    }
    text
}
