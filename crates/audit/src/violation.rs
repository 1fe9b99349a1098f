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

mod visits;

use crate::joint::JointScores;
use crate::{AuditError, RateBounds, Statistic};
use accounting::{AccountingError, Order, Pair};
use visits::{Line, Visit, rise, root_below, top, zero};

/// Relative accuracy of the noise.
const ACCURACY: f64 = 1e-6;
/// That of a limit, which is checked afterwards.
const ROUGHLY: f64 = 1e-4;
/// A region that shows less than this (relative) at a slope shows nothing there.
const LITTLE: f64 = 1e-5;
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
    /// The smallest loss of all steps together, above which losses pile up where there is little noise; 0 where that is not known.
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

/// Where the true rates lie, with a confidence, at all thresholds of a set at once.
pub(crate) trait Region {
    /// The least y + e^l x over the region of one threshold, and which threshold has it; from above.
    fn support(&self, slope: f64) -> (f64, usize);
    /// The slopes that can show anything.
    fn slopes(&self) -> (f64, f64);
    /// About the Gaussian mu that is shown; 0 when nothing is.
    fn mu(&self) -> f64;
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
}

/// A noise that is ruled out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Violated {
    pub(crate) noise: f64,
    /// Which of the points show it: one for each order of the pair, perhaps the same one.
    pub(crate) points: [usize; 2],
    /// The order of the pair that allows less noise than this least.
    decides: Order,
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

/// The smallest noise for which both orders of the pair are violated at one of the thresholds,
/// from above; `None` when none is.
pub(crate) fn least_violated_noise<R: Region + ?Sized>(
    family: &dyn ByNoise,
    region: &R,
) -> Result<Option<Violated>, AuditError> {
    least(family, region, ACCURACY)
}

/// As [`least_violated_noise`], to an accuracy. Where that is a rough one, slopes other than those near the best are not looked at once more.
fn least<R: Region + ?Sized>(
    family: &dyn ByNoise,
    region: &R,
    accuracy: f64,
) -> Result<Option<Violated>, AuditError> {
    let mu = region.mu();
    if mu <= 0.0 {
        return Ok(None);
    }
    let (least, most) = family.domain();
    let start = family.start(mu.clamp(1e-6, 1e6)).clamp(least, most);
    let mut orders = Vec::new();
    for way in [Order::Remove, Order::Add] {
        let search = Search { family, way, region, accuracy };
        match search.first_look(start)? {
            Some(visit) => {
                orders.push(Followed { search, visits: vec![visit], stage: Stage::Rough })
            }
            None => return Ok(None),
        }
    }
    down_together(&mut orders)?;
    let bottom = least.ln();
    // The order that needs more noise decides. The other is only followed as far as that needs: little noise takes long to account for.
    for _ in 0..ROUNDS {
        orders.sort_by(|a, b| b.place().total_cmp(&a.place()).then(b.stage.cmp(&a.stage)));
        let [first, second] = &mut orders[..] else { break };
        match first.stage {
            Stage::Done => break,
            Stage::Root => first.look_once_more()?,
            Stage::Rough => {
                // Below the other's root it does not decide.
                let floor = if second.stage == Stage::Rough { bottom } else { second.place() };
                if floor > bottom && first.is_violated_at(floor, Look::Past)? {
                    continue;
                }
                let Some(found) = first.search.follow(first.visits.clone(), floor)? else {
                    return Ok(None);
                };
                first.visits = vec![found];
                if found.place > floor || floor <= bottom {
                    first.stage = Stage::Root;
                }
            }
        }
    }
    let [first, second] = &orders[..] else { return Ok(None) };
    let point = |order: &Followed<'_, R>| {
        order.violated().map_or(0, |visit| region.support(visit.line.slope).1)
    };
    Ok(Some(Violated {
        noise: first.place().exp().max(least),
        points: [point(first), point(second)],
        decides: first.search.way,
    })
    .filter(|_| first.place() < f64::INFINITY))
}

