//! Certified minimum of a convex function known only through enclosures at points.
//!
//! Upper end: the smallest upper value seen. Lower end: in each gap between neighbouring points
//! a convex function lies above the continuation of the secants on either side; with enclosures
//! the secants are taken at their flattest, so the bound is certain. Near the minimum the loss
//! is of second order in the gap.

use crate::AccountingError;
use numerics::elementary::{exp, ln};
use numerics::special::{inverse_normal_cdf, inverse_normal_sf};
use vocabulary::Interval;

type Result<T> = std::result::Result<T, AccountingError>;

/// A point with the enclosure of the function there. The point itself is the exponential of a given
/// logarithm, so that x is known up to `ROUNDED`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) x: f64,
    pub(crate) log_x: f64,
    pub(crate) y: Interval,
}

/// Relative error of an exponential.
const ROUNDED: f64 = 2.0 * f64::EPSILON;

/// Bounds on the distance of two points.
fn distance(a: f64, b: f64) -> (f64, f64) {
    let slip = 2.0 * ROUNDED * (a.abs() + b.abs());
    ((b - a - slip).max(0.0), b - a + slip)
}

/// The smallest that a rise over a distance can be per unit of it.
fn flattest(rise: f64, (least, most): (f64, f64)) -> f64 {
    if rise < 0.0 { rise / least } else { rise / most }
}

/// How far a line of this slope falls over a distance, at least in sign.
fn fallen(slope: f64, (least, most): (f64, f64)) -> f64 {
    slope * if slope < 0.0 { most } else { least }
}

/// Minimises a convex function over `[low, high]`, `0 < low < high`, from a guess: walks downhill
/// on the logarithm of x until the minimum is bracketed, closes in with parabolas, then asks for
/// neighbours as near as the enclosures' widths make useful, from which convexity certifies the
/// minimum. A dozen evaluations near a good guess; the ends are asked for only when the search
/// gets there. A guess that is not inside (NaN) starts in the middle.
///
/// The function is asked by the logarithm of x. Gives the logarithm of the best x and the enclosure
/// of the minimum.
pub(crate) fn minimise_from(
    function: impl FnMut(f64) -> Result<Interval>,
    low: f64,
    high: f64,
    guess: Guess,
) -> Result<(f64, Interval)> {
    let mut search = ConvexSearch { function, samples: Vec::with_capacity(32), low, high };
    let (left, right) = (ln(low), ln(high));
    let inside = guess.at > low && guess.at < high;
    let start = if inside { ln(guess.at) } else { 0.5 * (left + right) };
    let step = 0.05 * (right - left).min(1.0);
    let step = if guess.step > 0.0 { guess.step.min(step) } else { step };
    let bracket = search.bracket(start, step)?;
    let (best, curvature) = search.close_in(bracket, 2e-4 * step)?;
    search.surround(best, curvature, 20.0 * step)?;

    let samples = &search.samples;
    let upper = samples.iter().map(|sample| sample.y.upper).fold(f64::INFINITY, f64::min);
    let lower = lower_bound(samples).min(beyond(samples, low, high)).min(upper);
    let best = samples[best_index(samples)];
    Ok((best.log_x, Interval::new(lower, best.y.value, upper)))
}

/// Where to begin, and the first step on the logarithmic axis (not positive: a part of the
/// range). Decides nothing but the speed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guess {
    pub(crate) at: f64,
    pub(crate) step: f64,
}

impl Guess {
    /// The slope at false positive rate `fpr` of a Gaussian curve with this total variation,
    /// and a step of a fraction of its standard deviation.
    ///
    /// `rest` is 1 - total variation, which has the digits where the total variation is near 1.
    pub(crate) fn gaussian(total_variation: f64, rest: f64, fpr: f64) -> Self {
        let mu = if rest < 0.5 {
            2.0 * inverse_normal_sf(0.5 * rest.max(1e-300))
        } else {
            2.0 * inverse_normal_cdf(0.5 + 0.5 * total_variation)
        };
        // A slope of 0 or infinity is no place to begin at: its logarithm is not finite.
        let log_slope = (mu * inverse_normal_sf(fpr) - 0.5 * mu * mu).clamp(-690.0, 690.0);
        Self { at: exp(log_slope), step: 0.2 * mu }
    }
}

/// The function, where it has been asked, and the range.
struct ConvexSearch<F> {
    function: F,
    /// Ordered by x.
    samples: Vec<Sample>,
    low: f64,
    high: f64,
}

/// A place on the logarithmic axis and the value there.
type LogPoint = (f64, f64);

