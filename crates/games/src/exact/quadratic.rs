//! Linear losses with a quadratic regulariser (P4 section 4.2), exactly: the last iterate is
//! X + N(0, s^2), X = sum_i (1 - alpha)^i Bernoulli_i(q), s^2 = sigma^2 sum_i (1 - alpha)^(2i).
//!
//! X has up to 2^T values. They are convolved smallest weight first and kept exactly while they
//! are few; when they become too many they are moved to a grid, up for the upper bound and down
//! for the lower one. Moving shifts up can only raise the hockey-stick divergence
//! (Choquette-Choo et al. 2024, Lemma 4.5), so the two enclose the truth. For alpha = 1/2 the
//! weights are dyadic and the grid costs at most one cell.

use super::ShiftedGaussians;
use super::mixture::epsilon_by_bisection;
use accounting::{AccountingError, Order, Pair};
use vocabulary::Interval;

/// More values than this are moved to the grid.
const MOST_ATOMS: usize = 1 << 16;

/// The pair of the quadratic game, from below and from above.
#[derive(Clone, Debug)]
pub struct QuadraticPair {
    below: ShiftedGaussians,
    above: ShiftedGaussians,
}

#[derive(Clone, Copy)]
enum Move {
    Up,
    Down,
}

impl QuadraticPair {
    /// The pair of `steps` steps with regulariser alpha |m|^2/(2 rate).
    ///
    /// # Errors
    /// `InvalidInput` when a parameter is out of range, `OutsideDomain` beyond 10^5 steps.
    ///
    /// ```
    /// use accounting::{Order, Pair};
    /// let pair = games::exact::QuadraticPair::new(0.5, 1.0, 0.1, 3)?;
    /// let epsilon = pair.epsilon(1e-6, Order::Remove)?;
    /// assert!((epsilon.value - 2.27487).abs() < 5e-6 && epsilon.width() < 1e-9);
    /// # Ok::<(), accounting::AccountingError>(())
    /// ```
    pub fn new(
        alpha: f64,
        noise_multiplier: f64,
        sample_rate: f64,
        steps: u64,
    ) -> Result<Self, AccountingError> {
        let invalid = |reason: String| Err(AccountingError::invalid(reason));
        if !(0.0..=1.0).contains(&alpha) {
            return invalid(format!("alpha {alpha} is outside [0, 1]"));
        }
        if !(sample_rate > 0.0 && sample_rate <= 1.0) {
            return invalid(format!("sample rate {sample_rate} is outside (0, 1]"));
        }
        if !(noise_multiplier > 0.0 && noise_multiplier.is_finite()) || steps == 0 {
            return invalid("noise and steps must be positive".to_owned());
        }
        if steps > 100_000 {
            let reason = format!("{steps} steps of the quadratic game are more than 100000");
            return Err(AccountingError::outside_domain(reason));
        }
        // Roundings of the weights, the sums and the variance: all act like a scale of the noise.
        let slack = (4.0 * steps as f64 + 16.0) * f64::EPSILON;
        let weights = weights(alpha, steps);
        let variance: f64 = weights.iter().rev().map(|w| w * w).sum();
        let deviation = noise_multiplier * variance.sqrt();
        let weight_error = (4.0 * steps as f64 + 8.0) * f64::EPSILON;
        let up = convolve(&weights, sample_rate, Move::Up);
        let down = convolve(&weights, sample_rate, Move::Down);
        Ok(Self {
            below: ShiftedGaussians::new(down, deviation * (1.0 + slack), weight_error)?,
            above: ShiftedGaussians::new(up, deviation * (1.0 - slack), weight_error)?,
        })
    }

    /// The upper pair after the paper's rounding for its Figure 5: shifts below 5e-4, zero
    /// included, become 5e-4; then each becomes the next integer power of 1.05.
    ///
    /// # Errors
    /// Never for a pair that exists.
    pub fn rounded_as_printed(&self) -> Result<ShiftedGaussians, AccountingError> {
        let ln_base = 1.05f64.ln();
        let mut atoms: Vec<(f64, f64)> = Vec::new();
        for (x, w) in self.above.atoms() {
            let power = (x.max(5e-4).ln() / ln_base - 1e-12).ceil() as i32;
            let shift = 1.05f64.powi(power);
            match atoms.last_mut() {
                Some(last) if last.0 == shift => last.1 += w,
                _ => atoms.push((shift, *w)),
            }
        }
        ShiftedGaussians::new(atoms, self.above.deviation(), self.above.weight_error())
    }

