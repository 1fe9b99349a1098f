//! The curves of a run as figures whose titles say what is seen: trade-off, profile, steps.

use super::{epsilon, find, hedged, label};
use accounting::curve::{Curve, CurveKind, CurvePoint, CurveRequest, curve};
use accounting::lenses::{self, Lens};
use accounting::schemes;
use accounting::{AccountingError, Solution, Target, Unknown, calibrate};
use audit::quality::tpr_at;
use audit::{Audit, Scores};
use vocabulary::figure::{Axis, Figure, Hue, Mark, Series, Stroke};
use vocabulary::rounding::{plain, with_commas};
use vocabulary::{Account, AtMost, Direction, LensName, Quantity, Quoted, Run, Standing};

type Result<T> = std::result::Result<T, AccountingError>;

/// Eight places a decade, written with few digits.
const MANTISSAS: [&str; 8] = ["1", "1.33", "1.78", "2.37", "3.16", "4.22", "5.62", "7.5"];

pub(super) fn rates() -> Vec<f64> {
    let decade = |exponent: i32| {
        MANTISSAS.iter().filter_map(move |digits| format!("{digits}e{exponent}").parse().ok())
    };
    (-5..0).flat_map(decade).collect()
}

/// One lens's line; none where the lens does not hold or cannot be certified. A point that is refused
/// does not take the others with it.
fn line(run: &Run, lens: LensName, kind: CurveKind, at: &[f64], delta: f64) -> Option<Curve> {
    let ask = |at: &[f64]| {
        let request = CurveRequest {
            kind,
            lenses: vec![lens],
            direction: Direction::Both,
            delta: (kind == CurveKind::Steps).then_some(delta),
            at: at.to_vec(),
            first: 1,
            points: at.len().max(2),
        };
        curve(run, &request).ok()
    };
    ask(at).or_else(|| {
        at.iter().filter_map(|place| ask(&[*place])).reduce(|mut all, one| {
            all.line.points.extend(one.line.points);
            all
        })
    })
}

/// The colour of a lens, which it names itself.
pub(super) fn hue(lens: LensName) -> Hue {
    Lens::named(lens).hue
}

pub(super) fn stroke(standing: Standing) -> Stroke {
    match standing {
        Standing::Proven | Standing::Measured => Stroke::Solid,
        Standing::Heuristic => Stroke::Dashed,
        Standing::Estimate => Stroke::Dotted,
    }
}

fn series(curve: &Curve, points: impl Fn(&CurvePoint) -> Option<(f64, f64)>) -> Series {
    let line = &curve.line;
    let end = (curve.kind == CurveKind::Tradeoff).then_some((1.0, 1.0));
    let points = line.points.iter().filter_map(points).chain(end);
    Series::line(label(line.lens, line.standing), points)
        .hue(hue(line.lens))
        .stroke(stroke(line.standing))
}

/// True against false positive rates: what is proven, what is expected, what was measured.
pub(super) fn tradeoff(
    account: Option<&Account>,
    evidence: Option<(&Scores, &Audit)>,
) -> Result<Option<Figure>> {
    let rates = rates();
    let mut curves = Vec::new();
    if let Some(account) = account {
        for lens in [LensName::SIGNED, LensName::BESIDE] {
            if epsilon(account, lens).is_some() {
                curves.extend(line(&account.run, lens, CurveKind::Tradeoff, &rates, 0.0));
            }
        }
    }
    if curves.is_empty() && evidence.is_none() {
        return Ok(None);
    }
    let mut figure = Figure::new(
        tradeoff_title(account, evidence),
        if !curves.iter().any(|curve| curve.line.standing == Standing::Proven) {
            "Further up and to the left is a better attack; the diagonal is guessing."
        } else {
            "No attack on the training gets above the proven curve; the diagonal is guessing. An \
             attack above it would refute the claim."
        },
    )
    .x(Axis::log("false positive rate").domain(1e-5, 1.0))
    .y(Axis::log("true positive rate").domain(1e-5, 1.0))
    .with(
        Series::line("guessing", [(1e-5, 1e-5), (1.0, 1.0)]).hue(Hue::Muted).stroke(Stroke::Dotted),
    );
    if let Some((scores, analysis)) = evidence {
        let percent = plain((analysis.plan.confidence * 1000.0).round() / 10.0);
        figure = figure.subtitle(super::measured::counts(analysis));
        let least = 10.0 / scores.nonmembers().len() as f64;
        let power: Vec<_> = rates
            .iter()
            .filter(|rate| **rate >= least)
            .map(|rate| (*rate, tpr_at(scores, *rate, analysis.plan.confidence)))
            .collect();
        let band = power.iter().map(|(rate, tpr)| (*rate, tpr.lower.max(1e-6), tpr.upper));
        let line = power.iter().map(|(rate, tpr)| (*rate, tpr.value)).chain([(1.0, 1.0)]);
        figure = figure
            .with(Series::band(format!("{percent} % interval"), band).hue(Hue::Green))
            .with(Series::line("measured attack", line).hue(Hue::Green).stroke(Stroke::Solid));
    }
    for curve in &curves {
        figure = figure.with(series(curve, |point| match *point {
            // The safe side of the power is one minus the lower end of the misses.
            CurvePoint::Tradeoff { fpr, lower, .. } => Some((fpr, 1.0 - lower)),
            _ => None,
        }));
    }
    Ok(Some(figure))
}

