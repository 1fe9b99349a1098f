//! The smallest noise of a family that observed rates rule out, without ever inverting a curve.
//!
//! A trade-off curve is the upper envelope of lines: f(x) = sup over l of 1 - delta(l) - e^l x
//! (Dong, Roth and Su 2022, Proposition 2.12), so a point (x, y) lies below the curve as soon as it
//! lies below one of them, and of several points one does when
//! 1 - delta_s(l) > min over points of (y + e^l x) for some l. For fixed l the left side rises
//! with the noise s: a root in s. The best l is a flat maximum, so that a slope from a neighbouring
//! noise is nearly as good, and a handful of roots with the slope improved between them finds the
//! smallest s.
//!
//! Direction: a noise is only called violated where a line at the *certified lower end* of
//! 1 - delta shows it, so the result is never below the smallest violated noise, whatever slope
//! was found. Cost: some forty values of delta an order of the pair, each a fraction of a
//! millisecond where the accounting is easy and tens of them where it is hard; inverting the curve
//! at each noise would take a thousand.

use crate::{AuditError, RateBounds, Statistic};
use accounting::{AccountingError, OneWay, Pair};

/// Relative accuracy of the noise.
const ACCURACY: f64 = 1e-6;
/// Slopes of a look over the whole curve.
const SLOPES: u32 = 14;

/// A family of pairs that leak less the more noise they have, as the search needs it.
pub(crate) trait ByNoise {
    /// The member with this noise.
    fn member(&self, noise: f64) -> Result<Box<dyn Pair>, AuditError>;
    /// The noises between which the search stays.
    fn domain(&self) -> (f64, f64);
    /// A noise whose curve is near a Gaussian one of this mu.
    fn start(&self, mu: f64) -> f64;
}

/// The smallest noise for which both orders of the pair are violated by one of the points (which
/// hold together), from above; `None` when none is.
pub(crate) fn least_violated_noise(
    family: &dyn ByNoise,
    points: &[RateBounds],
) -> Result<Option<f64>, AuditError> {
    let useful: Vec<RateBounds> = points
        .iter()
        .copied()
        .filter(|point| point.false_positive_upper + point.false_negative_upper < 1.0)
        .collect();
    let mu = useful.iter().map(|point| Statistic::GaussianMu.value(point)).fold(0.0, f64::max);
    if useful.is_empty() || mu <= 0.0 {
        return Ok(None);
    }
    let (least, most) = family.domain();
    let mut noise = family.start(mu.clamp(1e-6, 1e6)).clamp(least, most);
    let mut largest = least;
    for way in [OneWay::Remove, OneWay::Add] {
        let search = Search { family, way, points: &useful };
        match search.least(noise)? {
            Some(found) => (noise, largest) = (found, largest.max(found)),
            None => return Ok(None),
        }
    }
    Ok(Some(largest))
}

struct Search<'a> {
    family: &'a dyn ByNoise,
    way: OneWay,
    points: &'a [RateBounds],
}

/// A slope (as its logarithm) with the excess there: positive when the noise is violated.
#[derive(Clone, Copy)]
struct Line {
    slope: f64,
    excess: f64,
}

