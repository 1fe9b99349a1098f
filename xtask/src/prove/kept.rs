//! The short lines of a survey, docs/data/proofs-seed-S.csv: what a later machine goes on from.
//!
//! One line for each run: its number (the run itself is drawn again from it), its kind, the quantity, the outcome, the
//! reason without its numbers where it is not proven, seconds of the proof, the limits of work and of the solver's
//! seconds, and the commit that proved it (with a plus sign where files differed from it).

use super::table::{cause, without_numbers};
use anyhow::{Context, Result, anyhow};
use formats::csv::{CsvTable, row};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// The way to draw batches or the lens, then what is special about the run.
    pub kind: String,
    pub quantity: String,
    pub outcome: String,
    /// Empty where the run is proven.
    pub reason: String,
    pub proof_s: f64,
    pub work: f64,
    pub seconds: f64,
    pub build: String,
}

/// Lines by the number of their run.
pub type Lines = BTreeMap<u64, Line>;

const HEAD: &str = "index,kind,quantity,outcome,reason,proof_s,work,seconds,build";

impl Line {
    /// Whether there was nothing to prove.
    pub fn is_silent(&self) -> bool {
        ["unanswered", "refused"].contains(&self.outcome.as_str())
    }

    /// Whether the run may be proven by a call with these limits and this build, and was not.
    pub fn may_gain(&self, (work, seconds, build): (f64, f64, &str)) -> bool {
        let more = match self.outcome.as_str() {
            "proven" | "not defined" => return false,
            "undecided" => work > self.work,
            "unanswered" | "refused" => seconds > self.seconds,
            _ => true,
        };
        more || build != self.build
    }

    /// From a line of JSON of a part.
    fn of_json(line: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let number = |name: &str| line[name].as_f64().unwrap_or(0.0);
        let reason = match line["outcome"].as_str().unwrap_or_default() {
            // By the first end that is.
            "undecided" | "wrong" => {
                let end = if line["lower"].is_object() { &line["lower"] } else { &line["upper"] };
                end["statement"].as_str().unwrap_or("no reason given")
            }
            "unanswered" | "refused" | "not defined" => {
                cause(line["reason"].as_str().unwrap_or("no reason given"))
            }
            _ => "",
        };
        Self {
            kind: text(&line["kind"]),
            quantity: text(&line["quantity"]),
            outcome: text(&line["outcome"]),
            reason: without_numbers(reason).replace(',', ";"),
            proof_s: number("proof_s"),
            work: number("work"),
            seconds: number("seconds"),
            build: text(&line["build"]),
        }
    }

    fn csv(&self, index: u64) -> String {
        let Self { quantity, outcome, reason, proof_s, work, seconds, build, .. } = self;
        let kind = self.kind.replace(", ", "+");
        let proof_s = format!("{proof_s:.3}");
        let cells: [&dyn Display; 9] =
            [&index, &kind, quantity, outcome, reason, &proof_s, work, seconds, build];
        let mut line = String::new();
        row(&mut line, &cells);
        line
    }

    fn of_csv(cells: &[String]) -> Option<(u64, Self)> {
        let [index, kind, quantity, outcome, reason, proof_s, work, seconds, build] = cells else {
            return None;
        };
        let line = Self {
            kind: kind.replace('+', ", "),
            quantity: quantity.into(),
            outcome: outcome.into(),
            reason: reason.into(),
            proof_s: proof_s.parse().ok()?,
            work: work.parse().ok()?,
            seconds: seconds.parse().ok()?,
            build: build.into(),
        };
        Some((index.parse().ok()?, line))
    }
}

pub fn path(seed: u64) -> PathBuf {
    format!("docs/data/proofs-seed-{seed}.csv").into()
}

/// The lines that are kept, then those of the parts in `folder`: the latest of each run.
pub fn all(short: &Path, folder: &Path) -> Result<Lines> {
    let mut lines = Lines::new();
    let text = fs::read_to_string(short).unwrap_or_default();
    let table = CsvTable::read(&text).map_err(|why| anyhow!("{}: {why}", short.display()))?;
    for (place, cells) in table.rows() {
        let (index, line) =
            Line::of_csv(cells).with_context(|| format!("{}, line {place}", short.display()))?;
        lines.insert(index, line);
    }
    let mut parts: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    parts.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    // Parts that were written to last count.
    parts.sort_by_key(|path| fs::metadata(path).and_then(|data| data.modified()).ok());
    for path in parts {
        for line in fs::read_to_string(&path)?.lines() {
            // The last line of a part that was broken off may be half of one.
            if let Ok(value) = serde_json::from_str::<Value>(line)
                && let Some(index) = value["index"].as_u64()
            {
                lines.insert(index, Line::of_json(&value));
            }
        }
    }
    Ok(lines)
}

/// Writes the short lines.
pub fn write(short: &Path, lines: &Lines) -> Result<()> {
    let mut text = format!("{HEAD}\n");
    for (index, line) in lines {
        text += &line.csv(*index);
    }
    fs::write(short, text).with_context(|| short.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_are_read_as_they_were_written() {
        let value = json!({
            "index": 7, "kind": "Poisson, group", "quantity": "mu", "outcome": "undecided",
            "lower": {"statement": "delta(0.5), of two, cannot be told from 0.25"},
            "proof_s": 1.25, "work": 4000.0, "seconds": 1.0, "build": "0123abc+",
        });
        let line = Line::of_json(&value);
        assert_eq!(line.reason, "delta(#) of two; cannot be told from #");
        let mut cells = Vec::new();
        formats::csv::split(line.csv(7).trim_end(), &mut cells).unwrap();
        assert_eq!(Line::of_csv(&cells), Some((7, line.clone())));
        assert!(line.may_gain((8000.0, 1.0, "0123abc+")));
        assert!(!line.may_gain((4000.0, 9.0, "0123abc+")));
        assert!(line.may_gain((4000.0, 1.0, "another")));
        let proven = Line { outcome: "proven".into(), ..line };
        assert!(!proven.may_gain((1e9, 9.0, "another")));
    }

    #[test]
    fn a_later_line_counts() {
        let folder = std::env::temp_dir().join(format!("prove-kept-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let short = folder.join("short.csv");
        let line = |outcome: &str| Line { outcome: outcome.into(), ..Line::default() };
        let before = Lines::from([(1, line("undecided")), (2, line("proven"))]);
        write(&short, &before).unwrap();
        let part =
            "{\"index\":1,\"outcome\":\"undecided\"}\n{\"index\":1,\"outcome\":\"proven\"}\n{\"ind";
        fs::write(folder.join("part-1-of-1.jsonl"), part).unwrap();
        let found = all(&short, &folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(
            found.values().map(|one| one.outcome.as_str()).collect::<Vec<_>>(),
            ["proven"; 2]
        );
    }
}
