//! One JSON object per line with `score` and `member`; a string "inf" or "-inf" is an infinite
//! score. A line may state the design: {"design": "one-run"} alone.

use super::{Table, refuse};
use crate::{AuditError, Design};
use formats::lines;
use serde::Deserialize;
use serde_json::Value;
use std::io::Read;
use std::path::Path;

#[derive(Deserialize)]
struct Row {
    score: Option<Value>,
    member: Option<Value>,
    design: Option<String>,
    run: Option<Value>,
}

pub(super) fn read(table: &mut Table, source: impl Read, path: &Path) -> Result<(), AuditError> {
    let mut rows = 0_u64;
    lines::for_each(
        source,
        |row, problem| refuse(path, Some(row), problem),
        |line, number| {
            if line.trim_ascii().is_empty() {
                return Ok(());
            }
            let refuse = |problem: &str| refuse(path, Some(number), problem);
            let row: Row = serde_json::from_slice(line).map_err(|error| {
                // JSON has no NaN, but some writers put it there.
                if memchr::memmem::find(line, b"NaN").is_some() {
                    return refuse("the score is NaN; an audit needs ordered scores");
                }
                let text = error.to_string();
                let what = text.split(" at line ").next().unwrap_or(&text);
                refuse(&format!(
                    "is not a JSON object of a score: {what} at column {}",
                    error.column()
                ))
            })?;
            if let Some(design) = row.design {
                let design: Design = design
                    .parse()
                    .map_err(|error: vocabulary::UnknownName| refuse(&error.to_string()))?;
                table.note_design(design, path)?;
                if row.score.is_none() && row.member.is_none() {
                    return Ok(());
                }
            }
            let score = match row.score {
                Some(Value::Number(number)) => number.as_f64(),
                Some(Value::String(text)) => match text.as_str() {
                    "inf" | "Infinity" | "+inf" => Some(f64::INFINITY),
                    "-inf" | "-Infinity" => Some(f64::NEG_INFINITY),
                    _ => None,
                },
                Some(Value::Null) => {
                    return Err(refuse("the score is null; an audit needs ordered scores"));
                }
                Some(_) => None,
                None => return Err(refuse("there is no `score`, or it is null")),
            }
            .ok_or_else(|| refuse("the score is not a number"))?;
            let member = match row.member {
                Some(Value::Bool(member)) => Some(member),
                Some(Value::Number(number)) => match number.as_f64() {
                    Some(1.0) => Some(true),
                    Some(0.0) => Some(false),
                    _ => None,
                },
                Some(_) => None,
                None => return Err(refuse("there is no `member`, or it is null")),
            }
            .ok_or_else(|| refuse("member is not 1 or 0"))?;
            rows += 1;
            match row.run {
                Some(Value::String(text)) => table.runs.note(text.as_bytes(), member),
                Some(Value::Null) | None => {}
                Some(other) => table.runs.note(other.to_string().as_bytes(), member),
            }
            if member {
                table.members.push(score)
            } else {
                table.nonmembers.push(score)
            }
            Ok(())
        },
    )?;
    if rows == 0 {
        return Err(refuse(path, None, "holds no row with `score` and `member`"));
    }
    Ok(())
}
