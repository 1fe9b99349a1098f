//! A run as a person writes it: incomplete, in a file or in flags, with alternatives (sample
//! rate, or data set and batch size; steps, or epochs). [`RunDescription::resolve`] checks it,
//! fills the defaults and says which ones it used.

mod batches;
mod phase;

use crate::node::{Node, shortened, unknown_key};
use crate::run::Stopped;
use crate::{
    Adjacency, FurtherRelease, LensName, Matrix, Permutation, Policy, Run, RunError, Sampling,
};
use phase::Surroundings;

/// One phase as written; what is missing is taken from the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseDescription {
    pub noise_multiplier: Option<f64>,
    pub sample_rate: Option<f64>,
    pub batch_size: Option<u64>,
    pub steps: Option<u64>,
    pub epochs: Option<f64>,
}

/// A run as written. Field names are the keys of the file and, in kebab-case, the flags.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunDescription {
    pub whole: PhaseDescription,
    pub dataset_size: Option<u64>,
    pub clip_norm: Option<f64>,
    pub sampling: Option<Sampling>,
    pub adjacency: Option<Adjacency>,
    pub group_size: Option<u32>,
    pub phases: Vec<PhaseDescription>,
    /// What a record is: the unit of privacy.
    pub unit: Option<String>,
    /// What some ways to draw batches need beyond a rate.
    pub batches: BatchesDescription,
}

/// What some ways to draw batches need beyond a rate, and what else is released, as written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchesDescription {
    pub permutation: Option<Permutation>,
    pub replacement: Option<bool>,
    pub max_batch_size: Option<u64>,
    pub cycle_length: Option<u64>,
    pub uses_per_epoch: Option<u64>,
    /// Noise on the centred count of adaptive clipping (sensitivity 1/2).
    pub count_noise: Option<f64>,
    pub releases: Vec<FurtherRelease>,
    pub matrix: Option<Matrix>,
    pub stopped: Option<Stopped>,
    pub max_steps: Option<u64>,
    pub renyi_order: Option<f64>,
    pub renyi_budget: Option<f64>,
}

/// A file: the run, and the policy it may carry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFile {
    pub run: RunDescription,
    pub policy: Option<Policy>,
}

/// A checked run together with what was assumed on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    pub run: Run,
    /// Defaults used and values derived, in words.
    pub notes: Vec<String>,
}

const RUN_KEYS: &[&str] = &[
    "noise_multiplier",
    "sample_rate",
    "dataset_size",
    "batch_size",
    "steps",
    "epochs",
    "clip_norm",
    "sampling",
    "adjacency",
    "group_size",
    "unit",
    "permutation",
    "replacement",
    "max_batch_size",
    "cycle_length",
    "uses_per_epoch",
    "count_noise",
    "release",
    "matrix",
    "stopped",
    "max_steps",
    "renyi_order",
    "renyi_budget",
    "phase",
    "seed",
];
const PHASE_KEYS: &[&str] = &["noise_multiplier", "sample_rate", "batch_size", "steps", "epochs"];
/// Tables of a file that other commands read.
const FILE_KEYS: &[&str] = &[
    "run",
    "policy",
    "data",
    "model",
    "optimizer",
    "schema",
    "privacy",
    "canaries",
    "grid",
    "measure",
];

impl RunFile {
    /// Reads a TOML file with a `[run]` table (and perhaps a `[policy]`).
    ///
    /// # Errors
    /// Syntax errors with their line; unknown keys with the nearest known one.
    pub fn from_toml_str(text: &str) -> Result<Self, RunError> {
        Self::from_tables(Node::from_toml(text)?.table("the file")?, true)
    }

    /// Reads JSON: a run, a document with a `run` in it, or a `dosimeter.ledger/1`.
    ///
    /// # Errors
    /// As [`RunFile::from_toml_str`].
    pub fn from_json_str(text: &str) -> Result<Self, RunError> {
        let entries = Node::from_json(text)?.table("run").map_err(|_| RunError::NoRunKey)?;
        let schema = entries.iter().find(|(key, _)| key == "schema");
        let ours = match schema {
            Some((_, node)) => {
                let name = node.text("schema")?;
                if !["dosimeter.ledger/1", "dosimeter.run/1", "dosimeter.account/1"].contains(&name)
                {
                    return Err(RunError::Schema(shortened(name)));
                }
                true
            }
            None => false,
        };
        if entries.iter().any(|(key, _)| key == "run") {
            // A ledger carries much that is not the run; only its run is read here.
            Self::from_tables(entries, !ours)
        } else if ours {
            Err(RunError::NoRunKey)
        } else {
            Ok(Self { run: RunDescription::from_entries(entries)?, policy: None })
        }
    }