    fn both(
        &self,
        question: impl Fn(&ShiftedGaussians) -> Result<Interval, AccountingError>,
    ) -> Result<Interval, AccountingError> {
        let (low, high) = (question(&self.below)?, question(&self.above)?);
        let (first, second) = if low.value <= high.value { (low, high) } else { (high, low) };
        let value = 0.5 * (first.value + second.value);
        Ok(Interval { lower: first.lower.min(value), value, upper: second.upper.max(value) })
    }
}

impl Pair for QuadraticPair {
    fn delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError> {
        self.both(|pair| pair.delta(epsilon, order))
    }

    fn one_minus_delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError> {
        self.both(|pair| pair.one_minus_delta(epsilon, order))
    }

    fn epsilon(&self, delta: f64, order: Order) -> Result<Interval, AccountingError> {
        self.both(|pair| epsilon_by_bisection(delta, |epsilon| pair.delta(epsilon, order)))
    }

    fn tpr(&self, fpr: f64, order: Order) -> Result<Interval, AccountingError> {
        self.both(|pair| pair.tpr(fpr, order))
    }

    fn fnr(&self, fpr: f64, order: Order) -> Result<Interval, AccountingError> {
        self.both(|pair| pair.fnr(fpr, order))
    }
}

/// (1 - alpha)^i.
fn weights(alpha: f64, steps: u64) -> Vec<f64> {
    let mut weight = 1.0;
    (0..steps)
        .map(|_| {
            let here = weight;
            weight *= 1.0 - alpha;
            here
        })
        .collect()
}

/// The law of the weighted sum, moved up or down where it has too many values.
fn convolve(weights: &[f64], sample_rate: f64, direction: Move) -> Vec<(f64, f64)> {
    let total: f64 = weights.iter().sum();
    // A power of two, so that dyadic weights stay on the grid.
    let cell = 2f64.powi((2.0 * total / MOST_ATOMS as f64).log2().ceil() as i32);
    let mut atoms = vec![(0.0, 1.0)];
    for weight in weights.iter().rev() {
        atoms = add(&atoms, *weight, sample_rate);
        if atoms.len() > MOST_ATOMS {
            snap(&mut atoms, cell, direction);
        }
    }
    atoms
}

/// Merges two sorted lists: without and with the weight.
fn add(atoms: &[(f64, f64)], weight: f64, sample_rate: f64) -> Vec<(f64, f64)> {
    let mut merged: Vec<(f64, f64)> = Vec::with_capacity(2 * atoms.len());
    let mut push = |x: f64, w: f64| match merged.last_mut() {
        Some(last) if last.0 == x => last.1 += w,
        _ if w == 0.0 => {}
        _ => merged.push((x, w)),
    };
    let (mut without, mut with) = (atoms.iter().peekable(), atoms.iter().peekable());
    loop {
        match (without.peek(), with.peek()) {
            (Some((x, w)), Some((y, _))) if *x <= y + weight => {
                push(*x, w * (1.0 - sample_rate));
                without.next();
            }
            (_, Some((y, w))) => {
                push(y + weight, w * sample_rate);
                with.next();
            }
            (Some((x, w)), None) => {
                push(*x, w * (1.0 - sample_rate));
                without.next();
            }
            (None, None) => break,
        }
    }
    merged
}

fn snap(atoms: &mut Vec<(f64, f64)>, cell: f64, direction: Move) {
    let mut snapped: Vec<(f64, f64)> = Vec::with_capacity(atoms.len());
    for (x, w) in atoms.iter() {
        let place = match direction {
            Move::Up => (x / cell).ceil() * cell,
            Move::Down => (x / cell).floor() * cell,
        };
        match snapped.last_mut() {
            Some(last) if last.0 == place => last.1 += w,
            _ => snapped.push((place, *w)),
        }
    }
    *atoms = snapped;
}
