//! A short deterministic fuzz of every target, in every test run.

use fuzzing::Pseudorandom;
use std::time::{Duration, Instant};

const CASES: u64 = 3000;

/// The cheapest cases take microseconds and the hardest seconds, so the test ends with its time
/// or its cases, whichever comes first; the order of the cases is always the same.
#[test]
fn numerics_hold_their_laws_on_random_runs() {
    let mut words = Pseudorandom::new(1);
    let start = Instant::now();
    let (mut answered, mut cases) = (0, 0);
    while cases < CASES && start.elapsed() < Duration::from_secs(20) {
        answered += fuzzing::numerics(&words.bytes(96));
        cases += 1;
    }
    // Most cases lie in the domain; a solver that refuses everything must not pass.
    assert!(cases >= 10 && answered as u64 > 4 * cases, "{answered} answers in {cases} cases");
}

#[test]
fn run_descriptions_are_read_or_refused_in_a_sentence() {
    let mut words = Pseudorandom::new(2);
    let mut read = 0;
    for _ in 0..4 * CASES {
        read += fuzzing::run_description(&fuzzing::some_description(&mut words));
    }
    // About a fifth of the descriptions are right.
    assert!(read as u64 > CASES / 2, "only {read} runs were read");
}

#[test]
fn arbitrary_bytes_are_never_a_run_by_accident() {
    let mut words = Pseudorandom::new(3);
    for length in 0..CASES {
        let noise = words.bytes((length % 200) as usize);
        assert_eq!(fuzzing::run_description(&noise), 0, "{noise:?}");
    }
}

#[test]
fn score_files_are_read_or_refused_in_a_sentence() {
    let mut words = Pseudorandom::new(4);
    let (mut read, mut files) = (0, 0);
    for _ in 0..CASES / 2 {
        let rows = fuzzing::score_file(&fuzzing::some_score_file(&mut words));
        read += usize::from(rows > 0);
        files += 1;
    }
    // About a third are right; a reader that refuses everything must not pass.
    assert!(4 * read > files, "only {read} of {files} files were read");
}

#[test]
fn any_scores_can_be_audited() {
    let mut words = Pseudorandom::new(5);
    let mut answers = 0;
    for length in 0..CASES / 6 {
        answers += fuzzing::any_scores(&words.bytes((length % 400) as usize));
    }
    assert!(answers as u64 > CASES, "{answers}");
}

/// What the long fuzzing once found.
#[test]
fn a_message_quotes_foreign_text_without_its_control_characters() {
    fuzzing::run_description(br#""FF6nn\nnnF\u001b[2J""#);
    fuzzing::run_description(b"[run]\nsampling = \"a\\nb\"\n");
}
