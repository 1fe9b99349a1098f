//! Visits of the search, and where they say that the root is.

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
