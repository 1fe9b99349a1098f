//! Figure 5: by how much the quadratic regulariser beats the heuristic.

use super::PAPER;
use crate::tools::noise_for;
use crate::{Context, Entry, PaperError, PaperTable, Reproduction};
use accounting::{Pair, directions};
use games::exact::QuadraticPair;
use serde_json::json;
use vocabulary::Direction;
use vocabulary::figure::{Axis, Figure, Series, Stroke};

pub(super) const ENTRY: Entry = Entry {
    id: "last-iterate-figure-5",
    paper: PAPER,
    title: "Figure 5: how much the quadratic regulariser exceeds the heuristic",
    shows: "With alpha = 1/2, the ratio of epsilon to the heuristic's largest epsilon up to T, computed with a rounded support; the text says that the heuristic is exceeded by at most 3 %.",
    seconds: 10,
    compute,
};

const DELTA: f64 = 1e-6;
/// (epsilon of one step, q).
const SETTINGS: [(f64, f64); 5] = [(1.0, 0.1), (2.0, 0.1), (2.0, 0.3), (1.0, 0.5), (2.0, 0.03)];
const STEPS: [u64; 9] = [1, 2, 3, 4, 6, 8, 10, 12, 14];

fn compute(context: &Context<'_>) -> Result<Reproduction, PaperError> {
    let mut table = PaperTable::new(
        "ratios",
        &["epsilon_of_one_step", "sample_rate", "noise_multiplier", "steps", "exact", "rounded"],
    );
    let mut exact_figure = figure("The exact excess over the heuristic is below 3 %");
    let mut rounded_figure = figure("The printed rounding adds up to 5 % of its own");
    let (mut worst_exact, mut worst_rounded) = (0.0f64, 0.0f64);
    let of = |pair: &dyn Pair| -> Result<f64, PaperError> {
        Ok(directions::epsilon(pair, DELTA, Direction::Both)?.value)
    };
    for (one_step, q) in SETTINGS {
        let sigma = noise_for(one_step, DELTA, q, 1)?;
        let (mut exact, mut rounded) = (Vec::new(), Vec::new());
        let mut heuristic = 0.0f64;
        for t in 1..=STEPS[STEPS.len() - 1] {
            context.go_on()?;
            heuristic = heuristic.max(of(&QuadraticPair::new(0.0, sigma, q, t)?)?);
            if !STEPS.contains(&t) {
                continue;
            }
            let pair = QuadraticPair::new(0.5, sigma, q, t)?;
            let ratio = of(&pair)? / heuristic;
            let printed = of(&pair.rounded_as_printed()?)? / heuristic;
            (worst_exact, worst_rounded) = (worst_exact.max(ratio), worst_rounded.max(printed));
            exact.push((t as f64, ratio));
            rounded.push((t as f64, printed));
            table.push((one_step, q, sigma, t, ratio, printed));
        }
        let label = format!("one step {one_step}, q {q}");
        exact_figure = exact_figure.with(Series::line(label.clone(), exact));
        rounded_figure = rounded_figure.with(Series::line(label, rounded));
    }
    let rule = |figure: Figure| {
        figure.with(Series::horizontal_rule("the heuristic", 1.0).stroke(Stroke::Dotted))
    };
    Ok(Reproduction {
        parameters: json!({"delta": DELTA, "alpha": 0.5, "settings": SETTINGS.map(|(e, q)| json!({"epsilon_of_one_step": e, "sample_rate": q}))}),
        we_get: format!("Largest ratio {worst_exact:.4} exactly, {worst_rounded:.4} with the printed rounding."),
        differs: "The printed rounding raises the support to powers of 1.05, which can add 5 %; with it the excess reaches 6 %, so that the stated 3 % is true of the exact numbers, not of the computation described.".to_owned(),
        tables: vec![table],
        figures: vec![
            ("exact".to_owned(), rule(exact_figure)),
            ("as-printed".to_owned(), rule(rounded_figure)),
        ],
    })
}

fn figure(title: &str) -> Figure {
    Figure::new(
        title,
        "Above 1 the heuristic, taken as the largest over all shorter runs, is exceeded.",
    )
    .subtitle("alpha 1/2, delta 1e-6")
    .x(Axis::linear("steps"))
    .y(Axis::linear("epsilon over heuristic"))
}
