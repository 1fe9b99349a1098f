//! Powers of chains from below: no slope allows less.
//!
//! What a claim states of a chain of n records ([`crate::chain`]) is at slope y = x^n >= 1
//!
//! ```text
//! B(y) = sum over i < n - 2 of x^i H_i(x) + x^(n-2) C(x^2),
//! ```
//!
//! H_i the profiles of single records and C the least bound of the last two: each is convex in its own argument and falls, but their sum need not
//! be convex. The power at a rate a is the least of h(y) = min(1, B(y)) + a y, and below slope 1, at 1/y, of 1 - 1/y + min(1, B'(y))/y + a/y, B'
//! that of the chain seen from its other end. So it is at least e if
//!
//! ```text
//! B(y) + a y >= e   and   B'(y) + (1-e) y >= 1 - a   for every y >= 1.
//! ```
//!
//! Where the second term alone is that large nothing is left to show. Up to there the range is cut into cells. On a cell each of the convex functions lies
//! above the secants of the gaps beside it. With one of them in the place of each function the left side becomes a polynomial in x, at least its
//! value at the middle less its slope there times half of the width r and its largest second derivative times r^2/2. Or each function is taken at
//! the end of the cell where it is least. Cells that this does not show are halved.

use crate::arithmetic::Ball;
use crate::chain::{Care, Chain};
use crate::model::Order;
use crate::obstacle::Obstacle;

/// Points at which a chain is looked at, for one side of slope 1.
const MOST_POINTS: usize = 500;
/// Parts of ln y below this are not halved.
const SMALLEST: f64 = 4e-9;

/// What the left side is made of, at one place.
struct Point<const N: usize> {
    /// ln x.
    part: f64,
    x: Ball<N>,
    /// H_0, ..., H_(n-3), C for each order.
    pieces: Vec<Vec<Ball<N>>>,
}

/// B(y) + s y >= v for every y >= 1?
struct Side<'a, const N: usize> {
    chain: &'a Chain<N>,
    orders: Vec<Order>,
    s: Ball<N>,
    v: Ball<N>,
    care: Care,
    points: Vec<Point<N>>,
}

