//! Safe roots. The residual of a calibration is almost linear in the logarithm of the unknown,
//! so secants and inverse parabolas reach the last digits in a handful of evaluations; the
//! answer is always a point at which the target was certainly met.

use crate::AccountingError;
use numerics::elementary::{exp, ln};

type Result<T> = std::result::Result<T, AccountingError>;

/// How far a point is from the target: residual <= 0 is about safe; `met` is certain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) residual: f64,
    pub(crate) met: bool,
}

/// Where the search ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Found {
    /// The least private point that meets the target.
    At(f64),
    /// Even the least private end of the range meets it.
    Everywhere(f64),
    /// Not even the most private end of the range meets it.
    Nowhere,
}

/// Finds the smallest `u` in `[low, high]` at which the target is met, to `tolerance`; larger
/// `u` are more private. `guess` and `slope` (d residual / du < 0) only decide the speed.
pub(crate) fn smallest_safe(
    mut measure: impl FnMut(f64) -> Result<Measured>,
    (low, high): (f64, f64),
    guess: f64,
    slope: f64,
    tolerance: f64,
) -> Result<Found> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut missed: Option<(f64, f64)> = None;
    let mut met: Option<(f64, f64)> = None;
    let mut u = guess.clamp(low, high);
    let mut reach = 0.0;
    for round in 0..100 {
        let here = measure(u)?;
        points.push((u, here.residual));
        if here.met {
            met = Some((u, here.residual));
            if u <= low {
                return Ok(Found::Everywhere(low));
            }
        } else {
            missed = Some((u, here.residual));
            if u >= high {
                return Ok(Found::Nowhere);
            }
        }
        let (left, right) = (missed.map_or(low, |p| p.0), met.map_or(high, |p| p.0));
        if met.is_some() && right - left <= tolerance {
            return Ok(Found::At(right));
        }
        // Towards the safe side by half the tolerance, so that the last step lands there.
        let root = interpolate(&points, slope);
        let mut next = root + 0.5 * tolerance;
        if let Some((safe, _)) = met
            && round >= 2
            && root.is_finite()
            && (safe - root) <= tolerance
            && safe >= root
        {
            return Ok(Found::At(safe));
        }
        match (missed, met) {
            (Some(_), Some(_)) => {
                let stuck = round > 8 && round % 3 == 0;
                if !(next > left && next < right) || stuck {
                    next = 0.5 * (left + right);
                }
            }
            (Some(_), None) => {
                // Not further than twice as far as before, but always further.
                reach = f64::max(2.0 * reach, 0.05);
                next = if next.is_finite() && next > u {
                    next.min(u + reach.max(0.7))
                } else {
                    u + reach
                };
            }
            _ => {
                reach = f64::max(2.0 * reach, 0.05);
                next = if next.is_finite() && next < u {
                    next.max(u - reach.max(0.7))
                } else {
                    u - reach
                };
            }
        }
        u = next.clamp(low, high);
    }
    Ok(met.map_or(Found::Nowhere, |(safe, _)| Found::At(safe)))
}

/// The largest whole number in `[1, most]` at which the target is met, for a residual that
/// grows with it beyond `from`. Returns 0 where none is.
pub(crate) fn largest_safe_count(
    mut measure: impl FnMut(u64) -> Result<Measured>,
    most: u64,
    guess: f64,
) -> Result<u64> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    let (mut met, mut missed): (u64, Option<u64>) = (0, None);
    let mut count = (guess.clamp(1.0, most as f64)) as u64;
    for round in 0..200 {
        let here = measure(count)?;
        points.push((ln(count as f64), here.residual));
        if here.met {
            met = met.max(count);
        } else {
            missed = Some(missed.map_or(count, |least| least.min(count)));
        }
        let ceiling = missed.unwrap_or(most + 1);
        if ceiling <= met + 1 {
            return Ok(met);
        }
        // d residual / d ln T is about 1/2: the residual is the logarithm of a mu.
        let root = exp(interpolate(&points, 0.5));
        let proposal = if !root.is_finite() {
            ceiling as f64
        } else if missed.is_none() {
            (root * 1.01).max(count as f64 * 1.5)
        } else if met == 0 {
            (root * 0.99).min(count as f64 * 0.67)
        } else {
            root
        };
        let stuck = round > 6 && round % 3 == 0;
        count = if stuck {
            met + (ceiling - met) / 2
        } else {
            proposal.floor().clamp(0.0, most as f64) as u64
        };
        // The root to within one step: look at its other side.
        count = count.clamp(met + 1, ceiling - 1);
    }
    Ok(met)
}

