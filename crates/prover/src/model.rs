//! The pair of a lens and a run, at one precision, and its three means at a threshold.

use crate::arithmetic::{Ball, Magnitude, normal_tail};
use crate::contour::{
    Composition, Line, MaskedPlan, Plan, RoughLaw, Zone, log_bound, moment, steepest,
};
use crate::maximum::Maximum;
use crate::obstacle::{Obstacle, spend};
use crate::pairs::{Count, Drawn, Draws, HalfLine, Part, drawn};
use std::cell::RefCell;
use vocabulary::{Adjacency, Direction, LensName, Phase, Run, Sampling};

/// One order of a pair: `Remove` compares with the record against without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Remove,
    Add,
}

pub enum Model<const N: usize> {
    Gaussian(Ball<N>),
    /// Gaussian pairs with their probabilities; the attacker sees which it is.
    Mixture(Vec<(Ball<N>, Ball<N>)>),
    /// One step of the symmetric profile: p_j with mu_j, and what is left out.
    Folded(Vec<(Ball<N>, Ball<N>)>, Magnitude),
    HalfLine(HalfLine<N>),
    Contour(Box<Contour<N>>),
    Maximum(Box<Maximum<N>>),
}

pub struct Contour<const N: usize> {
    composition: Composition<N>,
    roughs: Vec<RoughLaw>,
    /// Lines are kept: whether one is good enough for another threshold, its ball says.
    lines: RefCell<Vec<Line<N>>>,
    /// What was done last, for the record.
    path: RefCell<String>,
}

/// Rotations beyond which a line is not worth its time: some seconds.
const MOST_WORK: f64 = 3e8;
/// Rotations above which a split into low and middle outcomes may be cheaper.
const DEAR: f64 = 1e7;
/// Rotations below which no other zone is looked at.
const CHEAP: f64 = 4e5;

impl<const N: usize> Model<N> {
    /// The pair of a lens, for the phases that have to be accounted for.
    ///
    /// # Errors
    /// The reason why there is none that this can prove.
    pub fn new(
        run: &Run,
        phases: &[Phase],
        lens: Option<LensName>,
        depth: i64,
    ) -> Result<Self, Obstacle> {
        let lens = lens.ok_or_else(|| Obstacle::from("a measured claim has no pair".to_owned()))?;
        if lens != LensName::Composition && !run.sampling().by_coins() {
            return Err("the lens is about Poisson and full batches".into());
        }
        match lens {
            LensName::Composition if run.matrix().is_some() => correlated(run, phases),
            LensName::Composition if run.sampling() == Sampling::Shuffle => {
                Ok(shuffled(run, phases))
            }
            LensName::Composition => Self::composition(run, phases, depth),
            LensName::LastIterate => Self::last_iterate(run, depth, |_, steps| (steps, steps)),
            LensName::LastIterateMax => Ok(Self::Maximum(Box::new(Maximum::new(run, depth)?))),
            LensName::FullBatch => Ok(Self::full_batch(run)),
            _ => Err(format!("the lens {lens} has no pair that is proven here").into()),
        }
    }

    fn composition(run: &Run, phases: &[Phase], depth: i64) -> Result<Self, Obstacle> {
        // The shifts of batches of a fixed size have the factor 2 already.
        let adjacency = match run.sampling() {
            Sampling::FixedSize => Adjacency::AddRemove,
            _ => run.adjacency(),
        };
        let substitute = adjacency == Adjacency::Substitute;
        let all = phases.iter().map(|phase| phase.steps).sum::<u64>().max(1).ilog2();
        let mut drawn = drawn(run, phases, depth + i64::from(all) + 1)?;
        if let [Drawn { noise, times: 1, draws: Draws::Shares { weights, lost } }] =
            drawn.as_mut_slice()
        {
            return Ok(Self::HalfLine(HalfLine::new(
                std::mem::take(weights),
                0,
                Ball::from_f64(*noise).squared(),
                substitute,
                *lost,
            )));
        }
        if let [Drawn { noise, times: 1, draws: Draws::Folded { shares, lost } }] = drawn.as_slice()
        {
            let mu = |j: u64| Ball::from_u64(j).over(Ball::from_f64(*noise));
            let parts = shares.iter().zip(1u64..).map(|(share, j)| (*share, mu(j))).collect();
            return Ok(Self::Folded(parts, *lost));
        }
        let composition = Composition::new(drawn, adjacency, depth);
        if composition.laws.is_empty() {
            return Ok(Self::Gaussian(composition.gaussian.root()));
        }
        let roughs = composition.laws.iter().map(RoughLaw::new).collect();
        Ok(Self::Contour(Box::new(Contour {
            composition,
            roughs,
            lines: RefCell::new(Vec::new()),
            path: RefCell::new(String::new()),
        })))
    }

