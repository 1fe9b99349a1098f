//! `attack attribute`: gradient sensitivities to a secret attribute along a training, the Bayes
//! security that follows, and the game of guessing it.

use super::{WorkArgs, carry_out, exit_code, narrate};
use crate::args::{Format, OutputArgs, RunArgs, integer, nonnegative_integer};
use crate::console::{Console, write_file};
use crate::exit;
use crate::failure::Failure;
use crate::print::{claims, rounded};
use accounting::bayes_security::attribute::{self as bound, Mode, Sensitivities};
use accounting::{AccountingError, Questions};
use answers::Refusal;
use attacks::attribute::{
    Accuracy, Attribute, AttributeError, AttributeGame, Collector, Diameter, Observe, Probe,
    accuracy_bound, follow, write_csv,
};
use clap::{Args, ValueEnum};
use experiments::{Experiment, Outcome};
use random::{Purpose, Stream};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use training::data::Dataset;
use training::{Recipe, Replica, TrainingDescription};
use vocabulary::{Adjacency, Claim, LensName, Quantity, Run, Side};

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter attack attribute adult.toml --attribute age --sensitivity age.csv
  dosimeter attack attribute adult.toml --attribute age --mode batch --diameter approximate
  dosimeter attack attribute adult.toml --attribute age --record 12 --secrets 17,90 \\
      --observe all --trials 100 --out guesses.csv
  dosimeter attack attribute adult.toml --candidate-records 12,13,14 --trials 100 --out guesses.csv
  dosimeter account adult.toml --attribute-sensitivity age.csv --attribute-mode record

