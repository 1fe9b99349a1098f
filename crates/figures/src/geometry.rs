//! Curves in pixels: thinned to what can be seen, and cut off near the plot area.

use crate::frame::{Pixel, Rect};
use crate::svg::number;

/// Curves with more points than this are thinned.
const DENSE: usize = 600;

/// Keeps, of each run of points within a pixel of width, the first, the last, the
/// highest and the lowest: the drawing looks the same and loses no extreme.
pub(crate) fn thinned(points: &[Pixel]) -> Vec<Pixel> {
    if points.len() <= DENSE {
        return points.to_vec();
    }
    let column = |place: &Pixel| place.0.floor();
    let mut kept = Vec::new();
    for run in points.chunk_by(|a, b| column(a) == column(b)) {
        let by_height = |a: &usize, b: &usize| run[*a].1.total_cmp(&run[*b].1);
        let lowest = (0..run.len()).min_by(by_height).unwrap_or(0);
        let highest = (0..run.len()).max_by(by_height).unwrap_or(0);
        let mut indices = [0, lowest, highest, run.len() - 1];
        indices.sort_unstable();
        let mut last = None;
        for index in indices {
            if last != Some(index) {
                kept.push(run[index]);
                last = Some(index);
            }
        }
    }
    kept
}

/// The pieces of an open curve that lie in a rectangle (Liang and Barsky, 1984).
pub(crate) fn clipped(points: &[Pixel], area: &Rect) -> Vec<Vec<Pixel>> {
    let mut pieces: Vec<Vec<Pixel>> = Vec::new();
    let mut open = false;
    for pair in points.windows(2) {
        let Some((from, to, whole_end)) = clipped_segment(pair[0], pair[1], area) else {
            open = false;
            continue;
        };
        match pieces.last_mut() {
            Some(piece) if open => piece.push(to),
            _ => pieces.push(vec![from, to]),
        }
        open = whole_end;
    }
    pieces
}

/// The part of a segment in a rectangle, and whether it contains the segment's end.
fn clipped_segment(a: Pixel, b: Pixel, area: &Rect) -> Option<(Pixel, Pixel, bool)> {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let (mut enter, mut leave) = (0.0f64, 1.0f64);
    for (slope, room) in [
        (-dx, a.0 - area.left),
        (dx, area.right - a.0),
        (-dy, a.1 - area.top),
        (dy, area.bottom - a.1),
    ] {
        if slope == 0.0 {
            if room < 0.0 {
                return None;
            }
        } else if slope < 0.0 {
            enter = enter.max(room / slope);
        } else {
            leave = leave.min(room / slope);
        }
    }
    let at = |t: f64| (a.0 + t * dx, a.1 + t * dy);
    (enter <= leave).then(|| (at(enter), at(leave), leave >= 1.0))
}

/// A closed polygon cut to a rectangle (Sutherland and Hodgman, 1974).
pub(crate) fn clipped_polygon(points: &[Pixel], area: &Rect) -> Vec<Pixel> {
    type Side = (fn(Pixel) -> f64, f64, f64);
    let sides: [Side; 4] = [
        (|p| p.0, area.left, 1.0),
        (|p| p.0, area.right, -1.0),
        (|p| p.1, area.top, 1.0),
        (|p| p.1, area.bottom, -1.0),
    ];
    let mut polygon = points.to_vec();
    for (coordinate, bound, sign) in sides {
        let depth = |place: Pixel| sign * (coordinate(place) - bound);
        let mut cut = Vec::with_capacity(polygon.len() + 4);
        for (index, &to) in polygon.iter().enumerate() {
            let from = polygon[(index + polygon.len() - 1) % polygon.len()];
            let (before, after) = (depth(from), depth(to));
            if (before < 0.0) != (after < 0.0) {
                let t = before / (before - after);
                cut.push((from.0 + t * (to.0 - from.0), from.1 + t * (to.1 - from.1)));
            }
            if after >= 0.0 {
                cut.push(to);
            }
        }
        polygon = cut;
    }
    polygon
}

/// The runs of places between gaps.
pub(crate) fn runs(places: impl IntoIterator<Item = Option<Pixel>>) -> Vec<Vec<Pixel>> {
    let mut runs: Vec<Vec<Pixel>> = vec![Vec::new()];
    for place in places {
        match (place, runs.last_mut()) {
            (Some(place), Some(run)) => run.push(place),
            _ => runs.push(Vec::new()),
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

/// The corners of a right-continuous step function.
pub(crate) fn stepped(points: &[Pixel]) -> Vec<Pixel> {
    let mut corners = Vec::with_capacity(2 * points.len());
    for (index, &place) in points.iter().enumerate() {
        if index > 0 {
            corners.push((place.0, points[index - 1].1));
        }
        corners.push(place);
    }
    corners
}

/// Path data of an open curve.
pub(crate) fn path(points: &[Pixel]) -> String {
    let mut data = String::new();
    let mut written = 0;
    let mut previous = String::new();
    for (index, &(x, y)) in points.iter().enumerate() {
        let place = format!("{} {}", number(x), number(y));
        // A curve that is one point stays as a line of no length, which is drawn as a dot.
        let alone = written == 1 && index + 1 == points.len();
        if place == previous && !alone {
            continue;
        }
        data.push_str(match written {
            0 => "M",
            1 => "L",
            _ => " ",
        });
        data.push_str(&place);
        previous = place;
        written += 1;
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: Rect = Rect { left: 0.0, top: 0.0, right: 10.0, bottom: 10.0 };

    #[test]
    fn thinning_keeps_every_extreme() {
        let mut points: Vec<Pixel> =
            (0..100_000).map(|i| (f64::from(i) * 0.005, (f64::from(i) * 0.01).sin())).collect();
        points[54_321].1 = 9.0;
        points[12_345].1 = -9.0;
        let kept = thinned(&points);
        assert!(kept.len() <= 4 * 501, "{}", kept.len());
        assert!(kept.contains(&points[54_321]) && kept.contains(&points[12_345]));
        assert_eq!((kept[0], kept[kept.len() - 1]), (points[0], points[99_999]));
        assert!(kept.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    }

    #[test]
    fn a_curve_is_cut_where_it_leaves() {
        let pieces = clipped(&[(-5.0, 5.0), (5.0, 5.0), (5.0, 50.0), (8.0, 5.0)], &AREA);
        assert_eq!(pieces.len(), 2);
        assert_eq!(pieces[0], [(0.0, 5.0), (5.0, 5.0), (5.0, 10.0)]);
        assert_eq!(pieces[1][1], (8.0, 5.0));
        assert!(clipped(&[(-5.0, -5.0), (-1.0, 20.0)], &AREA).is_empty());
    }

    #[test]
    fn a_polygon_is_cut_to_the_area() {
        let cut = clipped_polygon(&[(-5.0, -5.0), (15.0, -5.0), (15.0, 15.0), (-5.0, 15.0)], &AREA);
        assert_eq!(cut.len(), 4);
        assert!(cut.iter().all(|place| AREA.contains(*place)));
        assert!(clipped_polygon(&[], &AREA).is_empty());
    }

    #[test]
    fn paths_skip_repeated_points() {
        assert_eq!(path(&[(0.0, 1.0), (0.001, 1.0), (2.0, 3.5)]), "M0 1L2 3.5");
        assert_eq!(path(&[(0.0, 1.0), (1.0, 1.0), (2.0, 3.0)]), "M0 1L1 1 2 3");
    }
}
