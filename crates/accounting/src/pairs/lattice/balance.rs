//! The dominated side: how a cell's mass goes to its two ends so that every lattice point keeps
//! its likelihood ratio. The proof is in the parent module.

use super::step::UNIT;
use numerics::elementary::{exp, exp_m1};

/// What connect-the-dots makes of a cell [y, y + h], in units tilted at y.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cell {
    /// Mass put on y, and a bound on its error.
    pub low: f64,
    pub low_error: f64,
    /// Mass put on y + h, and a bound on its error.
    pub high: f64,
    pub high_error: f64,
    /// Corners of a concave, piecewise linear bound on chord minus profile: position in the
    /// cell (0 to 1, linear in e^epsilon) and height.
    pub corners: [(f64, f64); 2],
}

impl Cell {
    pub(super) fn add(&mut self, other: Cell) {
        self.low += other.low;
        self.low_error += other.low_error;
        self.high += other.high;
        self.high_error += other.high_error;
    }

    /// Bounds the gap between chord and profile, given the part of the cell whose loss is at
    /// least y + middle. The gap is concave in r = e^(epsilon - y): its tangents at both ends and
    /// at the middle bound it. Slopes are differences of Q masses.
    pub(super) fn bound_gap(&mut self, above: &Cell, middle: f64, h: f64) {
        let (width, at) = (exp_m1(h), exp_m1(middle));
        let fall = exp(-h);
        let chord = self.high * -exp_m1(middle - h);
        let payoff = above.high * -exp_m1(middle - h) - above.low * at;
        let rounding = 1e-9 * chord + 16.0 * (self.high_error + self.low_error) * h.min(1.0);
        let height = (chord - payoff).max(0.0) * (1.0 + 1e-6) + rounding;
        let slope = above.low + above.high * fall - self.high * fall;
        let (rise, drop) = (self.low * (1.0 + 1e-9), self.high * fall * (1.0 + 1e-9));
        let line = |r: f64| (height + slope * (r - at)).max(0.0);
        let first = if rise > slope {
            ((height - slope * at) / (rise - slope)).clamp(0.0, width)
        } else {
            width
        };
        let second = if drop > -slope {
            ((drop * width - height + slope * at) / (drop + slope)).clamp(0.0, width)
        } else {
            0.0
        };
        let tallest = (rise * width).min(drop * width);
        self.corners = [first, second].map(|r| {
            let height = line(r).min(tallest) * (1.0 + 1e-9) + rounding;
            (r / width, height)
        });
    }

    fn gap(&self) -> f64 {
        self.corners[0].1.max(self.corners[1].1)
    }

    /// Is the chord, lowered by `over` at the left end and `under` at the right, below the profile?
    fn is_below(&self, over: f64, under: f64) -> bool {
        self.corners
            .iter()
            .all(|(t, height)| (1.0 - t) * over + t * under >= height * (1.0 - 1e-12))
    }

    /// Smallest lowering at the right end that makes up for `over` at the left one.
    fn needed_right(&self, over: f64) -> f64 {
        let need =
            |(t, height): (f64, f64)| if t > 0.0 { (height - (1.0 - t) * over) / t } else { 0.0 };
        need(self.corners[0]).max(need(self.corners[1])).max(0.0) * (1.0 + 1e-9)
    }

    fn needed_left(&self, under: f64) -> f64 {
        let need =
            |(t, height): (f64, f64)| if t < 1.0 { (height - t * under) / (1.0 - t) } else { 0.0 };
        need(self.corners[0]).max(need(self.corners[1])).max(0.0) * (1.0 + 1e-9)
    }
}

/// Which cell a merged end bin has cut: all of its mass goes away from the bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    None,
    First,
    Last,
}

/// What a cell gives to the lattice points at its two ends: mass and imbalance.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    /// To the lower end: mass, and its excess over that end's loss.
    left: f64,
    over: f64,
    /// To the upper end: mass, and what it lacks to that end's loss.
    right: f64,
    under: f64,
    error: f64,
}

