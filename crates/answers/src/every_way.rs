//! One run with its batches drawn in every way: what would shuffled or fixed-size batches cost?

use crate::account;
use crate::compare::{CompareQuestion, Comparison, LeftOut, NamedAccount, NamedRun, asked};
use crate::refusal::Refusal;
use vocabulary::figure::{Axis, Figure, Hue, Series, Stroke};
use vocabulary::{
    Adjacency, AtMost, Claim, LensName, Permutation, Quantity, Run, RunDescription, Sampling,
};

pub(crate) fn ask(
    question: &CompareQuestion,
    one: &NamedRun,
    answer: &mut Comparison,
) -> Result<(), Refusal> {
    let keys = one.run.description()?;
    let mut written = match one.files.as_slice() {
        [] => keys,
        [file] => file.document()?.run.overridden_by(&keys)?,
        _ => return Err(Refusal::bad_input("this comparison takes one file per run")),
    };
    written.adjacency.get_or_insert(Adjacency::ZeroOut);
    let noises = &question.noise_multipliers;
    if !noises.is_empty() && written.whole.noise_multiplier.is_some() {
        return Err(Refusal::bad_input(
            "the noise is given twice, as --noise-multipliers and in the run; drop one of them",
        ));
    }
    let mut narrowed = question.clone();
    if narrowed.lens.is_empty() {
        narrowed.lens = vec![LensName::SIGNED];
    }
    if narrowed.quantity.is_empty() {
        narrowed.quantity = vec![Quantity::Epsilon, Quantity::Advantage];
    }
    let before = answer.runs.len();
    let mut first = None;
    let each: Vec<Option<f64>> =
        if noises.is_empty() { vec![None] } else { noises.iter().copied().map(Some).collect() };
    for (way, described) in ways(&written) {
        for noise in &each {
            let mut described = described.clone();
            let mut name = way.clone();
            if let Some(noise) = noise {
                described.whole.noise_multiplier = Some(*noise);
                name = format!("{way}, noise {noise}");
            }
            if question.runs.len() > 1 {
                name = format!("{}: {name}", one.name);
            }
            match account::ask(&asked(&narrowed, Vec::new(), described.into())) {
                Ok(account) => answer.runs.push(NamedAccount { name, account }),
                Err(refusal) => {
                    answer.left_out.push(LeftOut { name, reason: refusal.message.clone() });
                    first.get_or_insert(refusal);
                }
            }
        }
    }
    // Where no way has a number the run itself is wrong.
    match first {
        Some(refusal) if answer.runs.len() == before => Err(refusal),
        _ => Ok(()),
    }
}

/// Every way to draw the batches of a run, by name.
fn ways(written: &RunDescription) -> Vec<(String, RunDescription)> {
    let mut all = Vec::new();
    for (name, sampling) in Sampling::ALL {
        let drawn = written.drawn(*sampling);
        match sampling {
            // Every record in every batch is another training, unless it is this one.
            Sampling::Full if written.sampling != Some(Sampling::Full) => {}
            Sampling::Shuffle => {
                for (order, permutation) in Permutation::ALL {
                    let mut drawn = drawn.clone();
                    drawn.batches.permutation = Some(*permutation);
                    all.push((format!("{name} ({order})"), drawn));
                }
            }
            _ => all.push(((*name).to_owned(), drawn)),
        }
    }
    all
}

/// The name of a run's way, without its noise.
fn way_of(run: &Run) -> String {
    let name = run.sampling().as_str();
    match run.sampling() {
        Sampling::Shuffle => {
            let kept = run.drawing().permutation;
            let order = Permutation::ALL.iter().find(|(_, one)| *one == kept);
            format!("{name} ({})", order.map_or("", |(order, _)| order))
        }
        _ => name.to_owned(),
    }
}

/// Epsilon against the noise multiplier, a line for every way; dotted below it what the worst data
/// set leaks at least.
///
/// # Errors
/// Bad input where there is no epsilon at two noise multipliers or more.
pub fn noise_figure(comparison: &Comparison) -> Result<Figure, Refusal> {
    type Line = (String, Vec<(f64, f64)>, Vec<(f64, f64)>);
    let mut lines: Vec<Line> = Vec::new();
    let mut at: Option<(f64, &Run)> = None;
    for named in &comparison.runs {
        let run = &named.account.run;
        let wanted = |claim: &&Claim| claim.quantity == Quantity::Epsilon;
        let ([phase], Some(claim)) = (run.phases(), named.account.claims.iter().find(wanted))
        else {
            continue;
        };
        at = at.or(claim.at.delta.map(|delta| (delta, run)));
        let way = way_of(run);
        let index = lines.iter().position(|(name, _, _)| *name == way).unwrap_or_else(|| {
            lines.push((way, Vec::new(), Vec::new()));
            lines.len() - 1
        });
        lines[index].1.push((phase.noise_multiplier, claim.interval.upper));
        lines[index].2.extend(claim.at_least.map(|least| (phase.noise_multiplier, least)));
    }
    let Some((delta, run)) = at.filter(|_| lines.iter().any(|(_, points, _)| points.len() > 1))
    else {
        return Err(Refusal::bad_input(
            "the figure is epsilon against noise; give --delta and several --noise-multipliers",
        ));
    };
    let change = run.adjacency().words().to_owned() + " a record";
    let mut figure = Figure::new(
        title(&lines),
        "Each line is the proven upper end of epsilon for one way to draw batches; dotted: what the \
         worst data set leaks at least, where the two differ.",
    )
    .subtitle(format!(
        "sample rate {}, {} steps, delta {delta:e}, {change}",
        run.phases()[0].sample_rate,
        run.steps(),
    ))
    .x(Axis::log("noise multiplier"))
    .y(Axis::log("epsilon"));
    for ((name, points, least), hue) in lines.into_iter().zip(HUES.into_iter().cycle()) {
        let below = format!("{name}, at least");
        figure = figure.with(Series::line(name, points).hue(hue).stroke(Stroke::Solid));
        if !least.is_empty() {
            figure = figure.with(Series::line(below, least).hue(hue).stroke(Stroke::Dotted));
        }
    }
    Ok(figure)
}

/// One colour per way; a lower end has that of its way.
const HUES: [Hue; 7] =
    [Hue::Blue, Hue::Vermilion, Hue::Green, Hue::Purple, Hue::Orange, Hue::Sky, Hue::Ink];

/// A way's name, its points, and what it leaks at least.
type Line = (String, Vec<(f64, f64)>, Vec<(f64, f64)>);

/// The finding: how far apart the ways are in the middle of the figure.
fn title(lines: &[Line]) -> String {
    let longest = lines.iter().map(|(_, points, _)| points).max_by_key(|points| points.len());
    let middle = longest.map_or(1.0, |points| points[points.len() / 2].0);
    let here = lines.iter().filter_map(|(name, points, _)| {
        let found = points.iter().find(|(noise, _)| *noise == middle);
        found.map(|(_, epsilon)| (name.as_str(), *epsilon))
    });
    let least = here.clone().min_by(|a, b| a.1.total_cmp(&b.1));
    let most = here.max_by(|a, b| a.1.total_cmp(&b.1));
    match (least, most) {
        (Some(least), Some(most)) => format!(
            "At noise multiplier {middle}, epsilon is from {} ({}) to {} ({})",
            AtMost::new(least.1),
            least.0,
            AtMost::new(most.1),
            most.0
        ),
        _ => "What every way to draw batches costs".into(),
    }
}
