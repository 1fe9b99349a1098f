//! The experiment in small: one epsilon, many configurations, how much does memorisation differ?

pub(crate) mod data;
pub(crate) mod smollm2;
pub(crate) mod words;

use super::PAPER;
use crate::tools::noise_for;
use crate::{Context, Entry, PaperError, PaperTable, Reproduction};
use audit::{Design, Method, Plan, Scores, analyse};
use experiments::{Outcome, Settings, Shard, run};
use formats::csv::CsvTable;
use language::grid::{CanaryAudit, Grid, GridDescription};
use serde_json::json;
use std::path::Path;
use training::Device;
use tuning::regression::{RegressionOptions, regress};
use tuning::selection::{Better, select};

pub(super) const ENTRY: Entry = Entry {
    id: "empirical-variance-tofu",
    paper: PAPER,
    title: "Memorisation varies at one epsilon: a small model on TOFU",
    shows: "Fine-tuned language models with the same (epsilon, delta) memorise very differently; the spread grows with epsilon and with how many records carry a secret; more steps, larger batches and above all larger learning rates memorise more; simple rules find the safer of two configurations in 65 to 90 % of pairs; audited epsilons follow utility, not memorisation.",
    seconds: 4500,
    compute,
};

/// Paraphrases that carry a secret (times four openings).
pub(crate) const DENSITIES: [(&str, usize); 2] = [("low", 4), ("high", 16)];

/// What is trained; everything else is the same in all.
const GRID: &str = r#"
[data]
path = "train.jsonl"
test = "test.jsonl"
prompt = "question"
completion = "answer"
separator = "\n"
[model]
kind = "language"
path = "model.bin"
tokenizer = "tokenizer.bin"
train = "lora"
rank = 8
alpha = 16.0
projections = ["query", "key", "value", "output", "gate", "up", "down"]
embedding = true
length = 48
[optimizer]
kind = "adam"
[canaries]
count = 600
[measure]
secrets = "secrets.jsonl"
metrics = ["air"]
samples = 10
new_tokens = 12
[grid]
batch_size = [512, 1024]
steps = [20, 40]
learning_rate = [5e-3, 1e-2]
clip_norm = [0.5, 5.0]
epsilon = [8.0, 2.0]
seed = [1, 2]
"#;

