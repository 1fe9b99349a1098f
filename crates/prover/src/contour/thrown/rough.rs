//! Averages of log-normal numbers in doubles, to choose by. Nothing here is trusted.

use super::Factor;
use super::power::{Power, raised};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Batches of an epoch, those seen, and a power.
type Key = (u64, u64, u64);
type Values = Rc<Vec<f64>>;

/// ln E e^(-xY) as a table over ln x.
pub(super) struct Rough {
    sigma: f64,
    /// ln(-ln E e^(-xY)) - ln x at ln x = LOW + k STEP.
    table: Vec<f64>,
    /// What was asked before: lines are looked for at the same tilts for every threshold.
    known: RefCell<BTreeMap<Key, Summit>>,
    /// ln E[W^m e^(-zW)] at ln z = FIRST + k STRIDE, by the factor and m.
    weighted: RefCell<BTreeMap<Key, Values>>,
}

/// Where z^p E[W^m e^(-zW)] is largest, ln of it there, and ln E W^(m-p).
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
const FIRST: f64 = -44.0;
const STRIDE: f64 = 0.2;

impl Rough {
    pub(super) fn new(sigma: f64) -> Self {
        let mut table = Vec::new();
        loop {
            let log = LOW + STEP * table.len() as f64;
            let value = log_mean(sigma, log);
            table.push(value.ln() - log);
            if value > DEEPEST || table.len() > 4000 {
                return Self {
                    sigma,
                    table,
                    known: RefCell::default(),
                    weighted: RefCell::default(),
                };
            }
        }
    }

    pub(super) fn sigma(&self) -> f64 {
        self.sigma
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

    /// ln E e^(-zW) at z = e^tau.
    fn log_plain(&self, factor: &Factor, tau: f64) -> f64 {
        let batches = factor.batches as f64;
        let rest = (factor.batches - factor.seen) as f64 / batches;
        -rest * tau.exp() - factor.seen as f64 * self.fall(tau - batches.ln())
    }

    /// ln E[W^m e^(-zW)] at z = e^tau: m! times the coefficient of x^m in e^(ax) (sum of f_k x^k/k!)^n, relative to that
    /// of x^0. The unit of x is chosen so that nothing overflows.
    fn log_weighted(&self, factor: &Factor, m: usize, tau: f64) -> f64 {
        let plain = self.log_plain(factor, tau);
        if m == 0 {
            return plain;
        }
        let (all, inverse) = (factor.batches as f64, self.sigma.powi(-2));
        let rest = (factor.batches - factor.seen) as f64 / all;
        let base = tau - all.ln();
        let here = self.fall(base);
        let logs: Vec<f64> = (0..=m)
            .map(|k| {
                let k = k as f64;
                0.5 * k * (k - 1.0) * inverse + here - self.fall(base + k * inverse) - k * all.ln()
            })
            .collect();
        let unit = (logs[m] / m as f64).max(rest.max(1e-300).ln() - 15.0);
        let mut factorial = 1.0;
        let (mut series, mut other) = (vec![0.0; m + 1], vec![0.0; m + 1]);
        let scaled = rest / unit.exp();
        let mut power = 1.0;
        for k in 0..=m {
            if k > 0 {
                factorial *= k as f64;
                power *= scaled;
            }
            series[k] = (logs[k] - k as f64 * unit).exp() / factorial;
            other[k] = power / factorial;
        }
        let whole = raised(&series, &other, factor.seen)[m];
        plain + whole.ln() + factorial.ln() + m as f64 * unit
    }

    fn weighted(&self, factor: &Factor, m: usize) -> Values {
        let key = (factor.batches, factor.seen, m as u64);
        if let Some(known) = self.weighted.borrow().get(&key) {
            return Rc::clone(known);
        }
        let (mut values, mut most): (Vec<f64>, f64) = (Vec::new(), f64::NEG_INFINITY);
        while values.len() < 1200 {
            let tau = FIRST + STRIDE * values.len() as f64;
            let value = self.log_weighted(factor, m, tau);
            let value = if value.is_nan() { f64::NEG_INFINITY } else { value };
            values.push(value);
            let here = 0.5 * tau + value;
            most = most.max(here);
            if here < most - 300.0 {
                break;
            }
        }
        let values = Rc::new(values);
        self.weighted.borrow_mut().insert(key, Rc::clone(&values));
        values
    }

    /// ln E W^m.
    pub(super) fn log_whole(&self, factor: &Factor, m: usize) -> f64 {
        if m == 0 { 0.0 } else { self.weighted(factor, m)[0] }
    }

    /// ln of z^p E[W^m e^(-zW)] at z = e^tau.
    pub(super) fn log_at(&self, factor: &Factor, power: Power, tau: f64) -> f64 {
        if power.m == 0 {
            return power.p * tau + self.log_plain(factor, tau);
        }
        let values = self.weighted(factor, power.m);
        let place = ((tau - FIRST) / STRIDE).max(0.0);
        let index = (place as usize).min(values.len() - 2);
        let part = place - index as f64;
        power.p * tau + values[index] + part * (values[index + 1] - values[index])
    }

    /// The tau at which that is largest, and its value there.
    pub(super) fn peak(&self, factor: &Factor, power: Power) -> (f64, f64) {
        let summit = self.summit(factor, power);
        (summit.tau, summit.log)
    }

    /// ln E W^s.
    pub(super) fn log_moment(&self, factor: &Factor, s: f64) -> f64 {
        if s == 0.0 {
            return 0.0;
        }
        Power::of(s).map_or(f64::INFINITY, |power| self.summit(factor, power).log_moment)
    }

    fn summit(&self, factor: &Factor, power: Power) -> Summit {
        let key = (factor.batches, factor.seen, power.tilt().to_bits());
        if let Some(known) = self.known.borrow().get(&key) {
            return *known;
        }
        let summit = if power.m == 0 {
            self.plain_summit(factor, power)
        } else {
            self.weighted_summit(factor, power)
        };
        self.known.borrow_mut().insert(key, summit);
        summit
    }

    fn weighted_summit(&self, factor: &Factor, power: Power) -> Summit {
        let values = self.weighted(factor, power.m);
        let tau = |k: usize| FIRST + STRIDE * k as f64;
        let (mut best, mut most) = (0, f64::NEG_INFINITY);
        for (k, value) in values.iter().enumerate() {
            let here = power.p * tau(k) + value;
            if here > most {
                (best, most) = (k, here);
            }
        }
        let terms = values.iter().enumerate();
        let sum: f64 = terms.map(|(k, value)| (power.p * tau(k) + value - most).exp()).sum();
        let log_moment = most + (sum * STRIDE).ln() - log_gamma(power.p, 0.0);
        Summit { tau: tau(best), log: most, log_moment }
    }

    fn plain_summit(&self, factor: &Factor, power: Power) -> Summit {
        let (mut low, mut high) = (-60.0, 90.0);
        for _ in 0..70 {
            let third = (high - low) / 3.0;
            let (one, two) = (low + third, high - third);
            if self.log_at(factor, power, one) < self.log_at(factor, power, two) {
                low = one
            } else {
                high = two
            }
        }
        let tau = 0.5 * (low + high);
        let log = self.log_at(factor, power, tau);
        let step = 0.25 / (1.0 + power.p).sqrt();
        let mut sum = 1.0;
        for sign in [1.0, -1.0] {
            for k in 1..4000 {
                let more = self.log_at(factor, power, tau + sign * step * f64::from(k)) - log;
                sum += more.exp();
                if more < -40.0 {
                    break;
                }
            }
        }
        let log_moment = log + (sum * step).ln() - log_gamma(power.p, 0.0);
        Summit { tau, log, log_moment }
    }
}

/// A place v, ln of the slope l that bounds the probability of V < v, and ln of that bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Low {
    pub(super) place: f64,
    pub(super) log_slope: f64,
    pub(super) log_chance: f64,
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

