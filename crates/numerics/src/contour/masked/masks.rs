//! Smooth steps that split a step's outcomes into classes, and how fast they grow off the axis.

use crate::contour::strip::Mask;
use crate::elementary::{exp, ln, ln_1p};
use crate::special::{log_normal_cdf, normal_cdf};

/// A smooth step Phi((x - centre)/width).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) centre: f64,
    pub(crate) width: f64,
}

impl Edge {
    fn above(&self, x: f64) -> f64 {
        normal_cdf((x - self.centre) / self.width)
    }

    fn below(&self, x: f64) -> f64 {
        normal_cdf((self.centre - x) / self.width)
    }

    fn log_above(&self, x: f64) -> f64 {
        log_normal_cdf((x - self.centre) / self.width)
    }

    fn log_below(&self, x: f64) -> f64 {
        log_normal_cdf((self.centre - x) / self.width)
    }
}

/// The masks of one part. Several upper edges count as their product: the class 0 of one cut is
/// then exactly what the next cut, with its lower edge as one more upper edge, keeps.
#[derive(Clone, Debug)]
pub(crate) struct Masks {
    pub(crate) uppers: Vec<Edge>,
    pub(crate) lower: Option<Edge>,
}

impl Masks {
    pub(super) fn keep(&self, x: f64) -> f64 {
        self.uppers.iter().map(|edge| edge.below(x)).product()
    }

    pub(super) fn rise(&self, x: f64) -> f64 {
        self.lower.map_or(1.0, |edge| edge.above(x))
    }

    /// 1 - rise and 1 - keep, without cancellation.
    pub(super) fn fall(&self, x: f64) -> f64 {
        self.lower.map_or(0.0, |edge| edge.below(x))
    }

    pub(super) fn high(&self, x: f64) -> f64 {
        // 1 - (1 - a)(1 - b) = a + (1 - a) b
        self.uppers.iter().fold(0.0, |high, edge| high + (1.0 - high) * edge.above(x))
    }

    fn log_keep(&self, x: f64) -> f64 {
        self.uppers.iter().map(|edge| edge.log_below(x)).sum()
    }

    /// A bound on the relative error of `high`, a sum of positive terms, in units of `f64::EPSILON`.
    pub(super) fn high_slip(&self, x: f64) -> f64 {
        self.uppers.iter().map(|edge| slip(edge, 1.0, x)).sum()
    }

    /// The masks with their logarithms; where a mask underflows, from the tail of the normal.
    pub(super) fn keep_with_log(&self, x: f64) -> (f64, f64) {
        with_log(self.keep(x), || self.log_keep(x))
    }

    pub(super) fn middle_with_log(&self, x: f64) -> (f64, f64) {
        let log_rise = || self.lower.map_or(0.0, |edge| edge.log_above(x));
        with_log(self.keep(x) * self.rise(x), || self.log_keep(x) + log_rise())
    }

    pub(super) fn low_with_log(&self, x: f64) -> (f64, f64) {
        let Some(lower) = self.lower else { return (0.0, f64::NEG_INFINITY) };
        with_log(self.keep(x) * self.fall(x), || self.log_keep(x) + lower.log_below(x))
    }

    /// For a single upper edge, which is where class 2 is asked for.
    pub(super) fn high_with_log(&self, x: f64) -> (f64, f64) {
        let Some(edge) = self.uppers.first() else { return (0.0, f64::NEG_INFINITY) };
        with_log(self.high(x), || edge.log_above(x))
    }

    /// The masks of a class, as factors of an integrand.
    pub(super) fn of(&self, class: Class) -> ClassMask<'_> {
        ClassMask { masks: self, class }
    }
}

/// Which part of a step is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Keep,
    Low,
    Middle,
    High,
}

/// The masks of one class: a product of smooth steps, each up or down.
pub(super) struct ClassMask<'a> {
    masks: &'a Masks,
    class: Class,
}

