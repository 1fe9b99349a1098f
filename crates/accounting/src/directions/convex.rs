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

/// Minimises a convex function over `[low, high]`, `low < high`, to about `tolerance` relative,
/// in a dozen evaluations: golden section and parabolas on the logarithm of x, then two close
/// neighbours of the minimum to certify it.
pub(crate) fn minimise(
    mut function: impl FnMut(f64) -> Result<Interval>,
    low: f64,
    high: f64,
) -> Result<(f64, Interval)> {
    let mut samples = Vec::with_capacity(24);
    let mut at = |x: f64, samples: &mut Vec<Sample>| -> Result<f64> {
        let y = function(x)?;
        let index = samples.partition_point(|sample: &Sample| sample.x < x);
        samples.insert(index, Sample { x, y });
        Ok(y.value)
    };
    at(low, &mut samples)?;
    at(high, &mut samples)?;
    let (bottom, top) = (low.ln(), high.ln());
    at((0.5 * (bottom + top)).exp(), &mut samples)?;
    let scale = (top - bottom).max(1e-300);
    for _ in 0..40 {
        let best = best_index(&samples);
        let left = samples[best.saturating_sub(1)].x.ln();
        let right = samples[(best + 1).min(samples.len() - 1)].x.ln();
        let centre = samples[best].x.ln();
        // Closer than this the parabola is flat to the last digits of the function.
        if right - left < 2e-6 * scale.min(1.0) {
            break;
        }
        let next = propose(&samples, best).unwrap_or_else(|| {
            if right - centre > centre - left { 0.5 * (centre + right) } else { 0.5 * (left + centre) }
        });
        let near = |x: f64| samples.iter().any(|sample| (sample.x.ln() - x).abs() < 1e-7 * scale);
        if near(next) {
            break;
        }
        at(next.exp().clamp(low, high), &mut samples)?;
    }
    // Neighbours at a distance where second order losses are of the size of the round-off.
    let best = best_index(&samples);
    let centre = samples[best].x;
    for factor in [-2e-5_f64, -1e-5, 1e-5, 2e-5] {
        let x = (centre * (factor * scale.min(1.0)).exp()).clamp(low, high);
        if samples.iter().all(|sample| sample.x != x) {
            at(x, &mut samples)?;
        }
    }
    let best = best_index(&samples);
    let upper = samples.iter().map(|sample| sample.y.upper).fold(f64::INFINITY, f64::min);
    let lower = lower_bound(&samples).min(upper);
    Ok((samples[best].x, Interval::new(lower, samples[best].y.value, upper)))
}

fn best_index(samples: &[Sample]) -> usize {
    (0..samples.len()).min_by(|a, b| samples[*a].y.value.total_cmp(&samples[*b].y.value)).unwrap_or(0)
}

/// The vertex of the parabola in ln x through the best point and its neighbours, if it makes
/// sense; a half step where the best point is an end of the range.
fn propose(samples: &[Sample], best: usize) -> Option<f64> {
    if best == 0 || best + 1 == samples.len() {
        return None;
    }
    let [left, centre, right] = [&samples[best - 1], &samples[best], &samples[best + 1]];
    let (x0, x1, x2) = (left.x.ln(), centre.x.ln(), right.x.ln());
    let (d0, d2) = (left.y.value - centre.y.value, right.y.value - centre.y.value);
    let (h0, h2) = (x1 - x0, x2 - x1);
    let denominator = d0 * h2 + d2 * h0;
    if !(denominator > 0.0 && denominator.is_finite()) {
        return None;
    }
    let vertex = x1 + 0.5 * (d0 * h2 * h2 - d2 * h0 * h0) / denominator;
    // A parabola that barely moves while one side is wide: cut the wide side instead.
    let (narrow, wide) = if h0 < h2 { (h0, h2) } else { (h2, h0) };
    if narrow < 1e-3 * wide {
        let cut = 30.0 * narrow;
        return Some(if h0 < h2 { x1 + cut } else { x1 - cut });
    }
    (vertex > x0 && vertex < x2).then_some(vertex)
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
        let from_right = samples.get(index + 2).map(|outer| {
            (b, (outer.y.upper - b.y.lower) / (outer.x - b.x))
        });
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
                gap = gap.min(envelope(crossing));
            }
        }
        bound = bound.min(gap);
    }
    bound.min(samples.iter().map(|sample| sample.y.lower).fold(f64::INFINITY, f64::min))
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
            assert!(found.width() <= 20.0 * width + 2e-8, "{centre}: {found:?}");
            assert!(calls <= 40, "{centre}: {calls} calls");
        }
    }

    #[test]
    fn a_kink_is_no_problem() {
        let (_, found) = minimise(|x| Ok(Interval::exact((x - 2.0).abs() + 1.0)), 1.0, 50.0).unwrap();
        assert!(found.lower <= 1.0 && 1.0 <= found.upper && found.width() < 1e-3, "{found:?}");
    }
}
