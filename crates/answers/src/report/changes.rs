//! What would change the answer: the claimed epsilon with one thing different at a time.

use super::epsilon;
use accounting::{AccountingError, Questions};
use report::Change;
use vocabulary::figure::{Axis, Bar, Figure, Hue, Labels, Mark, Orientation, Series, Stroke};
use vocabulary::rounding::plain;
use vocabulary::{
    Account, Adjacency, AtMost, Claim, Ends, LensName, Phase, Run, Sampling, Side, Standing,
    batches_per_pass,
};

/// Every change that makes sense for the run, in the order of the table.
pub(super) fn changes(account: &Account, delta: f64) -> Vec<Change> {
    let run = &account.run;
    let Some(claim) = epsilon(account, LensName::SIGNED) else { return Vec::new() };
    let base = claim.interval.upper;
    let mut all = Vec::new();
    let mut ask = |names: (String, &str), note: String, run: Option<Run>, at: f64, lens| {
        let Some(run) = run else { return };
        all.push(change(names, note, &run, at, lens, base));
    };
    let composition = LensName::SIGNED;
    let (other, name, label) = match run.adjacency() {
        Adjacency::AddRemove | Adjacency::ZeroOut => {
            (Adjacency::Substitute, "a record is replaced", "replaced record")
        }
        Adjacency::Substitute => {
            (Adjacency::ZeroOut, "a record is zeroed out", "zeroed-out record")
        }
    };
    ask(
        (name.into(), label),
        format!(
            "neighbours differ by {} one record, not by {} one",
            other.words(),
            run.adjacency().words()
        ),
        run.to_builder().adjacency(other).build().ok(),
        delta,
        composition,
    );
    ask(
        (format!("a group of {}", 2 * run.group_size()), ""),
        "people with twice as many records each".into(),
        run.to_builder().group_size(2 * run.group_size()).build().ok(),
        delta,
        composition,
    );
    if run.sampling() == Sampling::Poisson {
        ask(
            ("shuffled batches".into(), "shuffled"),
            "the loader shuffles instead of drawing each record by a coin; for a record that is zeroed out".into(),
            run.to_builder().adjacency(Adjacency::ZeroOut).build().ok().and_then(shuffled),
            delta,
            composition,
        );
    }
    ask(
        ("twice the steps".into(), ""),
        "twice as many epochs".into(),
        scaled(run, 1.0, 2.0),
        delta,
        composition,
    );
    for (factor, name) in [(0.8, "20 % less noise"), (1.25, "25 % more noise")] {
        ask(
            (name.into(), ""),
            format!("noise multiplier times {factor}"),
            scaled(run, factor, 1.0),
            delta,
            composition,
        );
    }
    for factor in [0.1, 10.0] {
        // Shortest decimal of the product, so that 1e-5 becomes 1e-4 and not its neighbour.
        let at: f64 = format!("{:.12e}", delta * factor).parse().unwrap_or(delta * factor);
        if at < 1.0 {
            ask(
                (format!("delta {at:e}"), ""),
                format!("asked at another delta than {delta:e}"),
                Some(run.clone()),
                at,
                composition,
            );
        }
    }
    ask(
        ("only the final model".into(), "final model"),
        "the last-iterate heuristic, which assumes a linear loss".into(),
        Some(run.clone()),
        delta,
        LensName::BESIDE,
    );
    all
}

fn change(
    (name, label): (String, &str),
    note: String,
    run: &Run,
    delta: f64,
    lens: LensName,
    base: f64,
) -> Change {
    let label = if label.is_empty() { name.clone() } else { label.to_owned() };
    let mut change = Change {
        name,
        label,
        note,
        standing: None,
        side: Side::Upper,
        epsilon: None,
        delta,
        factor: None,
        reason: None,
    };
    match asked(run, delta, lens) {
        Ok(Some(claim)) => {
            change.standing = Some(claim.standing);
            change.factor = ratio(claim.interval.upper, base);
            change.epsilon = Some(Ends::from(claim.interval));
        }
        Ok(None) => {
            change.reason = Some("no lens covers that run, so nothing could be claimed".into());
        }
        Err(error) => change.reason = Some(error.to_string()),
    }
    change
}

