//! The run that a question is about: files (TOML, JSON or ledgers), keys that override theirs,
//! or keys alone; several files are composed in order.

use crate::Refusal;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use vocabulary::{Policy, Resolved, Run, RunDescription, RunFile};

/// A file that a front end has read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextFile {
    /// Named in messages.
    #[serde(default)]
    pub name: String,
    pub text: String,
}

impl TextFile {
    /// The run and the policy in it; what begins with a brace or is called `.json` is JSON.
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub fn document(&self) -> Result<RunFile, Refusal> {
        let is_json = self.name.ends_with(".json") || self.text.trim_start().starts_with('{');
        let parsed = if is_json {
            RunFile::from_json_str(&self.text)
        } else {
            RunFile::from_toml_str(&self.text)
        };
        parsed.map_err(|error| Refusal::from(error).at(&self.name))
    }
}

/// The keys of a `[run]` table.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Value")]
pub enum Described {
    /// By a front end with types.
    Keys(Box<RunDescription>),
    /// In a document; read when the question is asked, so that every door complains alike.
    Written(Value),
}

impl Default for Described {
    fn default() -> Self {
        Self::Keys(Box::default())
    }
}

impl From<Value> for Described {
    fn from(value: Value) -> Self {
        Self::Written(value)
    }
}

impl From<RunDescription> for Described {
    fn from(description: RunDescription) -> Self {
        Self::Keys(Box::new(description))
    }
}

impl Described {
    /// # Errors
    /// Unknown keys and values of the wrong type.
    pub fn description(&self) -> Result<RunDescription, Refusal> {
        match self {
            Self::Keys(description) => Ok(description.as_ref().clone()),
            Self::Written(run) if run.is_object() => {
                Ok(RunFile::from_json_str(&json!({ "run": run }).to_string())?.run)
            }
            Self::Written(_) => {
                Err(Refusal::bad_input("`run` must be an object with the keys of a [run] table"))
            }
        }
    }

    /// The checked run.
    ///
    /// # Errors
    /// What is missing, contradictory or out of range.
    pub fn run(&self) -> Result<Run, Refusal> {
        Ok(self.description()?.resolve()?.run)
    }
}

/// A checked run, with the policy that its file carried.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub resolved: Resolved,
    pub policy: Option<Policy>,
}

/// One run from any number of files, each overridden by the keys; of the keys alone without a file.
///
/// # Errors
/// Everything wrong with a file or the keys, and files that cannot be phases of one run.
pub fn load(files: &[TextFile], run: &Described) -> Result<Loaded, Refusal> {
    let keys = run.description()?;
    if files.is_empty() {
        return Ok(Loaded { resolved: keys.resolve()?, policy: None });
    }
    let mut all = Vec::new();
    for file in files {
        let document = file.document()?;
        let resolved = document
            .run
            .overridden_by(&keys)
            .and_then(|run| run.resolve())
            .map_err(|error| Refusal::from(error).of(&keys, &file.name))?;
        all.push(Loaded { resolved, policy: document.policy });
    }
    if all.len() == 1 { Ok(all.remove(0)) } else { compose(all) }
}

/// Several runs, one after the other on the same records, as one run.
fn compose(all: Vec<Loaded>) -> Result<Loaded, Refusal> {
    let first = &all[0].resolved.run;
    let mut phases = Vec::new();
    let mut notes: Vec<String> = Vec::new();
    for loaded in &all {
        let run = &loaded.resolved.run;
        let differences = [
            ("sampling", run.sampling().as_str().to_owned(), first.sampling().as_str().to_owned()),
            (
                "adjacency",
                run.adjacency().as_str().to_owned(),
                first.adjacency().as_str().to_owned(),
            ),
            ("clip norm", run.clip_norm().to_string(), first.clip_norm().to_string()),
            ("unit of privacy", format!("{:?}", run.unit()), format!("{:?}", first.unit())),
            ("group size", run.group_size().to_string(), first.group_size().to_string()),
            (
                "way to draw batches",
                format!("{:?} {:?}", run.drawing(), run.releases()),
                format!("{:?} {:?}", first.drawing(), first.releases()),
            ),
            (
                "data set size",
                format!("{:?}", run.dataset_size()),
                format!("{:?}", first.dataset_size()),
            ),
        ];
        for (what, here, there) in differences {
            if here != there {
                return Err(Refusal::bad_input(format!(
                    "the files cannot be composed: their {what} differs ({there} and {here}); \
                     make it the same in all of them"
                )));
            }
        }
        // Each would have a rule of its own for when it ends.
        if run.max_steps().is_some() || run.renyi_filter().is_some() {
            return Err(Refusal::bad_input(
                "the files cannot be composed: outputs decided when one of the runs ended; describe the \
                 whole training as one run",
            ));
        }
        if run.matrix().is_some() {
            return Err(Refusal::bad_input(
                "the files cannot be composed: the noise of one of the runs is correlated between its steps; \
                 give each file to a command of its own",
            ));
        }
        phases.extend_from_slice(run.phases());
        for note in &loaded.resolved.notes {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
    }
    notes.push(format!("{} files composed in order on the same records", all.len()));
    let run = first.with_phases(phases)?;
    Ok(Loaded { resolved: Resolved { run, notes }, policy: all.into_iter().find_map(|l| l.policy) })
}