    /// P = count + N(0, v), Q = N(0, v), v = sum of T sigma^2 (Steinke et al. 2025, Theorem 1). `steps`
    /// gives, for the index and the steps of a phase, those that are counted and those that are noisy.
    pub(crate) fn last_iterate(
        run: &Run,
        depth: i64,
        steps: impl Fn(usize, u64) -> (u64, u64),
    ) -> Result<Self, Obstacle> {
        if run.adjacency() == Adjacency::Substitute {
            return Err("the last iterate has no pair for substitution".into());
        }
        let records = u64::from(run.group_size());
        let mut variance = Ball::ZERO;
        let mut rates: Vec<(f64, u64)> = Vec::new();
        for (index, phase) in run.phases().iter().enumerate() {
            let (counted, noisy) = steps(index, phase.steps);
            variance = variance + Ball::from_f64(phase.noise_multiplier).squared().times_u64(noisy);
            let draws = counted.checked_mul(records).ok_or("too many draws")?;
            match rates.iter_mut().find(|rate| rate.0 == phase.sample_rate) {
                Some(rate) => rate.1 += draws,
                None => rates.push((phase.sample_rate, draws)),
            }
        }
        let mut count = Count::certain(0);
        for (rate, draws) in rates {
            let law = if rate == 1.0 {
                Some(Count::certain(draws))
            } else {
                Count::binomial(draws, rate, depth)
            };
            count = law
                .and_then(|law| count.plus(&law))
                .ok_or("the law of the count has too many values")?;
        }
        if let ([_], true) = (count.weights.as_slice(), count.outside.is_zero()) {
            return Ok(Self::Gaussian(Ball::from_u64(count.first).over(variance.root())));
        }
        Ok(Self::HalfLine(HalfLine::new(
            count.weights,
            count.first,
            variance,
            false,
            count.outside,
        )))
    }

    /// mu^2 = sum of T (k q/sigma)^2, twice the shift for substitution (Steinke et al. 2025, eq. 4).
    fn full_batch(run: &Run) -> Self {
        let shift = u64::from(run.group_size())
            * if run.adjacency() == Adjacency::Substitute { 2 } else { 1 };
        let square = run.phases().iter().fold(Ball::ZERO, |sum, phase| {
            let ratio = Ball::from_f64(phase.sample_rate)
                .times_u64(shift)
                .over(Ball::from_f64(phase.noise_multiplier));
            sum + ratio.squared().times_u64(phase.steps)
        });
        Self::Gaussian(square.root())
    }

    /// How the last number was enclosed.
    pub fn path(&self) -> String {
        match self {
            Self::Gaussian(_) => "closed form of a Gaussian pair".into(),
            Self::Mixture(parts) => format!("closed form of {} Gaussian pairs", parts.len()),
            Self::Folded(parts, _) => format!("closed form of {} folded pairs", parts.len()),
            Self::HalfLine(pair) => {
                format!("half-line test, {} normal tails per side", pair.weights.len())
            }
            Self::Contour(contour) => contour.path.borrow().clone(),
            Self::Maximum(maximum) => maximum.path(),
        }
    }

