//! Certified minimum of a convex function known only through enclosures at points.
//!
//! Upper end: the smallest upper value seen. Lower end: in each gap between neighbouring points
//! a convex function lies above the continuation of the secants on either side; with enclosures
//! the secants are taken at their flattest, so the bound is certain. Near the minimum the loss
//! is of second order in the gap.

use crate::AccountingError;
use vocabulary::Interval;

type Result<T> = std::result::Result<T, AccountingError>;

/// A point with the enclosure of the function there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) x: f64,
    pub(crate) y: Interval,
}

/// Minimises a convex function over `[low, high]`, `0 < low < high`: Brent's golden section with
/// parabolas on the logarithm of x, then neighbours of the minimum at several distances, from
/// which convexity certifies it. Some forty evaluations.
///
/// Gives the best x and the enclosure of the minimum.
pub(crate) fn minimise(
    function: impl FnMut(f64) -> Result<Interval>,
    low: f64,
    high: f64,
) -> Result<(f64, Interval)> {
    minimise_from(function, low, high, f64::NAN)
}

/// As [`minimise`], beginning at a guess (which decides nothing but the speed).
pub(crate) fn minimise_from(
    mut function: impl FnMut(f64) -> Result<Interval>,
    low: f64,
    high: f64,
    guess: f64,
) -> Result<(f64, Interval)> {
    let mut samples: Vec<Sample> = Vec::with_capacity(64);
    let mut at = |x: f64, samples: &mut Vec<Sample>| -> Result<f64> {
        let y = function(x)?;
        let index = samples.partition_point(|sample| sample.x < x);
        if samples.get(index).is_none_or(|sample| sample.x != x) {
            samples.insert(index, Sample { x, y });
        }
        Ok(y.value)
    };
    at(low, &mut samples)?;
    at(high, &mut samples)?;
    const GOLDEN: f64 = 0.381_966_011_250_105;
    let (mut left, mut right) = (low.ln(), high.ln());
    // Distances are in units of the range, but never coarser than a factor e.
    let scale = (right - left).min(1.0);
    let grain = 1e-5 * scale;
    let mut best =
        if guess > low && guess < high { guess.ln() } else { left + GOLDEN * (right - left) };
    let mut best_value = at(best.exp(), &mut samples)?;
    let (mut second, mut third) = ((best, best_value), (best, best_value));
    let (mut step, mut before) = (0.0_f64, 0.0_f64);
    if guess > low && guess < high {
        // Two points around a good guess make the first parabola; Brent alone would first cut
        // the range by golden sections.
        for side in [-0.1 * scale, 0.1 * scale] {
            let next = (best + side).clamp(left, right);
            let value = at(next.exp().clamp(low, high), &mut samples)?;
            if value < best_value {
                if next < best {
                    right = best
                } else {
                    left = best
                }
                (third, second) = (second, (best, best_value));
                (best, best_value) = (next, value);
            } else {
                if next < best {
                    left = next
                } else {
                    right = next
                }
                (third, second) = (second, (next, value));
            }
            before = 0.5 * scale;
            step = 0.2 * scale;
        }
    }
    for _ in 0..60 {
        let middle = 0.5 * (left + right);
        if (best - middle).abs() <= 2.0 * grain - 0.5 * (right - left) {
            break;
        }
        let mut golden = true;
        if before.abs() > grain {
            // The parabola through the three best points.
            let r = (best - second.0) * (best_value - third.1);
            let q = (best - third.0) * (best_value - second.1);
            let p = (best - third.0) * q - (best - second.0) * r;
            let denominator = 2.0 * (q - r);
            let move_by = -p / denominator;
            let inside = best + move_by > left && best + move_by < right;
            if denominator != 0.0 && move_by.abs() < 0.5 * before.abs() && inside {
                (before, step, golden) = (step, move_by, false);
            }
        }
        if golden {
            before = if best < middle { right - best } else { left - best };
            step = GOLDEN * before;
        }
        let next = best + if step.abs() >= grain { step } else { grain.copysign(step) };
        let value = at(next.exp().clamp(low, high), &mut samples)?;
        if value <= best_value {
            if next < best {
                right = best
            } else {
                left = best
            }
            (third, second) = (second, (best, best_value));
            (best, best_value) = (next, value);
        } else {
            if next < best {
                left = next
            } else {
                right = next
            }
            if value <= second.1 || second.0 == best {
                (third, second) = (second, (next, value));
            } else if value <= third.1 || third.0 == best || third.0 == second.0 {
                third = (next, value);
            }
        }
    }
    let centre = samples[best_index(&samples)].x;
    for distance in [1e-4 * scale, 1e-2 * scale] {
        for sign in [-1.0, 1.0] {
            let x = (centre * (sign * distance).exp()).clamp(low, high);
            if samples.iter().all(|sample| sample.x != x) {
                at(x, &mut samples)?;
            }
        }
    }
    let upper = samples.iter().map(|sample| sample.y.upper).fold(f64::INFINITY, f64::min);
    let lower = lower_bound(&samples).min(upper);
    let best = samples[best_index(&samples)];
    Ok((best.x, Interval::new(lower, best.y.value, upper)))
}