impl ClassMask<'_> {
    /// (edge, +1 for a step up or -1 for one down)
    fn edges(&self) -> impl Iterator<Item = (&Edge, f64)> {
        let (uppers, sign) = match self.class {
            Class::Keep | Class::Low | Class::Middle => (self.masks.uppers.as_slice(), -1.0),
            // Asked for where there is one.
            Class::High => (&self.masks.uppers[..self.masks.uppers.len().min(1)], 1.0),
        };
        let lower = match self.class {
            Class::Low => self.masks.lower.as_ref().map(|edge| (edge, -1.0)),
            Class::Middle => self.masks.lower.as_ref().map(|edge| (edge, 1.0)),
            Class::Keep | Class::High => None,
        };
        uppers.iter().map(move |edge| (edge, sign)).chain(lower)
    }
}

impl ClassMask<'_> {
    /// A bound on the relative error of the mask at x, in units of `f64::EPSILON`.
    pub(super) fn slip(&self, x: f64) -> f64 {
        self.edges().map(|(edge, sign)| slip(edge, sign, x)).sum()
    }
}

impl Mask for ClassMask<'_> {
    fn log(&self, x: f64) -> f64 {
        match self.class {
            Class::Keep => self.masks.keep_with_log(x).1,
            Class::Low => self.masks.low_with_log(x).1,
            Class::Middle => self.masks.middle_with_log(x).1,
            Class::High => self.masks.high_with_log(x).1,
        }
    }

    fn growth(&self, x: f64, y: f64, near: f64) -> f64 {
        // It falls as the step is left behind.
        self.edges()
            .map(|(edge, sign)| {
                growth((sign * (x - edge.centre) - near) / edge.width, y / edge.width)
            })
            .sum()
    }

    fn bend(&self) -> f64 {
        // (log Phi)'' lies between -1 and 0.
        self.edges().map(|(edge, _)| 1.0 / (edge.width * edge.width)).sum()
    }

    fn falls(&self, x: f64, direction: f64) -> f64 {
        // Against the step it falls; along it (log Phi)' = phi/Phi, which falls and is at most
        // e^{-z^2/2} beyond the edge and 1 + |z| before it.
        self.edges()
            .filter(|(_, sign)| *sign == direction)
            .map(|(edge, sign)| {
                let z = sign * (x - edge.centre) / edge.width;
                (if z > 0.0 { exp(-0.5 * z * z) } else { 1.0 - z }) / edge.width
            })
            .sum()
    }

    /// What is called a mask is a smooth step only within the grid, and nothing beyond its ends. On
    /// the right it is e^-160 there anyhow, so that class 2 gets what is cut off, to 70 digits; but at
    /// large tilts W^c would outgrow any smooth step in the end. On the left it is a matter of negative
    /// tilts, which bound an average of (1 - e^{Y-t})_+ <= 1 over runs with a step of class 2:
    /// those with a step beyond the left end besides are at most e^-45 of them.
    fn cut(&self) -> (bool, bool) {
        (true, self.class != Class::High && !self.masks.uppers.is_empty())
    }
}

/// Bound on the relative error of one edge: a normal tail, whose argument has two roundings of its
/// own size, magnified by (log Phi)'.
fn slip(edge: &Edge, sign: f64, x: f64) -> f64 {
    let z = sign * (x - edge.centre) / edge.width;
    let slope = if z > 0.0 { exp(-0.5 * z * z) } else { 1.0 - z };
    12.0 + slope * z.abs()
}

fn with_log(mask: f64, log: impl Fn() -> f64) -> (f64, f64) {
    (mask, if mask > 1e-280 { ln(mask) } else { log() })
}

/// log of a bound on |Phi(z)| / Phi(Re z): |Phi(z)| <= e^{Im z^2 / 2} Phi(Re z), and
/// <= 1 + e^{Im z^2/2} Phi(-Re z) where that is smaller.
fn growth(re: f64, im: f64) -> f64 {
    let whole = 0.5 * im * im;
    if re <= 0.0 {
        return whole;
    }
    let outside = whole + log_normal_cdf(-re);
    let bound = if outside > 30.0 { outside } else { ln_1p(exp(outside)) };
    (bound - log_normal_cdf(re)).min(whole)
}
