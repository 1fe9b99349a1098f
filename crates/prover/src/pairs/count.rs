//! The law of how often the records are used: a sum of binomials, as a window of weights.
//!
//! Within a binomial of n draws at rate q, consecutive probabilities have the ratio
//! (n-k) q / ((k+1)(1-q)). Weights relative to the one at the mode are products of such ratios; their
//! sum, with the tails bounded by geometric series (the ratios fall with k), is the reciprocal of
//! the mode's probability. No factorial is needed, and nothing cancels.

//!
//! Laws with many values are summed at every `stride`-th of them ([`super::smooth`]).

use super::smooth::Smooth;
use crate::arithmetic::{Ball, Magnitude};
use crate::obstacle::{Obstacle, spend};
use std::collections::{BTreeMap, HashMap};

pub struct Count<const N: usize> {
    /// Weights belong to first, first + stride, ...
    pub first: u64,
    pub stride: u64,
    pub weights: Vec<Ball<N>>,
    /// At least what a sum over the weights is off, for functions between 0 and 1.
    pub outside: Magnitude,
    /// E K and E K^2 of the whole law, where they are known.
    pub moments: Option<(Ball<N>, Ball<N>)>,
}

/// Longest window.
const LONGEST: usize = 60_000;
/// Pairs of values of which a sum of laws may consist.
const MOST_PAIRS: usize = 8_000_000;
/// Units of work of one value of a smooth law, and of one product.
const VALUE: f64 = 0.02;
const PRODUCT: f64 = 2e-4;

impl<const N: usize> Count<N> {
    pub fn certain(uses: u64) -> Self {
        Self {
            first: uses,
            stride: 1,
            weights: vec![Ball::one()],
            outside: Magnitude::ZERO,
            moments: None,
        }
    }

    /// Binomial(n, q), 0 < q < 1, with less than about 2^-depth of mass left out.
    pub fn binomial(n: u64, q: f64, depth: i64) -> Option<Self> {
        let (rate, rest) = (Ball::from_f64(q), Ball::one() - Ball::from_f64(q));
        let odds = rate.over(rest);
        let ratio = |k: u64| odds.times_u64(n - k).over(Ball::from_u64(k + 1));
        let mode = ((n as f64 * q).floor() as u64).min(n);
        let least = Magnitude::power_of_two(-depth - 8);
        let mut above = vec![Ball::<N>::one()];
        let mut k = mode;
        let mut value = Ball::one();
        let mut lost = Magnitude::ZERO;
        while k < n {
            let factor = ratio(k);
            if value.above() < least && factor.is_below(&Ball::one()) {
                // The ratios fall: a geometric series.
                lost = (value * factor).over(Ball::one() - factor).above();
                if !lost.is_infinite() && lost < least.scaled(20) {
                    break;
                }
            }
            value = value * factor;
            above.push(value);
            k += 1;
            lost = Magnitude::ZERO;
            if above.len() > LONGEST {
                return None;
            }
        }
        let mut below = Vec::new();
        let (mut k, mut value) = (mode, Ball::one());
        let mut lost_below = Magnitude::ZERO;
        while k > 0 {
            let factor = ratio(k - 1).reciprocal();
            if value.above() < least && factor.is_below(&Ball::one()) {
                lost_below = (value * factor).over(Ball::one() - factor).above();
                if !lost_below.is_infinite() && lost_below < least.scaled(20) {
                    break;
                }
            }
            value = value * factor;
            below.push(value);
            k -= 1;
            lost_below = Magnitude::ZERO;
            if below.len() > LONGEST {
                return None;
            }
        }
        let first = k;
        below.reverse();
        below.append(&mut above);
        let lost = lost.plus(lost_below);
        let sum = below.iter().fold(Ball::up_to(lost), |sum, weight| sum + *weight);
        let scale = sum.reciprocal();
        let outside = scale.above().times(lost);
        let weights = below.into_iter().map(|weight| weight * scale).collect();
        Some(Self { first, stride: 1, weights, outside, moments: None })
    }

    /// The law of a sum of binomials and a certain number, for functions with this v ([`super::smooth`]).
    ///
    /// # Errors
    /// Where it has too many values.
    pub fn sum(
        certain: u64,
        binomials: &[(f64, u64)],
        depth: i64,
        v: f64,
    ) -> Result<Self, Obstacle> {
        let (mut mean, mut variance) = (Ball::from_u64(certain), Ball::ZERO);
        for (q, n) in binomials {
            let rate = Ball::from_f64(*q);
            mean = mean + rate.times_u64(*n);
            variance = variance + (rate * (Ball::one() - rate)).times_u64(*n);
        }
        let law = Self::law_of_sum(certain, binomials, depth, v)?;
        Ok(Self { moments: Some((mean, mean.squared() + variance)), ..law })
    }

