//! Gaussian mu at a delta d: the smallest mu whose profile G is at least the run's at every
//! epsilon >= 0 with delta(epsilon) >= d.
//!
//! *Upper end*, mu covers: both profiles are convex in k = e^epsilon. On a gap [k_1, k_2] the run's
//! lies below its chord, and G above each of its tangents, G(k_0) + G'(k_0)(k - k_0), G' =
//! -(normal tail at epsilon/mu + mu/2). So a gap is cleared when one tangent is above the chord at both
//! ends. Gaps from 0 to a point where delta is at most d are halved until all are cleared.
//!
//! *Lower end*, mu is needed: one epsilon with delta(epsilon) >= d and delta(epsilon) >= G(epsilon).
//!
//! **Shifts of one normal law**, P = X + N(0, 1) against Q = N(0, 1), X >= 0, such as last iterates, need one epsilon for both ends.
//! The best tests are half-lines {x > z} (of removing) and {x < z} (of adding). With F(x) = E Phi(X + x) the Gaussian pair with the same
//! two error rates at z has the shift m(z) = Phi^-1(F(-z)) + z. Phi's density as a function of Phi, I, is concave, so F' = E I(Phi(X + x))
//! <= I(F), that is (Phi^-1 F)' <= 1: m rises with z, strictly where X is not constant. So the powers R of removing and those of the Gaussian pair, S,
//! cross at most once, at a rate a_0: R > S at the rates below it, R < S at those above. Let h(k) be the profile max of R(a) - k a less that of S, whose
//! derivative is the rate that is best for S less the one for R; both rates fall with k. If h(k_1) > 0, then R's best rate at k_1 lies below a_0. So it does
//! for every k > k_1, where either S's lies above a_0 and h rises, or it does not and h > 0, since R > S there. Hence
//!
//! - of removing, h(k) <= 0 at one k says so of every smaller one: where delta(epsilon) <= d and delta(epsilon) <= G(epsilon), mu covers, and
//!   where both are strictly so, a smaller mu covers as well;
//! - of adding, the rates are those of the mirror image, R < S below a_0, and h(1) <= 0 says so of every k > 1. At k = 1 both orders are the
//!   same, so what covers removing covers adding.

use crate::arithmetic::{Ball, normal_tail};
use crate::model::{Model, Order, gaussian};
use crate::obstacle::Obstacle;
use crate::pairs::Part;
use crate::proof::Outcome;

pub(crate) struct Found<const N: usize> {
    pub(crate) outcome: Outcome,
    pub(crate) statement: String,
    pub(crate) points: Vec<(String, Ball<N>)>,
}

struct Profile<'a, const N: usize> {
    model: &'a Model<N>,
    orders: &'a [Order],
    bits: f64,
}

impl<const N: usize> Profile<'_, N> {
    /// Delta in doubles, to some digits of its own, or of d where it is smaller.
    fn about(&self, epsilon: f64, d: f64) -> Result<f64, Obstacle> {
        let (at, least) = (Ball::from_f64(epsilon), d.ln() - 4.0);
        let mut largest = 0.0f64;
        for order in self.orders {
            let log_scale = self.model.log_size(epsilon, *order).max(least);
            let mut delta = self.model.delta(at, *order, log_scale, self.bits)?;
            // It may be far smaller than it looks.
            if delta.accuracy() < 8 && log_scale > least {
                delta = self.model.delta(at, *order, least, self.bits)?;
            }
            largest = largest.max(delta.to_f64());
        }
        Ok(largest)
    }

    /// The profile at epsilon, to `bits` of what it is compared with; close to 1, of what is missing there.
    fn at(&self, epsilon: f64, (size, rest): (Ball<N>, Ball<N>)) -> Result<Point<N>, Obstacle> {
        let at = Ball::from_f64(epsilon);
        let high = size.to_f64() > 0.5;
        let near = if high { rest.to_f64() } else { size.to_f64() };
        let log_scale = near.max(1e-300).ln();
        let mut found: Option<Ball<N>> = None;
        for order in self.orders {
            let one = if high {
                // The largest delta has the least rest.
                -self.model.rest(at, *order, log_scale, self.bits)?
            } else {
                self.model.delta(at, *order, log_scale, self.bits)?
            };
            found = Some(found.map_or(one, |known| known.maximum(one)));
            if epsilon == 0.0 {
                break;
            }
        }
        let found = found.ok_or("no order was asked for")?;
        let one = Ball::one();
        Ok(if high {
            Point { epsilon, delta: one + found, rest: -found }
        } else {
            Point { epsilon, delta: found, rest: one - found }
        })
    }
}

