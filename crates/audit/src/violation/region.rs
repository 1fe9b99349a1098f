//! Where the true rates lie: what search for violations asks of a set of points.

use crate::joint::JointScores;
use crate::{RateBounds, Statistic};

/// Where the true rates lie, with a confidence, at all thresholds of a set at once.
pub(crate) trait Region {
    /// The least y + e^l x over the region of one threshold, and which threshold has it; from above.
    fn support(&self, slope: f64) -> (f64, usize);
    /// The slopes that can show anything.
    fn slopes(&self) -> (f64, f64);
    /// About the Gaussian mu that is shown; 0 when nothing is.
    fn mu(&self) -> f64;
}

/// Upper ends of both rates at several thresholds, which hold together: corners.
impl Region for [RateBounds] {
    fn support(&self, slope: f64) -> (f64, usize) {
        let growth = slope.exp();
        let height = |place: usize| (height(&self[place], growth), place);
        (0..self.len()).map(height).fold((f64::INFINITY, 0), |a, b| if b.0 < a.0 { b } else { a })
    }

    /// Below the first 1 - delta <= e^l leaves nothing, above the last 1 - delta <= 1.
    fn slopes(&self) -> (f64, f64) {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for point in self.iter().filter(|point| useful(point)) {
            let (x, y) = (point.false_positive_upper, point.false_negative_upper);
            low = low.min((y.max(1e-12) / point.true_negative_lower).ln());
            high = high.max((point.true_positive_lower / x.max(1e-12)).ln());
        }
        (low, high)
    }

    fn mu(&self) -> f64 {
        let points = self.iter().filter(|point| useful(point));
        points.map(|point| Statistic::GaussianMu.value(point)).fold(0.0, f64::max)
    }
}

fn useful(point: &RateBounds) -> bool {
    point.false_positive_upper + point.false_negative_upper < 1.0
}

impl Region for JointScores {
    fn support(&self, slope: f64) -> (f64, usize) {
        let support = JointScores::support(self, slope);
        (support.value, support.vertex)
    }

    fn slopes(&self) -> (f64, f64) {
        JointScores::slopes(self)
    }

    fn mu(&self) -> f64 {
        JointScores::mu(self).value
    }
}

/// y + e^l x of a point.
fn height(point: &RateBounds, growth: f64) -> f64 {
    point.false_negative_upper + growth * point.false_positive_upper
}
