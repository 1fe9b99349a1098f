//! Regularised incomplete beta function with both log tails, binomial tails, and the
//! Clopper-Pearson ends of a binomial rate.
//!
//! I_x(a, b) = x^a (1-x)^b / B(a, b) * K(x), with K a continued fraction evaluated on the side of
//! the mean where it converges (the other tail by I_x(a, b) = 1 - I_{1-x}(b, a)). The prefactor uses Loader's saddle form ("Fast and
//! accurate computation of binomial probabilities", 2000): Stirling remainders plus deviances
//! whose difference `a - n x` comes from one fused multiply-add, so that nothing cancels at
//! large n.
//!
//! Accuracy: relative 1e-13 in the tail (absolute in its logarithm, plus 1e-15 relative to a
//! logarithm larger than 100) for a + b up to 1e9. Cost O(sqrt(max(a, b))) near the mean, O(1)
//! in the tails.

use crate::elementary::{exp, exp_m1, ln, ln_1p};
use crate::special::{inverse_log_normal_sf, log1mexp, stirling_remainder};
use std::f64::consts::PI;

/// The two tails of a distribution at a point, as natural logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogTails {
    /// ln P(X <= x)
    pub lower: f64,
    /// ln P(X > x)
    pub upper: f64,
}

/// x ln(x/m) + m - x for the mean m = x - difference, both given: a small mean is not what is left
/// of x, and a small difference is known without rounding.
fn deviance(x: f64, mean: f64, difference: f64) -> f64 {
    let v = difference / (x + mean);
    if v.abs() < 0.1 {
        let square = v * v;
        let (mut term, mut sum, mut odd) = (2.0 * x * v * square, difference * v, 3.0);
        loop {
            let next = sum + term / odd;
            if next == sum {
                return sum;
            }
            sum = next;
            term *= square;
            odd += 2.0;
        }
    }
    if mean <= 0.0 {
        return f64::INFINITY;
    }
    x * ln(x / mean) - difference
}

/// ln of x^a (1-x)^b / B(a, b), for a, b > 0 and 0 < x < 1.
fn ln_prefactor(x: f64, a: f64, b: f64) -> f64 {
    let n = a + b;
    let difference = x.mul_add(-n, a);
    let exponent = stirling_remainder(n)
        - stirling_remainder(a)
        - stirling_remainder(b)
        - deviance(a, n * x, difference)
        - deviance(b, n * (1.0 - x), -difference);
    exponent + 0.5 * ln(a * (b / n) / (2.0 * PI))
}

/// I_x(a, b) divided by the prefactor, for x at or below the mean.
///
/// The even part of the continued fraction, arranged as in DiDonato and Morris
/// (ACM TOMS 708, 1992, eq. 8 ff.) so that x enters through `slack` = a - (a+b) x >= 0, known
/// without cancellation; every term is positive while n < b.
fn continued_fraction(x: f64, slack: f64, a: f64, b: f64) -> f64 {
    let c = 1.0 + slack;
    let ratio = b / a;
    let c1 = 1.0 + 1.0 / a;
    let two_minus_x = 2.0 - x;
    let (mut p, mut s) = (1.0, a + 1.0);
    let (mut numerator, mut denominator) = (0.0, 1.0);
    let (mut next_numerator, mut next_denominator) = (1.0, c / c1);
    let mut value = c1 / c;
    // A few times sqrt(max(a, b)) terms suffice at the mean; the cap only ends a computation
    // that no longer changes anything.
    let cap = 1000.0 + 40.0 * a.max(b).sqrt();
    let mut n = 0.0;
    while n < cap {
        n += 1.0;
        let t = n / a;
        let w = n * (b - n) * x;
        let e = a / s;
        let alpha = p * (p + ratio) * e * e * (w * x);
        let e = (1.0 + t) / (c1 + t + t);
        let beta = n + w / s + e * (c + n * two_minus_x);
        p = 1.0 + t;
        s += 2.0;
        let new_numerator = alpha * numerator + beta * next_numerator;
        let new_denominator = alpha * denominator + beta * next_denominator;
        (numerator, denominator) = (next_numerator, next_denominator);
        let previous = value;
        value = new_numerator / new_denominator;
        if (value - previous).abs() <= 1e-16 * value {
            break;
        }
        numerator /= new_denominator;
        denominator /= new_denominator;
        next_numerator = value;
        next_denominator = 1.0;
    }
    value
}

