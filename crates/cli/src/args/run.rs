//! The flags that describe a run, and files that do. Flags override the file's keys.

use super::{nonnegative_integer, real};
use crate::failure::Failure;
use clap::Args;
use std::path::{Path, PathBuf};
use vocabulary::{
    Adjacency, BatchesDescription, Document, Permutation, PhaseDescription, Policy, Resolved,
    RunDescription, Sampling, Stopped,
};

/// A run in flags.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "The run")]
pub struct RunArgs {
    /// Noise on the summed gradient, in units of the clip norm (sigma)
    #[arg(long, value_name = "SIGMA", value_parser = real, allow_hyphen_values = true)]
    pub noise_multiplier: Option<f64>,
    /// Probability that a record is in a batch (q)
    #[arg(long, value_name = "Q", value_parser = real, allow_hyphen_values = true)]
    pub sample_rate: Option<f64>,
    /// Records in the data set; with --batch-size in place of --sample-rate
    #[arg(long, value_name = "N", value_parser = nonnegative_integer, allow_hyphen_values = true)]
    pub dataset_size: Option<u64>,
    /// Expected records in a batch
    #[arg(long, value_name = "B", value_parser = nonnegative_integer, allow_hyphen_values = true)]
    pub batch_size: Option<u64>,
    /// Noisy updates (T)
    #[arg(long, value_name = "T", value_parser = nonnegative_integer, allow_hyphen_values = true)]
    pub steps: Option<u64>,
    /// Passes over the data, in place of --steps
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true)]
    pub epochs: Option<f64>,
    /// Clip norm of a record's gradient [default: 1]
    #[arg(long, value_name = "C", value_parser = real, allow_hyphen_values = true)]
    pub clip_norm: Option<f64>,
    /// How batches are drawn [default: poisson] [possible values: poisson, full, shuffle,
    /// fixed-size, balls-and-bins, truncated-poisson, cyclic-poisson]
    #[arg(long, value_name = "SCHEME", value_parser = sampling)]
    pub sampling: Option<Sampling>,
    /// Which data sets are neighbours [default: add-remove] [possible values: add-remove,
    /// substitute, zero-out]
    #[arg(long, value_name = "RELATION", value_parser = adjacency)]
    pub adjacency: Option<Adjacency>,
    /// Records that the claims are about [default: 1]
    #[arg(long, value_name = "K", value_parser = nonnegative_integer, allow_hyphen_values = true)]
    pub group_size: Option<u64>,
    #[command(flatten)]
    pub batches: BatchArgs,
}

/// What some ways to draw batches need beyond a rate.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Ways to draw batches")]
pub struct BatchArgs {
    /// shuffle: a new order for every epoch, or one for all [default: fresh] [possible values:
    /// fresh, kept]
    #[arg(long, value_name = "ORDER", value_parser = permutation)]
    pub permutation: Option<Permutation>,
    /// fixed-size: draw with replacement
    #[arg(long)]
    pub replacement: bool,
    /// truncated-poisson: the largest batch; of more records a uniform part is kept
    #[arg(long, value_name = "B", value_parser = nonnegative_integer, allow_hyphen_values = true)]
    pub max_batch_size: Option<u64>,
    /// cyclic-poisson: the number of groups, sampled in turn
    #[arg(long, value_name = "C", value_parser = nonnegative_integer, allow_hyphen_values = true)]
    pub cycle_length: Option<u64>,
    /// balls-and-bins: in how many batches of an epoch each record is [default: 1]
    #[arg(long, value_name = "K", value_parser = nonnegative_integer, allow_hyphen_values = true)]
    pub uses_per_epoch: Option<u64>,
    /// Adaptive clipping: noise on the centred count (sensitivity 1/2) of the same batch
    #[arg(long, value_name = "S", value_parser = real, allow_hyphen_values = true)]
    pub count_noise: Option<f64>,
    /// The run was stopped by looking at outputs [possible values: on-output]; needs --max-steps
    #[arg(long, value_name = "HOW", value_parser = stopped)]
    pub stopped: Option<Stopped>,
    /// With --stopped: the steps after which the run would have ended in any case
    #[arg(long, value_name = "T", value_parser = nonnegative_integer, allow_hyphen_values = true)]
    pub max_steps: Option<u64>,
}

