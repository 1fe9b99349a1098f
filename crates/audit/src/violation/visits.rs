//! Visits of the search, and where they say that the root is.

use vocabulary::Interval;

/// A slope (as its logarithm) with the excess there, see [`Search::excess`].
#[derive(Clone, Copy)]
pub(super) struct Line {
    pub(super) slope: f64,
    pub(super) excess: f64,
    /// The excess at the slope that the look began with, which is that of the visit before.
    pub(super) began: f64,
    /// Whether slopes over the whole curve were looked at, too.
    pub(super) whole: bool,
}

impl Line {
    pub(super) fn new(slope: f64, excess: f64) -> Self {
        Self { slope, excess, began: excess, whole: false }
    }
}

/// A noise (as its logarithm) with the best line found there.
#[derive(Clone, Copy)]
pub(super) struct Visit {
    pub(super) place: f64,
    pub(super) line: Line,
}

/// How fast the excess rises between two visits; 0 where it does not.
pub(super) fn rise(a: &Visit, b: &Visit) -> f64 {
    ((a.line.excess - b.line.excess) / (a.place - b.place)).max(0.0)
}

/// How far below the last of some violated visits the root is. The excess levels off towards 1, so that the line through it leads far
/// beyond the root, to noises that take longest; the logarithm of 1 - excess bends the other way. Both ends of its line are of one
/// slope: where the slope changes, so does the excess.
pub(super) fn root_below(recent: &[Visit]) -> Option<f64> {
    let [first, second, ..] = recent else { return None };
    let height = |excess: f64| -(1.0 - excess).max(1e-9).ln();
    let (here, there) = (height(first.line.began), height(second.line.excess));
    let rise = (here - there) / (first.place - second.place);
    (rise > 0.0).then(|| height(first.line.excess) / rise)
}

/// Where the excess vanishes by the parabola (of the noise over the excess) through the last visits, or
/// the line.
pub(super) fn zero(recent: &[Visit]) -> Option<f64> {
    let point = |visit: &Visit| (visit.line.excess, visit.place);
    let line = |a: &Visit, b: &Visit| {
        let ((y, x), rise) = (point(a), rise(a, b));
        (rise > 0.0).then(|| x - y / rise)
    };
    let (first, second) = (recent.first()?, recent.get(1)?);
    let straight = line(first, second)?;
    let Some(third) = recent.get(2) else { return Some(straight) };
    let Some(other) = line(second, third) else { return Some(straight) };
    let (y, z) = (first.line.excess, third.line.excess);
    let bent = straight + (straight - other) * y / (z - y);
    // The parabola of visits far apart may turn round.
    let (near, far) = ((straight - first.place).abs(), (bent - first.place).abs());
    Some(if far.is_finite() && far < 2.0 * near && 2.0 * far > near { bent } else { straight })
}

/// The top of the parabola through three lines, if it has one between them.
pub(super) fn top(lines: [Line; 3]) -> Option<f64> {
    let [a, b, c] = lines;
    let (left, right) = (b.slope - a.slope, b.slope - c.slope);
    let (p, q) = (left * (b.excess - c.excess), right * (b.excess - a.excess));
    let slope = b.slope - 0.5 * (left * p - right * q) / (p - q);
    let (low, high) = (a.slope.min(c.slope), a.slope.max(c.slope));
    (slope > low && slope < high).then_some(slope)
}

/// 1 - delta at some growths e^l of one noise. As a function of the growth it rises, is concave and is 0 at 0 (it is the mean of
/// min(p, growth q)), so that a few values bound the others.
#[derive(Default)]
pub(super) struct Seen {
    known: Vec<(f64, Interval)>,
}

impl Seen {
    pub(super) fn note(&mut self, growth: f64, rest: Interval) {
        self.known.push((growth, rest));
    }

    /// What 1 - delta is at most.
    pub(super) fn most(&self, growth: f64) -> f64 {
        let mut most = growth.min(1.0);
        for (at, rest) in &self.known {
            // Chords through 0 rise; so does the function.
            most = most.min(rest.upper * (growth / at).max(1.0));
            for (before, less) in self.known.iter().filter(|(before, _)| before < at) {
                let steepest = ((rest.upper - less.lower) / (at - before)).max(0.0);
                let flattest = ((rest.lower - less.upper) / (at - before)).max(0.0);
                if growth >= *at {
                    most = most.min(rest.upper + steepest * (growth - at));
                }
                if growth <= *before {
                    most = most.min(less.upper - flattest * (before - growth));
                }
            }
        }
        most * (1.0 + 1e-13)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use accounting::{Order, Pair, pairs};

    /// Bounds by some values enclose the others, on both sides and between.
    #[test]
    fn known_values_bound_the_others() {
        let pair = pairs::Gaussian::new(1.3).expect("a pair");
        let at = |slope: f64| pair.one_minus_delta(slope, Order::Remove).expect("a value");
        let mut seen = Seen::default();
        for slope in [-0.4_f64, -0.3, 0.9] {
            seen.note(slope.exp(), at(slope));
        }
        for step in -40..=40 {
            let slope = 0.1 * f64::from(step);
            let (most, truth) = (seen.most(slope.exp()), at(slope));
            assert!(most >= truth.lower, "{slope}: {most} {truth:?}");
        }
        // And they say something: by concavity, where the trivial bounds do not.
        assert!(seen.most((-1.0_f64).exp()) < 0.95 * at(-0.4).lower);
    }
}