/// Where the residual is zero according to the last points: inverse parabola, secant, slope.
fn interpolate(points: &[(f64, f64)], slope: f64) -> f64 {
    let secant = |(x0, y0): (f64, f64), (x1, y1): (f64, f64)| x1 - y1 * (x1 - x0) / (y1 - y0);
    match points {
        [.., (x0, y0), (x1, y1), (x2, y2)] => {
            let inverse = x0 * y1 * y2 / ((y0 - y1) * (y0 - y2))
                + x1 * y0 * y2 / ((y1 - y0) * (y1 - y2))
                + x2 * y0 * y1 / ((y2 - y0) * (y2 - y1));
            if inverse.is_finite() { inverse } else { secant((*x1, *y1), (*x2, *y2)) }
        }
        [first, second] => secant(*first, *second),
        [(x, y)] => x - y / slope,
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count_calls(function: impl Fn(f64) -> f64, guess: f64, slope: f64) -> (Found, usize) {
        let mut calls = 0;
        let found = smallest_safe(
            |u| {
                calls += 1;
                let residual = function(u);
                Ok(Measured { residual, met: residual <= 0.0 })
            },
            (-2.0, 5.0),
            guess,
            slope,
            1e-11,
        )
        .unwrap();
        (found, calls)
    }

    #[test]
    fn smooth_residuals_need_few_evaluations_and_end_on_the_safe_side() {
        for guess in [-0.5, 0.4, 1.3] {
            let (found, calls) = count_calls(|u| (-u).exp() * 1.7 - 1.0 - 0.1 * u, guess, -1.5);
            let Found::At(u) = found else { panic!("{found:?}") };
            let residual = (-u).exp() * 1.7 - 1.0 - 0.1 * u;
            assert!(residual <= 0.0 && residual > -1e-10, "{residual}");
            assert!(calls <= 9, "{calls} calls from {guess}");
        }
    }

    #[test]
    fn ends_of_the_range_are_told_apart() {
        assert_eq!(count_calls(|_| 1.0, 0.0, -1.0).0, Found::Nowhere);
        assert_eq!(count_calls(|_| -1.0, 0.0, -1.0).0, Found::Everywhere(-2.0));
    }

    #[test]
    fn a_jump_is_bisected() {
        let (found, calls) = count_calls(|u| if u < 1.0 { 3.0 } else { -1e-3 }, 0.0, -1.0);
        let Found::At(u) = found else { panic!("{found:?}") };
        assert!((1.0..1.0 + 1e-9).contains(&u) && calls < 100, "{u} after {calls}");
    }

    #[test]
    fn counts_are_exact() {
        for (truth, guess) in
            [(1_u64, 7.0), (1000, 1000.0), (123_456, 5.0), (2, 1e9), (999_999_999, 3.0)]
        {
            let mut calls = 0;
            let found = largest_safe_count(
                |count| {
                    calls += 1;
                    let residual = 0.5 * (count as f64 / (truth as f64 + 0.5)).ln();
                    Ok(Measured { residual, met: residual <= 0.0 })
                },
                1_000_000_000,
                guess,
            )
            .unwrap();
            assert_eq!(found, truth);
            assert!(calls <= 14, "{calls} calls for {truth}");
        }
    }

    #[test]
    fn no_count_is_zero_and_every_count_is_the_most() {
        let never = largest_safe_count(|_| Ok(Measured { residual: 1.0, met: false }), 1000, 10.0);
        assert_eq!(never, Ok(0));
        let always = largest_safe_count(|_| Ok(Measured { residual: -1.0, met: true }), 1000, 10.0);
        assert_eq!(always, Ok(1000));
    }
}
