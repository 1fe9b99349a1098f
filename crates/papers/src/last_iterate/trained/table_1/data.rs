//! Synthetic-Persona-Chat (Jandaghi et al. 2023; CC BY 4.0) as records: an utterance and its answer.
//!
//! The published files are CSV with a whole conversation in the last column, a line per utterance,
//! `User 1:` or `User 2:` before it. Two utterances in turn are one record; lines without a speaker
//! are left out.

use crate::PaperError;
use serde_json::json;
use std::path::{Path, PathBuf};

const NAME: &str = "synthetic-persona-chat";

/// Writes `train.jsonl` and `test.jsonl`, evenly spread over the conversations; gives the number of
/// training records and the file they are from.
pub(super) fn write(
    data: Option<&Path>,
    folder: &Path,
    (train, test): (usize, usize),
) -> Result<(usize, String), PaperError> {
    let found = find(data)?;
    let file = |part: &str| found.join(format!("Synthetic-Persona-Chat_{part}.csv"));
    let source = ["train", "valid"].into_iter().find(|part| file(part).exists());
    let source = source.ok_or_else(|| missing(&found))?;
    let records = spread(exchanges(&file(source))?, train);
    put(folder, "train.jsonl", &records)?;
    put(folder, "test.jsonl", &spread(exchanges(&file("test"))?, test))?;
    Ok((records.len(), format!("Synthetic-Persona-Chat_{source}.csv")))
}

/// The folder with the files: of that name, or the one that is given.
fn find(data: Option<&Path>) -> Result<PathBuf, PaperError> {
    let data = data.ok_or_else(|| missing(Path::new("DIR")))?;
    [data.join(NAME), data.to_owned()]
        .into_iter()
        .find(|folder| folder.join("Synthetic-Persona-Chat_test.csv").exists())
        .ok_or_else(|| missing(data))
}

fn missing(folder: &Path) -> PaperError {
    PaperError::Unusable(format!(
        "this needs Synthetic-Persona-Chat (CC BY 4.0): --data {} with \
         Synthetic-Persona-Chat_train.csv (or _valid.csv) and Synthetic-Persona-Chat_test.csv, from \
         the folder `data` of github.com/google-research-datasets/Synthetic-Persona-Chat",
        folder.display()
    ))
}

fn exchanges(path: &Path) -> Result<Vec<String>, PaperError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| PaperError::Read { path: path.to_owned(), source })?;
    let mut records = Vec::new();
    for cells in rows(&text).into_iter().skip(1) {
        let Some(conversation) = cells.last() else { continue };
        let said: Vec<&str> = conversation
            .lines()
            .map(|line| line.trim_matches(|c: char| c == '*' || c.is_whitespace()))
            .filter(|line| line.starts_with("User 1:") || line.starts_with("User 2:"))
            .collect();
        records.extend(said.chunks_exact(2).map(|two| two.join("\n")));
    }
    if records.is_empty() {
        return Err(PaperError::Unusable(format!("{} has no conversations", path.display())));
    }
    Ok(records)
}

/// Cells of a CSV text; quoted ones may hold commas, line ends and doubled quotes.
fn rows(text: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    let mut quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let row = rows.last_mut().expect("there is a row");
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                row.last_mut().expect("there is a cell").push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(String::new()),
            '\n' if !quoted => rows.push(vec![String::new()]),
            '\r' if !quoted => {}
            other => row.last_mut().expect("there is a cell").push(other),
        }
    }
    rows.retain(|row| row.iter().any(|cell| !cell.is_empty()));
    rows
}

fn spread(records: Vec<String>, count: usize) -> Vec<String> {
    attacks::spread(records.len(), count.min(records.len()))
        .into_iter()
        .map(|number| records[number].clone())
        .collect()
}

fn put(folder: &Path, name: &str, records: &[String]) -> Result<(), PaperError> {
    let lines: String =
        records.iter().map(|text| json!({"text": text}).to_string() + "\n").collect();
    crate::tools::put(folder, name, lines.as_bytes())
}

#[cfg(test)]
mod tests {
    #[test]
    fn cells_hold_line_ends_commas_and_quotes() {
        let text = "a,b\r\n\"x, y\",\"User 1: \"\"Hi\"\"\nUser 2: Yes\"\n";
        let cell = "User 1: \"Hi\"\nUser 2: Yes";
        assert_eq!(super::rows(text), [vec!["a", "b"], vec!["x, y", cell]]);
    }
}
