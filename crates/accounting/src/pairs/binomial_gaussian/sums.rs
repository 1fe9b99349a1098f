//! The windowed sums behind the last-iterate pair, each with a bound on its error.
//!
//! Write x_k = (y-k)/s, h_k = k/s, a = y/s, w_k = b_k density(x_k) and R for the Mills ratio.
//! The log-likelihood ratio is f(y) = ln sum_k w_k - ln density(a), increasing and convex, and
//!
//!   H(P, Q) at epsilon = f(y):   sum_{k>=1} w_k [R(a - h_k) - R(a)]
//!   H(Q, P) at epsilon = -f(y):  density(a) sum_{k>=1} w_k [R(-a) - R(h_k - a)] / sum_k w_k
//!
//! (substitute e^f into P(X > y) - e^f Q(X > y), and likewise for the other order; the term k = 0
//! vanishes identically). All terms are positive, so nothing cancels, however small q or the
//! signal; parametrised by y, no inner root search is needed. Weights are carried by their
//! ratios from an anchor at their largest term, whose logarithm is Loader's; b, w and
//! b_k P(N > x_k) are log-concave in k, so the walk stops where a geometric tail is below 1e-18.

use super::super::gaussian::SERIES_REACH;
use super::bracket::{Bracket, series_difference};
use super::law::CountLaw;
use numerics::elementary::{exp, exp_m1, ln};
use numerics::special::{
    HALF_LN_TWO_PI, MILLS_ERROR, ROUND, SERIES_ERROR, gaussian_kernel, log_normal_sf,
    mills_moments, mills_ratio, normal_sf,
};

pub(super) const SQRT_TWO_PI: f64 = 2.506_628_274_631_000_5;
/// Tails below this share of the sum are left out (and added to the error).
pub(super) const NEGLIGIBLE: f64 = 1e-18;

/// A number known by its logarithm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Log {
    pub value: f64,
    pub error: f64,
}

/// One order of the pair at the threshold y.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// ln delta.
    pub delta: Log,
    /// |d ln delta / dy|.
    pub delta_slope: f64,
    /// f(y), by the logarithm of the sum (absolute error).
    pub loss: Log,
    /// f'(y), about.
    pub loss_slope: f64,
}

/// Neumaier's sum of positive terms: two roundings whatever the count.
#[derive(Clone, Copy, Default)]
pub(super) struct Sum {
    pub total: f64,
    pub rest: f64,
}

impl Sum {
    #[inline]
    pub(super) fn add(&mut self, term: f64) {
        let next = self.total + term;
        self.rest += if self.total.abs() >= term.abs() {
            (self.total - next) + term
        } else {
            (term - next) + self.total
        };
        self.total = next;
    }

    pub(super) fn get(self) -> f64 {
        self.total + self.rest
    }
}

/// The smallest k of an interval that does not rise, where all below it do.
pub(super) fn first_fall(mut low: f64, mut high: f64, rises: impl Fn(f64) -> bool) -> f64 {
    while low < high {
        let middle = ((low + high) * 0.5).floor();
        if rises(middle) {
            low = middle + 1.0;
        } else {
            high = middle;
        }
    }
    low
}

/// The pair's law and noise.
#[derive(Clone, Debug)]
pub(super) struct Sums {
    pub law: CountLaw,
    /// Variance of the noise.
    pub variance: f64,
    /// Its root.
    pub scale: f64,
    /// No term stands for more counts than this: any number, but in tests that sum every term.
    pub longest: f64,
}

/// The visited weights on one side of the anchor.
pub(super) struct Step {
    pub k: f64,
    /// Weight relative to the anchor's.
    pub w: f64,
    /// This weight over the previous one; the next ratio is no larger.
    pub ratio: f64,
    /// The same for the law alone.
    pub pmf_ratio: f64,
    /// Bound on the relative error of `w`.
    pub drift: f64,
}

