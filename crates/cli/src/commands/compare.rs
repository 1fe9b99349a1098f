//! `compare`: several runs side by side, all lenses of one, a map of the heuristic over
//! (sample rate, steps), or one heuristic epsilon for several batch sizes.

use super::answer;
use crate::args::{Format, LensArgs, LimitArgs, OutputArgs, RunArgs, read_file};
use crate::console::Console;
use crate::print::{Align, TextTable, WIDTH, about, claims, csv_line, describe, plain, wrap};
use accounting::compare::{BatchSizes, Map, MapNoise};
use answers::{Ask, BatchSizesQuestion, CompareQuestion, Comparison, MapQuestion, NamedRun};
use answers::{Refusal, legends};
use clap::Args;
use std::path::PathBuf;
use vocabulary::{Account, AtMost};

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter compare small-batches.toml large-batches.toml --delta 1e-5
  dosimeter compare --noise-multiplier 1 --sample-rate 0.01 --steps 1000 \\
      --delta 1e-5
  dosimeter compare --every-sampling --noise-multiplier 1 --sample-rate 0.01 \\
      --steps 1000 --delta 1e-5
  dosimeter compare --map --noise-multiplier 1 --delta 1e-5 \\
      --format svg > map.svg
  dosimeter compare --batch-sizes 256,512,4096 --dataset-size 50000 \\
      --epochs 60 --heuristic-epsilon 6 --delta 1e-5
")]
pub struct CompareArgs {
    /// Runs (TOML) or ledgers (JSON) to put side by side
    #[arg(value_name = "RUN.toml|LEDGER.json")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    question: CompareQuestion,
    #[command(flatten)]
    lens: LensArgs,
    /// Print how the heuristic epsilon compares with the proven and the full-batch one, over a grid
    /// of sample rates and steps
    #[arg(long, help_heading = "The map")]
    map: bool,
    #[command(flatten)]
    of_map: MapQuestion,
    #[command(flatten)]
    of_sizes: BatchSizesQuestion,
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &CompareArgs, console: &mut Console) -> Result<u8, Refusal> {
    match (args.map, !args.of_sizes.batch_sizes.is_empty()) {
        (true, true) => Err(Refusal::bad_input(
            "--map and --batch-sizes ask different questions; keep one of them",
        )),
        (true, false) => map(args, console),
        (false, true) => batch_sizes(args, console),
        (false, false) => side_by_side(args, console),
    }
}

fn side_by_side(args: &CompareArgs, console: &mut Console) -> Result<u8, Refusal> {
    let mut formats = vec![Format::Human, Format::Json, Format::Csv];
    formats.extend(args.question.every_sampling.then_some(Format::Svg));
    let format = args.output.among(&formats)?;
    for (flag, given) in [
        ("--sample-rates", !args.of_map.sample_rates.is_empty()),
        ("--steps-list", !args.of_map.steps_list.is_empty()),
        ("--standard-epsilon", args.of_map.standard_epsilon.is_some()),
    ] {
        if given {
            return Err(Refusal::bad_input(format!(
                "{flag} belongs to --map; add that or drop it"
            )));
        }
    }
    if args.of_sizes.heuristic_epsilon.is_some() {
        return Err(Refusal::bad_input("--heuristic-epsilon belongs to --batch-sizes; add that"));
    }
    let mut runs = Vec::new();
    for path in &args.files {
        runs.push(NamedRun {
            name: path.display().to_string(),
            files: vec![read_file(path)?],
            run: args.run.description().into(),
        });
    }
    if runs.is_empty() {
        let run = args.run.description().into();
        runs.push(NamedRun { name: "run".into(), files: Vec::new(), run });
    }
    let question = CompareQuestion {
        time_limit: args.limit.time_limit,
        runs,
        lens: args.lens.lenses(),
        ..args.question.clone()
    };
    if format == Format::Svg {
        let figure = answers::noise_figure(&question.ask()?)?;
        console.answer(&figures::to_svg(&figure, &figures::Options::default()))?;
        return Ok(0);
    }
    let code = answer(&question, format, console, |comparison| match format {
        Format::Csv => csv(comparison),
        _ if args.question.every_sampling => ways(comparison),
        _ => human(comparison),
    })?;
    if args.question.delta.is_empty() && format == Format::Human {
        console.hint("give --delta (well below 1/n) for epsilon and mu");
    }
    Ok(code)
}

