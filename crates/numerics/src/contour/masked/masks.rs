//! Smooth steps that split a step's outcomes into classes, and how fast they grow off the axis.

use crate::special::{log_normal_cdf, normal_cdf};

/// A smooth step Phi((x - centre)/width).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) centre: f64,
    pub(crate) width: f64,
}

/// The masks of one part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Masks {
    pub(crate) upper: Option<Edge>,
    pub(crate) lower: Option<Edge>,
}

impl Masks {
    pub(super) fn keep(&self, x: f64) -> f64 {
        self.upper.map_or(1.0, |edge| normal_cdf((edge.centre - x) / edge.width))
    }

    pub(super) fn rise(&self, x: f64) -> f64 {
        self.lower.map_or(1.0, |edge| normal_cdf((x - edge.centre) / edge.width))
    }

    /// 1 - rise and 1 - keep, without cancellation.
    pub(super) fn fall(&self, x: f64) -> f64 {
        self.lower.map_or(0.0, |edge| normal_cdf((edge.centre - x) / edge.width))
    }

    pub(super) fn high(&self, x: f64) -> f64 {
        self.upper.map_or(0.0, |edge| normal_cdf((x - edge.centre) / edge.width))
    }

    /// The logarithm of a mask; where the mask itself underflows, from the tail of the normal.
    pub(super) fn log(mask: f64, x: f64, edges: &[(Option<Edge>, f64)]) -> f64 {
        if mask > 1e-280 {
            return mask.ln();
        }
        let log = |edge: Edge, sign: f64| log_normal_cdf(sign * (x - edge.centre) / edge.width);
        edges.iter().map(|(edge, sign)| edge.map_or(0.0, |edge| log(edge, *sign))).sum()
    }

    /// The four masks with their logarithms.
    pub(super) fn keep_with_log(&self, x: f64) -> (f64, f64) {
        let mask = self.keep(x);
        (mask, Self::log(mask, x, &[(self.upper, -1.0)]))
    }

    pub(super) fn middle_with_log(&self, x: f64) -> (f64, f64) {
        let mask = self.keep(x) * self.rise(x);
        (mask, Self::log(mask, x, &[(self.upper, -1.0), (self.lower, 1.0)]))
    }

    pub(super) fn low_with_log(&self, x: f64) -> (f64, f64) {
        let mask = self.keep(x) * self.fall(x);
        if self.lower.is_none() {
            return (0.0, f64::NEG_INFINITY);
        }
        (mask, Self::log(mask, x, &[(self.upper, -1.0), (self.lower, -1.0)]))
    }

    pub(super) fn high_with_log(&self, x: f64) -> (f64, f64) {
        let mask = self.high(x);
        if self.upper.is_none() {
            return (0.0, f64::NEG_INFINITY);
        }
        (mask, Self::log(mask, x, &[(self.upper, 1.0)]))
    }

    /// log of a bound on |mask(x + iy)| / mask(x): |Phi(z)| <= e^{Im z^2 / 2} Phi(Re z), and
    /// <= 1 + e^{Im z^2/2} Phi(-Re z) where that is smaller.
    pub(super) fn keep_growth(&self, x: f64, y: f64) -> f64 {
        self.upper.map_or(0.0, |edge| growth((edge.centre - x) / edge.width, y / edge.width))
    }

    pub(super) fn rise_growth(&self, x: f64, y: f64) -> f64 {
        self.lower.map_or(0.0, |edge| growth((x - edge.centre) / edge.width, y / edge.width))
    }
}

pub(super) fn growth(re: f64, im: f64) -> f64 {
    let whole = 0.5 * im * im;
    if re <= 0.0 {
        return whole;
    }
    let outside = whole + log_normal_cdf(-re);
    let bound = if outside > 30.0 { outside } else { outside.exp().ln_1p() };
    (bound - log_normal_cdf(re)).min(whole)
}
