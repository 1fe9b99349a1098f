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

use crate::pairs::Gaussian;
use crate::{AccountingError, OneWay, Pair};
use numerics::special::inverse_normal_sf;
use vocabulary::Interval;

type Result<T> = std::result::Result<T, AccountingError>;

/// The certificate aims at this relative width.
const WIDTH: f64 = 1e-9;
/// More gaps than this are not worth their time; the candidate is loosened instead.
const EVALUATIONS: usize = 400;

/// The smallest mu whose Gaussian profile is at least the given one at every epsilon >= 0 with
/// delta(epsilon) >= `delta`. `profile` gives delta(epsilon), `end` encloses epsilon(`delta`).
///
/// # Errors
/// Those of the profile.
pub fn covering(
    profile: &dyn Fn(f64) -> Result<Interval>,
    end: Interval,
    delta: f64,
) -> Result<Interval> {
    if end.upper <= 0.0 {
        // Only epsilon = 0 can reach delta, and only with equality.
        let at_zero = profile(0.0)?;
        return Ok(if at_zero.upper < delta {
            Interval::exact(0.0)
        } else {
            Interval::new(0.0, 0.0, above(0.0, at_zero.upper)?)
        });
    }
    if !end.upper.is_finite() {
        return Ok(Interval::new(0.0, f64::INFINITY, f64::INFINITY));
    }
    let mut cover = Cover { profile, nodes: Vec::new(), floor: 0.0, evaluations: 0 };
    for part in 0..=4 {
        // The far end reaches to the upper end of epsilon(delta): more than asked is safe.
        cover.add(end.upper * f64::from(part) / 4.0, end.lower)?;
    }
    let mut width = WIDTH;
    loop {
        let candidate = cover.floor * (1.0 + width);
        match cover.failing_gap(candidate)? {
            None => return Ok(Interval::new(cover.floor, cover.floor, candidate)),
            Some(gap) if cover.evaluations < EVALUATIONS => {
                let (a, b) = (cover.nodes[gap].epsilon, cover.nodes[gap + 1].epsilon);
                let middle = 0.5 * (a + b);
                if middle > a && middle < b && (b - a) > 1e-12 * b {
                    cover.add(middle, end.lower)?;
                } else {
                    width *= 4.0;
                }
            }
            Some(_) => width *= 4.0,
        }
        if width > 1.0 {
            return Err(AccountingError::NotCertified(format!(
                "no Gaussian curve could be certified to cover the profile down to delta {delta}"
            )));
        }
    }
}

struct Node {
    epsilon: f64,
    delta: f64,
}

struct Cover<'a> {
    profile: &'a dyn Fn(f64) -> Result<Interval>,
    /// Upper ends of the profile, ordered by epsilon.
    nodes: Vec<Node>,
    /// The largest mu that some point certainly needs.
    floor: f64,
    evaluations: usize,
}

