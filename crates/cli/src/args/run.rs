//! The flags that describe a run, and files that do. Flags override the file's keys.

use super::{nonnegative_integer, real};
use answers::{Described, Refusal, TextFile};
use clap::Args;
use std::path::{Path, PathBuf};
use vocabulary::{
    Adjacency, BatchesDescription, Matrix, Permutation, PhaseDescription, Run, RunDescription,
    Sampling, Stopped,
};

/// A run in flags.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "The run")]
pub struct RunArgs {
    /// Standard deviation of the noise on the summed gradient, in units of the clip norm (sigma)
    #[arg(short = 's', long, visible_alias = "sigma", value_name = "SIGMA", value_parser = real, allow_hyphen_values = true)]
    pub noise_multiplier: Option<f64>,
    /// Probability that a record is in a batch (q)
    #[arg(short = 'q', long, value_name = "Q", value_parser = real, allow_hyphen_values = true)]
    pub sample_rate: Option<f64>,
    /// Number of records; with --batch-size, it replaces --sample-rate
    #[arg(long, value_name = "N", value_parser = nonnegative_integer, allow_hyphen_values = true)]
    pub dataset_size: Option<u64>,
    /// Expected number of records in a batch
    #[arg(long, value_name = "B", value_parser = nonnegative_integer, allow_hyphen_values = true)]
    pub batch_size: Option<u64>,
    /// Number of noisy updates (T)
    #[arg(short = 'T', long, value_name = "T", value_parser = nonnegative_integer, allow_hyphen_values = true)]
    pub steps: Option<u64>,
    /// Passes over the data; replaces --steps
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true)]
    pub epochs: Option<f64>,
    /// Norm to which each record's gradient is clipped [default: 1]
    #[arg(long, value_name = "C", value_parser = real, allow_hyphen_values = true)]
    pub clip_norm: Option<f64>,
    #[arg(long, value_name = "SCHEME", value_parser = sampling, help = samplings())]
    pub sampling: Option<Sampling>,
    /// Which data sets are neighbours [default: add-remove] [possible values: add-remove,
    /// substitute, zero-out]
    #[arg(long, value_name = "RELATION", value_parser = adjacency)]
    pub adjacency: Option<Adjacency>,
    /// Protect groups of this many records [default: 1]
    #[arg(long, value_name = "K", value_parser = nonnegative_integer, allow_hyphen_values = true)]
    pub group_size: Option<u64>,
    /// The unit of privacy: what one record is, e.g. "one user's messages"
    #[arg(long, value_name = "WORDS")]
    pub unit: Option<String>,
    #[command(flatten)]
    pub batches: BatchArgs,
}

/// What some ways to draw batches need beyond a rate.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Details of batches and noise")]
pub struct BatchArgs {
    /// shuffle: a fresh order for every epoch, or one order that is kept [default: fresh] [possible
    /// values: fresh, kept]
    #[arg(long, value_name = "ORDER", value_parser = permutation)]
    pub permutation: Option<Permutation>,
    /// fixed-size: draw with replacement
    #[arg(long)]
    pub replacement: bool,
    /// truncated-poisson: the largest batch; of a larger one, this many records are kept at random
    #[arg(long, value_name = "B", value_parser = nonnegative_integer, allow_hyphen_values = true)]
    pub max_batch_size: Option<u64>,
    /// cyclic-poisson: the number of groups, sampled in turn
    #[arg(long, value_name = "C", value_parser = nonnegative_integer, allow_hyphen_values = true)]
    pub cycle_length: Option<u64>,
    /// balls-and-bins: number of batches per epoch that contain a record [default: 1]
    #[arg(long, value_name = "K", value_parser = nonnegative_integer, allow_hyphen_values = true)]
    pub uses_per_epoch: Option<u64>,
    /// Adaptive clipping: noise on the count of clipped records (centred, so of sensitivity 1/2)
    #[arg(long, value_name = "S", value_parser = real, allow_hyphen_values = true)]
    pub count_noise: Option<f64>,
    /// Outputs decided when the run ended [possible values: on-output, renyi-filter]; on-output
    /// needs --max-steps, renyi-filter needs --renyi-order and --renyi-budget
    #[arg(long, value_name = "HOW", value_parser = stopped)]
    pub stopped: Option<Stopped>,
    /// With --stopped on-output: the most steps that the run could have had
    #[arg(long, value_name = "T", value_parser = nonnegative_integer, allow_hyphen_values = true)]
    pub max_steps: Option<u64>,
    /// With --stopped renyi-filter: the order (above 1) that was fixed before the training
    #[arg(long, value_name = "ALPHA", value_parser = real, allow_hyphen_values = true)]
    pub renyi_order: Option<f64>,
    /// With --stopped renyi-filter: the most that the steps' Rényi divergences at this order could
    /// add up to, fixed before the training
    #[arg(long, value_name = "B", value_parser = real, allow_hyphen_values = true)]
    pub renyi_budget: Option<f64>,
    /// Correlated noise: a file with the first column of its Toeplitz matrix (.npy, or text)
    #[arg(long, value_name = "FILE", value_parser = coefficients)]
    pub toeplitz: Option<Coefficients>,
    /// With --toeplitz: the most steps that use one record
    #[arg(long, value_name = "K", value_parser = nonnegative_integer, allow_hyphen_values = true)]
    pub uses: Option<u64>,
    /// With --toeplitz: the fewest steps between two uses of a record
    #[arg(long, value_name = "B", value_parser = nonnegative_integer, allow_hyphen_values = true)]
    pub separation: Option<u64>,
}

