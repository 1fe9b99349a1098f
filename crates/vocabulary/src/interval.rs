use serde::{Deserialize, Serialize};

/// A number with certified ends: the truth lies in `[lower, upper]`, and `value` is
/// the best estimate of it. `upper` may be infinite ("cannot be bounded").
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub lower: f64,
    pub value: f64,
    pub upper: f64,
}

impl Interval {
    /// An exactly known number.
    pub const fn exact(value: f64) -> Self {
        Self { lower: value, value, upper: value }
    }

    /// Ends put in order and the value clamped between them.
    pub fn new(lower: f64, value: f64, upper: f64) -> Self {
        debug_assert!(lower <= upper, "interval ends are inverted: {lower} > {upper}");
        Self { lower, value: value.clamp(lower, upper), upper }
    }

    /// The value with a relative and an absolute error around it.
    pub fn around(value: f64, absolute_error: f64) -> Self {
        Self { lower: value - absolute_error, value, upper: value + absolute_error }
    }

    pub fn width(&self) -> f64 {
        self.upper - self.lower
    }

    /// Width relative to the magnitude of the value (0 for an exact number).
    pub fn relative_width(&self) -> f64 {
        if self.width() == 0.0 { 0.0 } else { self.width() / self.value.abs() }
    }

    /// The enclosure of the larger of two enclosed numbers.
    pub fn max(self, other: Self) -> Self {
        Self {
            lower: self.lower.max(other.lower),
            value: self.value.max(other.value),
            upper: self.upper.max(other.upper),
        }
    }

    /// The enclosure of the smaller of two enclosed numbers.
    pub fn min(self, other: Self) -> Self {
        Self {
            lower: self.lower.min(other.lower),
            value: self.value.min(other.value),
            upper: self.upper.min(other.upper),
        }
    }

    /// Applies an increasing function to all three numbers.
    pub fn map_increasing(self, f: impl Fn(f64) -> f64) -> Self {
        Self { lower: f(self.lower), value: f(self.value), upper: f(self.upper) }
    }

    /// Applies a decreasing function to all three numbers.
    pub fn map_decreasing(self, f: impl Fn(f64) -> f64) -> Self {
        Self { lower: f(self.upper), value: f(self.value), upper: f(self.lower) }
    }

    /// Cuts the enclosure to a range the truth is known to lie in.
    pub fn clamp(self, low: f64, high: f64) -> Self {
        self.map_increasing(|x| x.clamp(low, high))
    }
}
