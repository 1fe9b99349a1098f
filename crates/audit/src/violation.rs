//! The smallest noise of a family that observed rates rule out, without ever inverting a curve.
//!
//! A trade-off curve is the upper envelope of lines: f(x) = sup over l of 1 - delta(l) - e^l x
//! (Dong, Roth and Su 2022, Proposition 2.12), so a point (x, y) lies below the curve as soon as it
//! lies below one of them. The true rates of some threshold lie in its region, so s is violated when
//! 1 - delta_s(l) > min over the region of (y + e^l x) for some l; of several thresholds one is enough. For fixed l the left side rises
//! with the noise s: a root in s. The best l is a flat maximum, so that a slope from a neighbouring
//! noise is nearly as good, and a handful of roots with the slope improved between them finds the
//! smallest s.
//!
//! Direction: a noise is only called violated where a line at the *certified lower end* of
//! 1 - delta shows it, so the result is never below the smallest violated noise, whatever slope
//! was found. Cost: some fifty values of delta, each a fraction of a
//! millisecond where the accounting is easy and tens of them where it is hard; inverting the curve
//! at each noise would take a thousand.

use crate::joint::JointScores;
use crate::{AuditError, RateBounds, Statistic};
use accounting::{AccountingError, OneWay, Pair};

/// Relative accuracy of the noise.
const ACCURACY: f64 = 1e-6;
/// Slopes of a look over the whole curve.
const SLOPES: u32 = 10;

/// A family of pairs that leak less the more noise they have, as the search needs it.
pub(crate) trait ByNoise {
    /// The member with this noise.
    fn member(&self, noise: f64) -> Result<Box<dyn Pair>, AuditError>;
    /// The noises between which the search stays.
    fn domain(&self) -> (f64, f64);
    /// A noise whose curve is near a Gaussian one of this mu.
    fn start(&self, mu: f64) -> f64;
}

/// Where the true rates lie, with a confidence, at all thresholds of a set at once.
pub(crate) trait Region {
    /// The least y + e^l x over the region of one threshold, and which threshold has it; from above.
    fn support(&self, slope: f64) -> (f64, usize);
    /// The slopes that can show anything.
    fn slopes(&self) -> (f64, f64);
    /// About the Gaussian mu that is shown; 0 when nothing is.
    fn mu(&self) -> f64;
    /// Whether there is one threshold only, which then has one best slope.
    fn single(&self) -> bool;
}

/// Upper ends of both rates at several thresholds, which hold together: corners.
impl Region for [RateBounds] {
    fn support(&self, slope: f64) -> (f64, usize) {
        let growth = slope.exp();
        let height = |place: usize| (height(&self[place], growth), place);
        (0..self.len()).map(height).fold((f64::INFINITY, 0), |a, b| if b.0 < a.0 { b } else { a })
    }

    /// Below the first 1 - delta <= e^l leaves nothing, above the last 1 - delta <= 1.
    fn slopes(&self) -> (f64, f64) {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for point in self.iter().filter(|point| useful(point)) {
            let (x, y) = (point.false_positive_upper, point.false_negative_upper);
            low = low.min((y.max(1e-12) / point.true_negative_lower).ln());
            high = high.max((point.true_positive_lower / x.max(1e-12)).ln());
        }
        (low, high)
    }

    fn mu(&self) -> f64 {
        let points = self.iter().filter(|point| useful(point));
        points.map(|point| Statistic::GaussianMu.value(point)).fold(0.0, f64::max)
    }

    fn single(&self) -> bool {
        self.iter().filter(|point| useful(point)).count() == 1
    }
}

fn useful(point: &RateBounds) -> bool {
    point.false_positive_upper + point.false_negative_upper < 1.0
}

impl Region for JointScores {
    fn support(&self, slope: f64) -> (f64, usize) {
        let support = JointScores::support(self, slope);
        (support.value, support.vertex)
    }

    fn slopes(&self) -> (f64, f64) {
        JointScores::slopes(self)
    }

    fn mu(&self) -> f64 {
        JointScores::mu(self).value
    }

    fn single(&self) -> bool {
        false
    }
}

