//! The printed repeaters' ceiling (methods of P4 4.4): one bit per step is Bin(T, a1) against
//! Bin(T, a0), exactly. a0 = P(N(0, sigma^2) > t), a1 = (1 - q) a0 + q P(N(1, sigma^2) > t).

use accounting::Order;
use numerics::special::{Binomial, normal_sf};

/// The two binomial laws of the number of bits set.
#[derive(Clone, Debug)]
pub struct BitCeiling {
    with_canary: Vec<f64>,
    without_canary: Vec<f64>,
}

/// The ceiling of the printed variant with this threshold.
///
/// ```
/// use accounting::Order;
/// let ceiling = games::exact::bit_ceiling(0.8, 0.1, 50, 0.5);
/// assert!((ceiling.epsilon(1e-5) - 3.28).abs() < 0.005);
/// ```
pub fn bit_ceiling(
    noise_multiplier: f64,
    sample_rate: f64,
    steps: u64,
    threshold: f64,
) -> BitCeiling {
    let a0 = normal_sf(threshold / noise_multiplier);
    let hit = normal_sf((threshold - 1.0) / noise_multiplier);
    let a1 = (1.0 - sample_rate) * a0 + sample_rate * hit;
    BitCeiling { with_canary: binomial(steps, a1), without_canary: binomial(steps, a0) }
}

/// The threshold with the largest ceiling at this delta, and that ceiling: every 0.01 from -1 to
/// 1 + 6 sigma.
pub fn best_bit_threshold(
    noise_multiplier: f64,
    sample_rate: f64,
    steps: u64,
    delta: f64,
) -> (f64, f64) {
    let last = ((2.0 + 6.0 * noise_multiplier) / 0.01) as u32;
    (0..=last)
        .map(|i| -1.0 + 0.01 * f64::from(i))
        .map(|t| (t, bit_ceiling(noise_multiplier, sample_rate, steps, t).epsilon(delta)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap_or((0.0, 0.0))
}

fn binomial(steps: u64, rate: f64) -> Vec<f64> {
    let law = Binomial::new(steps, rate);
    (0..=steps)
        .map(|k| match &law {
            Some(law) => law.log_pmf(k as f64).0.exp(),
            None => f64::from((rate >= 1.0) == (k == steps)),
        })
        .collect()
}

impl BitCeiling {
    /// Probabilities of 0..=T bits with the canary.
    pub fn with_canary(&self) -> &[f64] {
        &self.with_canary
    }

    /// Probabilities of 0..=T bits without the canary.
    pub fn without_canary(&self) -> &[f64] {
        &self.without_canary
    }

    fn laws(&self, order: Order) -> (&[f64], &[f64]) {
        match order {
            Order::Remove => (&self.with_canary, &self.without_canary),
            Order::Add => (&self.without_canary, &self.with_canary),
        }
    }

    /// The hockey-stick divergence.
    pub fn delta(&self, epsilon: f64, order: Order) -> f64 {
        let (p, q) = self.laws(order);
        let factor = epsilon.exp();
        p.iter().zip(q).map(|(p, q)| (p - factor * q).max(0.0)).sum()
    }

    /// The larger epsilon of both orders at this delta.
    pub fn epsilon(&self, delta: f64) -> f64 {
        let worst =
            |epsilon: f64| self.delta(epsilon, Order::Remove).max(self.delta(epsilon, Order::Add));
        if worst(0.0) <= delta {
            return 0.0;
        }
        let mut high = 1.0;
        while worst(high) > delta && high < 1e4 {
            high *= 2.0;
        }
        let mut low = 0.0;
        while high - low > 1e-12 * high {
            let middle = 0.5 * (low + high);
            if worst(middle) > delta { low = middle } else { high = middle }
        }
        high
    }

    /// The miss rate of the test "at least k bits" that has exactly this rate of false alarms
    /// (randomised at the edge).
    pub fn fnr(&self, fpr: f64) -> f64 {
        let (mut alarms, mut hits) = (0.0, 0.0);
        for (p, q) in self.with_canary.iter().zip(&self.without_canary).rev() {
            if alarms + q >= fpr {
                let share = if *q > 0.0 { (fpr - alarms) / q } else { 0.0 };
                return 1.0 - (hits + share * p);
            }
            alarms += q;
            hits += p;
        }
        0.0
    }
}