/// Numbers of a file.
#[derive(Clone, Debug)]
pub struct Coefficients(Vec<f64>);

fn coefficients(path: &str) -> Result<Coefficients, String> {
    let numbers = formats::numbers::read(Path::new(path));
    numbers.map(Coefficients).map_err(|why| answers::plainly(format!("{path}: {why}")))
}

impl BatchArgs {
    fn matrix(&self) -> Option<Matrix> {
        let toeplitz = self.toeplitz.as_ref().map_or_else(Vec::new, |column| column.0.clone());
        let (uses, separation) = (self.uses, self.separation);
        let matrix = Matrix { bands: None, toeplitz, uses, separation };
        (matrix != Matrix::default()).then_some(matrix)
    }
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
                renyi_order: self.batches.renyi_order,
                renyi_budget: self.batches.renyi_budget,
                matrix: self.batches.matrix(),
                ..BatchesDescription::default()
            },
        }
    }

    /// Whether no flag describes anything.
    pub fn is_empty(&self) -> bool {
        self.description() == RunDescription::default()
    }

    /// The run of the flags alone.
    ///
    /// # Errors
    /// Everything wrong with the flags.
    pub fn run(&self) -> Result<Run, Refusal> {
        Ok(self.description().resolve()?.run)
    }
}

/// Files as a question holds them.
///
/// # Errors
/// Names the file that cannot be read.
pub fn read_files(paths: &[PathBuf]) -> Result<Vec<TextFile>, Refusal> {
    paths.iter().map(|path| read_file(path)).collect()
}

/// Reads a TOML run, or a JSON run or ledger.
///
/// # Errors
/// Names the file that cannot be read.
pub fn read_file(path: &Path) -> Result<TextFile, Refusal> {
    let name = path.display().to_string();
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    if let Some("csv" | "jsonl" | "npy" | "parquet") = ending.as_deref()
        && path.is_file()
    {
        return Err(Refusal::bad_input(format!("{name} does not describe a run"))
            .hint("give a RUN.toml or LEDGER.json; `dosimeter audit` reads scores, `dosimeter tune` results"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| {
        Refusal::bad_input(format!("cannot read {name}: {error}"))
            .hint("give a RUN.toml or LEDGER.json, or describe the run with flags")
    })?;
    Ok(TextFile { name, text })
}

/// The run of a file that is claimed.
///
/// # Errors
/// Names the file and what is wrong with it.
pub fn claimed(path: Option<&Path>) -> Result<Option<Described>, Refusal> {
    let Some(path) = path else { return Ok(None) };
    let file = read_file(path).map_err(|failure| {
        failure.hint("give the RUN.toml or the ledger of the run that is claimed")
    })?;
    Ok(Some(file.document()?.run.into()))
}

fn samplings() -> String {
    let names: Vec<&str> = Sampling::ALL.iter().map(|(name, _)| *name).collect();
    format!("How batches are drawn [default: poisson] [possible values: {}]", names.join(", "))
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
