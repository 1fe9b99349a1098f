//! Averages of log-normal numbers in doubles, to choose by. Nothing here is trusted.

use super::Factor;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// ln E e^(-xY) as a table over ln x.
pub(super) struct Rough {
    sigma: f64,
    /// ln(-ln E e^(-xY)) - ln x at ln x = LOW + k STEP.
    table: Vec<f64>,
    /// What was asked before: lines are looked for at the same tilts for every threshold.
    known: RefCell<BTreeMap<(u64, u64, u64), Summit>>,
}

/// Where z^c E e^(-zW) is largest, ln of it there, and ln E W^-c.
#[derive(Clone, Copy)]
struct Summit {
    tau: f64,
    log: f64,
    log_moment: f64,
}

const LOW: f64 = -40.0;
const STEP: f64 = 0.1;
/// The table ends where minus the logarithm is this.
const DEEPEST: f64 = 4000.0;
/// The smallest c at which a moment is summed: its window is 40/c long.
pub(super) const LEAST: f64 = 0.05;

impl Rough {
    pub(super) fn new(sigma: f64) -> Self {
        let mut table = Vec::new();
        loop {
            let log = LOW + STEP * table.len() as f64;
            let value = log_mean(sigma, log);
            table.push(value.ln() - log);
            if value > DEEPEST || table.len() > 4000 {
                return Self { sigma, table, known: RefCell::default() };
            }
        }
    }

    /// -ln E e^(-xY).
    pub(super) fn fall(&self, log_x: f64) -> f64 {
        let place = (log_x - LOW) / STEP;
        if place < 1.0 {
            return log_x.exp();
        }
        let last = self.table.len() - 3;
        let index = (place as usize).min(last);
        let part = place - index as f64;
        if part > 2.0 {
            // Beyond the table it grows like the square of the logarithm.
            let end = LOW + STEP * (last + 1) as f64;
            return DEEPEST * (1.0 + (log_x - end) * self.sigma * self.sigma).max(1.0);
        }
        let y = &self.table[index - 1..index + 3];
        // Cubic through four points.
        let (a, b, c, d) = (y[0], y[1], y[2], y[3]);
        let value = b + 0.5
            * part
            * ((c - a)
                + part * ((2.0 * a - 5.0 * b + 4.0 * c - d) + part * (3.0 * (b - c) + d - a)));
        (value + log_x).exp()
    }

    /// ln of z^c E e^(-zW) at z = e^tau.
    pub(super) fn log_at(&self, factor: &Factor, c: f64, tau: f64) -> f64 {
        let batches = factor.batches as f64;
        let rest = (factor.batches - factor.seen) as f64 / batches;
        c * tau - rest * tau.exp() - factor.seen as f64 * self.fall(tau - batches.ln())
    }

    /// The tau at which that is largest, and its value there.
    pub(super) fn peak(&self, factor: &Factor, c: f64) -> (f64, f64) {
        let summit = self.summit(factor, c);
        (summit.tau, summit.log)
    }

    /// ln E W^-c.
    pub(super) fn log_moment(&self, factor: &Factor, c: f64) -> f64 {
        if c <= 0.0 {
            return if c == 0.0 { 0.0 } else { f64::INFINITY };
        }
        if c < LEAST {
            // Nearly a line through E W^0 = 1.
            return c / LEAST * self.log_moment(factor, LEAST);
        }
        self.summit(factor, c).log_moment
    }

    fn summit(&self, factor: &Factor, c: f64) -> Summit {
        let key = (factor.batches, factor.seen, c.to_bits());
        if let Some(known) = self.known.borrow().get(&key) {
            return *known;
        }
        let (mut low, mut high) = (-60.0, 90.0);
        for _ in 0..70 {
            let third = (high - low) / 3.0;
            let (one, two) = (low + third, high - third);
            if self.log_at(factor, c, one) < self.log_at(factor, c, two) {
                low = one
            } else {
                high = two
            }
        }
        let tau = 0.5 * (low + high);
        let log = self.log_at(factor, c, tau);
        let step = 0.25 / (1.0 + c).sqrt();
        let mut sum = 1.0;
        for sign in [1.0, -1.0] {
            for k in 1..4000 {
                let more = self.log_at(factor, c, tau + sign * step * f64::from(k)) - log;
                sum += more.exp();
                if more < -40.0 {
                    break;
                }
            }
        }
        let log_moment = log + (sum * step).ln() - log_gamma(c, 0.0);
        let summit = Summit { tau, log, log_moment };
        self.known.borrow_mut().insert(key, summit);
        summit
    }
}

/// A place v, ln of the slope l that bounds the probability of V < v, and ln of that bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Low {
    pub(super) place: f64,
    pub(super) log_slope: f64,
    log_chance: f64,
}

impl Rough {
    /// Places up to the mean of V = W - a.
    pub(super) fn lows(&self, factor: &Factor) -> Vec<Low> {
        let (all, seen) = (factor.batches as f64, factor.seen as f64);
        let mean = seen / all;
        let deviation = (seen * (1.0 / (self.sigma * self.sigma)).exp_m1()).sqrt() / all;
        // By parts of the deviation near the mean, in ratio far below it.
        let (mut steps, mut place) = (Vec::new(), (mean + 3.0 * deviation).min(2.0 * mean));
        while steps.len() < 90 && place > 1e-3 * mean {
            steps.push(place);
            place -= (0.12 * place).min(0.35 * deviation);
        }
        let mut places: Vec<Low> = steps
            .into_iter()
            .map(|place| {
                let value = |log: f64| log.exp() * place - seen * self.fall(log - all.ln());
                let (mut low, mut high) = ((1e-3 / place).ln(), (1e6 / place).ln());
                for _ in 0..50 {
                    let third = (high - low) / 3.0;
                    if value(low + third) < value(high - third) {
                        high -= third
                    } else {
                        low += third
                    }
                }
                let log_slope = 0.5 * (low + high);
                Low { place, log_slope, log_chance: value(log_slope).min(0.0) }
            })
            .collect();
        places.reverse();
        places
    }

