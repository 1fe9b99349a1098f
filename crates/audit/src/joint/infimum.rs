//! The evidence at one threshold, and its infimum along a line from below.

use super::{Bet, IDLE};
use crate::rates::RateBounds;

/// Most bets that are evaluated on a side, the one that is not made apart.
const MOST: usize = 9;
/// Evaluations after which a line counts as not refuted.
const PATIENCE: usize = 2_000;

/// The bets on one sample at one count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    bets: [Bet; MOST],
    /// ln weight + count ln ratio of each.
    spent: [f64; MOST],
    used: usize,
    /// Scores that are not beyond the threshold.
    left: f64,
}

impl Terms {
    pub(super) fn new(count: u64, size: u64, near: &[Bet]) -> Self {
        let mut terms = Self {
            bets: [Bet::default(); MOST],
            spent: [0.0; MOST],
            used: 0,
            left: (size - count) as f64,
        };
        for bet in near.iter().take(MOST) {
            // A density of 0 is refuted by the first score.
            if bet.ratio == 0.0 && count > 0 {
                continue;
            }
            let ln = if count > 0 { count as f64 * bet.ln_ratio } else { 0.0 };
            terms.bets[terms.used] = *bet;
            terms.spent[terms.used] = bet.ln_weight + ln;
            terms.used += 1;
        }
        terms
    }

    /// ln A and its derivative at p < 1.
    fn rising(&self, p: f64) -> (f64, f64) {
        let rest = 1.0 - p;
        let y = -(-p).ln_1p();
        let (mut largest, mut sum, mut weighted) = (IDLE.ln(), 1.0, 0.0);
        for (bet, spent) in self.bets[..self.used].iter().zip(&self.spent) {
            let ln = spent + self.left * ((-bet.ratio * p).ln_1p() + y);
            let slope = self.left * bet.rest / (rest * (rest + p * bet.rest));
            if ln > largest {
                let shrink = (largest - ln).exp();
                (sum, weighted, largest) = (sum * shrink + 1.0, weighted * shrink + slope, ln);
            } else {
                let share = (ln - largest).exp();
                sum += share;
                weighted += share * slope;
            }
        }
        (largest + sum.ln(), weighted / sum)
    }

    /// ln of each term of B at b; minus infinity where nothing is known.
    fn falling(&self, b: f64) -> [f64; MOST] {
        let mut values = [f64::NEG_INFINITY; MOST];
        if b >= 1.0 {
            return values;
        }
        let z = -(-b).ln_1p();
        for (place, (bet, spent)) in self.bets[..self.used].iter().zip(&self.spent).enumerate() {
            let room = 1.0 - bet.ratio * b;
            if room < 0.0 || (room == 0.0 && self.left > 0.0) {
                continue;
            }
            values[place] = if self.left > 0.0 {
                spent + self.left * ((-bet.ratio * b).ln_1p() + z)
            } else {
                *spent
            };
        }
        values
    }
}

/// ln of the sum of the exponentials of the idle bet and of those terms that `kept` keeps.
fn ln_sum(values: &[f64; MOST], kept: &[bool; MOST]) -> f64 {
    let idle = IDLE.ln();
    let terms = || values.iter().zip(kept).filter(|(_, kept)| **kept).map(|(value, _)| *value);
    let largest = terms().fold(idle, f64::max);
    largest
        + (terms().map(|value| (value - largest).exp()).sum::<f64>() + (idle - largest).exp()).ln()
}

/// The evidence at one threshold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence {
    nonmembers: Terms,
    members: Terms,
    target: f64,
}

/// One end of a piece.
#[derive(Clone, Copy)]
struct End {
    p: f64,
    rising: f64,
    slope: f64,
    terms: [f64; MOST],
    falling: f64,
}

impl Evidence {
    pub(super) fn new(nonmembers: Terms, members: Terms, target: f64) -> Self {
        Self { nonmembers, members, target }
    }

