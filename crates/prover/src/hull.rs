//! Powers of all stopping times together, in both orders: the curve is the convex hull of all of theirs, so with
//!
//! ```text
//! h_i(k) = delta_i(ln k) + k a   for every stopping time and order i,   H(k) = max of them,
//! ```
//!
//! the power at a is min H over k > 0 ([`crate::tradeoff`]). The best slope is where one curve gives way to another. It is searched with
//! the curves that were largest so far; what it proves is proven in balls:
//!
//! - the power is at most H(k) for every k;
//! - if h_i(m) and h_j(m) are at least p, h_i(m') <= h_i(m) for one m' > m and h_j(m'') <= h_j(m) for one m'' < m, the power is at least p:
//!   a convex function lies above the extension of its chord, so h_i >= h_i(m) on (0, m] and h_j >= h_j(m) on [m, infinity).

use crate::arithmetic::Ball;
use crate::maximum::Maximum;
use crate::model::{Model, Order};
use crate::obstacle::Obstacle;
use std::rc::Rc;

/// Curves that were the largest somewhere, and the slope at which their maximum is about least, as an epsilon.
pub(crate) struct Hull<const N: usize> {
    curves: Vec<(Rc<Model<N>>, Order)>,
    pub(crate) slope: f64,
    end: f64,
    fpr: f64,
}

/// h(e^slope) - end; close to 1 by what is missing.
fn excess<const N: usize>(
    pair: &Model<N>,
    order: Order,
    slope: f64,
    (end, fpr): (f64, f64),
) -> Result<Ball<N>, Obstacle> {
    let at = Ball::from_f64(slope);
    let rate = at.exponential() * Ball::from_f64(fpr);
    if end > 0.9 {
        let missing = Ball::one() - Ball::from_f64(end);
        return Ok(missing + rate - pair.rest(at, order, 0.0, 0.0)?);
    }
    Ok(pair.delta(at, order, 0.0, 0.0)? + rate - Ball::from_f64(end))
}

impl<const N: usize> Hull<N> {
    /// The search from a first slope, about a power `end` at `fpr`.
    pub(crate) fn new(
        maximum: &Maximum<N>,
        first: f64,
        end: f64,
        fpr: f64,
    ) -> Result<Self, Obstacle> {
        let mut hull = Self { curves: Vec::new(), slope: first, end, fpr };
        for _ in 0..8 {
            let mut more = false;
            for order in [Order::Remove, Order::Add] {
                let score = |pair: &Model<N>| {
                    excess(pair, order, hull.slope, (end, fpr)).map(|ball| ball.to_f64())
                };
                let best = maximum.best(&score)?;
                let known = |(pair, other): &(Rc<Model<N>>, Order)| {
                    *other == order && Rc::ptr_eq(pair, &best)
                };
                if !hull.curves.iter().any(known) {
                    more = true;
                    hull.curves.push((best, order));
                }
            }
            if !more {
                break;
            }
            hull.slope = hull.lowest()?;
        }
        Ok(hull)
    }

    fn highest(&self, slope: f64) -> Result<f64, Obstacle> {
        let mut highest = f64::NEG_INFINITY;
        for (pair, order) in &self.curves {
            highest = highest.max(excess(pair, *order, slope, (self.end, self.fpr))?.to_f64());
        }
        Ok(highest)
    }

    /// Where the largest of the curves is least, by thirds: they are convex in the slope, which rises with epsilon. The best slope lies
    /// between (1-p)/(1-a) and p/a.
    fn lowest(&self) -> Result<f64, Obstacle> {
        let (p, a) = (self.end.clamp(self.fpr, 1.0 - 1e-16), self.fpr);
        let (mut low, mut high) = (((1.0 - p) / (1.0 - a)).ln() - 0.1, (p / a).ln() + 0.1);
        for _ in 0..110 {
            let third = (high - low) / 3.0;
            let (one, two) = (low + third, high - third);
            if !(low < one && one < two && two < high) {
                break;
            }
            if self.highest(one)? < self.highest(two)? { high = two } else { low = one }
        }
        let middle = 0.5 * (low + high);
        let mut best = (middle, self.highest(middle)?);
        for at in [low, high] {
            let here = self.highest(at)?;
            if here < best.1 {
                best = (at, here);
            }
        }
        Ok(best.0)
    }

    /// Whether all stopping times together are shown to have at least the power `end`.
    pub(crate) fn is_reached(&self) -> Result<bool, Obstacle> {
        let (mut falling, mut rising) = (false, false);
        for (pair, order) in &self.curves {
            let at = |slope: f64| excess(pair, *order, slope, (self.end, self.fpr));
            let here = at(self.slope)?;
            if !here.is_not_negative() {
                continue;
            }
            for gap in [1e-2, 1e-4, 1e-6, 1e-8, 1e-10] {
                falling = falling || at(self.slope + gap)?.is_at_most(&here);
                rising = rising || at(self.slope - gap)?.is_at_most(&here);
            }
        }
        Ok(falling && rising)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocabulary::Run;

    const NOISE: f64 = 0.22;
    const RATE: f64 = 0.224;
    const FPR: f64 = 1.6e-4;

    /// The integrals of (p - k q)_+ and (q - k p)_+ of the last iterate after t steps, by sums in doubles.
    fn deltas(t: i32, k: f64) -> [f64; 2] {
        let deviation = NOISE * f64::from(t).sqrt();
        let normal = |x: f64| (-0.5 * (x / deviation).powi(2)).exp();
        let choose = |j: i32| (1..=j).fold(1.0, |c, i| c * f64::from(t - i + 1) / f64::from(i));
        let share = |j: i32| choose(j) * RATE.powi(j) * (1.0 - RATE).powi(t - j);
        let (from, to, n) = (-8.0 * deviation, f64::from(t) + 8.0 * deviation, 4000);
        let h = (to - from) / f64::from(n);
        let unit = h / (deviation * std::f64::consts::TAU.sqrt());
        let mut sums = [0.0; 2];
        for i in 0..n {
            let x = from + (f64::from(i) + 0.5) * h;
            let p: f64 = (0..=t).map(|j| share(j) * normal(x - f64::from(j))).sum();
            let q = normal(x);
            sums[0] += unit * (p - k * q).max(0.0);
            sums[1] += unit * (q - k * p).max(0.0);
        }
        sums
    }

    #[test]
    fn the_hull_of_three_stopping_times() {
        let run = Run::builder().phase(NOISE, RATE, 3).build().unwrap();
        let maximum = Maximum::<2>::new(&run, 100).unwrap();
        let line = |slope: f64| {
            let k = slope.exp();
            (1..=3).flat_map(|t| deltas(t, k)).fold(0.0, f64::max) + k * FPR
        };
        let (mut low, mut high) = (-8.0f64, 9.0f64);
        for _ in 0..50 {
            let third = (high - low) / 3.0;
            let (one, two) = (low + third, high - third);
            if line(one) < line(two) { high = two } else { low = one }
        }
        let power = line(low);
        let hull = |end: f64| Hull::new(&maximum, 1.0, end, FPR).unwrap();
        assert!(hull(0.9995 * power).is_reached().unwrap(), "{power}");
        let above = hull(1.0005 * power);
        assert!(!above.is_reached().unwrap(), "{power}");
        assert!(above.highest(above.slope).unwrap() < 0.0, "{power}");
    }
}
