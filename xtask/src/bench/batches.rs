//! Ways to draw batches: epsilon with certified ends beside the accountants that know the scheme.

use super::bars::Bar;
use super::format::{answer, ratio, seconds};
use super::measure::{Bench, faster};
use super::page::Page;

struct Row {
    scheme: &'static str,
    words: &'static str,
    /// Noise, records, batch, steps, delta, and the largest batch (0: none).
    numbers: [f64; 6],
    peer: &'static str,
    most_seconds: f64,
    least_ratio: f64,
}

const ROWS: &[Row] = &[
    Row {
        scheme: "fixed-size",
        words: "fixed size, replacing a record",
        numbers: [1.0, 50_000.0, 500.0, 1000.0, 1e-5, 0.0],
        peer: "dp-accounting RDP",
        most_seconds: 5e-3,
        least_ratio: 300.0,
    },
    Row {
        scheme: "fixed-size",
        words: "fixed size, two steps",
        numbers: [1.0, 50_000.0, 500.0, 2.0, 1e-5, 0.0],
        peer: "dp-accounting RDP",
        most_seconds: 10e-3,
        least_ratio: 10.0,
    },
    Row {
        scheme: "fixed-size",
        words: "fixed size, thirty steps",
        numbers: [1.0, 50_000.0, 500.0, 30.0, 1e-5, 0.0],
        peer: "dp-accounting RDP",
        most_seconds: 150e-3,
        least_ratio: 1.0,
    },
    Row {
        scheme: "truncated-poisson",
        words: "Poisson cut at 550, zeroing a record out",
        numbers: [1.0, 50_000.0, 500.0, 1000.0, 1e-5, 550.0],
        peer: "dp-accounting PLD",
        most_seconds: 5e-3,
        least_ratio: 300.0,
    },
    Row {
        scheme: "balls-and-bins",
        words: "balls and bins, zeroing a record out",
        numbers: [1.0, 50_000.0, 500.0, 1000.0, 1e-5, 0.0],
        peer: "PLD_accounting",
        most_seconds: 50e-3,
        least_ratio: 100.0,
    },
];

pub fn batches(bench: &Bench, page: &mut Page) {
    page.heading(
        "Other ways to draw batches: sigma 1, 50,000 records, batches of 500, 1,000 steps, delta 1e-5",
        "Dosimeter: certified ends of the proven upper bound. dp-accounting with its defaults; its \
         Renyi accountant is given sigma/2, because it counts noise in units of the distance between \
         replaced records. PLD_accounting (Feldman and Shenfeld 2026, with numba): \
         `gaussian_allocation_epsilon_range`, which stops when its ends are 10 % apart.",
    );
    page.line("| batches | Dosimeter, certified ends | CPU | peer | its epsilon | CPU | faster |");
    page.line("|---|---|---|---|---|---|---|");
    for row in ROWS {
        let ours = bench.ours(row.scheme, &row.numbers);
        let theirs = bench.peer("batches", row.scheme, &row.numbers);
        let times = faster(&theirs, &ours);
        let value = |found: Option<f64>| found.map_or_else(|| "—".to_owned(), answer);
        let cost = |found: Option<f64>| found.map_or_else(|| "—".to_owned(), seconds);
        page.line(format!(
            "| {} | {} … {} | {} | {} | {} | {} | {} |",
            row.words,
            value(ours.number("lower")),
            value(ours.number("upper")),
            cost(ours.seconds()),
            row.peer,
            theirs.number("value").map_or_else(|| theirs.why().to_owned(), answer),
            cost(theirs.seconds()),
            times.map_or_else(|| "—".to_owned(), ratio)
        ));
        page.bar(Bar::seconds_below(
            format!("{}: below {}", row.words, seconds(row.most_seconds)),
            row.most_seconds,
            ours.seconds(),
        ));
        page.bar(Bar::at_least(
            format!("{}: at least {}× {}", row.words, row.least_ratio, row.peer),
            row.least_ratio,
            times,
        ));
    }
}