    fn from_tables(entries: Vec<(String, Node)>, strict: bool) -> Result<Self, RunError> {
        let mut document = Self::default();
        let mut found = false;
        for (key, node) in entries {
            match key.as_str() {
                "run" => {
                    document.run = RunDescription::from_entries(node.table("run")?)?;
                    found = true;
                }
                "policy" if strict => document.policy = Some(policy(node.table("policy")?)?),
                other if strict && RUN_KEYS.contains(&other) => {
                    return Err(RunError::Misplaced(key));
                }
                other if strict && !FILE_KEYS.contains(&other) => {
                    return Err(unknown_key(other, "the file", FILE_KEYS));
                }
                _ => {}
            }
        }
        if found { Ok(document) } else { Err(RunError::NoRunTable) }
    }
}

fn policy(entries: Vec<(String, Node)>) -> Result<Policy, RunError> {
    let mut policy = Policy::default();
    for (key, node) in entries {
        match key.as_str() {
            "max_epsilon" => policy.max_epsilon = Some(node.number(&key)?),
            "delta" => policy.delta = Some(node.number(&key)?),
            "max_mu" => policy.max_mu = Some(node.number(&key)?),
            "max_advantage" => policy.max_advantage = Some(node.number(&key)?),
            "min_bayes_security" => policy.min_bayes_security = Some(node.number(&key)?),
            "max_tpr" => policy.max_tpr = Some(node.number(&key)?),
            "fpr" => policy.fpr = Some(node.number(&key)?),
            "lens" => {
                let text = node.text(&key)?;
                policy.lens = Some(LensName::parse(text).ok_or_else(|| RunError::Choice {
                    key: key.clone(),
                    value: shortened(text),
                    allowed: LensName::ALL.map(LensName::as_str).join(", "),
                })?);
            }
            _ => return Err(unknown_key(&key, "[policy]", Policy::KEYS)),
        }
    }
    Ok(policy)
}

impl RunDescription {
    fn from_entries(entries: Vec<(String, Node)>) -> Result<Self, RunError> {
        let mut run = Self::default();
        for (key, node) in entries {
            if run.whole.take(&key, &node)? || run.batches.take(&key, &node)? {
                continue;
            }
            match key.as_str() {
                "dataset_size" => run.dataset_size = Some(node.integer(&key)?),
                "clip_norm" => run.clip_norm = Some(node.number(&key)?),
                "sampling" => run.sampling = Some(choice(&key, &node, Sampling::ALL)?),
                "adjacency" => run.adjacency = Some(choice(&key, &node, Adjacency::ALL)?),
                "group_size" => {
                    let size = node.integer(&key)?;
                    run.group_size = Some(u32::try_from(size).unwrap_or(u32::MAX));
                }
                "unit" => run.unit = Some(node.text(&key)?.to_owned()),
                // Of interest to training only.
                "seed" => {}
                "phase" | "phases" => {
                    for item in node.list("phase")? {
                        run.phases.push(PhaseDescription::from_entries(item.table("phase")?)?);
                    }
                }
                _ => return Err(unknown_key(&key, "[run]", RUN_KEYS)),
            }
        }
        Ok(run)
    }

    /// The same description with `flags` laid over it: what a flag says replaces what the file
    /// says, including its alternative (a sample rate replaces a batch size).
    ///
    /// # Errors
    /// [`RunError::Contradiction`] when flags would change single values of a run with phases.
    pub fn overridden_by(mut self, flags: &Self) -> Result<Self, RunError> {
        let over = &flags.whole;
        if !self.phases.is_empty() && *over != PhaseDescription::default() {
            return Err(RunError::Contradiction(
                "the file describes several phases, so noise, rate and steps cannot be overridden \
                 by flags; edit its [[run.phase]] tables"
                    .into(),
            ));
        }
        let whole = &mut self.whole;
        if over.noise_multiplier.is_some() {
            whole.noise_multiplier = over.noise_multiplier;
        }
        if over.sample_rate.is_some() || over.batch_size.is_some() {
            (whole.sample_rate, whole.batch_size) = (over.sample_rate, over.batch_size);
        }
        if over.steps.is_some() || over.epochs.is_some() {
            (whole.steps, whole.epochs) = (over.steps, over.epochs);
        }
        self.dataset_size = flags.dataset_size.or(self.dataset_size);
        self.clip_norm = flags.clip_norm.or(self.clip_norm);
        self.sampling = flags.sampling.or(self.sampling);
        self.adjacency = flags.adjacency.or(self.adjacency);
        self.group_size = flags.group_size.or(self.group_size);
        self.unit = flags.unit.clone().or(self.unit);
        self.batches = self.batches.overridden_by(&flags.batches);
        Ok(self)
    }

    /// Whether this description gives a value for a key of the whole run.
    ///
    /// ```
    /// use vocabulary::RunDescription;
    /// let flags = RunDescription { clip_norm: Some(1.0), ..RunDescription::default() };
    /// assert!(flags.states("clip_norm") && !flags.states("sample_rate"));
    /// ```
    pub fn states(&self, key: &str) -> bool {
        match key {
            "noise_multiplier" => self.whole.noise_multiplier.is_some(),
            "sample_rate" => self.whole.sample_rate.is_some(),
            "batch_size" => self.whole.batch_size.is_some(),
            "steps" => self.whole.steps.is_some(),
            "epochs" => self.whole.epochs.is_some(),
            "dataset_size" => self.dataset_size.is_some(),
            "clip_norm" => self.clip_norm.is_some(),
            "group_size" => self.group_size.is_some(),
            _ => false,
        }
    }