impl Cover<'_> {
    fn add(&mut self, epsilon: f64, certainly_inside: f64) -> Result<()> {
        let delta = (self.profile)(epsilon)?;
        self.evaluations += 1;
        // The profile falls, so the value here is also reached at the end that is certainly
        // inside: the far end, which may lie outside, gives a floor too.
        self.floor = self.floor.max(below(epsilon.min(certainly_inside), delta.lower)?);
        let index = self.nodes.partition_point(|node| node.epsilon < epsilon);
        self.nodes.insert(index, Node { epsilon, delta: delta.upper });
        Ok(())
    }

    /// A gap in which the Gaussian profile of `mu` is not certainly above the chord.
    fn failing_gap(&self, mu: f64) -> Result<Option<usize>> {
        if mu <= 0.0 {
            return Ok(None);
        }
        let gaussian = Gaussian::new(mu)?;
        for (index, pair) in self.nodes.windows(2).enumerate() {
            let (a, b) = (&pair[0], &pair[1]);
            // Chord in x = e^epsilon, with x measured from e^a so that nothing overflows:
            // x - e^a = e^a expm1(epsilon - a).
            let span = (b.epsilon - a.epsilon).exp_m1();
            let scaled_slope = (a.delta - b.delta) / span; // times e^-a: the true slope
            let slope = scaled_slope * (-a.epsilon).exp();
            let chord = |epsilon: f64| a.delta - scaled_slope * (epsilon - a.epsilon).exp_m1();
            let clears = |epsilon: f64| -> Result<bool> {
                let height = chord(epsilon).max(b.delta);
                // A few roundings in the chord, in units of its larger end near a.
                let slack = 8.0 * f64::EPSILON * (a.delta - b.delta).max(height);
                Ok(gaussian.delta(epsilon, OneWay::Remove)?.lower >= height + slack)
            };
            let touching = -mu * (inverse_upper(slope) + 0.5 * mu);
            let inside = touching.clamp(a.epsilon, b.epsilon);
            if !(clears(a.epsilon)? && clears(b.epsilon)? && clears(inside)?) {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }
}

/// z with Phi(z) = p: where the Gaussian profile has slope -p.
fn inverse_upper(p: f64) -> f64 {
    if p <= 0.0 { f64::NEG_INFINITY } else { -inverse_normal_sf(p.min(0.5)) }
}

/// A mu whose Gaussian profile is certainly not above `delta` at `epsilon`.
fn below(epsilon: f64, delta: f64) -> Result<f64> {
    if delta <= 0.0 {
        return Ok(0.0);
    }
    let mut mu = through(epsilon, delta)?;
    let mut step = 1e-14;
    while mu > 0.0 && Gaussian::new(mu)?.delta(epsilon, OneWay::Remove)?.upper > delta {
        mu *= 1.0 - step;
        step *= 2.0;
        if step > 0.5 {
            return Ok(0.0);
        }
    }
    Ok(mu)
}

/// A mu whose Gaussian profile is certainly not below `delta` at `epsilon`.
fn above(epsilon: f64, delta: f64) -> Result<f64> {
    if delta <= 0.0 {
        return Ok(0.0);
    }
    let mut mu = through(epsilon, delta)?.max(f64::MIN_POSITIVE);
    let mut step = 1e-14;
    while Gaussian::new(mu)?.delta(epsilon, OneWay::Remove)?.lower < delta {
        mu *= 1.0 + step;
        step *= 2.0;
        if mu > 1e6 {
            return Err(AccountingError::NotCertified(format!(
                "no Gaussian curve reaches delta {delta} at epsilon {epsilon}"
            )));
        }
    }
    Ok(mu)
}

/// The mu whose Gaussian profile passes through (epsilon, delta), to rounding: bisection to a
/// factor, then Newton on the logarithms (d delta / d mu is the density at epsilon/mu - mu/2).
pub fn through(epsilon: f64, delta: f64) -> Result<f64> {
    let at = |mu: f64| -> Result<f64> {
        Ok(Gaussian::new(mu)?.delta(epsilon, OneWay::Remove)?.value)
    };
    let target = delta.ln();
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    while at(high)?.ln() < target {
        low = high;
        high *= 2.0;
        if high > 1e9 {
            return Err(AccountingError::NotCertified(format!(
                "no Gaussian curve reaches delta {delta} at epsilon {epsilon}"
            )));
        }
    }
    let mut mu = if low == 0.0 { start(epsilon, delta).clamp(1e-12, high) } else { 0.5 * (low + high) };
    for _ in 0..200 {
        let value = at(mu)?;
        if value.ln() < target {
            low = mu;
        } else {
            high = mu;
        }
        let density = numerics::special::normal_density(epsilon / mu - 0.5 * mu);
        let step = (target - value.ln()) * value / density;
        let next = mu + step;
        let next = if next.is_finite() && next > low && next < high { next } else { 0.5 * (low + high) };
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