/// A run from a file and flags, with the policy the file carried.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub resolved: Resolved,
    pub policy: Option<Policy>,
}

impl RunArgs {
    /// The flags as a description.
    pub fn description(&self) -> RunDescription {
        RunDescription {
            whole: PhaseDescription {
                noise_multiplier: self.noise_multiplier,
                sample_rate: self.sample_rate,
                batch_size: self.batch_size,
                steps: self.steps,
                epochs: self.epochs,
            },
            dataset_size: self.dataset_size,
            clip_norm: self.clip_norm,
            sampling: self.sampling,
            adjacency: self.adjacency,
            // Sizes beyond u32 are beyond the allowed range as well, and refused there.
            group_size: self.group_size.map(|size| u32::try_from(size).unwrap_or(u32::MAX)),
            phases: Vec::new(),
            batches: BatchesDescription {
                permutation: self.batches.permutation,
                replacement: self.batches.replacement.then_some(true),
                max_batch_size: self.batches.max_batch_size,
                cycle_length: self.batches.cycle_length,
                uses_per_epoch: self.batches.uses_per_epoch,
                count_noise: self.batches.count_noise,
                stopped: self.batches.stopped,
                max_steps: self.batches.max_steps,
                ..BatchesDescription::default()
            },
        }
    }

    /// Whether no flag describes anything.
    pub fn is_empty(&self) -> bool {
        self.description() == RunDescription::default()
    }

    /// The run of these flags and, where given, a file.
    ///
    /// # Errors
    /// Everything wrong with the file or the flags.
    pub fn load(&self, file: Option<&Path>) -> Result<Loaded, Failure> {
        let flags = self.description();
        let Some(path) = file else {
            return Ok(Loaded { resolved: flags.resolve()?, policy: None });
        };
        let document = load_file(path)?;
        let resolved = document
            .run
            .overridden_by(&flags)
            .and_then(|run| run.resolve())
            .map_err(|error| Failure::from(error).at(path.display()))?;
        Ok(Loaded { resolved, policy: document.policy })
    }

    /// One run from any number of files (composed in order) and the flags.
    ///
    /// # Errors
    /// Everything wrong with a file, and files that cannot be phases of one run.
    pub fn load_all(&self, files: &[PathBuf]) -> Result<Loaded, Failure> {
        let mut all = Vec::new();
        for path in files {
            all.push(self.load(Some(path))?);
        }
        match all.len() {
            0 => self.load(None),
            1 => Ok(all.remove(0)),
            _ => compose(all),
        }
    }
}

/// Several runs, one after the other on the same records, as one run.
///
/// # Errors
/// When they differ in what a run has only once.
pub fn compose(all: Vec<Loaded>) -> Result<Loaded, Failure> {
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
                return Err(Failure::bad_input(format!(
                    "the files cannot be composed: their {what} differs ({there} and {here}); \
                     make it the same in all of them"
                )));
            }
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

/// Reads a TOML run, or a JSON run or ledger.
///
/// # Errors
/// Names the file and what is wrong with it.
pub fn load_file(path: &Path) -> Result<Document, Failure> {
    let place = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::bad_input(format!("cannot read {place}: {error}"))
            .hint("give a RUN.toml or LEDGER.json, or describe the run with flags")
    })?;
    let looks_like_json = text.trim_start().starts_with('{');
    let parsed = if path.extension().is_some_and(|extension| extension == "json") || looks_like_json
    {
        Document::from_json_str(&text)
    } else {
        Document::from_toml_str(&text)
    };
    parsed.map_err(|error| Failure::from(error).at(place))
}

fn sampling(text: &str) -> Result<Sampling, String> {
    named(text, Sampling::ALL)
}

fn permutation(text: &str) -> Result<Permutation, String> {
    named(text, Permutation::ALL)
}

fn stopped(text: &str) -> Result<Stopped, String> {
    named(text, Stopped::ALL)
}

fn adjacency(text: &str) -> Result<Adjacency, String> {
    named(text, Adjacency::ALL)
}

fn named<T: Copy>(text: &str, all: &[(&str, T)]) -> Result<T, String> {
    all.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        format!("it must be one of: {}", names.join(", "))
    })
}