impl Sums {
    /// Walks away from the anchor, excluding it, until `visit` says stop (true: terms are left
    /// out) or the support ends (false).
    #[inline]
    pub(super) fn walk(
        &self,
        y: f64,
        anchor: f64,
        stride: f64,
        up: bool,
        mut visit: impl FnMut(Step) -> bool,
    ) -> bool {
        let range = self.law.ratios_around(anchor).filter(|_| stride <= 1.0);
        let Some((first, last)) = range else {
            return self.stride_walk(y, anchor, (anchor, 0.0), stride, up, visit);
        };
        let inverse = 1.0 / self.variance;
        let (mut k, mut w, mut drift) = (anchor, 1.0, self.law.entry_error());
        let (last, end) =
            if up { (last, self.law.largest()) } else { (first, self.law.smallest()) };
        while k != last {
            let low = if up { k } else { k - 1.0 };
            let tilt = (y - low - 0.5) * inverse;
            let pmf_ratio = self.law.ratio(low);
            let forward = pmf_ratio * exp(tilt);
            let (ratio, pmf_ratio) =
                if up { (forward, pmf_ratio) } else { (1.0 / forward, 1.0 / pmf_ratio) };
            k += if up { 1.0 } else { -1.0 };
            w *= ratio;
            drift += ROUND * (12.0 + 8.0 * tilt.abs());
            if !visit(Step { k, w, ratio, pmf_ratio, drift }) {
                return k != end;
            }
        }
        // Beyond a table each count is inverted.
        k != end && self.stride_walk(y, anchor, (k, drift), 1.0, up, visit)
    }

    /// The k with the largest w_k: the ratio of neighbours falls through 1 there.
    pub(super) fn mode(&self, y: f64) -> f64 {
        if let Some(peak) = self.law.peak_with(y, self.variance) {
            return peak;
        }
        let rises = |k: f64| self.law.log_ratio(k) + (y - k - 0.5) / self.variance > 0.0;
        let (mut low, mut high) = (self.law.smallest(), self.law.largest());
        // The normal approximation narrows the search to a few halvings.
        let precision = 1.0 / self.law.variance() + 1.0 / self.variance;
        let guess = (self.law.mean() / self.law.variance() + y / self.variance) / precision;
        let mut width = (2.0 + 2.0 * precision.recip().sqrt()).floor();
        let guess = guess.clamp(low, high).floor();
        if rises(guess) {
            low = (guess + 1.0).min(high);
            while low + width < high && rises(low + width) {
                low += width;
                width *= 4.0;
            }
            high = (low + width).min(high);
        } else {
            high = guess;
            while high - width > low && !rises(high - width) {
                high -= width;
                width *= 4.0;
            }
            low = (high - width).max(low);
        }
        first_fall(low, high, rises)
    }

    /// ln w at the anchor, with w's Gaussian written relative to density(a) if asked.
    fn loss_from(&self, y: f64, anchor: f64, stride: f64, weights: f64, weights_error: f64) -> Log {
        let (log_pmf, error) = self.law.log_pmf(anchor);
        // Relative to the anchor's weight and to the number of counts that a term stands for.
        let log_weights = ln(weights) + ln(stride);
        let exponent = anchor * (y - 0.5 * anchor) / self.variance;
        Log {
            value: log_pmf + exponent + log_weights,
            error: error
                + ROUND * (8.0 * exponent.abs() + 4.0 * log_weights.abs() + 4.0)
                + weights_error / weights,
        }
    }