fn best_index(samples: &[Sample]) -> usize {
    (0..samples.len())
        .min_by(|a, b| samples[*a].y.value.total_cmp(&samples[*b].y.value))
        .unwrap_or(0)
}

/// A number that the convex function nowhere falls below between the outermost samples.
pub(crate) fn lower_bound(samples: &[Sample]) -> f64 {
    let mut bound = f64::INFINITY;
    for index in 0..samples.len().saturating_sub(1) {
        let (a, b) = (samples[index], samples[index + 1]);
        // Lines that the function is certainly above in this gap: value at the near end, and
        // the flattest slope that the outer secant can have.
        let from_left = (index > 0).then(|| {
            let outer = samples[index - 1];
            (a, (a.y.lower - outer.y.upper) / (a.x - outer.x))
        });
        let from_right =
            samples.get(index + 2).map(|outer| (b, (outer.y.upper - b.y.lower) / (outer.x - b.x)));
        let at = |line: Option<(Sample, f64)>, x: f64| {
            line.map_or(f64::NEG_INFINITY, |(sample, slope)| {
                sample.y.lower + slope * (x - sample.x)
            })
        };
        let envelope = |x: f64| at(from_left, x).max(at(from_right, x));
        let mut gap = envelope(a.x).min(envelope(b.x));
        if let (Some((p, u)), Some((r, v))) = (from_left, from_right) {
            // Two lines: their maximum is smallest where they cross.
            let crossing = (r.y.lower - p.y.lower + u * p.x - v * r.x) / (u - v);
            if crossing > a.x && crossing < b.x {
                // Both lines meet here; the steeper one carries the rounding of a large number.
                gap = gap.min(at(from_left, crossing).min(at(from_right, crossing)));
            }
        }
        bound = bound.min(gap);
    }
    let least =
        bound.min(samples.iter().map(|sample| sample.y.lower).fold(f64::INFINITY, f64::min));
    // The lines above are computed with a few roundings of numbers of this size.
    least - 1e-14 * least.abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_is_enclosed() {
        for (centre, width) in [(3.0_f64, 1e-12), (1.0, 0.0), (1000.0, 1e-10), (1.7, 1e-6)] {
            let truth = 2.0;
            let mut calls = 0;
            let (_, found) = minimise(
                |x| {
                    calls += 1;
                    let y = truth + 0.3 * (x / centre + centre / x - 2.0);
                    Ok(Interval::around(y, width * y))
                },
                1.0,
                1e4,
            )
            .unwrap();
            assert!(found.lower <= truth && truth <= found.upper, "{centre}: {found:?}");
            // Noise is amplified by the ratio of neighbouring distances, a few hundred.
            assert!(found.width() <= 1000.0 * width + 1e-8, "{centre}: {found:?}");
            assert!(calls <= 70, "{centre}: {calls} calls");
        }
    }

    #[test]
    fn a_kink_is_no_problem() {
        let (_, found) =
            minimise(|x| Ok(Interval::exact((x - 2.0).abs() + 1.0)), 1.0, 50.0).unwrap();
        assert!(found.lower <= 1.0 && 1.0 <= found.upper && found.width() < 1e-4, "{found:?}");
    }

    #[test]
    fn round_off_does_not_lift_the_lower_end() {
        let (_, flat) = minimise(|_| Ok(Interval::exact(0.1)), 0.5, 8.0).unwrap();
        assert!(flat.lower <= 0.1 && flat.lower > 0.0999, "{flat:?}");
    }
}
