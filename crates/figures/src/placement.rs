//! Where words go: labels at line ends that do not touch, and the least crowded place for
//! a note inside the plot.

use crate::frame::{Pixel, Rect};

/// Moves label centres apart to at least `spacing` within `lower..=upper`, as little as
/// possible in the sum of squares (pool adjacent violators). Order is kept.
pub(crate) fn spread_out(wanted: &[f64], spacing: f64, lower: f64, upper: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]).then(a.cmp(b)));
    // After subtracting rank * spacing, "spacing apart" becomes "not decreasing".
    let mut groups: Vec<(f64, usize)> = Vec::new();
    for (rank, &index) in order.iter().enumerate() {
        groups.push((wanted[index] - rank as f64 * spacing, 1));
        while let [.., (before, count), (after, more)] = groups[..] {
            if before <= after {
                break;
            }
            groups.truncate(groups.len() - 2);
            let total = count + more;
            let mean = (before * count as f64 + after * more as f64) / total as f64;
            groups.push((mean, total));
        }
    }
    let last = upper - (wanted.len().max(1) - 1) as f64 * spacing;
    let levels = groups.iter().flat_map(|&(level, count)| std::iter::repeat_n(level, count));
    let mut placed = vec![0.0; wanted.len()];
    for (rank, (level, &index)) in levels.zip(&order).enumerate() {
        placed[index] = level.min(last).max(lower) + rank as f64 * spacing;
    }
    placed
}

/// What is already drawn in the plot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clutter {
    boxes: Vec<Rect>,
    points: Vec<Pixel>,
}

impl Clutter {
    pub(crate) fn add_box(&mut self, area: Rect) {
        self.boxes.push(area);
    }

    /// Adds a curve as points a few pixels apart.
    pub(crate) fn add_curve(&mut self, curve: &[Pixel]) {
        self.points.extend(curve.first());
        for pair in curve.windows(2) {
            let (dx, dy) = (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
            let pieces = (dx.hypot(dy) / 4.0).ceil().clamp(1.0, 2000.0) as usize;
            for piece in 1..=pieces {
                let t = piece as f64 / pieces as f64;
                self.points.push((pair[0].0 + t * dx, pair[0].1 + t * dy));
            }
        }
    }

    /// How bad a place is: words over words are worse than words over a curve.
    fn cost(&self, area: &Rect, plot: &Rect) -> f64 {
        let outside = if plot.holds(area) { 0.0 } else { 1000.0 };
        let boxes = self.boxes.iter().filter(|other| other.meets(area)).count();
        let near = area.grown(1.5);
        let points = self.points.iter().filter(|place| near.contains(**place)).count();
        outside + 200.0 * boxes as f64 + 3.0 * points as f64
    }

    /// The index of the best candidate; earlier ones win where others are hardly better.
    pub(crate) fn best(&self, candidates: &[Rect], plot: &Rect) -> usize {
        let cost = |index: usize| self.cost(&candidates[index], plot) + 0.5 * index as f64;
        (0..candidates.len()).min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_their_distance_order_and_bounds() {
        let wanted = [50.0, 52.0, 51.0, 200.0, 299.0, 298.0];
        let placed = spread_out(&wanted, 14.0, 0.0, 300.0);
        let mut sorted = placed.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= 14.0 - 1e-9));
        assert!(sorted[0] >= 0.0 && sorted[5] <= 300.0);
        assert!(placed[0] < placed[2] && placed[2] < placed[1]);
        assert_eq!(placed[3], 200.0);
        // The three in the cluster move by 14 around their mean of 51.
        assert!((placed[2] - 51.0).abs() < 1e-9);
    }

    #[test]
    fn a_note_avoids_words_first_and_curves_second() {
        let plot = Rect { left: 0.0, top: 0.0, right: 100.0, bottom: 100.0 };
        let at = |left: f64, top: f64| Rect { left, top, right: left + 20.0, bottom: top + 10.0 };
        let mut clutter = Clutter::default();
        clutter.add_box(at(0.0, 0.0));
        clutter.add_curve(&[(45.0, 0.0), (45.0, 100.0)]);
        let candidates = [at(5.0, 5.0), at(40.0, 50.0), at(95.0, 50.0), at(70.0, 50.0)];
        assert_eq!(clutter.best(&candidates, &plot), 3);
        assert_eq!(clutter.best(&candidates[..2], &plot), 1);
    }
}