    /// The same training with its batches drawn in another way: expected batches stay as large, and
    /// keys that belong to other schemes are left out.
    pub fn drawn(&self, sampling: Sampling) -> Self {
        let mut other = self.clone();
        let groups = |scheme: Sampling| match scheme {
            Sampling::CyclicPoisson => self.batches.cycle_length.unwrap_or(1).max(1) as f64,
            _ => 1.0,
        };
        // A rate is that within a group.
        let scale = groups(sampling) / groups(self.sampling.unwrap_or_default());
        for phase in std::iter::once(&mut other.whole).chain(&mut other.phases) {
            phase.sample_rate = phase.sample_rate.map(|rate| rate * scale);
        }
        other.sampling = Some(sampling);
        other.batches.keep_only(sampling.keys());
        other
    }

    /// Checks the description and fills the defaults.
    ///
    /// ```
    /// use vocabulary::RunDescription;
    /// let mut written = RunDescription::default();
    /// written.whole.noise_multiplier = Some(1.0);
    /// written.whole.batch_size = Some(256);
    /// written.dataset_size = Some(51_200);
    /// written.whole.epochs = Some(2.0);
    /// let run = written.resolve()?.run;
    /// assert_eq!((run.phases()[0].sample_rate, run.steps()), (0.005, 400));
    /// # Ok::<(), vocabulary::RunError>(())
    /// ```
    ///
    /// # Errors
    /// What is missing, contradictory or out of range, by name and value.
    pub fn resolve(&self) -> Result<Resolved, RunError> {
        let mut notes = Vec::new();
        let sampling = self.sampling.unwrap_or_else(|| {
            notes.push("sampling poisson (default)".into());
            Sampling::Poisson
        });
        let adjacency = self.adjacency.unwrap_or_else(|| {
            notes.push("adjacency add-remove (default)".into());
            Adjacency::AddRemove
        });
        let clip_norm = self.clip_norm.unwrap_or_else(|| {
            notes.push("clip norm 1 (default; epsilon does not depend on it)".into());
            1.0
        });
        let (details, effective) = self.batches.resolve(sampling, &mut notes);
        let mut builder = Run::builder()
            .sampling(sampling)
            .adjacency(adjacency)
            .clip_norm(clip_norm)
            .group_size(self.group_size.unwrap_or(1));
        if let Some(size) = self.dataset_size {
            builder = builder.dataset_size(size);
        }
        let place = Surroundings {
            dataset_size: self.dataset_size,
            sampling,
            cycle_length: self.batches.cycle_length.unwrap_or(1),
        };
        let written: Vec<PhaseDescription> = if self.phases.is_empty() {
            vec![self.whole.clone()]
        } else {
            self.phases.iter().map(|phase| phase.filled_from(&self.whole)).collect()
        };
        let missing = written.iter().filter(|phase| phase.noise_multiplier.is_none()).count();
        // Releases in place of a noise multiplier: together they are one release of this noise.
        let instead = effective.filter(|_| missing == written.len());
        for mut phase in written {
            if let Some(noise) = instead {
                phase.noise_multiplier = Some(noise);
            }
            builder = builder.phases([phase.resolve(&place, &mut notes)?]);
        }
        let mut details = details;
        details.unit.clone_from(&self.unit);
        if let Some(noise) = instead {
            notes.push(format!(
                "noise multiplier {noise}: {} releases on one batch, their squares added",
                details.releases.len()
            ));
            details.releases.clear();
        }
        Ok(Resolved { run: builder.details(details).build()?, notes })
    }
}

fn choice<T: Copy>(key: &str, node: &Node, all: &[(&str, T)]) -> Result<T, RunError> {
    let text = node.text(key)?;
    all.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
        RunError::Choice {
            key: key.to_owned(),
            value: shortened(text),
            allowed: all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
        }
    })
}

impl Run {
    /// Reads a run from TOML; see [`RunFile::from_toml_str`].
    ///
    /// ```
    /// let run = vocabulary::Run::from_toml_str(
    ///     "[run]\nnoise_multiplier = 1.0\nsample_rate = 0.01\nsteps = 1e3\n")?;
    /// assert_eq!(run.steps(), 1000);
    /// # Ok::<(), vocabulary::RunError>(())
    /// ```
    ///
    /// # Errors
    /// Everything that is wrong with the text or the run.
    pub fn from_toml_str(text: &str) -> Result<Self, RunError> {
        Ok(RunFile::from_toml_str(text)?.run.resolve()?.run)
    }

    /// Reads a run or a ledger from JSON; see [`RunFile::from_json_str`].
    ///
    /// # Errors
    /// Everything that is wrong with the text or the run.
    pub fn from_json(text: &str) -> Result<Self, RunError> {
        Ok(RunFile::from_json_str(text)?.run.resolve()?.run)
    }
}
