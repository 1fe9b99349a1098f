//! Table 1, trained: a language model on conversations, three batch sizes at one heuristic epsilon,
//! with perplexity and what token canaries show.
//!
//! Every training has canaries (tokens that the data never use, each in with probability 1/2), so
//! that each row is audited from its own trainings. Trainings are trials of one experiment; the scores
//! of their canaries are kept beside its table, and audited whenever the table is drawn.

mod canaries;
mod data;
mod work;

use crate::last_iterate::PAPER;
use crate::tools::{composition, epsilon, last_iterate, mean_and_deviation};
use crate::trained::TrainedContext;
use crate::trained::{TrainedEntry, needs_data};
use crate::{Entry, PaperError, PaperTable, Reproduction};
use formats::csv::CsvTable;
use games::DpSgd;
use serde_json::json;
use std::path::Path;
use vocabulary::figure::{Axis, Figure, Series};

pub(super) const ENTRY: TrainedEntry = TrainedEntry {
    entry: Entry {
        id: "last-iterate-table-1-trained",
        paper: PAPER,
        title: "Table 1, trained: a language model on conversations",
        shows: "Gemma 2 fine-tuned on PersonaChat with three batch sizes: heuristic and standard epsilon, perplexity, and the epsilon audited with token canaries. Who trusts the heuristic may train with smaller batches; the audits stay far below it.",
        seconds: 3600,
        compute: needs_data,
    },
    compute,
};

const DELTA: f64 = 1e-5;
const HEURISTIC: f64 = 6.5;
const EPOCHS: f64 = 8.0;
/// Batch size and Adam's learning rate for the small model, falling with the root of the batch; not
/// tuned.
const BATCHES: [(u64, f64); 3] = [(2048, 8e-3), (512, 4e-3), (128, 2e-3)];
const RECORDS: usize = 10_000;
const TEST_RECORDS: usize = 1_000;
const CANARIES: usize = 1_000;
/// Tokens before a canary's own.
const PREFIX: usize = 1;
const SEEDS: u64 = 4;

/// A finished training: a row of the experiment's table, with what its canaries show.
struct Trained {
    /// Batch size, steps, noise multiplier, seed, test loss.
    cells: [f64; 5],
    /// The loss before training.
    before: f64,
    /// For any mechanism, in the Gaussian family, AUROC.
    audited: [f64; 3],
}

impl Trained {
    /// Reads a row, and audits the scores that are beside the table.
    fn read(cells: &[String], scores: &Path) -> Result<Self, PaperError> {
        let numbers: Vec<f64> = cells.iter().filter_map(|cell| cell.parse().ok()).collect();
        let &[batch, steps, noise, seed, loss, before] = &numbers[..] else {
            let cells = cells.join(",");
            return Err(PaperError::Unusable(format!("`{cells}` does not belong to this table")));
        };
        let audited = canaries::shown(&scores.with_file_name(canaries::file(batch, seed)))?;
        Ok(Self { cells: [batch, steps, noise, seed, loss], before, audited })
    }
}