    fn law_of_sum(
        certain: u64,
        binomials: &[(f64, u64)],
        depth: i64,
        v: f64,
    ) -> Result<Self, Obstacle> {
        let mut smooth: Vec<(u64, f64, Smooth<N>)> = Vec::new();
        let mut rest = Self::certain(certain);
        for (q, n) in binomials {
            match Smooth::new(*n, *q, depth, v, 1) {
                Some(law) => smooth.push((*n, *q, law)),
                None => {
                    let law = Self::binomial(*n, *q, depth);
                    rest = law.and_then(|law| rest.plus(&law)).ok_or(TOO_MANY)?;
                }
            }
        }
        // The law of all is as smooth as its widest part. Strides are multiples of the least one, so sums of
        // values meet.
        smooth.sort_by_key(|(.., law)| law.stride);
        let Some(unit) = smooth.first().map(|(.., law)| law.stride) else { return Ok(rest) };
        let mut laws = smooth
            .into_iter()
            .map(|(n, q, law)| match law.stride % unit {
                0 => Ok(law),
                _ => Smooth::new(n, q, depth, v, unit).ok_or(TOO_MANY),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let Some(widest) = laws.pop() else { return Ok(rest) };
        let mut points: BTreeMap<u64, Ball<N>> = rest.points().collect();
        let mut outside = rest.outside;
        for law in &laws {
            let count = ((law.last - law.first) / law.stride + 1) as usize;
            if points.len() * count > MOST_PAIRS {
                return Err(TOO_MANY.into());
            }
            spend(VALUE * count as f64 + PRODUCT * (points.len() * count) as f64)?;
            let mut sums: BTreeMap<u64, Ball<N>> = BTreeMap::new();
            for j in (law.first..=law.last).step_by(law.stride as usize) {
                let value = law.at(j);
                for (at, weight) in &points {
                    let sum = sums.entry(at + j).or_insert(Ball::ZERO);
                    *sum = *sum + *weight * value;
                }
            }
            points = sums;
            outside = outside.plus(law.error);
        }
        Self::spread(&widest, &points, outside)
    }

    /// The law of a smooth one and another, which is given by its points: at every stride-th value x, the sum over the
    /// points of their weights times the smooth law at x less the point. For each point that is the sum of
    /// [`super::smooth`] with a shifted function.
    fn spread(
        law: &Smooth<N>,
        points: &BTreeMap<u64, Ball<N>>,
        outside: Magnitude,
    ) -> Result<Self, Obstacle> {
        let (Some((least, _)), Some((most, _))) =
            (points.first_key_value(), points.last_key_value())
        else {
            return Err("a law has at least one value".into());
        };
        let (first, last) = (law.first + least, law.last + most);
        let each = (law.last - law.first) / law.stride + 1;
        if points.len() as u64 * each > MOST_PAIRS as u64 {
            return Err(TOO_MANY.into());
        }
        let mut known: HashMap<u64, Ball<N>> = HashMap::new();
        let mut weights = Vec::new();
        for x in (first..=last).step_by(law.stride as usize) {
            let mut sum = Ball::ZERO;
            let mut before: Option<(u64, Ball<N>)> = None;
            let (mut values, mut products) = (0, 0);
            // Those whose x less the point lies in the window.
            for (at, weight) in points.range(..=x - law.first).rev() {
                let j = x - at;
                if j > law.last {
                    break;
                }
                // Neighbours by their ratio, the others once.
                let value = match before {
                    Some((last, value)) if last + 1 == j => value * law.ratio(last),
                    _ => *known.entry(j).or_insert_with(|| {
                        values += 1;
                        law.at(j)
                    }),
                };
                products += 1;
                before = Some((j, value));
                sum = sum + *weight * value;
            }
            spend(VALUE * f64::from(values) + PRODUCT * f64::from(products))?;
            weights.push(sum);
        }
        // Sums of the other weights are at most 2.
        let outside = outside.scaled(1).plus(law.error.scaled(1));
        Ok(Self { first, stride: law.stride, weights, outside, moments: None })
    }

    fn points(&self) -> impl Iterator<Item = (u64, Ball<N>)> + '_ {
        let at = |(index, weight): (u64, &Ball<N>)| (self.first + index * self.stride, *weight);
        (0u64..).zip(&self.weights).map(at)
    }

    /// The law of the sum of two independent counts, both without a stride.
    pub(super) fn plus(&self, other: &Self) -> Option<Self> {
        let length = self.weights.len() + other.weights.len() - 1;
        if self.weights.len() * other.weights.len() > 4_000_000 {
            return None;
        }
        let mut weights = vec![Ball::ZERO; length];
        for (i, a) in self.weights.iter().enumerate() {
            for (j, b) in other.weights.iter().enumerate() {
                weights[i + j] = weights[i + j] + *a * *b;
            }
        }
        Some(Self {
            first: self.first + other.first,
            stride: 1,
            weights,
            outside: self.outside.plus(other.outside),
            moments: None,
        })
    }
}

const TOO_MANY: &str = "the law of the count has too many values";
