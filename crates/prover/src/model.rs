//! The pair of a lens and a run, at one precision, and its three means at a threshold.

use crate::arithmetic::{Ball, Magnitude, normal_tail};
use crate::balls_and_bins::{Epochs, thrown};
use crate::chain::Chain;
use crate::composed::Contour;
use crate::contour::{Composition, Zone, log_bound};
use crate::maximum::Maximum;
use crate::obstacle::{Obstacle, spend};
use crate::pairs::{Count, Drawn, Draws, HalfLine, Part, drawn, drawn_alone};
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
    /// One of which nothing is known but that each of its means is at most that of a pair with no overlap.
    Unknown,
    /// Pairs with their probabilities; the attacker sees which it is.
    Labelled(Vec<(Ball<N>, Model<N>)>),
    Contour(Box<Contour<N>>),
    /// Balls and bins.
    Epochs(Box<Epochs<N>>),
    /// Records one after the other.
    Chain(Box<Chain<N>>),
    Maximum(Box<Maximum<N>>),
}

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
        if run.renyi_filter().is_some() {
            return Err("outputs chose noise, rate and steps, so no pair is known for the run; the bound of a Rényi filter is \
                        not proven here"
                .into());
        }
        if lens != LensName::Composition && !run.sampling().by_coins() {
            return Err("the lens holds for Poisson and full batches only".into());
        }
        match lens {
            LensName::Composition if run.matrix().is_some() => correlated(run, phases),
            LensName::Composition if run.sampling() == Sampling::Shuffle => {
                Ok(shuffled(run, phases))
            }
            LensName::Composition if run.sampling() == Sampling::BallsAndBins => {
                thrown(run, phases)
            }
            LensName::Composition if run.sampling() == Sampling::InOrder => {
                Ok(in_order(run, phases))
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
        let all = phases.iter().map(|phase| phase.steps).sum::<u64>().max(1).ilog2();
        let each = depth + i64::from(all) + 1;
        let cut = run.sampling() == Sampling::TruncatedPoisson
            && run.drawing().max_batch_size < run.dataset_size();
        if cut && run.group_size() > 1 {
            // Record by record: those who are added or removed change the number of records, others do not.
            let group = run.group_size() as usize;
            let removed = if adjacency == Adjacency::AddRemove { group } else { 1 };
            let pairs = (0..removed as u64)
                .map(|gone| drawn_alone(run, phases, gone, each))
                .map(|drawn| drawn.and_then(|drawn| Self::composed(drawn, adjacency, depth)))
                .collect::<Result<Vec<_>, _>>()?;
            let links = (0..group).map(|link| (link.min(removed - 1), Order::Remove)).collect();
            return Ok(Self::Chain(Box::new(Chain::new(pairs, links))));
        }
        Self::composed(drawn(run, phases, each)?, adjacency, depth)
    }

    /// Independent steps.
    fn composed(
        mut drawn: Vec<Drawn<N>>,
        adjacency: Adjacency,
        depth: i64,
    ) -> Result<Self, Obstacle> {
        let substitute = adjacency == Adjacency::Substitute;
        if let [Drawn { noise, times: 1, draws: Draws::Shares { weights, lost } }] =
            drawn.as_mut_slice()
        {
            let weights = std::mem::take(weights);
            let count = Count { first: 0, stride: 1, weights, outside: *lost, moments: None };
            let variance = Ball::from_f64(*noise).squared();
            return Ok(Self::HalfLine(HalfLine::new(count, variance, substitute)));
        }
        if let [Drawn { noise, times: 1, draws: Draws::Folded { shares, lost } }] = drawn.as_slice()
        {
            let mu = |j: u64| Ball::from_u64(j).over(Ball::from_f64(*noise));
            let parts = shares.iter().zip(1u64..).map(|(share, j)| (*share, mu(j))).collect();
            return Ok(Self::Folded(parts, *lost));
        }
        if let [Drawn { noise, times: 1, draws: Draws::Cut { tau, kept, rate } }] = drawn.as_slice()
        {
            return Ok(Self::cut(*noise, (*tau, *kept, *rate), adjacency, depth));
        }
        let alone = |phase: &Drawn<N>| {
            let one = Drawn { noise: phase.noise, times: 1, draws: phase.draws.clone() };
            Self::composed(vec![one], adjacency, depth).map(|model| (phase.times, model))
        };
        let uncertain = |phase: &&Drawn<N>| !matches!(phase.draws, Draws::Certain(_));
        let steps = drawn.iter().filter(uncertain).map(alone).collect::<Result<_, _>>()?;
        let composition = Composition::new(drawn, adjacency, depth);
        if composition.laws.is_empty() {
            return Ok(Self::Gaussian(composition.gaussian.root()));
        }
        Ok(Self::Contour(Box::new(Contour::new(composition, steps))))
    }

    /// One batch that is cut with probability tau.
    fn cut(
        noise: f64,
        (tau, kept, rate): (Ball<N>, Ball<N>, Ball<N>),
        adjacency: Adjacency,
        depth: i64,
    ) -> Self {
        let coins = |noise: Ball<N>, rate: Ball<N>, substitute: bool| {
            let (weights, outside) = (vec![Ball::one() - rate, rate], Magnitude::ZERO);
            let count = Count { first: 0, stride: 1, weights, outside, moments: None };
            Self::HalfLine(HalfLine::new(count, noise.squared(), substitute))
        };
        let noise = Ball::from_f64(noise);
        let half = noise.scaled(-1);
        let full = match adjacency {
            Adjacency::AddRemove => coins(half, kept, false),
            _ => Self::Folded(vec![(kept, half.reciprocal())], Magnitude::ZERO),
        };
        if rate.is_same(&Ball::one()) {
            return full;
        }
        let substitute = adjacency == Adjacency::Substitute;
        let plain = coins(noise, rate, substitute);
        // Where it hardly ever happens, `kept` is a quotient of two numbers of which nothing is known.
        let full = if tau.above() < Magnitude::power_of_two(-depth) { Self::Unknown } else { full };
        Self::Labelled(vec![(Ball::one() - tau, plain), (tau, full)])
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
        let certain = rates.iter().filter(|rate| rate.0 == 1.0).map(|rate| rate.1).sum();
        rates.retain(|rate| rate.0 != 1.0);
        let count = Count::sum(certain, &rates, depth, variance.doubles().0)?;
        if let ([_], true) = (count.weights.as_slice(), count.outside.is_zero()) {
            return Ok(Self::Gaussian(Ball::from_u64(count.first).over(variance.root())));
        }
        Ok(Self::HalfLine(HalfLine::new(count, variance, false)))
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
            Self::Unknown => "nothing is known".into(),
            Self::Mixture(parts) => format!("closed form of {} Gaussian pairs", parts.len()),
            Self::Labelled(parts) => format!("closed form of {} single steps", parts.len()),
            Self::Folded(parts, _) => format!("closed form of {} folded pairs", parts.len()),
            Self::HalfLine(pair) => {
                format!("half-line test, {} normal tails per side", pair.weights.len())
            }
            Self::Contour(contour) => contour.shelf.path(),
            Self::Epochs(epochs) => epochs.shelf.path(),
            Self::Chain(chain) => chain.path(),
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
            // (e^y - e^t)_+ and min(e^y, e^t) are at most e^y, which has the mean 1; (e^t - e^y)_+ is at most e^t.
            Self::Unknown => Ok(match part {
                Part::Above | Part::Least => Ball::up_to(Ball::<N>::one().above()),
                Part::Below => Ball::up_to(t.exponential().above()),
            }),
            Self::Mixture(parts) => Ok(parts
                .iter()
                .map(|(weight, mu)| *weight * gaussian(*mu, t, part))
                .fold(Ball::ZERO, |sum, one| sum + one)),
            Self::Labelled(parts) => parts.iter().try_fold(Ball::ZERO, |sum, (weight, pair)| {
                Ok(sum + *weight * pair.mean(t, part, log_scale, bits)?)
            }),
            Self::Folded(parts, lost) => Ok(folded(parts, t, part)?.widened(*lost)),
            Self::HalfLine(pair) => {
                spend(pair.cost())?;
                pair.at(t, part)
            }
            Self::Maximum(_) => Err("stopping times are looked at one by one".into()),
            Self::Chain(_) => Err("a chain is asked for delta alone".into()),
            Self::Epochs(epochs) => epochs.mean(t, part, log_scale, bits),
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
        if let Self::Chain(chain) = self {
            return chain.delta(epsilon, order, log_scale, bits);
        }
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
            Self::HalfLine(pair) => pair.largest_loss(),
            Self::Epochs(epochs) => epochs.largest_loss(),
            _ => None,
        }
    }

    /// An enclosure of delta(epsilon) by one moment, where the number itself is out of reach:
    /// (e^y - e^t)_+ <= e^(cy) e^((1-c)t) for c >= 1, and (e^t - e^y)_+ is for c <= 0. Below epsilon 0 the rest of
    /// delta is 1 - e^epsilon.
    pub fn by_moment(&self, epsilon: Ball<N>, order: Order) -> Option<Ball<N>> {
        if let Self::Epochs(epochs) = self {
            let moments = (order == Order::Remove).then(|| epochs.moment_bound(epsilon)).flatten();
            let bounds = [moments, epochs.as_one_batch(epsilon, order)].into_iter().flatten();
            let least = bounds.reduce(|a, b| if a.is_below(&b) { a } else { b })?;
            return Some(Ball::up_to(least.above()));
        }
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

    /// At least 1 - delta(epsilon), by one moment: min(e^y, e^t) <= e^(cy) e^((1-c)t) for c in [0, 1].
    pub fn rest_by_moment(&self, epsilon: Ball<N>, order: Order) -> Option<Ball<N>> {
        let Self::Contour(contour) = self else { return None };
        Some(match order {
            Order::Remove => contour.moment_bound(Zone::Between, epsilon)?,
            Order::Add => contour.moment_bound(Zone::Between, -epsilon)? * epsilon.exponential(),
        })
    }

    /// One step of each phase: who sees all steps sees each, so all leak at least what one does.
    pub(crate) fn steps(&self) -> &[Self] {
        match self {
            Self::Contour(contour) => &contour.steps,
            Self::Epochs(epochs) => &epochs.steps,
            _ => &[],
        }
    }

    /// At least delta(0), by the steps one by one.
    pub(crate) fn sum_of_steps(&self) -> Option<Ball<N>> {
        match self {
            Self::Contour(contour) => contour.sum_of_steps(),
            Self::Epochs(epochs) => Some(epochs.sum_of_steps()),
            _ => None,
        }
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

    /// Whether the number of bits that is asked for changes nothing.
    pub fn is_closed(&self) -> bool {
        !matches!(self, Self::Contour(_) | Self::Epochs(_) | Self::Chain(_))
    }

    /// Whether both orders have the same profile: Q is the mirror image of P.
    pub fn is_symmetric(&self) -> bool {
        match self {
            Self::Gaussian(_) | Self::Mixture(_) | Self::Folded(..) | Self::Unknown => true,
            Self::HalfLine(pair) => pair.substitute,
            Self::Labelled(parts) => parts.iter().all(|(_, pair)| pair.is_symmetric()),
            Self::Contour(contour) => {
                contour.composition.laws.iter().all(|law| {
                    law.strands.iter().all(|strand| strand.half || strand.step.substitute)
                })
            }
            Self::Maximum(_) | Self::Epochs(_) => false,
            Self::Chain(chain) => chain.is_symmetric(),
        }
    }

    /// Whether it is that of a pair, whose profile is convex in the slope e^epsilon and falls.
    pub(crate) fn is_pair(&self) -> bool {
        !matches!(self, Self::Chain(_))
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
        if let Self::Chain(chain) = self {
            return Ok(Ball::one() - chain.delta(epsilon, order, log_scale, bits)?);
        }
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

/// Batches in the order of the data: uses are certain. The worst group is the first k records: they fill the
/// batches in turn, as far as the size of a batch is known.
fn in_order<const N: usize>(run: &Run, phases: &[Phase]) -> Model<N> {
    let group = u64::from(run.group_size());
    let reach = if run.adjacency() == Adjacency::Substitute { 2 } else { 1 };
    let mut square = Ball::ZERO;
    for phase in phases {
        let exact = 1.0 / phase.sample_rate;
        let near = exact.round();
        let whole = (exact - near).abs() <= 1e-9 * near;
        let batches = (if whole { near } else { exact.floor() }).max(1.0) as u64;
        let known = run.dataset_size().map(|records| phase.sample_rate * records as f64);
        let size = match known {
            Some(size) if (size - size.round()).abs() <= 1e-9 * size.round().max(1.0) => {
                (size.round() as u64).clamp(1, group)
            }
            _ => group,
        };
        let unit = Ball::from_u64(reach).over(Ball::from_f64(phase.noise_multiplier)).squared();
        let (full, last) = ((group / size).min(batches), group % size);
        let (passes, rest) = (phase.steps / batches, phase.steps % batches);
        let filled = unit.times_u64(size).times_u64(size);
        square =
            square + filled.times_u64(full).times_u64(passes) + filled.times_u64(full.min(rest));
        if full < batches {
            let uses = passes + u64::from(full < rest);
            square = square + unit.times_u64(last).times_u64(last).times_u64(uses);
        }
    }
    Model::Gaussian(square.root())
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
