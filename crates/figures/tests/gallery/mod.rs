//! Example figures, one of each kind that a report shows.
//!
//! The curves are closed forms for the Gaussian mechanism (Dong, Roth and Su, 2022,
//! Corollary 1 and Theorem 2.7) and made-up scores; they show the drawing, not a result.

use vocabulary::figure::{
    Axis, Bar, ColourScale, Figure, Heat, Hue, Mark, Measurement, Orientation, Range, Rung, Series,
    Stroke,
};

/// Every example with its name.
pub(crate) fn all() -> Vec<(&'static str, Figure)> {
    vec![
        ("tradeoff", tradeoff()),
        ("det", detection_error()),
        ("steps", steps()),
        ("profile", profile()),
        ("map", map()),
        ("calibration", calibration()),
        ("ladder", ladder()),
        ("scores", scores()),
        ("tornado", tornado()),
        ("training", training()),
    ]
}

fn logarithmic(from: f64, to: f64, count: usize) -> impl Iterator<Item = f64> + Clone {
    let (from, to) = (from.ln(), to.ln());
    (0..count).map(move |i| (from + (to - from) * i as f64 / (count - 1) as f64).exp())
}

/// The normal distribution function by its continued fraction or series; good to 1e-12,
/// relative, which is more than a drawing needs.
fn normal(x: f64) -> f64 {
    if x > 0.0 {
        return 1.0 - normal(-x);
    }
    let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if x > -3.0 {
        let (mut term, mut sum) = (x, x);
        for k in 1..200 {
            term *= x * x / (2 * k + 1) as f64;
            sum += term;
        }
        0.5 + density * sum
    } else {
        let fraction = (1..80).rev().fold(0.0, |tail, k| f64::from(k) / (-x + tail));
        density / (-x + fraction)
    }
}

fn quantile(p: f64) -> f64 {
    let (mut lower, mut upper) = (-40.0, 40.0);
    for _ in 0..100 {
        let middle = 0.5 * (lower + upper);
        if normal(middle) < p {
            lower = middle;
        } else {
            upper = middle;
        }
    }
    0.5 * (lower + upper)
}

/// True-positive rate of the best attack on a Gaussian of this separation.
fn power(mu: f64, false_positive_rate: f64) -> f64 {
    normal(quantile(false_positive_rate) + mu)
}

fn delta(mu: f64, epsilon: f64) -> f64 {
    normal(-epsilon / mu + 0.5 * mu) - epsilon.exp() * normal(-epsilon / mu - 0.5 * mu)
}

pub(crate) fn tradeoff() -> Figure {
    let rates = || logarithmic(1e-5, 1.0 - 1e-9, 160);
    let curve = |mu: f64| rates().map(move |rate| (rate, power(mu, rate).min(1.0)));
    let measured = [3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3].map(|rate| {
        let y = power(0.62, rate);
        let error = 1.96 * (y * (1.0 - y) / 2000.0).sqrt();
        Measurement::new(rate, y).y_range((y - error).max(0.0), y + error)
    });
    Figure::new(
        "At most one record in 56 is recognised at a false-positive rate of 0.1%",
        "Each line is the best possible attack: further up and to the left leaks more; \
         an attack above a proven line would refute the claim.",
    )
    .subtitle("σ = 1.1, q = 0.01, T = 4,000; add/remove one record; 2,000 trials")
    .x(Axis::log("false-positive rate").domain(1e-5, 1.0))
    .y(Axis::log("true-positive rate").domain(1e-5, 1.0))
    .with(
        Series::band(
            "95% confidence",
            rates().map(|rate| {
                let y = power(0.62, rate);
                let error = 1.96 * (y * (1.0 - y) / 2000.0).sqrt();
                (rate, y - error, (y + error).min(1.0))
            }),
        )
        .hue(Hue::Green),
    )
    .with(
        Series::line("random guess", rates().map(|rate| (rate, rate)))
            .hue(Hue::Muted)
            .stroke(Stroke::Dotted),
    )
    .with(Series::line("composition (proven)", curve(1.02)).hue(Hue::Blue).stroke(Stroke::Solid))
    .with(
        Series::line("last iterate (heuristic)", curve(0.75))
            .hue(Hue::Vermilion)
            .stroke(Stroke::Dashed),
    )
    .with(Series::new("measured attack", Mark::Scatter(measured.to_vec())).hue(Hue::Green))
    .with(Series::pin("1.8% at FPR 0.1%", 1e-3, power(1.02, 1e-3)).hue(Hue::Blue))
}