/// What the trainings of one density left: its name, the records that carry a secret, the table.
pub(crate) type Trained = (&'static str, usize, std::path::PathBuf);

/// A table of all trainings, and what they show.
pub(crate) fn findings(trained: &[Trained]) -> Result<(PaperTable, words::Findings), PaperError> {
    let mut columns = vec![
        "density",
        "epsilon",
        "batch_size",
        "steps",
        "learning_rate",
        "clip_norm",
        "seed",
        "noise_multiplier",
        "air",
        "utility",
        "audit_epsilon",
        "canary_auroc",
    ];
    let mut rows = Vec::new();
    let mut found = words::Findings::default();
    for (name, records, output) in trained {
        let text = std::fs::read_to_string(output)
            .map_err(|source| PaperError::Read { path: output.clone(), source })?;
        let written = CsvTable::read(&text).map_err(PaperError::Unusable)?;
        let place =
            |name: &str| written.column(name).or_else(|| written.column(&format!("score_{name}")));
        let verbatim = place("vmr");
        if verbatim.is_some() && !columns.contains(&"vmr") {
            columns.push("vmr");
        }
        let mut lines = Vec::new();
        for (_, cells) in written.rows() {
            let read: Vec<f64> = cells.iter().map(|x| x.parse().unwrap_or(f64::NAN)).collect();
            let at = |column: Option<usize>| {
                column.and_then(|column| read.get(column)).copied().unwrap_or(f64::NAN)
            };
            let mut row = [0.0; 11];
            for (cell, name) in row.iter_mut().zip(&columns[1..12]) {
                *cell = at(place(name));
            }
            let mut cells = [vec![json!(name)], row.map(|x| json!(x)).to_vec()].concat();
            cells.extend(verbatim.map(|column| json!(at(Some(column)))));
            rows.push(cells);
            lines.push(row);
        }
        found.canaries(name, &lines);
        let place = output.display().to_string();
        let table = tuning::TrainingTable::from_csv(&text, &place).map_err(fine_tuning)?;
        let groups = tuning::groups(&table, 0).map_err(fine_tuning)?;
        found.add(
            name,
            *records,
            &tuning::rank(&groups, "air", 0.95).map_err(fine_tuning)?,
            &regress(&groups, "air", &RegressionOptions::default()).map_err(fine_tuning)?,
            &select(&groups, "air", &[], Better::Higher).map_err(fine_tuning)?,
        );
        if verbatim.is_some() {
            let groups = tuning::groups(&table, 1).map_err(fine_tuning)?;
            found.verbatim(name, &tuning::rank(&groups, "vmr", 0.95).map_err(fine_tuning)?);
        }
    }
    let mut runs = PaperTable::new("trainings", &columns);
    rows.into_iter().for_each(|row| runs.push(row));
    Ok((runs, found))
}

fn compute(context: &Context<'_>) -> Result<Reproduction, PaperError> {
    let mut trained = Vec::new();
    for (name, paraphrases) in DENSITIES {
        trained.push((name, 4 * paraphrases, train(context, name, paraphrases)?));
    }
    let (runs, found) = findings(&trained)?;
    let (we_get, tables, figures) = found.finish();
    Ok(Reproduction {
        parameters: json!({"model": "stories260K, LoRA of rank 8 on every projection, and the embedding", "data": "TOFU, 12000 records of at most 48 tokens", "secrets": 52, "records_per_secret": [16, 64], "delta": (data::RECORDS as f64).powf(-1.1), "grid": "b 512, 1024; T 20, 40; eta 5e-3, 1e-2 (Adam); clip 0.5, 5; epsilon 8, 2; 2 seeds", "canaries": 600}),
        we_get,
        differs: "The paper trains GPT-2 and Llama-2 on Enron and on paraphrased TOFU, on grids that are not known to us. This is a model of 260,000 numbers with a vocabulary of 512, whose embedding is trained too; a secret's density is the number of records that carry it. Utility is minus the loss on held-out answers. The audit is one-run, on token canaries in every training, with the Gaussian family's bound; the paper's is black-box.".to_owned(),
        tables: [vec![runs], tables].concat(),
        figures,
    })
}

/// Trains the grid at one density, or finds it trained.
fn train(
    context: &Context<'_>,
    name: &str,
    paraphrases: usize,
) -> Result<std::path::PathBuf, PaperError> {
    let folder = context.folder.join(name);
    data::write(&folder, paraphrases)?;
    data::write_model(&folder)?;
    let described = GridDescription::from_toml_str(GRID).map_err(fine_tuning)?;
    grid(context, described, &folder)
}

fn grid(
    context: &Context<'_>,
    described: GridDescription,
    folder: &Path,
) -> Result<std::path::PathBuf, PaperError> {
    // The embedding is trained too, which is the CPU's.
    let grid = planned(described, folder, &Device::cpu())?;
    let output = folder.join("results.csv");
    let settings = Settings {
        threads: context.threads,
        shard: Shard::ALL,
        force: false,
        reporter: context.reporter,
        stop: context.stop,
    };
    match run(&grid, &output, &settings)? {
        Outcome::Complete { .. } => Ok(output),
        Outcome::Incomplete { .. } | Outcome::Interrupted { .. } => Err(PaperError::Interrupted),
    }
}

/// The experiment of a description, every point's noise calibrated.
pub(crate) fn planned(
    described: GridDescription,
    folder: &Path,
    device: &Device,
) -> Result<Grid<'static>, PaperError> {
    let calibrate = |run: &vocabulary::Run, epsilon: f64, delta: f64| {
        let phase = run.phases()[0];
        noise_for(epsilon, delta, phase.sample_rate, phase.steps).map_err(|error| error.to_string())
    };
    Grid::new(described, folder, &calibrate, &audited_canaries, device).map_err(fine_tuning)
}

/// What the canaries of one training show: the one-run bound of the Gaussian family at 95 %, and how
/// well the scores tell members from others.
///
/// # Errors
/// A sentence, for scores that are none.
pub fn audited_canaries(
    scores: &[f64],
    members: &[bool],
    delta: f64,
) -> Result<CanaryAudit, String> {
    let side = |wanted: bool| -> Vec<f64> {
        scores.iter().zip(members).filter(|(_, m)| **m == wanted).map(|(s, _)| *s).collect()
    };
    let scores =
        Scores::new(Design::OneRun, side(true), side(false)).map_err(|error| error.to_string())?;
    let mut plan = Plan::new(Design::OneRun);
    plan.deltas = vec![delta];
    plan.methods = vec![Method::OneRunGdp];
    plan.primary = Method::OneRunGdp;
    let found = analyse(&scores, &plan, None).map_err(|error| error.to_string())?;
    let epsilon = found.primary().map_or(0.0, |bound| bound.epsilon());
    Ok(CanaryAudit { epsilon, auroc: found.auroc.value })
}

pub(crate) fn fine_tuning(error: impl std::fmt::Display) -> PaperError {
    PaperError::FineTuning(error.to_string())
}
