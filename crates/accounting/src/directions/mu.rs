//! The smallest Gaussian curve that covers a run down to a stated delta:
//! mu(d) = sup of m(epsilon, delta(epsilon)) over the epsilons >= 0 with delta(epsilon) >= d,
//! where m(epsilon, x) is the mu whose Gaussian profile passes through (epsilon, x), and
//! delta(epsilon) is the larger of both orders.
//!
//! Lower end: any epsilon gives one. Upper end: a candidate mu is certified gap by gap. As
//! functions of e^epsilon both profiles are convex; in a gap the run's profile lies below its
//! chord, and the Gaussian profile minus the chord is convex with a known derivative
//! (-Phi(-epsilon/mu - mu/2)), so its smallest value is evaluated exactly. A gap that fails is
//! halved. Second order in the gaps, so a few dozen evaluations of delta.

use crate::pairs::{Gaussian, ProfilePoint, complement, in_session};
use crate::{AccountingError, Order, Pair};
use numerics::elementary::{exp, exp_m1, ln};
use numerics::special::inverse_normal_sf;
use vocabulary::{Direction, Interval, NotCertified};

type Result<T> = std::result::Result<T, AccountingError>;

/// The certificate aims at this relative width.
const WIDTH: f64 = 1e-8;
/// More nodes than this are not worth their time; the candidate is loosened instead. A profile
/// that is Gaussian throughout needs the most: the width is then about 1/nodes^2.
const NODES: usize = 160;

/// A value of a profile, with its complement: near 1 the complement has the digits.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    pub delta: Interval,
    pub one_minus_delta: Interval,
}

impl Level {
    /// Both from delta alone, which is enough below 1/2.
    pub fn from_delta(delta: Interval) -> Self {
        Self { delta, one_minus_delta: complement(delta) }
    }

    /// The value of a pair's profile at epsilon.
    ///
    /// # Errors
    /// Those of the pair.
    pub fn of(pair: &dyn Pair, epsilon: f64, direction: Direction) -> Result<Self> {
        let delta = super::delta(pair, epsilon, direction)?;
        if delta.value <= 0.5 {
            return Ok(Self::from_delta(delta));
        }
        let one_minus_delta = super::one_minus_delta(pair, epsilon, direction)?;
        Ok(Self { delta, one_minus_delta })
    }
}

/// The smallest mu whose Gaussian profile covers that of a pair down to `delta`: see [`covering`].
///
/// # Errors
/// Those of the pair.
pub fn of(pair: &dyn Pair, delta: f64, direction: Direction) -> Result<Interval> {
    if let Some(found) = pair.mu(delta, direction) {
        return found;
    }
    in_session(pair, |pair| {
        let end = super::epsilon(pair, delta, direction)?;
        let profile = |epsilon: f64| Level::of(pair, epsilon, direction);
        let near = |epsilon: f64| points_near(pair, epsilon, direction);
        covering_by(Source { profile: &profile, near: &near }, end, delta)
    })
}

/// Whether the Gaussian profile of `mu` > 0 certainly covers that of a pair down to `delta`. `false` may also
/// mean that more than `most` values of the profile would be needed to tell.
///
/// # Errors
/// Those of the pair.
pub(crate) fn is_covered(
    pair: &dyn Pair,
    mu: f64,
    delta: f64,
    direction: Direction,
    most: usize,
) -> Result<bool> {
    // Where the Gaussian profile has fallen to delta, the pair's has to be below it.
    let end = Gaussian::new(mu)?.epsilon(delta, Order::Remove)?.upper;
    for order in super::orders(pair, direction) {
        let below = match pair.is_below(end, *order, delta) {
            Some(below) => below,
            None => pair.delta(end, *order)?.upper <= delta,
        };
        if !below {
            return Ok(false);
        }
    }
    let profile = |epsilon: f64| Level::of(pair, epsilon, direction);
    let near = |epsilon: f64| points_near(pair, epsilon, direction);
    let source = Source { profile: &profile, near: &near };
    let mut cover = Cover { source, nodes: Vec::new(), floor: 0.0, certainly_inside: 0.0 };
    for part in 0..=3 {
        cover.add(end * f64::from(part) / 3.0)?;
    }
    loop {
        let failing = cover.clear(mu)?;
        if failing.is_empty() {
            return Ok(true);
        }
        if cover.nodes.len() + failing.len() > most || !failing.iter().all(|x| cover.can_halve(*x))
        {
            return Ok(false);
        }
        for middle in failing {
            cover.add(middle)?;
        }
    }
}