    /// ln of the bound on |E W^(s+iu)| beyond u, at the best angle, and that angle.
    pub(super) fn log_tail(&self, factor: &Factor, lows: &[Low], (s, u): (f64, f64)) -> (f64, f64) {
        let (all, seen) = (factor.batches as f64, factor.seen as f64);
        let rest = (all - seen) / all;
        let mut best = (f64::INFINITY, 0.0);
        let mut kappa = 1.5;
        while kappa > 1e-4 {
            let cost = 0.5 * seen * (self.sigma * kappa).powi(2);
            if cost < 400.0 {
                let (sine, cosine) = f64::sin_cos(kappa);
                let mut level = s.min(0.0) * rest.ln();
                let mut most = f64::NEG_INFINITY;
                for low in lows {
                    most = most.max(level + low.log_chance + s.max(0.0) * (rest + low.place).ln());
                    let (x, y) = (rest + low.place * cosine, low.place * sine);
                    level = 0.5 * s.min(0.0) * (x * x + y * y).ln() - u * y.atan2(x);
                }
                if s > 0.0 {
                    level += self.log_moment(factor, s);
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
            let found = Rough::new(sigma).log_moment(&one, -c);
            let exact = c * (c + 1.0) / (2.0 * sigma * sigma);
            assert!((found - exact).abs() < 1e-4 * (1.0 + exact), "{sigma} {c}: {found} {exact}");
        }
        let many = Factor { batches: 10_000, seen: 10_000, times: 1 };
        let found = Rough::new(2.0).log_moment(&many, -20.0);
        let about = 0.5 * 20.0 * 21.0 * (0.25f64.exp() - 1.0) / 1e4;
        assert!((found / about - 1.0).abs() < 0.05, "{found} {about}");
    }

    #[test]
    fn moments_above_0() {
        for (sigma, c) in [(0.7, 0.25), (1.0, 2.5), (4.0, 14.0)] {
            let one = Factor { batches: 1, seen: 1, times: 1 };
            let found = Rough::new(sigma).log_moment(&one, c);
            let exact = 0.5 * c * (c - 1.0) / (sigma * sigma);
            assert!((found - exact).abs() < 1e-3 * (1.0 + exact), "{sigma} {c}: {found} {exact}");
        }
        let all = Factor { batches: 500, seen: 500, times: 1 };
        let part = Factor { batches: 500, seen: 20, times: 1 };
        let rough = Rough::new(1.3);
        let inverse = 1.0 / (1.3f64 * 1.3);
        for (factor, times) in [(&all, 500.0), (&part, 20.0)] {
            assert!(rough.log_moment(factor, 1.0).abs() < 1e-5);
            let exact = (times * inverse.exp_m1() / 250_000.0).ln_1p();
            let found = rough.log_moment(factor, 2.0);
            assert!((found - exact).abs() < 1e-5 + 1e-3 * exact, "{times}: {found} {exact}");
        }
    }

    #[test]
    fn gamma() {
        assert!((log_gamma(5.0, 0.0) - 24.0f64.ln()).abs() < 1e-6);
        // |Gamma(1/2 + iu)|^2 = pi/cosh(pi u).
        let exact = 0.5 * (std::f64::consts::PI / (std::f64::consts::PI * 3.0).cosh()).ln();
        assert!((log_gamma(0.5, 3.0) - exact).abs() < 1e-6);
    }
}
