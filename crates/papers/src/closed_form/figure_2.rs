//! Figure 2: the error term of the closed form for one step, against the truth.

use super::{PAPER, logarithmic};
use crate::{Context, Entry, PaperError, PaperTable, Reproduction};
use accounting::bayes_security::distance_from_mean;
use serde_json::json;
use vocabulary::figure::{Axis, Figure, Hue, Series, Stroke};

pub(super) const ENTRY: Entry = Entry {
    id: "closed-form-figure-2",
    paper: PAPER,
    title: "Figure 2: one mixture and the Gaussian of its mean",
    shows: "For T = 1, the total variation of the mixture and the Gaussian that replaces it, by an integral, against the error term sqrt(p(1-p))/(2 sigma); sigma from .1 to 100, p from 1e-5 to .1.",
    seconds: 1,
    compute,
};

fn compute(context: &Context<'_>) -> Result<Reproduction, PaperError> {
    let mut table = PaperTable::new(
        "one-step",
        &["noise_multiplier", "sample_rate", "total_variation", "error_term", "hellinger_bound"],
    );
    let mut figure = Figure::new(
        "The published error term is far above the distance it bounds",
        "Total variation of one step's mixture and the Gaussian of its mean, by quadrature; dashed: the published error term; dotted: the bound by Hellinger's affinity.",
    )
    .subtitle("T 1")
    .x(Axis::log("noise multiplier"))
    .y(Axis::log("total variation"));
    let (mut largest, mut smallest): (f64, f64) = (0.0, f64::INFINITY);
    for rate in logarithmic(1e-5, 1e-1, 10) {
        context.go_on()?;
        let (mut truths, mut terms, mut bounds) = (Vec::new(), Vec::new(), Vec::new());
        for sigma in logarithmic(0.1, 100.0, 10) {
            let truth = total_variation(rate, sigma);
            let term = (rate * (1.0 - rate)).sqrt() / (2.0 * sigma);
            let bound = distance_from_mean(sigma, rate, 1);
            let ratio = term / truth;
            (largest, smallest) = (largest.max(ratio), smallest.min(ratio));
            truths.push((sigma, truth));
            terms.push((sigma, term));
            bounds.push((sigma, bound.min(1.0)));
            table.push((sigma, rate, truth, term, bound.min(1.0)));
        }
        if [1e-5, 1e-1].iter().any(|shown: &f64| (rate / shown - 1.0).abs() < 1e-9) {
            let hue = if rate < 1e-3 { Hue::Blue } else { Hue::Vermilion };
            for (name, line, stroke) in [
                ("truth", truths, Stroke::Solid),
                ("error term", terms, Stroke::Dashed),
                ("Hellinger", bounds, Stroke::Dotted),
            ] {
                let series = Series::line(format!("{name}, p {rate:.0e}"), line);
                figure = figure.with(series.stroke(stroke).hue(hue));
            }
        }
    }
    Ok(Reproduction {
        parameters: json!({"steps": 1}),
        we_get: format!(
            "The error term is {smallest:.1} to {largest:.0} times the truth, and for sigma >= 1 falls like 1/sigma where the truth falls like 0.242 p(1-p)/sigma^2."
        ),
        differs: "The paper's figure shows that the error term is an upper bound, which it is; over T steps it becomes sqrt(T p(1-p))/(2 sigma), above 1 in the regime that is advertised (3.5 at p 1e-3, sigma 1, 50 epochs).".to_owned(),
        tables: vec![table],
        figures: vec![("one-step".to_owned(), figure)],
    })
}

/// Half the integral of |mixture - Gaussian|, trapezoid rule: smooth up to three kinks, and so
/// good to about 1e-5 of itself.
fn total_variation(rate: f64, sigma: f64) -> f64 {
    let step = sigma / 200.0;
    let (low, high) = (-10.0 * sigma, 1.0 + 10.0 * sigma);
    let density = |x: f64| (-0.5 * (x / sigma).powi(2)).exp() / (sigma * 2.506_628_274_631_000_5);
    let points = ((high - low) / step).ceil() as u64;
    let sum: f64 = (0..=points)
        .map(|i| {
            let x = low + step * i as f64;
            let mixture = (1.0 - rate) * density(x) + rate * density(x - 1.0);
            (mixture - density(x - rate)).abs()
        })
        .sum();
    0.5 * sum * step
}