    /// ln of the bound on |E W^-(c+iu)| beyond u, at the best angle, and that angle.
    pub(super) fn log_tail(&self, factor: &Factor, lows: &[Low], (c, u): (f64, f64)) -> (f64, f64) {
        let (all, seen) = (factor.batches as f64, factor.seen as f64);
        let rest = (all - seen) / all;
        let mut best = (f64::INFINITY, 0.0);
        let mut kappa = 1.5;
        while kappa > 1e-4 {
            let cost = 0.5 * seen * (self.sigma * kappa).powi(2);
            if cost < 400.0 {
                let (sine, cosine) = f64::sin_cos(kappa);
                let mut level = -c * rest.ln();
                let mut most = f64::NEG_INFINITY;
                for low in lows {
                    most = most.max(level + low.log_chance);
                    let (x, y) = (rest + low.place * cosine, low.place * sine);
                    level = -0.5 * c * (x * x + y * y).ln() - u * y.atan2(x);
                }
                let found = cost + most.max(level) + 1.5;
                if found < best.0 {
                    best = (found, kappa);
                }
            }
            kappa *= 0.75;
        }
        best
    }
}

/// -ln E exp(-e^log Y).
fn log_mean(sigma: f64, log: f64) -> f64 {
    let shift = log - 0.5 / (sigma * sigma);
    if log < -3.0 {
        // 1 - E e^(-xY), of which small x keep their digits.
        let lost: f64 = (-120..=200)
            .map(|i| {
                let g = 0.1 * f64::from(i);
                -(-(shift + g / sigma).exp()).exp_m1() * (-0.5 * g * g).exp()
            })
            .sum();
        return -(-(lost * 0.1 / (2.0 * std::f64::consts::PI).sqrt()).min(1.0 - 1e-12)).ln_1p();
    }
    let value = |g: f64| -0.5 * g * g - (shift + g / sigma).exp();
    // The peak: g + e^(shift + g/sigma)/sigma = 0.
    let (mut low, mut high) = (-(sigma * (log.abs() + 10.0) + 10.0), 0.0);
    for _ in 0..60 {
        let g: f64 = 0.5 * (low + high);
        if g + (shift + g / sigma).exp() / sigma > 0.0 { high = g } else { low = g }
    }
    let peak = 0.5 * (low + high);
    let top = value(peak);
    let step = 0.1 * sigma.min(1.0);
    let mut sum = 0.0;
    for sign in [1.0, -1.0] {
        for k in 0..2000 {
            if sign < 0.0 && k == 0 {
                continue;
            }
            let more = value(peak + sign * step * f64::from(k)) - top;
            sum += more.exp();
            if more < -40.0 {
                break;
            }
        }
    }
    -(top + (sum * step / (2.0 * std::f64::consts::PI).sqrt()).ln())
}

/// ln|Gamma(c + iu)|, c > 0.
pub(super) fn log_gamma(c: f64, u: f64) -> f64 {
    let (mut x, mut sum) = (c, 0.0);
    while x * x + u * u < 100.0 {
        sum -= 0.5 * (x * x + u * u).ln();
        x += 1.0;
    }
    let square = x * x + u * u;
    let (log, angle) = (0.5 * square.ln(), u.atan2(x));
    // (p - 1/2) ln p - p + ln(2 pi)/2 + 1/12p - 1/360p^3, its real part.
    let cubed = (x * x * x - 3.0 * x * u * u) / (square * square * square);
    sum + (x - 0.5) * log - u * angle - x + 0.918_938_533_204_672_7 + x / (12.0 * square)
        - cubed / 360.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_one_number_and_of_many() {
        // One number: E Y^-c = e^(c(c+1)/2s^2).
        for (sigma, c) in [(0.5, 1.0), (1.0, 2.5), (4.0, 30.0)] {
            let one = Factor { batches: 1, seen: 1, times: 1 };
            let found = Rough::new(sigma).log_moment(&one, c);
            let exact = c * (c + 1.0) / (2.0 * sigma * sigma);
            assert!((found - exact).abs() < 1e-4 * (1.0 + exact), "{sigma} {c}: {found} {exact}");
        }
        let many = Factor { batches: 10_000, seen: 10_000, times: 1 };
        let found = Rough::new(2.0).log_moment(&many, 20.0);
        let about = 0.5 * 20.0 * 21.0 * (0.25f64.exp() - 1.0) / 1e4;
        assert!((found / about - 1.0).abs() < 0.05, "{found} {about}");
    }

    #[test]
    fn gamma() {
        assert!((log_gamma(5.0, 0.0) - 24.0f64.ln()).abs() < 1e-6);
        // |Gamma(1/2 + iu)|^2 = pi/cosh(pi u).
        let exact = 0.5 * (std::f64::consts::PI / (std::f64::consts::PI * 3.0).cosh()).ln();
        assert!((log_gamma(0.5, 3.0) - exact).abs() < 1e-6);
    }
}
