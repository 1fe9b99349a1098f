//! True positive rates. With h(k) = max over the orders of delta(ln k) + k a, a convex function of the slope
//! k > 0, TPR(a) = min h: for one order by duality, for both because the symmetrised trade-off
//! curve is the convex hull of the smaller of the two curves (Dong, Roth, Su 2022, Proposition 6), whose
//! lines are those of either order.
//!
//! Every k gives an upper bound. Three slopes a < b < c with h(b) <= h(a), h(c) give a lower one: the
//! minimum lies between a and c, and a convex function lies above its chords' extensions.

use crate::arithmetic::{Ball, Float, normal_tail};
use crate::model::{Model, Order};
use crate::obstacle::Obstacle;
use std::cell::RefCell;

pub(crate) struct Curve<'a, const N: usize> {
    pub(crate) model: &'a Model<N>,
    pub(crate) orders: &'a [Order],
    pub(crate) fpr: f64,
    /// ln of about the power.
    pub(crate) log_scale: f64,
}

/// Two bounds on a power, and the epsilon of the line that shows them.
pub(crate) struct Power<const N: usize> {
    pub(crate) lower: Ball<N>,
    pub(crate) upper: Ball<N>,
    pub(crate) epsilon: f64,
}

impl<const N: usize> Curve<'_, N> {
    /// h at slope e^epsilon.
    pub(crate) fn line(&self, epsilon: f64, bits: f64) -> Result<Ball<N>, Obstacle> {
        let at = Ball::from_f64(epsilon);
        let mut largest: Option<Ball<N>> = None;
        for order in self.orders {
            let delta = match self.model.delta(at, *order, self.log_scale, bits) {
                Ok(delta) => delta,
                Err(reason) if reason.asks_for_words(N) => return Err(reason),
                Err(reason) => self.model.by_moment(at, *order).ok_or(reason)?,
            };
            largest = Some(largest.map_or(delta, |known| known.maximum(delta)));
        }
        let delta = largest.ok_or("no order was asked for")?;
        Ok(delta + at.exponential() * Ball::from_f64(self.fpr))
    }

    /// Bounds from three slopes e^(epsilon - gap), e^epsilon, e^(epsilon + gap).
    fn bounds(&self, epsilon: f64, gap: f64, bits: f64) -> Result<(Power<N>, f64), Obstacle> {
        let slopes = [epsilon - gap, epsilon, epsilon + gap];
        let k = slopes.map(|at| Ball::<N>::from_f64(at).exponential());
        let h =
            [self.line(slopes[0], bits)?, self.line(slopes[1], bits)?, self.line(slopes[2], bits)?];
        // The vertex of the parabola in epsilon: where to look next.
        let (left, right) = ((h[0] - h[1]).to_f64(), (h[2] - h[1]).to_f64());
        let vertex = epsilon + 0.5 * gap * (left - right) / (left + right);
        let inside = h[1].is_at_most(&h[0]) && h[1].is_at_most(&h[2]);
        let lower = if inside && self.model.is_pair() {
            let rise = (h[2] - h[1]).over(k[2] - k[1]);
            let fall = (h[1] - h[0]).over(k[1] - k[0]);
            (h[1] - rise * (k[1] - k[0])).minimum(h[1] + fall * (k[2] - k[1]))
        } else {
            // No slope allows less than the false positive rate itself.
            Ball::from_f64(self.fpr)
        };
        Ok((Power { lower, upper: h[1], epsilon }, vertex))
    }

    /// Bounds from two slopes on either side of the least h: where one order gives way to the other, h has a corner. If it falls
    /// before `left` and rises after `right`, its least value lies between them, above both secants.
    fn corner(&self, left: f64, right: f64, bits: f64) -> Result<Option<Power<N>>, Obstacle> {
        let gap = right - left;
        let slopes = [left - gap, left, right, right + gap];
        let k = slopes.map(|at| Ball::<N>::from_f64(at).exponential());
        let mut h = [Ball::ZERO; 4];
        for (h, at) in h.iter_mut().zip(slopes) {
            *h = self.line(at, bits)?;
        }
        let (fall, rise) = ((h[1] - h[0]).over(k[1] - k[0]), (h[3] - h[2]).over(k[3] - k[2]));
        if !fall.is_negative() || !rise.is_positive() {
            return Ok(None);
        }
        // h_1 + fall (x - k_1) = h_2 - rise (k_2 - x).
        let at = (h[2] - h[1] - rise * (k[2] - k[1])).over(fall - rise);
        let lower = (h[1] + fall * at).lower();
        let (upper, epsilon) =
            if h[1].to_f64() < h[2].to_f64() { (h[1], left) } else { (h[2], right) };
        Ok(Some(Power { lower, upper, epsilon }))
    }

    /// Bounds on the power, as close as they have to be to be `enough`, or as `bits` allow; `power` is about the answer.
    pub(crate) fn power(
        &self,
        power: f64,
        bits: f64,
        enough: impl Fn(&Power<N>) -> bool,
    ) -> Result<Power<N>, Obstacle> {
        // The best slope lies between (1-p)/(1-a) and p/a.
        let a = self.fpr;
        let more = (power - a).max(0.0);
        let low = 1.05 * (-more / (1.0 - a)).max(-1.0 + 1e-30).ln_1p() - 1e-13;
        let high = 1.05 * (more / a).ln_1p() + 1e-13;
        let explore = 26.0;
        let (mut left, mut right) = (low, high);
        let ratio = 0.618_033_988_75;
        let lines = RefCell::new(None);
        let value = |at: f64| {
            let upper = self.line(at, explore)?;
            // One line alone may be enough.
            let found = Power { lower: Ball::from_f64(self.fpr), upper, epsilon: at };
            if enough(&found) {
                lines.replace(Some(found));
            }
            Ok::<f64, Obstacle>(upper.to_f64())
        };
        let (mut one, mut two) = (right - ratio * (right - left), left + ratio * (right - left));
        let (mut at_one, mut at_two) = (value(one)?, value(two)?);
        for _ in 0..14 {
            if lines.borrow().is_some() {
                break;
            }
            if at_one < at_two {
                (right, two, at_two) = (two, one, at_one);
                one = right - ratio * (right - left);
                at_one = value(one)?;
            } else {
                (left, one, at_one) = (one, two, at_two);
                two = left + ratio * (right - left);
                at_two = value(two)?;
            }
        }
        if let Some(found) = lines.take() {
            return Ok(found);
        }
        let mut at = 0.5 * (left + right);
        let mut gap = right - left;
        let mut best: Option<Power<N>> = None;
        let mut offer = |found: Power<N>| {
            let better = |best: &Power<N>| {
                (found.upper - found.lower).to_f64() < (best.upper - best.lower).to_f64()
            };
            if best.as_ref().is_none_or(better) {
                best = Some(found);
            }
        };
        if left < 0.0 && right > 0.0 {
            // With a part that leaks nothing the curve has a corner at slope 1.
            for gap in [1e-6, 1e-9, 1e-12, 1e-15, 1e-18].map(|part| part * high) {
                let (found, _) = self.bounds(0.0, gap, bits)?;
                if enough(&found) {
                    return Ok(found);
                }
                offer(found);
            }
        }
        for _ in 0..7 {
            let (found, vertex) = self.bounds(at, gap, bits)?;
            if enough(&found) {
                return Ok(found);
            }
            offer(found);
            if !vertex.is_finite() || (vertex - at).abs() > 4.0 * gap {
                // Not a parabola here: look a little further.
                at = if vertex > at { at + gap } else { at - gap };
                continue;
            }
            let moved = (vertex - at).abs();
            at = vertex;
            gap = (gap * 0.02).max(4.0 * moved.min(gap * 0.25)).max(1e-11 * (high - low));
        }
        // Closer and closer to a corner, from a little more than where the search ended.
        if !self.model.is_pair() {
            return best.ok_or_else(|| "no slope was looked at".into());
        }
        (left, right) = (2.0 * left - right, 2.0 * right - left);
        for _ in 0..10 {
            let Some(found) = self.corner(left, right, bits)? else { break };
            if enough(&found) {
                return Ok(found);
            }
            offer(found);
            for _ in 0..3 {
                let third = (right - left) / 3.0;
                let (one, two) = (left + third, right - third);
                let (at_one, at_two) = (self.line(one, bits)?, self.line(two, bits)?);
                if (at_one - at_two).to_f64() < 0.0 { right = two } else { left = one }
            }
        }
        best.ok_or_else(|| "no slope was looked at".into())
    }
}