pub(crate) fn detection_error() -> Figure {
    let rates = || logarithmic(1e-4, 0.9999, 300);
    let curve = |mu: f64| rates().map(move |rate| (rate, 1.0 - power(mu, rate)));
    Figure::new(
        "On normal quantiles a Gaussian trade-off is a straight line",
        "Lower and further left leaks more.",
    )
    .x(Axis::probit("false-positive rate").domain(1e-4, 0.9999))
    .y(Axis::probit("false-negative rate").domain(1e-4, 0.9999))
    .with(Series::line("μ = 0.5", curve(0.5)))
    .with(Series::line("μ = 1", curve(1.0)))
    .with(Series::line("μ = 2", curve(2.0)))
}

pub(crate) fn steps() -> Figure {
    let grid = || logarithmic(1.0, 1e5, 200);
    let mu = |t: f64| 0.01 * (t * (0.8f64.exp() - 1.0)).sqrt();
    let tail = 1e5f64.ln();
    let gaussian = move |t: f64| mu(t) * (2.0 * tail).sqrt() + 0.5 * mu(t).powi(2);
    let line = |name: &str, value: &dyn Fn(f64) -> f64| {
        Series::line(name, grid().map(|t| (t, value(t))).collect::<Vec<_>>())
    };
    Figure::new(
        "Releasing only the last iterate would keep ε below 1 for ten times as many steps",
        "Each line is the privacy loss ε that one lens gives after this many steps; solid is \
         proven, broken is not.",
    )
    .subtitle("σ = 1.1, q = 0.01, δ = 10⁻⁵, Poisson sampling, add/remove one record")
    .x(Axis::log("steps"))
    .y(Axis::log("ε at δ = 10⁻⁵"))
    .with(Series::new(
        "warm-up",
        Mark::Span { orientation: Orientation::Vertical, from: 1.0, to: 10.0 },
    ))
    .with(
        line("advanced composition", &|t| 5.5 * gaussian(t) + 0.7)
            .hue(Hue::Purple)
            .stroke(Stroke::Solid),
    )
    .with(line("Rényi", &|t| 1.35 * gaussian(t) + 0.5).hue(Hue::Orange).stroke(Stroke::Solid))
    .with(line("composition", &|t| gaussian(t) + 0.25).hue(Hue::Blue).stroke(Stroke::Solid))
    .with(line("Gaussian CLT", &|t| gaussian(t) + 0.02).hue(Hue::Muted).stroke(Stroke::Dotted))
    .with(
        line("last iterate", &|t| 0.45 * gaussian(t) + 0.12)
            .hue(Hue::Vermilion)
            .stroke(Stroke::Dashed),
    )
    .with(Series::horizontal_rule("budget ε = 8", 8.0))
    .with(Series::pin("end of training", 4000.0, gaussian(4000.0) + 0.25))
}

pub(crate) fn profile() -> Figure {
    let grid = || (0..=240).map(|i| f64::from(i) * 0.025);
    let curve = |mu: f64| grid().map(move |epsilon| (epsilon, delta(mu, epsilon)));
    Figure::new(
        "A single (ε, δ) hides how fast the leak falls off",
        "The line gives, for each ε, the probability δ with which the privacy loss may exceed it.",
    )
    .x(Axis::linear("ε").domain(0.0, 6.0))
    .y(Axis::log("δ").domain(1e-10, 1.0))
    .with(Series::line("composition", curve(1.0)))
    .with(Series::line("last iterate", curve(0.6)))
    .with(Series::line("tight Gaussian, μ = 1.2", curve(1.2)).hue(Hue::Muted))
    .with(Series::vertical_rule("claimed ε", 4.38))
    .with(Series::pin("the claim: ε = 4.38 at δ = 10⁻⁵", 4.38, 1e-5))
}