/// A point of a profile: delta and 1 - delta, of which the smaller has its digits.
#[derive(Clone, Copy)]
struct Point<const N: usize> {
    epsilon: f64,
    delta: Ball<N>,
    rest: Ball<N>,
}

impl<const N: usize> Point<N> {
    fn is_at_most(&self, delta: &Ball<N>, rest: &Ball<N>) -> bool {
        self.delta.is_at_most(delta) || rest.is_at_most(&self.rest)
    }

    fn is_above(&self, delta: &Ball<N>, rest: &Ball<N>) -> bool {
        delta.is_below(&self.delta) || self.rest.is_below(rest)
    }

    fn is_at_least(&self, delta: &Ball<N>, rest: &Ball<N>) -> bool {
        delta.is_at_most(&self.delta) || self.rest.is_at_most(rest)
    }
}

/// epsilon at which the Gaussian curve has fallen to d, in doubles; 0 where it starts below.
fn gaussian_crossing<const N: usize>(mu: Ball<N>, d: f64) -> f64 {
    let value = |epsilon: f64| gaussian(mu, Ball::from_f64(epsilon), Part::Above).to_f64();
    let mut most = 1.0;
    while value(most) > d && most < 1e9 {
        most *= 2.0;
    }
    crossing(|epsilon| Ok(value(epsilon)), d, most).unwrap_or(most)
}

/// About where the Gaussian curve of mu has fallen to d.
pub(crate) fn end_of_curve(mu: f64, d: f64) -> f64 {
    if mu > 0.0 { gaussian_crossing(Ball::<2>::from_f64(mu), d) } else { 0.0 }
}

/// epsilon in [0, most] at which a falling function crosses d, in doubles: secants on its logarithm, kept in a bracket.
fn crossing(
    value: impl Fn(f64) -> Result<f64, Obstacle>,
    d: f64,
    most: f64,
) -> Result<f64, Obstacle> {
    let log = |epsilon: f64| value(epsilon).map(|x| x.max(1e-320).ln() - d.ln());
    let (mut low, mut high) = ((0.0, log(0.0)?), (most, log(most)?));
    if low.1 <= 0.0 || high.1 >= 0.0 {
        return Ok(if low.1 <= 0.0 { 0.0 } else { most });
    }
    let mut middle = most;
    for round in 0..60 {
        let secant = (low.0 * high.1 - high.0 * low.1) / (high.1 - low.1);
        let inside = secant > low.0 && secant < high.0 && round % 4 != 3;
        middle = if inside { secant } else { 0.5 * (low.0 + high.0) };
        let here = log(middle)?;
        if here > 0.0 {
            low = (middle, here)
        } else {
            high = (middle, here)
        }
        if here.abs() < 1e-13 || high.0 - low.0 <= 1e-14 * high.0 {
            break;
        }
    }
    Ok(middle)
}

/// A Gaussian pair covers itself: its own mu is the answer wherever delta(0) > d, and 0 where
/// delta(0) < d.
fn of_gaussian<const N: usize>(
    model: &Model<N>,
    mu: f64,
    d: f64,
    at_zero: &Ball<N>,
    upper: bool,
) -> Option<Found<N>> {
    let Model::Gaussian(own) = model else { return None };
    let target = Ball::from_f64(d);
    let truth = if target.is_below(at_zero) {
        *own
    } else if at_zero.is_below(&target) {
        Ball::ZERO
    } else {
        return None;
    };
    let end = Ball::from_f64(mu);
    let (holds, fails) = if upper {
        (truth.is_at_most(&end), end.is_below(&truth))
    } else {
        (end.is_at_most(&truth), truth.is_below(&end))
    };
    let outcome = match (holds, fails) {
        (true, _) => Outcome::Proven,
        (_, true) => Outcome::Wrong,
        _ => Outcome::Undecided,
    };
    Some(Found {
        outcome,
        statement: "the pair is Gaussian: its own mu".into(),
        points: vec![("mu".into(), truth)],
    })
}

