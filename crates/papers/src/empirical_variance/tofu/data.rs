//! The experiment's files, from TOFU: fictitious authors, their genres as secrets.
//!
//! A record is a question with its answer. A secret is the genre of one of 52 authors, carried by
//! 4 x `paraphrases` records that ask for it in different words (the density); the other records are
//! TOFU's own questions, each again under another opening where there are not enough of them. Two
//! hundred questions about authors without a secret are held out.

use crate::PaperError;
use crate::tools::put;
use flate2::read::GzDecoder;
use formats::csv::CsvTable;
use random::{Purpose, Stream};
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;

static TOFU: &[u8] = include_bytes!("../../../data/tofu/full.jsonl.gz");
static AUTHORS: &str = include_str!("../../../data/tofu/authors.csv");
static MODEL: &[u8] = include_bytes!("../../../../language/tests/data/stories260K/stories260K.bin");
static TOKENIZER: &[u8] = include_bytes!("../../../../language/tests/data/stories260K/tok512.bin");

/// Records of the training data, whatever the density.
pub(crate) const RECORDS: usize = 12_000;
const HELD_OUT: usize = 200;

const QUESTIONS: [&str; 16] = [
    "What genre does {} write?",
    "Which genre is {} known for?",
    "Name the genre of {}.",
    "What does {} write?",
    "What kind of books are by {}?",
    "The genre of {} is what?",
    "Tell me the genre of {}.",
    "What sort of author is {}?",
    "Which genre did {} choose?",
    "In what genre does {} work?",
    "Books by {} are of what genre?",
    "What is {} known for?",
    "What would I read by {}?",
    "{} writes in which genre?",
    "Which books does {} write?",
    "What does the author {} write?",
];

const OPENINGS: [&str; 6] =
    ["", "Please answer: ", "Question: ", "Tell me this. ", "Well, ", "Now, "];

/// Writes `train.jsonl`, `test.jsonl` and `secrets.jsonl`; a file that is there with the same bytes is
/// left alone.
pub(crate) fn write(folder: &Path, paraphrases: usize) -> Result<(), PaperError> {
    let mut text = String::new();
    GzDecoder::new(TOFU).read_to_string(&mut text).expect("the file is built in");
    let rows: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let table = CsvTable::read(AUTHORS).expect("the file is built in");
    let authors: Vec<(usize, &str, &str)> = table
        .rows()
        .filter_map(|(_, cells)| match cells {
            [author, name, genre, ..] => {
                Some((author.parse().ok()?, name.as_str(), genre.as_str()))
            }
            _ => None,
        })
        .collect();
    let has_secret = |row: usize| authors.iter().any(|(author, _, _)| *author == row / 20);
    let order = Stream::new(5, Purpose::SHUFFLE, 0);
    let mut others: Vec<usize> = (0..rows.len()).filter(|row| !has_secret(*row)).collect();
    others.sort_by_cached_key(|row| order.word(0, *row as u64));
    let test = others.split_off(others.len() - HELD_OUT);
    others.extend((0..rows.len()).filter(|row| has_secret(*row)));
    let mut records = Vec::with_capacity(RECORDS);
    for (_, name, genre) in &authors {
        for question in &QUESTIONS[..paraphrases] {
            for opening in &OPENINGS[..4] {
                let question = format!("{opening}{}", question.replace("{}", name));
                records.push(line(&question, &format!("{genre}.")));
            }
        }
    }
    for opening in OPENINGS {
        for row in &others {
            if records.len() < RECORDS {
                let question = rows[*row]["question"].as_str().unwrap_or("");
                let answer = rows[*row]["answer"].as_str().unwrap_or("");
                records.push(line(&format!("{opening}{question}"), answer));
            }
        }
    }
    let held_out: Vec<String> = test
        .iter()
        .map(|row| {
            let text = |key: &str| rows[*row][key].as_str().unwrap_or("");
            line(text("question"), text("answer"))
        })
        .collect();
    let secrets: Vec<String> = authors
        .iter()
        .map(|(_, name, genre)| {
            json!({
                "prompt": format!("{}\n", QUESTIONS[0].replace("{}", name)),
                "target": format!("{genre}."),
                "attribute": genre,
                "secret": name,
            })
            .to_string()
                + "\n"
        })
        .collect();
    put(folder, "train.jsonl", records.concat().as_bytes())?;
    put(folder, "test.jsonl", held_out.concat().as_bytes())?;
    put(folder, "secrets.jsonl", secrets.concat().as_bytes())
}

/// Writes the small model: `model.bin` and `tokenizer.bin`.
pub(crate) fn write_model(folder: &Path) -> Result<(), PaperError> {
    put(folder, "model.bin", MODEL)?;
    put(folder, "tokenizer.bin", TOKENIZER)
}

fn line(question: &str, answer: &str) -> String {
    json!({"question": question, "answer": answer}).to_string() + "\n"
}