impl Search<'_> {
    fn least(&self, start: f64) -> Result<Option<f64>, AuditError> {
        let (least, most) = self.family.domain();
        // More noise until a line shows a violation: where none does, the line that comes nearest
        // may be one at the end of the curve that shows nothing at any noise.
        let mut noise = start;
        let mut factor = 1.1_f64;
        let mut line = loop {
            if let Some(line) = self.look_over(noise)?
                && line.excess > 0.0
            {
                break line;
            }
            if noise >= most {
                return Ok(None);
            }
            noise = (noise * factor).min(most);
            factor *= factor.min(2.0);
        };
        let mut known: Option<f64> = None;
        for _ in 0..8 {
            let accuracy = if known.is_none() { 1e-3 } else { ACCURACY };
            let Some(violated) = self.root(noise, line, accuracy)? else {
                // This slope shows nothing up to the largest noise.
                return Ok(known);
            };
            let before = known.unwrap_or(f64::INFINITY);
            let best = violated.min(before);
            known = Some(best);
            if best <= least {
                break;
            }
            // A better slope at a hair less noise shows more: once beside the last one, and when
            // that helps no more, anywhere.
            noise = (best * (1.0 - 2.0 * accuracy)).max(least);
            let beside = self.improve(noise, Line { excess: f64::NEG_INFINITY, ..line })?;
            line = match beside {
                Some(better) if better.excess > 0.0 || before == f64::INFINITY => better,
                _ => match self.look_over(noise)? {
                    Some(other) if other.excess > 0.0 => other,
                    _ => break,
                },
            };
        }
        Ok(known)
    }

    /// The smallest noise violated at this slope, from above; the excess rises with the noise.
    fn root(&self, start: f64, line: Line, accuracy: f64) -> Result<Option<f64>, AuditError> {
        let (least, most) = self.family.domain();
        let at = |noise: f64| self.excess(noise, line.slope);
        let Some(mut here) = at(start)? else { return Ok(None) };
        let mut noise = start;
        let mut factor = 1.0 + 100.0 * accuracy;
        let (kept, violated);
        if here > 0.0 {
            loop {
                let known = (noise, here);
                // Violated down to the end of the domain: its end is still an upper bound.
                if noise <= least {
                    return Ok(Some(noise));
                }
                noise = (noise / factor).max(least);
                let Some(value) = at(noise)? else { return Ok(Some(known.0)) };
                here = value;
                if here <= 0.0 {
                    (kept, violated) = ((noise, here), known);
                    break;
                }
                factor *= factor.min(2.0);
            }
        } else {
            loop {
                let known = (noise, here);
                if noise >= most {
                    return Ok(None);
                }
                noise = (noise * factor).min(most);
                let Some(value) = at(noise)? else { return Ok(None) };
                here = value;
                if here > 0.0 {
                    (kept, violated) = (known, (noise, here));
                    break;
                }
                factor *= factor.min(2.0);
            }
        }
        // False position with halved weights (Illinois), in the logarithm of the noise.
        let (mut low, mut high) = ((kept.0.ln(), kept.1), (violated.0.ln(), violated.1));
        let mut last_side = 0;
        for _ in 0..60 {
            let gap = high.0 - low.0;
            if gap < accuracy {
                break;
            }
            let mut next = low.0 - low.1 * gap / (high.1 - low.1);
            // A little beyond the estimate on the far side, so that both ends close in.
            let margin = (0.3 * accuracy).min(0.01 * gap);
            next = next.clamp(low.0 + margin, high.0 - margin);
            let Some(value) = at(next.exp())? else { break };
            if value > 0.0 {
                high = (next, value);
                if last_side == 1 {
                    low.1 /= 2.0;
                }
                last_side = 1;
            } else {
                low = (next, value);
                if last_side == -1 {
                    high.1 /= 2.0;
                }
                last_side = -1;
            }
        }
        Ok(Some(high.0.exp()))
    }

    /// The best of slopes spread over all that can show anything, and then beside it.
    fn look_over(&self, noise: f64) -> Result<Option<Line>, AuditError> {
        let pair = match self.family.member(noise) {
            Ok(pair) => pair,
            Err(error) => return unknown(error),
        };
        // Below the first slope 1 - delta <= e^l leaves nothing, above the last 1 - delta <= 1.
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for point in self.points {
            let (x, y) = (point.false_positive_upper, point.false_negative_upper);
            low = low.min((y.max(1e-12) / point.true_negative_lower).ln());
            high = high.max((point.true_positive_lower / x.max(1e-12)).ln());
        }
        let mut best: Option<Line> = None;
        for step in 1..SLOPES {
            let slope = low + (high - low) * f64::from(step) / f64::from(SLOPES);
            if let Some(excess) = self.excess_of(pair.as_ref(), slope)?
                && best.is_none_or(|best| excess > best.excess)
            {
                best = Some(Line { slope, excess });
            }
        }
        let Some(best) = best else { return Ok(None) };
        let width = (high - low) / f64::from(SLOPES);
        Ok(Some(self.climb(pair.as_ref(), best, width)?))
    }

    /// A slope beside a good one, at another noise.
    fn improve(&self, noise: f64, line: Line) -> Result<Option<Line>, AuditError> {
        let pair = match self.family.member(noise) {
            Ok(pair) => pair,
            Err(error) => return unknown(error),
        };
        let Some(excess) = self.excess_of(pair.as_ref(), line.slope)? else { return Ok(None) };
        self.climb(pair.as_ref(), Line { excess, ..line }, 0.2).map(Some)
    }

    /// Two steps of the parabola through three slopes.
    fn climb(&self, pair: &dyn Pair, mut best: Line, mut width: f64) -> Result<Line, AuditError> {
        for _ in 0..2 {
            let sides = (
                self.excess_of(pair, best.slope - width)?,
                self.excess_of(pair, best.slope + width)?,
            );
            let (Some(left), Some(right)) = sides else { return Ok(best) };
            let centre = best;
            for (slope, excess) in [(centre.slope - width, left), (centre.slope + width, right)] {
                if excess > best.excess {
                    best = Line { slope, excess };
                }
            }
            let bend = left - 2.0 * centre.excess + right;
            if bend < 0.0 {
                let move_by = (0.5 * width * (left - right) / bend).clamp(-width, width);
                let slope = centre.slope + move_by;
                if let Some(excess) = self.excess_of(pair, slope)?
                    && excess > best.excess
                {
                    best = Line { slope, excess };
                }
            }
            width *= 0.2;
        }
        Ok(best)
    }

    fn excess(&self, noise: f64, slope: f64) -> Result<Option<f64>, AuditError> {
        match self.family.member(noise) {
            Ok(pair) => self.excess_of(pair.as_ref(), slope),
            Err(error) => unknown(error),
        }
    }

    /// ln of (1 - delta) over the support of the points at this slope; `None` where the
    /// accounting cannot certify.
    fn excess_of(&self, pair: &dyn Pair, slope: f64) -> Result<Option<f64>, AuditError> {
        let growth = slope.exp();
        let support = self
            .points
            .iter()
            .map(|point| point.false_negative_upper + growth * point.false_positive_upper)
            .fold(f64::INFINITY, f64::min);
        match pair.one_minus_delta(slope, self.way) {
            // Rounding of the support is below 1e-15 of it.
            Ok(rest) => Ok(Some((rest.lower.max(1e-300) / support).ln() - 1e-14)),
            Err(error) => unknown(error.into()),
        }
    }
}

/// What cannot be certified is not known; anything else is an error.
fn unknown<T>(error: AuditError) -> Result<Option<T>, AuditError> {
    match error {
        AuditError::Accounting(
            AccountingError::NotCertified(_) | AccountingError::OutsideDomain(_),
        ) => Ok(None),
        other => Err(other),
    }
}
