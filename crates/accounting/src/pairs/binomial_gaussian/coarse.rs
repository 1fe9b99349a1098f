//! Starting points for the certified root searches, from a few dozen terms.
//!
//! Sums of smooth bell-shaped terms over every m-th k, times m, differ from the full sums by
//! about exp(-2 pi^2 (sd/m)^2), 1e-77 for m = sd/3. That is no bound, so nothing certified is made of it;
//! Newton's method on it finds the threshold that a single full evaluation then confirms.

use super::super::Order;
use super::sums::Sums;
use numerics::elementary::{exp, ln};
use numerics::special::{log_normal_sf, mills_ratio, normal_sf};

/// ln delta, |d ln delta/dy|, f and f' at a threshold.
struct Coarse {
    log_delta: f64,
    delta_slope: f64,
    loss: f64,
    loss_slope: f64,
}

impl Sums {
    /// The stride, if the sums are long enough for one.
    fn stride(&self) -> Option<f64> {
        let width = (1.0 / self.law.variance() + 1.0 / self.variance).recip().sqrt();
        (width > 24.0).then(|| (width / 3.0).floor())
    }

    fn coarse(&self, y: f64, stride: f64, order: Order) -> Option<Coarse> {
        let (s, a) = (self.scale, y / self.scale);
        let anchor = self.mode(y);
        let log_weight = |k: f64| {
            let x = (y - k) / s;
            self.law.log_pmf(k).0 - 0.5 * x * x
        };
        let top = log_weight(anchor);
        let far = mills_ratio(a);
        let (mut weights, mut lever, mut sum) = (0.0, 0.0, 0.0);
        for direction in [stride, -stride] {
            let mut k = if direction > 0.0 { anchor } else { anchor - stride };
            for _ in 0..400 {
                if k < 1.0_f64.max(self.law.smallest()) || k > self.law.largest() {
                    break;
                }
                let w = exp(log_weight(k) - top);
                let x = (y - k) / s;
                let term = match order {
                    Order::Remove if x >= -30.0 => w * (mills_ratio(x) - far),
                    Order::Remove => return None,
                    // Relative to P(N > -a).
                    Order::Add => {
                        w * (1.0
                            - exp(log_normal_sf(-x) - log_normal_sf(-a) + 0.5 * (x * x - a * a)))
                    }
                };
                weights += w;
                lever += w * k;
                sum += term;
                if w < 1e-17 * weights && term <= 1e-17 * sum {
                    break;
                }
                k += direction;
            }
        }
        let loss_slope = lever / weights / self.variance;
        let loss = top + ln(weights * stride) + 0.5 * a * a;
        let (log_delta, delta_slope) = match order {
            Order::Remove => {
                let density = -0.5 * ln(2.0 * std::f64::consts::PI);
                (top + density + ln(sum * stride), weights * loss_slope * far / sum)
            }
            Order::Add => {
                let share = sum / weights;
                (log_normal_sf(-a) + ln(share), loss_slope * (1.0 / share - 1.0))
            }
        };
        let all = log_delta + delta_slope + loss + loss_slope + normal_sf(a);
        all.is_finite().then_some(Coarse { log_delta, delta_slope, loss, loss_slope })
    }

    /// Improves a guess of the threshold with ln delta = `target`; returns the guess if it cannot.
    pub(super) fn coarse_threshold(&self, guess: f64, target: f64, order: Order) -> f64 {
        let sign = if order == Order::Remove { -1.0 } else { 1.0 };
        self.coarse_newton(guess, |y, stride| {
            let at = self.coarse(y, stride, order)?;
            Some((at.log_delta - target) / (sign * at.delta_slope))
        })
    }

    /// Improves a guess of the threshold with f(y) = `target`.
    pub(super) fn coarse_inverse(&self, guess: f64, target: f64) -> f64 {
        self.coarse_newton(guess, |y, stride| {
            let at = self.coarse(y, stride, Order::Add)?;
            Some((at.loss - target) / at.loss_slope)
        })
    }

    /// y <- y - step(y) until it stands still.
    fn coarse_newton(&self, guess: f64, step: impl Fn(f64, f64) -> Option<f64>) -> f64 {
        let Some(stride) = self.stride() else { return guess };
        let mut y = guess;
        for _ in 0..30 {
            match step(y, stride) {
                Some(change) if change.is_finite() => {
                    y -= change.clamp(-8.0 * self.scale, 8.0 * self.scale);
                    if change.abs() <= 1e-15 * y.abs() {
                        return y;
                    }
                }
                _ => return guess,
            }
        }
        y
    }
}