/// The smallest mu whose Gaussian profile is at least the given one at every epsilon >= 0 with
/// delta(epsilon) >= `delta`. `profile` gives delta(epsilon), `end` encloses epsilon(`delta`).
///
/// # Errors
/// Those of the profile.
pub fn covering(
    profile: &dyn Fn(f64) -> Result<Level>,
    end: Interval,
    delta: f64,
) -> Result<Interval> {
    covering_by(Source { profile, near: &|_| None }, end, delta)
}

/// Where values of a profile come from.
#[derive(Clone, Copy)]
struct Source<'a> {
    /// The value at an epsilon.
    profile: &'a dyn Fn(f64) -> Result<Level>,
    /// A cheaper one near it.
    near: &'a dyn Fn(f64) -> Option<ProfilePoint>,
}

fn points_near(pair: &dyn Pair, epsilon: f64, direction: Direction) -> Option<ProfilePoint> {
    if direction == Direction::Both { pair.point_near(epsilon) } else { None }
}

fn covering_by(source: Source<'_>, end: Interval, delta: f64) -> Result<Interval> {
    if end.upper <= 0.0 {
        // Only epsilon = 0 can reach delta, and only with equality.
        let at_zero = (source.profile)(0.0)?;
        return Ok(if at_zero.delta.upper < delta {
            Interval::exact(0.0)
        } else {
            Interval::new(0.0, 0.0, above(0.0, &Point::upper(&at_zero))?)
        });
    }
    if !end.upper.is_finite() {
        return Ok(Interval::new(0.0, f64::INFINITY, f64::INFINITY));
    }
    let mut cover = Cover { source, nodes: Vec::new(), floor: 0.0, certainly_inside: end.lower };
    for part in 0..=4 {
        // The far end reaches to the upper end of epsilon(delta): more than asked is safe.
        cover.add(end.upper * f64::from(part) / 4.0)?;
    }
    let mut width = WIDTH;
    while width < 1.0 {
        let candidate = cover.floor * (1.0 + width);
        let failing = cover.clear(candidate)?;
        if failing.is_empty() {
            return Ok(Interval::new(cover.floor, cover.floor, candidate));
        }
        // Gaps too narrow to halve, or too many nodes: a wider answer instead.
        let halves: Vec<f64> = failing.into_iter().filter(|x| cover.can_halve(*x)).collect();
        if halves.is_empty() || cover.nodes.len() + halves.len() > NODES {
            width *= 2.0;
            continue;
        }
        for middle in halves {
            cover.add(middle)?;
        }
    }
    Err(NotCertified::CurveDownTo { delta }.into())
}

/// One end of a [`Level`].
#[derive(Clone, Copy)]
struct Point {
    delta: f64,
    rest: f64,
}

impl Point {
    fn upper(level: &Level) -> Self {
        Self { delta: level.delta.upper, rest: level.one_minus_delta.lower }
    }

    fn lower(level: &Level) -> Self {
        Self { delta: level.delta.lower, rest: level.one_minus_delta.upper }
    }

    fn is_high(&self) -> bool {
        self.rest < 0.5
    }
}

struct Node {
    epsilon: f64,
    /// Upper end of the profile.
    top: Point,
    /// Whether the gap to the next node is cleared; larger candidates keep it so.
    cleared: bool,
}

struct Cover<'a> {
    source: Source<'a>,
    /// Ordered by epsilon.
    nodes: Vec<Node>,
    /// The largest mu that some point certainly needs.
    floor: f64,
    /// An epsilon at which the profile certainly reaches delta.
    certainly_inside: f64,
}