fn edges(from: f64, to: f64, cells: usize) -> Vec<f64> {
    logarithmic(from, to, cells + 1).collect()
}

fn centres(edges: &[f64]) -> Vec<f64> {
    edges.windows(2).map(|pair| (pair[0] * pair[1]).sqrt()).collect()
}

pub(crate) fn map() -> Figure {
    let (rates, steps) = (edges(1e-4, 1.0, 40), edges(1.0, 1e5, 30));
    let value = |rate: f64, steps: f64| {
        let visits = rate * steps;
        1.0 / (1.0 + 0.9 * (visits / (1.0 + 0.02 * visits)).powf(0.4))
    };
    let values = centres(&steps)
        .iter()
        .map(|t| centres(&rates).iter().map(|q| (q * t > 2e-3).then(|| value(*q, *t))).collect())
        .collect();
    Figure::new(
        "The last-iterate heuristic gains most where each record is seen often",
        "Darker cells: the heuristic ε is closer to the proven one; empty cells could not be certified.",
    )
    .subtitle("heuristic ε / proven ε at σ = 1, δ = 10⁻⁵")
    .x(Axis::log("sample rate q"))
    .y(Axis::log("steps T"))
    .with(Series::new(
        "ratio",
        Mark::Heat(Heat {
            x_edges: rates,
            y_edges: steps,
            values,
            colours: ColourScale {
                label: "heuristic / proven".into(),
                domain: Some(Range {
                    lower: 0.0,
                    upper: 1.0,
                }),
                ..ColourScale::default()
            },
            contours: vec![0.25, 0.5, 0.75],
            print_values: false,
        }),
    ))
    .with(Series::pin("this run", 0.01, 4000.0))
}

pub(crate) fn calibration() -> Figure {
    let names = ["0.6", "0.8", "1.0", "1.25", "1.6", "2.0", "2.5", "3.2"];
    let epochs = ["1", "2", "5", "10", "20", "50"];
    let sigma = [0.6, 0.8, 1.0, 1.25, 1.6, 2.0, 2.5, 3.2];
    let count = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0];
    let values = count
        .iter()
        .map(|e: &f64| sigma.iter().map(|s| Some(1.1 * (e + 0.5).sqrt() / (s * s))).collect())
        .collect();
    let cells = |n: usize| (0..=n).map(|i| i as f64 - 0.5).collect();
    Figure::new(
        "ε = 8 allows 50 epochs at noise 1",
        "Each cell is the ε of a training; orange is above the budget, blue below.",
    )
    .x(Axis::category("noise multiplier", names))
    .y(Axis::category("epochs", epochs))
    .with(Series::new(
        "",
        Mark::Heat(Heat {
            x_edges: cells(8),
            y_edges: cells(6),
            values,
            colours: ColourScale {
                label: "ε at δ = 10⁻⁵".into(),
                ramp: vocabulary::figure::Ramp::Diverging { centre: 8.0 },
                log: true,
                domain: None,
            },
            contours: vec![],
            print_values: true,
        }),
    ))
}

