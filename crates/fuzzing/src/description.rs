//! Any text as a run's description, in TOML and in JSON: a run or a sentence, never a panic;
//! what was read is written as JSON and read back as the same run.

use crate::Pseudorandom;
use vocabulary::{Run, RunError, RunFile};

/// The body of the `run_description` target. Returns how many runs were read.
pub fn run_description(data: &[u8]) -> usize {
    let Ok(text) = std::str::from_utf8(data) else { return 0 };
    [RunFile::from_toml_str(text), RunFile::from_json_str(text)]
        .into_iter()
        .filter(same_after_a_round_trip)
        .count()
}

fn same_after_a_round_trip(document: &Result<RunFile, RunError>) -> bool {
    let run = match document {
        Ok(document) => document.run.resolve(),
        Err(error) => Err(error.clone()),
    };
    let run = match run {
        Ok(resolved) => resolved.run,
        Err(error) => {
            let message = error.to_string();
            assert!(
                !message.is_empty() && !message.contains(char::is_control),
                "not a sentence: {message:?}"
            );
            return false;
        }
    };
    for phase in run.phases() {
        assert!(phase.noise_multiplier > 0.0 && phase.noise_multiplier.is_finite(), "{phase:?}");
        assert!(phase.sample_rate > 0.0 && phase.sample_rate <= 1.0, "{phase:?}");
        assert!(phase.steps >= 1, "{phase:?}");
    }
    let written = serde_json::to_string(&run).expect("a run is always JSON");
    let again = Run::from_json(&written);
    assert_eq!(again.as_ref(), Ok(&run), "{written} is read as another run");
    true
}

const KEYS: &[&str] = &[
    "noise_multiplier",
    "sample_rate",
    "steps",
    "dataset_size",
    "batch_size",
    "epochs",
    "clip_norm",
    "sampling",
    "adjacency",
    "group_size",
    "seed",
    "noise_multiplyer",
];

const VALUES: &[&str] = &[
    "1.0",
    "0.01",
    "1000",
    "1e3",
    "0",
    "-1",
    "1e400",
    "nan",
    "inf",
    "0.5",
    "1",
    "60000",
    "256",
    "2.5",
    "\"poisson\"",
    "\"full\"",
    "\"shuffle\"",
    "\"fixed-size\"",
    "\"add-remove\"",
    "\"substitute\"",
    "\"1e6\"",
    "\"\"",
    "true",
    "[]",
    "[1]",
    "{}",
    "9007199254740993",
    "18446744073709551615",
    "5e-324",
];

/// A description that is right more often than chance would have it, and then spoilt a little.
pub fn some_description(words: &mut Pseudorandom) -> Vec<u8> {
    let pick = |words: &mut Pseudorandom, from: &[&'static str]| {
        from[(words.word() % from.len() as u64) as usize]
    };
    let json = words.word().is_multiple_of(2);
    let mut entries = vec![("noise_multiplier", "1.5"), ("sample_rate", "0.01"), ("steps", "1000")];
    for _ in 0..words.word() % 3 {
        entries.push((pick(words, KEYS), pick(words, VALUES)));
    }
    if words.word().is_multiple_of(2) {
        let index = (words.word() % entries.len() as u64) as usize;
        entries[index].1 = pick(words, VALUES);
    }
    let table = |between: &str, end: &str| -> String {
        entries.iter().map(|(key, value)| format!("{key}{between}{value}{end}")).collect()
    };
    let text = match (json, words.word() % 3) {
        (false, 0) => format!("[[run.phase]]\n{}", table(" = ", "\n")),
        (false, _) => format!("[run]\n{}", table(" = ", "\n")),
        (true, _) => {
            let body: Vec<String> =
                entries.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
            format!("{{{}}}", body.join(", "))
        }
    };
    let mut bytes = text.into_bytes();
    if words.word().is_multiple_of(4) {
        let index = (words.word() % bytes.len() as u64) as usize;
        bytes[index] = (words.word() % 128) as u8;
    }
    bytes
}
