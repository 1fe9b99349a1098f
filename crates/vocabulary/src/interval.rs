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

    /// Ends put in order and the value cut to them. An end that is not a number bounds nothing, and becomes
    /// infinite.
    pub fn new(lower: f64, value: f64, upper: f64) -> Self {
        let lower = if lower.is_nan() { f64::NEG_INFINITY } else { lower };
        let upper = if upper.is_nan() { f64::INFINITY } else { upper };
        let (lower, upper) = if lower <= upper { (lower, upper) } else { (upper, lower) };
        Self { lower, value: cut(value, lower, upper), upper }
    }

    /// The value with an absolute error on either side.
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

    /// Cuts the enclosure to a range the truth is known to lie in; ends that are not numbers become the
    /// range's.
    pub fn clamp(self, low: f64, high: f64) -> Self {
        let end = |end: f64, otherwise: f64| if end.is_nan() { otherwise } else { end };
        Self {
            lower: cut(end(self.lower, low), low, high),
            value: cut(self.value, low, high),
            upper: cut(end(self.upper, high), low, high),
        }
    }
}

/// As [`f64::clamp`], for any ends: it never panics.
fn cut(number: f64, low: f64, high: f64) -> f64 {
    if number < low {
        low
    } else if number > high {
        high
    } else {
        number
    }
}

#[cfg(test)]
mod tests {
    use super::Interval;

    #[test]
    fn ends_are_put_in_order_and_nothing_panics() {
        assert_eq!(Interval::new(2.0, 5.0, 1.0), Interval { lower: 1.0, value: 2.0, upper: 2.0 });
        let unknown = Interval::new(f64::NAN, 3.0, f64::NAN);
        assert_eq!(
            unknown,
            Interval { lower: f64::NEG_INFINITY, value: 3.0, upper: f64::INFINITY }
        );
        let numbers = [f64::NAN, f64::NEG_INFINITY, -1.0, -0.0, 0.0, 0.5, 1.0, f64::INFINITY];
        for lower in numbers {
            for value in numbers {
                for upper in numbers {
                    let made = Interval::new(lower, value, upper);
                    assert!(made.lower <= made.upper, "{made:?}");
                    assert!(
                        value.is_nan() || (made.lower <= made.value && made.value <= made.upper),
                        "{made:?}"
                    );
                    // A raw enclosure may hold anything.
                    let cut = Interval { lower, value, upper }.clamp(0.0, 1.0);
                    assert!((0.0..=1.0).contains(&cut.lower) && (0.0..=1.0).contains(&cut.upper));
                    let _ = made.clamp(upper, lower);
                }
            }
        }
    }
}