/// The claim about a changed run.
fn asked(run: &Run, delta: f64, lens: LensName) -> Result<Option<Claim>, AccountingError> {
    let only = Questions { deltas: vec![delta], lenses: vec![lens], ..Questions::default() };
    Ok(epsilon(&accounting::account(run, &only)?, lens).cloned())
}

/// The run with shuffled batches. Whole epochs that were rounded up to steps stay whole epochs, of full batches.
fn shuffled(run: Run) -> Option<Run> {
    let phases = run
        .phases()
        .iter()
        .map(|phase| {
            let epochs = (phase.steps as f64 * phase.sample_rate * (1.0 + 1e-12)).floor();
            let whole = (epochs / phase.sample_rate * (1.0 - 1e-12)).ceil() == phase.steps as f64;
            let batches = batches_per_pass(phase.sample_rate, false);
            let steps = if whole { epochs as u64 * batches } else { phase.steps };
            Phase { steps, ..*phase }
        })
        .collect();
    run.with_sampling(Sampling::Shuffle).ok()?.with_phases(phases).ok()
}

fn ratio(value: f64, base: f64) -> Option<f64> {
    let ratio = value / base;
    (ratio.is_finite() && base > 0.0).then_some(ratio)
}

/// The run with its noise and steps multiplied in every phase.
pub(super) fn scaled(run: &Run, noise: f64, steps: f64) -> Option<Run> {
    let phases = run
        .phases()
        .iter()
        .map(|phase| Phase {
            noise_multiplier: phase.noise_multiplier * noise,
            steps: (phase.steps as f64 * steps).round().max(1.0) as u64,
            ..*phase
        })
        .collect();
    run.with_phases(phases).ok()
}

/// The changes with a number as bars from the claim, largest first.
pub(super) fn figure(account: &Account, changes: &[Change], delta: f64) -> Option<Figure> {
    let base = epsilon(account, LensName::SIGNED)?.interval.upper;
    let mut rows: Vec<(&Change, f64)> = changes
        .iter()
        .filter_map(|change| {
            let end = change.quoted()?.number();
            end.is_finite().then_some((change, end))
        })
        .collect();
    if rows.is_empty() || !base.is_finite() || base <= 0.0 {
        return None;
    }
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    let name = |change: &Change| match change.standing {
        Some(Standing::Heuristic) => format!("{} (heuristic)", change.label),
        _ => change.label.clone(),
    };
    let bars = |more: bool| {
        let bars = rows.iter().enumerate().filter(|(_, (_, value))| (*value > base) == more);
        let bars = bars.map(|(row, (_, value))| Bar {
            from: row as f64 - 0.32,
            to: row as f64 + 0.32,
            base,
            value: *value,
        });
        Mark::Bars { orientation: Orientation::Horizontal, bars: bars.collect() }
    };
    let (worst, value) = rows[0];
    let title = if value > base {
        format!(
            "If {}, epsilon would be {} instead of {}",
            phrase(&worst.name),
            AtMost::new(value),
            AtMost::new(base)
        )
    } else {
        "No change of the list would raise epsilon".into()
    };
    let most = rows.iter().map(|(_, value)| *value).fold(base, f64::max);
    let figure = Figure::new(
        title,
        "Each bar goes from the claimed epsilon to what it would be with one thing different.",
    )
    .labels(Labels::Legend)
    .x(Axis::linear(format!("epsilon at delta {}, or as named", plain(delta)))
        .domain(0.0, 1.05 * most))
    .y(Axis::category("", rows.iter().map(|(change, _)| name(change))));
    Some(
        figure
            .with(Series::new("leaks more", bars(true)).hue(Hue::Vermilion).stroke(Stroke::Solid))
            .with(Series::new("leaks less", bars(false)).hue(Hue::Blue).stroke(Stroke::Solid))
            .with(
                Series::vertical_rule(format!("claimed: {}", AtMost::new(base)), base)
                    .hue(Hue::Ink)
                    .stroke(Stroke::Solid),
            ),
    )
}

/// A row's name inside a sentence that begins with "If".
fn phrase(name: &str) -> String {
    match name {
        name if name.starts_with("a group") => format!("the claim were about {name} records"),
        name if name.starts_with("a record") => {
            name.replacen("a record is", "neighbours meant a record", 1)
        }
        name if name.starts_with("delta") => format!("asked at {name}"),
        "shuffled batches" => "batches were shuffled".into(),
        name => format!("there were {name}"),
    }
}