fn tradeoff_title(account: Option<&Account>, evidence: Option<(&Scores, &Audit)>) -> String {
    let share = |value: Quoted| format!("{} %", value.times(100.0));
    // A rate that a handful of false alarms would decide is not worth a title.
    let few = |(scores, _): (&Scores, &Audit)| scores.nonmembers().len() < 30_000;
    let fpr = if evidence.is_some_and(few) { 0.01 } else { 0.001 };
    let allowed = account.and_then(|account| {
        account.claims.iter().find(|claim| {
            claim.source == LensName::SIGNED
                && claim.quantity == Quantity::Tpr
                && claim.at.fpr == Some(fpr)
        })
    });
    let reached = evidence.and_then(|(_, analysis)| {
        analysis.tpr.iter().find(|power| power.fpr == fpr).map(|power| power.measured.value)
    });
    let rate = format!("at a false positive rate of {} %", 100.0 * fpr);
    match (allowed, reached) {
        (Some(claim), reached) => {
            let most = share(claim.interval.at_most().into());
            let allowed = format!("At most {most} of members can be recognised {rate}");
            let reached = reached.map_or_else(String::new, |reached| {
                format!("; the attack recognised {}", share(Quoted::about(reached)))
            });
            hedged(claim.standing, &allowed) + &reached
        }
        (None, Some(reached)) => {
            format!("The attack recognised {} of members {rate}", share(Quoted::about(reached)))
        }
        (None, None) => "What an attacker can gain at each false positive rate".into(),
    }
}

/// Delta against epsilon.
pub(super) fn profile(account: &Account, delta: f64) -> Result<Option<Figure>> {
    let Some(claim) = epsilon(account, LensName::SIGNED) else { return Ok(None) };
    let least = (delta * 1e-3).max(1e-30);
    let composition = Lens::named(LensName::SIGNED);
    let farthest = composition.look(&account.run)?.epsilon(least, Direction::Both)?.upper;
    if !farthest.is_finite() || farthest <= 0.0 {
        return Ok(None);
    }
    let at: Vec<f64> = (0..=40).map(|part| farthest * f64::from(part) / 40.0).collect();
    let mut figure = Figure::new(
        format!(
            "A delta a thousand times smaller costs epsilon {} instead of {}",
            AtMost::new(farthest),
            claim.interval.at_most()
        ),
        hedged(
            claim.standing,
            "The run is (epsilon, delta)-private for every point on or above the curve of \
             composition; the quoted pair is one of them.",
        ),
    )
    .x(Axis::linear("epsilon").domain(0.0, farthest))
    .y(Axis::log("delta").domain(0.5 * least, 1.0));
    // The first lens is drawn last, on top.
    for lens in lenses::ALL.iter().rev().filter(|lens| lens.in_profiles).map(|lens| lens.name) {
        if epsilon(account, lens).is_none() {
            continue;
        }
        let Some(curve) = line(&account.run, lens, CurveKind::Profile, &at, delta) else {
            continue;
        };
        figure = figure.with(series(&curve, |point| match *point {
            CurvePoint::Profile { epsilon, upper, .. } if upper > 1e-3 * least => {
                Some((epsilon, upper))
            }
            _ => None,
        }));
    }
    let place = claim.interval.upper;
    Ok(Some(figure.with(
        Series::pin(format!("the claim at delta {}", plain(delta)), place, delta).hue(Hue::Blue),
    )))
}

/// Epsilon against steps under every lens that has one.
pub(super) fn steps(account: &Account, delta: f64) -> Result<Option<Figure>> {
    let total = account.run.steps();
    let Some(claim) = epsilon(account, LensName::SIGNED) else { return Ok(None) };
    if total < 2 || claim.interval.upper <= 0.0 {
        return Ok(None);
    }
    let parts = if schemes::of(&account.run).costly { 8 } else { 20 };
    let mut at: Vec<f64> = (0..=parts)
        .map(|part| (total as f64).powf(f64::from(part) / f64::from(parts)).round())
        .collect();
    at.dedup();
    let mut curves = Vec::new();
    for lens in LensName::ALL {
        if epsilon(account, lens).is_some() {
            curves.extend(line(&account.run, lens, CurveKind::Steps, &at, delta));
        }
    }
    let end = claim.interval.upper;
    let last = find(account, LensName::BESIDE, Quantity::Epsilon);
    let mut title = match half_way(&account.run, end, delta) {
        Some(steps) => format!(
            "Half of epsilon {} is spent in the first {} of {} steps",
            AtMost::new(end),
            with_commas(steps),
            with_commas(total)
        ),
        None => format!("Epsilon is {} after {} steps", AtMost::new(end), with_commas(total)),
    };
    if let Some(last) = last {
        title += &format!("; the last-iterate heuristic ends at {}", last.interval.at_most());
    }
    let mut figure = Figure::new(
        title,
        "Each point is epsilon if training stopped there; solid is proven, dashed heuristic, \
         dotted an estimate.",
    )
    .subtitle(format!("at delta {}", plain(delta)))
    .x(Axis::log("steps"))
    .y(Axis::log("epsilon"));
    for curve in curves.iter().rev() {
        let series = series(curve, |point| match *point {
            CurvePoint::Steps { steps, upper: Some(upper), .. } if upper > 1e-3 * end => {
                Some((steps as f64, upper))
            }
            _ => None,
        });
        // A lens that bounds nothing at these settings has no points.
        if !matches!(&series.mark, Mark::Line(points) if points.is_empty()) {
            figure = figure.with(series);
        }
    }
    Ok(Some(figure))
}

/// How many steps have half of the final epsilon.
fn half_way(run: &Run, end: f64, delta: f64) -> Option<u64> {
    let target = Target::Epsilon { epsilon: 0.5 * end, delta };
    let solved = calibrate(run, Unknown::Steps, &target, LensName::SIGNED, &[]).ok()?;
    match solved.solution {
        Solution::Steps(steps) => Some(steps),
        _ => None,
    }
}