    /// A mean at threshold t. `log_scale` is ln of the expected size and `bits` the wanted relative
    /// accuracy: they choose the work, not the truth.
    ///
    /// # Errors
    /// Why it cannot be enclosed.
    pub fn mean(
        &self,
        t: Ball<N>,
        part: Part,
        log_scale: f64,
        bits: f64,
    ) -> Result<Ball<N>, Obstacle> {
        match self {
            Self::Gaussian(mu) => Ok(gaussian(*mu, t, part)),
            Self::Mixture(parts) => Ok(parts
                .iter()
                .map(|(weight, mu)| *weight * gaussian(*mu, t, part))
                .fold(Ball::ZERO, |sum, one| sum + one)),
            Self::Folded(parts, lost) => Ok(folded(parts, t, part)?.widened(*lost)),
            Self::HalfLine(pair) => {
                spend(0.3 + 0.015 * pair.weights.len() as f64)?;
                pair.at(t, part)
            }
            Self::Maximum(maximum) => maximum.mean(t, part),
            Self::Contour(contour) => {
                let found = contour.mean(t, part, log_scale, bits)?;
                Ok(found.widened(contour.composition.lost))
            }
        }
    }

    /// delta(epsilon) of one order, any real epsilon.
    ///
    /// # Errors
    /// As [`Model::mean`].
    pub fn delta(
        &self,
        epsilon: Ball<N>,
        order: Order,
        log_scale: f64,
        bits: f64,
    ) -> Result<Ball<N>, Obstacle> {
        match order {
            Order::Remove => self.mean(epsilon, Part::Above, log_scale, bits),
            // No loss of adding is that large.
            Order::Add if self.largest_loss().is_some_and(|most| most.is_at_most(&epsilon)) => {
                Ok(Ball::ZERO)
            }
            Order::Add => {
                let level = epsilon.exponential();
                let below = self.mean(-epsilon, Part::Below, log_scale - epsilon.to_f64(), bits)?;
                Ok(level * below)
            }
        }
    }

    /// dP/dQ >= the product of P(no record is used) over the steps, for a record added or removed whose
    /// batches are all sampled: the largest loss of adding, where there is one.
    fn largest_loss(&self) -> Option<Ball<N>> {
        match self {
            Self::Contour(contour) => contour.composition.largest_loss(),
            _ => None,
        }
    }

    /// An enclosure of delta(epsilon) by one moment, where the number itself is out of reach:
    /// (e^y - e^t)_+ <= e^(cy) e^((1-c)t) for c >= 1, and (e^t - e^y)_+ is for c <= 0. Below epsilon 0 the rest of
    /// delta is 1 - e^epsilon.
    pub fn by_moment(&self, epsilon: Ball<N>, order: Order) -> Option<Ball<N>> {
        let Self::Contour(contour) = self else { return None };
        let t = if order == Order::Remove { epsilon } else { -epsilon };
        let negative = epsilon.mid.is_negative() && !epsilon.mid.is_zero();
        let zone = if (order == Order::Remove) != negative { Zone::Above } else { Zone::Below };
        let mut bound = contour.moment_bound(zone, t)?;
        if order == Order::Add {
            bound = bound * epsilon.exponential();
        }
        let small = Ball::up_to(bound.above());
        Some(if negative { small - epsilon.exponential_minus_one() } else { small })
    }

    /// About ln delta(epsilon), or a little less: how small an error has to be to be small.
    pub fn log_size(&self, epsilon: f64, order: Order) -> f64 {
        let Self::Contour(contour) = self else { return 0.0 };
        let log = |zone: Zone, t: f64| log_bound(&contour.composition, &contour.roughs, zone, t);
        let log = match order {
            Order::Remove => log(Zone::Above, epsilon),
            Order::Add => log(Zone::Below, -epsilon).map(|log| log + epsilon),
        };
        log.map_or(0.0, |log| log.min(0.0) - 10.0)
    }

    /// Whether both orders have the same profile: Q is the mirror image of P.
    pub fn is_symmetric(&self) -> bool {
        match self {
            Self::Gaussian(_) | Self::Mixture(_) | Self::Folded(..) => true,
            Self::HalfLine(pair) => pair.substitute,
            Self::Contour(contour) => {
                contour.composition.laws.iter().all(|law| {
                    law.strands.iter().all(|strand| strand.half || strand.step.substitute)
                })
            }
            Self::Maximum(_) => false,
        }
    }