pub(crate) fn ladder() -> Figure {
    let rows = [
        "composition (proven)",
        "last iterate (heuristic)",
        "Clopper–Pearson, union",
        "Gaussian family",
        "last-iterate family",
        "one run",
    ];
    Figure::new(
        "The audit reaches 61% of the proven ε and contradicts nothing",
        "Dots are bounds, arrows point to where the truth may be; an audit to the right of the \
         proven line would be a contradiction.",
    )
    .subtitle("ε at δ = 10⁻⁵, each bound at 95% confidence on its own")
    .x(Axis::linear("ε").domain(0.0, 4.0))
    .y(Axis::category("", rows))
    .with(Series::vertical_rule("proven: 3.17", 3.17).hue(Hue::Blue).stroke(Stroke::Solid))
    .with(
        Series::ladder(
            "upper bounds",
            [Rung::at_most(0, 3.17).note("certified"), Rung::at_most(1, 2.31).note("linear loss")],
        )
        .hue(Hue::Blue),
    )
    .with(
        Series::ladder(
            "lower bounds",
            [
                Rung::at_least(2, 1.41).note("n = 10,000"),
                Rung::at_least(3, 1.92).note("n = 10,000"),
                Rung::at_least(4, 1.78).note("n = 10,000"),
                Rung::between(5, 0.12, 0.74, 1.3).note("m = 1,000"),
            ],
        )
        .hue(Hue::Vermilion),
    )
}

pub(crate) fn scores() -> Figure {
    let bins = |mean: f64, count: f64| {
        (0..44).map(move |i| {
            let from = -4.0 + 0.2 * f64::from(i);
            let mass = normal(from + 0.2 - mean) - normal(from - mean);
            let ripple = 1.0 + 0.12 * (3.7 * f64::from(i) + mean).sin();
            (from, from + 0.2, (count * mass * ripple).round())
        })
    };
    Figure::new(
        "Scores with the canary lie 1.2 standard deviations higher",
        "The further apart the two histograms, the more the model gives away; the threshold was \
         chosen on other runs.",
    )
    .subtitle("2 × 5,000 models, score = inner product with the canary's gradient")
    .x(Axis::linear("score"))
    .y(Axis::linear("models"))
    .with(Series::histogram("without the canary", bins(0.0, 5000.0)))
    .with(Series::histogram("with the canary", bins(1.2, 5000.0)))
    .with(Series::vertical_rule("threshold", 2.1).hue(Hue::Ink))
}

pub(crate) fn tornado() -> Figure {
    let rows = [
        "replace one record",
        "δ = 10⁻⁶",
        "ten more epochs",
        "shuffled batches",
        "last iterate only",
    ];
    let values = [5.9, 3.9, 3.65, 3.5, 1.95];
    let bars = values.iter().enumerate().map(|(row, value)| Bar {
        from: row as f64 - 0.32,
        to: row as f64 + 0.32,
        base: 3.17,
        value: *value,
    });
    Figure::new(
        "The choice of neighbours matters more than anything else",
        "Each bar goes from the claimed ε to what it would be if one assumption were different.",
    )
    .x(Axis::linear("ε at δ = 10⁻⁵").domain(1.0, 7.0))
    .y(Axis::category("", rows))
    .with(Series::new(
        "",
        Mark::Bars { orientation: Orientation::Horizontal, bars: bars.collect() },
    ))
    .with(Series::vertical_rule("claimed: 3.17", 3.17).hue(Hue::Ink).stroke(Stroke::Solid))
}

/// A long noisy curve, a step function and a gap.
pub(crate) fn training() -> Figure {
    let mut state = 7u64;
    let mut noise = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    let norm: Vec<(f64, f64)> = (0..20_000)
        .map(|i| {
            let t = f64::from(i);
            let gap = (9000..9600).contains(&i);
            let y = 0.9 + 1.2 * (-t / 4000.0).exp() + 0.25 * noise();
            (t, if gap { f64::NAN } else { y })
        })
        .collect();
    let clipped = (0..20).map(|i| {
        let t = f64::from(i) * 1000.0;
        (t, 0.35 + 0.6 * (-t / 5000.0).exp())
    });
    Figure::new(
        "Half of the gradients are clipped once training settles",
        "The norm should stay near the clip; the gap is a pause for a checkpoint.",
    )
    .x(Axis::linear("step"))
    .y(Axis::linear("gradient norm").unit("clip norms"))
    .with(Series::line("median norm", norm))
    .with(Series::step("fraction clipped", clipped))
    .with(Series::horizontal_rule("clip", 1.0))
}
