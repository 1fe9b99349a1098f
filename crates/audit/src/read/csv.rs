//! CSV with a header that names `score` and `member`, in any order and among other columns.
//!
//! Comment lines start with `#`; `# design: one-run` states the design. Quoted fields are
//! understood in columns that are not read, as long as they hold no line break.

use super::{Table, refuse};
use crate::{AuditError, Column, Design};
use formats::csv::cell;
use formats::{decimal, lines, rows};
use std::io::Read;
use std::path::Path;

struct Columns {
    score: usize,
    member: usize,
    run: Option<usize>,
    /// How many columns there are.
    only: usize,
}

impl Columns {
    /// Nothing but `score,member`.
    fn plain(&self) -> bool {
        (self.score, self.member, self.only) == (0, 1, 2) && self.run.is_none()
    }
}

struct Fields<'a> {
    score: &'a [u8],
    member: &'a [u8],
    run: Option<&'a [u8]>,
}

pub(super) fn read(table: &mut Table, source: impl Read, path: &Path) -> Result<(), AuditError> {
    let mut reader = Reader { table, path, columns: None, rows: 0 };
    lines::read(source, |row, problem| refuse(path, Some(row), problem), &mut reader)?;
    if reader.columns.is_none() {
        return Err(refuse(path, None, "is empty; a header `score,member` is needed"));
    }
    if reader.rows == 0 {
        return Err(refuse(path, None, "has a header but no rows"));
    }
    Ok(())
}

struct Reader<'a> {
    table: &'a mut Table,
    path: &'a Path,
    columns: Option<Columns>,
    rows: u64,
}

impl lines::Lines<AuditError> for Reader<'_> {
    fn line(&mut self, line: &[u8], number: u64) -> Result<(), AuditError> {
        let path = self.path;
        if let Some(comment) = line.strip_prefix(b"#") {
            if let Some(design) = stated_design(comment) {
                let design = design
                    .parse::<Design>()
                    .map_err(|error| refuse(path, Some(number), &error.to_string()))?;
                self.table.note_design(design, path)?;
            }
            return Ok(());
        }
        let Some(columns) = &self.columns else {
            if line.trim_ascii().is_empty() {
                return Ok(());
            }
            self.columns = Some(header(line, number, path)?);
            return Ok(());
        };
        if line.is_empty() {
            return Ok(());
        }
        let fields = fields(line, columns)
            .ok_or_else(|| refuse(path, Some(number), "has fewer columns than the header"))?;
        let score = number_of(fields.score, number, path)?;
        self.rows += 1;
        let member = match fields.member {
            b"1" | b"true" | b"True" => true,
            b"0" | b"false" | b"False" => false,
            other => {
                let text = shown(other);
                let problem = format!("member `{text}` is not 1 or 0");
                return Err(refuse(path, Some(number), &problem));
            }
        };
        if let Some(run) = fields.run {
            self.table.runs.note(run, member);
        }
        if member {
            self.table.members.push(score);
        } else {
            self.table.nonmembers.push(score);
        }
        Ok(())
    }

    /// Lines `number,0` and `number,1` under the header `score,member`: the number tells its own
    /// end, so nothing is looked at twice. Anything else is left to [`Reader::line`].
    fn take(&mut self, buffer: &[u8]) -> (usize, u64) {
        if !self.columns.as_ref().is_some_and(Columns::plain) {
            return (0, 0);
        }
        let (mut place, mut taken) = (0, 0);
        loop {
            let rest = &buffer[place..];
            // Whole rows at once; the shortest has four bytes.
            let room = rest.len() / 4 + 2;
            let (members, nonmembers) =
                (self.table.members.spare(room), self.table.nonmembers.spare(room));
            let (bytes, inside, outside) = rows::take(rest, members, nonmembers);
            self.table.members.advance(inside);
            self.table.nonmembers.advance(outside);
            place += bytes;
            taken += (inside + outside) as u64;
            // Then one of another shape.
            let rest = &buffer[place..];
            let Some((score, length)) = decimal::at(rest) else { break };
            // A number at the buffer's end may go on, and NaN has a message of its own.
            let Some(&[b',', member, b'\n']) = rest[length..].first_chunk::<3>() else { break };
            if score.is_nan() {
                break;
            }
            match member {
                b'1' => self.table.members.push(score),
                b'0' => self.table.nonmembers.push(score),
                _ => break,
            }
            place += length + 3;
            taken += 1;
        }
        self.rows += taken;
        (place, taken)
    }
}

