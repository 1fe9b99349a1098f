//! The joint credible interval for epsilon at one threshold.
//!
//! With Jeffreys' priors the posteriors of the error rates are independent,
//! FPR ~ Beta(FP + 1/2, TN + 1/2), FNR ~ Beta(FN + 1/2, TP + 1/2), and epsilon is the function
//! max(ln((1-delta-FNR)/FPR), ln((1-delta-FPR)/FNR), 0) of both. Its posterior distribution
//! function is one integral over FPR of a Beta tail of FNR (Zanella-Beguelin et al., "Bayesian
//! estimation of differential privacy", ICML 2023). The threshold must not depend on the counts.
//!
//! Standing: credible under the prior, not a confidence bound; it has no coverage guarantee.
//! Cost: 160 Beta tails per value of the distribution function; absolute error below 1e-8.

use crate::{AttackDirection, Errors};
use numerics::beta::{beta_log_tails, beta_lower_quantile, beta_upper_quantile};

/// Both ends of the credible statement: epsilon is above `lower` with the credibility, and below
/// `upper` with the credibility (each on its own).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Credible {
    pub lower: f64,
    pub upper: f64,
}

/// The posterior quantiles of epsilon at `delta`.
///
/// ```
/// # use audit::{bayes, AttackDirection, Errors};
/// let errors = Errors { false_positives: 4, nonmembers: 100, false_negatives: 66, members: 100 };
/// let credible = bayes::credible_epsilon(&errors, 1e-5, 0.95, AttackDirection::Both);
/// assert!(credible.lower > 1.3 && credible.lower < 1.4);
/// ```
pub fn credible_epsilon(
    errors: &Errors,
    delta: f64,
    credibility: f64,
    direction: AttackDirection,
) -> Credible {
    let posterior = Posterior::new(errors, delta, direction);
    Credible {
        lower: posterior.quantile(1.0 - credibility),
        upper: posterior.quantile(credibility),
    }
}

struct Posterior {
    positive: (f64, f64),
    negative: (f64, f64),
    delta: f64,
    direction: AttackDirection,
    /// sqrt of the false positive rates between which all but 1e-12 of the posterior lies.
    range: (f64, f64),
}

impl Posterior {
    fn new(errors: &Errors, delta: f64, direction: AttackDirection) -> Self {
        let shape = |count: u64| count as f64 + 0.5;
        let positive = (shape(errors.false_positives), shape(errors.true_negatives()));
        let negative = (shape(errors.false_negatives), shape(errors.true_positives()));
        let tail = 1e-12_f64.ln();
        let low = beta_lower_quantile(tail, positive.0, positive.1).sqrt();
        let high = beta_upper_quantile(tail, positive.0, positive.1).sqrt();
        Self { positive, negative, delta, direction, range: (low, high) }
    }

    /// P(epsilon <= value): the false negative rate lies above both lines of the privacy region.
    fn distribution(&self, value: f64) -> f64 {
        let (growth, kept) = (value.exp(), 1.0 - self.delta);
        let line = |fpr: f64| {
            let forward = kept - growth * fpr;
            let mirror = (kept - fpr) / growth;
            match self.direction {
                AttackDirection::Forward => forward,
                AttackDirection::Mirror => mirror,
                AttackDirection::Both => forward.max(mirror),
            }
        };
        let above = |fpr: f64| {
            let edge = line(fpr);
            if edge <= 0.0 {
                1.0
            } else {
                beta_log_tails(edge, self.negative.0, self.negative.1).upper.exp()
            }
        };
        // x = t^2 removes the square-root singularity of Beta(1/2, .) at 0; the density's
        // logarithm is normalised by the integral itself.
        let peak = {
            let (a, b) = self.positive;
            ((a - 0.5) / (a + b - 1.5).max(0.5))
                .clamp(0.0, 1.0)
                .sqrt()
                .clamp(self.range.0, self.range.1)
        };
        let log_density = |t: f64| {
            let (a, b) = self.positive;
            let power = if a == 0.5 { 0.0 } else { (2.0 * a - 1.0) * t.ln() };
            power + (b - 1.0) * (-t * t).ln_1p()
        };
        let scale = log_density(peak);
        // The two lines cross at (1-delta)/(1+e^value): a kink, so a break of the rule.
        let kink = (kept / (1.0 + growth)).max(0.0).sqrt();
        let zero = (kept / growth).max(0.0).sqrt();
        let mut breaks = vec![self.range.0, peak, kink, zero, self.range.1];
        breaks.retain(|t| *t >= self.range.0 && *t <= self.range.1);
        breaks.sort_by(f64::total_cmp);
        let (mut inside, mut all) = (0.0, 0.0);
        for pair in breaks.windows(2) {
            let (half, middle) = (0.5 * (pair[1] - pair[0]), 0.5 * (pair[1] + pair[0]));
            if half <= 0.0 {
                continue;
            }
            for (node, weight) in GAUSS.iter() {
                for sign in [-1.0, 1.0] {
                    let t = middle + sign * half * node;
                    let density = weight * half * (log_density(t) - scale).exp();
                    all += density;
                    inside += density * above(t * t);
                }
            }
        }
        inside / all
    }

    /// The smallest value with distribution >= probability; 0 when already epsilon 0 has it.
    fn quantile(&self, probability: f64) -> f64 {
        if self.distribution(0.0) >= probability {
            return 0.0;
        }
        let (mut low, mut high) = (0.0, 1.0);
        while self.distribution(high) < probability {
            low = high;
            high *= 2.0;
            if high > 500.0 {
                return high;
            }
        }
        while high - low > 1e-9 {
            let middle = 0.5 * (low + high);
            if self.distribution(middle) < probability { low = middle } else { high = middle }
        }
        low
    }
}

/// Positive nodes and weights of the 40-point Gauss-Legendre rule.
static GAUSS: std::sync::LazyLock<[(f64, f64); 20]> = std::sync::LazyLock::new(|| {
    const POINTS: usize = 40;
    std::array::from_fn(|index| {
        let n = POINTS as f64;
        let mut x = (std::f64::consts::PI * (index as f64 + 0.75) / (n + 0.5)).cos();
        loop {
            let (mut before, mut here) = (1.0, x);
            for k in 2..=POINTS {
                let k = k as f64;
                (before, here) = (here, ((2.0 * k - 1.0) * x * here - (k - 1.0) * before) / k);
            }
            let slope = n * (before - x * here) / (1.0 - x * x);
            let step = here / slope;
            x -= step;
            if step.abs() < 1e-15 {
                return (x, 2.0 / ((1.0 - x * x) * slope * slope));
            }
        }
    })
});
