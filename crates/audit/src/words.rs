//! Numbers in sentences.

/// A delta as people write it: 1e-5, but 0.01.
pub(crate) fn delta(value: f64) -> String {
    if value != 0.0 && value < 1e-3 { format!("{value:e}") } else { format!("{value}") }
}
