//! The logarithm of the gamma function in the right half-plane.

use crate::elementary::{atan2, exp, hypot, ln};
use crate::special::HALF_LN_TWO_PI;

const UNIT: f64 = f64::EPSILON / 2.0;

/// B_{2k}/(2k(2k-1)), k = 1 to 8.
const STIRLING: [f64; 8] = [
    1.0 / 12.0,
    -1.0 / 360.0,
    1.0 / 1260.0,
    -1.0 / 1680.0,
    1.0 / 1188.0,
    -691.0 / 360_360.0,
    1.0 / 156.0,
    -3617.0 / 122_400.0,
];

/// ln Gamma(c + iu), c > 0: real and imaginary part (some branch), and a bound on the error of either.
///
/// Gamma(p) = Gamma(p + m)/(p (p+1) ... (p+m-1)) with c + m >= 16, then Stirling's series, whose remainder after
/// eight terms is at most |B_18|/(18 17 |z|^17) sec(arg z/2)^18 < 4e-19 there.
pub(super) fn ln_gamma(c: f64, u: f64) -> (f64, f64, f64) {
    let shift = (16.0 - c).ceil().max(0.0) as usize;
    let (mut re, mut im, mut size) = (0.0, 0.0, 0.0);
    let log_of = |x: f64| (ln(hypot(x, u)), atan2(u, x));
    for k in 0..shift {
        let (log, angle) = log_of(c + k as f64);
        re -= log;
        im -= angle;
        size += log.abs() + angle.abs();
    }
    let x = c + shift as f64;
    let (log, angle) = log_of(x);
    re += (x - 0.5) * log - u * angle - x + HALF_LN_TWO_PI;
    im += (x - 0.5) * angle + u * log - u;
    size += x * (log.abs() + angle + 1.0) + u.abs() * (log.abs() + angle.abs() + 1.0);
    let (series_re, series_im) = series(x, u);
    re += series_re;
    im += series_im;
    (re, im, UNIT * (8.0 + 8.0 * size))
}

/// Stirling's series.
fn series(x: f64, u: f64) -> (f64, f64) {
    let (mut re, mut im) = (0.0, 0.0);
    // Powers of 1/z.
    let norm = x * x + u * u;
    let (a, b) = (x / norm, -u / norm);
    let (square_re, square_im) = (a * a - b * b, 2.0 * a * b);
    let (mut power_re, mut power_im) = (a, b);
    for factor in STIRLING {
        re += factor * power_re;
        im += factor * power_im;
        (power_re, power_im) = (
            power_re * square_re - power_im * square_im,
            power_re * square_im + power_im * square_re,
        );
    }
    (re, im)
}

/// What stands beside the sum over a ray: modulus (ln) and argument of a factor, and a bound on the error of either.
pub(super) struct Beside {
    pub(super) log: f64,
    pub(super) argument: f64,
    pub(super) error: f64,
}

/// e^{i alpha p + p tau}/Gamma(p), p = c + iu, where tau is near ln|p| and alpha near its angle: what is large in
/// both parts goes out against each other before it is rounded.
///
/// Stirling's series (p - 1/2) ln p - p + ln(2 pi)/2 + ... has the remainder of [`ln_gamma`] from |p| = 16 on.
pub(super) fn beside_gamma(c: f64, u: f64, alpha: f64, tau: f64) -> Beside {
    let size = hypot(c, u);
    if size < 16.0 {
        let (re, im, error) = ln_gamma(c, u);
        let log = c * tau - alpha * u - re;
        let argument = u * tau + alpha * c - im;
        let rounded = (c * tau).abs() + (alpha * u).abs() + (u * tau).abs() + (alpha * c).abs();
        return Beside { log, argument, error: error + UNIT * (8.0 + 4.0 * rounded) };
    }
    // ln|p| = tau + apart.
    let apart = ln(size / exp(tau));
    let angle = atan2(u, c);
    let (series_re, series_im) = series(c, u);
    let log = u * (angle - alpha) - (c - 0.5) * apart + 0.5 * tau + c - HALF_LN_TWO_PI - series_re;
    let argument = u - u * apart - c * (angle - alpha) + 0.5 * angle - series_im;
    let large = u * (12.0 + 6.0 * apart.abs() + 6.0 * (angle - alpha).abs())
        + c * (12.0 + 6.0 * apart.abs() + 6.0 * (angle - alpha).abs())
        + 4.0 * tau.abs();
    Beside { log, argument, error: UNIT * (32.0 + large) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways to the factor agree, where each holds.
    #[test]
    fn what_stands_beside_a_ray() {
        for (c, u) in [(1.5f64, 20.0f64), (3.0, 300.0), (60.0, 1.0), (0.7, 5000.0), (20.0, 20.0)] {
            let (alpha, tau) = (u.atan2(c) + 0.01, (c * c + u * u).sqrt().ln() - 0.03);
            let found = beside_gamma(c, u, alpha, tau);
            let (re, im, error) = ln_gamma(c, u);
            let allowed = found.error + error + 4.0 * UNIT * (c + u) * (tau.abs() + 2.0);
            assert!((found.log - (c * tau - alpha * u - re)).abs() <= allowed, "{c} {u}");
            let turned = found.argument - (u * tau + alpha * c - im);
            assert!(turned.abs() <= allowed, "{c} {u}: {turned} {allowed}");
            assert!(found.error < UNIT * 20.0 * (c + u + 8.0));
        }
    }

    /// On the axis against the real function, and |Gamma(1/2 + iu)|^2 = pi/cosh(pi u),
    /// |Gamma(1 + iu)|^2 = pi u/sinh(pi u) off it; angles by Gamma(p + 1) = p Gamma(p).
    #[test]
    fn known_values() {
        for c in [0.25, 1.0, 3.7, 40.0] {
            let (re, _, error) = ln_gamma(c, 0.0);
            assert!((re - crate::special::ln_gamma(c)).abs() <= error + 1e-14 * (1.0 + re.abs()));
        }
        let pi = std::f64::consts::PI;
        for u in [0.3f64, 2.0, 17.0, 90.0] {
            let half = 0.5 * (pi.ln() - (pi * u).cosh().ln());
            let (re, _, error) = ln_gamma(0.5, u);
            assert!((re - half).abs() <= error + 1e-14 * half.abs(), "{u}: {re} {half}");
            let one = 0.5 * ((pi * u).ln() - (pi * u).sinh().ln());
            let (re, im, error) = ln_gamma(1.0, u);
            assert!((re - one).abs() <= error + 1e-14 * one.abs(), "{u}: {re} {one}");
            let (next, turned, _) = ln_gamma(2.0, u);
            let (log, angle) = (0.5 * (1.0 + u * u).ln(), u.atan2(1.0));
            assert!((next - re - log).abs() < 1e-12 && (turned - im - angle).abs() < 1e-12);
            assert!(error < 1e-12);
        }
    }
}
