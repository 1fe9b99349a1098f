//! Compositions of steps, by lines of the contour integral.

use crate::arithmetic::Ball;
use crate::contour::{
    Composition, Line, MaskedPlan, Plan, RoughLaw, Zone, log_bound, moment, short, steepest,
};
use crate::few::Few;
use crate::model::{Model, Order, gaussian};
use crate::obstacle::{Obstacle, left, spend};
use crate::pairs::Part;
use crate::shelf::{Shelf, convert, enough};

pub struct Contour<const N: usize> {
    pub(crate) composition: Composition<N>,
    pub(crate) roughs: Vec<RoughLaw>,
    /// One step of each phase, in closed form, and how many there are.
    pub(crate) steps: Vec<Model<N>>,
    times: Vec<u64>,
    few: Option<Few<N>>,
    pub(crate) shelf: Shelf<N>,
}

/// Rotations that a line may take in any case, some seconds, and those beyond which none is worth its time.
const MOST_WORK: [f64; 2] = [3e8, 2e9];
/// Units of work for each rotation with the shortest mantissas: some twenty nanoseconds.
const ROTATION: f64 = 2e-5;
/// Rotations above which a split into low and middle outcomes may be cheaper.
const DEAR: f64 = 1e7;
/// Rotations below which no other zone is looked at.
const CHEAP: f64 = 4e5;

impl<const N: usize> Contour<N> {
    pub(crate) fn new(composition: Composition<N>, steps: Vec<(u64, Model<N>)>) -> Self {
        let roughs = composition.laws.iter().map(RoughLaw::new).collect();
        let (times, steps): (_, Vec<_>) = steps.into_iter().unzip();
        let few = Few::new(&composition, &steps);
        Self { composition, roughs, steps, times, few, shelf: Shelf::default() }
    }

    /// At least delta(0), the total variation: that of the steps together is at most the sum of theirs.
    pub(crate) fn sum_of_steps(&self) -> Option<Ball<N>> {
        let certain = self.composition.gaussian.root();
        let mut sum = gaussian(certain, Ball::ZERO, Part::Above);
        for (step, times) in self.steps.iter().zip(&self.times) {
            sum = sum + step.delta(Ball::ZERO, Order::Remove, 0.0, 0.0).ok()?.times_u64(*times);
        }
        Some(sum.upper())
    }

    /// A bound on the zone's mean at t: M(c) e^((1-c) t) at a good c, times |c-1|^(c-1)/|c|^c outside of [0, 1]. For w > 0, k = e^t:
    /// (w - k)/w^c, c > 1, is largest at w = k c/(c-1), (k - w)/w^c, c < 0, too; min(w, k) <= w^c k^(1-c) for c in [0, 1].
    pub(crate) fn moment_bound(&self, zone: Zone, t: Ball<N>) -> Option<Ball<N>> {
        let best = steepest(&self.composition, &self.roughs, zone, t.to_f64())?;
        let pole = if zone == Zone::Above { 1.0 } else { 0.0 };
        // Far out there may be no bound on the moment, and a milder one may do.
        for part in [1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5] {
            spend(15.0).ok()?;
            let tilt = if part == 1.0 { best } else { short(pole + (best - pole) * part) };
            let Some(m) = moment(&self.composition, &self.roughs, tilt) else { continue };
            let (c, less) = (Ball::from_f64(tilt), Ball::from_f64(tilt) - Ball::one());
            let mut log = -(less * t);
            if zone != Zone::Between {
                let size = |x: Ball<N>| if zone == Zone::Above { x } else { -x };
                log = log + less * size(less).logarithm() - c * size(c).logarithm();
            }
            let bound = (m * log.exponential()).widened(self.composition.lost);
            if bound.is_finite() {
                self.shelf.say(format!("one moment, E e^(c Y) at c = {tilt:e}"));
                return Some(bound);
            }
            if zone == Zone::Between {
                break;
            }
        }
        None
    }

