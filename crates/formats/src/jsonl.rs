//! One JSON object per line; blank lines are passed over.

use serde_json::{Map, Value};

/// The objects of a text with the numbers of their lines, from 1.
///
/// ```
/// let rows: Vec<_> = formats::jsonl::objects("{\"a\":1}\n\n[2]\n").collect();
/// assert_eq!((rows[0].0, rows[0].1.as_ref().unwrap()["a"].as_u64()), (1, Some(1)));
/// assert_eq!((rows[1].0, rows[1].1.as_ref().unwrap_err().as_str()), (3, "the line is not a JSON object"));
/// ```
pub fn objects(text: &str) -> impl Iterator<Item = (usize, Result<Map<String, Value>, String>)> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(row, line)| (row, object(line)))
}

/// The object of one line.
///
/// # Errors
/// What the line is instead, as a fragment for "FILE, row N: …".
pub fn object(line: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(line) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("the line is not a JSON object".into()),
        Err(error) => Err(format!("is not JSON: {error}")),
    }
}