impl<F: FnMut(f64) -> Result<Interval>> ConvexSearch<F> {
    /// The value at e^y, kept within the range.
    fn at(&mut self, y: f64) -> Result<LogPoint> {
        let log_x = y.clamp(ln(self.low), ln(self.high));
        let x = exp(log_x);
        let index = self.samples.partition_point(|sample| sample.x < x);
        if let Some(known) = self.samples.get(index).filter(|sample| sample.x == x) {
            return Ok((y, known.y.value));
        }
        crate::patience::look();
        let value = (self.function)(log_x)?;
        self.samples.insert(index, Sample { x, log_x, y: value });
        Ok((y, value.value))
    }

    /// Three places, the middle one lowest; at an end of the range two of them coincide.
    fn bracket(&mut self, start: f64, first_step: f64) -> Result<[LogPoint; 3]> {
        let (left, right) = (ln(self.low), ln(self.high));
        let mut middle = self.at(start)?;
        let mut behind = self.at((start + first_step).min(right))?;
        let mut direction = -1.0;
        if behind.1 < middle.1 {
            (middle, behind) = (behind, middle);
            direction = 1.0;
        }
        let mut step = first_step;
        for round in 0.. {
            let next = (middle.0 + direction * step).clamp(left, right);
            if next == middle.0 {
                return Ok(ordered(behind, middle, middle));
            }
            let ahead = self.at(next)?;
            if ahead.1 >= middle.1 {
                return Ok(ordered(behind, middle, ahead));
            }
            (behind, middle) = (middle, ahead);
            // A guess that is this far off deserves longer strides.
            step *= if round < 4 { 2.0 } else { 4.0 };
        }
        unreachable!("the range ends")
    }

    /// Brent's method within the bracket; gives the place and the curvature found there.
    fn close_in(&mut self, bracket: [LogPoint; 3], grain: f64) -> Result<(f64, f64)> {
        const GOLDEN: f64 = 0.381_966_011_250_105;
        let [(mut left, _), mut best, (mut right, _)] = bracket;
        let (mut second, mut third) = (bracket[0], bracket[2]);
        let mut before = right - left;
        let mut curvature = 0.0;
        for _ in 0..60 {
            let middle = 0.5 * (left + right);
            if (best.0 - middle).abs() <= 2.0 * grain - 0.5 * (right - left) {
                break;
            }
            // The parabola through the three best points.
            let (a, b) = (second.0 - best.0, third.0 - best.0);
            let (fa, fb) = (second.1 - best.1, third.1 - best.1);
            let bend = (fa / a - fb / b) / (a - b);
            let tilt = fa / a - bend * a;
            let mut step = -0.5 * tilt / bend;
            let inside = best.0 + step > left && best.0 + step < right;
            if bend > 0.0 && inside && step.abs() < 0.5 * before.abs() {
                curvature = 2.0 * bend;
                // What is still to be gained is below the last digits, or what is known of them.
                let blur = 0.1 * self.samples[best_index(&self.samples)].y.width();
                if 0.5 * curvature * step * step <= blur.max(1e-14 * best.1.abs()) {
                    break;
                }
                before = step;
            } else {
                before = if best.0 < middle { right - best.0 } else { left - best.0 };
                step = GOLDEN * before;
            }
            let next = self.at(best.0 + step.abs().max(grain).copysign(step))?;
            if next.1 <= best.1 {
                if next.0 < best.0 {
                    right = best.0
                } else {
                    left = best.0
                }
                (third, second, best) = (second, best, next);
            } else {
                if next.0 < best.0 {
                    left = next.0
                } else {
                    right = next.0
                }
                if next.1 <= second.1 || second.0 == best.0 {
                    (third, second) = (second, next);
                } else if next.1 <= third.1 || third.0 == best.0 || third.0 == second.0 {
                    third = next;
                }
            }
        }
        Ok((best.0, curvature))
    }

    /// Neighbours on both sides: near enough that the function hardly rises, far enough that
    /// the rise is certain.
    fn surround(&mut self, best: f64, curvature: f64, scale: f64) -> Result<()> {
        let index = best_index(&self.samples);
        let here = self.samples[index].y;
        let visible = (4.0 * here.width()).max(1e-12 * here.value.abs());
        let near = if curvature > 0.0 { (2.0 * visible / curvature).sqrt() } else { 0.0 };
        let near = near.clamp(1e-6 * scale, 0.02 * scale);
        for distance in [near, 8.0 * near] {
            for side in [-distance, distance] {
                self.at(best + side)?;
            }
        }
        Ok(())
    }
}

fn ordered(a: LogPoint, middle: LogPoint, b: LogPoint) -> [LogPoint; 3] {
    if a.0 <= b.0 { [a, middle, b] } else { [b, middle, a] }
}