fn human(comparison: &Comparison) -> String {
    let mut text = String::new();
    if let [only] = comparison.runs.as_slice() {
        text.push_str(&describe::run(&only.account.run));
        text.push('\n');
        text.push_str(&claims::table(&only.account.claims));
        text.push_str(&claims::footer(&only.account.claims, &only.account.unsupported));
        return text;
    }
    for (index, named) in comparison.runs.iter().enumerate() {
        let name = format!("[{}] {}", index + 1, named.name);
        text.push_str(&describe::named(&named.account.run, &name));
    }
    text.push('\n');
    // One row per question and lens, one column per run.
    let titles: Vec<String> =
        (1..=comparison.runs.len()).map(|index| format!("[{index}]")).collect();
    let columns = [("question", Align::Left), ("lens", Align::Left), ("standing", Align::Left)]
        .into_iter()
        .chain(titles.iter().map(|title| (title.as_str(), Align::Right)));
    let mut table = TextTable::new(columns);
    let mut seen: Vec<(String, vocabulary::Source, vocabulary::Direction)> = Vec::new();
    for claim in comparison.runs.iter().flat_map(|named| &named.account.claims) {
        let key = (claims::title(claim.quantity, claim.at), claim.source, claim.direction);
        if !seen.contains(&key) {
            seen.push(key);
        }
    }
    let mut order: Vec<String> = Vec::new();
    for (title, _, _) in &seen {
        if !order.contains(title) {
            order.push(title.clone());
        }
    }
    seen.sort_by_key(|(title, _, _)| order.iter().position(|known| known == title));
    for (title, lens, direction) in seen {
        let find = |account: &Account| {
            account
                .claims
                .iter()
                .find(|claim| {
                    claim.source == lens
                        && claim.direction == direction
                        && claims::title(claim.quantity, claim.at) == title
                })
                .cloned()
        };
        let found: Vec<_> = comparison.runs.iter().map(|named| find(&named.account)).collect();
        let standing = found.iter().flatten().next().map_or("", |claim| claim.standing.as_str());
        let name = if direction == vocabulary::Direction::Both {
            lens.as_str().to_owned()
        } else {
            format!("{lens} ({})", direction.as_str())
        };
        let mut cells = vec![title, name, standing.to_owned()];
        cells.extend(
            found.iter().map(|claim| claim.as_ref().map_or_else(|| "-".into(), claims::number)),
        );
        table.row(cells);
    }
    text.push_str(&table.render_within(0, 3, WIDTH));
    text
}

