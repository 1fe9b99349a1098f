//! Roots and maxima of a composition's bounds. Every answer was evaluated, so it is certified
//! whatever the search did.

/// Two epsilons >= 0 around the crossing of a decreasing function: `(a, b)` with
/// f(a) >= target (or a = 0) and f(b) <= target (or b infinite).
pub(super) fn crossing(f: impl Fn(f64) -> f64, target: f64, guess: f64, spread: f64) -> (f64, f64) {
    let f = |x: f64| {
        let value = f(x) - target;
        if value == f64::NEG_INFINITY { -1e6 } else { value }
    };
    let (mut low, mut high) = (guess.max(0.0), guess.max(0.0));
    let (mut f_low, mut f_high) = (f(low), 0.0);
    f_high += f_low;
    let mut stride = 0.05 * spread;
    for _ in 0..60 {
        if f_low >= 0.0 || low == 0.0 {
            break;
        }
        (high, f_high) = (low, f_low);
        low = (low - stride).max(0.0);
        f_low = f(low);
        stride *= 2.0;
    }
    if f_low < 0.0 {
        return (0.0, 0.0);
    }
    stride = 0.05 * spread;
    for _ in 0..60 {
        if f_high <= 0.0 {
            break;
        }
        (low, f_low) = (high, f_high);
        high += stride;
        f_high = f(high);
        stride *= 2.0;
    }
    if f_high > 0.0 {
        return (low, f64::INFINITY);
    }
    // Illinois variant of false position, bisection where it stalls.
    let mut side = 0;
    for round in 0..60 {
        if high - low <= 1e-13 * high {
            break;
        }
        let mut x = (low * f_high - high * f_low) / (f_high - f_low);
        if !(x > low && x < high) || round % 4 == 3 {
            x = 0.5 * (low + high);
        }
        if x <= low || x >= high {
            break;
        }
        let value = f(x);
        if value >= 0.0 {
            (low, f_low) = (x, value);
            if side == 1 {
                f_high *= 0.5
            }
            side = 1;
        } else {
            (high, f_high) = (x, value);
            if side == -1 {
                f_low *= 0.5
            }
            side = -1;
        }
    }
    (low, high)
}

/// The largest value found of a function with one maximum near `at`.
pub(super) fn largest(f: impl Fn(f64) -> f64, at: f64, spread: f64) -> f64 {
    let ratio = 0.618_033_988_75;
    let (mut a, mut b) = (at - 0.1 * spread, at + 0.1 * spread);
    let (mut x, mut y) = (b - ratio * (b - a), a + ratio * (b - a));
    let (mut fx, mut fy) = (f(x), f(y));
    let mut best = f(at).max(fx).max(fy);
    for _ in 0..20 {
        if fx > fy {
            (b, y, fy) = (y, x, fx);
            x = b - ratio * (b - a);
            fx = f(x);
            best = best.max(fx);
        } else {
            (a, x, fx) = (x, y, fy);
            y = a + ratio * (b - a);
            fy = f(y);
            best = best.max(fy);
        }
    }
    best
}
