//! Both orders of the pair together: a noise is ruled out where each order is violated.

use super::one_order::{ENOUGH, FINE, HARDLY, Look, NOTHING_LEFT, STRIDE, Search, asked_at, width};
use super::region::Region;
use super::visits::{Visit, root_below};
use super::{ACCURACY, ByNoise};
use crate::AuditError;
use accounting::{Order, Pair};

/// How often a search begins anew from another slope or in the other order, at most.
const ROUNDS: usize = 24;

/// A noise that is ruled out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Violated {
    pub(crate) noise: f64,
    /// Which of the points show it: one for each order of the pair, perhaps the same one.
    pub(crate) points: [usize; 2],
    /// The order of the pair that allows less noise than this least.
    pub(super) decides: Order,
}

/// The smallest noise for which both orders of the pair are violated at one of the thresholds,
/// from above; `None` when none is.
pub(crate) fn least_violated_noise<R: Region + ?Sized>(
    family: &dyn ByNoise,
    region: &R,
) -> Result<Option<Violated>, AuditError> {
    least(family, region, ACCURACY)
}

/// Whether a region is violated in both orders by every member of a family.
pub(super) fn at_every_noise<R: Region + ?Sized>(family: &dyn ByNoise, region: &R) -> bool {
    let in_order = |way| Search { family, way, region, accuracy: ACCURACY }.at_every_noise();
    [Order::Remove, Order::Add].into_iter().all(|way| in_order(way).is_some())
}

/// As [`least_violated_noise`], to an accuracy. Where that is a rough one, slopes other than those near the best are not looked at once more.
pub(super) fn least<R: Region + ?Sized>(
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
        if let Some(line) = search.at_every_noise() {
            let visits = vec![Visit { place: least.ln(), line }];
            orders.push(Followed { search, visits, stage: Stage::Done });
            continue;
        }
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
                let past = |pair: &dyn Pair| first.is_violated_at(pair, floor, Look::Past);
                if floor > bottom && asked_at(family, floor.exp(), past)? == Some(true) {
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
    fn is_violated_at(
        &mut self,
        pair: &dyn Pair,
        place: f64,
        look: fn(f64, f64) -> Look,
    ) -> Result<bool, AuditError> {
        let Visit { place: before, line } = self.visits[0];
        // Where nothing is certified the search goes on from the visit before.
        let Some(line) = self.search.look(pair, look(line.slope, width(place - before)))? else {
            return Ok(false);
        };
        self.visits.insert(0, Visit { place, line });
        Ok(line.excess > 0.0)
    }

    /// All slopes at hardly less noise.
    fn look_once_more(&mut self) -> Result<(), AuditError> {
        let (least, _) = self.search.family.domain();
        let noise = self.place().exp() * (1.0 - 2.0 * self.search.accuracy);
        self.stage = Stage::Done;
        let known = self.violated().is_some_and(|visit| visit.line.whole);
        if known || noise <= least {
            return Ok(());
        }
        match self.search.visit(noise, Look::All(FINE))? {
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
    let clear = |order: &Followed<'_, R>| {
        order.stage == Stage::Rough && order.visits[0].line.excess > ENOUGH
    };
    while orders.iter().all(clear) {
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
        let look = orders[0].search.down(place);
        let family = orders[0].search.family;
        let both = |pair: &dyn Pair| {
            for order in orders.iter_mut() {
                if !order.is_violated_at(pair, place, look)? {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        if asked_at(family, place.exp(), both)? != Some(true) {
            break;
        }
    }
    Ok(())
}
