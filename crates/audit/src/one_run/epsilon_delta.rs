//! Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run" (2023), Theorem 5.2
//! in the form of their Algorithm 2: if the run is (epsilon, delta)-DP in each canary, then for
//! any strategy with r guesses the number W of right ones has
//! P(W >= v) <= P(B >= v) + 2 m delta max_{1<=i<=v} P(v - i <= B < v) / i,
//! B ~ Binomial(r, e^epsilon / (1 + e^epsilon)).
//!
//! The right-hand side is a p-value for "(epsilon, delta)-DP"; a rejected epsilon rejects every
//! smaller one. Direction: the returned epsilon is rejected, so it is a lower bound.
//! Cost: O(sqrt(r)) per p-value; the probabilities of the second term rise up to the mode and
//! then fall, so their running average is largest where the next one drops below it.

use numerics::beta::{binomial_log_at_least, binomial_log_pmf};

/// The p-value of "(epsilon, delta)-DP" when `right` of `guesses` guesses about `canaries`
/// canaries were right.
///
/// ```
/// let p = audit::one_run::one_run_p_value(100, 100, 75, 3.0f64.ln(), 0.0);
/// assert!((p - 0.5535).abs() < 5e-5);
/// ```
pub fn one_run_p_value(canaries: u64, guesses: u64, right: u64, epsilon: f64, delta: f64) -> f64 {
    if right == 0 {
        return 1.0;
    }
    let rate = 1.0 / (1.0 + (-epsilon).exp());
    let exact = binomial_log_at_least(right, guesses, rate).exp();
    if delta == 0.0 {
        return exact.min(1.0);
    }
    let odds = rate / (1.0 - rate);
    let mut count = right - 1;
    let mut probability = binomial_log_pmf(count, guesses, rate).exp();
    let (mut sum, mut terms) = (probability, 1.0);
    while count > 0 {
        // P(B = c-1) / P(B = c) = c / ((r - c + 1) odds)
        probability *= count as f64 / ((guesses - count + 1) as f64 * odds);
        count -= 1;
        if probability < sum / terms {
            break;
        }
        sum += probability;
        terms += 1.0;
    }
    // A few hundred products lose less than 1e-12 of the second term.
    let second = 2.0 * canaries as f64 * delta * (sum / terms) * (1.0 + 1e-12);
    (exact + second).min(1.0)
}

/// The largest epsilon that is rejected at `level`, from below; 0 when none is.
pub fn one_run_epsilon(canaries: u64, guesses: u64, right: u64, level: f64, delta: f64) -> f64 {
    let rejected =
        |epsilon: f64| one_run_p_value(canaries, guesses, right, epsilon, delta) <= level;
    if guesses == 0 || !rejected(0.0) {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while rejected(high) {
        low = high;
        high *= 2.0;
        if high > 1e4 {
            return low;
        }
    }
    while high - low > 1e-10 * high {
        let middle = 0.5 * (low + high);
        if rejected(middle) { low = middle } else { high = middle }
    }
    low
}

/// Why a one-run bound is zero, in numbers a person can act on.
#[derive(Clone, Debug, PartialEq)]
pub enum OneRunZero {
    /// The guesses are not better than coins at this level.
    Guesses { guesses: u64, right: u64, needed: u64 },
    /// The guesses are good enough, the delta term alone exceeds the level.
    Delta { delta: f64, canaries: u64, largest_delta: f64 },
}

impl OneRunZero {
    /// Explains a zero for the given counts; `None` when the bound is not zero.
    pub fn explain(
        canaries: u64,
        guesses: u64,
        right: u64,
        level: f64,
        delta: f64,
    ) -> Option<Self> {
        if one_run_epsilon(canaries, guesses, right, level, delta) > 0.0 {
            return None;
        }
        let pure = one_run_p_value(canaries, guesses, right, 0.0, 0.0);
        if pure > level {
            let (mut few, mut enough) = (right, guesses + 1);
            while enough - few > 1 {
                let middle = few + (enough - few) / 2;
                if one_run_p_value(canaries, guesses, middle, 0.0, 0.0) <= level {
                    enough = middle;
                } else {
                    few = middle;
                }
            }
            return Some(Self::Guesses { guesses, right, needed: enough });
        }
        // p is affine in delta.
        let one = 2.0 * canaries as f64;
        let with = one_run_p_value(canaries, guesses, right, 0.0, 1e-3 / one) - pure;
        let largest_delta = (level - pure) / with * 1e-3 / one;
        Some(Self::Delta { delta, canaries, largest_delta })
    }
}

impl std::fmt::Display for OneRunZero {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Guesses { guesses, right, needed } if needed > guesses => write!(
                f,
                "{right} of {guesses} guesses were right, and even all of them would not be beyond chance: more guesses are needed"
            ),
            Self::Guesses { guesses, right, needed } => write!(
                f,
                "{right} of {guesses} guesses were right; {needed} are needed to be beyond chance"
            ),
            Self::Delta { delta, canaries, largest_delta } => write!(
                f,
                "the term 2 m delta of {canaries} canaries at delta {delta} uses up the whole error; with these guesses delta must be below {largest_delta:.1e}"
            ),
        }
    }
}
