//! Epsilon by bisection of a falling profile known through certified ends: the last resort where
//! neither the contour nor one lattice can solve for it, because delta is close to the
//! probability that the record is used at all.
//!
//! The upper end is an epsilon at which delta is certainly at most the target, the lower end one at
//! which it is certainly at least the target (or 0). Bisection is on the logarithm: the losses of
//! few steps live on many scales. About sixty values of delta.

use crate::AccountingError;
use crate::pairs::vague_delta;
use vocabulary::Interval;

type Result<T> = std::result::Result<T, AccountingError>;

/// Below this epsilon no difference is looked for.
const SMALLEST: f64 = 1e-12;
/// Beyond this the contour is not in trouble.
const LARGEST: f64 = 1e3;

/// The epsilon >= 0 at which `profile`, which falls, meets `delta`.
pub(super) fn crossing(profile: impl Fn(f64) -> Result<Interval>, delta: f64) -> Result<Interval> {
    let at_zero = profile(0.0)?;
    if at_zero.upper <= delta {
        return Ok(Interval::exact(0.0));
    }
    // Decades outwards: every answer moves a certain end.
    let (mut over, mut under) = (0.0, f64::INFINITY);
    let mut epsilon = SMALLEST;
    while epsilon <= LARGEST {
        let here = profile(epsilon)?;
        if here.lower >= delta {
            over = epsilon;
        }
        if here.upper <= delta {
            under = epsilon;
            break;
        }
        epsilon *= 10.0;
    }
    if under == f64::INFINITY {
        return Err(vague_delta());
    }
    let upper = bisect(over.max(0.1 * SMALLEST), under, |e| Ok(profile(e)?.upper <= delta))?.1;
    let lower = if at_zero.lower < delta {
        0.0
    } else {
        bisect(over.max(0.1 * SMALLEST), upper, |e| Ok(profile(e)?.lower < delta))?.0
    };
    // Below the smallest epsilon nothing was asked.
    let lower = if lower < SMALLEST { 0.0 } else { lower };
    Ok(Interval::new(lower, (lower * upper).sqrt(), upper))
}

/// Narrows [low, high], where `beyond` is false and true, on the logarithmic axis.
fn bisect(mut low: f64, mut high: f64, beyond: impl Fn(f64) -> Result<bool>) -> Result<(f64, f64)> {
    for _ in 0..40 {
        if high <= low * (1.0 + 1e-9) {
            break;
        }
        let middle = (low * high).sqrt();
        if beyond(middle)? { high = middle } else { low = middle }
    }
    Ok((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crossing_is_enclosed() {
        // delta(e) = a / (1 + e / s), known to a relative width.
        for (scale, width) in [(1e-6, 1e-4), (0.3, 1e-12), (5.0, 0.0)] {
            let profile = |e: f64| {
                let delta = 1e-5 / (1.0 + e / scale);
                Ok(Interval::around(delta, width * delta))
            };
            let found = crossing(profile, 4e-6).unwrap();
            let truth = 1.5 * scale;
            assert!(found.lower <= truth && truth <= found.upper, "{scale}: {found:?}");
            let expected = 2.0 * (1e-5 / 4e-6) * width + 1e-8;
            assert!(found.width() <= 1.5 * expected * truth, "{scale}: {found:?}");
            assert_eq!(crossing(profile, 1.1e-5).unwrap(), Interval::exact(0.0));
        }
        // A target within the enclosure at zero: zero is not excluded, the upper end is certain.
        let vague =
            |e: f64| Ok(Interval::new(0.9e-5, 1e-5, 1.1e-5).map_increasing(|d| d / (1.0 + e)));
        let found = crossing(vague, 1e-5).unwrap();
        assert!(found.lower == 0.0 && (found.upper - 0.1).abs() < 1e-6, "{found:?}");
    }
}
