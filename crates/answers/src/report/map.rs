//! Epsilon over noise and steps around the run, and the noise that would halve it.

use super::changes::scaled;
use super::epsilon;
use accounting::lenses::Lens;
use accounting::schemes;
use accounting::{AccountingError, Solution, Target, Unknown, calibrate};
use vocabulary::figure::{Axis, ColourScale, Figure, Heat, Mark, Ramp, Series};
use vocabulary::rounding::plain;
use vocabulary::{Account, AtMost, Direction, LensName};

/// Columns on each side of the run and their ratio; rows, which are powers of two.
struct Extent {
    noise: (i32, i32, f64),
    steps: (i32, i32),
}

const FINE: Extent = Extent { noise: (-6, 8, 1.1), steps: (-3, 4) };
/// For runs whose every number takes long.
const COARSE: Extent = Extent { noise: (-1, 3, 1.25), steps: (-2, 2) };

pub(super) fn figure(account: &Account, delta: f64) -> Result<Option<Figure>, AccountingError> {
    let run = &account.run;
    let Some(claim) = epsilon(account, LensName::SIGNED) else { return Ok(None) };
    let base = claim.interval.upper;
    if !base.is_finite() || base <= 0.0 {
        return Ok(None);
    }
    let composition = Lens::named(LensName::SIGNED);
    let extent = if schemes::of(run).costly { COARSE } else { FINE };
    let (first, last, ratio) = extent.noise;
    let noises: Vec<f64> = (first..=last).map(|power| ratio.powi(power)).collect();
    // A row must change the steps of every phase by the whole factor, or it would mislabel them.
    let shortest = run.phases().iter().map(|phase| phase.steps).min().unwrap_or(1) as f64;
    let steps: Vec<f64> = (extent.steps.0..=extent.steps.1)
        .map(|power| 2_f64.powi(power))
        .filter(|factor| shortest * factor >= 1.0)
        .collect();
    let cell = |louder: f64, longer: f64| -> Option<f64> {
        let run = scaled(run, louder, longer)?;
        let end = composition.look(&run).ok()?.epsilon(delta, Direction::Both).ok()?.upper;
        (end.is_finite() && end > 0.0).then_some(end)
    };
    let limits = accounting::patience::handed();
    let row = |longer: f64| -> Vec<Option<f64>> {
        limits.during(|| noises.iter().map(|louder| cell(*louder, longer)).collect())
    };
    // The map is most of a report's work, and its rows do not depend on each other.
    let values: Vec<Vec<Option<f64>>> = std::thread::scope(|scope| {
        let rows: Vec<_> = steps.iter().map(|longer| scope.spawn(|| row(*longer))).collect();
        let empty = || vec![None; noises.len()];
        rows.into_iter().map(|row| row.join().unwrap_or_else(|_| empty())).collect()
    });
    let single = match run.phases() {
        [phase] => Some(*phase),
        _ => None,
    };
    let (noise_unit, step_unit) =
        single.map_or((1.0, 1.0), |phase| (phase.noise_multiplier, phase.steps as f64));
    let (noise_name, step_name) = match single {
        Some(_) => ("noise multiplier", "steps"),
        None => ("noise, times that of the run", "steps, times those of the run"),
    };
    let edges = |centres: &[f64], ratio: f64, unit: f64| -> Vec<f64> {
        let half = ratio.sqrt();
        let last = centres.last().map(|centre| centre * half * unit);
        centres.iter().map(|centre| centre / half * unit).chain(last).collect()
    };
    let heat = Heat {
        x_edges: edges(&noises, ratio, noise_unit),
        y_edges: edges(&steps, 2.0, step_unit),
        contours: levels(&values),
        print_values: false,
        values,
        colours: ColourScale {
            label: format!("epsilon at delta {}", plain(delta)),
            ramp: Ramp::Diverging { centre: base },
            log: true,
            domain: None,
        },
    };
    Ok(Some(
        Figure::new(
            title(account, base, delta),
            "Each cell is the epsilon of a training with that noise and that many steps; along a \
             line it is constant. Blue leaks less than this run, orange more.",
        )
        .subtitle(format!(
            "sample rate, sampling and neighbours as in the run; composition, {}",
            claim.standing.as_str()
        ))
        .x(Axis::log(noise_name))
        .y(Axis::log(step_name))
        .with(Series::new("epsilon", Mark::Heat(heat)))
        .with(Series::pin("this run", noise_unit, step_unit)),
    ))
}

/// Round numbers within the map, about one a doubling.
fn levels(values: &[Vec<Option<f64>>]) -> Vec<f64> {
    let all = values.iter().flatten().flatten();
    let (low, high) = all
        .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(*value), high.max(*value)));
    let decades = (-6..6).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
    decades.filter(|level| *level > low && *level < high).collect()
}

/// What halving epsilon would take.
fn title(account: &Account, base: f64, delta: f64) -> String {
    let half = 0.5 * base;
    let target = Target::Epsilon { epsilon: half, delta };
    let solved = calibrate(&account.run, Unknown::NoiseMultiplier, &target, LensName::SIGNED, &[]);
    match solved.map(|calibration| calibration.solution) {
        Ok(Solution::NoiseMultiplier(noise)) => format!(
            "Half of epsilon {} would take a noise multiplier of {}",
            AtMost::new(base),
            AtMost::new(noise)
        ),
        _ => "Epsilon around this run".into(),
    }
}
