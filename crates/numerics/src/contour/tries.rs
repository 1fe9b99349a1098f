//! Which thresholds were tried, and whether it worked: a curve asks for dozens of thresholds, and
//! a search in vain costs a second.
//!
//! Losses of few steps pile up above the smallest total there can be, on scales that differ by
//! many powers of ten. So "near" is measured by the ratio of the distances from that smallest
//! total: after one failure 1.25, and more after each further one, so that a search that walks
//! outwards through a region of failures meets a handful of them, not one at every step.

use std::sync::Mutex;

#[derive(Debug, Default)]
pub(super) struct Tries {
    /// In increasing order of the threshold.
    known: Mutex<Vec<(f64, bool)>>,
}

impl Tries {
    pub(super) fn remember(&self, t: f64, worked: bool) {
        if let Ok(mut known) = self.known.lock() {
            let place = known.partition_point(|(other, _)| *other < t);
            known.insert(place, (t, worked));
        }
    }

    /// Whether another try at t is not worth its time: it failed on either side, or next to it.
    /// `bottom` is the smallest total; where there is none, distances are measured from zero.
    pub(super) fn in_vain(&self, t: f64, bottom: f64) -> bool {
        let Ok(known) = self.known.lock() else { return false };
        let place = known.partition_point(|(other, _)| *other < t);
        let failed = |index: usize| known.get(index).filter(|(_, worked)| !worked);
        let (below, above) = (place.checked_sub(1).and_then(failed), failed(place));
        let failures = known.iter().filter(|(_, worked)| !worked).count();
        let reach = [1.25, 1.25, 2.0, 4.0][failures.min(3)];
        let from = if bottom.is_finite() { bottom } else { 0.0 };
        let near = |other: &(f64, bool)| {
            let (here, there) = ((t - from).abs(), (other.0 - from).abs());
            here.max(there) <= reach * here.min(there)
        };
        below.is_some() && above.is_some() || below.is_some_and(near) || above.is_some_and(near)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_speak_for_their_neighbourhood_only() {
        let tries = Tries::default();
        assert!(!tries.in_vain(0.0, -1e-6));
        tries.remember(0.0, false);
        assert!(tries.in_vain(0.0, -1e-6) && tries.in_vain(1e-7, -1e-6));
        assert!(!tries.in_vain(1e-5, -1e-6));
        tries.remember(1e-5, false);
        assert!(tries.in_vain(1.8e-5, -1e-6), "two failures reach farther");
        assert!(tries.in_vain(3e-6, -1e-6), "between two failures");
        tries.remember(4e-6, true);
        assert!(!tries.in_vain(3e-6, -1e-6), "a success on one side");
    }
}
