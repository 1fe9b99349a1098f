//! The smallest noise for which both orders are violated by the *same* point: the curve that is compared with is the lower of both
//! orders. For estimates, whose points are only observed.
//!
//! How far the best point lies below that curve, in normal quantiles, is nearly linear in the logarithm of the noise: a secant finds its
//! root. Close to a noise the lines that matter are those that mattered there, so that few slopes are looked at until the end.

use super::one_order::{PILED, asked_at};
use super::{ACCURACY, ByNoise, Region, SLOPES, both_orders, unknown};
use crate::{AuditError, RateBounds, Statistic};
use accounting::{Order, Pair};
use numerics::special::inverse_normal_cdf;

/// Slopes of a look at all of them, and steps from a known one.
const ALL: u32 = 2 * SLOPES;
const NEAR: [f64; 7] = [-9.0, -3.0, -1.0, 0.0, 1.0, 3.0, 9.0];
/// The first of them as a share of the way between two noises (as logarithms), and the smallest.
const CLOSER: f64 = 0.5;
const CLOSEST: f64 = 0.015;
/// Where a rounded smallest loss is certainly passed.
const JUST_BEYOND: f64 = 1.0 + 1e-9;
/// The largest step, as a logarithm.
const STRIDE: f64 = 0.4;
/// Noises that are looked at, at most.
const VISITS: u32 = 60;

/// The smallest noise, from above, as closely as is enough: by an open noise and a violated one, or to [`ACCURACY`]. The least of the
/// domain where that is violated, too, and none where no noise is.
pub(crate) fn least_noise_of_one_point(
    family: &dyn ByNoise,
    points: &[RateBounds],
    mut enough: impl FnMut(Option<f64>, f64) -> Result<bool, AuditError>,
) -> Result<Option<f64>, AuditError> {
    let (least, most) = family.domain();
    if points.iter().any(|point| both_orders::at_every_noise(family, std::slice::from_ref(point))) {
        return Ok(Some(least));
    }
    let mu = points.iter().map(|point| Statistic::GaussianMu.value(point)).fold(0.0, f64::max);
    if mu <= 0.0 {
        return Ok(None);
    }
    let (bottom, top) = (least.ln(), most.ln());
    let mut place = family.start(mu.clamp(1e-6, 1e6)).clamp(least, most).ln();
    // The nearest noises that are open and violated, with how far the best point lies below.
    let (mut open, mut shown) = (None::<(f64, f64)>, None::<(f64, f64)>);
    let mut known: Option<(f64, [f64; 2])> = None;
    for _ in 0..VISITS {
        let looked = furthest_below(family, points, place, known)?;
        let below = looked.as_ref().map_or(f64::NEG_INFINITY, |looked| looked.below);
        known = looked.map(|looked| (place, looked.slopes));
        let side = if below > 0.0 { &mut shown } else { &mut open };
        let before = side.replace((place, below));
        if below <= 0.0 && place >= top {
            return Ok(None);
        }
        if let Some((root, _)) = shown {
            if root <= bottom || enough(None, root.exp())? {
                return Ok(Some(root.exp().max(least)));
            }
            if let Some((end, _)) = open
                && (root - end < ACCURACY || enough(Some(end.exp()), root.exp())?)
            {
                // Open at all slopes, not only near the best ones.
                match furthest_below(family, points, end, None)? {
                    Some(looked) if looked.below > 0.0 => {
                        (shown, open) = (Some((end, looked.below)), None);
                        known = Some((end, looked.slopes));
                    }
                    _ => return Ok(Some(root.exp())),
                }
            }
        }
        let rise = |a: (f64, f64), b: (f64, f64)| {
            let rise = (a.1 - b.1) / (a.0 - b.0);
            (rise.is_finite() && rise > 0.0).then_some(rise)
        };
        // Far from other noises a Gaussian curve stands for the family's: its mu falls as the noise rises.
        place = match (open, shown) {
            (Some(open), Some(shown)) => {
                let middle = 0.5 * (open.0 + shown.0);
                let gap = shown.0 - open.0;
                // To the other side of the root, so that both ends come close.
                let past = if below > 0.0 { -0.05 * gap } else { 0.05 * gap };
                let root = rise(shown, open).map(|rise| shown.0 - shown.1 / rise + past);
                root.map_or(middle, |root| root.clamp(open.0 + 0.02 * gap, shown.0 - 0.02 * gap))
            }
            (None, Some(shown)) => {
                let slope = before.and_then(|before| rise(shown, before)).unwrap_or(mu);
                (shown.0 - (1.05 * shown.1 / slope).clamp(ACCURACY, STRIDE)).max(bottom)
            }
            (open, None) => {
                let here = open.map_or(place, |open| open.0);
                let step = open.zip(before).and_then(|(open, before)| rise(open, before));
                let step = -1.05 * below / step.unwrap_or(mu);
                (here + if step.is_finite() { step.clamp(ACCURACY, STRIDE) } else { STRIDE })
                    .min(top)
            }
        };
    }
    Ok(shown.map(|(root, _)| root.exp()))
}

