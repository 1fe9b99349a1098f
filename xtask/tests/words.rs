//! What people read is plain English: phrases that made readers stop must not come back, in
//! help texts, errors, documents or comments.

use std::path::Path;
use std::process::Command;

/// Phrases, in small letters.
const PHRASES: &[&str] = &[
    "there is no place to write to",
    "is no number of minutes",
    "is no time between checkpoints",
    "times as often as a guess",
    "no smaller epsilon can hold",
    "take it along",
    "that configurations do not differ",
    "half of them in\"",
    "steps a length has",
    "tokens a completion has",
    "epoch(s)",
    "row(s)",
    "1 cells",
];

/// What is counted, before "a" in the place of "per": "nats a token".
const COUNTED: &[&str] = &[
    "answers",
    "bins",
    "bits",
    "bytes",
    "canaries",
    "candidates",
    "chunks",
    "completions",
    "evaluations",
    "games",
    "gaussians",
    "instructions",
    "mb",
    "milliseconds",
    "model-steps",
    "ms",
    "multiplications",
    "nats",
    "numbers",
    "once",
    "records",
    "rows",
    "scores",
    "seconds",
    "seeds",
    "steps",
    "times",
    "tokens",
    "trainings",
    "trials",
];

/// After "one": "one row a training".
const SINGLE: &[&str] =
    &["bit", "claim", "column", "curve", "dot", "line", "object", "record", "row", "score"];

/// What it is counted by. No word here follows one of the above in another sense.
const UNITS: &[&str] = &[
    "canary",
    "cell",
    "chunk",
    "claim",
    "completion",
    "configuration",
    "epoch",
    "lens",
    "line",
    "point",
    "quantity",
    "question",
    "row",
    "run",
    "second",
    "secret",
    "setting",
    "side",
    "step",
    "token",
    "training",
    "trial",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Files that people read, by their paths in the repository.
fn files() -> Vec<String> {
    let output = Command::new("git")
        .args(["ls-files", "-co", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git lists the files");
    let text = String::from_utf8(output.stdout).unwrap();
    let kinds =
        [".rs", ".md", ".py", ".pyi", ".ts", ".tsx", ".mjs", ".html", ".snap", ".yml", ".yaml"];
    // Results and the log are records of what was, the built page is made from its source.
    let records = ["docs/results/", "CHANGELOG.md", "web/dist/", "xtask/tests/words.rs"];
    text.lines()
        .filter(|path| kinds.iter().any(|kind| path.ends_with(kind)))
        .filter(|path| !records.iter().any(|start| path.starts_with(start)))
        .filter(|path| root().join(path).exists())
        .map(str::to_owned)
        .collect()
}

/// The words of a text in small letters, without the marks of comments, so that a phrase is
/// found across the end of a line.
fn words(text: &str) -> Vec<String> {
    text.split_whitespace()
        .filter(|word| !["//", "///", "//!", "#", "*", ">", "\"\"\"", "|", "\\"].contains(word))
        .map(str::to_lowercase)
        .collect()
}

/// The phrases of a text that are not to be.
fn found(text: &str) -> Vec<String> {
    let words = words(text);
    let flat = words.join(" ");
    let mut all: Vec<String> = PHRASES
        .iter()
        .filter(|phrase| flat.contains(*phrase))
        .map(|phrase| (*phrase).to_owned())
        .collect();
    let plain = |word: &str| {
        let ends = |letter: char| !letter.is_alphanumeric();
        word.trim_start_matches(ends).to_owned()
    };
    for (place, three) in words.windows(3).enumerate() {
        if !["a", "an"].contains(&three[1].as_str()) {
            continue;
        }
        let first = plain(&three[0]);
        let counted = COUNTED.contains(&first.as_str())
            || (SINGLE.contains(&first.as_str())
                && place > 0
                && ["one", "a", "json"].contains(&plain(&words[place - 1]).as_str()));
        let unit = three[2].trim_matches(|letter: char| !letter.is_alphanumeric());
        // "tokens a prompt may hold" is another sense: a verb follows.
        let verbs = ["has", "is", "may", "can", "could", "stands", "belongs", "needs", "meets"];
        let next = words.get(place + 3).map_or("", String::as_str);
        let end = three[2].ends_with([',', '.', ';', ':', ')', '"', '`']);
        if counted && UNITS.contains(&unit) && (end || !verbs.contains(&next)) {
            all.push(three.join(" "));
        }
    }
    all
}

#[test]
fn nobody_has_to_read_it_twice() {
    let mut faults = Vec::new();
    for path in files() {
        let Ok(text) = std::fs::read_to_string(root().join(&path)) else { continue };
        faults.extend(found(&text).iter().map(|phrase| format!("{path}: `{phrase}`")));
    }
    assert!(faults.is_empty(), "write `per`, or say it in other words:\n{}", faults.join("\n"));
}

#[test]
fn phrases_are_found() {
    for text in [
        "one row a training",
        "/// Sampled completions a\n/// secret; 0: greedy",
        "0.3 nats a token.",
        "500 trainings a side",
        "once an epoch",
        "There is no place to write to",
    ] {
        assert_eq!(found(text).len(), 1, "{text}");
    }
    for text in [
        "one row per training",
        "each step trains a model",
        "it needs a token",
        "which tokens a prompt may hold",
        "the scores a run has",
        "three steps a day",
    ] {
        assert_eq!(found(text), Vec::<String>::new(), "{text}");
    }
}
