//! Scores know the run that made them: `scores.csv.run.json` beside `scores.csv`. A claim about another
//! run is refused, with the difference, unless it is meant.

use crate::{AuditQuestion, Refusal, TextFile};
use std::path::{Path, PathBuf};
use vocabulary::Run;

/// The ending of the file beside scores that says which run made them.
pub const RUN_ENDING: &str = ".run.json";

/// The files beside scores that say which run made them.
///
/// # Errors
/// A file that is there and cannot be read.
pub fn runs_beside(scores: &[PathBuf]) -> Result<Vec<TextFile>, Refusal> {
    let mut found = Vec::new();
    for path in scores {
        let mut name = path.as_os_str().to_owned();
        name.push(RUN_ENDING);
        let beside = Path::new(&name);
        if beside.is_file() {
            let name = beside.display().to_string();
            let text = std::fs::read_to_string(beside)
                .map_err(|error| Refusal::bad_input(format!("cannot read {name}: {error}")))?;
            found.push(TextFile { name, text });
        }
    }
    Ok(found)
}

/// The run that a file beside scores tells.
pub(crate) fn run(file: &TextFile) -> Result<Run, Refusal> {
    let resolved = file.document()?.run.resolve();
    Ok(resolved.map_err(|error| Refusal::from(error).at(&file.name))?.run)
}

/// Refuses scores of another run than the claimed one.
pub(crate) fn check(question: &AuditQuestion, claimed: Option<&Run>) -> Result<(), Refusal> {
    let Some(claimed) = claimed.filter(|_| !question.other_run) else { return Ok(()) };
    for file in &question.made_by {
        let differences = differences(&run(file)?, claimed);
        if !differences.is_empty() {
            return Err(Refusal::bad_input(format!(
                "the scores were made by another run than the claimed one: {}",
                differences.join("; ")
            ))
            .hint(format!(
                "claim the run that made them ({}), or give --other-run if this is meant",
                file.name
            )));
        }
    }
    Ok(())
}

/// What differs between two runs, in words. Neighbours and groups belong to the claim, not to the training.
fn differences(made_by: &Run, claimed: &Run) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |what: &str, made_by: String, claimed: String| {
        if made_by != claimed {
            found.push(format!("{what} {made_by}, claimed {claimed}"));
        }
    };
    let (made, said) = (made_by.phases(), claimed.phases());
    if made.len() == said.len() {
        for (place, (made, said)) in made.iter().zip(said).enumerate() {
            let phase = if said_in_phases(claimed) {
                format!("phase {}: ", place + 1)
            } else {
                String::new()
            };
            let mut number = |what: &str, made: f64, said: f64| {
                compare(&format!("{phase}{what}"), made.to_string(), said.to_string());
            };
            number("noise multiplier", made.noise_multiplier, said.noise_multiplier);
            number("sample rate", made.sample_rate, said.sample_rate);
            number("steps", made.steps as f64, said.steps as f64);
        }
    } else {
        compare("phases", made.len().to_string(), said.len().to_string());
    }
    compare("sampling", made_by.sampling().as_str().into(), claimed.sampling().as_str().into());
    compare("clip norm", made_by.clip_norm().to_string(), claimed.clip_norm().to_string());
    if let (Some(made), Some(said)) = (made_by.dataset_size(), claimed.dataset_size()) {
        compare("data set size", made.to_string(), said.to_string());
    }
    let further = |run: &Run| format!("{:?} {:?}", run.drawing(), run.releases());
    compare("batches and releases", further(made_by), further(claimed));
    found
}

fn said_in_phases(run: &Run) -> bool {
    run.phases().len() > 1
}
