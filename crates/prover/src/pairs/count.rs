//! The law of how often the records are used: a sum of binomials, as a window of weights.
//!
//! Within a binomial of n draws at rate q, consecutive probabilities have the ratio
//! (n-k) q / ((k+1)(1-q)). Weights relative to the one at the mode are products of such ratios; their
//! sum, with the tails bounded by geometric series (the ratios fall with k), is the reciprocal of
//! the mode's probability. No factorial is needed, and nothing cancels.

use crate::arithmetic::{Ball, Magnitude};

pub struct Count<const N: usize> {
    pub first: u64,
    pub weights: Vec<Ball<N>>,
    /// At least the mass that is left out.
    pub outside: Magnitude,
}

/// Longest window.
const LONGEST: usize = 60_000;

impl<const N: usize> Count<N> {
    pub fn certain(uses: u64) -> Self {
        Self { first: uses, weights: vec![Ball::one()], outside: Magnitude::ZERO }
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
        Some(Self { first, weights, outside })
    }

    /// The law of the sum of two independent counts.
    pub fn plus(&self, other: &Self) -> Option<Self> {
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
            weights,
            outside: self.outside.plus(other.outside),
        })
    }
}
