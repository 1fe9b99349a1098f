//! Table 2: standard and heuristic epsilon of CIFAR-10 trainings with three batch sizes.

use super::PAPER;
use crate::tools::{epsilon, last_iterate, noise_for};
use crate::{Context, Entry, PaperError, Reproduction, Table};
use games::DpSgd;
use serde_json::json;
use vocabulary::figure::{Axis, Figure, Series};

pub(super) const ENTRY: Entry = Entry {
    id: "p4-table-2",
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

fn compute(context: &Context<'_>) -> Result<Reproduction, PaperError> {
    let mut table = Table::new(
        "columns",
        &[
            "batch_size",
            "standard_printed",
            "heuristic_printed",
            "epochs",
            "steps",
            "noise_multiplier",
            "heuristic",
        ],
    );
    let mut figure = Figure::new(
        "No single number of epochs gives all three rows",
        "Heuristic epsilon of a run whose noise is chosen for the printed standard epsilon; dots: the printed heuristic epsilon, where the curve passes it.",
    )
    .subtitle("n 50,000, delta 1e-5")
    .x(Axis::log("epochs"))
    .y(Axis::linear("heuristic epsilon"));
    let mut words = Vec::new();
    for (batch, standard, printed) in ROWS {
        let q = batch / RECORDS;
        let mut curve: Vec<(f64, f64)> = Vec::new();
        for epochs in [5.0, 10.0, 20.0, 30.0, 60.0, 90.0, 120.0, 150.0, 200.0, 300.0] {
            context.go_on()?;
            let steps = (epochs / q).round() as u64;
            let sigma = noise_for(standard, DELTA, q, steps)?;
            let heuristic = epsilon(&last_iterate(&DpSgd::new(sigma, q, steps))?, DELTA)?;
            curve.push((epochs, heuristic));
            table.push(vec![
                json!(batch),
                json!(standard),
                json!(printed),
                json!(epochs),
                json!(steps),
                json!(sigma),
                json!(heuristic),
            ]);
        }
        // Where the curve passes the printed value, linearly in log epochs.
        let crossing = curve
            .windows(2)
            .find(|pair| (pair[0].1 - printed) * (pair[1].1 - printed) <= 0.0)
            .map(|pair| {
                let share = (printed - pair[0].1) / (pair[1].1 - pair[0].1);
                (pair[0].0.ln() + share * (pair[1].0 / pair[0].0).ln()).exp()
            });
        let at_sixty = curve.iter().find(|point| point.0 == 60.0).map_or(f64::NAN, |point| point.1);
        words.push(match crossing {
            Some(epochs) => format!("B = {batch}: heuristic {at_sixty:.2} at 60 epochs; the printed {printed} needs about {epochs:.0} epochs"),
            None => format!("B = {batch}: heuristic {at_sixty:.2} at 60 epochs; the printed {printed} is not reached"),
        });
        figure = figure.with(Series::line(format!("batch {batch}"), curve));
        if let Some(epochs) = crossing {
            figure = figure.with(Series::pin(format!("{printed}"), epochs, printed));
        }
    }
    Ok(Reproduction {
        parameters: json!({"records": RECORDS, "delta": DELTA, "rows": ROWS.map(|(b, s, h)| json!({"batch_size": b, "standard": s, "heuristic": h}))}),
        we_get: words.join("; ") + ".",
        differs: "The text determines n, delta and the batch sizes, not the steps or the noise, so the columns can only be tested for consistency: each row is reached by a different number of epochs. A row may also mix accountants: sigma = 3, T = 2464, B = 4096 has heuristic epsilon 6.34 and standard epsilon 6.52, and 7.75 by Renyi accounting with the classic conversion.".to_owned(),
        tables: vec![table],
        figures: vec![("epochs".to_owned(), figure)],
    })
}