/// Whether the power of a chain at `rate` is shown to be at least `power`.
///
/// # Errors
/// Why a piece cannot be enclosed.
pub(crate) fn reach<const N: usize>(
    chain: &Chain<N>,
    orders: &[Order],
    (rate, power): (Ball<N>, Ball<N>),
    bits: f64,
) -> Result<bool, Obstacle> {
    let one = Ball::one();
    let turned = orders.iter().map(|order| order.reversed()).collect();
    for (orders, s, v) in [(orders.to_vec(), rate, power), (turned, one - power, one - rate)] {
        let care = Care { log_scale: v.to_f64().max(1e-300).ln(), bits };
        if !(Side { chain, orders, s, v, care, points: Vec::new() }).holds()? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl<const N: usize> Side<'_, N> {
    fn links(&self) -> u64 {
        self.chain.records() as u64
    }

    /// Looks at a place, unless it was looked at; whether the left side may be large enough there.
    fn look(&mut self, part: f64) -> Result<bool, Obstacle> {
        let index = self.points.partition_point(|point| point.part < part);
        if self.points.get(index).is_some_and(|point| point.part == part) {
            return Ok(true);
        }
        let x = Ball::from_f64(part).exponential();
        let each = self.orders.iter();
        let pieces = each
            .map(|order| self.chain.pieces(*order, part, self.care))
            .collect::<Result<Vec<_>, _>>()?;
        let whole = |pieces: &Vec<Ball<N>>| {
            let sum =
                (0u64..).zip(pieces).fold(Ball::ZERO, |sum, (i, one)| sum + x.power(i) * *one);
            sum + self.s * x.power(self.links())
        };
        let enough = pieces.iter().any(|pieces| !whole(pieces).is_below(&self.v));
        self.points.insert(index, Point { part, x, pieces });
        Ok(enough)
    }

    fn holds(&mut self) -> Result<bool, Obstacle> {
        if self.v.is_at_most(&self.s) {
            return Ok(true);
        }
        let records = self.links() as f64;
        let most = self.v.over(self.s).logarithm().to_f64() / records * (1.0 + 1e-9) + 1e-12;
        let last = Ball::from_f64(most).exponential().power(self.links());
        if !(most > 16.0 * SMALLEST) || !self.v.is_at_most(&(self.s * last)) {
            return Ok(false);
        }
        let mut cells = Vec::new();
        for i in 0..8 {
            let at = |i: i32| most * f64::from(i) / 8.0;
            if !self.look(at(i))? {
                return Ok(false);
            }
            cells.push((at(i), at(i + 1)));
        }
        self.look(most)?;
        while let Some((left, right)) = cells.pop() {
            let index = self.points.partition_point(|point| point.part < left);
            if (0..self.orders.len()).any(|order| self.is_enough(index, order)) {
                continue;
            }
            let (middle, width) = (0.5 * (left + right), right - left);
            if width < SMALLEST || self.points.len() > MOST_POINTS {
                return Ok(false);
            }
            // The secants of wide gaps fall far below.
            let before = index.checked_sub(1).map(|index| self.points[index].part);
            let after = self.points.get(index + 2).map(|point| point.part);
            if before.is_some_and(|before| left - before > 0.8 * width) {
                self.look(left - 0.5 * width)?;
            }
            if after.is_none_or(|after| after - right > 0.8 * width) {
                self.look(right + 0.5 * width)?;
            }
            if !self.look(middle)? {
                return Ok(false);
            }
            cells.extend([(left, middle), (middle, right)]);
        }
        Ok(true)
    }

    /// Whether the left side is large enough between two neighbours.
    fn is_enough(&self, index: usize, order: usize) -> bool {
        let [one, two] = [&self.points[index], &self.points[index + 1]];
        let (records, pieces) = (self.links(), &two.pieces[order]);
        // Each at its lower end.
        let least = (0u64..)
            .zip(pieces)
            .fold(self.s * one.x.power(records), |sum, (i, piece)| sum + one.x.power(i) * *piece);
        if self.v.is_at_most(&least) {
            return true;
        }
        let width = two.x - one.x;
        let (middle, whole) = (one.x + width.scaled(-1), one.x.hull(&two.x));
        // j x^(j-1), and j (j-1) x^(j-2).
        let first =
            |x: Ball<N>, j: u64| if j < 1 { Ball::ZERO } else { x.power(j - 1).times_u64(j) };
        let second = |x: Ball<N>, j: u64| {
            if j < 2 { Ball::ZERO } else { x.power(j - 2).times_u64(j * (j - 1)) }
        };
        let mut value = self.s * middle.power(records);
        let mut slope = self.s * first(middle, records);
        let mut bend = self.s * second(whole, records);
        for i in 0..pieces.len() {
            let (j, last) = (i as u64, i + 1 == pieces.len());
            let argument = |x: Ball<N>| if last { x.squared() } else { x };
            // Lines through two neighbours, from the one that is nearer.
            let line = |near: usize, far: usize| {
                let [near, far] = [&self.points[near], &self.points[far]];
                let (a, b) = (near.pieces[order][i], far.pieces[order][i]);
                let rise = (a - b).over(argument(near.x) - argument(far.x));
                (argument(near.x), a, rise)
            };
            let left = (index > 0).then(|| line(index, index - 1));
            let right = (index + 2 < self.points.len()).then(|| line(index + 1, index + 2));
            let at = |(anchor, height, rise): (Ball<N>, Ball<N>, Ball<N>), x: Ball<N>| {
                height + rise * (argument(x) - anchor)
            };
            let lower = |line: &(Ball<N>, Ball<N>, Ball<N>)| at(*line, middle).lower();
            let better = |a: (Ball<N>, Ball<N>, Ball<N>), b: (Ball<N>, Ball<N>, Ball<N>)| {
                if lower(&a).is_below(&lower(&b)) { b } else { a }
            };
            let Some(line) = left.into_iter().chain(right).reduce(better) else { return false };
            let (here, rise) = (at(line, middle), line.2);
            value = value + middle.power(j) * here;
            if last {
                slope = slope + first(middle, j) * here + (rise * middle.power(j + 1)).scaled(1);
                let turn = (rise * whole.power(j)).times_u64(4 * j + 2);
                bend = bend + second(whole, j) * at(line, whole) + turn;
            } else {
                slope = slope + first(middle, j) * here + middle.power(j) * rise;
                bend =
                    bend + second(whole, j) * at(line, whole) + (first(whole, j) * rise).scaled(1);
            }
        }
        let half = width.scaled(-1);
        let off = (slope * half).above().plus((bend * half.squared()).scaled(-1).above());
        self.v.is_at_most(&value.widened(off))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use vocabulary::{Adjacency, LensName, Run, Sampling};

    /// E(W - k)_+ of removing, or E(1 - k W)_+ of adding, one batch of ten: W = 1 - q + q e^((2x-1)/2s^2), by Simpson's rule in doubles on
    /// the side of the corner where there is something.
    fn of_one_record(noise: f64, q: f64, k: f64, order: Order) -> f64 {
        let square = noise * noise;
        let w = |x: f64| 1.0 - q + q * ((2.0 * x - 1.0) / (2.0 * square)).exp();
        let level = if order == Order::Remove { k } else { 1.0 / k };
        if level <= 1.0 - q {
            return if order == Order::Remove { 1.0 - k } else { 0.0 };
        }
        let corner = 0.5 + square * ((level - 1.0) / q).ln_1p();
        let (from, to) = match order {
            Order::Remove => (corner, corner.max(0.0) + 1.0 + 14.0 * noise),
            Order::Add => (corner.min(0.0) - 14.0 * noise, corner),
        };
        let value = |x: f64| {
            let size = if order == Order::Remove { w(x) - k } else { 1.0 - k * w(x) };
            size * (-0.5 * x * x / square).exp() / (noise * std::f64::consts::TAU.sqrt())
        };
        let n = 4000;
        let h = (to - from) / f64::from(n);
        let inner = (1..n).map(|i| (2.0 + 2.0 * f64::from(i % 2)) * value(from + f64::from(i) * h));
        (value(from) + inner.sum::<f64>() + value(to)) * h / 3.0
    }

    /// Three records, so that the bound need not be convex: the least of it over slopes and splits, in doubles.
    #[test]
    fn the_least_slope_by_quadrature() {
        let (noise, q, rate) = (1.7, 0.1, 0.03);
        let one = |k: f64, order: Order| of_one_record(noise, q, k, order);
        let whole = |y: f64, order: Order| {
            let x = y.cbrt();
            // The least over the split of the last two.
            let two = |g: f64| one(g, order) + g * one(x * x / g, order);
            let (mut low, mut high) = (1.0, x * x);
            for _ in 0..40 {
                let third = (high - low) / 3.0;
                if two(low + third) < two(high - third) { high -= third } else { low += third }
            }
            one(x, order) + x * two(0.5 * (low + high))
        };
        let line = |slope: f64| {
            let k = slope.exp();
            // The chain from its other end has the other order.
            let bound = |order: Order| match order {
                _ if k >= 1.0 => whole(k, order),
                Order::Remove => 1.0 - k + k * whole(1.0 / k, Order::Add),
                Order::Add => 1.0 - k + k * whole(1.0 / k, Order::Remove),
            };
            bound(Order::Remove).max(bound(Order::Add)) + k * rate
        };
        let at = |i: i32| line(-3.0 + 0.01 * f64::from(i));
        let best = (0..700).fold(0, |best, i| if at(i) < at(best) { i } else { best });
        let (mut low, mut high) =
            (-3.0 + 0.01 * f64::from(best - 1), -3.0 + 0.01 * f64::from(best + 1));
        for _ in 0..40 {
            let third = (high - low) / 3.0;
            if line(low + third) < line(high - third) { high -= third } else { low += third }
        }
        let power = line(0.5 * (low + high));
        let run = Run::builder().sampling(Sampling::BallsAndBins).adjacency(Adjacency::ZeroOut);
        let run = run.group_size(3).phase(noise, q, 1).build().unwrap();
        let model = Model::<2>::new(&run, run.phases(), Some(LensName::Composition), 100).unwrap();
        let Model::Chain(chain) = model else { panic!("three records are a chain") };
        let reaches = |power: f64| {
            let at = (Ball::from_f64(rate), Ball::from_f64(power));
            reach(&chain, &[Order::Remove, Order::Add], at, 60.0).unwrap()
        };
        assert!(reaches(power * (1.0 - 1e-6)), "{power}");
        assert!(!reaches(power * (1.0 + 1e-6)), "{power}");
    }
}
