//! The smallest noise for which both orders are violated by the *same* point: the curve that is compared with is the lower of both
//! orders. For estimates, whose points are only observed.
//!
//! How far the best point lies below that curve, in normal quantiles, is nearly linear in the logarithm of the noise: a secant finds its
//! root. Close to a noise the lines that matter are those that mattered there, so that few slopes are looked at until the end.

use super::{ByNoise, SLOPES, both_orders, unknown};
use crate::violation::Region;
use crate::{AuditError, RateBounds, Statistic};
use accounting::Order;
use numerics::special::inverse_normal_cdf;

/// Slopes of a look at all of them; near known ones, how many on either side, and how much closer they are to each other.
const ALL: u32 = 2 * SLOPES;
const NEAR: i32 = 3;
const CLOSER: f64 = 0.25;
/// The largest step, as a logarithm.
const STRIDE: f64 = 0.4;
/// Noises that are looked at, at most.
const VISITS: u32 = 60;

/// The smallest noise, from above, to a relative accuracy; the least of the domain where that is violated, too, and none where no noise is.
pub(crate) fn least_noise_of_one_point(
    family: &dyn ByNoise,
    points: &[RateBounds],
    accuracy: f64,
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
    // The nearest noises that are not violated and that are, with how far.
    let (mut open, mut shown) = (None::<(f64, f64)>, None::<(f64, f64)>);
    let mut near = None;
    for _ in 0..VISITS {
        let looked = furthest_below(family, points, place.exp(), near)?;
        let below = looked.as_ref().map_or(f64::NEG_INFINITY, |looked| looked.below);
        near = looked.map(|looked| looked.slopes);
        let side = if below > 0.0 { &mut shown } else { &mut open };
        let before = side.replace((place, below));
        let close = shown.zip(open).is_some_and(|(shown, open)| shown.0 - open.0 < accuracy);
        if close || below > 0.0 && place <= bottom {
            // Nothing at other slopes a little below.
            let Some((root, _)) = shown else { return Ok(None) };
            let other = root - 2.0 * accuracy;
            if place <= bottom || other <= bottom {
                return Ok(Some(root.exp().max(least)));
            }
            match furthest_below(family, points, other.exp(), None)? {
                Some(looked) if looked.below > 0.0 => {
                    (shown, open, near) = (Some((other, looked.below)), None, Some(looked.slopes));
                }
                _ => return Ok(Some(root.exp())),
            }
        } else if below <= 0.0 && place >= top {
            return Ok(None);
        }
        let rise = |a: (f64, f64), b: (f64, f64)| {
            let rise = (a.1 - b.1) / (a.0 - b.0);
            (rise.is_finite() && rise > 0.0).then_some(rise)
        };
        place = match (open, shown) {
            (Some(open), Some(shown)) => {
                let middle = 0.5 * (open.0 + shown.0);
                let edge = 0.4 * accuracy.min(shown.0 - open.0);
                // To the other side of the root, so that both ends come close.
                let past = if below > 0.0 { -edge } else { edge };
                let root = rise(shown, open).map(|rise| shown.0 - shown.1 / rise + past);
                root.map_or(middle, |root| root.clamp(open.0 + edge, shown.0 - edge))
            }
            (None, Some(shown)) => {
                let step = before.and_then(|before| rise(shown, before));
                let step = step.map_or(STRIDE, |rise| shown.1 / rise + 0.4 * accuracy);
                (shown.0 - step.clamp(accuracy, STRIDE)).max(bottom)
            }
            (open, None) => {
                let here = open.map_or(place, |open| open.0);
                let step = open.zip(before).and_then(|(open, before)| rise(open, before));
                let step = step.map_or(STRIDE, |rise| 0.4 * accuracy - below / rise);
                (here + step.clamp(accuracy, STRIDE)).min(top)
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

/// At all slopes, or near known ones; `None` where the accounting certifies none.
fn furthest_below(
    family: &dyn ByNoise,
    points: &[RateBounds],
    noise: f64,
    near: Option<[f64; 2]>,
) -> Result<Option<Looked>, AuditError> {
    let pair = match family.member(noise) {
        Ok(pair) => pair,
        Err(error) => return unknown(error),
    };
    let session = pair.session();
    let pair = session.as_deref().unwrap_or_else(|| pair.as_ref());
    let (low, high) = points.slopes();
    let part = (high - low) / f64::from(ALL);
    let mut lines = [Vec::new(), Vec::new()];
    for (place, way) in [Order::Remove, Order::Add].into_iter().enumerate() {
        let slopes: Vec<f64> = match near {
            Some(near) => {
                (-NEAR..=NEAR).map(|step| near[place] + CLOSER * part * f64::from(step)).collect()
            }
            None => (1..ALL).map(|step| low + part * f64::from(step)).collect(),
        };
        for slope in slopes {
            match pair.one_minus_delta(slope, way) {
                Ok(rest) => lines[place].push((slope, slope.exp(), rest.lower)),
                Err(error) => {
                    unknown::<()>(error.into())?;
                }
            }
        }
    }
    // The highest line over a rate, and its slope.
    let curve = |lines: &[(f64, f64, f64)], fpr: f64| {
        let heights = lines.iter().map(|(slope, growth, rest)| (rest - growth * fpr, *slope));
        heights.fold((0.0, 0.0), |best, line| if line.0 > best.0 { line } else { best })
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
