//! The flags that describe a run, and files that do. Flags override the file's keys.

use super::{nonnegative_integer, real};
use crate::failure::Failure;
use crate::print::plain;
use answers::{Described, TextFile};
use clap::Args;
use std::path::{Path, PathBuf};
use vocabulary::{
    Adjacency, BatchesDescription, Permutation, PhaseDescription, Run, RunDescription, Sampling,
    Stopped,
};

/// A run in flags.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "The run")]
pub struct RunArgs {
    /// Noise on the summed gradient, in units of the clip norm (sigma)
    #[arg(short = 's', long, visible_alias = "sigma", value_name = "SIGMA", value_parser = real, allow_hyphen_values = true)]
    pub noise_multiplier: Option<f64>,
    /// Probability that a record is in a batch (q)
    #[arg(short = 'q', long, value_name = "Q", value_parser = real, allow_hyphen_values = true)]
    pub sample_rate: Option<f64>,
    /// Records in the data set; with --batch-size in place of --sample-rate
    #[arg(long, value_name = "N", value_parser = nonnegative_integer, allow_hyphen_values = true)]
    pub dataset_size: Option<u64>,
    /// Expected records in a batch
    #[arg(long, value_name = "B", value_parser = nonnegative_integer, allow_hyphen_values = true)]
    pub batch_size: Option<u64>,
    /// Noisy updates (T)
    #[arg(short = 'T', long, value_name = "T", value_parser = nonnegative_integer, allow_hyphen_values = true)]
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
    /// What a record is, in words: the unit of privacy, e.g. "one user's messages"
    #[arg(long, value_name = "WORDS")]
    pub unit: Option<String>,
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
            unit: self.unit.clone(),
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

    /// The flags as words of a command line, to be read again as the same description.
    pub fn words(&self) -> Vec<String> {
        let Self {
            noise_multiplier,
            sample_rate,
            dataset_size,
            batch_size,
            steps,
            epochs,
            clip_norm,
            sampling,
            adjacency,
            group_size,
            unit,
            batches,
        } = self;
        let BatchArgs {
            permutation,
            replacement,
            max_batch_size,
            cycle_length,
            uses_per_epoch,
            count_noise,
            stopped,
            max_steps,
        } = batches;
        let real = |value: &Option<f64>| value.map(plain);
        let whole = |value: &Option<u64>| value.map(|value| value.to_string());
        let mut words = Vec::new();
        for (name, value) in [
            ("noise-multiplier", real(noise_multiplier)),
            ("sample-rate", real(sample_rate)),
            ("dataset-size", whole(dataset_size)),
            ("batch-size", whole(batch_size)),
            ("steps", whole(steps)),
            ("epochs", real(epochs)),
            ("clip-norm", real(clip_norm)),
            ("sampling", sampling.map(|scheme| scheme.as_str().to_owned())),
            ("adjacency", adjacency.map(|relation| relation.as_str().to_owned())),
            ("group-size", whole(group_size)),
            ("unit", unit.clone()),
            ("permutation", permutation.map(|order| name_of(order, Permutation::ALL))),
            ("max-batch-size", whole(max_batch_size)),
            ("cycle-length", whole(cycle_length)),
            ("uses-per-epoch", whole(uses_per_epoch)),
            ("count-noise", real(count_noise)),
            ("stopped", stopped.map(|how| name_of(how, Stopped::ALL))),
            ("max-steps", whole(max_steps)),
        ] {
            words.extend(flag(name, value));
        }
        if *replacement {
            words.push("--replacement".to_owned());
        }
        words
    }

    /// Whether no flag describes anything.
    pub fn is_empty(&self) -> bool {
        self.description() == RunDescription::default()
    }

    /// The run of the flags alone.
    ///
    /// # Errors
    /// Everything wrong with the flags.
    pub fn run(&self) -> Result<Run, Failure> {
        Ok(self.description().resolve()?.run)
    }
}

/// Files as a question holds them.
///
/// # Errors
/// Names the file that cannot be read.
pub fn read_files(paths: &[PathBuf]) -> Result<Vec<TextFile>, Failure> {
    paths.iter().map(|path| read_file(path)).collect()
}

/// Reads a TOML run, or a JSON run or ledger.
///
/// # Errors
/// Names the file that cannot be read.
pub fn read_file(path: &Path) -> Result<TextFile, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::bad_input(format!("cannot read {name}: {error}"))
            .hint("give a RUN.toml or LEDGER.json, or describe the run with flags")
    })?;
    Ok(TextFile { name, text })
}

/// The run of a file that is claimed.
///
/// # Errors
/// Names the file and what is wrong with it.
pub fn claimed(path: Option<&Path>) -> Result<Option<Described>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let file = read_file(path).map_err(|failure| {
        failure.hint("give the RUN.toml or the ledger of the run that is claimed")
    })?;
    Ok(Some(file.document()?.run.into()))
}

/// A flag with its value, where it has one.
pub fn flag(name: &str, value: Option<String>) -> Vec<String> {
    match value {
        None => Vec::new(),
        // What begins with a hyphen would be read as a flag.
        Some(value) if value.starts_with('-') => vec![format!("--{name}={value}")],
        Some(value) => vec![format!("--{name}"), value],
    }
}

fn name_of<T: PartialEq>(value: T, all: &[(&str, T)]) -> String {
    all.iter().find(|(_, one)| *one == value).map_or_else(String::new, |(name, _)| (*name).into())
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
