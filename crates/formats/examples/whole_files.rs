//! A table that is whole or not there, written and read back; text with commas keeps its cell.
//!
//! `cargo run --release -p dosimeter-formats --example whole_files`
#![allow(clippy::print_stdout)]

use formats::{csv, files, numbers};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let table = folder.path().join("results.csv");
    let rows = [["model", "score"], ["wide, deep", "0.25"], ["small", "0.75"]];
    let text: Vec<String> = rows.iter().map(csv::line).collect();
    files::write(&table, text.concat())?;

    let mut cells = Vec::new();
    for (line, row) in std::fs::read_to_string(&table)?.lines().zip(rows) {
        csv::split(line, &mut cells)?;
        assert_eq!(cells, row);
        println!("{}: {}", cells[0], cells[1]);
    }

    let scores = folder.path().join("scores.txt");
    files::write(&scores, "0.25\n0.75\n")?;
    println!("{:?}", numbers::read(&scores)?);
    Ok(())
}