    /// The orders that have to be looked at.
    pub fn orders(&self, direction: Direction) -> &'static [Order] {
        match direction {
            _ if self.is_symmetric() => &[Order::Remove],
            Direction::Both => &[Order::Remove, Order::Add],
            Direction::Remove => &[Order::Remove],
            Direction::Add => &[Order::Add],
        }
    }

    /// 1 - delta(epsilon), as a sum of positive terms.
    ///
    /// # Errors
    /// As [`Model::mean`].
    pub fn rest(
        &self,
        epsilon: Ball<N>,
        order: Order,
        log_scale: f64,
        bits: f64,
    ) -> Result<Ball<N>, Obstacle> {
        match order {
            Order::Remove => self.mean(epsilon, Part::Least, log_scale, bits),
            Order::Add => {
                let level = epsilon.exponential();
                let least = self.mean(-epsilon, Part::Least, log_scale - epsilon.to_f64(), bits)?;
                Ok(level * least)
            }
        }
    }
}

/// h(g) = sum of p_j H_{g'}(N(mu_j) || N(0)), g' = 1 + (g-1)/q, for g = e^t >= 1, and 1 - g + g h(1/g) below.
fn folded<const N: usize>(
    parts: &[(Ball<N>, Ball<N>)],
    t: Ball<N>,
    part: Part,
) -> Result<Ball<N>, Obstacle> {
    let q = parts.iter().fold(Ball::ZERO, |sum, (share, _)| sum + *share);
    let upper = |t: Ball<N>| {
        let inner = (Ball::one() + t.exponential_minus_one().over(q)).logarithm();
        let one = |(share, mu): &(Ball<N>, Ball<N>)| *share * gaussian(*mu, inner, Part::Above);
        parts.iter().map(one).fold(Ball::ZERO, |sum, one| sum + one)
    };
    let level = t.exponential();
    let above = if t.is_not_negative() {
        upper(t)
    } else if t.is_negative() {
        Ball::one() - level + level * upper(-t)
    } else {
        return Err(Obstacle::precision("the sign of the threshold is not certain"));
    };
    Ok(match part {
        Part::Above => above,
        Part::Least => Ball::one() - above,
        Part::Below => level - (Ball::one() - above),
    })
}

/// Shuffled batches: the order is revealed, so that each of E or E + 1 uses shifts by 1 (2 for substitution),
/// k times that for a group. The first r batches of a last epoch hold one of the group with a probability of at
/// most k r q.
fn shuffled<const N: usize>(run: &Run, phases: &[Phase]) -> Model<N> {
    let shift =
        u64::from(run.group_size()) * if run.adjacency() == Adjacency::Substitute { 2 } else { 1 };
    let (mut square, mut more, mut weight) = (Ball::ZERO, Ball::ZERO, Ball::ZERO);
    for phase in phases {
        let exact = 1.0 / phase.sample_rate;
        let near = exact.round();
        // 1/q batches, where that is whole up to rounding; else without the short one.
        let whole = (exact - near).abs() <= 1e-9 * near;
        let batches = (if whole { near } else { exact.floor() }).max(1.0) as u64;
        let unit = Ball::from_u64(shift).over(Ball::from_f64(phase.noise_multiplier)).squared();
        square = square + unit.times_u64(phase.steps / batches);
        let rest = phase.steps % batches;
        if rest > 0 {
            more = unit;
            weight = Ball::from_f64(phase.sample_rate)
                .times_u64(rest)
                .times_u64(u64::from(run.group_size()))
                .minimum(Ball::one());
        }
    }
    if weight.mid.is_zero() {
        return Model::Gaussian(square.root());
    }
    let rest = Ball::one() - weight;
    Model::Mixture(vec![(weight, (square + more).root()), (rest, square.root())])
}

/// Steps up to which the sensitivity of correlated noise is computed again.
const MOST_CORRELATED: u64 = 20_000;

