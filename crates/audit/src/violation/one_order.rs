//! One order of the pair: the best line at a noise, and the noise at which its excess vanishes.

use super::region::Region;
use super::visits::{Line, Visit, rise, root_below, top, zero};
use super::{ByNoise, SLOPES, unknown};
use crate::AuditError;
use accounting::{Order, Pair};

/// The search in one order.
pub(super) struct Search<'a, R: ?Sized> {
    pub(super) family: &'a dyn ByNoise,
    pub(super) way: Order,
    pub(super) region: &'a R,
    /// Relative accuracy of the noise.
    pub(super) accuracy: f64,
}

/// A region that shows less than this (relative) at a slope shows nothing there.
const LITTLE: f64 = 1e-5;

/// Noises that a search visits at most.
const VISITS: usize = 40;
/// The largest steps between two visits, as logarithms, far from the root and near it: little noise takes long to account for.
pub(super) const STRIDE: f64 = 0.4;
const SHORT: f64 = 0.15;
/// An excess from which on a noise is far from the root, and one that leaves nothing to look for.
pub(super) const ENOUGH: f64 = 0.5;
const NEARLY_ALL: f64 = 0.99;
/// Slopes of the last look over the whole curve: slopes next to each other share what takes long.
pub(super) const FINE: u32 = 3 * SLOPES;
/// A part of the excess that is as good as nothing.
pub(super) const NOTHING_LEFT: f64 = 1e-9;
/// An excess that is so far from the root that a better slope is not looked for on the way down.
const CLEAR: f64 = 0.95;
/// Noises above this many times the least of the domain take little time.
const FEW_LEAST: f64 = 1.5;
/// Slopes from this part of the smallest loss to the loss itself take longest, and slopes beyond it hardly any time.
pub(super) const PILED: f64 = 0.9;
const BEYOND: f64 = 1.03;
/// An excess that is not worth another search: less than a ten-thousandth of the noise.
pub(super) const HARDLY: f64 = 1e-4;
/// Noises (as logarithms) between which the best slope does not move.
const CLOSE: f64 = 4e-3;
/// The smallest and the largest first step to other slopes.
const NARROW: f64 = 0.02;
const WIDE: f64 = 0.2;

/// The first step from the best slope at another noise (as far apart, as logarithms): the best slope moves by about as much as the noise,
/// and slopes far from each other share little of what is known about a noise.
pub(super) fn width(apart: f64) -> f64 {
    apart.abs().clamp(NARROW, WIDE)
}

/// Which slopes are looked at.
#[derive(Clone, Copy, Debug)]
pub(super) enum Look {
    /// This many slopes spread over all that can show anything.
    All(u32),
    /// Uphill from this one, unless it shows much, by steps that begin with a width.
    Near(f64, f64),
    /// The same, unless it shows nearly all: on the way down to less noise, where a better slope takes longer to find.
    Down(f64, f64),
    /// As near this one, but any violation will do: where little noise takes long to account for.
    Past(f64, f64),
    /// This one, if it can show anything.
    At(f64),
}

impl Look {
    fn is_past(self) -> bool {
        matches!(self, Self::Past(..))
    }

    /// A known slope, the excess there from which on no other is looked for, and the first step to others.
    fn near(self) -> Option<(f64, f64, f64)> {
        match self {
            Self::All(_) => None,
            Self::Near(slope, width) => Some((slope, ENOUGH, width)),
            Self::Down(slope, width) => Some((slope, CLEAR, width)),
            Self::Past(slope, width) => Some((slope, 0.0, width)),
            Self::At(slope) => Some((slope, f64::NEG_INFINITY, NARROW)),
        }
    }
}

/// What is asked of the member with a noise: one session, so that slopes share what the accounting finds out about it, which takes longer
/// than a slope. `None` where there is no such member.
pub(super) fn asked_at<T>(
    family: &dyn ByNoise,
    noise: f64,
    ask: impl FnOnce(&dyn Pair) -> Result<T, AuditError>,
) -> Result<Option<T>, AuditError> {
    let pair = match family.member(noise) {
        Ok(pair) => pair,
        Err(error) => return unknown(error),
    };
    let session = pair.session();
    ask(session.as_deref().unwrap_or_else(|| pair.as_ref())).map(Some)
}

impl<R: Region + ?Sized> Search<'_, R> {
    /// A line that is violated whatever the noise. No loss of the family is below its smallest one: there delta is 0 in the order
    /// that adds the record, and 1 - e^slope in the other.
    pub(super) fn at_every_noise(&self) -> Option<Line> {
        let end = self.family.smallest_loss();
        let slope = match self.way {
            Order::Remove => end,
            Order::Add => -end,
        };
        let shown = slope.min(0.0) - self.region.support(slope).0.ln();
        (end < 0.0 && shown > LITTLE).then(|| Line { whole: true, ..Line::new(slope, 1.0) })
    }

    /// The best slope at the first noise from `start` on for which the accounting certifies any.
    pub(super) fn first_look(&self, start: f64) -> Result<Option<Visit>, AuditError> {
        let (_, most) = self.family.domain();
        let mut noise = start;
        loop {
            if let Some(line) = self.visit(noise, Look::All(SLOPES))? {
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
    pub(super) fn follow(
        &self,
        mut recent: Vec<Visit>,
        bottom: f64,
    ) -> Result<Option<Visit>, AuditError> {
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
            let width = width(place - recent[0].place);
            let look = match open {
                None => self.down(place)(near, width),
                Some(_) if close => Look::At(near),
                Some(_) => Look::Near(near, width),
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
    pub(super) fn down(&self, place: f64) -> fn(f64, f64) -> Look {
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
    pub(super) fn visit(&self, noise: f64, look: Look) -> Result<Option<Line>, AuditError> {
        Ok(asked_at(self.family, noise, |pair| self.look(pair, look))?.flatten())
    }

    /// As [`Self::visit`], of a member that others may have asked before.
    pub(super) fn look(&self, pair: &dyn Pair, look: Look) -> Result<Option<Line>, AuditError> {
        let (low, high) = self.region.slopes();
        let part = (high - low) / f64::from(SLOPES);
        if let Some((slope, enough, width)) = look.near()
            && let Some(excess) = self.excess(pair, slope)?
        {
            let line = Line::new(slope, excess);
            let width = part.min(width);
            let line = if excess > enough { line } else { self.climb(pair, line, width, enough)? };
            // Where the search is about to end the others are looked at while what is known about this noise is at hand.
            let ends = (0.0..2.0 * self.accuracy).contains(&line.excess) && !look.is_past();
            if !ends {
                return Ok(Some(line));
            }
            let other = self.over_all(pair, FINE)?.map(|other| Line { began: line.began, ..other });
            let better = other.filter(|other| other.excess > HARDLY);
            return Ok(Some(better.unwrap_or(Line { whole: true, ..line })));
        }
        let Look::All(count) = look else { return self.over_all(pair, SLOPES) };
        self.over_all(pair, count)
    }

    /// The best line over the whole curve, or one that is enough.
    fn over_all(&self, pair: &dyn Pair, count: u32) -> Result<Option<Line>, AuditError> {
        let (low, high) = self.region.slopes();
        let part = (high - low) / f64::from(count);
        let mut best: Option<Line> = None;
        // From the middle outwards: slopes at the ends take longest.
        let mut steps: Vec<u32> = (1..count).collect();
        steps.sort_by_key(|step| step.abs_diff(count / 2));
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
    pub(super) fn excess(&self, pair: &dyn Pair, slope: f64) -> Result<Option<f64>, AuditError> {
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