/// A noise that is ruled out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Violated {
    pub(crate) noise: f64,
    /// Which of the points show it: one for each order of the pair, perhaps the same one.
    pub(crate) points: [usize; 2],
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
        for (lines, way) in lines.iter_mut().zip([OneWay::Remove, OneWay::Add]) {
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

/// The smallest noise for which both orders of the pair are violated at one of the thresholds,
/// from above; `None` when none is.
pub(crate) fn least_violated_noise<R: Region + ?Sized>(
    family: &dyn ByNoise,
    region: &R,
) -> Result<Option<Violated>, AuditError> {
    let mu = region.mu();
    if mu <= 0.0 {
        return Ok(None);
    }
    let (least, most) = family.domain();
    let start = family.start(mu.clamp(1e-6, 1e6)).clamp(least, most);
    let order = |way| Search { family, way, region };
    let mut orders = Vec::new();
    for way in [OneWay::Remove, OneWay::Add] {
        let search = order(way);
        match search.first_look(start)? {
            Some((noise, line)) => orders.push((search, noise, line)),
            None => return Ok(None),
        }
    }
    // The order that needs more noise decides; where it is found, the other is mostly violated
    // already, which a few slopes show.
    orders.sort_by(|a, b| a.2.excess.total_cmp(&b.2.excess));
    let mut largest = 0.0;
    let mut shown = [0; 2];
    for ((search, noise, line), shown) in orders.into_iter().zip(&mut shown) {
        let known = if largest > 0.0 { search.improve(largest, line)? } else { None };
        let slope = match known {
            Some(line) if line.excess > 0.0 => line.slope,
            _ => {
                let Some((noise, slope)) = search.least(noise, line)? else { return Ok(None) };
                largest = noise.max(largest).max(least);
                slope
            }
        };
        *shown = region.support(slope).1;
    }
    Ok(Some(Violated { noise: largest, points: shown }))
}

/// The smallest noise for which both orders are violated by the *same* point: the curve that is
/// compared with is the lower of both orders. For estimates, whose points are only observed.
pub(crate) fn least_noise_of_one_point(
    family: &dyn ByNoise,
    points: &[RateBounds],
) -> Result<Option<f64>, AuditError> {
    let worth = |point: &RateBounds| Statistic::GaussianMu.value(point);
    let first = points.iter().max_by(|a, b| worth(a).total_cmp(&worth(b)));
    let Some(first) = first else { return Ok(None) };
    let one = |point: &RateBounds| {
        let found = least_violated_noise(family, std::slice::from_ref(point))?;
        Ok::<_, AuditError>(found.map(|found| found.noise))
    };
    let mut least = one(first)?;
    while let Some(noise) = least {
        let Some(next) = furthest_below(family, points, noise * (1.0 - 2.0 * ACCURACY))? else {
            break;
        };
        match one(next)? {
            Some(smaller) if smaller < noise * (1.0 - ACCURACY) => least = Some(smaller),
            _ => break,
        }
    }
    Ok(least)
}

/// The point that lies furthest below both orders' curves, if one does.
fn furthest_below<'a>(
    family: &dyn ByNoise,
    points: &'a [RateBounds],
    noise: f64,
) -> Result<Option<&'a RateBounds>, AuditError> {
    let noise = noise.max(family.domain().0);
    let pair = match family.member(noise) {
        Ok(pair) => pair,
        Err(error) => return unknown(error),
    };
    let mut curves = [Vec::new(), Vec::new()];
    for (curve, way) in curves.iter_mut().zip([OneWay::Remove, OneWay::Add]) {
        let (low, high) = points.slopes();
        for step in 1..3 * SLOPES {
            let slope = low + (high - low) * f64::from(step) / f64::from(3 * SLOPES);
            match pair.one_minus_delta(slope, way) {
                Ok(rest) => curve.push((slope.exp(), rest.lower)),
                Err(error) => {
                    unknown::<()>(error.into())?;
                }
            }
        }
    }
    let height = |curve: &[(f64, f64)], fpr: f64| {
        curve.iter().map(|(growth, rest)| rest - growth * fpr).fold(0.0, f64::max)
    };
    let excess = |point: &RateBounds| {
        let fpr = point.false_positive_upper;
        let curve = height(&curves[0], fpr).min(height(&curves[1], fpr));
        curve.max(1e-300) / point.false_negative_upper.max(1e-300)
    };
    let best = points.iter().max_by(|a, b| excess(a).total_cmp(&excess(b)));
    Ok(best.filter(|point| excess(point) > 1.0))
}