/// The smallest value that convexity allows between the range's ends and the outermost samples:
/// there the function lies above the continuation of the outermost secants.
fn beyond(samples: &[Sample], low: f64, high: f64) -> f64 {
    // Outwards from `near`: at least what it rises by from `inner` to it.
    let line = |near: Sample, rise: f64, over: (f64, f64), on: (f64, f64)| {
        near.y.lower + fallen(flattest(rise, over), on).min(0.0)
    };
    let count = samples.len();
    if count < 2 {
        return samples.first().map_or(f64::NEG_INFINITY, |sample| sample.y.lower);
    }
    let (first, second) = (samples[0], samples[1]);
    let (inner, last) = (samples[count - 2], samples[count - 1]);
    let left = line(
        first,
        first.y.lower - second.y.upper,
        distance(first.x, second.x),
        distance(low.min(first.x), first.x),
    );
    let right = line(
        last,
        last.y.lower - inner.y.upper,
        distance(inner.x, last.x),
        distance(last.x, high.max(last.x)),
    );
    let least = left.min(right);
    least - 1e-14 * least.abs()
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
        // the flattest slope that the outer secant can have, both counted away from it.
        let from_left = (index > 0).then(|| {
            let outer = samples[index - 1];
            flattest(a.y.lower - outer.y.upper, distance(outer.x, a.x))
        });
        let from_right = samples
            .get(index + 2)
            .map(|outer| flattest(b.y.lower - outer.y.upper, distance(b.x, outer.x)));
        let left_at = |x: f64| {
            from_left.map_or(f64::NEG_INFINITY, |slope| a.y.lower + fallen(slope, distance(a.x, x)))
        };
        let right_at = |x: f64| {
            from_right
                .map_or(f64::NEG_INFINITY, |slope| b.y.lower + fallen(slope, distance(x, b.x)))
        };
        let envelope = |x: f64| left_at(x).max(right_at(x));
        let mut gap = envelope(a.x).min(envelope(b.x));
        if let (Some(u), Some(v)) = (from_left, from_right) {
            // Two lines: their maximum is smallest where they cross.
            let crossing = (b.y.lower - a.y.lower + u * a.x + v * b.x) / (u + v);
            if crossing > a.x && crossing < b.x {
                // Both lines meet here; the steeper one carries the rounding of a large number.
                gap = gap.min(left_at(crossing).min(right_at(crossing)));
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
        for (centre, width, guess) in [
            (3.0_f64, 1e-12, 4.0),
            (3.0, 1e-12, f64::NAN),
            (1.0, 0.0, 2.0),
            (1000.0, 1e-10, 20.0),
            (1.7, 1e-6, 1.7),
        ] {
            let truth = 2.0;
            let mut calls = 0;
            let (_, found) = minimise_from(
                |log_x| {
                    calls += 1;
                    let x = log_x.exp();
                    let y = truth + 0.3 * (x / centre + centre / x - 2.0);
                    Ok(Interval::around(y, width * y))
                },
                1.0,
                1e4,
                Guess { at: guess, step: 0.0 },
            )
            .unwrap();
            assert!(found.lower <= truth && truth <= found.upper, "{centre}: {found:?}");
            // Noise is amplified by the square of the ratio of neighbouring distances, 8.
            assert!(found.width() <= 64.0 * width * truth + 1e-10, "{centre}: {found:?}");
            assert!(calls <= 30, "{centre}: {calls} calls");
        }
    }

    #[test]
    fn a_minimum_at_an_end_is_found() {
        for (low, high, truth) in [(2.0, 50.0, 2.0), (0.1, 0.5, -0.5)] {
            let rising = |log_x: f64| {
                let x = log_x.exp();
                Ok(Interval::exact(if low == 2.0 { x } else { -x }))
            };
            let (_, found) =
                minimise_from(rising, low, high, Guess { at: f64::NAN, step: 0.0 }).unwrap();
            assert!((found.lower - truth).abs() < 1e-9 && found.upper >= truth, "{found:?}");
        }
    }

    #[test]
    fn a_kink_is_no_problem() {
        let (_, found) = minimise_from(
            |log_x| Ok(Interval::exact((log_x.exp() - 2.0).abs() + 1.0)),
            1.0,
            50.0,
            Guess { at: 3.0, step: 0.1 },
        )
        .unwrap();
        assert!(found.lower <= 1.0 && 1.0 <= found.upper && found.width() < 1e-4, "{found:?}");
    }

    #[test]
    fn round_off_does_not_lift_the_lower_end() {
        let (_, flat) =
            minimise_from(|_| Ok(Interval::exact(0.1)), 0.5, 8.0, Guess { at: 1.0, step: 0.1 })
                .unwrap();
        assert!(flat.lower <= 0.1 && flat.lower > 0.0999, "{flat:?}");
    }
}
