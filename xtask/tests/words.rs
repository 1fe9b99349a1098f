//! What people read is plain English: phrases that made readers stop must not come back, in
//! help texts, errors, documents or comments.

use std::path::Path;
use std::process::Command;

/// Phrases, in small letters.
const PHRASES: &[&str] = &[
    "there is no place to write to",
    "is no number of minutes",
    "is no time between checkpoints",
    "is no whole number",
    "is no language model",
    "times as often as a guess",
    "no smaller epsilon can hold",
    "take it along",
    "that configurations do not differ",
    "half of them in\"",
    "steps a length has",
    "tokens a completion has",
    // Persons that are none, and riddles.
    "leaves the house",
    "takes it from there",
    "lets it hear",
    "the heuristic's own world",
    "the textbook speaks",
    "it speaks of",
    "speaks about",
    "speak about",
    "speaks of",
    "speaks against",
    "speaks for",
    "hears",
    "an ear for",
    "is as loud",
    "who else is there",
    "what the best attacker on the run of the flags",
    "read by itself, which says most",
    "need each other:",
    "say the same twice",
    "is what is solved for",
    "no report ends in",
    "are no scale",
    "is not there for language models",
    // "This many" is meant.
    "on so many",
    "for so many",
    "of so many",
    "after so many",
    "up to so many",
    "every so many",
    "from so many",
    "with so many",
    "most so many",
    // Titles that say nothing to who has not read the page.
    "games are held to",
    "the luckiest decides",
    "straight away",
    "under a hand",
    "records are silent",
    "held to their bars",
    "records that are in by",
    "a mouse |",
    // "Is about" where "holds for" is meant.
    "it is about full batches",
    "it is about one record",
    "it is about one release",
    "it is about independent noise",
    "is about poisson",
    "are about poisson",
    "epoch(s)",
    "row(s)",
    "1 cells",
    "which is no number",
    "are too few\"",
    "steps is not possible",
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
    "clock",
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
    "pixels",
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
    "usd",
];

/// After "one": "one row a training".
const SINGLE: &[&str] = &[
    "bit",
    "call",
    "claim",
    "column",
    "completion",
    "curve",
    "dot",
    "gaussian",
    "line",
    "object",
    "pass",
    "record",
    "row",
    "run",
    "score",
    "utterance",
];

/// What it is counted by. No word here follows one of the above in another sense.
const UNITS: &[&str] = &[
    "canary",
    "cell",
    "chunk",
    "claim",
    "completion",
    "configuration",
    "epoch",
    "example",
    "hour",
    "lens",
    "line",
    "minute",
    "point",
    "quantity",
    "question",
    "record",
    "row",
    "run",
    "search",
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
    let kinds = [
        ".rs", ".md", ".py", ".pyi", ".ts", ".tsx", ".mjs", ".html", ".snap", ".svg", ".yml",
        ".yaml", ".toml", ".cff",
    ];
    // The built page is made from its source.
    let records = ["web/dist/", "xtask/tests/words.rs"];
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
    let begins = ["//", "///", "//!", "#", "*", ">"];
    let marks = ["\"\"\"", "|", "\\"];
    text.lines()
        .flat_map(|line| {
            let skip = line.split_whitespace().next().is_some_and(|word| begins.contains(&word));
            // No phrase goes on after an empty line.
            let end = line.trim().is_empty().then_some("¶");
            line.split_whitespace().skip(usize::from(skip)).chain(end)
        })
        .filter(|word| !marks.contains(word))
        .map(str::to_lowercase)
        .collect()
}

/// Whether a word is a number, or stands for a value that is filled in (`{}`, `{count}`).
fn number(word: &str) -> bool {
    let word = word.trim_start_matches(|letter: char| "\"'`(<>=~".contains(letter));
    let filled = word.starts_with('{') && word.ends_with('}');
    let digits = word.starts_with(|letter: char| letter.is_ascii_digit())
        && word.ends_with(|letter: char| letter.is_ascii_digit())
        && word.chars().all(|letter| letter.is_ascii_digit() || ",._e-+".contains(letter));
    filled || digits
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
    let before = |place: usize, back: usize| {
        place.checked_sub(back).map_or(String::new(), |place| plain(&words[place]))
    };
    for (place, three) in words.windows(3).enumerate() {
        if !["a", "an"].contains(&three[1].as_str()) {
            continue;
        }
        let first = plain(&three[0]);
        let single =
            ["one", "a", "json"].contains(&before(place, 1).as_str()) || before(place, 2) == "one";
        let counted = COUNTED.contains(&first.as_str())
            || (SINGLE.contains(&first.as_str()) && single)
            || number(&three[0]);
        let unit = three[2].trim_matches(|letter: char| !letter.is_alphanumeric());
        // "tokens a prompt may hold" is another sense: a verb follows. After "4000 rows" it is not.
        let verbs =
            ["has", "is", "may", "can", "could", "stands", "belongs", "needs", "meets", "uses"];
        let next = words.get(place + 3).map_or("", String::as_str);
        let end = three[2].ends_with([',', '.', ';', ':', ')', '"', '`']);
        let told = place > 0 && number(&words[place - 1]);
        if counted && UNITS.contains(&unit) && (end || told || !verbs.contains(&next)) {
            all.push(three.join(" "));
        }
    }
    // "is no number of records"; "there is no number of …" is another sense.
    for (place, four) in words.windows(4).enumerate() {
        if [four[0].as_str(), &four[1], &four[3]] == ["is", "no", "of"]
            && !before(place, 1).ends_with("there")
        {
            all.push(four.join(" "));
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

/// A range in Rust's notation is not for readers: "outside 1..=1000".
#[test]
fn errors_state_ranges_in_words() {
    let mut faults = Vec::new();
    for path in files().iter().filter(|path| path.ends_with(".rs") && path.contains("/src/")) {
        let text = std::fs::read_to_string(root().join(path)).unwrap();
        for (number, line) in text.lines().enumerate() {
            let marks = ["outside 1..=", "outside 1 ..=", "outside 0..=", "is outside {low}..="];
            if marks.iter().any(|mark| line.contains(mark)) {
                faults.push(format!("{path}:{}", number + 1));
            }
        }
    }
    assert!(faults.is_empty(), "say `not between … and …`:\n{}", faults.join("\n"));
}

#[test]
fn phrases_are_found() {
    for text in [
        "one row a training",
        "/// Sampled completions a\n/// secret; 0: greedy",
        "0.3 nats a token.",
        "500 trainings a side",
        "once an epoch",
        "two threads, seconds of the clock a step",
        "Zeros, of so many bytes",
        "There is no place to write to",
        "audit of 1e7 a side: below 500 MB",
        "\"tokens, at most {} a record; longer ones cut\"",
        "4000 rows a side could show 6.4",
        "one backward pass a record",
        "`{text}` is no number of records",
        "seed {seed} is no whole number",
        "composition: one subsampled Gaussian a step",
        "all other lenses are about Poisson and full batches",
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
        "replacing a record",
        "the clip norm is 1, a step shows the sum",
        "with a sample rate of {} a step uses none",
        "there is no difference of deltas",
        "one run and a row",
        "it is 2.26\n\nA step takes",
        "dosimeter report --delta 1e-6   # a run",
    ] {
        assert_eq!(found(text), Vec::<String>::new(), "{text}");
    }
}
