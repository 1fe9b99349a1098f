//! Section 4.3: the shift register.

use super::PAPER;
use crate::{Context, Entry, PaperError, PaperTable, Reproduction};
use games::exact::known;
use games::{DpSgd, Game, Observe};
use serde_json::json;
use vocabulary::figure::{Axis, Figure, Series, Stroke};

pub(super) const ENTRY: Entry = Entry {
    id: "last-iterate-section-4.3",
    paper: PAPER,
    title: "Section 4.3: a shift register gives back all iterates",
    shows: "A pathological regulariser moves every step's value to a coordinate of its own and enlarges it, so that the last iterate leaks nearly what all iterates leak.",
    seconds: 2,
    compute,
};

const DELTA: f64 = 1e-5;
const SETTING: (f64, f64, u64) = (0.8, 0.1, 50);

fn compute(context: &Context<'_>) -> Result<Reproduction, PaperError> {
    let (sigma, q, steps) = SETTING;
    let trainer = DpSgd::new(sigma, q, steps);
    let mut table = PaperTable::new("epsilon", &["spread", "register", "composition", "heuristic"]);
    let mut curve = Vec::new();
    let (mut all, mut linear) = (0.0, 0.0);
    for spread in [1.05, 1.1, 1.2, 1.4, 1.7, 2.0, 3.0, 4.0, 6.0, 10.0] {
        context.go_on()?;
        let found = known(&Game::ShiftRegister { spread }, &trainer, Observe::Last, DELTA)?;
        let register = found[0].epsilon.upper;
        (all, linear) = (found[1].epsilon.upper, found[2].epsilon.upper);
        curve.push((spread, register));
        table.push((spread, register, all, linear));
    }
    let at_four = curve.iter().find(|point| point.0 == 4.0).map_or(f64::NAN, |point| point.1);
    let figure = Figure::new(
        "A register that grows fourfold at each shift hides almost nothing",
        "Epsilon of the last iterate, exactly: the composition of one subsampled Gaussian per step, each with its own noise.",
    )
    .subtitle(format!("T {steps}, q {q}, sigma {sigma}, delta {DELTA:e}"))
    .x(Axis::log("growth at each shift"))
    .y(Axis::linear("epsilon"))
    .with(Series::horizontal_rule("all iterates", all).stroke(Stroke::Solid))
    .with(Series::line("last iterate of the register", curve).stroke(Stroke::LongDash))
    .with(Series::horizontal_rule("heuristic", linear).stroke(Stroke::Dashed));
    Ok(Reproduction {
        parameters: json!({"noise_multiplier": sigma, "sample_rate": q, "steps": steps, "delta": DELTA}),
        we_get: format!("{at_four:.3} with a growth of 4, against {all:.3} for all iterates and {linear:.3} for the heuristic."),
        differs: "The text's index of the canary's coin is off by one. The values overflow a double after 511 steps at a growth of 4; games are played in normalised coordinates.".to_owned(),
        tables: vec![table],
        figures: vec![("spread".to_owned(), figure)],
    })
}
