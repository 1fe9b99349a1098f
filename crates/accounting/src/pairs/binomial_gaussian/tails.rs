//! Tails of P by positive sums, and the complements 1 - delta made of them.

use super::sums::{Log, NEGLIGIBLE, Point, SQRT_TWO_PI, Step, Sum, Sums, first_fall};
use numerics::elementary::{exp, exp_m1, ln, ln_1p, powi};
use numerics::special::{
    MILLS_ERROR, ROUND, gaussian_kernel, log_normal_sf, mills_ratio, normal_density, normal_sf,
};

impl Sums {
    /// 1 - H(P, Q) = P(X < y) + e^f Q(X > y) at epsilon = f(y), by its logarithm, and d/dy of it.
    pub(super) fn remove_complement(&self, y: f64) -> (Log, f64) {
        let (loss, slope) = self.loss(y);
        let (missed, _) = self.tail(y, false);
        let alarm = shifted_tail(y / self.scale, loss);
        let value = add_logs(missed, alarm);
        (value, slope * exp(alarm.value - value.value))
    }

    /// 1 - H(Q, P) = Q(X > y) + e^-f P(X < y) at epsilon = -f(y), by its logarithm, and |d/dy|.
    pub(super) fn add_complement(&self, y: f64) -> (Log, f64) {
        let (loss, slope) = self.loss(y);
        let (lower, _) = self.tail(y, false);
        let missed = shifted_tail(y / self.scale, Log { value: 0.0, error: 0.0 });
        let alarm = Log { value: lower.value - loss.value, error: lower.error + loss.error };
        let value = add_logs(missed, alarm);
        (value, slope * exp(alarm.value - value.value))
    }

    /// `remove` far to the left, where delta is 1 but for less than e^-400.
    pub(super) fn remove_by_complement(&self, y: f64) -> Point {
        let (loss, loss_slope) = self.loss(y);
        let (rest, rest_slope) = self.remove_complement(y);
        let rest_value = exp(rest.value);
        let error = rest_value * exp_m1(rest.error.min(700.0)) + ROUND;
        Point {
            delta: Log { value: ln_1p(-rest_value), error },
            delta_slope: rest_slope * rest_value,
            loss,
            loss_slope,
        }
    }

    /// ln P(X > y) (`above`) or ln P(X < y), X drawn from P; and the derivative's magnitude.
    pub(super) fn tail(&self, y: f64, above: bool) -> (Log, f64) {
        let s = self.scale;
        let sign = if above { 1.0 } else { -1.0 };
        let anchor = self.tail_mode(y, sign);
        let x0 = sign * (y - anchor) / s;
        // Relative to b_anchor P(N > x0): w is relative to w_anchor and needs the factor below.
        let outside_factor =
            if x0 >= 0.0 { 1.0 / mills_ratio(x0) } else { normal_density(x0) / normal_sf(x0) };
        let inside_factor = 1.0 / normal_sf(x0);
        let stride = self.stride_at(y, anchor);
        let mut sum = Sum { total: 1.0, rest: 0.0 };
        let (mut error, mut hazard) = (0.0, outside_factor);
        for up in [true, false] {
            let (mut missing, mut before) = (0.0, 1.0);
            // b relative to the anchor, used from the first k inside (x < 0) on; w might overflow there.
            let mut inside = x0 < 0.0;
            let mut mass = 1.0;
            let mut mass_factor = inside_factor;
            let cut =
                self.walk(y, anchor, stride, up, |Step { k, w, pmf_ratio, drift, .. }| {
                    let x = sign * (y - k) / s;
                    let (t, slack) = if x >= 0.0 && !inside {
                        (w * outside_factor * mills_ratio(x), MILLS_ERROR)
                    } else {
                        if inside {
                            mass *= pmf_ratio;
                        } else {
                            inside = true;
                            mass = w;
                            mass_factor = outside_factor * SQRT_TWO_PI / gaussian_kernel(x);
                        }
                        (mass * mass_factor * normal_sf(x), MILLS_ERROR + 4.0 * ROUND)
                    };
                    sum.add(t);
                    error += t * (drift + slack + 6.0 * ROUND);
                    if w.is_finite() {
                        hazard += w * outside_factor;
                    }
                    let fall = t / before;
                    before = t;
                    missing = if fall < 1.0 { t * fall / (1.0 - fall) } else { 0.0 };
                    fall >= 1.0 || missing > NEGLIGIBLE * sum.total
                });
            if cut {
                error += missing;
            }
        }
        let sum = sum.get();
        let log_sum = ln(sum) + ln(stride);
        let (log_pmf, pmf_error) = self.law.log_pmf(anchor);
        let value = log_pmf + log_normal_sf(x0) + log_sum;
        let log = Log {
            value,
            error: pmf_error
                + ROUND * (6.0 * powi(x0.max(0.0), 2) + 3.0 * log_sum.abs() + 6.0)
                + 2.0 * MILLS_ERROR
                + error / sum
                + exp(self.log_lost_tail(y, anchor, stride, above) - value),
        };
        (log, hazard / (s * sum))
    }

    fn tail_mode(&self, y: f64, sign: f64) -> f64 {
        let log_sf = |k: f64| log_normal_sf(sign * (y - k) / self.scale);
        let rises = |k: f64| self.law.log_ratio(k) + log_sf(k + 1.0) - log_sf(k) > 0.0;
        first_fall(self.law.smallest(), self.law.largest(), rises)
    }
}

/// ln(e^shift P(N > a)).
fn shifted_tail(a: f64, shift: Log) -> Log {
    let tail = log_normal_sf(a);
    let scale = tail.abs() + a.abs().min(1.0) + powi(a.max(0.0), 2);
    Log {
        value: shift.value + tail,
        error: shift.error + 2.0 * MILLS_ERROR * scale + ROUND * shift.value.abs(),
    }
}

/// ln(e^a + e^b): the errors enter with the shares of the terms, which the larger error bounds;
/// a term that is certain to be negligible is left out of that.
fn add_logs(a: Log, b: Log) -> Log {
    let value = numerics::special::log_add_exp(a.value, b.value);
    let share = |term: Log| exp(term.value - value) * exp_m1(term.error.min(700.0));
    Log { value, error: share(a) + share(b) + 4.0 * ROUND * (1.0 + value.abs().min(1.0)) }
}