/// The power of the Gaussian pair at a false positive rate in (0, 1): the normal tail at z - mu, where the
/// tail at z is the rate.
pub(crate) fn of_gaussian<const N: usize>(mu: Ball<N>, fpr: f64) -> Result<Ball<N>, Obstacle> {
    Ok(normal_tail(normal_quantile(fpr)? - mu))
}

/// z with this normal tail, enclosed between two points at which the sign is certain.
pub(crate) fn normal_quantile<const N: usize>(fpr: f64) -> Result<Ball<N>, Obstacle> {
    let target = Ball::<N>::from_f64(fpr);
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..52 {
        let middle = 0.5 * (low + high);
        if normal_tail(Ball::<N>::from_f64(middle)).to_f64() > fpr {
            low = middle;
        } else {
            high = middle;
        }
    }
    let mut z = Ball::<N>::from_f64(0.5 * (low + high));
    let scale = Ball::pi().scaled(1).root();
    let mut reach = z.mid.unit();
    for _ in 0..4 {
        let inverse_density = z.squared().scaled(-1).exponential() * scale;
        let change = (normal_tail(z) - target) * inverse_density;
        z = Ball::exact((z + change).mid);
        reach = change.above().max(z.mid.unit());
    }
    for _ in 0..40 {
        let gap = Ball::exact(Float::from_magnitude(reach));
        let (left, right) = (Ball::exact((z - gap).mid), Ball::exact((z + gap).mid));
        if target.is_below(&normal_tail(left)) && normal_tail(right).is_below(&target) {
            return Ok(left.hull(&right));
        }
        reach = reach.scaled(2);
    }
    Err(Obstacle::precision("the threshold of the test could not be enclosed"))
}
