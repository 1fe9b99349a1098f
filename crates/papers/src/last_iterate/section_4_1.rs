//! Section 4.1: a regulariser that wipes the past, and the heuristic's dip.

use super::PAPER;
use crate::tools::{composition, epsilon, last_iterate};
use crate::{Context, Entry, PaperError, PaperTable, Reproduction};
use games::DpSgd;
use serde_json::json;
use vocabulary::figure::{Axis, Figure, Series, Stroke};

pub(super) const ENTRY: Entry = Entry {
    id: "last-iterate-section-4.1",
    paper: PAPER,
    title: "Section 4.1: forgetting the past can leak more than remembering it",
    shows: "The heuristic is not monotone in the number of steps; a regulariser that wipes the model at each step makes the last iterate one subsampled Gaussian, which leaks more than the heuristic allows for T steps.",
    seconds: 5,
    compute,
};

const DELTA: f64 = 1e-6;
const SIGMA: f64 = 0.7764;
const RATE: f64 = 0.01;

fn compute(context: &Context<'_>) -> Result<Reproduction, PaperError> {
    let mut table = PaperTable::new("epsilon", &["steps", "linear", "zeroing", "composition"]);
    let mut curves = [Vec::new(), Vec::new(), Vec::new()];
    let zeroing = epsilon(&composition(&DpSgd::new(SIGMA, RATE, 1))?, DELTA)?;
    let mut words = Vec::new();
    let grid = [1u64, 2, 3, 5, 7, 10, 14, 20, 30, 50, 70, 100, 140, 200, 300, 500, 700, 1000];
    for steps in grid {
        context.go_on()?;
        let trainer = DpSgd::new(SIGMA, RATE, steps);
        let linear = epsilon(&last_iterate(&trainer)?, DELTA)?;
        let all = epsilon(&composition(&trainer)?, DELTA)?;
        for (curve, value) in curves.iter_mut().zip([all, linear, zeroing]) {
            curve.push((steps as f64, value));
        }
        if [1, 2, 5, 20, 100, 1000].contains(&steps) {
            words.push(format!("{linear:.3} at T = {steps}"));
        }
        table.push((steps, linear, zeroing, all));
    }
    let [all, linear, zero] = curves;
    let figure = Figure::new(
        "For a few hundred steps, forgetting leaks more than the heuristic allows",
        "Between the crossing points the zeroing regulariser, a data-independent term, breaks the heuristic.",
    )
    .subtitle(format!("sigma {SIGMA}, q {RATE}, delta {DELTA:e}"))
    .x(Axis::log("steps"))
    .y(Axis::log("epsilon"))
    .with(Series::line("all iterates (composition)", all).stroke(Stroke::Solid))
    .with(Series::line("last iterate, linear losses", linear).stroke(Stroke::Dashed))
    .with(Series::line("last iterate, zeroing", zero).stroke(Stroke::DashDot));
    Ok(Reproduction {
        parameters: json!({"noise_multiplier": SIGMA, "sample_rate": RATE, "delta": DELTA}),
        we_get: format!("Linear losses: {}; zeroing: {zeroing:.3} for every T.", words.join(", ")),
        differs: "Equation 6 of the text lacks a sign and a parenthesis; the last iterate is minus the learning rate times (the last batch's clipped sum plus the last noise).".to_owned(),
        tables: vec![table],
        figures: vec![("steps".to_owned(), figure)],
    })
}