/// Correlated noise: C lower triangular with a falling first column, and the records in steps 0, b, 2b, ..., which
/// is the worst pattern then: sens^2 is the sum over rows of squared sums of their entries, mu = sens/sigma.
fn correlated<const N: usize>(run: &Run, phases: &[Phase]) -> Result<Model<N>, Obstacle> {
    let matrix = run.matrix().ok_or("the noise is not correlated")?;
    if run.sampling() == Sampling::CyclicPoisson {
        return Model::composition(run, phases, 200);
    }
    let ([phase], c) = (phases, &matrix.toeplitz) else {
        return Err("correlated noise is proven for one phase".into());
    };
    let falling =
        c.windows(2).all(|pair| pair[0] >= pair[1]) && c.last().is_some_and(|x| *x >= 0.0);
    let (Some(uses), Some(separation)) = (matrix.uses, matrix.separation) else {
        return Err("correlated noise is proven where uses and separation are given".into());
    };
    if !falling || phase.steps > MOST_CORRELATED {
        return Err("correlated noise is proven for falling coefficients and few steps".into());
    }
    let mut square = Ball::ZERO;
    for row in 0..phase.steps {
        let mut sum = Ball::ZERO;
        for index in 0..uses {
            let position = index * separation;
            if position > row {
                break;
            }
            if let Some(entry) = c.get((row - position) as usize) {
                sum = sum + Ball::from_f64(*entry);
            }
        }
        square = square + sum.squared();
    }
    let shift =
        u64::from(run.group_size()) * if run.adjacency() == Adjacency::Substitute { 2 } else { 1 };
    let mu = square.root().times_u64(shift).over(Ball::from_f64(phase.noise_multiplier));
    Ok(Model::Gaussian(mu))
}

/// With a = t/mu - mu/2, b = t/mu + mu/2: P(X > x) is the normal tail at a, Q(X > x) that at b.
pub fn gaussian<const N: usize>(mu: Ball<N>, t: Ball<N>, part: Part) -> Ball<N> {
    let level = t.exponential();
    if mu.mid.is_zero() && mu.radius.is_zero() {
        // Nothing leaks.
        let (one, zero) = (Ball::one(), Ball::ZERO);
        return match part {
            Part::Above => (one - level).maximum(zero),
            Part::Least => one.minimum(level),
            Part::Below => (level - one).maximum(zero),
        };
    }
    let (centre, half) = (t.over(mu), mu.scaled(-1));
    let (a, b) = (centre - half, centre + half);
    match part {
        Part::Above => normal_tail(a) - level * normal_tail(b),
        Part::Least => normal_tail(-a) + level * normal_tail(b),
        Part::Below => level * normal_tail(-b) - normal_tail(-a),
    }
}

impl<const N: usize> Contour<N> {
    /// A bound on the zone's mean at t: M(c) e^((1-c) t) at a good c.
    fn moment_bound(&self, zone: Zone, t: Ball<N>) -> Option<Ball<N>> {
        spend(15.0).ok()?;
        let tilt = steepest(&self.composition, &self.roughs, zone, t.to_f64())?;
        let m = moment(&self.composition, &self.roughs, tilt)?;
        let bound = m * ((Ball::one() - Ball::from_f64(tilt)) * t).exponential();
        self.path.replace(format!("one moment, E e^(c Y) at c = {tilt:e}"));
        Some(bound.widened(self.composition.lost))
    }

