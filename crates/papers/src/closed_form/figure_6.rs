//! Figure 6: Bayes security of one step against the bound that epsilon gives.

use super::{PAPER, logarithmic, run, securities};
use crate::{Context, Entry, PaperError, PaperTable, Reproduction};
use accounting::bayes_security::translate::security_of_epsilon;
use serde_json::json;
use vocabulary::Adjacency;
use vocabulary::figure::{Axis, Figure, Series, Stroke};

pub(super) const ENTRY: Entry = Entry {
    id: "closed-form-figure-6",
    paper: PAPER,
    title: "Figure 6: Bayes security and the bound from epsilon",
    shows: "One step with batches of 10 of N records, sigma = 1: Bayes security grows with N, while the bound from a fixed epsilon (.1, 1, 4) stays.",
    seconds: 1,
    compute,
};

fn compute(context: &Context<'_>) -> Result<Reproduction, PaperError> {
    let columns = ["records", "sample_rate", "closed_form", "exact", "certified"];
    let mut table = PaperTable::new("one-step", &columns);
    let (mut printed, mut truths) = (Vec::new(), Vec::new());
    for records in logarithmic(10.0, 1e5, 6) {
        context.go_on()?;
        let rate = (10.0 / records).min(1.0);
        let found = securities(&run(1.0, rate, 1, Adjacency::Substitute)?)?;
        let exact = found.truth;
        printed.push((records, found.closed_form));
        truths.push((records, exact));
        table.push((records, rate, found.closed_form, exact, found.certified));
    }
    let mut figure = Figure::new(
        "One epsilon says the same for every data set, Bayes security does not",
        "Bayes security of a single step (solid: exact; dashed: closed form) and what an epsilon guarantees, 2/(1 + e^epsilon).",
    )
    .subtitle("T 1, sigma 1, batches of 10")
    .x(Axis::log("records"))
    .y(Axis::linear("Bayes security"))
    .with(Series::line("exact", truths))
    .with(Series::line("closed form", printed).stroke(Stroke::Dashed));
    let mut words = Vec::new();
    for epsilon in [0.1, 1.0, 4.0] {
        let level = security_of_epsilon(epsilon, 0.0);
        words.push(format!("{level:.4} for epsilon {epsilon}"));
        figure = figure.with(
            Series::horizontal_rule(format!("epsilon {epsilon}"), level).stroke(Stroke::Dotted),
        );
    }
    Ok(Reproduction {
        parameters: json!({"batch_size": 10, "steps": 1, "noise_multiplier": 1.0}),
        we_get: format!("1 - advantage is at least {}.", words.join(", ")),
        differs: "The closed form is exact only at N = 10, where every record is in the batch. For one step 1 - beta is p erf(1/(sqrt2 sigma)), and the form has erf(p/(sqrt2 sigma)): it overstates the leakage of one step and understates that of many.".to_owned(),
        tables: vec![table],
        figures: vec![("one-step".to_owned(), figure)],
    })
}
