//! Numbers that know which end they are. An upper end is an [`AtMost`], a lower one an [`AtLeast`], and
//! neither can be made from the other: whoever prints a number cannot choose the side it is rounded to.
//!
//! The ends come from whoever has bounded a number: an [`Interval`], a claim, a row of an answer.

use crate::rounding::{DIGITS, rounded};
use crate::{Interval, Side};
use std::fmt;

macro_rules! end {
    ($(#[$about:meta])* $name:ident, $side:expr) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
        pub struct $name(f64);

        impl $name {
            /// A number that was bounded on this side.
            pub const fn new(number: f64) -> Self {
                Self(number)
            }

            /// The number itself, as for a place on an axis.
            pub const fn number(self) -> f64 {
                self.0
            }

            /// To this number of significant digits, rounded to its side.
            pub fn digits(self, digits: usize) -> String {
                rounded(self.0, digits, $side)
            }

            /// With the sign that says which end it is.
            pub fn shown(self) -> String {
                Quoted::from(self).shown()
            }

            /// In per cent, without the sign of it.
            pub fn percent(self) -> Self {
                Self(100.0 * self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(&self.digits(DIGITS))
            }
        }

        impl From<$name> for Quoted {
            fn from(end: $name) -> Self {
                Self { number: end.0, side: $side }
            }
        }
    };
}

end! {
    /// The truth is at most this; shown, it is rounded up.
    ///
    /// ```
    /// use vocabulary::Interval;
    /// let end = Interval::new(1.8281, 1.8282, 1.82823).at_most();
    /// assert_eq!(end.to_string(), "1.829");
    /// assert_eq!(end.shown(), "<= 1.829");
    /// assert_eq!(end.digits(2), "1.9");
    /// ```
    ///
    /// It is no lower end:
    ///
    /// ```compile_fail
    /// let end: vocabulary::AtLeast = vocabulary::Interval::exact(1.0).at_most();
    /// ```
    AtMost, Side::Upper
}

end! {
    /// The truth is at least this; shown, it is rounded down.
    ///
    /// ```
    /// use vocabulary::Interval;
    /// let end = Interval::new(0.83896, 0.839, 1.0).at_least();
    /// assert_eq!(end.to_string(), "0.8389");
    /// assert_eq!(end.shown(), ">= 0.8389");
    /// assert_eq!(end.percent().to_string(), "83.89");
    /// ```
    AtLeast, Side::Lower
}

/// The number of a statement that a person may quote: an upper end, a lower one, or a number without a side.
/// Shown, it is rounded to the side it has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quoted {
    number: f64,
    side: Side,
}

impl Quoted {
    /// The end of an interval that a side names.
    pub(crate) fn end_of(interval: Interval, side: Side) -> Self {
        let number = match side {
            Side::Upper => interval.upper,
            Side::Lower => interval.lower,
            Side::Neither => interval.value,
        };
        Self { number, side }
    }

    /// A number without a side.
    pub const fn about(number: f64) -> Self {
        Self { number, side: Side::Neither }
    }

    /// The number itself, as for a place on an axis.
    pub const fn number(self) -> f64 {
        self.number
    }

    pub const fn side(self) -> Side {
        self.side
    }

    /// To this number of significant digits, rounded to its side.
    pub fn digits(self, digits: usize) -> String {
        rounded(self.number, digits, self.side)
    }

    /// With the sign that says which end it is.
    pub fn shown(self) -> String {
        format!("{} {self}", self.side.sign())
    }

    /// The same number in another unit: `factor` of which make one.
    ///
    /// # Panics
    /// A factor that is not positive, which would turn the sides around.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        assert!(factor > 0.0, "a factor of {factor} turns the sides around");
        Self { number: factor * self.number, side: self.side }
    }
}

impl fmt::Display for Quoted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.digits(DIGITS))
    }
}

impl Interval {
    /// The upper end.
    pub const fn at_most(self) -> AtMost {
        AtMost::new(self.upper)
    }

    /// The lower end.
    pub const fn at_least(self) -> AtLeast {
        AtLeast::new(self.lower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_is_shown_on_its_side() {
        let interval = Interval::new(1.23451, 1.23455, 1.23459);
        assert_eq!(interval.at_most().to_string(), "1.235");
        assert_eq!(interval.at_least().to_string(), "1.234");
        for (side, shown) in
            [(Side::Upper, "<= 1.235"), (Side::Lower, ">= 1.234"), (Side::Neither, "~ 1.235")]
        {
            let quoted = Quoted::end_of(interval, side);
            assert_eq!((quoted.side(), quoted.shown().as_str()), (side, shown));
        }
        assert_eq!(Quoted::from(interval.at_most()).times(100.0).digits(3), "124");
        assert_eq!(Quoted::from(interval.at_least()).times(50.0).to_string(), "61.72");
        assert_eq!(
            format!("{:>8}|{:<8}|", interval.at_most(), interval.at_least()),
            "   1.235|1.234   |"
        );
    }

    #[test]
    #[should_panic(expected = "turns the sides around")]
    fn no_factor_turns_an_end_around() {
        let _ = Quoted::from(AtMost::new(1.0)).times(-1.0);
    }
}
