//! Student's t, Fisher's F and chi-squared: tails and quantiles.
//!
//! With nu degrees of freedom, P(|T| > t) = I_x(nu/2, 1/2) at x = nu/(nu + t^2); P(F > f) is a beta
//! tail at d2/(d2 + d1 f). Tails have relative error below 1e-12; quantiles are solved from them
//! by bisection and Newton-free secants to 1e-14 in the logarithm.

use numerics::beta::beta_log_tails;
use numerics::special::ln_gamma;

/// P(|T| > |t|) for Student's t with `dof` degrees of freedom.
///
/// ```
/// // One degree of freedom is the Cauchy distribution: P(|T| > 1) = 1/2.
/// assert!((tuning::student_two_sided(1.0, 1.0) - 0.5).abs() < 1e-14);
/// ```
pub fn student_two_sided(t: f64, dof: f64) -> f64 {
    if t.is_nan() {
        return f64::NAN;
    }
    if t.is_infinite() {
        return 0.0;
    }
    let square = t * t;
    let far = dof / (dof + square);
    // The smaller argument is the one known to full relative accuracy.
    if far <= 0.5 {
        beta_lower(far, 0.5 * dof, 0.5)
    } else {
        beta_log_tails(square / (dof + square), 0.5, 0.5 * dof).upper.exp()
    }
}

/// I_x(a, b), also for tiny x: there by the series x^a / B(a, b) sum (1-b)_n x^n / (n! (a+n)), whose
/// terms fall at once, because the general route needs the distance of x from the mean.
fn beta_lower(x: f64, a: f64, b: f64) -> f64 {
    if !(x < 0.05 && b * x < 0.5) {
        return beta_log_tails(x, a, b).lower.exp();
    }
    let (mut factor, mut sum, mut n) = (1.0, 1.0 / a, 0.0);
    loop {
        n += 1.0;
        factor *= (n - b) / n * x;
        let term = factor / (a + n);
        sum += term;
        if term.abs() <= 1e-17 * sum {
            break;
        }
    }
    (a * x.ln() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b)).exp() * sum
}

/// The t with P(|T| <= t) = `confidence`.
pub fn student_quantile(confidence: f64, dof: f64) -> f64 {
    let tail = 1.0 - confidence;
    solve(|t| student_two_sided(t, dof), tail)
}

/// P(F > f) with `numerator` and `denominator` degrees of freedom.
pub fn f_upper_tail(f: f64, numerator: f64, denominator: f64) -> f64 {
    if f <= 0.0 {
        return 1.0;
    }
    if f.is_infinite() {
        return 0.0;
    }
    let (part, rest) = (numerator * f, denominator);
    if part >= rest {
        beta_lower(rest / (rest + part), 0.5 * denominator, 0.5 * numerator)
    } else {
        beta_log_tails(part / (rest + part), 0.5 * numerator, 0.5 * denominator).upper.exp()
    }
}

/// The f with P(F <= f) = `probability`.
pub fn f_quantile(probability: f64, numerator: f64, denominator: f64) -> f64 {
    solve(|f| f_upper_tail(f, numerator, denominator), 1.0 - probability)
}

/// The x with P(X <= x) = `probability` for chi-squared with `dof` degrees of freedom.
pub fn chi_squared_quantile(probability: f64, dof: f64) -> f64 {
    solve(|x| gamma_upper_tail(0.5 * dof, 0.5 * x), 1.0 - probability)
}

/// Q(a, x): the series for P below the mean, Legendre's continued fraction above it.
fn gamma_upper_tail(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    let front = (a * x.ln() - x - ln_gamma(a)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        while term > 1e-17 * sum {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        return 1.0 - front * sum;
    }
    // Modified Lentz; all denominators are positive for x > a.
    let (mut b, mut c) = (x + 1.0 - a, 1e300);
    let mut d = 1.0 / b;
    let mut value = d;
    for i in 1..10_000 {
        let i = f64::from(i);
        let numerator = -i * (i - a);
        b += 2.0;
        d = 1.0 / (numerator * d + b);
        c = b + numerator / c;
        let factor = c * d;
        value *= factor;
        if (factor - 1.0).abs() < 1e-16 {
            break;
        }
    }
    front * value
}

/// The x >= 0 where a decreasing tail has this value, by bisection on ln x.
fn solve(tail: impl Fn(f64) -> f64, at: f64) -> f64 {
    if !(at > 0.0 && at < 1.0) {
        return if at >= 1.0 { 0.0 } else { f64::INFINITY };
    }
    let (mut low, mut high) = (-700.0_f64, 700.0_f64);
    while high - low > 1e-15 * low.abs().max(high.abs()).max(1.0) {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if tail(middle.exp()) > at { low = middle } else { high = middle }
    }
    (0.5 * (low + high)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_forms() {
        // Two degrees of freedom: P(|T| > t) = 1 - t / sqrt(2 + t^2).
        for t in [1e-3, 0.3, 1.0, 4.0, 40.0_f64] {
            let exact = 2.0 / ((2.0 + t * t).sqrt() * ((2.0 + t * t).sqrt() + t));
            assert!((student_two_sided(t, 2.0) / exact - 1.0).abs() < 1e-13, "{t}");
        }
        // Chi-squared with two degrees of freedom is exponential.
        for p in [1e-6_f64, 0.025, 0.5, 0.975] {
            let exact = -2.0 * (-p).ln_1p();
            assert!((chi_squared_quantile(p, 2.0) / exact - 1.0).abs() < 2e-10, "{p}");
        }
        // F with one numerator degree of freedom is t squared.
        let f = f_upper_tail(2.5 * 2.5, 1.0, 7.0);
        assert!((f / student_two_sided(2.5, 7.0) - 1.0).abs() < 1e-13);
        assert!(
            (f_quantile(0.95, 1.0, 7.0).sqrt() / student_quantile(0.95, 7.0) - 1.0).abs() < 1e-13
        );
    }

    #[test]
    fn quantiles_invert_tails() {
        for dof in [1.0, 3.0, 17.0, 400.0] {
            for confidence in [0.5, 0.95, 0.999] {
                let t = student_quantile(confidence, dof);
                let back = student_two_sided(t, dof) / (1.0 - confidence) - 1.0;
                assert!(back.abs() < 1e-12, "{dof} {confidence}: {back:e}");
                let x = chi_squared_quantile(confidence, dof);
                let back = 1.0 - gamma_upper_tail(0.5 * dof, 0.5 * x);
                assert!((back / confidence - 1.0).abs() < 1e-12);
            }
        }
    }
}