fn compute(context: &TrainedContext<'_>) -> Result<Reproduction, PaperError> {
    let seeds = context.trials.unwrap_or(SEEDS);
    let mut trainings = work::Trainings::new(context, seeds)?;
    trainings.carry_on(context)?;
    let output = context.output("trainings");
    let text = std::fs::read_to_string(&output).unwrap_or_default();
    let table = CsvTable::read(&text).map_err(PaperError::Unusable)?;
    let rows = table.rows().map(|(_, cells)| Trained::read(cells, &output));
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let columns = ["batch_size", "steps", "noise_multiplier", "heuristic", "standard"];
    let measured =
        ["perplexity", "deviation", "audit_any", "audit_gaussian", "canary_auroc", "trainings"];
    let mut table = PaperTable::new("batches", &[&columns[..], &measured].concat());
    let mut each = PaperTable::new(
        "trainings",
        &[
            "batch_size",
            "steps",
            "noise_multiplier",
            "seed",
            "test_loss",
            "audit_any",
            "audit_gaussian",
            "canary_auroc",
        ],
    );
    for row in &rows {
        each.push(row.cells.iter().chain(&row.audited).collect::<Vec<_>>());
    }
    let (mut words, mut points) = (Vec::new(), Vec::new());
    for setting in &trainings.settings {
        let own: Vec<&Trained> =
            rows.iter().filter(|row| row.cells[0] == setting.batch as f64).collect();
        if own.is_empty() {
            continue;
        }
        let over = |of: &dyn Fn(&Trained) -> f64| {
            mean_and_deviation(&own.iter().map(|row| of(row)).collect::<Vec<_>>())
        };
        let phase = setting.run.phases()[0];
        let trainer = DpSgd::new(phase.noise_multiplier, phase.sample_rate, phase.steps);
        let standard = epsilon(&composition(&trainer)?, DELTA)?;
        let heuristic = epsilon(&last_iterate(&trainer)?, DELTA)?;
        let (perplexity, deviation) = over(&|row| row.cells[4].exp());
        let [any, gaussian, auroc] = [0, 1, 2].map(|number| over(&|row| row.audited[number]).0);
        let most = own.iter().map(|row| row.audited[1]).fold(0.0, f64::max);
        points.push((standard, perplexity));
        words.push(format!(
            "batch {}: heuristic epsilon {heuristic:.2}, standard {standard:.2}, perplexity {perplexity:.3}, audited {any:.2} on average (for any mechanism; {gaussian:.2} in the Gaussian family, at most {most:.2} in one training)",
            setting.batch
        ));
        table.push((
            setting.batch,
            phase.steps,
            phase.noise_multiplier,
            heuristic,
            standard,
            perplexity,
            deviation,
            any,
            gaussian,
            auroc,
            own.len(),
        ));
    }
    let start = &trainings.settings[0].start;
    let test = start.test.as_ref().map_or(&[][..], |test| &test.examples);
    let before = rows.first().map(|row| row.before.exp());
    let model = match context.model {
        Some(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        None => "stories260K".into(),
    };
    let trained = match trainings.embedding {
        true => "LoRA of rank 8 and the embedding",
        false => "LoRA of rank 8",
    };
    let figure = Figure::new(
        "At one heuristic epsilon smaller batches cost more standard epsilon",
        "Each dot is a batch size (2048, 512, 128 from left to right): the mean perplexity on held-out exchanges of models whose heuristic epsilon is the same.",
    )
    .subtitle(format!("{model}, heuristic epsilon {HEURISTIC}, delta {DELTA:e}"))
    .x(Axis::linear("standard epsilon"))
    .y(Axis::linear("perplexity"))
    .with(Series::scatter("trained", points.clone()));
    Ok(Reproduction {
        parameters: json!({"model": model, "data": trainings.source, "records": start.records(), "test_records": test.len(), "length": 64, "delta": DELTA, "heuristic_epsilon": HEURISTIC, "epochs": EPOCHS, "canaries": start.description.canaries.map(|canaries| canaries.count), "seeds": seeds, "seed": context.seed, "perplexity_before": before, "trained": trained, "device": context.devices(["trainings"])}),
        we_get: match before {
            None => "no training is finished yet.".into(),
            Some(before) => {
                format!("Perplexity {before:.3} before training; {}.", words.join("; "))
            }
        },
        differs: "Smaller than the paper: its model is Gemma 2 and its data PersonaChat, in numbers that are not in the text; these are exchanges of two utterances from Synthetic-Persona-Chat, a small model, a few epochs and learning rates that were not tuned, so that perplexities (over the small model's own tokens) mean something only beside each other. The heuristic epsilon is the same in every row; the noise follows from it. Audits are one-run lower bounds at 95 % confidence, the average over trainings: what the canaries of one training can show is far below what the training may leak.".into(),
        tables: vec![table, each],
        figures: if points.is_empty() { Vec::new() } else { vec![("perplexity".into(), figure)] },
    })
}