    /// H(P, Q) at threshold y > 0, epsilon = f(y).
    pub(super) fn remove(&self, y: f64) -> Point {
        crate::patience::look();
        let (s, a) = (self.scale, y / self.scale);
        let anchor = self.mode(y);
        let x0 = (y - anchor) / s;
        // The law at its mean, relative to the anchor's term, would not fit into a double.
        let overflows = x0 < 0.0 && 0.5 * x0 * x0 - self.law.log_pmf(anchor).0 > 600.0;
        if x0 < -30.0 || overflows {
            return self.remove_by_complement(y);
        }
        let stride = self.stride_at(y, anchor);
        let far = mills_ratio(a);
        let series = mills_moments::<26>(a);
        let mut weights = Sum { total: 1.0, rest: 0.0 };
        let (mut weights_error, mut lever) = (0.0, 0.0);
        let mut sum = Sum::default();
        let mut error = 0.0;
        // b_k, relative to w at the anchor; carried on its own only where x < 0.
        let mut mass = if x0 < 0.0 { SQRT_TWO_PI / gaussian_kernel(x0) } else { 0.0 };
        let mut inside = x0 < 0.0;

        // (term, its error without drift, bound b_k P(N > x_k))
        let term = |k: f64, w: f64, mass: f64| -> (f64, f64, f64) {
            let h = k / s;
            if h <= SERIES_REACH {
                let u = w * series_difference(&series, h);
                return (u, SERIES_ERROR * u, u + w * far);
            }
            let x = (y - k) / s;
            if x >= 0.0 {
                let near = mills_ratio(x);
                (w * (near - far), (MILLS_ERROR + 4.0 * ROUND) * w * (near + far), w * near)
            } else {
                let tail = mass * normal_sf(x);
                (tail - w * far, (MILLS_ERROR + 4.0 * ROUND) * (tail + w * far), tail)
            }
        };
        let mut bound = {
            let (u, e, t) = term(anchor, 1.0, mass);
            if anchor >= 1.0 {
                sum.add(u);
                error += e;
            }
            t
        };
        let start_mass = mass;
        let mut missing = 0.0;
        let mut missing_weights = 0.0;
        let cut = self.walk(y, anchor, stride, true, |Step { k, w, ratio, pmf_ratio, drift }| {
            if inside {
                mass *= pmf_ratio;
            } else if k > y {
                inside = true;
                mass = w * SQRT_TWO_PI / gaussian_kernel((y - k) / s);
            }
            let (u, e, t) = term(k, w, mass);
            weights.add(w);
            weights_error += w * drift;
            lever += w * (k - anchor);
            sum.add(u);
            error += e + u * drift;
            let fall = t / bound;
            bound = t;
            // Past its mode, the ratio of neighbours of t (and of w) only falls.
            if fall < 1.0 && ratio < 1.0 {
                missing = t * fall / (1.0 - fall);
                missing_weights = w * ratio / (1.0 - ratio);
                if missing <= NEGLIGIBLE * sum.total
                    && missing_weights <= NEGLIGIBLE * weights.total
                {
                    return false;
                }
            }
            true
        });
        if cut {
            error += missing;
            weights_error += missing_weights;
        }
        let (mut missing, mut missing_weights) = (0.0, 0.0);
        let mut mass = start_mass;
        let cut = self.walk(y, anchor, stride, false, |Step { k, w, ratio, pmf_ratio, drift }| {
            mass *= pmf_ratio;
            weights.add(w);
            weights_error += w * drift;
            lever += w * (k - anchor);
            let mut u = 0.0;
            if k >= 1.0 {
                let (value, e, _) = term(k, w, mass);
                u = value;
                sum.add(u);
                error += e + u * drift;
            }
            if ratio < 1.0 {
                // The bracket falls with k, so u falls at least as fast as w.
                let tail = ratio / (1.0 - ratio);
                missing = u * tail;
                missing_weights = w * tail;
                return !(missing <= NEGLIGIBLE * sum.total
                    && missing_weights <= NEGLIGIBLE * weights.total);
            }
            true
        });
        if cut {
            error += missing;
            weights_error += missing_weights;
        }

        let (log_pmf, pmf_error) = self.law.log_pmf(anchor);
        // What the stride leaves out; tails relative to b phi(x) at the anchor.
        let lost = self.lost_weights(y, anchor, stride) / stride;
        let log_tail = self.log_lost_tail(y, anchor, stride, true) - log_pmf;
        weights_error += lost;
        error += far * lost + exp(log_tail + 0.5 * x0 * x0 + HALF_LN_TWO_PI) / stride;

        let (weights, sum) = (weights.get(), sum.get());
        let log_sum = ln(sum) + ln(stride);
        let loss_slope = (anchor + lever / weights) / self.variance;
        Point {
            delta: Log {
                value: log_pmf - 0.5 * x0 * x0 - HALF_LN_TWO_PI + log_sum,
                error: pmf_error
                    + ROUND * (6.0 * x0 * x0 + 3.0 * log_sum.abs() + 6.0)
                    + error / sum,
            },
            delta_slope: weights * loss_slope * far / sum,
            loss: self.loss_from(y, anchor, stride, weights, weights_error),
            loss_slope,
        }
    }