/// One order of the pair, as far as it was followed.
struct Followed<'a, R: ?Sized> {
    search: Search<'a, R>,
    /// The newest first.
    visits: Vec<Visit>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// The least violated noise is somewhere at or below the last one.
    Rough,
    /// Slopes near the best one show no violation below the last one.
    Root,
    /// Nor do others.
    Done,
}

impl<R: Region + ?Sized> Followed<'_, R> {
    /// The least noise that is violated, as far as it is known.
    fn violated(&self) -> Option<&Visit> {
        self.visits.iter().find(|visit| visit.line.excess > 0.0)
    }

    /// Its logarithm; infinite where no violation is known.
    fn place(&self) -> f64 {
        self.violated().map_or(f64::INFINITY, |visit| visit.place)
    }

    /// Notes a visit at this place; whether it shows a violation.
    fn is_violated_at(&mut self, place: f64, look: fn(f64) -> Look) -> Result<bool, AuditError> {
        let look = look(self.visits[0].line.slope);
        // Where nothing is certified the search goes on from the visit before.
        let Some(line) = self.search.visit(place.exp(), look)? else { return Ok(false) };
        self.visits.insert(0, Visit { place, line });
        Ok(line.excess > 0.0)
    }

    /// All slopes at hardly less noise.
    fn look_once_more(&mut self) -> Result<(), AuditError> {
        let (least, _) = self.search.family.domain();
        let noise = self.place().exp() * (1.0 - 2.0 * self.search.accuracy);
        self.stage = Stage::Done;
        let known = self.violated().is_some_and(|visit| visit.line.whole);
        if known || noise <= least || self.search.accuracy > ACCURACY {
            return Ok(());
        }
        match self.search.visit(noise, Look::All)? {
            Some(line) if line.excess > 0.0 => {
                self.visits = vec![Visit { place: noise.ln(), line }];
                if line.excess > HARDLY {
                    self.stage = Stage::Rough;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Both orders by the same steps down to less noise, while both are clearly violated.
fn down_together<R: Region + ?Sized>(orders: &mut [Followed<'_, R>]) -> Result<(), AuditError> {
    while orders.iter().all(|order| order.visits[0].line.excess > ENOUGH) {
        let (here, bottom) = (orders[0].place(), orders[0].search.family.domain().0.ln());
        let stride = |order: &Followed<'_, R>| root_below(&order.visits).unwrap_or(STRIDE);
        let stride = orders.iter().map(stride).fold(STRIDE, f64::min);
        // Where nothing is left to show the end itself is likely to be violated.
        let whole = orders.iter().all(|order| order.visits[0].line.excess > 1.0 - NOTHING_LEFT);
        let stride = if whole { f64::INFINITY } else { stride };
        let place = (here - stride).max(bottom);
        if place >= here {
            break;
        }
        for order in orders.iter_mut() {
            if !order.is_violated_at(place, order.search.down(place))? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The smallest noise for which both orders are violated by the *same* point: the curve that is
/// compared with is the lower of both orders. For estimates, whose points are only observed.
pub(crate) fn least_noise_of_one_point(
    family: &dyn ByNoise,
    points: &[RateBounds],
) -> Result<Option<f64>, AuditError> {
    let (end, _) = family.domain();
    if furthest_below(family, points, end)?.is_some() {
        return Ok(Some(end));
    }
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
    let session = pair.session();
    let pair = session.as_deref().unwrap_or_else(|| pair.as_ref());
    let mut curves = [Vec::new(), Vec::new()];
    for (curve, way) in curves.iter_mut().zip([Order::Remove, Order::Add]) {
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
    way: Order,
    region: &'a R,
    /// Relative accuracy of the noise.
    accuracy: f64,
}

/// What is left open at hardly more noise than the least of the domain is not looked for: it takes longest, and leaves nothing said.
pub(crate) const EDGE: f64 = 1.15;
/// How often a search begins anew from another slope or in the other order, and the noises that it visits each time, at most.
const ROUNDS: usize = 24;
const VISITS: usize = 40;
/// The largest steps between two visits, as logarithms, far from the root and near it: little noise takes long to account for.
const STRIDE: f64 = 0.4;
const SHORT: f64 = 0.15;
/// An excess from which on a noise is far from the root, and one that leaves nothing to look for.
const ENOUGH: f64 = 0.5;
const NEARLY_ALL: f64 = 0.99;
/// A part of the excess that is as good as nothing.
const NOTHING_LEFT: f64 = 1e-9;
/// An excess that is so far from the root that a better slope is not looked for on the way down.
const CLEAR: f64 = 0.95;
/// Noises above this many times the least of the domain take little time.
const FEW_LEAST: f64 = 1.5;
/// Slopes from this part of the smallest loss to the loss itself take longest, and slopes beyond it hardly any time.
const PILED: f64 = 0.9;
const BEYOND: f64 = 1.03;
/// An excess that is not worth another search: less than a ten-thousandth of the noise.
const HARDLY: f64 = 1e-4;
/// Noises (as logarithms) between which the best slope does not move.
const CLOSE: f64 = 4e-3;

/// Which slopes are looked at.
#[derive(Clone, Copy, Debug)]
enum Look {
    /// Slopes spread over all that can show anything.
    All,
    /// Uphill from this one, unless it shows much.
    Near(f64),
    /// The same, unless it shows nearly all: on the way down to less noise, where a better slope takes longer to find.
    Down(f64),
    /// As near this one, but any violation will do: where little noise takes long to account for.
    Past(f64),
    /// This one, if it can show anything.
    At(f64),
}

impl Look {
    fn is_past(self) -> bool {
        matches!(self, Self::Past(_))
    }

    /// A known slope, and the excess there from which on no other is looked for.
    fn near(self) -> Option<(f64, f64)> {
        match self {
            Self::All => None,
            Self::Near(slope) => Some((slope, ENOUGH)),
            Self::Down(slope) => Some((slope, CLEAR)),
            Self::Past(slope) => Some((slope, 0.0)),
            Self::At(slope) => Some((slope, f64::NEG_INFINITY)),
        }
    }
}

impl<R: Region + ?Sized> Search<'_, R> {
    /// The best slope at the first noise from `start` on for which the accounting certifies any.
    fn first_look(&self, start: f64) -> Result<Option<Visit>, AuditError> {
        let (_, most) = self.family.domain();
        let mut noise = start;
        loop {
            if let Some(line) = self.visit(noise, Look::All)? {
                return Ok(Some(Visit { place: noise.ln(), line }));
            }
            if noise >= most {
                return Ok(None);
            }
            noise = (noise * 1.3).min(most);
        }
    }

    /// The smallest noise violated by lines near those of known visits (the newest first), from above: the excess of the best line rises
    /// with the noise, so this is a root. Where the accounting certifies no line, the noise counts as not
    /// violated. Less than `bottom` (as a logarithm) is not looked at.
    fn follow(&self, mut recent: Vec<Visit>, bottom: f64) -> Result<Option<Visit>, AuditError> {
        let top = self.family.domain().1.ln();
        // The last visits that were certified, the newest first; the nearest ones on both sides.
        let shows = |visit: &&Visit| visit.line.excess > 0.0;
        let mut violated = recent.iter().find(shows).copied();
        let mut open = recent.iter().find(|visit| !shows(visit)).map(|visit| visit.place);
        // Where to look next, if a visit told.
        let mut told = None;
        for _ in 0..VISITS {
            let place = match (open, violated) {
                // Violated down to the end: it is still an upper bound.
                (None, Some(violated)) if violated.place <= bottom => break,
                (Some(open), None) if open >= top => return Ok(None),
                (Some(open), Some(violated)) if violated.place - open < self.accuracy => break,
                _ => told.take().unwrap_or_else(|| self.next(&recent, open, violated)),
            };
            let place = place.clamp(bottom, top);
            // The end itself, rather than a place close to it.
            let place = if open.is_none() && place < bottom + SHORT { bottom } else { place };
            // Where nothing is shown, the slope that comes closest may be a bad one, unless it comes very close.
            let better = |known: &Visit| recent[0].line.excess.abs() < known.line.excess.abs();
            let near = violated.filter(|known| !better(known)).unwrap_or(recent[0]).line.slope;
            // Close to the root the slope is that of the visit before.
            let close = open.zip(violated).is_some_and(|(open, it)| it.place - open < CLOSE);
            let root = root_below(&recent).map(|below| recent[0].place - below);
            let past = |open: f64| root.is_some_and(|root| root < open - CLOSE * CLOSE);
            if close && recent[0].line.excess > 0.0 && open.is_some_and(past) {
                // So close to a clear violation nothing is open: its slope was a bad one.
                (open, told) = (None, root);
                recent.retain(|visit| visit.line.excess > 0.0);
                continue;
            }
            let look = match open {
                None => self.down(place)(near),
                Some(_) if close => Look::At(near),
                Some(_) => Look::Near(near),
            };
            match self.visit(place.exp(), look)? {
                None => open = Some(place),
                Some(line) => {
                    let visit = Visit { place, line };
                    let rise = rise(&visit, &recent[0]);
                    recent.insert(0, visit);
                    recent.truncate(3);
                    if line.excess <= 0.0 {
                        open = Some(place);
                        continue;
                    }
                    violated = Some(visit);
                    // So little excess that the root is hardly below.
                    if line.excess < 0.5 * self.accuracy * rise {
                        break;
                    }
                }
            }
        }
        Ok(violated)
    }

    /// How to look on the way down: while noises take little time a better slope is looked for, near the end of the domain any will do.
    fn down(&self, place: f64) -> fn(f64) -> Look {
        let (least, _) = self.family.domain();
        if place > (FEW_LEAST * least).ln() { Look::Down } else { Look::Past }
    }

    /// Where to look next.
    fn next(&self, recent: &[Visit], open: Option<f64>, violated: Option<Visit>) -> f64 {
        let here = recent[0].place;
        // A little on the violated side, where the search may end.
        let margin = 0.25 * self.accuracy;
        let guess = zero(recent).map(|guess| guess + margin);
        match (open, violated) {
            (Some(open), Some(violated)) => {
                let gap = violated.place - open;
                // Far above the root the excess is flat, and tells nothing about where it is.
                let near = violated.line.excess < ENOUGH;
                let inside = |guess: &f64| near && *guess > open && *guess < violated.place;
                let middle = 0.5 * (open + violated.place);
                guess.filter(inside).map_or(middle, |guess| {
                    let edge = margin.min(0.1 * gap);
                    guess.clamp(open + edge, violated.place - edge)
                })
            }
            (_, Some(violated)) => {
                let most = if violated.line.excess > ENOUGH { STRIDE } else { SHORT };
                violated.place - root_below(recent).unwrap_or(most).min(most)
            }
            (open, None) => {
                let open = open.unwrap_or(here);
                let step = guess.map_or(0.1, |guess| guess - open);
                open + if step > 0.0 { step.min(STRIDE) } else { STRIDE }
            }
        }
    }

    /// The best line found at a noise, or one that is enough. `None` where the accounting certifies none.
    fn visit(&self, noise: f64, look: Look) -> Result<Option<Line>, AuditError> {
        let pair = match self.family.member(noise) {
            Ok(pair) => pair,
            Err(error) => return unknown(error),
        };
        // One answer: slopes share what the accounting finds out about this noise.
        let session = pair.session();
        let pair = session.as_deref().unwrap_or_else(|| pair.as_ref());
        let (low, high) = self.region.slopes();
        let part = (high - low) / f64::from(SLOPES);
        if let Some((slope, enough)) = look.near()
            && let Some(excess) = self.excess(pair, slope)?
        {
            let line = Line::new(slope, excess);
            let line =
                if excess > enough { line } else { self.climb(pair, line, part.min(0.2), enough)? };
            // Where the search is about to end the others are looked at while what is known about this noise is at hand.
            let ends = (0.0..2.0 * self.accuracy).contains(&line.excess) && !look.is_past();
            if !ends || self.accuracy > ACCURACY {
                return Ok(Some(line));
            }
            let other = self.over_all(pair)?.map(|other| Line { began: line.began, ..other });
            let better = other.filter(|other| other.excess > HARDLY);
            return Ok(Some(better.unwrap_or(Line { whole: true, ..line })));
        }
        self.over_all(pair)
    }

    /// The best line over the whole curve, or one that is enough.
    fn over_all(&self, pair: &dyn Pair) -> Result<Option<Line>, AuditError> {
        let (low, high) = self.region.slopes();
        let part = (high - low) / f64::from(SLOPES);
        let mut best: Option<Line> = None;
        // From the middle outwards: slopes at the ends take longest.
        let mut steps: Vec<u32> = (1..SLOPES).collect();
        steps.sort_by_key(|step| step.abs_diff(SLOPES / 2));
        for step in steps {
            let slope = low + part * f64::from(step);
            if let Some(excess) = self.excess(pair, slope)?
                && best.is_none_or(|best| excess > best.excess)
            {
                best = Some(Line::new(slope, excess));
                if excess > NEARLY_ALL {
                    return Ok(best);
                }
            }
        }
        let Some(best) = best else { return Ok(None) };
        if best.excess > ENOUGH {
            return Ok(Some(best));
        }
        Ok(Some(self.climb(pair, best, 0.5 * part, ENOUGH)?))
    }

    /// Uphill from a slope, in growing steps, and the parabola through the last three; not further than to a line with `enough` excess.
    fn climb(
        &self,
        pair: &dyn Pair,
        start: Line,
        width: f64,
        enough: f64,
    ) -> Result<Line, AuditError> {
        let (end, down) = (-self.family.smallest_loss(), enough == CLEAR);
        // Beyond the slopes that show anything it goes down.
        let at = |slope: f64| -> Result<Line, AuditError> {
            let piled = (PILED * end..end).contains(&slope.abs());
            let slope = if down && piled { (BEYOND * end).copysign(slope) } else { slope };
            let excess = self.excess(pair, slope)?.unwrap_or(f64::NEG_INFINITY);
            Ok(Line::new(slope, excess))
        };
        let (mut before, mut best) = (start, start);
        // Not beyond the slopes that can show anything: the best one may be close to their end.
        let (low, high) = self.region.slopes();
        let left = at((start.slope - width).max(0.5 * (start.slope + low)))?;
        let right = at((start.slope + width).min(0.5 * (start.slope + high)))?;
        let mut after = if left.excess > right.excess { left } else { right };
        let mut step = after.slope - start.slope;
        if after.excess <= best.excess {
            before = if left.excess > right.excess { right } else { left };
        }
        for _ in 0..3 {
            if after.excess > enough {
                return Ok(after);
            }
            if after.excess <= best.excess {
                break;
            }
            (before, best) = (best, after);
            step *= 2.0;
            after = at(best.slope + step)?;
        }
        // Half the step where the last one shows nothing.
        let half = (after.excess == f64::NEG_INFINITY).then_some(0.5 * (best.slope + after.slope));
        if let Some(slope) = top([before, best, after]).or(half) {
            let line = at(slope)?;
            if line.excess > best.excess {
                best = line;
            }
        }
        Ok(best)
    }

    /// How far 1 - delta lies above the support at this slope, as a share of what the region shows there: both
    /// are at most min(1, e^l), and where that is all, every line would look as if it were nearly enough.
    /// Positive when violated; `None` where the region shows nothing or the accounting cannot certify.
    fn excess(&self, pair: &dyn Pair, slope: f64) -> Result<Option<f64>, AuditError> {
        let support = self.region.support(slope).0;
        let shown = slope.min(0.0) - support.ln();
        if shown < LITTLE {
            return Ok(None);
        }
        match pair.one_minus_delta(slope, self.way) {
            // Rounding of the support is below 1e-15 of it.
            Ok(rest) => Ok(Some(((rest.lower.max(1e-300) / support).ln() - 1e-14) / shown)),
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
    let least = EDGE * least;
    let violated = self::least(&From { family, least }, points, ROUGHLY)?;
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