/// Both log tails of a Beta(a, b) variable at x, for a, b > 0.
///
/// ```
/// let tails = numerics::beta::beta_log_tails(0.25, 2.0, 3.0);
/// // P(Beta(2, 3) <= 1/4) = 67/256
/// assert!((tails.lower - (67.0f64 / 256.0).ln()).abs() < 1e-14);
/// assert!((tails.upper - (189.0f64 / 256.0).ln()).abs() < 1e-14);
/// ```
pub fn beta_log_tails(x: f64, a: f64, b: f64) -> LogTails {
    if x <= 0.0 {
        return LogTails { lower: f64::NEG_INFINITY, upper: 0.0 };
    }
    if x >= 1.0 {
        return LogTails { lower: 0.0, upper: f64::NEG_INFINITY };
    }
    if a == 1.0 {
        let upper = b * ln_1p(-x);
        return LogTails { lower: log1mexp(upper), upper };
    }
    if b == 1.0 {
        let lower = a * ln(x);
        return LogTails { lower, upper: log1mexp(lower) };
    }
    let prefactor = ln_prefactor(x, a, b);
    let slack = x.mul_add(-(a + b), a);
    if slack >= 0.0 {
        let lower = (prefactor + ln(continued_fraction(x, slack, a, b))).min(0.0);
        LogTails { lower, upper: log1mexp(lower) }
    } else {
        let upper = (prefactor + ln(continued_fraction(1.0 - x, -slack, b, a))).min(0.0);
        LogTails { lower: log1mexp(upper), upper }
    }
}

/// ln P(B = k) for B ~ Binomial(n, p).
pub fn binomial_log_pmf(k: u64, n: u64, p: f64) -> f64 {
    if k > n {
        return f64::NEG_INFINITY;
    }
    if p <= 0.0 || p >= 1.0 {
        let certain = if p <= 0.0 { 0 } else { n };
        return if k == certain { 0.0 } else { f64::NEG_INFINITY };
    }
    let (count, size) = (k as f64, n as f64);
    if k == 0 {
        return size * ln_1p(-p);
    }
    if k == n {
        return size * ln(p);
    }
    // C(n, k) p^k q^(n-k) = prefactor of Beta(k, n-k) times n / (k (n-k)).
    ln_prefactor(p, count, size - count) + ln(size / count / (size - count))
}

/// ln P(B <= k) and ln P(B > k) for B ~ Binomial(n, p).
///
/// ```
/// let tails = numerics::beta::binomial_log_tails(1, 3, 0.5);
/// assert!((tails.lower - 0.5f64.ln()).abs() < 1e-15);
/// ```
pub fn binomial_log_tails(k: u64, n: u64, p: f64) -> LogTails {
    if k >= n {
        return LogTails { lower: 0.0, upper: f64::NEG_INFINITY };
    }
    // P(B > k) = P(Beta(k+1, n-k) <= p).
    let beta = beta_log_tails(p, k as f64 + 1.0, (n - k) as f64);
    LogTails { lower: beta.upper, upper: beta.lower }
}

/// ln P(B >= k) for B ~ Binomial(n, p).
pub fn binomial_log_at_least(k: u64, n: u64, p: f64) -> f64 {
    if k == 0 { 0.0 } else { binomial_log_tails(k - 1, n, p).upper }
}

