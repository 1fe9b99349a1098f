//! Upper tail of the normal law, written for the tests alone (series and continued fraction), and
//! the closed forms that follow from it.

use accounting::Order;
use vocabulary::Interval;

const ROOT_TWO_PI: f64 = 2.506_628_274_631_000_7;

/// P(N > z), relative error below 1e-13 for |z| < 38.
pub(crate) fn upper_tail(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - upper_tail(-z);
    }
    let density = (-0.5 * z * z).exp() / ROOT_TWO_PI;
    if z < 2.5 {
        // 1/2 - phi(z) (z + z^3/3 + z^5/15 + ...)
        let (mut term, mut sum, mut k) = (z, z, 1.0);
        while term > 1e-18 * sum {
            k += 2.0;
            term *= z * z / k;
            sum += term;
        }
        return 0.5 - density * sum;
    }
    // phi(z) / (z + 1/(z + 2/(z + ...))), from the far end.
    let mut fraction = z;
    for k in (1..=400).rev() {
        fraction = z + f64::from(k) / fraction;
    }
    density / fraction
}

/// delta of the Gaussian mechanism with the given mu.
pub(crate) fn gaussian_delta(mu: f64, epsilon: f64) -> Interval {
    let (first, second) =
        (upper_tail(epsilon / mu - mu / 2.0), epsilon.exp() * upper_tail(epsilon / mu + mu / 2.0));
    let scale = 1.0 + epsilon.abs() + (epsilon / mu).powi(2) + mu * mu;
    Interval::around(first - second, 4e-15 * scale * (first + second) + 1e-12 * first * 1e-3)
}

/// One step with sample rate q: the loss is monotone in x, so delta is a difference of tails.
pub(crate) fn one_step_delta(sigma: f64, q: f64, epsilon: f64, order: Order) -> Interval {
    let variance = sigma * sigma;
    // log(1 - q + q e^u) = +-epsilon at x = u variance + 1/2.
    let level = if order == Order::Remove { epsilon } else { -epsilon };
    let ratio = 1.0 + level.exp_m1() / q;
    if ratio <= 0.0 {
        let certain = if order == Order::Remove { -epsilon.exp_m1() } else { 0.0 };
        return Interval::exact(certain.max(0.0));
    }
    let x = ratio.ln() * variance + 0.5;
    // The position is off by some roundings of its parts; the tails follow with slope z/sigma.
    let slack = 4e-16
        * (x.abs()
            + variance * (1.0 + ratio.ln().abs())
            + variance / q.min(1.0) / ratio * epsilon.exp().max(1.0) * q);
    let tails = |sign: f64| (upper_tail(sign * x / sigma), upper_tail(sign * (x - 1.0) / sigma));
    let (plus, minus) = match order {
        Order::Remove => {
            let (null, shifted) = tails(1.0);
            ((1.0 - q) * null + q * shifted, epsilon.exp() * null)
        }
        Order::Add => {
            let (null, shifted) = tails(-1.0);
            (null, epsilon.exp() * ((1.0 - q) * null + q * shifted))
        }
    };
    let z = (x.abs() + 1.0) / sigma;
    let relative = 2e-13 + (z + 1.0) * slack / sigma + 1e-15 * z * z;
    Interval::around(plus - minus, relative * (plus + minus))
}
