//! The plot area in pixels, and where coordinates fall in it.

use crate::scale::{AxisScale, Spread};
use vocabulary::figure::Point;

/// A place on the canvas in pixels.
pub(crate) type Pixel = (f64, f64);

/// Pixels further out than this are as good as infinitely far.
const FAR: f64 = 1e7;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rect {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Rect {
    pub(crate) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(crate) fn height(&self) -> f64 {
        self.bottom - self.top
    }

    pub(crate) fn grown(&self, by: f64) -> Rect {
        Rect {
            left: self.left - by,
            top: self.top - by,
            right: self.right + by,
            bottom: self.bottom + by,
        }
    }

    pub(crate) fn contains(&self, (x, y): Pixel) -> bool {
        (self.left..=self.right).contains(&x) && (self.top..=self.bottom).contains(&y)
    }

    pub(crate) fn meets(&self, other: &Rect) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    pub(crate) fn holds(&self, other: &Rect) -> bool {
        self.contains((other.left, other.top)) && self.contains((other.right, other.bottom))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) area: Rect,
    pub(crate) x: AxisScale,
    pub(crate) y: AxisScale,
}

impl Frame {
    pub(crate) fn x(&self, value: f64) -> Option<f64> {
        self.x.unit(value).map(|unit| self.across(unit))
    }

    pub(crate) fn y(&self, value: f64) -> Option<f64> {
        self.y.unit(value).map(|unit| self.up(unit))
    }

    /// Like `x`, for the end of an area.
    pub(crate) fn x_far(&self, value: f64) -> Option<f64> {
        self.x.unit_or_far(value).map(|unit| self.across(unit))
    }

    /// Like `y`, for the end of an area.
    pub(crate) fn y_far(&self, value: f64) -> Option<f64> {
        self.y.unit_or_far(value).map(|unit| self.up(unit))
    }

    pub(crate) fn place(&self, point: &Point) -> Option<Pixel> {
        Some((self.x(point.x)?, self.y(point.y)?))
    }

    fn across(&self, unit: f64) -> f64 {
        (self.area.left + unit * self.area.width()).clamp(-FAR, FAR)
    }

    fn up(&self, unit: f64) -> f64 {
        // Names are read from top to bottom.
        let unit = if self.y.spread == Spread::Category { 1.0 - unit } else { unit };
        (self.area.bottom - unit * self.area.height()).clamp(-FAR, FAR)
    }
}