    /// A mean at threshold t, to 2^-bits of e^log_scale.
    ///
    /// # Errors
    /// Why it cannot be enclosed.
    pub(crate) fn mean(
        &self,
        t: Ball<N>,
        part: Part,
        log_scale: f64,
        bits: f64,
    ) -> Result<Ball<N>, Obstacle> {
        let wanted = (log_scale - bits * std::f64::consts::LN_2).max(-1e12);
        if let Some(found) = self.shelf.find(t, part, wanted)? {
            return Ok(found);
        }
        let closed = |few: &Few<N>| few.closed(&self.composition, &self.steps, t, part);
        if let Some(few) = &self.few
            && let Some(found) = few.shelf.find(t, part, wanted)?
        {
            return Ok(found + closed(few)?);
        }
        // No line takes more than a part of what is left.
        let words = (N * N) as f64 / 4.0;
        let most_work = (0.7 * left() / (ROTATION * words)).clamp(MOST_WORK[0], MOST_WORK[1]);
        let mut best: Option<Plan> = None;
        let mut obstacle = Obstacle::from("no line through the saddle decays");
        let zones = match part {
            Part::Above => [Zone::Above, Zone::Between, Zone::Below],
            Part::Least => [Zone::Between, Zone::Above, Zone::Below],
            Part::Below => [Zone::Below, Zone::Between, Zone::Above],
        };
        // A zone whose mean is less than what is asked for: one moment alone.
        let (composition, roughs) = (&self.composition, &self.roughs);
        for zone in zones {
            if let Some(log) = log_bound(composition, roughs, zone, t.to_f64())
                && log < wanted
                && let Some(bound) = self.moment_bound(zone, t)
            {
                let found = convert(zone, Ball::up_to(bound.above()), t, part, Ball::one());
                if found.is_finite() && enough(found.radius, wanted) {
                    return Ok(found);
                }
            }
        }
        for zone in zones {
            if best.as_ref().is_some_and(|best| best.work < CHEAP) {
                break;
            }
            spend(15.0)?;
            let plan = |log_error: f64| {
                Plan::new(&self.composition, &self.roughs, zone, t.to_f64(), log_error)
            };
            // A line with digits to spare serves other thresholds, too.
            let spare = plan(wanted - 14.0).filter(|plan| {
                plan.work < 8.0 * CHEAP && plan.needed_bits() <= 64.0 * N as f64 - 4.0
            });
            let Some(plan) = spare.or_else(|| plan(wanted)) else {
                continue;
            };
            if plan.work > most_work {
                let points = plan.work / plan.nodes as f64;
                let reason =
                    format!("{} nodes with {points:.0} points each are too many", plan.nodes);
                if plan.is_cramped() {
                    obstacle = Obstacle::Words(reason);
                } else if !matches!(obstacle, Obstacle::Words(_)) {
                    obstacle = Obstacle::Other(reason);
                }
                continue;
            }
            if plan.needed_bits() > 64.0 * N as f64 - 4.0 {
                obstacle = Obstacle::Words(format!("{:.0} bits are needed", plan.needed_bits()));
                continue;
            }
            if best.as_ref().is_none_or(|best| plan.work < best.work) {
                best = Some(plan);
            }
        }
        if let Some(few) = &self.few
            && best.as_ref().is_none_or(|best| best.work > DEAR)
        {
            let found = few.plan(&self.composition, (t.to_f64(), part), wanted)?;
            if let Some(found) = found.filter(|found| {
                found.plan.work < most_work
                    && best.as_ref().is_none_or(|best| found.plan.work < best.work)
            }) {
                let plan = &found.plan;
                if plan.needed_bits() > 64.0 * N as f64 - 4.0 {
                    obstacle =
                        Obstacle::Words(format!("{:.0} bits are needed", plan.needed_bits()));
                } else {
                    spend(30.0 + ROTATION * plan.work * words)?;
                    let line = Line::of_more(&found)
                        .ok_or_else(|| Obstacle::Words("a bound could not be computed".into()))?;
                    self.shelf.say(described("runs of few steps beside the atom, ", &line, plan));
                    return Ok(few.shelf.put(line, t, part, wanted)? + closed(few)?);
                }
            }
        }
        let mut masked = None;
        if best.as_ref().is_none_or(|best| best.work > DEAR) {
            spend(30.0)?;
            masked = MaskedPlan::new(&self.composition, &self.roughs, t.to_f64(), wanted).filter(
                |masked| {
                    masked.plan.work < most_work
                        && best.as_ref().is_none_or(|best| masked.plan.work < best.work)
                },
            );
            if let Some(found) = &masked
                && found.plan.needed_bits() > 64.0 * N as f64 - 4.0
            {
                let needed = found.plan.needed_bits();
                obstacle = Obstacle::Words(format!("{needed:.0} bits are needed"));
                masked = None;
            }
        }
        let plan = match (&masked, &best) {
            (Some(masked), _) => &masked.plan,
            (None, Some(plan)) => plan,
            (None, None) => return Err(obstacle),
        };
        // The rotations, and the bounds.
        spend(30.0 + ROTATION * plan.work * words)?;
        let line = match &masked {
            Some(masked) => Line::masked(&self.composition, masked),
            None => Line::new(&self.composition, &self.roughs, plan),
        }
        .ok_or_else(|| Obstacle::Words("a bound could not be computed".into()))?;
        self.shelf.say(described(if masked.is_some() { "masked " } else { "" }, &line, plan));
        self.shelf.put(line, t, part, wanted)
    }
}

/// A line, for the record.
fn described<const N: usize>(what: &str, line: &Line<N>, plan: &Plan) -> String {
    format!(
        "{what}contour Re s = {:e}, spacing {:e}, {} nodes, {} points each",
        line.tilt(),
        plan.spacing,
        line.nodes(),
        line.points()
    )
}
