//! `curve`: the curves behind the numbers.

use super::answer;
use crate::args::{Format, LimitArgs, OutputArgs, RunArgs, read_files};
use crate::console::Console;
use crate::print::{Align, TextTable, about, csv_line, describe, plain};
use accounting::curve::{Curve, CurveKind};
use answers::{CurveQuestion, Refusal};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter curve tradeoff --noise-multiplier 1 --sample-rate 0.01 \\
      --steps 1000 --lens composition,last-iterate --format svg > tradeoff.svg
  dosimeter curve profile run.toml --format csv
  dosimeter curve steps run.toml --delta 1e-6 \\
      --lens composition,last-iterate,full-batch
")]
pub struct CurveArgs {
    #[command(flatten)]
    question: CurveQuestion,
    /// Runs (TOML) or ledgers (JSON); several are composed in order
    #[arg(value_name = "RUN.toml|LEDGER.json")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &CurveArgs, console: &mut Console) -> Result<u8, Refusal> {
    let question = CurveQuestion {
        time_limit: args.limit.time_limit,
        files: read_files(&args.files)?,
        run: args.run.description().into(),
        ..args.question.clone()
    };
    let format = args.output.format;
    answer(&question, format, console, |curve| match format {
        Format::Csv => csv(curve),
        Format::Svg => {
            figures::to_svg(&accounting::curve::figure(curve), &figures::Options::default())
        }
        Format::Human | Format::Json => human(curve),
    })
}

fn names(kind: CurveKind) -> (&'static str, &'static str) {
    match kind {
        CurveKind::Tradeoff => ("fpr", "fnr"),
        CurveKind::Profile => ("epsilon", "delta"),
        CurveKind::Steps => ("steps", "epsilon"),
    }
}

fn csv(curve: &Curve) -> String {
    let (x, y) = names(curve.kind);
    let mut text = csv_line(["lens", "direction", x, y, "lower", "upper"]);
    for line in curve.lines() {
        for point in &line.points {
            let ((at, value), (lower, upper)) = (point.coordinates(), point.ends());
            text.push_str(&csv_line([
                line.lens.as_str().to_owned(),
                line.direction.as_str().to_owned(),
                at.to_string(),
                value.to_string(),
                lower.number().to_string(),
                upper.number().to_string(),
            ]));
        }
    }
    text
}

/// About twenty rows for a person; the safe end of each number.
fn human(curve: &Curve) -> String {
    let (x, y) = names(curve.kind);
    let mut text = describe::run(&curve.run);
    if let Some(delta) = curve.delta {
        text.push_str(&format!("epsilon at delta {}\n", plain(delta)));
    }
    text.push('\n');
    let sign = curve.kind.side().sign();
    let titles: Vec<String> = curve
        .lines()
        .map(|line| format!("{y} {sign}\n{} ({})", line.lens, line.standing.as_str()))
        .collect();
    let columns = std::iter::once((x, Align::Right))
        .chain(titles.iter().map(|title| (title.as_str(), Align::Right)));
    let mut table = TextTable::new(columns);
    let mut places: Vec<f64> = Vec::new();
    for line in curve.lines() {
        for point in &line.points {
            let at = point.coordinates().0;
            if !places.contains(&at) {
                places.push(at);
            }
        }
    }
    places.sort_by(f64::total_cmp);
    let every = places.len().div_ceil(22).max(1);
    for (index, place) in places.iter().enumerate() {
        if index % every != 0 && index + 1 != places.len() {
            continue;
        }
        let mut cells =
            vec![if curve.kind == CurveKind::Steps { place.to_string() } else { about(*place, 4) }];
        for line in curve.lines() {
            let point = line.points.iter().find(|point| point.coordinates().0 == *place);
            cells.push(point.map_or_else(|| "-".into(), |point| point.quoted().digits(4)));
        }
        table.row(cells);
    }
    text.push_str(&table.render(0));
    text
}
