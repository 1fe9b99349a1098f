//! Figure 3: the sample rate that meets a Bayes security, against the noise.

use super::{PAPER, logarithmic};
use crate::{Context, Entry, PaperError, PaperTable, Reproduction};
use accounting::bayes_security::Formula;
use accounting::{AccountingError, Solution, Target, Unknown, calibrate};
use serde_json::{Value, json};
use vocabulary::figure::{Axis, Figure, Hue, Series, Stroke};
use vocabulary::{Adjacency, LensName, Run};

pub(super) const ENTRY: Entry = Entry {
    id: "closed-form-figure-3",
    paper: PAPER,
    title: "Figure 3: sample rate and noise for a Bayes security",
    shows: "p against sigma for Bayes security .9, .95, .98, .99 by the closed form (straight lines); the caption says T = 5k.",
    seconds: 20,
    compute,
};

const STEPS: u64 = 5000;

fn compute(context: &Context<'_>) -> Result<Reproduction, PaperError> {
    let mut table = PaperTable::new(
        "sample-rate",
        &["bayes_security", "noise_multiplier", "closed_form", "central_limit", "exact"],
    );
    let mut figure = Figure::new(
        "With little noise the closed form allows batches that are too large",
        "Largest sample rate that keeps the Bayes security against replacing a record; dashed: the closed form; solid: exact composition.",
    )
    .subtitle("T 5000, replacing a record")
    .x(Axis::log("noise multiplier"))
    .y(Axis::log("sample rate"));
    let swap = Adjacency::Substitute;
    for (security, hue) in
        [(0.9, Hue::Blue), (0.95, Hue::Vermilion), (0.98, Hue::Green), (0.99, Hue::Purple)]
    {
        let (mut printed, mut solved) = (Vec::new(), Vec::new());
        for sigma in logarithmic(0.1, 100.0, 25) {
            context.go_on()?;
            let paper = Formula::Paper.sample_rate(security, sigma, STEPS, swap).min(1.0);
            let limit = Formula::CentralLimit.sample_rate(security, sigma, STEPS, swap).min(1.0);
            let exact = exact(security, sigma)?;
            printed.push((sigma, paper));
            if let Some(rate) = exact {
                solved.push((sigma, rate));
            }
            table.push(vec![
                json!(security),
                json!(sigma),
                json!(paper),
                json!(limit),
                exact.map_or(Value::Null, |rate| json!(rate)),
            ]);
        }
        figure = figure
            .with(Series::line(format!("{security}"), solved).stroke(Stroke::Solid).hue(hue))
            .with(
                Series::line(format!("{security}, closed form"), printed)
                    .stroke(Stroke::Dashed)
                    .hue(hue),
            );
    }
    let unit = Formula::Paper.sample_rate(0.98, 1.0, STEPS, swap);
    Ok(Reproduction {
        parameters: json!({"steps": STEPS, "adjacency": "substitute"}),
        we_get: format!(
            "T = 5000, Bayes security .98: p = {unit:.4e} sigma by the closed form; the exact lines bend down below sigma 1, where the closed form is on the unsafe side."
        ),
        differs: "The caption says T = 5k; the notebook that draws it uses T = 20 * 347 = 6940, for which all lines are lower by sqrt(5000/6940) = .849. Below sigma .2 nothing exact is computed.".to_owned(),
        tables: vec![table],
        figures: vec![("sample-rate".to_owned(), figure)],
    })
}

fn exact(security: f64, sigma: f64) -> Result<Option<f64>, PaperError> {
    let run = Run::builder().phase(sigma, 0.01, STEPS).adjacency(Adjacency::Substitute).build()?;
    let target = Target::BayesSecurity { bayes_security: security };
    match calibrate(&run, Unknown::SampleRate, &target, LensName::Composition, &[]) {
        Ok(found) => match found.solution {
            Solution::SampleRate(rate) => Ok(Some(rate)),
            _ => Ok(None),
        },
        Err(AccountingError::OutsideDomain(_) | AccountingError::NotCertified(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