impl Cover<'_> {
    fn add(&mut self, epsilon: f64) -> Result<()> {
        let index = self.nodes.partition_point(|node| node.epsilon < epsilon);
        let gap = match (index.checked_sub(1).map(|left| &self.nodes[left]), self.nodes.get(index))
        {
            (Some(left), Some(right)) => Some((left.epsilon, right.epsilon)),
            _ => None,
        };
        // Between two nodes any point not too close to either will do.
        let near = gap.and_then(|(left, right)| {
            let margin = 0.2 * (right - left);
            (self.source.near)(epsilon).filter(|point| {
                point.epsilon.lower > left + margin && point.epsilon.upper < right - margin
            })
        });
        let (at, level) = match near {
            Some(point) => (point.epsilon, Level::from_delta(point.delta)),
            None => (Interval::exact(epsilon), (self.source.profile)(epsilon)?),
        };
        // The profile falls, so the value here is also reached at the end that is certainly
        // inside: the far end, which may lie outside, gives a floor too.
        let inside = at.lower.min(self.certainly_inside);
        if self.certainly_inside > 0.0 {
            self.floor = self.floor.max(below(inside, &Point::lower(&level))?);
        }
        let node = Node { epsilon: at.upper, top: Point::upper(&level), cleared: false };
        self.nodes.insert(index, node);
        Ok(())
    }

    fn can_halve(&self, middle: f64) -> bool {
        let index = self.nodes.partition_point(|node| node.epsilon < middle);
        index > 0
            && index < self.nodes.len()
            && self.nodes[index].epsilon - self.nodes[index - 1].epsilon > 1e-12 * middle
    }

    /// Checks the gaps not cleared before; gives the middles of those in which the Gaussian
    /// profile of `mu` is not certainly above the chord.
    fn clear(&mut self, mu: f64) -> Result<Vec<f64>> {
        let gaussian = Gaussian::new(mu)?;
        let mut failing = Vec::new();
        for index in 0..self.nodes.len() - 1 {
            if !self.nodes[index].cleared {
                let (a, b) = (&self.nodes[index], &self.nodes[index + 1]);
                if gap_is_clear(&gaussian, a, b)? {
                    self.nodes[index].cleared = true;
                } else {
                    failing.push(0.5 * (a.epsilon + b.epsilon));
                }
            }
        }
        Ok(failing)
    }
}

/// Whether the Gaussian profile is certainly above the chord from `a` to `b`.
fn gap_is_clear(gaussian: &Gaussian, a: &Node, b: &Node) -> Result<bool> {
    let mu = gaussian.mu();
    if mu <= 0.0 {
        return Ok(a.top.delta <= 0.0);
    }
    // The chord in x = e^epsilon, with x measured from e^a so that nothing overflows:
    // x - e^a = e^a expm1(epsilon - a).
    let drop = if a.top.is_high() { b.top.rest - a.top.rest } else { a.top.delta - b.top.delta };
    let fall = drop / exp_m1(b.epsilon - a.epsilon);
    // Where the Gaussian profile has the chord's slope, its distance is smallest. That place is known
    // with a slope that is off by a part of 1e-14 (1 + z^2); the distance is convex, so the smallest
    // is below the one there by no more than that times the drop across the gap.
    let z = inverse_upper(fall * exp(-a.epsilon));
    let touching = -mu * (z + 0.5 * mu);
    let missed = if z.is_finite() { 1e-14 * (1.0 + z * z) * drop.max(0.0) } else { 0.0 };
    let clears = |epsilon: f64| -> Result<bool> {
        let fallen = fall * exp_m1(epsilon - a.epsilon);
        // A few roundings in the chord, in units of its ends.
        let slack = 8.0 * f64::EPSILON;
        let rest = (a.top.rest + fallen).min(b.top.rest);
        if rest < 0.5 {
            let lowest = rest * (1.0 - slack) - slack * fallen - missed;
            return Ok(gaussian.one_minus_delta(epsilon, Order::Remove)?.upper <= lowest);
        }
        let height = (a.top.delta - fallen).max(b.top.delta) + slack * a.top.delta + missed;
        Ok(gaussian.delta(epsilon, Order::Remove)?.lower >= height)
    };
    let inside = touching.clamp(a.epsilon, b.epsilon);
    Ok(clears(a.epsilon)? && clears(b.epsilon)? && clears(inside)?)
}

/// z with Phi(z) = p: where the Gaussian profile has slope -p.
fn inverse_upper(p: f64) -> f64 {
    if p <= 0.0 { f64::NEG_INFINITY } else { -inverse_normal_sf(p.min(1.0)) }
}

