//! Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run" (2023), Theorem 5.2
//! in the form of their Algorithm 2: if the run is (epsilon, delta)-DP in each canary, then for
//! any strategy with r guesses the number W of right ones has
//! P(W >= v) <= P(B >= v) + 2 m delta max_{1<=i<=v} P(v - i <= B < v) / i,
//! B ~ Binomial(r, e^epsilon / (1 + e^epsilon)).
//!
//! The right-hand side is a p-value for "(epsilon, delta)-DP"; a rejected epsilon rejects every
//! smaller one. Direction: the returned epsilon is rejected, so it is a lower bound.
//! Cost: O(sqrt(r)) per p-value; the probabilities of the second term rise up to the mode and
//! then fall, so their running average is largest where the next one drops below it. At delta = 0
//! the bound is a Clopper-Pearson end; elsewhere that end is where the search begins, and a dozen
//! p-values find it.

use numerics::beta::{binomial_log_at_least, binomial_log_pmf, clopper_pearson_lower};

/// The p-value of "(epsilon, delta)-DP" when `right` of `guesses` guesses about `canaries`
/// canaries were right.
///
/// ```
/// let p = audit::one_run::one_run_p_value(100, 100, 75, 3.0f64.ln(), 0.0);
/// assert!((p - 0.5535).abs() < 5e-5);
/// ```
pub fn one_run_p_value(canaries: u64, guesses: u64, right: u64, epsilon: f64, delta: f64) -> f64 {
    let (exact, second) = one_run_terms(canaries, guesses, right, epsilon, delta);
    (exact + second).min(1.0)
}

/// Whether the p-value is at most `level`. Where the term of the binomial alone is above it the other one, which takes longer, is not computed.
pub(super) fn is_rejected(
    canaries: u64,
    guesses: u64,
    right: u64,
    epsilon: f64,
    delta: f64,
    level: f64,
) -> bool {
    if right == 0 {
        return level >= 1.0;
    }
    let rate = 1.0 / (1.0 + (-epsilon).exp());
    let exact = binomial_log_at_least(right, guesses, rate).exp();
    if exact > level || delta == 0.0 {
        return exact <= level;
    }
    exact + 2.0 * canaries as f64 * delta * largest_average(guesses, right, rate) <= level
}

/// The two terms of the p-value: that of the binomial, and that of delta.
pub(super) fn one_run_terms(
    canaries: u64,
    guesses: u64,
    right: u64,
    epsilon: f64,
    delta: f64,
) -> (f64, f64) {
    if right == 0 {
        return (1.0, 0.0);
    }
    let rate = 1.0 / (1.0 + (-epsilon).exp());
    let exact = binomial_log_at_least(right, guesses, rate).exp();
    if delta == 0.0 {
        return (exact, 0.0);
    }
    (exact, 2.0 * canaries as f64 * delta * largest_average(guesses, right, rate))
}

/// max over i in 1..=v of P(v - i <= B < v) / i for B ~ Binomial(r, rate), from above.
fn largest_average(guesses: u64, right: u64, rate: f64) -> f64 {
    let odds = rate / (1.0 - rate);
    let mut count = first_visible(guesses, right - 1, rate);
    let mut probability = binomial_log_pmf(count, guesses, rate).exp();
    let (mut sum, mut terms) = (probability, (right - count) as f64);
    while count > 0 {
        // P(B = c-1) / P(B = c) = c / ((r - c + 1) odds)
        probability *= count as f64 / ((guesses - count + 1) as f64 * odds);
        count -= 1;
        if probability * terms < sum {
            break;
        }
        sum += probability;
        terms += 1.0;
    }
    // What was passed over and some thousand products are less than 1e-10 of it.
    sum / terms * (1.0 + 1e-10)
}

/// The first count from `last` downwards whose probability is not below e^-50 of the mode's:
/// further out the probabilities together are below 1e-12 of the sum, and would underflow.
fn first_visible(guesses: u64, last: u64, rate: f64) -> u64 {
    let mode = (((guesses + 1) as f64 * rate) as u64).min(guesses);
    if last <= mode {
        return last;
    }
    let bar = binomial_log_pmf(mode, guesses, rate) - 50.0;
    if binomial_log_pmf(last, guesses, rate) >= bar {
        return last;
    }
    let (mut seen, mut beyond) = (mode, last);
    while beyond - seen > 1 {
        let middle = seen + (beyond - seen) / 2;
        if binomial_log_pmf(middle, guesses, rate) >= bar { seen = middle } else { beyond = middle }
    }
    seen
}

/// Relative accuracy of epsilon.
const ACCURACY: f64 = 1e-10;

/// The largest epsilon that is rejected at `level`, from below; 0 when none is.
pub fn one_run_epsilon(canaries: u64, guesses: u64, right: u64, level: f64, delta: f64) -> f64 {
    largest(guesses, right, level, |epsilon| {
        one_run_p_value(canaries, guesses, right, epsilon, delta)
    })
}

/// The largest epsilon at which `p_value`, which is at least that of the binomial and rises with epsilon, is at most `level`.
pub(super) fn largest(guesses: u64, right: u64, level: f64, p_value: impl Fn(f64) -> f64) -> f64 {
    // How far the p-value is above the level, on a logarithmic scale; rejected at or below 0.
    let excess = |epsilon: f64| (p_value(epsilon).max(f64::MIN_POSITIVE) / level).ln();
    if guesses == 0 || excess(0.0) > 0.0 {
        return 0.0;
    }
    // Without delta the bound would be the lower end of the share of right guesses.
    let share = clopper_pearson_lower(right, guesses, level);
    let pure = (share / (1.0 - share)).ln();
    let mut high = (pure.max(0.0) * (1.0 + ACCURACY)).max(1e-12);
    let mut above = excess(high);
    // Rounding of the start: a little further up.
    let mut more = 1e-8;
    while above <= 0.0 {
        if high > 1e4 {
            return high;
        }
        high *= 1.0 + more;
        more *= 2.0;
        above = excess(high);
    }
    // One standard deviation of right guesses at a time.
    let mut step = 1.0 / (guesses as f64 * share * (1.0 - share)).max(1.0).sqrt();
    let (mut low, mut below) = (high, above);
    while below > 0.0 {
        (high, above) = (low, below);
        low = (low - step).max(0.0);
        below = excess(low);
        step *= 2.0;
    }
    // False position with halved weights (Illinois); `low` is rejected at every moment.
    let mut last_side = 0;
    for _ in 0..200 {
        let gap = high - low;
        if gap <= ACCURACY * high {
            break;
        }
        let margin = (0.3 * ACCURACY * high).min(0.01 * gap);
        let next = (low + gap * below / (below - above)).clamp(low + margin, high - margin);
        let here = excess(next);
        if here <= 0.0 {
            (low, below) = (next, here);
            if last_side == -1 {
                above /= 2.0;
            }
            last_side = -1;
        } else {
            (high, above) = (next, here);
            if last_side == 1 {
                below /= 2.0;
            }
            last_side = 1;
        }
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
                "the term 2 m delta of {canaries} canaries at delta {} uses up the whole error; with these guesses delta must be below {largest_delta:.1e}",
                crate::words::delta(*delta)
            ),
        }
    }
}
