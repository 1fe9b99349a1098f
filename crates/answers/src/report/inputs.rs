//! What a report is made of: the files, each with its role and its hash.

use super::ledger::Ledger;
use crate::{Refusal, TextFile, runs_beside};
use audit::Table;
use report::{Input, Seed};
use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Runs, ledgers, scores, results of other settings, and where they come from.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    pub(super) runs: Vec<TextFile>,
    pub(super) ledgers: Vec<Ledger>,
    pub(super) scores: Option<Table>,
    /// The runs that the scores say they were made by.
    pub(super) made_by: Vec<TextFile>,
    pub(super) results: Option<tuning::TrainingTable>,
    pub(super) files: Vec<Input>,
    /// Roots of randomness of what was made for this report.
    pub(super) seeds: Vec<Seed>,
    /// How the numbers were made, in words.
    pub(super) notes: Vec<String>,
}

impl Inputs {
    /// Reads a file; its name and its first bytes say what it is. `shown` is what the report calls
    /// it.
    ///
    /// # Errors
    /// A file that is nothing of the kind, or cannot be read.
    pub(super) fn add(&mut self, path: &Path, shown: &str) -> Result<(), Refusal> {
        let role = match extension(path).as_str() {
            "toml" | "json" => self.add_run(path, shown)?,
            "csv" | "jsonl" | "ndjson" if is_results(path)? => {
                if self.results.is_some() {
                    return Err(Refusal::bad_input("two tables of results were given; join them"));
                }
                let read = tuning::TrainingTable::read(path);
                self.results = Some(read.map_err(|error| Refusal::bad_input(error.to_string()))?);
                "results"
            }
            "csv" | "jsonl" | "ndjson" | "parquet" => {
                self.scores.get_or_insert_default().add_file(path)?;
                self.made_by.extend(runs_beside(&[path.to_owned()])?);
                "scores"
            }
            _ => {
                // A folder is opened without an error, and cannot be read.
                if let Err(error) =
                    std::fs::File::open(path).and_then(|mut file| file.read(&mut [0]))
                {
                    return Err(unreadable(path, &error));
                }
                return Err(Refusal::bad_input(format!(
                    "{} is neither a run (.toml, .json) nor scores (.csv, .jsonl, .parquet)",
                    path.display()
                ))
                .hint("rename it, or convert scores to CSV with the header `score,member`"));
            }
        };
        self.files.push(Input { name: shown.into(), role: role.into(), sha256: sha256(path)? });
        Ok(())
    }

    fn add_run(&mut self, path: &Path, shown: &str) -> Result<&'static str, Refusal> {
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
        let ledger = if extension(path) == "json" { Ledger::read(&text) } else { None };
        let role = if ledger.is_some() { "ledger" } else { "run" };
        self.ledgers.extend(ledger);
        self.runs.push(TextFile { name: shown.into(), text });
        Ok(role)
    }

    /// How many scores there are.
    pub(super) fn scores(&self) -> usize {
        self.scores.as_ref().map_or(0, |table| table.members.len() + table.nonmembers.len())
    }
}

fn extension(path: &Path) -> String {
    let text = path.extension().and_then(|text| text.to_str()).unwrap_or_default();
    text.to_ascii_lowercase()
}

/// Whether a table holds results of trainings (learning rates) and not scores of an attack.
fn is_results(path: &Path) -> Result<bool, Refusal> {
    let file = std::fs::File::open(path).map_err(|error| unreadable(path, &error))?;
    let mut lines = BufReader::new(file.take(1 << 16)).lines();
    let first = lines.find_map(|line| line.ok().filter(|line| !line.starts_with('#')));
    Ok(first.is_some_and(|line| line.contains("learning_rate") && line.contains("epsilon")))
}

fn sha256(path: &Path) -> Result<String, Refusal> {
    let mut file = std::fs::File::open(path).map_err(|error| unreadable(path, &error))?;
    let mut hasher = Sha256::new();
    std::io::copy(&mut file, &mut hasher).map_err(|error| unreadable(path, &error))?;
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn unreadable(path: &Path, error: &std::io::Error) -> Refusal {
    Refusal::bad_input(format!("cannot read {}: {error}", path.display()))
        .hint("give runs (.toml), ledgers (.json), scores or tables of results (.csv, .jsonl)")
}
