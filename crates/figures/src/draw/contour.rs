//! Contour lines of a grid by marching squares, joined into curves.
//!
//! Values stand at the centres of cells; a rim of extrapolated values is added at the outer
//! edges, so that contours reach the frame.

use crate::frame::Pixel;
use vocabulary::figure::Heat;

/// The curves on which the grid takes a value, in pixels.
pub(super) fn contour(
    heat: &Heat,
    level: f64,
    x: &[Option<f64>],
    y: &[Option<f64>],
) -> Vec<Vec<Pixel>> {
    let (Some(x), Some(y)) = (centres(x), centres(y)) else { return Vec::new() };
    let columns = x.len() - 2;
    let rows = heat.values.iter().take(y.len() - 2);
    let rows: Vec<Vec<Option<f64>>> = rows
        .map(|row| {
            let cells = (0..columns).map(|column| row.get(column).copied().flatten());
            let cells: Vec<_> = cells.map(|cell| cell.filter(|v| v.is_finite())).collect();
            with_rim(&cells, |a, b| Some(extrapolated((*a)?, *b)))
        })
        .collect();
    let grid = with_rim(&rows, |a, b| {
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| Some(extrapolated((*a)?, *b))).collect()
    });
    let value = |row: usize, column: usize| *grid.get(row)?.get(column)?;
    let mut segments = Vec::new();
    for row in 0..y.len() - 1 {
        for column in 0..x.len() - 1 {
            let corners =
                [(row, column), (row, column + 1), (row + 1, column + 1), (row + 1, column)];
            let known: Vec<(Pixel, f64)> =
                corners.iter().filter_map(|&(r, c)| Some(((x[c], y[r]), value(r, c)?))).collect();
            if known.len() == 4 {
                segments.extend(crossings(&known, level));
            }
        }
    }
    joined(segments)
}

/// A list with an item more at each end, made from the two nearest.
fn with_rim<T: Clone>(items: &[T], outside: impl Fn(&T, &T) -> T) -> Vec<T> {
    let Some((first, last)) = items.first().zip(items.last()) else { return Vec::new() };
    let second = items.get(1).unwrap_or(first);
    let before_last = items.len().checked_sub(2).map_or(last, |index| &items[index]);
    let mut rimmed = vec![outside(first, second)];
    rimmed.extend_from_slice(items);
    rimmed.push(outside(last, before_last));
    rimmed
}

/// The value half a cell beyond a centre, on the line through the next one.
fn extrapolated(here: f64, next: Option<f64>) -> f64 {
    next.map_or(here, |next| here + 0.5 * (here - next))
}

/// Where the level crosses the sides of one square: two places, or four at a saddle, which
/// are paired in order.
fn crossings(corners: &[(Pixel, f64)], level: f64) -> Vec<(Pixel, Pixel)> {
    let mut places = Vec::new();
    for side in 0..4 {
        let (from, a) = corners[side];
        let (to, b) = corners[(side + 1) % 4];
        if (a < level) != (b < level) {
            // From the lower to the higher end, so that neighbours compute the same place.
            let (from, a, to, b) = if a < b { (from, a, to, b) } else { (to, b, from, a) };
            let t = ((level - a) / (b - a)).clamp(0.0, 1.0);
            places.push((from.0 + t * (to.0 - from.0), from.1 + t * (to.1 - from.1)));
        }
    }
    places.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

/// Chains segments that share an end.
fn joined(mut segments: Vec<(Pixel, Pixel)>) -> Vec<Vec<Pixel>> {
    let same = |a: Pixel, b: Pixel| (a.0 - b.0).abs() < 1e-6 && (a.1 - b.1).abs() < 1e-6;
    let mut curves = Vec::new();
    while let Some((from, to)) = segments.pop() {
        let mut curve = std::collections::VecDeque::from([from, to]);
        loop {
            let (first, last) = (curve[0], curve[curve.len() - 1]);
            let touching = segments.iter().position(|&(a, b)| {
                same(a, last) || same(b, last) || same(a, first) || same(b, first)
            });
            let Some(index) = touching else { break };
            let (a, b) = segments.swap_remove(index);
            if same(a, last) {
                curve.push_back(b);
            } else if same(b, last) {
                curve.push_back(a);
            } else if same(a, first) {
                curve.push_front(b);
            } else {
                curve.push_front(a);
            }
        }
        curves.push(curve.into());
    }
    curves
}

/// First edge, centres of all cells, last edge; `None` if there is no cell or a gap.
fn centres(edges: &[Option<f64>]) -> Option<Vec<f64>> {
    let edges: Vec<f64> = edges.iter().copied().collect::<Option<_>>()?;
    // Finer grids than this have no visible cells, and joining is quadratic.
    if edges.len() < 2 || edges.len() > 400 {
        return None;
    }
    let mut centres = vec![edges[0]];
    centres.extend(edges.windows(2).map(|pair| 0.5 * (pair[0] + pair[1])));
    centres.push(edges[edges.len() - 1]);
    Some(centres)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocabulary::figure::ColourScale;

    #[test]
    fn the_contour_of_a_plane_is_a_straight_line() {
        let edges: Vec<f64> = (0..=10).map(f64::from).collect();
        let row: Vec<Option<f64>> = (0..10).map(|i| Some(f64::from(i) + 0.5)).collect();
        let heat = Heat {
            x_edges: edges.clone(),
            y_edges: edges.clone(),
            values: vec![row; 10],
            colours: ColourScale::default(),
            contours: vec![],
            print_values: false,
        };
        let pixels: Vec<Option<f64>> = edges.iter().map(|edge| Some(10.0 * edge)).collect();
        let curves = contour(&heat, 4.25, &pixels, &pixels);
        assert_eq!(curves.len(), 1);
        assert!(curves[0].iter().all(|(x, _)| (x - 42.5).abs() < 1e-9));
        let ends = [curves[0][0].1, curves[0][curves[0].len() - 1].1];
        assert_eq!(ends[0].min(ends[1]), 0.0);
        assert_eq!(ends[0].max(ends[1]), 100.0);
        assert!(contour(&heat, 99.0, &pixels, &pixels).is_empty());
    }
}