    /// H(Q, P) at threshold y, epsilon = -f(y).
    pub(super) fn add(&self, y: f64) -> Point {
        crate::patience::look();
        let s = self.scale;
        let base = -y / s;
        let anchor = self.mode(y);
        let stride = self.stride_at(y, anchor);
        let bracket = Bracket::new(base);
        let mut weights = Sum { total: 1.0, rest: 0.0 };
        let (mut weights_error, mut lever) = (0.0, 0.0);
        let mut sum = Sum::default();
        let mut error = 0.0;
        if anchor >= 1.0 {
            let (d, e) = bracket.at(anchor / s);
            sum.add(d);
            error += e;
        }
        for up in [true, false] {
            let (mut missing, mut missing_weights) = (0.0, 0.0);
            let cut = self.walk(y, anchor, stride, up, |Step { k, w, ratio, drift, .. }| {
                weights.add(w);
                weights_error += w * drift;
                lever += w * (k - anchor);
                let mut u = 0.0;
                if k >= 1.0 {
                    let (d, e) = bracket.at(k / s);
                    u = w * d;
                    sum.add(u);
                    error += w * e + u * drift;
                }
                if ratio < 1.0 {
                    let tail = ratio / (1.0 - ratio);
                    // Upwards the bracket is at most its limit; downwards it falls with k.
                    missing = tail * if up { w * bracket.limit } else { u };
                    missing_weights = w * tail;
                    return !(missing <= NEGLIGIBLE * sum.total
                        && missing_weights <= NEGLIGIBLE * weights.total);
                }
                true
            });
            if cut {
                error += missing;
                weights_error += missing_weights;
            }
        }
        let lost = self.lost_weights(y, anchor, stride) / stride;
        let x0 = (y - anchor) / s;
        let log_tail = self.log_lost_tail(y, anchor, stride, false) - self.law.log_pmf(anchor).0;
        let tail = exp(log_tail + 0.5 * x0 * x0 + HALF_LN_TWO_PI) / stride;
        weights_error += lost;
        error += bracket.limit * lost + bracket.density * tail;
        let (weights, sum) = (weights.get(), sum.get());
        let loss_slope = (anchor + lever / weights) / self.variance;
        let value = bracket.log_factor + ln(sum) - ln(weights);
        let whole = log_normal_sf(base);
        Point {
            delta: Log {
                value,
                error: error / sum
                    + weights_error / weights
                    + ROUND
                        * (3.0 * bracket.log_factor.abs()
                            + 6.0 * base * base
                            + 3.0 * ln(sum).abs()
                            + 8.0),
            },
            delta_slope: loss_slope * exp_m1(whole - value).max(0.0),
            loss: self.loss_from(y, anchor, stride, weights, weights_error),
            loss_slope,
        }
    }

    /// f(y) by the logarithm of the sum; see [`Sums::small_loss`] for values near 0.
    pub(super) fn loss(&self, y: f64) -> (Log, f64) {
        let anchor = self.mode(y);
        let stride = self.stride_at(y, anchor);
        let mut weights = Sum { total: 1.0, rest: 0.0 };
        let (mut weights_error, mut lever) = (0.0, 0.0);
        for up in [true, false] {
            let mut missing = 0.0;
            let cut = self.walk(y, anchor, stride, up, |Step { k, w, ratio, drift, .. }| {
                weights.add(w);
                weights_error += w * drift;
                lever += w * (k - anchor);
                missing = if ratio < 1.0 { w * ratio / (1.0 - ratio) } else { 0.0 };
                ratio >= 1.0 || missing > NEGLIGIBLE * weights.total
            });
            if cut {
                weights_error += missing;
            }
        }
        weights_error += self.lost_weights(y, anchor, stride) / stride;
        let weights = weights.get();
        let log = self.loss_from(y, anchor, stride, weights, weights_error);
        let slope = (anchor + lever / weights) / self.variance;
        if log.value.abs() < 0.5 {
            (self.small_loss(y).unwrap_or(log), slope)
        } else {
            (log, slope)
        }
    }
}