/// One score per line, with or without a header `score`.
pub(super) fn read_column(
    values: &mut Column,
    source: impl Read,
    path: &Path,
) -> Result<(), AuditError> {
    let before = values.len();
    let mut first = true;
    lines::for_each(
        source,
        |row, problem| refuse(path, Some(row), problem),
        |line, number| {
            let field = line.trim_ascii();
            if field.is_empty() || field.starts_with(b"#") {
                return Ok(());
            }
            let is_first = std::mem::take(&mut first);
            if is_first && field.contains(&b',') {
                let problem = "one score per line is needed here; a file with the columns `score` and \
                           `member` is given by its name alone";
                return Err(refuse(path, Some(number), problem));
            }
            let is_header = is_first && field.eq_ignore_ascii_case(b"score");
            if !is_header {
                values.push(number_of(field, number, path)?);
            }
            Ok(())
        },
    )?;
    if values.len() == before {
        return Err(refuse(path, None, "holds no score"));
    }
    Ok(())
}

fn stated_design(comment: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(comment).ok()?.trim();
    let rest = text.strip_prefix("design")?.trim_start();
    Some(rest.strip_prefix([':', '='])?.trim())
}

fn header(line: &[u8], number: u64, path: &Path) -> Result<Columns, AuditError> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let (mut score, mut member, mut run, mut only) = (None, None, None, 0);
    for (place, field) in line.split(|&byte| byte == b',').enumerate() {
        only = place + 1;
        let name = field.trim_ascii();
        let name = name.strip_prefix(b"\"").and_then(|n| n.strip_suffix(b"\"")).unwrap_or(name);
        let slot = match name {
            b"score" => &mut score,
            b"member" => &mut member,
            b"run" => &mut run,
            _ => continue,
        };
        if slot.replace(place).is_some() {
            let problem = format!("the header names `{}` twice", shown(name));
            return Err(refuse(path, Some(number), &problem));
        }
    }
    match (score, member) {
        (Some(score), Some(member)) => Ok(Columns { score, member, run, only }),
        _ if line.contains(&0) || std::str::from_utf8(line).is_err() => {
            let problem = "is not text in UTF-8; give a CSV with the header `score,member`";
            Err(refuse(path, None, problem))
        }
        _ => {
            let fix = if line.contains(&b'\t') {
                "separate columns by commas, not by tabs"
            } else if line.contains(&b';') {
                "separate columns by commas, not by semicolons"
            } else if decimal::at(line.trim_ascii()).is_some() {
                "put a line `score,member` in front of the first row"
            } else {
                "the first line must name both"
            };
            let problem =
                format!("the header `{}` does not name `score` and `member`; {fix}", shown(line));
            Err(refuse(path, Some(number), &problem))
        }
    }
}

/// The fields of a row; the common case of two plain columns is one search for a comma.
fn fields<'a>(line: &'a [u8], columns: &Columns) -> Option<Fields<'a>> {
    let (mut score, mut member, mut run) = (None, None, None);
    let (mut place, mut rest) = (0, line);
    let last = columns.score.max(columns.member).max(columns.run.unwrap_or(0));
    loop {
        let (field, next) = cell(rest)?;
        if place == columns.score {
            score = Some(field);
        }
        if place == columns.member {
            member = Some(field.trim_ascii());
        }
        if Some(place) == columns.run {
            run = Some(field.trim_ascii());
        }
        if place == last {
            return Some(Fields { score: score?, member: member?, run });
        }
        rest = next?;
        place += 1;
    }
}

/// A score from text; NaN and text that is no number are refused by row.
pub(super) fn number_of(field: &[u8], row: u64, path: &Path) -> Result<f64, AuditError> {
    let value = decimal::of(field).ok_or_else(|| {
        refuse(path, Some(row), &format!("score `{}` is not a number", shown(field)))
    })?;
    if value.is_nan() {
        return Err(refuse(path, Some(row), "the score is NaN; an audit needs ordered scores"));
    }
    Ok(value)
}

/// The start of a field for a message; a tab is shown as `\\t`, anything else unprintable replaced.
fn shown(field: &[u8]) -> String {
    let text = String::from_utf8_lossy(&field[..field.len().min(60)]);
    let text = text.replace('\t', "\\t");
    let mut shown: String = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    if field.len() > 60 {
        shown.push('…');
    }
    shown
}
