//! Table 2: standard and heuristic epsilon of CIFAR-10 trainings with three batch sizes.

use super::PAPER;
use crate::tools::{composition, epsilon, last_iterate, noise_for};
use crate::{Context, Entry, PaperError, PaperTable, Reproduction};
use games::DpSgd;
use serde_json::json;
use vocabulary::figure::{Axis, Figure, Series};

pub(super) const ENTRY: Entry = Entry {
    id: "last-iterate-table-2",
    paper: PAPER,
    title: "Table 2: standard and heuristic epsilon for three batch sizes",
    shows: "CIFAR-10 (n = 50,000, delta 1e-5) with batches of 4096, 512 and 256: standard epsilon 8, 12, 14 at about the same heuristic epsilon (6.3 to 7). The number of steps and the noise are not in the text.",
    seconds: 2,
    compute,
};

const DELTA: f64 = 1e-5;
const RECORDS: f64 = 50_000.0;
/// Batch, standard epsilon as printed, heuristic epsilon (second-hand, two or three digits).
const ROWS: [(f64, f64, f64); 3] = [(4096.0, 8.0, 6.34), (512.0, 12.0, 7.0), (256.0, 14.0, 6.7)];

/// Epochs between which a row is looked for.
const EPOCHS: (f64, f64) = (3.0, 1000.0);

/// The noise that has the standard epsilon after these epochs, and the heuristic at that noise.
fn at(batch: f64, standard: f64, epochs: f64) -> Result<(u64, f64, f64), PaperError> {
    let q = batch / RECORDS;
    let steps = (epochs / q).round().max(1.0) as u64;
    let sigma = noise_for(standard, DELTA, q, steps)?;
    let heuristic = epsilon(&last_iterate(&DpSgd::new(sigma, q, steps))?, DELTA)?;
    Ok((steps, sigma, heuristic))
}

/// The epochs at which both printed numbers hold: the heuristic grows with the training's length
/// when the standard epsilon is kept.
fn solve(context: &Context<'_>, row: (f64, f64, f64)) -> Result<Option<f64>, PaperError> {
    let (batch, standard, printed) = row;
    let (mut low, mut high) = EPOCHS;
    if at(batch, standard, low)?.2 > printed || at(batch, standard, high)?.2 < printed {
        return Ok(None);
    }
    while high / low > 1.0 + 1e-3 {
        context.go_on()?;
        let middle = (low * high).sqrt();
        if at(batch, standard, middle)?.2 > printed { high = middle } else { low = middle }
    }
    Ok(Some((low * high).sqrt()))
}

fn compute(context: &Context<'_>) -> Result<Reproduction, PaperError> {
    let mut implied = PaperTable::new(
        "columns",
        &[
            "batch_size",
            "standard_printed",
            "heuristic_printed",
            "epochs_implied",
            "steps_implied",
            "noise_implied",
            "standard",
            "heuristic",
            "heuristic_at_60_epochs",
        ],
    );
    let mut lengths = PaperTable::new(
        "lengths",
        &["batch_size", "standard", "epochs", "steps", "noise_multiplier", "heuristic"],
    );
    let mut figure = Figure::new(
        "No single number of epochs gives all three rows",
        "Heuristic epsilon of a run whose noise is chosen for the printed standard epsilon; dots: where it is the printed heuristic epsilon.",
    )
    .subtitle("n 50,000, delta 1e-5")
    .x(Axis::log("epochs").domain(5.0, 300.0))
    .y(Axis::linear("heuristic epsilon"));
    let mut words = Vec::new();
    for row in ROWS {
        let (batch, standard, printed) = row;
        let mut curve: Vec<(f64, f64)> = Vec::new();
        for epochs in
            [5.0, 7.0, 10.0, 14.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 150.0, 200.0, 300.0]
        {
            context.go_on()?;
            let (steps, sigma, heuristic) = at(batch, standard, epochs)?;
            curve.push((epochs, heuristic));
            lengths.push((batch, standard, epochs, steps, sigma, heuristic));
        }
        let at_sixty = at(batch, standard, 60.0)?.2;
        figure = figure.with(Series::line(format!("batch {batch}"), curve));
        let Some(epochs) = solve(context, row)? else {
            words.push(format!(
                "B = {batch}: no length from {} to {} epochs has both printed numbers",
                EPOCHS.0, EPOCHS.1
            ));
            continue;
        };
        let (steps, sigma, heuristic) = at(batch, standard, epochs)?;
        let trainer = DpSgd::new(sigma, batch / RECORDS, steps);
        words.push(format!(
            "B = {batch}: both printed numbers hold for {epochs:.0} epochs at noise {sigma:.3}"
        ));
        implied.push((
            batch,
            standard,
            printed,
            epochs,
            steps,
            sigma,
            epsilon(&composition(&trainer)?, DELTA)?,
            heuristic,
            at_sixty,
        ));
        figure = figure.with(Series::pin(format!("{printed}"), epochs, printed));
    }
    Ok(Reproduction {
        parameters: json!({"records": RECORDS, "delta": DELTA, "rows": ROWS.map(|(b, s, h)| json!({"batch_size": b, "standard": s, "heuristic": h}))}),
        we_get: words.join("; ") + ".",
        differs: "The text determines n, delta and the batch sizes, not the steps or the noise. Two printed numbers determine these two, so each row is reproduced by exactly one training, and the table can only be tested for consistency: the three trainings have different lengths (at 60 epochs, say, the heuristic column would be the last column of `columns`). The printed heuristic numbers are known to us second-hand, to two or three digits. A row may also mix accountants: sigma = 3, T = 2464, B = 4096 has heuristic epsilon 6.34 and standard epsilon 6.52, and 7.75 by Renyi accounting with the classic conversion.".to_owned(),
        tables: vec![implied, lengths],
        figures: vec![("epochs".to_owned(), figure)],
    })
}