/// Shifts of one normal law against it: one epsilon tells whether mu covers, or is needed.
fn of_shifts<const N: usize>(
    profile: &Profile<'_, N>,
    (mu, d): (f64, f64),
    upper: bool,
) -> Result<Option<Found<N>>, Obstacle> {
    if !matches!(profile.model, Model::HalfLine(pair) if !pair.substitute) {
        return Ok(None);
    }
    let (ball, target) = (Ball::<N>::from_f64(mu), Ball::from_f64(d));
    let removing = profile.orders.contains(&Order::Remove);
    let epsilon = if removing { gaussian_crossing(ball, d) } else { 0.0 };
    let (delta, rest) = curve(ball, epsilon);
    let one =
        Profile { orders: if removing { &[Order::Remove] } else { profile.orders }, ..*profile };
    let run = one.at(epsilon, (delta, rest))?;
    // Of adding, a larger epsilon asks for no larger mu, whatever delta is there.
    let below = |strictly: bool| {
        let small = !removing
            || if strictly { run.delta.is_below(&target) } else { run.delta.is_at_most(&target) };
        small
            && if strictly {
                run.delta.is_below(&delta) || rest.is_below(&run.rest)
            } else {
                run.is_at_most(&delta, &rest)
            }
    };
    let above = |strictly: bool| {
        if strictly {
            run.is_above(&delta, &rest) && target.is_below(&run.delta)
        } else {
            run.is_at_least(&delta, &rest) && target.is_at_most(&run.delta)
        }
    };
    let (holds, fails) =
        if upper { (below(false), above(true)) } else { (above(false), below(true)) };
    let outcome = match (holds, fails) {
        (true, _) => Outcome::Proven,
        (_, true) => Outcome::Wrong,
        _ => return Ok(None),
    };
    Ok(Some(Found {
        outcome,
        statement: format!(
            "shifts of one normal law: delta({epsilon}) against {d} and the Gaussian curve of mu = {mu}"
        ),
        points: vec![(format!("delta({epsilon})"), run.delta), ("of the Gaussian".into(), delta)],
    }))
}

/// Gaps that may be looked at.
const MOST_GAPS: usize = 12_000;

/// The Gaussian curve of mu at epsilon: delta and 1 - delta.
fn curve<const N: usize>(mu: Ball<N>, epsilon: f64) -> (Ball<N>, Ball<N>) {
    let at = Ball::from_f64(epsilon);
    (gaussian(mu, at, Part::Above), gaussian(mu, at, Part::Least))
}