/// How far the point that lies furthest below both orders' curves does so, and by which lines.
struct Looked {
    below: f64,
    slopes: [f64; 2],
}

/// At all slopes, or near those of another noise; `None` where the accounting certifies none.
fn furthest_below(
    family: &dyn ByNoise,
    points: &[RateBounds],
    place: f64,
    known: Option<(f64, [f64; 2])>,
) -> Result<Option<Looked>, AuditError> {
    let (low, high) = points.slopes();
    let part = (high - low) / f64::from(ALL);
    let end = JUST_BEYOND * family.smallest_loss();
    let look = |pair: &dyn Pair| {
        let mut lines = [Vec::new(), Vec::new()];
        for (place_of, way) in [Order::Remove, Order::Add].into_iter().enumerate() {
            let lines = &mut lines[place_of];
            let mut slopes: Vec<f64> = match known {
                Some((other, slopes)) => {
                    let step = (CLOSER * (place - other).abs()).max(CLOSEST).min(part);
                    NEAR.iter().map(|count| slopes[place_of] + step * count).collect()
                }
                None => (1..ALL).map(|step| low + part * f64::from(step)).collect(),
            };
            // Lines beyond the smallest loss lie below the one at it, which takes no time; those close to it take longest.
            let end = if way == Order::Remove { end } else { -end };
            if end != 0.0 {
                let piled = |slope: f64| slope / end > PILED;
                slopes.iter_mut().filter(|slope| piled(**slope)).for_each(|slope| *slope = end);
                slopes.dedup();
            }
            for slope in slopes {
                match pair.one_minus_delta(slope, way) {
                    Ok(rest) => lines.push((slope, slope.exp(), rest.lower)),
                    Err(error) => {
                        unknown::<()>(error.into())?;
                    }
                }
            }
        }
        Ok(lines)
    };
    let Some(lines) = asked_at(family, place.exp(), look)? else { return Ok(None) };
    // The highest line over a rate, and its slope.
    let curve = |lines: &[(f64, f64, f64)], fpr: f64| {
        let heights = lines.iter().map(|(slope, growth, rest)| (rest - growth * fpr, *slope));
        heights
            .fold((f64::NEG_INFINITY, 0.0), |best, line| if line.0 > best.0 { line } else { best })
    };
    let quantile = |rate: f64| inverse_normal_cdf(rate.clamp(1e-300, 1.0 - 1e-16));
    let looked = points.iter().map(|point| {
        let [remove, add] = [0, 1].map(|way| curve(&lines[way], point.false_positive_upper));
        let below = quantile(remove.0.min(add.0)) - quantile(point.false_negative_upper);
        Looked { below, slopes: [remove.1, add.1] }
    });
    let best = looked.max_by(|a, b| a.below.total_cmp(&b.below));
    Ok(best.filter(|_| lines.iter().all(|lines| !lines.is_empty())))
}
