//! Averages over neighbouring thresholds, for measures too rough for the contour to end.
//!
//! g(s) = E (e^Y - s)_+ is convex in s = e^t. Let g_h be its average over s e^{hZ - h^2/2}, Z
//! standard normal: a factor of mean 1, so g <= g_h. The excess of a single kink is the time value
//! of an option, the integral over volatilities v up to h of s phi(m/v + v/2); from
//! (m/v + v/2)^2 = m^2/v^2 + m + v^2/4 the integrand at v + h is at least e^{-3 h^2/8} times that
//! at v <= h, so g_2h - g_h >= e^{-3 h^2/8} (g_h - g), and
//!   g_h - e^{3 h^2/8} (g_2h - g_h) <= g <= g_h,
//! with g_h - (g_2h - g_h)/3 the value that extrapolation to h = 0 gives, of fourth order in h.
//!
//! Under the contour the average is the factor e^{h^2 s (s - 1)/2}, which falls like
//! e^{-h^2 u^2/2}: the number of nodes is bounded whatever the measure.

use super::line::LOG_TOLERANCE;
use crate::elementary::{exp, ln};
use std::f64::consts::PI;

/// Nodes for which a smoothing is made.
pub(crate) const SMOOTH_NODES: f64 = 32_768.0;

/// The width h of the average, in units of t; zero for none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Smoothing(f64);

impl Smoothing {
    pub(crate) fn none() -> Self {
        Self(0.0)
    }

    /// The narrowest average whose transform ends within the nodes allowed; `log_size` is the
    /// logarithm of what is computed, in units of the transform at the real tilt.
    pub(crate) fn within(spacing: f64, c: f64, log_size: f64) -> Self {
        let top = SMOOTH_NODES * spacing;
        let depth = LOG_TOLERANCE - log_size - ln(PI * top).min(0.0) + 2.0;
        let width = (2.0 * depth).sqrt() / top;
        // The real tilt's own growth, e^{h^2 c (c - 1)/2}, once more.
        let grown = depth + 0.5 * width * width * c * (c - 1.0);
        Self((2.0 * grown).sqrt() / top)
    }

    pub(crate) fn is_none(self) -> bool {
        self.0 == 0.0
    }

    /// The average twice as wide.
    pub(crate) fn doubled(self) -> Self {
        Self(2.0 * self.0)
    }

    /// log of the modulus of the factor at c + iu.
    pub(crate) fn log_factor(self, c: f64, u: f64) -> f64 {
        0.5 * self.0 * self.0 * (c * (c - 1.0) - u * u)
    }

    /// Argument of the factor at c + iu.
    pub(crate) fn argument(self, c: f64, u: f64) -> f64 {
        0.5 * self.0 * self.0 * u * (2.0 * c - 1.0)
    }

    /// How far below g_h the truth may be, in units of g_2h - g_h.
    pub(crate) fn reach(self) -> f64 {
        exp(0.375 * self.0 * self.0) * (1.0 + 4.0 * f64::EPSILON)
    }
}

#[cfg(test)]
mod tests {
    use super::Smoothing;
    use crate::special::normal_cdf;

    /// E (e^{hZ - h^2/2} - e^{-m})_+ minus its value at h = 0, for small |m| without cancellation.
    fn excess(h: f64, m: f64) -> f64 {
        // Put or call, whichever is out of the money: their excess is the same.
        let d = m / h + 0.5 * h;
        if m <= 0.0 {
            normal_cdf(d) - (-m).exp() * normal_cdf(d - h)
        } else {
            (-m).exp() * normal_cdf(h - d) - normal_cdf(-d)
        }
    }

    #[test]
    fn one_kink_lies_between_the_bounds() {
        for h in [1e-3, 0.02, 0.3, 1.0] {
            let reach = Smoothing(h).reach();
            for step in -40..=40 {
                let m = 0.1 * f64::from(step) * h;
                let (once, twice) = (excess(h, m), excess(2.0 * h, m));
                assert!(once >= -1e-16 && once - reach * (twice - once) <= 1e-16, "{h} {m}");
                // At the money the bound is sharp for small h.
                if step == 0 && h < 0.1 {
                    assert!(once - 0.9 * reach * (twice - once) > 0.0, "{h}");
                }
            }
        }
    }
}
