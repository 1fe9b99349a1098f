//! The smallest noise of a family that observed rates rule out, without ever inverting a curve.
//!
//! A trade-off curve is the upper envelope of lines: f(x) = sup over l of 1 - delta(l) - e^l x
//! (Dong, Roth and Su 2022, Proposition 2.12), so a point (x, y) lies below the curve as soon as it
//! lies below one of them. The true rates of some threshold lie in its region, so s is violated when
//! 1 - delta_s(l) > min over the region of (y + e^l x) for some l; of several thresholds one is enough. For fixed l the left side rises
//! with the noise s, and so does its excess over the right side at the best l: a root in s. The best l is a flat maximum that moves
//! slowly with s, so that a few slopes at each noise follow it; where nothing more is shown, all slopes are looked at once more.
//!
//! Direction: a noise is only called violated where a line at the *certified lower end* of
//! 1 - delta shows it, so the result is never below the smallest violated noise, whatever slope
//! was found. Cost: some dozen noises with a few slopes each, and three looks at all slopes. Slopes at one noise share a session of the
//! accounting, so that even the hardest noise takes less than a tenth of a second; inverting the curve at each noise would take a thousand
//! values of delta.

mod both_orders;
mod one_order;
mod one_point;
mod region;
mod visits;

pub(crate) use both_orders::{Violated, least_violated_noise};
pub(crate) use one_point::least_noise_of_one_point;
pub(crate) use region::Region;

use crate::{AuditError, RateBounds};
use accounting::{AccountingError, Order, Pair};

/// Relative accuracy of the noise.
const ACCURACY: f64 = 1e-6;
/// That of a limit, which is checked afterwards.
const ROUGHLY: f64 = 1e-4;
/// Slopes of a look over the whole curve.
const SLOPES: u32 = 14;
/// What is left open at hardly more noise than the least of the domain is not looked for: it takes longest, and leaves nothing said.
pub(crate) const EDGE: f64 = 1.15;

/// A family of pairs that leak less the more noise they have, as the search needs it.
pub(crate) trait ByNoise {
    /// The member with this noise.
    fn member(&self, noise: f64) -> Result<Box<dyn Pair>, AuditError>;
    /// The noises between which the search stays.
    fn domain(&self) -> (f64, f64);
    /// A noise whose curve is near a Gaussian one of this mu.
    fn start(&self, mu: f64) -> f64;
    /// No loss of any member, with all steps together, is below this one; above it losses pile up where there is little noise. 0 where
    /// that is not known.
    fn smallest_loss(&self) -> f64 {
        0.0
    }
}

/// A family from a noise on: what lies below is not of interest, and little noise takes long to account for.
pub(crate) struct From<'a> {
    pub(crate) family: &'a dyn ByNoise,
    pub(crate) least: f64,
}

impl ByNoise for From<'_> {
    fn member(&self, noise: f64) -> Result<Box<dyn Pair>, AuditError> {
        self.family.member(noise)
    }

    fn domain(&self) -> (f64, f64) {
        let (least, most) = self.family.domain();
        (least.max(self.least), most)
    }

    fn start(&self, mu: f64) -> f64 {
        self.family.start(mu)
    }

    fn smallest_loss(&self) -> f64 {
        self.family.smallest_loss()
    }
}

/// Lines under both orders' curves of one noise: 1 - delta, from below, at some slopes.
pub(crate) struct Certain {
    lines: [Vec<(f64, f64)>; 2],
}

impl Certain {
    /// At these slopes, as far as the accounting certifies them.
    pub(crate) fn at(
        pair: &dyn Pair,
        slopes: impl Iterator<Item = f64> + Clone,
    ) -> Result<Self, AuditError> {
        let mut lines = [Vec::new(), Vec::new()];
        for (lines, way) in lines.iter_mut().zip([Order::Remove, Order::Add]) {
            for slope in slopes.clone() {
                match pair.one_minus_delta(slope, way) {
                    Ok(rest) => lines.push((slope, rest.lower)),
                    Err(error) => {
                        unknown::<()>(error.into())?;
                    }
                }
            }
        }
        Ok(Self { lines })
    }

    /// Whether a region lies below a line of each order.
    pub(crate) fn violated_by<R: Region + ?Sized>(&self, region: &R) -> bool {
        let below = |&(slope, rest): &(f64, f64)| region.support(slope).0 < rest * (1.0 - 1e-14);
        self.lines.iter().all(|lines| lines.iter().any(below))
    }
}

/// A noise that tests with rates of at least `points` leave open, from below: the curve of one
/// order passes at or under all of them, by its certified upper end. `None` when no such noise is
/// found in the domain.
pub(crate) fn allowed_noise(
    family: &dyn ByNoise,
    points: &[RateBounds],
) -> Result<Option<f64>, AuditError> {
    let (least, most) = family.domain();
    let least = EDGE * least;
    let violated = both_orders::least(&From { family, least }, points, ROUGHLY)?;
    // Below the smallest violated noise the order that decides it is open.
    let (start, ways) =
        violated.map_or((most, vec![Order::Remove, Order::Add]), |it| (it.noise, vec![it.decides]));
    // The smallest violated noise is known from above, to the accuracy where all goes well.
    let mut step = 2.0 * ROUGHLY;
    while step < 0.5 && start > least * (1.0 + ACCURACY) {
        let noise = (start * (1.0 - step)).max(least);
        if let Some(pair) = family.member(noise).map_or_else(unknown, |pair| Ok(Some(pair)))? {
            for &way in &ways {
                if passes_under(pair.as_ref(), way, points)? {
                    return Ok(Some(noise));
                }
            }
        }
        step *= 8.0;
    }
    Ok(None)
}

/// Whether the curve certainly lies at or under all points.
fn passes_under(pair: &dyn Pair, way: Order, points: &[RateBounds]) -> Result<bool, AuditError> {
    let session = pair.session();
    let pair = session.as_deref().unwrap_or(pair);
    for point in points {
        let curve = match pair.fnr(point.false_positive_upper, way) {
            Ok(curve) => Some(curve),
            Err(error) => unknown(error.into())?,
        };
        if !curve.is_some_and(|curve| curve.upper <= point.false_negative_upper) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What cannot be certified is not known; anything else is an error.
pub(crate) fn unknown<T>(error: AuditError) -> Result<Option<T>, AuditError> {
    match error {
        AuditError::Accounting(
            AccountingError::NotCertified(_) | AccountingError::OutsideDomain(_),
        ) => Ok(None),
        other => Err(other),
    }
}

#[cfg(test)]
mod tests;
