//! A figure as data, then as SVG and as a table: what attackers can do against two Gaussian mechanisms.
//!
//! `cargo run --release -p dosimeter-figures --example trade_off > trade-off.svg`
#![allow(clippy::print_stdout, clippy::print_stderr)]

use figures::vocabulary::figure::{Axis, Figure, Series};

/// True positive rates at logarithmically spaced false positive rates, by trapezoids: enough for a
/// picture (a crate for numbers is `dosimeter-accounting`).
fn curve(mu: f64) -> Vec<(f64, f64)> {
    let density = |x: f64| (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let (mut points, mut fpr, mut tpr) = (Vec::new(), 0.0, 0.0);
    for step in (-400..400).rev() {
        let threshold = f64::from(step) / 100.0 + 0.005;
        fpr += density(threshold) / 100.0;
        tpr += density(threshold - mu) / 100.0;
        if fpr > 1e-3 {
            points.push((fpr, tpr));
        }
    }
    points
}

fn main() {
    let figure =
        Figure::new("More noise, less to see", "The best attack against a Gaussian mechanism.")
            .x(Axis::log("false positive rate"))
            .y(Axis::log("true positive rate"))
            .with(Series::line("mu 1", curve(1.0)))
            .with(Series::line("mu 0.5", curve(0.5)));
    print!("{}", figures::to_svg(&figure, &figures::Options::default()));
    eprintln!("{} rows behind it", figures::to_csv(&figure).lines().count() - 1);
}