/// The x with P(Beta(a, b) > x) = e^`ln_tail`, from above: the returned x is at or beyond the
/// quantile by at most 1e-12 relative (to x, or to 1 - x when that is smaller).
///
/// Newton's method on the logarithm of the tail, which is concave in x for a, b >= 1, so that
/// after one step every iterate is on the far side of the root.
pub fn beta_upper_quantile(ln_tail: f64, a: f64, b: f64) -> f64 {
    if ln_tail >= 0.0 {
        return 0.0;
    }
    if ln_tail == f64::NEG_INFINITY {
        return 1.0;
    }
    let size = a + b;
    let z = inverse_log_normal_sf(ln_tail);
    // Wilson's form with the mean of the Beta distribution.
    let centre = a / size;
    let shifted = centre + z * z / (2.0 * size);
    let spread = z * (centre * (1.0 - centre) / size + z * z / (4.0 * size * size)).sqrt();
    let mut x = ((shifted + spread) / (1.0 + z * z / size)).clamp(1e-300, 1.0 - 1e-16);
    let (mut below, mut above) = (0.0_f64, 1.0_f64);
    for _ in 0..200 {
        let tail = beta_log_tails(x, a, b).upper;
        let miss = tail - ln_tail;
        if miss > 0.0 {
            below = below.max(x);
        } else {
            above = above.min(x);
        }
        let density = ln_prefactor(x, a, b) - ln(x) - ln_1p(-x);
        let slope = -exp(density - tail);
        let mut next = x - miss / slope;
        if !(next > below && next < above) {
            next = if above == 1.0 && below > 0.9 {
                1.0 - (1.0 - below) / 16.0
            } else if below == 0.0 {
                above / 16.0
            } else {
                0.5 * (below + above)
            };
        }
        let step = (next - x).abs();
        x = next;
        if step <= 2e-15 * x.min(1.0 - x) || above - below <= 4e-16 * above {
            break;
        }
    }
    let nudge = 4e-13 * x.min(1.0 - x);
    (x + nudge).next_up().min(1.0)
}

/// The one-sided Clopper-Pearson upper end: the largest rate p with P(Binomial(n, p) <= k) >= level.
///
/// With probability at least 1 - `level` the true rate is at most this number.
///
/// ```
/// let end = numerics::beta::clopper_pearson_upper(0, 100, 0.05);
/// assert!((end - (1.0 - 0.05f64.powf(0.01))).abs() < 1e-14);
/// ```
pub fn clopper_pearson_upper(k: u64, n: u64, level: f64) -> f64 {
    assert!(k <= n, "{k} successes in {n} trials");
    if k == n || level <= 0.0 {
        return 1.0;
    }
    if level >= 1.0 {
        return 0.0;
    }
    if k == 0 {
        return -exp_m1(ln(level) / n as f64) * (1.0 + 4e-16);
    }
    beta_upper_quantile(ln(level), k as f64 + 1.0, (n - k) as f64)
}

/// The one-sided Clopper-Pearson lower end, to full relative accuracy for small rates.
///
/// With probability at least 1 - `level` the true rate is at least this number.
pub fn clopper_pearson_lower(k: u64, n: u64, level: f64) -> f64 {
    assert!(k <= n, "{k} successes in {n} trials");
    if k == 0 || level <= 0.0 {
        return 0.0;
    }
    if level >= 1.0 {
        return 1.0;
    }
    if k == n {
        return exp(ln(level) / n as f64) * (1.0 - 4e-16);
    }
    beta_lower_quantile(ln(level), k as f64, (n - k + 1) as f64)
}

/// The x with P(Beta(a, b) <= x) = e^`ln_tail`, from below (at or before the quantile).
pub fn beta_lower_quantile(ln_tail: f64, a: f64, b: f64) -> f64 {
    if ln_tail >= 0.0 {
        return 1.0;
    }
    if ln_tail == f64::NEG_INFINITY {
        return 0.0;
    }
    let size = a + b;
    let z = inverse_log_normal_sf(ln_tail);
    let centre = a / size;
    let shifted = centre + z * z / (2.0 * size);
    let spread = z * (centre * (1.0 - centre) / size + z * z / (4.0 * size * size)).sqrt();
    // For a small `a` the start a e^-(spread in logarithm) is better than Wilson's lower end.
    let mut x = ((shifted - spread) / (1.0 + z * z / size)).clamp(1e-300, 1.0 - 1e-16);
    let (mut below, mut above) = (0.0_f64, 1.0_f64);
    for _ in 0..300 {
        let tail = beta_log_tails(x, a, b).lower;
        let miss = tail - ln_tail;
        if miss > 0.0 {
            above = above.min(x);
        } else {
            below = below.max(x);
        }
        // ln I is concave in ln x too, and nearly linear there for small x.
        let density = ln_prefactor(x, a, b) - ln_1p(-x);
        let slope = exp(density - tail);
        let mut next = x * exp(-miss / slope);
        if !(next > below && next < above) {
            next = if below == 0.0 { above / 16.0 } else { 0.5 * (below + above) };
        }
        let step = (next - x).abs();
        x = next;
        if step <= 2e-15 * x.min(1.0 - x) || above - below <= 4e-16 * above {
            break;
        }
    }
    let nudge = 4e-13 * x.min(1.0 - x);
    (x - nudge).next_down().max(0.0)
}
