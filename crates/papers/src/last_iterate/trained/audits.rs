//! The audits of a figure: lower bounds against the number of steps, beside the standard and the
//! heuristic epsilon.

use super::rounds::{Played, play};
use super::settings::{
    Attack, DELTA, LEARNING_RATE, RECORDS, SAMPLE_RATE, STANDARD, TRIALS, noise,
};
use crate::tools::{audited, epsilon, last_iterate};
use crate::trained::TrainedContext;
use crate::{PaperError, PaperTable};
use audit::{Design, Family, Plan, Scores, analyse};
use games::DpSgd;
use serde_json::{Value, json};
use vocabulary::figure::{Axis, Figure, Series, Stroke};

const CONFIDENCE: f64 = 0.95;

/// What a figure's attacks showed.
pub(super) struct Found {
    pub(super) parameters: Value,
    pub(super) table: PaperTable,
    pub(super) figures: Vec<(String, Figure)>,
    /// (data, model, attack, steps, share of the heuristic) of every audit.
    pub(super) shares: Vec<(String, &'static str, Attack, f64)>,
    /// Trainings per side, fewest and most.
    pub(super) sizes: (usize, usize),
}

struct Audit {
    auroc: f64,
    any_mechanism: f64,
    composition: f64,
    last_iterate: f64,
}

fn audit(scores: &Scores, steps: u64) -> Result<Audit, PaperError> {
    let mut plan = Plan::new(Design::Runs);
    plan.deltas = vec![DELTA];
    plan.confidence = CONFIDENCE;
    let analysis = analyse(scores, &plan, None)?;
    let family = |family: Family| audited(scores, &family, DELTA, CONFIDENCE);
    Ok(Audit {
        auroc: analysis.auroc.value,
        any_mechanism: analysis.primary().map_or(0.0, |bound| bound.epsilon()),
        composition: family(Family::Composition { sample_rate: SAMPLE_RATE, steps })?,
        last_iterate: family(Family::LastIterate { sample_rate: SAMPLE_RATE, steps })?,
    })
}

/// Plays the attacks (the first among natural records) and audits whatever is finished; `canary` is
/// what the figures' titles call it.
pub(super) fn found(
    context: &TrainedContext<'_>,
    attacks: &[Attack],
    canary: &str,
) -> Result<Found, PaperError> {
    let played = play(context, attacks)?;
    let mut table = PaperTable::new(
        "audits",
        &[
            "data",
            "model",
            "attack",
            "steps",
            "noise_multiplier",
            "trainings_per_side",
            "standard",
            "heuristic",
            "auroc",
            "any_mechanism_95",
            "composition_family_95",
            "last_iterate_family_95",
        ],
    );
    let mut shares = Vec::new();
    let mut sizes = (usize::MAX, 0);
    let mut points: Vec<(&Played, f64, f64)> = Vec::new();
    let mut aurocs: Vec<(&Played, f64, usize)> = Vec::new();
    for setting in &played {
        let Some(scores) = context.scores(&setting.name)? else { continue };
        let sigma = noise(setting.steps)?;
        let trainer = DpSgd::new(sigma, SAMPLE_RATE, setting.steps);
        let heuristic = epsilon(&last_iterate(&trainer)?, DELTA)?;
        let audit = audit(&scores, setting.steps)?;
        let side = scores.members().len();
        sizes = (sizes.0.min(side), sizes.1.max(side));
        table.push((
            &setting.data,
            setting.model,
            setting.attack.name(),
            setting.steps,
            sigma,
            side,
            STANDARD,
            heuristic,
            audit.auroc,
            audit.any_mechanism,
            audit.composition,
            audit.last_iterate,
        ));
        let share = audit.last_iterate / heuristic;
        shares.push((setting.data.clone(), setting.model, setting.attack, share));
        points.push((setting, heuristic, audit.last_iterate));
        aurocs.push((setting, audit.auroc, side));
    }
    let mut figures: Vec<(String, Figure)> = Vec::new();
    for (setting, ..) in &points {
        let file = format!("{}-{}", setting.data, setting.model);
        if figures.iter().any(|(name, _)| *name == file) {
            continue;
        }
        let title = finding(canary, setting, attacks[0], &aurocs);
        figures.push((file, figure(&title, setting, attacks, &points)));
    }
    Ok(Found {
        parameters: json!({
            "delta": DELTA,
            "standard_epsilon": STANDARD,
            "sample_rate": SAMPLE_RATE,
            "records": context.records.unwrap_or(RECORDS),
            "learning_rate": LEARNING_RATE,
            "trials": context.trials.unwrap_or(TRIALS),
            "confidence": CONFIDENCE,
            "seed": context.seed,
            "device": context.devices(played.iter().map(|setting| setting.name.as_str())),
        }),
        table,
        figures,
        shares,
        sizes,
    })
}

/// How much of a canary's AUROC above one half is lost among natural records, over the steps that
/// both worlds have; the AUROC, because it does not depend on how many trainings there are. Nothing
/// is said about a difference within two standard errors (an AUROC of m trainings per side has a
/// variance of about 1 / 6m where it is near one half, less elsewhere).
fn finding(
    canary: &str,
    like: &Played,
    natural: Attack,
    aurocs: &[(&Played, f64, usize)],
) -> String {
    let own = || {
        (aurocs.iter())
            .filter(|(setting, ..)| setting.data == like.data && setting.model == like.model)
    };
    let (mut among, mut alone, mut variance) = (0.0, 0.0, 0.0);
    let mut fewest = usize::MAX;
    for (setting, auroc, side) in own().filter(|(setting, ..)| setting.attack == natural) {
        let other =
            own().find(|(other, ..)| other.attack != natural && other.steps == setting.steps);
        fewest = fewest.min(*side);
        if let Some((_, other, other_side)) = other {
            among += auroc - 0.5;
            alone += other - 0.5;
            variance += (1.0 / *side as f64 + 1.0 / *other_side as f64) / 6.0;
            fewest = fewest.min(*other_side);
        }
    }
    if variance == 0.0 {
        return format!("{canary} among natural records, {fewest} trainings per side");
    }
    let hidden = 1.0 - among / alone;
    let unsure = 2.0 * f64::sqrt(variance);
    let same = (alone - among).abs() < unsure;
    let shows = alone > 0.05;
    // Few trainings that show nothing are no finding.
    if !(shows || same && unsure >= 0.1) {
        format!("{canary} hardly shows, among natural records or without them")
    } else if shows && hidden.abs() < 0.05 {
        format!("{canary} shows as well among natural records as without them")
    } else if same {
        format!("{canary}: no effect of natural records seen in {fewest} trainings per side")
    } else if hidden > 0.0 {
        format!("{canary} shows {:.0} % less among natural records", 100.0 * hidden)
    } else {
        format!("{canary} shows {:.0} % more among natural records", -100.0 * hidden)
    }
}

fn figure(
    title: &str,
    like: &Played,
    attacks: &[Attack],
    points: &[(&Played, f64, f64)],
) -> Figure {
    let own: Vec<&(&Played, f64, f64)> = points
        .iter()
        .filter(|(setting, ..)| setting.data == like.data && setting.model == like.model)
        .collect();
    let mut heuristic: Vec<(f64, f64)> =
        own.iter().map(|(setting, heuristic, _)| (setting.steps as f64, *heuristic)).collect();
    heuristic.sort_by(|a, b| a.0.total_cmp(&b.0));
    heuristic.dedup();
    let mut figure = Figure::new(
        title,
        "Points: lower bounds at 95 % confidence within the last-iterate family, valid over all thresholds; the dashed line is what the heuristic allows, the solid one what is proven.",
    )
    .subtitle(format!("{}, {}, q {SAMPLE_RATE}, delta {DELTA:e}", like.data, like.model))
    .x(Axis::log("steps").domain(12.0, 340.0))
    .y(Axis::linear("epsilon").domain(0.0, 9.0))
    .with(Series::horizontal_rule("standard", STANDARD).stroke(Stroke::Solid))
    .with(Series::line("heuristic", heuristic).stroke(Stroke::Dashed));
    for attack in attacks {
        let of = own.iter().filter(|(setting, ..)| setting.attack == *attack);
        let points: Vec<(f64, f64)> =
            of.map(|(setting, _, audited)| (setting.steps as f64, *audited)).collect();
        if !points.is_empty() {
            figure = figure.with(Series::scatter(attack.words(), points));
        }
    }
    figure
}

/// The range of an attack's shares of the heuristic, in words.
pub(super) fn range(found: &Found, attack: Attack) -> String {
    let own = || found.shares.iter().filter(|(_, _, other, _)| *other == attack);
    if own().next().is_none() {
        return "not yet played".to_owned();
    }
    let least = own().map(|(.., share)| *share).fold(f64::INFINITY, f64::min);
    let most = own().map(|(.., share)| *share).fold(0.0, f64::max);
    let (least, most) = (format!("{:.0} %", 100.0 * least), format!("{:.0} %", 100.0 * most));
    if least == most { least } else { format!("{least} to {most}") }
}

/// How many trainings per side there are, in words.
pub(super) fn sizes(found: &Found) -> String {
    match found.sizes {
        (usize::MAX, _) => "no trainings yet".to_owned(),
        (least, most) if least == most => format!("{most} trainings per side"),
        (least, most) => format!("{least} to {most} trainings per side"),
    }
}

/// What all figures leave smaller than the paper has it.
pub(super) const SMALLER: &str = "Smaller than the paper: 2,560 records in place of 50,000, at a sample rate of 0.1; a multi-layer perceptron, the convolutional net of Opacus' MNIST example, a wide residual net 10-1, and the paper's 16-4 with 16 steps, and with 64 among natural records; at most 256 steps; plain SGD, a learning rate of 0.5 for all, no augmentation. The paper's steps and noise are not in its text: the noise here gives standard epsilon 8 at each number of steps. Bounds are valid over all thresholds at once. Where the data are called cifar10-jpeg they are CIFAR-10's images compressed again as JPEG, with loss.";