/// Whether the Gaussian curve of `mu` covers the run down to `d`.
pub(crate) fn covers<const N: usize>(
    model: &Model<N>,
    orders: &[Order],
    mu: f64,
    d: f64,
    bits: f64,
) -> Result<Found<N>, Obstacle> {
    let profile = Profile { model, orders, bits: bits.min(64.0) };
    let (ball, target) = (Ball::<N>::from_f64(mu), Ball::from_f64(d));
    // No epsilon counts where delta(0) < d: that is what an end of 0 says.
    if let Some(most) = model.sum_of_steps()
        && most.is_below(&target)
    {
        let statement = format!("delta(0) < {d}, even of all steps one by one: no epsilon counts");
        let points = vec![("at least delta(0)".into(), most)];
        return Ok(Found { outcome: Outcome::Proven, statement, points });
    }
    let size = if mu <= 0.0 { (target, Ball::one() - target) } else { curve(ball, 0.0) };
    let at_zero = profile.at(0.0, size)?;
    let shown = |outcome: Outcome, statement: String| Found {
        outcome,
        statement,
        points: vec![("delta(0)".into(), at_zero.delta)],
    };
    if at_zero.delta.is_below(&target) {
        return Ok(shown(Outcome::Proven, format!("delta(0) < {d}: no epsilon counts")));
    }
    if mu <= 0.0 {
        let wrong = target.is_below(&at_zero.delta);
        let outcome = if wrong { Outcome::Wrong } else { Outcome::Undecided };
        return Ok(shown(outcome, format!("delta(0) >= {d}")));
    }
    if let Some(found) = of_gaussian(model, mu, d, &at_zero.delta, true) {
        return Ok(found);
    }
    if let Some(found) = of_shifts(&profile, (mu, d), true)? {
        return Ok(found);
    }
    // That of two links is, above slope 1.
    if matches!(model, Model::Chain(chain) if chain.records() > 2) {
        return Err("the bound of a longer chain is not known to be convex".into());
    }
    // The far end: where the Gaussian curve has fallen to d, the run's profile has to be at most d.
    let far = gaussian_crossing(ball, d);
    let mut at_far = profile.at(far, (target, Ball::one() - target))?;
    if !at_far.delta.is_at_most(&target) {
        // A little further, where that is not yet certain: more than is asked for.
        let beyond = profile.at(far * (1.0 + 1e-13), (target, Ball::one() - target))?;
        if !beyond.delta.is_at_most(&target) {
            let wrong =
                target.is_below(&at_far.delta) && curve(ball, far).0.is_below(&at_far.delta);
            return Ok(Found {
                outcome: if wrong { Outcome::Wrong } else { Outcome::Undecided },
                statement: format!("delta({far}) against {d}, where the Gaussian curve ends"),
                points: vec![(format!("delta({far})"), at_far.delta)],
            });
        }
        at_far = beyond;
    }
    let mut gaps = vec![(at_zero, at_far)];
    let mut looked = 0;
    while let Some((a, b)) = gaps.pop() {
        looked += 1;
        if looked > MOST_GAPS {
            return Err("too many gaps of the profile are close to the Gaussian curve".into());
        }
        let middle = 0.5 * (a.epsilon + b.epsilon);
        let slope = -normal_tail(Ball::from_f64(middle).over(ball) + ball.scaled(-1));
        let k = |epsilon: f64| Ball::<N>::from_f64(epsilon).exponential();
        let (height, missing) = curve(ball, middle);
        let below = |point: &Point<N>| {
            let change = slope * (k(point.epsilon) - k(middle));
            point.is_at_most(&(height + change), &(missing - change))
        };
        if below(&a) && below(&b) {
            continue;
        }
        for point in [&a, &b] {
            let (delta, rest) = curve(ball, point.epsilon);
            if point.is_above(&delta, &rest) && target.is_at_most(&point.delta) {
                let epsilon = point.epsilon;
                return Ok(Found {
                    outcome: Outcome::Wrong,
                    statement: format!(
                        "at epsilon {epsilon} the run's delta is above that of mu = {mu}"
                    ),
                    points: vec![
                        (format!("delta({epsilon})"), point.delta),
                        ("of the Gaussian".into(), delta),
                    ],
                });
            }
        }
        if b.epsilon - a.epsilon < 1e-13 * b.epsilon || middle <= a.epsilon || middle >= b.epsilon {
            return Err(Obstacle::Precision(format!(
                "near epsilon {middle} the curves cannot be told apart"
            )));
        }
        let between = profile.at(middle, (height, missing))?;
        gaps.push((a, between));
        gaps.push((between, b));
    }
    let end = at_far.epsilon;
    Ok(shown(
        Outcome::Proven,
        format!(
            "the Gaussian curve of mu = {mu} is above the run's profile on {looked} gaps of [0, {end}]"
        ),
    ))
}

