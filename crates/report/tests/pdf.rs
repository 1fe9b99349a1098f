//! The PDF by the eyes of other programs: poppler's `pdftotext`, `pdffonts`, `pdfinfo` and
//! `pdfdetach` (Debian package `poppler-utils`). Where they are not installed the tests say so
//! and check what can be checked without them.
#![expect(clippy::print_stdout, reason = "a test that could not run says so")]
#![cfg(feature = "pdf")]

mod support;

use report::{Cover, Report, pdf};
use std::path::Path;
use std::process::Command;

fn signed() -> Report {
    let mut report = support::full();
    report.cover = Cover {
        title: Some("Membership privacy of the Grüße model \u{4f60}".into()),
        owner: Some("Data Protection Office, Örebro".into()),
        date: Some("2026-11-16".into()),
    };
    report
}

/// What a program of poppler prints about the signed report; nothing where it is missing.
fn poppler(program: &str, arguments: &[&str]) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.pdf");
    std::fs::write(&path, pdf(&signed()).unwrap()).unwrap();
    asked(program, arguments, &path)
}

fn asked(program: &str, arguments: &[&str], path: &Path) -> Option<String> {
    let mut command = Command::new(program);
    let (last, first) = arguments.split_last().map_or((None, &[][..]), |(l, f)| (Some(*l), f));
    command.args(first);
    match last {
        Some("-") => command.arg(path).arg("-"),
        Some(other) => command.arg(other).arg(path),
        None => command.arg(path),
    };
    match command.output() {
        Ok(output) => {
            let complaints = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{program}: {complaints}");
            assert!(complaints.trim().is_empty(), "{program} complains: {complaints}");
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Err(error) => {
            println!("skipped: {program} cannot be started ({error}); install poppler-utils");
            None
        }
    }
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    let bytes = pdf(&signed()).unwrap();
    assert!(bytes.starts_with(b"%PDF-1.7"));
    assert!(bytes.len() < 300_000, "{} bytes", bytes.len());
    assert_eq!(bytes, pdf(&signed()).unwrap());
}

#[test]
fn text_can_be_copied() {
    let Some(text) = poppler("pdftotext", &["-layout", "-"]) else { return };
    let flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "Membership privacy of the Grüße model",
        "Owner: Data Protection Office, Örebro",
        "Date: 2026-11-16",
        "Consistent. The claim stands: epsilon is at most 6.419 at delta 1e-5.",
        "ε ≤ 6.419",
        "Privacy statement",
        "What would change the answer",
        "dosimeter report run.toml 'my scores.csv' --delta 1e-5",
        "seed, the game: 7",
        // Words of the figures: title, axis, series, caption.
        "At most 3.31 % are recognised (not private)",
        "false positive rate",
        "composition (proven)",
        "Up and left leaks <more> & more.",
        // What is not there is said.
        "something <else>",
        "a warning of the audit",
    ] {
        assert!(flat.contains(words), "`{words}` is missing from:\n{text}");
    }
    // A halo around words is a shape and not the words again.
    assert_eq!(flat.matches("this run").count(), 1, "{text}");
}

#[test]
fn fonts_are_embedded_and_have_a_meaning() {
    let Some(text) = poppler("pdffonts", &[]) else { return };
    let fonts: Vec<&str> = text.lines().skip(2).collect();
    assert_eq!(fonts.len(), 2, "{text}");
    for font in fonts {
        // name, type, encoding, embedded, subset, unicode
        assert!(font.contains("Arimo") && font.contains("yes yes yes"), "{text}");
    }
}

#[test]
fn metadata_says_whose_and_which() {
    let Some(text) = poppler("pdfinfo", &[]) else { return };
    let value = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.map(|line| line[name.len()..].trim().to_owned()).unwrap_or_else(|| panic!("{text}"))
    };
    assert_eq!(value("Title:"), "Membership privacy of the Grüße model \u{4f60}");
    assert_eq!(value("Author:"), "Data Protection Office, Örebro");
    assert_eq!(value("Creator:"), "dosimeter 0.0.0");
    assert!(value("CreationDate:").contains("2026"), "{text}");
    assert_eq!(value("Tagged:"), "yes");
    assert!(value("Page size:").contains("A4"), "{text}");
    let keywords = value("Keywords:");
    let hash = keywords.split([':', ',']).nth(1).unwrap();
    // The hash is that of the attached file, which is the report.
    let json = serde_json::to_vec(&signed()).unwrap();
    use sha2::{Digest, Sha256};
    let expected: String = Sha256::digest(&json).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hash, expected);
}

#[test]
fn the_unrounded_numbers_are_attached() {
    let folder = tempfile::tempdir().unwrap();
    let (path, out) = (folder.path().join("report.pdf"), folder.path().join("report.json"));
    std::fs::write(&path, pdf(&signed()).unwrap()).unwrap();
    let arguments = ["-save", "1", "-o", out.to_str().unwrap()];
    if asked("pdfdetach", &arguments, &path).is_none() {
        return;
    }
    let read: Report = serde_json::from_slice(&std::fs::read(out).unwrap()).unwrap();
    assert_eq!(read, signed());
}

#[test]
fn the_structure_can_be_heard() {
    let Some(text) = poppler("pdfinfo", &["-struct-text"]) else { return };
    let count = |tag: &str| text.lines().filter(|line| line.trim_start().starts_with(tag)).count();
    assert_eq!(count("H1"), 1, "{text}");
    assert!(count("H2") >= 6, "{text}");
    assert_eq!(count("Figure"), support::figures().len(), "{text}");
    assert!(count("Table") >= 6 && count("TH ") + count("TH") > 20, "{text}");
    assert!(count("BlockQuote") == 1 && count("LI") >= 4 && count("Caption") >= 8, "{text}");
    // Every row of a table has as many cells as its head.
    let mut widths: Vec<(usize, Vec<usize>)> = Vec::new();
    for line in text.lines() {
        let name = line.split_whitespace().next().unwrap_or_default().trim_end_matches(':');
        match name {
            "Table" => widths.push((0, Vec::new())),
            "TR" => widths.last_mut().unwrap().1.push(0),
            "TH" | "TD" => *widths.last_mut().unwrap().1.last_mut().unwrap() += 1,
            _ => {}
        }
    }
    for (_, rows) in &widths {
        assert!(rows.len() > 1 && rows.iter().all(|cells| cells == &rows[0]), "{rows:?}\n{text}");
    }
    let Some(with_text) = poppler("pdfinfo", &["-struct"]) else { return };
    assert!(with_text.contains("Figure"), "{with_text}");
}

#[test]
fn a_report_with_nothing_but_its_verdict_is_a_document() {
    let verdict = vocabulary::Verdict::nothing("no lens holds");
    let report = Report::new("0.1.0", 1e-5, verdict, report::Provenance::default());
    assert!(pdf(&report).unwrap().starts_with(b"%PDF"));
}

#[test]
fn hostile_words_do_not_break_it() {
    let mut report = support::full();
    let hostile = "\u{0}\u{200b}\u{202e}\u{fffe}\u{e000}<&>\"'\u{1f512} ".repeat(40);
    report.cover.title = Some(hostile.clone());
    report.cover.owner = Some(hostile.clone());
    report.verdict.headline = hostile.clone();
    report.provenance.commands = vec!["x".repeat(5000)];
    report.left_out = vec![hostile; 40];
    assert!(pdf(&report).unwrap().starts_with(b"%PDF"));
}