struct Search<'a, R: ?Sized> {
    family: &'a dyn ByNoise,
    way: OneWay,
    region: &'a R,
}

/// A slope (as its logarithm) with the excess there: positive when the noise is violated.
#[derive(Clone, Copy)]
struct Line {
    slope: f64,
    excess: f64,
}

impl<R: Region + ?Sized> Search<'_, R> {
    /// The best slope at the first noise from `start` on for which the accounting certifies any.
    fn first_look(&self, start: f64) -> Result<Option<(f64, Line)>, AuditError> {
        let (_, most) = self.family.domain();
        let mut noise = start;
        loop {
            if let Some(line) = self.look_over(noise)? {
                return Ok(Some((noise, line)));
            }
            if noise >= most {
                return Ok(None);
            }
            noise = (noise * 1.3).min(most);
        }
    }

    /// A noise from `start` on that some slope of a look shows to be violated.
    fn first_violated(&self, start: f64) -> Result<Option<(f64, Line)>, AuditError> {
        let (_, most) = self.family.domain();
        let mut noise = start;
        loop {
            match self.look_over(noise)? {
                Some(line) if line.excess > 0.0 => return Ok(Some((noise, line))),
                _ if noise >= most => return Ok(None),
                _ => noise = (noise * 1.5).min(most),
            }
        }
    }

    /// The smallest violated noise, and the slope that shows it.
    fn least(&self, mut noise: f64, mut line: Line) -> Result<Option<(f64, f64)>, AuditError> {
        let (least, _) = self.family.domain();
        let mut known: Option<(f64, f64)> = None;
        for _ in 0..8 {
            let accuracy = if known.is_none() { 1e-3 } else { ACCURACY };
            let Some(violated) = self.root(noise, line, accuracy)? else {
                // This slope shows nothing up to the largest noise. Another one may.
                match self.first_violated(noise)? {
                    Some(found) if known.is_none() => (noise, line) = found,
                    _ => return Ok(known),
                }
                continue;
            };
            let before = known.map_or(f64::INFINITY, |(noise, _)| noise);
            let best = violated.min(before);
            if violated < before {
                known = Some((violated, line.slope));
            }
            if best <= least {
                break;
            }
            // A better slope at a hair less noise shows more: once beside the last one, and when
            // that helps no more, anywhere.
            noise = (best * (1.0 - 2.0 * accuracy)).max(least);
            let beside = self.improve(noise, line)?;
            line = match beside {
                Some(better) if better.excess > 0.0 || before == f64::INFINITY => better,
                // One point has one best slope.
                _ if self.region.single() => break,
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
        let (low, high) = self.region.slopes();
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
        Ok(Some(self.climb(pair.as_ref(), best, 0.5 * width)?))
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

    /// ln of (1 - delta) over the support at this slope; `None` where the accounting cannot
    /// certify.
    fn excess_of(&self, pair: &dyn Pair, slope: f64) -> Result<Option<f64>, AuditError> {
        let support = self.region.support(slope).0;
        match pair.one_minus_delta(slope, self.way) {
            // Rounding of the support is below 1e-15 of it.
            Ok(rest) => Ok(Some((rest.lower.max(1e-300) / support).ln() - 1e-14)),
            Err(error) => unknown(error.into()),
        }
    }
}

/// y + e^l x of a point.
fn height(point: &RateBounds, growth: f64) -> f64 {
    point.false_negative_upper + growth * point.false_positive_upper
}

/// A noise that tests with rates of at least `points` leave open, from below: the curve of one
/// order passes at or under all of them, by its certified upper end. `None` when no such noise is
/// found in the domain.
pub(crate) fn allowed_noise(
    family: &dyn ByNoise,
    points: &[RateBounds],
) -> Result<Option<f64>, AuditError> {
    let (least, most) = family.domain();
    let start = least_violated_noise(family, points)?.map_or(most, |violated| violated.noise);
    // The smallest violated noise is known from above, to a millionth where all goes well.
    let mut step = 2.0 * ACCURACY;
    while step < 0.5 && start > least {
        let noise = (start * (1.0 - step)).max(least);
        if let Some(pair) = family.member(noise).map_or_else(unknown, |pair| Ok(Some(pair)))? {
            for way in [OneWay::Remove, OneWay::Add] {
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
fn passes_under(pair: &dyn Pair, way: OneWay, points: &[RateBounds]) -> Result<bool, AuditError> {
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