    fn mean(&self, t: Ball<N>, part: Part, log_scale: f64, bits: f64) -> Result<Ball<N>, Obstacle> {
        let wanted = (log_scale - bits * std::f64::consts::LN_2).max(-1e12);
        let enough =
            |error: Magnitude| (error.order() as f64) * std::f64::consts::LN_2 < wanted + 3.0;
        let good_enough = |found: &Ball<N>| found.is_finite() && enough(found.radius);
        for line in self.lines.borrow().iter().rev() {
            if !enough(line.error(t)) {
                continue;
            }
            spend(line.cost())?;
            let found = convert(line.zone(), line.at(t), t, part);
            if good_enough(&found) {
                return Ok(found);
            }
        }
        let mut best: Option<Plan> = None;
        let mut obstacle = Obstacle::from("no line through the saddle decays");
        let zones = match part {
            Part::Above => [Zone::Above, Zone::Between, Zone::Below],
            Part::Least => [Zone::Between, Zone::Above, Zone::Below],
            Part::Below => [Zone::Below, Zone::Between, Zone::Above],
        };
        // Less than what is asked for by one moment alone.
        let own = zones[0];
        let (composition, roughs) = (&self.composition, &self.roughs);
        if let Some(log) = log_bound(composition, roughs, own, t.to_f64())
            && log < wanted
            && let Some(bound) = self.moment_bound(own, t)
        {
            let found = convert(own, Ball::up_to(bound.above()), t, part);
            if good_enough(&found) {
                return Ok(found);
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
            if plan.work > MOST_WORK {
                let points = plan.work / plan.nodes as f64;
                let reason =
                    format!("{} nodes with {points:.0} points each are too many", plan.nodes);
                if plan.is_cramped() {
                    obstacle = Obstacle::Precision(reason);
                } else if !matches!(obstacle, Obstacle::Precision(_)) {
                    obstacle = Obstacle::Other(reason);
                }
                continue;
            }
            if plan.needed_bits() > 64.0 * N as f64 - 4.0 {
                obstacle =
                    Obstacle::Precision(format!("{:.0} bits are needed", plan.needed_bits()));
                continue;
            }
            if best.as_ref().is_none_or(|best| plan.work < best.work) {
                best = Some(plan);
            }
        }
        let mut masked = None;
        if part == Part::Above && best.as_ref().is_none_or(|best| best.work > DEAR) {
            spend(30.0)?;
            masked = MaskedPlan::new(&self.composition, &self.roughs, t.to_f64(), wanted).filter(
                |masked| {
                    masked.plan.work < MOST_WORK
                        && best.as_ref().is_none_or(|best| masked.plan.work < best.work)
                },
            );
            if let Some(found) = &masked
                && found.plan.needed_bits() > 64.0 * N as f64 - 4.0
            {
                let needed = found.plan.needed_bits();
                obstacle = Obstacle::Precision(format!("{needed:.0} bits are needed"));
                masked = None;
            }
        }
        let plan = match (&masked, &best) {
            (Some(masked), _) => &masked.plan,
            (None, Some(plan)) => plan,
            (None, None) => return Err(obstacle),
        };
        // Some forty nanoseconds for each rotation, and the bounds.
        spend(30.0 + 4e-5 * plan.work * (N * N) as f64 / 4.0)?;
        let line = match &masked {
            Some(masked) => Line::masked(&self.composition, &self.roughs, masked),
            None => Line::new(&self.composition, &self.roughs, plan),
        }
        .ok_or("a bound could not be computed")?;
        spend(line.cost())?;
        let found = convert(line.zone(), line.at(t), t, part);
        self.path.replace(format!(
            "{}contour Re s = {:e}, spacing {:e}, {} nodes, {} points each",
            if masked.is_some() { "masked " } else { "" },
            line.tilt(),
            plan.spacing,
            line.nodes(),
            line.points()
        ));
        let mut lines = self.lines.borrow_mut();
        lines.push(line);
        if lines.len() > 16 {
            lines.remove(0);
        }
        if found.is_finite() { Ok(found) } else { Err("the sum has no finite bound".into()) }
    }
}

/// From the mean of a line's zone to the one that is asked for: they differ by 1 and e^t.
fn convert<const N: usize>(zone: Zone, found: Ball<N>, t: Ball<N>, part: Part) -> Ball<N> {
    let least = |found: Ball<N>| match zone {
        Zone::Above => Ball::one() - found,
        Zone::Between => found,
        Zone::Below => t.exponential() - found,
    };
    match (zone, part) {
        (Zone::Above, Part::Above) | (Zone::Between, Part::Least) | (Zone::Below, Part::Below) => {
            found
        }
        (_, Part::Least) => least(found),
        (_, Part::Above) => Ball::one() - least(found),
        (_, Part::Below) => t.exponential() - least(found),
    }
}