/// Weights of the dominated pair on the `cells.len() + 1` lattice points (each tilted at its own
/// loss), and the mass that had to be given up by rounding down.
pub(super) fn dominated(cells: &[Cell], spacing: f64, tilt: f64, cut: Cut) -> (Vec<f64>, f64) {
    let grow = exp_m1(spacing);
    let lift = exp(tilt * spacing);
    let shares = shares(cells, grow, lift, cut);
    let count = cells.len();
    let mut lost = 0.0;
    let weights = (0..=count)
        .map(|k| {
            let below = if k > 0 { shares[k - 1] } else { Share::default() };
            let here = if k < count { shares[k] } else { Share::default() };
            let (right, under) = (below.right * lift, below.under * lift);
            let kept = if here.over >= under {
                here.left + right - (here.over - under)
            } else {
                here.left + right * (here.over / under)
            };
            let rounding = (32.0 + 8.0 * (tilt * spacing).abs()) * UNIT * (here.left + right);
            lost += here.left + right - kept;
            (kept - here.error - below.error * lift - rounding).max(0.0)
        })
        .collect();
    (weights, lost)
}

fn shares(cells: &[Cell], grow: f64, lift: f64, cut: Cut) -> Vec<Share> {
    let count = cells.len();
    let over_all = |cell: &Cell| cell.high * grow / (1.0 + grow);
    let under_all = |cell: &Cell| cell.low * grow;
    // Imbalance wanted at each lattice point, in its own units.
    let mut wanted: Vec<f64> = (0..=count)
        .map(|k| {
            let below = if k > 0 { lift * cells[k - 1].gap() } else { 0.0 };
            let here = if k < count { cells[k].gap() } else { 0.0 };
            below.max(here)
        })
        .collect();
    if cut == Cut::First {
        // What the cut cell offers is fixed; its neighbours make up for too little of it.
        wanted[1] = lift * under_all(&cells[0]);
        for k in 1..count {
            wanted[k + 1] = wanted[k + 1].max(lift * cells[k].needed_right(wanted[k]));
        }
    } else if cut == Cut::Last {
        wanted[count - 1] = over_all(&cells[count - 1]);
        for k in (0..count - 1).rev() {
            wanted[k] = wanted[k].max(cells[k].needed_left(wanted[k + 1] / lift));
        }
    }
    (0..count)
        .map(|k| {
            let cell = &cells[k];
            let (most_over, most_under) = (over_all(cell), under_all(cell));
            let whole = cell.low + cell.high;
            let all_left = Share { left: whole, over: most_over, ..Share::default() };
            let all_right = Share { right: whole, under: most_under, ..Share::default() };
            let feasible = |over: f64, under: f64| {
                most_over > 0.0
                    && most_under > 0.0
                    && cell.is_below(over, under)
                    && over / most_over + under / most_under <= 1.0 - 1e-9
            };
            let split = |over: f64, under: f64| {
                let moved = (over * (1.0 + grow) - under) / grow;
                Share { left: cell.low + moved, over, right: cell.high - moved, under, error: 0.0 }
            };
            let gap = cell.gap();
            let tries = [
                (wanted[k], wanted[k + 1] / lift),
                (wanted[k], gap),
                (gap, wanted[k + 1] / lift),
                (gap, gap),
            ];
            let mut share = match cut {
                Cut::First if k == 0 => all_right,
                Cut::Last if k + 1 == count => all_left,
                _ => tries
                    .into_iter()
                    .find(|(over, under)| feasible(*over, *under))
                    .map_or(all_left, |(over, under)| split(over, under)),
            };
            if share.left < 0.0 || share.right < 0.0 {
                share = all_left;
            }
            let imbalance = 8.0 * UNIT * (share.over + share.under) * (1.0 + 1.0 / grow);
            share.error = cell.low_error + cell.high_error + imbalance;
            if share.left == 0.0 && cell.low > 0.0 {
                // Scaling a share by over / under carries the relative error of `under` with it.
                share.error *= 2.0 + cell.high / cell.low;
            }
            share
        })
        .collect()
}
