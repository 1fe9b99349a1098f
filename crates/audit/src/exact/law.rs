//! Sums of binomial probabilities.

use numerics::beta::binomial_log_pmf;

/// A binomial law as sums of its probabilities within nine standard deviations.
pub(super) struct Law {
    first: u64,
    /// Sums of the probabilities from `first`.
    sums: Vec<f64>,
    /// Sums from the other end.
    rest: Vec<f64>,
}

impl Law {
    pub(super) fn new(n: u64, p: f64) -> Self {
        let p = p.clamp(0.0, 1.0);
        if p <= 0.0 || p >= 1.0 {
            let first = if p <= 0.0 { 0 } else { n };
            return Self { first, sums: vec![1.0], rest: vec![1.0] };
        }
        let (first, masses) = window(n, p);
        let mut rest = vec![0.0; masses.len()];
        let mut sum = 0.0;
        for (place, mass) in masses.iter().enumerate().rev() {
            sum += mass;
            rest[place] = sum;
        }
        let mut sums = masses;
        let mut sum = 0.0;
        for mass in &mut sums {
            sum += *mass;
            *mass = sum;
        }
        Self { first, sums, rest }
    }

    /// P(X <= k).
    pub(super) fn up_to(&self, k: u64) -> f64 {
        if k < self.first {
            return 0.0;
        }
        let place = ((k - self.first) as usize).min(self.sums.len() - 1);
        self.sums[place]
    }

    /// P(X >= k).
    pub(super) fn from(&self, k: u64) -> f64 {
        let place = k.saturating_sub(self.first) as usize;
        self.rest.get(place).copied().unwrap_or(0.0)
    }
}

/// The probabilities of Binomial(n, p) within nine standard deviations, from the first count on.
pub(crate) fn window(n: u64, p: f64) -> (u64, Vec<f64>) {
    let size = n as f64;
    let spread = 9.0 * (size * p * (1.0 - p)).sqrt() + 20.0;
    let first = (size * p - spread).floor().max(0.0) as u64;
    let last = ((size * p + spread).ceil() as u64).min(n);
    let mode = (((n + 1) as f64 * p) as u64).clamp(first, last);
    let odds = p / (1.0 - p);
    let mut masses = vec![0.0; (last - first + 1) as usize];
    let peak = binomial_log_pmf(mode, n, p).exp();
    masses[(mode - first) as usize] = peak;
    let mut mass = peak;
    for k in mode..last {
        mass *= (n - k) as f64 / (k + 1) as f64 * odds;
        masses[(k + 1 - first) as usize] = mass;
    }
    mass = peak;
    for k in (first + 1..=mode).rev() {
        mass *= k as f64 / ((n - k + 1) as f64 * odds);
        masses[(k - 1 - first) as usize] = mass;
    }
    (first, masses)
}