/// A mu whose Gaussian profile is certainly not above the point at `epsilon`.
fn below(epsilon: f64, point: &Point) -> Result<f64> {
    if point.delta <= 0.0 {
        return Ok(0.0);
    }
    let mut mu = solve(epsilon, point)?;
    let mut step = 1e-14;
    while mu > 0.0 {
        let gaussian = Gaussian::new(mu)?;
        let fits = if point.is_high() {
            gaussian.one_minus_delta(epsilon, Order::Remove)?.lower >= point.rest
        } else {
            gaussian.delta(epsilon, Order::Remove)?.upper <= point.delta
        };
        if fits {
            return Ok(mu);
        }
        mu *= 1.0 - step;
        step *= 2.0;
        if step > 0.5 {
            break;
        }
    }
    Ok(0.0)
}

/// A mu whose Gaussian profile is certainly not below the point at `epsilon`.
fn above(epsilon: f64, point: &Point) -> Result<f64> {
    if point.delta <= 0.0 {
        return Ok(0.0);
    }
    let mut mu = solve(epsilon, point)?.max(f64::MIN_POSITIVE);
    let mut step = 1e-14;
    for _ in 0..60 {
        let gaussian = Gaussian::new(mu)?;
        let covers = if point.is_high() {
            gaussian.one_minus_delta(epsilon, Order::Remove)?.upper <= point.rest
        } else {
            gaussian.delta(epsilon, Order::Remove)?.lower >= point.delta
        };
        if covers {
            return Ok(mu);
        }
        mu *= 1.0 + step;
        step *= 2.0;
    }
    Err(unreached(epsilon, point))
}

fn unreached(epsilon: f64, point: &Point) -> AccountingError {
    NotCertified::CurveThrough { epsilon, delta: point.delta }.into()
}

/// The mu whose Gaussian profile passes through (epsilon, delta), to rounding.
///
/// # Errors
/// `NotCertified` where no mu up to 1e7 reaches it.
pub fn through(epsilon: f64, delta: f64) -> Result<f64> {
    solve(epsilon, &Point { delta, rest: 1.0 - delta })
}

/// Newton on the logarithm of delta, or of its complement where that is smaller, inside a
/// bracket (d delta / d mu is the normal density at epsilon/mu - mu/2).
fn solve(epsilon: f64, point: &Point) -> Result<f64> {
    let high_level = point.is_high();
    let target = if high_level { -ln(point.rest) } else { ln(point.delta) };
    if target == f64::INFINITY {
        return Err(unreached(epsilon, point));
    }
    // Increasing in mu, with its derivative.
    let at = |mu: f64| -> Result<(f64, f64)> {
        let gaussian = Gaussian::new(mu)?;
        let density = numerics::special::normal_density(epsilon / mu - 0.5 * mu);
        if high_level {
            let rest = gaussian.one_minus_delta(epsilon, Order::Remove)?.value;
            return Ok((-ln(rest), density / rest));
        }
        let delta = gaussian.delta(epsilon, Order::Remove)?.value;
        Ok((ln(delta), density / delta))
    };
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    while at(high)?.0 < target {
        low = high;
        high *= 2.0;
        if high > 1e7 {
            return Err(unreached(epsilon, point));
        }
    }
    let mut mu = if low == 0.0 {
        start(epsilon, point.delta).clamp(1e-12, high)
    } else {
        0.5 * (low + high)
    };
    for _ in 0..200 {
        let (value, slope) = at(mu)?;
        if value < target {
            low = mu;
        } else {
            high = mu;
        }
        let next = mu + (target - value) / slope;
        let next =
            if next.is_finite() && next > low && next < high { next } else { 0.5 * (low + high) };
        if (next - mu).abs() <= 2.0 * f64::EPSILON * mu || high - low <= 2.0 * f64::EPSILON * high {
            return Ok(next);
        }
        mu = next;
    }
    Ok(mu)
}

/// A first guess: where the normal tail of epsilon/mu - mu/2 has about the right size.
fn start(epsilon: f64, delta: f64) -> f64 {
    if epsilon <= 0.0 {
        return 2.5 * delta;
    }
    let tail = inverse_normal_sf(delta.min(0.4)).max(0.1);
    // epsilon/mu - mu/2 = tail
    (tail * tail + 2.0 * epsilon).sqrt() - tail
}