Without --out the training is done once and the attribute's Bayes security is measured along it;
with --out the game is played: one of the candidates is in, an attacker guesses which.
")]
pub(super) struct AttributeGameArgs {
    /// The training: [run], [data], [model], [optimizer]
    #[arg(value_name = "RUN.toml")]
    file: PathBuf,
    /// The secret: a numeric column or a category of the data set
    #[arg(
        long,
        value_name = "COLUMN",
        required_unless_present = "candidate_records",
        help_heading = "The secret"
    )]
    attribute: Option<String>,
    /// Values it could have, 17..90 or Female,Male [default: all; of numbers, those that occur]
    #[arg(
        long,
        value_name = "LIST",
        requires = "attribute",
        allow_hyphen_values = true,
        help_heading = "The secret"
    )]
    values: Option<String>,
    /// In place of an attribute: one of these records is in (the game of membership by substitution)
    #[arg(
        long,
        value_name = "N,N,…",
        value_delimiter = ',',
        conflicts_with = "attribute",
        requires = "out",
        help_heading = "The secret"
    )]
    candidate_records: Vec<u32>,
    /// The worst of: each record on its own, all records, the sampled batch (as published)
    #[arg(long, value_enum, default_value_t = ModeArg::Record, help_heading = "The bound")]
    mode: ModeArg,
    /// How many records are looked at (drawn by the seed), or `all`; not for --mode batch
    #[arg(long, value_name = "N", default_value = "100", help_heading = "The bound")]
    records: String,
    /// All pairs of values, or the centroid: an upper bound on the distance, so the safe side
    #[arg(long, value_enum, default_value_t = DiameterArg::Full, help_heading = "The bound")]
    diameter: DiameterArg,
    /// Where the sensitivities go, for `account` and `calibrate --attribute-sensitivity`
    #[arg(long, value_name = "FILE", conflicts_with = "out", help_heading = "The bound")]
    sensitivity: Option<PathBuf>,
    /// The record whose attribute is guessed
    #[arg(long, value_name = "N", value_parser = nonnegative_integer, default_value = "0", help_heading = "The game")]
    record: u64,
    /// The values that are to be told apart, or `all` [default: the first and the last]
    #[arg(
        long,
        value_name = "LIST",
        requires = "attribute",
        allow_hyphen_values = true,
        help_heading = "The game"
    )]
    secrets: Option<String>,
    /// What the attacker sees: the released model, or every noisy sum
    #[arg(long, value_enum, default_value_t = super::ObserveArg::Last, help_heading = "The game")]
    observe: super::ObserveArg,
    /// Trainings with each candidate
    #[arg(long, value_name = "N", value_parser = integer, default_value = "100", help_heading = "The game")]
    trials: u64,
    /// Root of all randomness [default: the file's]
    #[arg(long, value_name = "SEED", value_parser = nonnegative_integer)]
    seed: Option<u64>,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ModeArg {
    Batch,
    Dataset,
    Record,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DiameterArg {
    Full,
    Approximate,
}

/// What the file describes.
struct Place {
    run: Run,
    recipe: Arc<Recipe>,
    data: Arc<Dataset>,
    attribute: Option<Attribute>,
}

pub(super) fn run(args: &AttributeGameArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let place = load(args)?;
    let threads = args.work.threads.map(|threads| usize::try_from(threads).unwrap_or(1).min(1024));
    if let Some(threads) = threads {
        // Another part of the program may have asked for threads already; then they stay.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    }
    match (&args.work.out, &place.attribute) {
        (Some(out), _) => game(args, &place, out, format, console),
        (None, Some(attribute)) => measure(args, &place, attribute, format, console),
        (None, None) => Err(Failure::bad_input("candidate records make a game; add --out FILE")),
    }
}

fn load(args: &AttributeGameArgs) -> Result<Place, Failure> {
    let place = args.file.display();
    let text = std::fs::read_to_string(&args.file)
        .map_err(|error| Failure::bad_input(format!("cannot read {place}: {error}")))?;
    let bad = |message: String| Failure::bad_input(message).at(&place);
    let described =
        TrainingDescription::from_toml_str(&text).map_err(|error| bad(error.to_string()))?;
    let folder = args.file.parent().unwrap_or(Path::new(""));
    let split =
        described.data.load(folder).map_err(|error| Failure::bad_input(error.to_string()))?;
    let data = split.train;
    let flags = args.run.description();
    let mut run = described.run.clone().overridden_by(&flags)?;
    run.dataset_size = run.dataset_size.or(Some(data.len() as u64));
    let run = run.resolve().map_err(|error| Refusal::from(error).of(&flags, &place))?.run;
    if !run.sampling().by_coins() {
        return Err(Failure::refused(format!(
            "the attribute bound is about Poisson and full batches, not {}",
            run.sampling().as_str()
        )));
    }
    let attribute = match &args.attribute {
        Some(name) => {
            let values = args.values.as_deref();
            Some(Attribute::of_column(&described.data, &data, name, values).map_err(failure)?)
        }
        None => None,
    };
    let network = described
        .model
        .network(data.shape, data.classes)
        .map_err(|error| bad(error.to_string()))?;
    let seed = args.seed.unwrap_or(described.seed);
    let recipe = Recipe::new(Arc::new(network), described.optimizer, &run, &data, seed)
        .map_err(|error| bad(error.to_string()))?;
    Ok(Place { run, recipe: Arc::new(recipe), data: Arc::new(data), attribute })
}

/// The records that are looked at, drawn by the seed.
fn chosen(args: &AttributeGameArgs, place: &Place) -> Result<Vec<u32>, Failure> {
    let all = place.data.len();
    let count = match args.records.as_str() {
        "all" => all,
        text => match text.parse::<usize>() {
            Ok(count) if count >= 1 => count.min(all),
            _ => {
                return Err(Failure::bad_input(format!(
                    "`{text}` is not a count of records from 1; give --records 100, or --records all"
                )));
            }
        },
    };
    let stream = Stream::new(place.recipe.seed, Purpose::SHUFFLE, 0);
    let mut keys: Vec<(u64, u32)> =
        (0..all as u32).map(|record| (stream.word(0, u64::from(record)), record)).collect();
    keys.sort_unstable();
    let mut records: Vec<u32> = keys.into_iter().take(count).map(|(_, record)| record).collect();
    records.sort_unstable();
    Ok(records)
}

/// Sensitivities along one training.
fn along(
    place: &Place,
    attribute: &Attribute,
    mut collector: Collector,
    console: &mut Console,
) -> Result<Collector, Failure> {
    let Place { recipe, data, .. } = place;
    let mut recipe = Recipe::clone(recipe);
    recipe.lanes = recipe.suggested_lanes();
    let recipe = Arc::new(recipe);
    let probe = Probe::new(attribute.clone(), Arc::clone(&recipe.network), recipe.clip_norm);
    let stop = console.stop_flag();
    let (start, mut last) = (Instant::now(), Instant::now());
    let steps = recipe.steps();
    follow(&recipe, data, Replica::new(0), &stop, |moment| {
        if moment.step < steps {
            collector.add(&probe, &recipe, data, moment)?;
        }
        if last.elapsed() >= Duration::from_secs(5) && moment.step > 0 {
            last = Instant::now();
            let left = start.elapsed().as_secs_f64() * (steps as f64 / moment.step as f64 - 1.0);
            console.note(&format!("{} of {steps} steps, about {left:.0} s left", moment.step));
        }
        Ok(())
    })
    .map_err(failure)?;
    Ok(collector)
}

fn measure(
    args: &AttributeGameArgs,
    place: &Place,
    attribute: &Attribute,
    format: Format,
    console: &mut Console,
) -> Result<u8, Failure> {
    let mode = match args.mode {
        ModeArg::Batch => Mode::Batch,
        ModeArg::Dataset => Mode::Dataset,
        ModeArg::Record => Mode::Record,
    };
    let diameter = match args.diameter {
        DiameterArg::Full => Diameter::Full,
        DiameterArg::Approximate => Diameter::Approximate,
    };
    let records = if mode == Mode::Batch { Vec::new() } else { chosen(args, place)? };
    let looked_at = records.len();
    let collector = along(place, attribute, Collector::new(mode, diameter, records), console)?;
    if let Some(path) = &args.sensitivity {
        write_file(path, write_csv(collector.rows()))?;
    }
    let sensitivities = collector.sensitivities().map_err(failure)?;
    let mut notes = vec![format!(
        "{} candidate values of `{}`; distances {}",
        attribute.values.len(),
        attribute.name,
        match diameter {
            Diameter::Full => "over all pairs of them",
            Diameter::Approximate => "bounded by twice the largest from the centroid",
        }
    )];
    if looked_at > 0 && looked_at < place.data.len() {
        notes.push(format!(
            "{looked_at} of {} records were looked at; another one may be worse (--records all)",
            place.data.len()
        ));
    }
    let questions = Questions { notes, ..Questions::default() };
    let found = bound::claims(&place.run, &sensitivities, &questions)?;
    let worst = worst(&sensitivities, &place.run)?;
    if format == Format::Json {
        console.json(&json!({
            "schema": "dosimeter.attack/1",
            "game": "attribute",
            "attribute": attribute.name,
            "values": attribute.values.iter().map(|value| &value.name).collect::<Vec<_>>(),
            "mode": Mode::ALL.iter().find(|(_, known)| *known == mode).map(|(name, _)| name),
            "records": looked_at,
            "worst_record": worst,
            "steps": place.run.steps(),
            "claims": found,
            "sensitivity": args.sensitivity.as_ref().map(|path| path.display().to_string()),
        }))?;
    } else {
        let mut text = format!(
            "`{}` of {}: {} values, {} steps\n\n",
            attribute.name,
            place.data.provenance.name,
            attribute.values.len(),
            place.run.steps()
        );
        text.push_str(&claims::table(&found));
        text.push_str(&claims::footer(&found, &[]));
        if let Some(path) = &args.sensitivity {
            text.push_str(&format!("\n{}\n", path.display()));
        }
        console.answer(&text)?;
    }
    if let Some(record) = worst {
        console.hint(&format!(
            "the most sensitive of these records is {record}; --record {record} --observe all \
             --out guesses.csv plays the game against it"
        ));
    }
    Ok(exit::ANSWERED)
}

/// The record with the least Bayes security, in the mode `record`.
fn worst(sensitivities: &Sensitivities, run: &Run) -> Result<Option<String>, AccountingError> {
    if sensitivities.mode() != Mode::Record {
        return Ok(None);
    }
    let each = sensitivities.security_of_records(run)?;
    let least = each.iter().min_by(|a, b| a.1.central_limit.total_cmp(&b.1.central_limit));
    Ok(least.map(|(name, _)| (*name).to_owned()))
}

fn game(
    args: &AttributeGameArgs,
    place: &Place,
    out: &Path,
    format: Format,
    console: &mut Console,
) -> Result<u8, Failure> {
    let observe = match args.observe {
        super::ObserveArg::Last => Observe::Last,
        super::ObserveArg::All => Observe::All,
    };
    let record = u32::try_from(args.record).unwrap_or(u32::MAX);
    let (recipe, data) = (Arc::clone(&place.recipe), Arc::clone(&place.data));
    let mut told_apart = None;
    let game = match &place.attribute {
        None => AttributeGame::about_records(
            recipe,
            data,
            &args.candidate_records,
            observe,
            args.trials,
        ),
        Some(attribute) => {
            let secrets = secrets(args.secrets.as_deref(), attribute).map_err(failure)?;
            let values = secrets.iter().map(|secret| attribute.values[*secret].clone()).collect();
            told_apart = Some(Attribute::new(&attribute.name, values).map_err(failure)?);
            AttributeGame::about_attribute(
                recipe,
                data,
                attribute,
                record,
                &secrets,
                observe,
                args.trials,
            )
        }
    }
    .map_err(failure)?;
    let outcome = carry_out(&game, out, &args.work, console)?;
    let mut accuracy = None;
    let mut allowed = Vec::new();
    if let Outcome::Complete { .. } = outcome {
        let text = std::fs::read_to_string(out).map_err(|error| {
            Failure::bad_input(format!("cannot read {}: {error}", out.display()))
        })?;
        accuracy = Accuracy::of_table(&text, 0.95);
        if let Some(attribute) = &told_apart {
            let collector = Collector::new(Mode::Record, Diameter::Full, vec![record]);
            let collector = along(place, attribute, collector, console)?;
            let sensitivities = collector.sensitivities().map_err(failure)?;
            allowed = bound::claims(&place.run, &sensitivities, &Questions::default())?;
        } else {
            allowed = membership(&place.run)?;
        }
        allowed.retain(|claim| claim.quantity == Quantity::BayesSecurity);
    }
    let candidates = game.candidates().len();
    if format == Format::Json {
        console.json(&document(&game, observe, accuracy, &allowed, outcome, out))?;
    } else if let Some(found) = accuracy {
        console.answer(&human(&game, observe, &found, &allowed, out))?;
    }
    let contradicted = accuracy.is_some_and(|found| {
        let certified = allowed.iter().find(|claim| claim.source == LensName::ClosedFormCertified);
        certified
            .is_some_and(|claim| found.lower > accuracy_bound(claim.interval.lower, candidates))
    });
    if contradicted {
        console.warn(
            "the attacker was right more often than the certified form allows: the bound is about \
             the sensitivities of one training, which these trainings need not share",
        );
    }
    narrate(&outcome, out, console);
    Ok(exit_code(&outcome))
}

/// What is known about replacing a record.
fn membership(run: &Run) -> Result<Vec<Claim>, Failure> {
    let run = Run::builder()
        .phases(run.phases().to_vec())
        .sampling(run.sampling())
        .adjacency(Adjacency::Substitute)
        .clip_norm(run.clip_norm())
        .build()?;
    let lenses = vec![LensName::Composition, LensName::ClosedForm, LensName::ClosedFormCertified];
    let quantities = vec![Quantity::BayesSecurity];
    let questions = Questions { lenses, quantities, ..Questions::default() };
    Ok(accounting::account(&run, &questions)?.claims)
}

/// The candidates of the game: named ones, all, or the two ends.
fn secrets(text: Option<&str>, attribute: &Attribute) -> Result<Vec<usize>, AttributeError> {
    match text {
        None => Ok(vec![0, attribute.values.len() - 1]),
        Some("all") => Ok((0..attribute.values.len()).collect()),
        Some(names) => names.split(',').map(|name| attribute.position(name.trim())).collect(),
    }
}

fn human(
    game: &AttributeGame,
    observe: Observe,
    found: &Accuracy,
    allowed: &[Claim],
    out: &Path,
) -> String {
    let candidates = game.candidates().len();
    let seen = match observe {
        Observe::Last => "the released model, guessing by the loss",
        Observe::All => "every noisy sum, guessing by the likelihood",
    };
    let percent = |share: f64, side: Side| rounded(100.0 * share, 4, side);
    let mut text = format!(
        "{candidates} candidates, the attacker sees {seen}\n\n  {:<34} {} %\n  {:<34} {} % \
         ({} to {} % at {} % confidence, measured, {} of {})\n",
        "blind guessing",
        percent(1.0 / candidates as f64, Side::Neither),
        "the attacker's guesses",
        percent(found.value, Side::Neither),
        percent(found.lower, Side::Lower),
        percent(found.upper, Side::Upper),
        100.0 * found.confidence,
        found.right,
        found.guesses
    );
    for claim in allowed {
        let end = match claim.side {
            Side::Neither => claim.interval.value,
            _ => claim.interval.lower,
        };
        let (sign, side) =
            if claim.side == Side::Neither { ("~", claim.side) } else { ("<=", Side::Upper) };
        text.push_str(&format!(
            "  {:<34} {sign} {} % ({})\n",
            format!("allowed by {}", claim.source),
            percent(accuracy_bound(end, candidates), side),
            claim.standing.as_str()
        ));
    }
    if !allowed.is_empty() {
        text.push_str("\nThe bounds are for an attacker who sees every step of the training.\n");
    }
    text.push_str(&format!("\n{}\n", out.display()));
    text
}

fn document(
    game: &AttributeGame,
    observe: Observe,
    accuracy: Option<Accuracy>,
    allowed: &[Claim],
    outcome: Outcome,
    out: &Path,
) -> Value {
    let plan = game.plan();
    let candidates = game.candidates().len();
    let state = match outcome {
        Outcome::Complete { .. } => "complete",
        Outcome::Incomplete { .. } => "incomplete",
        Outcome::Interrupted { .. } => "interrupted",
    };
    json!({
        "schema": "dosimeter.attack/1",
        "game": "attribute",
        "parameters": plan.parameters,
        "seed": plan.seed,
        "trials": plan.trials,
        "plan": plan.digest(),
        "state": state,
        "scores": (state == "complete").then(|| out.display().to_string()),
        "observe": match observe { Observe::Last => "last", Observe::All => "all" },
        "accuracy": accuracy.map(|found| json!({
            "right": found.right,
            "guesses": found.guesses,
            "value": found.value,
            "lower": found.lower,
            "upper": found.upper,
            "confidence": found.confidence,
            "standing": "measured",
            "blind": 1.0 / candidates as f64,
        })),
        "allowed": allowed.iter().map(|claim| json!({
            "lens": claim.source.as_str(),
            "standing": claim.standing,
            "bayes_security": claim.interval.value,
            "accuracy": accuracy_bound(claim.interval.value, candidates),
        })).collect::<Vec<_>>(),
    })
}

fn failure(error: AttributeError) -> Failure {
    match error {
        AttributeError::Interrupted => {
            Failure::new(exit::INTERRUPTED, "interrupted; the same command starts over".to_owned())
        }
        AttributeError::Accounting(error) => error.into(),
        other => Failure::bad_input(other.to_string()),
    }
}
