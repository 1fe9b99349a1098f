//! Mahloujifar, Melis and Chaudhuri, "Auditing f-differential privacy in one run" (2024),
//! Algorithm 3 (the number of right guesses under f-DP), for the Gaussian family.
//!
//! For the trade-off curve of mu-GDP the inverse blow-up is f(x) = Phi(Phi^-1(x) - mu). With
//! g guesses of which c are right about m canaries, start at r = level c / m,
//! h = level (g - c) / m, and for i = c-1 .. 0 set h' = max(h, f(r)), r += i/(g-i) (h' - h),
//! h = h'. The null is rejected when r + h > g/m. Direction: a rejected mu rejects every smaller
//! one, so the result is a lower bound *within the Gaussian family*.
//!
//! Cost: O(c) normal quantiles per test at worst; a rejection stops early, and once h stops
//! growing it never grows again (r is then constant).

use numerics::special::{inverse_normal_cdf, normal_cdf};

/// Whether mu-GDP is rejected at `level` by `right` of `guesses` right guesses about `canaries`.
pub fn one_run_gaussian_rejects(
    canaries: u64,
    guesses: u64,
    right: u64,
    mu: f64,
    level: f64,
) -> bool {
    if guesses == 0 {
        return false;
    }
    let (m, g, c) = (canaries as f64, guesses as f64, right as f64);
    let bar = g / m;
    let mut r = level * c / m;
    let mut h = level * (g - c) / m;
    for i in (0..right).rev() {
        let pulled = if r > 0.0 { normal_cdf(inverse_normal_cdf(r.min(1.0)) - mu) } else { 0.0 };
        if pulled > h {
            let i = i as f64;
            r += i / (g - i) * (pulled - h);
            h = pulled;
        } else {
            // r did not move, so neither will f(r): h has stopped growing.
            break;
        }
        if r + h > bar {
            return true;
        }
    }
    r + h > bar
}

/// The largest rejected mu, from below; 0 when none is.
pub fn one_run_gaussian_mu(canaries: u64, guesses: u64, right: u64, level: f64) -> f64 {
    let rejected = |mu: f64| one_run_gaussian_rejects(canaries, guesses, right, mu, level);
    if !rejected(0.0) {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while rejected(high) {
        low = high;
        high *= 2.0;
        if high > 1e3 {
            return low;
        }
    }
    while high - low > 1e-8 * high {
        let middle = 0.5 * (low + high);
        if rejected(middle) { low = middle } else { high = middle }
    }
    low
}
