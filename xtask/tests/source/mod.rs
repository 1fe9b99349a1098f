//! The sources of the project, as tests read them.

use std::path::{Path, PathBuf};

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

pub fn sources(path: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, ending, found);
        } else if path.extension().is_some_and(|kind| kind == ending) {
            found.push(path);
        }
    }
}

/// The lines of a file that are code: no comments, no examples in the help of a command, no tests.
pub fn code(text: &str) -> Vec<&str> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut helping = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        helping |= line.contains("before_help = ");
        let comment = line.trim_start().starts_with("//");
        if !helping && !comment {
            lines.push(line);
        }
        helping &= !line.contains("\")]");
    }
    assert!(!helping, "the help of a command has no end");
    lines
}

/// The variants of a set of names that a line of code names; constants are roles, not names.
pub fn named<'a>(line: &'a str, set: &str) -> impl Iterator<Item = &'a str> {
    let mark = format!("{set}::");
    let places: Vec<usize> = line.match_indices(&mark).map(|(at, _)| at + mark.len()).collect();
    places.into_iter().filter_map(|at| {
        let rest = &line[at..];
        let end = rest.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(rest.len());
        let name = &rest[..end];
        let mut letters = name.chars();
        let variant = letters.next().is_some_and(char::is_uppercase)
            && letters.next().is_some_and(char::is_lowercase);
        variant.then_some(name)
    })
}