/// One row per way to draw batches, one column per question.
fn ways(comparison: &Comparison) -> String {
    let mut text = String::new();
    let mut titles: Vec<String> = Vec::new();
    let all = || comparison.runs.iter().flat_map(|named| &named.account.claims);
    let several = all().any(|claim| all().next().is_some_and(|first| first.source != claim.source));
    for claim in all() {
        let title = way_title(claim, several);
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    // Every run once; what differs between its rows is how batches are drawn.
    let first = comparison.runs.first().map(|named| named.account.run.sampling());
    for named in &comparison.runs {
        let run = &named.account.run;
        if Some(run.sampling()) == first {
            text.push_str(&describe::in_every_way(
                run,
                named.name.rsplit_once(": ").map(|at| at.0),
            ));
        }
    }
    text.push('\n');
    let columns = std::iter::once(("batches", Align::Left))
        .chain(titles.iter().map(|title| (title.as_str(), Align::Right)));
    let mut table = TextTable::new(columns);
    let mut enclosed = false;
    for named in &comparison.runs {
        let mut cells = vec![named.name.clone()];
        for title in &titles {
            let found =
                named.account.claims.iter().find(|claim| way_title(claim, several) == *title);
            cells.push(match found {
                None => "-".into(),
                Some(claim) => match claim.at_least_shown() {
                    None => claims::number(claim),
                    Some(least) => {
                        enclosed = true;
                        format!("{} ({least})", claims::number(claim))
                    }
                },
            });
        }
        table.row(cells);
    }
    text.push_str(&table.render_within(0, 1, WIDTH));
    if enclosed {
        text.push_str(&format!("\n{}\n", legends::BRACKETS_ARE));
    }
    for way in &comparison.left_out {
        text.push('\n');
        text.push_str(&wrap(&way.reason, &format!("{}: ", way.name), 2, WIDTH));
    }
    text
}

/// A question, and its lens where there are several.
fn way_title(claim: &vocabulary::Claim, several: bool) -> String {
    let title = claims::title(claim.quantity, claim.at);
    if several { format!("{title} ({})", claim.source) } else { title }
}

fn csv(comparison: &Comparison) -> String {
    let mut text = String::new();
    for named in &comparison.runs {
        let table = claims::csv(&named.account.claims);
        let first = text.is_empty();
        for (index, line) in table.lines().enumerate().skip(usize::from(!first)) {
            let name = csv_line([if index == 0 { "run" } else { &named.name }]);
            text.push_str(&format!("{},{line}\n", name.trim_end()));
        }
    }
    text
}

fn map(args: &CompareArgs, console: &mut Console) -> Result<u8, Refusal> {
    if !args.files.is_empty() {
        return Err(Refusal::bad_input(
            "--map looks at a grid of runs, not at files; drop them and give --noise-multiplier",
        ));
    }
    let question = MapQuestion {
        time_limit: args.limit.time_limit,
        noise_multiplier: args.run.noise_multiplier,
        delta: args.question.delta.clone(),
        ..args.of_map.clone()
    };
    let format = args.output.format;
    answer(&question, format, console, |map| match format {
        Format::Csv => map_csv(map),
        Format::Svg => {
            figures::to_svg(&accounting::compare::map_figure(map), &figures::Options::default())
        }
        Format::Human | Format::Json => map_human(map),
    })
}

fn map_human(map: &Map) -> String {
    let (mut rates, mut counts): (Vec<f64>, Vec<u64>) = (Vec::new(), Vec::new());
    for cell in &map.cells {
        if !rates.contains(&cell.sample_rate) {
            rates.push(cell.sample_rate);
        }
        if !counts.contains(&cell.steps) {
            counts.push(cell.steps);
        }
    }
    let mut text = match map.noise {
        MapNoise::NoiseMultiplier(noise) => format!("noise multiplier {}", plain(noise)),
        MapNoise::StandardEpsilon(epsilon) => {
            format!("noise such that composition has epsilon {}", plain(epsilon))
        }
    };
    text.push_str(&format!(", delta {}; rows: sample rate, columns: steps\n", plain(map.delta)));
    for (pick, title) in legends::MAP_TITLES.into_iter().enumerate() {
        text.push_str(&format!("\n{title}\n"));
        let steps: Vec<String> = counts.iter().map(|steps| plain(*steps as f64)).collect();
        let columns = std::iter::once(("", Align::Right))
            .chain(steps.iter().map(|steps| (steps.as_str(), Align::Right)));
        let mut table = TextTable::new(columns);
        for rate in &rates {
            let mut cells = vec![plain(*rate)];
            for steps in &counts {
                let cell = map.cells.iter().find(|c| c.sample_rate == *rate && c.steps == *steps);
                let ratio = cell.and_then(|cell| {
                    if pick == 0 {
                        cell.heuristic_over_standard
                    } else {
                        cell.heuristic_over_full_batch
                    }
                });
                cells.push(ratio.map_or_else(|| "-".into(), |r| about(r, 3)));
            }
            table.row(cells);
        }
        text.push_str(&table.render(0));
    }
    text
}

fn map_csv(map: &Map) -> String {
    let mut text = csv_line([
        "sample_rate",
        "steps",
        "noise_multiplier",
        "standard",
        "heuristic",
        "full_batch",
        "heuristic_over_standard",
        "heuristic_over_full_batch",
    ]);
    let shown = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for cell in &map.cells {
        text.push_str(&csv_line([
            cell.sample_rate.to_string(),
            cell.steps.to_string(),
            shown(cell.noise_multiplier),
            shown(cell.standard),
            shown(cell.heuristic),
            shown(cell.full_batch),
            shown(cell.heuristic_over_standard),
            shown(cell.heuristic_over_full_batch),
        ]));
    }
    text
}

fn batch_sizes(args: &CompareArgs, console: &mut Console) -> Result<u8, Refusal> {
    let format = args.output.among(&[Format::Human, Format::Json, Format::Csv])?;
    let question = BatchSizesQuestion {
        time_limit: args.limit.time_limit,
        dataset_size: args.run.dataset_size,
        epochs: args.run.epochs,
        delta: args.question.delta.clone(),
        ..args.of_sizes.clone()
    };
    answer(&question, format, console, |sizes| match format {
        Format::Csv => batch_csv(sizes),
        _ => batch_human(sizes),
    })
}

fn batch_human(answer: &BatchSizes) -> String {
    let head = format!(
        "The noise that gives last-iterate epsilon {} at delta {}, {} epochs of {} records, \
         {}",
        plain(answer.heuristic_epsilon),
        plain(answer.delta),
        plain(answer.epochs),
        answer.dataset_size,
        legends::BATCH_SIZES_ARE
    );
    let mut text = wrap(&head, "", 0, WIDTH) + "\n";
    let mut table = TextTable::new([
        ("batch size", Align::Right),
        ("sample rate", Align::Right),
        ("steps", Align::Right),
        ("noise\nmultiplier", Align::Right),
        (legends::BATCH_SIZE_COLUMNS[0], Align::Right),
        (legends::BATCH_SIZE_COLUMNS[1], Align::Right),
        (legends::BATCH_SIZE_COLUMNS[2], Align::Right),
    ]);
    let shown = |end: Option<AtMost>| end.map_or_else(|| "-".into(), AtMost::shown);
    for row in &answer.rows {
        let [heuristic, standard, full_batch] = row.epsilons_at_most().map(shown);
        table.row([
            row.batch_size.to_string(),
            about(row.sample_rate, 4),
            row.steps.to_string(),
            row.noise_at_most().map_or_else(|| "-".into(), |noise| noise.digits(5)),
            heuristic,
            standard,
            full_batch,
        ]);
    }
    text.push_str(&table.render(0));
    text
}

fn batch_csv(answer: &BatchSizes) -> String {
    let mut text = csv_line([
        "batch_size",
        "sample_rate",
        "steps",
        "noise_multiplier",
        "heuristic_epsilon",
        "standard_epsilon",
        "full_batch_epsilon",
    ]);
    let shown = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for row in &answer.rows {
        text.push_str(&csv_line([
            row.batch_size.to_string(),
            row.sample_rate.to_string(),
            row.steps.to_string(),
            shown(row.noise_multiplier),
            shown(row.heuristic_epsilon),
            shown(row.standard_epsilon),
            shown(row.full_batch_epsilon),
        ]));
    }
    text
}