    /// Whether inf over p of ln A(p) + ln B(min(1, e^slope p + delta)) is surely at least the target.
    pub(crate) fn refutes(&self, slope: f64, delta: f64) -> bool {
        let growth = slope.exp();
        if !(delta < 1.0 && growth > 0.0 && growth.is_finite()) {
            return false;
        }
        let delta = delta.max(0.0);
        let end = |p: f64| {
            let (rising, slope) = self.nonmembers.rising(p);
            let terms = self.members.falling(growth * p + delta);
            End { p, rising, slope, terms, falling: ln_sum(&terms, &[true; MOST]) }
        };
        // Beyond the last point B is the idle bet alone, or p is 1 up to a hair and only A rises.
        let all = ((1.0 - delta) / growth).min(1.0 - 1e-12);
        let idle = IDLE.ln();
        if self.nonmembers.rising(all).0 + idle < self.target {
            return false;
        }
        let (first, last) =
            (end(0.0), End { falling: idle, terms: [f64::NEG_INFINITY; MOST], ..end(all) });
        if first.rising + first.falling < self.target {
            return false;
        }
        let mut pieces = vec![(first, last)];
        let mut spent = 0;
        while let Some((a, c)) = pieces.pop() {
            if below(&a, &c) >= self.target {
                continue;
            }
            // Halves of a wide piece are those of its logarithm.
            let middle = if a.p <= 0.0 {
                0.1 * c.p
            } else if c.p > 4.0 * a.p {
                (a.p * c.p).sqrt()
            } else {
                0.5 * (a.p + c.p)
            };
            if a.p <= 0.0 && c.p < 1e-18 || middle <= a.p || middle >= c.p {
                return false;
            }
            let middle = end(middle);
            spent += 1;
            if middle.rising + middle.falling < self.target || spent > PATIENCE {
                return false;
            }
            pieces.push((a, middle));
            pieces.push((middle, c));
        }
        true
    }

    /// The box around the region.
    pub(super) fn sides(&self) -> RateBounds {
        let bar = self.target - IDLE.ln();
        // ln A in y = -ln(1 - p): nothing is reached when all scores are beyond the threshold.
        let upper = if self.nonmembers.left > 0.0 {
            let reached = |y: f64| self.nonmembers.rising(-(-y).exp_m1()).0 >= bar;
            bisect(reached, 36.0)
        } else {
            None
        };
        let (false_positive_upper, true_negative_lower) =
            upper.map_or((1.0, 0.0), |y| (-(-y).exp_m1(), (-y).exp()));
        // The smallest b at which B is no longer at the bar, from below: b = e^-x.
        let reached = |x: f64| ln_sum(&self.members.falling((-x).exp()), &[true; MOST]) >= bar;
        let lower = bisect(reached, 700.0);
        let (true_positive_lower, false_negative_upper) =
            lower.map_or((0.0, 1.0), |x| ((-x).exp(), -(-x).exp_m1()));
        RateBounds {
            false_positive_upper,
            true_negative_lower,
            false_negative_upper,
            true_positive_lower,
        }
    }
}

/// The smallest argument in (0, most) from above at which a predicate that holds from some point on
/// holds.
fn bisect(holds: impl Fn(f64) -> bool, most: f64) -> Option<f64> {
    if !holds(most) {
        return None;
    }
    let (mut low, mut high) = (0.0, most);
    while high - low > 1e-12 * high {
        let middle = if low == 0.0 {
            1e-3 * high
        } else if high > 4.0 * low {
            (low * high).sqrt()
        } else {
            0.5 * (low + high)
        };
        if holds(middle) {
            high = middle
        } else {
            low = middle
        }
        if high < 1e-300 {
            break;
        }
    }
    Some(high)
}

/// A lower bound of ln A + ln B on a piece.
fn below(a: &End, c: &End) -> f64 {
    let stairs = a.rising + c.falling;
    let mut kept = [false; MOST];
    for (place, kept) in kept.iter_mut().enumerate() {
        *kept = c.terms[place] > f64::NEG_INFINITY;
    }
    let width = c.p - a.p;
    let (at_a, at_c) = (ln_sum(&a.terms, &kept), ln_sum(&c.terms, &kept));
    let tilt = |end: &End, total: f64| -> f64 {
        (0..MOST)
            .filter(|&place| kept[place])
            .map(|place| (end.terms[place] - total).exp() * (c.terms[place] - a.terms[place]))
            .sum()
    };
    let (left, right) = (a.rising + at_a, c.rising + at_c);
    let (rise, fall) = (a.slope * width + tilt(a, at_a), c.slope * width + tilt(c, at_c));
    let tangents = if rise >= 0.0 {
        left
    } else if fall <= 0.0 {
        right
    } else {
        let share = ((right - fall - left) / (rise - fall)).clamp(0.0, 1.0);
        (left + rise * share).min(right - fall * (1.0 - share))
    };
    if tangents.is_nan() { stairs } else { stairs.max(tangents) }
}