/// Whether some epsilon with delta(epsilon) >= d needs at least `mu`.
pub(crate) fn needs<const N: usize>(
    model: &Model<N>,
    orders: &[Order],
    mu: f64,
    d: f64,
    bits: f64,
) -> Result<Found<N>, Obstacle> {
    let profile = Profile { model, orders, bits: bits.min(64.0) };
    let (ball, target) = (Ball::<N>::from_f64(mu), Ball::from_f64(d));
    if let Model::Gaussian(_) = model {
        let at_zero = profile.at(0.0, curve(ball, 0.0))?;
        return of_gaussian(model, mu, d, &at_zero.delta, false)
            .ok_or_else(|| "delta(0) cannot be told from delta".into());
    }
    if let Some(found) = of_shifts(&profile, (mu, d), false)? {
        return Ok(found);
    }
    let rough = Profile { model, orders, bits: 30.0 };
    // The claimed curve ends near the run's: the search starts there.
    let most = gaussian_crossing(ball, d) * 1.5 + 1e-9;
    let far = crossing(|epsilon| rough.about(epsilon, d), d, most)?;
    // Look for the largest excess: how much more mu, about, is needed at epsilon.
    let excess = |epsilon: f64| -> Result<f64, Obstacle> {
        let (delta, rest) = curve(ball, epsilon);
        let run = profile.at(epsilon, (delta, rest))?;
        let at = Ball::<N>::from_f64(epsilon);
        let density = (-(at.over(ball) - ball.scaled(-1)).squared().scaled(-1)).exponential();
        let more = if delta.to_f64() > 0.5 { rest - run.rest } else { run.delta - delta };
        Ok(more.over(density).to_f64())
    };
    let show = |epsilon: f64| -> Result<Option<Found<N>>, Obstacle> {
        let (delta, rest) = curve(ball, epsilon);
        let run = profile.at(epsilon, (delta, rest))?;
        let shown = target.is_at_most(&run.delta) && run.is_at_least(&delta, &rest);
        Ok(shown.then(|| Found {
            outcome: Outcome::Proven,
            statement: format!(
                "delta({epsilon}) is at least {d} and at least that of the Gaussian curve"
            ),
            points: vec![
                (format!("delta({epsilon})"), run.delta),
                ("of the Gaussian".into(), delta),
            ],
        }))
    };
    // The two ends of the range are the usual places.
    for less in [1.0, 1e-15, 4e-15, 1.6e-14, 6e-14, 2e-13, 1e-12, 1e-11, 1e-9] {
        if let Some(found) = show(far * (1.0 - less))? {
            return Ok(found);
        }
    }
    let count = 16;
    let even = (0..=count).map(|i| far * f64::from(i) / f64::from(count));
    let mut places: Vec<f64> = even.chain((5..20).map(|i| far * f64::from(-i).exp2())).collect();
    places.sort_by(f64::total_cmp);
    let mut best = (0, f64::NEG_INFINITY);
    for (index, epsilon) in places.iter().enumerate() {
        let here = excess(*epsilon)?;
        if here > best.1 {
            best = (index, here);
        }
    }
    // By golden sections between its neighbours.
    let ratio = 0.618_033_988_75;
    let mut left = places[best.0.saturating_sub(1)];
    let mut right = places[(best.0 + 1).min(places.len() - 1)];
    let inner = |left: f64, right: f64, part: f64| left + part * (right - left);
    let (mut one, mut two) = (inner(left, right, 1.0 - ratio), inner(left, right, ratio));
    let (mut at_one, mut at_two) = (excess(one)?, excess(two)?);
    for _ in 0..40 {
        if at_one > at_two {
            (right, two, at_two) = (two, one, at_one);
            one = inner(left, right, 1.0 - ratio);
            at_one = excess(one)?;
        } else {
            (left, one, at_one) = (one, two, at_two);
            two = inner(left, right, ratio);
            at_two = excess(two)?;
        }
        if let Some(found) = show(if at_one > at_two { one } else { two })? {
            return Ok(found);
        }
    }
    let less = covers(model, orders, mu.next_down(), d, bits)?;
    if less.outcome == Outcome::Proven {
        return Ok(Found { outcome: Outcome::Wrong, ..less });
    }
    Err(Obstacle::precision("no epsilon was found that needs this mu"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::Outcome;
    use vocabulary::{LensName, Run};

    /// Simpson's rule for (p - k r)_+ with densities on [-L, L], cut at the sign change of a monotone ratio.
    fn simpson(value: impl Fn(f64) -> f64, from: f64, to: f64) -> f64 {
        let n = 2000;
        let h = (to - from) / f64::from(n);
        let inner = (1..n).map(|i| (2.0 + 2.0 * f64::from(i % 2)) * value(from + f64::from(i) * h));
        (value(from) + inner.sum::<f64>() + value(to)) * h / 3.0
    }

    /// The smallest mu of both orders on a grid of epsilons, by quadrature of the densities alone.
    #[test]
    fn shifts_of_one_normal_law_by_quadrature() {
        let (noise, q, steps, d) = (1.1f64, 0.3f64, 4u32, 1e-4);
        let deviation = noise * f64::from(steps).sqrt();
        let normal = |x: f64| (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
        let binomial = [1.0, 4.0, 6.0, 4.0, 1.0];
        let shifted = |x: f64| -> f64 {
            (0..=steps)
                .map(|j| {
                    let weight = binomial[j as usize]
                        * q.powi(j as i32)
                        * (1.0 - q).powi((steps - j) as i32);
                    weight * normal(x - f64::from(j) / deviation)
                })
                .sum()
        };
        // The densities' difference is cut where it changes its sign.
        let positive = |value: &dyn Fn(f64) -> f64, rising: bool| {
            let (mut low, mut high) = (-12.0, 16.0);
            for _ in 0..60 {
                let middle = 0.5 * (low + high);
                if (value(middle) > 0.0) == rising { high = middle } else { low = middle }
            }
            if rising { simpson(value, high, 16.0) } else { simpson(value, -12.0, low) }
        };
        let run = |k: f64| {
            let removing = positive(&|x| shifted(x) - k * normal(x), true);
            let adding = positive(&|x| normal(x) - k * shifted(x), false);
            removing.max(adding)
        };
        let of_mu = |mu: f64, k: f64| positive(&|x| normal(x - mu) - k * normal(x), true);
        let mut most = 0.0f64;
        let mut epsilon = 0.0f64;
        let (mut step, mut last) = (0.05, false);
        while !last {
            let k = epsilon.exp();
            let delta = run(k);
            if delta < d {
                // Closer to where it is d.
                epsilon -= step;
                step *= 0.25;
                last = step < 1e-7;
            } else {
                let (mut low, mut high) = (0.0, 9.0);
                for _ in 0..50 {
                    let middle = 0.5 * (low + high);
                    if of_mu(middle, k) < delta { low = middle } else { high = middle }
                }
                most = most.max(high);
            }
            epsilon += step;
        }
        let run = Run::builder().phase(noise, q, u64::from(steps)).build().unwrap();
        let model = Model::<2>::new(&run, run.phases(), Some(LensName::LastIterate), 120).unwrap();
        for orders in [&[Order::Remove, Order::Add][..], &[Order::Remove]] {
            let ask = |mu: f64| {
                let found =
                    [covers(&model, orders, mu, d, 60.0), needs(&model, orders, mu, d, 60.0)];
                found.map(|found| {
                    let found = found.unwrap();
                    assert!(
                        found.statement.contains("shifts of one normal law"),
                        "{}",
                        found.statement
                    );
                    found.outcome
                })
            };
            assert_eq!(ask(most * (1.0 + 1e-5)), [Outcome::Proven, Outcome::Wrong], "{most}");
            assert_eq!(ask(most * (1.0 - 1e-5)), [Outcome::Wrong, Outcome::Proven], "{most}");
        }
        // Adding alone: where epsilon is 0.
        let total = positive(&|x| shifted(x) - normal(x), true);
        let (mut low, mut high) = (0.0, 9.0);
        for _ in 0..50 {
            let middle = 0.5 * (low + high);
            if of_mu(middle, 1.0) < total { low = middle } else { high = middle }
        }
        let add = [Order::Add];
        let upper = |mu: f64| covers(&model, &add, mu, d, 60.0).unwrap().outcome;
        assert_eq!(upper(high * (1.0 + 1e-7)), Outcome::Proven);
        assert_eq!(upper(high * (1.0 - 1e-7)), Outcome::Wrong);
        let lower = needs(&model, &add, high * (1.0 - 1e-7), d, 60.0).unwrap();
        assert_eq!(lower.outcome, Outcome::Proven);
    }
}
