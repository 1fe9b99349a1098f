//! P(S) as a function of epsilon, for the outcomes with at least some L; see [`super`].
//!
//! **Diagonals.** h(k, j) is taken along k + j = d, where each value is a mean of two of the diagonal before:
//! h(k, j) = (k h(k-1, j) + j h(k, j-1)) / d. A value is a mean over the paths that lead back from (k, j) to (0, 0), all
//! orders being equally likely, and those from (M, n1) keep close to the straight line: the number of non-members
//! among the first d is hypergeometric. So only a band of [`WIDTH`] standard deviations is computed, and what
//! is outside counts as 0. That makes h smaller and P(S) larger: the band needs no proof of its own.
//!
//! **Only the first items.** Where all orders are too many, L reads min(N, depth - k) in place of N, a function that rises with N all the same, so
//! that no boundary lies beyond the first `depth` items. Of these, given M, a hypergeometric number k are non-members, in
//! any order: P(no S) = sum over k of P(k) h(k, depth - k). P(S given M) falls with M (one more
//! non-member moves every V_(k+1) down), so M is taken in groups by their smallest.
//!
//! **Rounding.** With u = 2^-53, each diagonal has two products, a sum and a reciprocal of numbers that are not negative: at
//! most 4u of a value, 4 u (n0 + n1) in all. The probabilities of M (and of D and k) come from one
//! another by at most five roundings, over at most as many steps as there are scores, and are divided by their sum: 10 u
//! and 1 u per step. e^-epsilon is right to 4u, and P(S) changes by at most n0 times the change of q. That is less than
//! 32 u (n0 + n1) for both layers; beyond nine standard deviations and 20 counts the probabilities left out are below
//! 1e-12 (Bernstein). Both are added.

use super::worth;
use crate::exact::window;

/// Standard deviations of the band.
const WIDTH: f64 = 6.0;
/// What is added for the skewness of small counts.
const SKEW: f64 = 10.0;

/// What rounding and cut tails may have taken off a probability.
pub(super) fn rounding((n0, n1): (u64, u64)) -> f64 {
    1e-12 + 16.0 * f64::EPSILON * (n0 as f64 + n1 as f64)
}

pub(super) struct Law {
    sizes: (u64, u64),
    delta: f64,
    /// v_k, rising, as far as it can be reached.
    boundary: Vec<u64>,
    depth: u64,
    /// Groups of the number of members that delta puts at the top: probability, largest number, band.
    groups: Vec<(f64, u64, Option<Band>)>,
    /// Probability of the numbers that are counted as reached.
    rest: f64,
}

impl Law {
    pub(super) fn new(sizes: (u64, u64), depth: u64, least: f64, delta: f64) -> Self {
        let (tops, rest) = tops(sizes.1, delta);
        let groups = tops.into_iter().map(|(mass, top)| (mass, top, None)).collect();
        Self { sizes, delta, boundary: boundary(sizes, depth, least, delta), depth, groups, rest }
    }

    /// As [`Law::new`], with one number of members at the top in place of all: quick, and near the law.
    pub(super) fn with_one_top(sizes: (u64, u64), depth: u64, least: f64, delta: f64) -> Self {
        let (tops, _) = tops(sizes.1, delta);
        let mut reached = 0.0;
        let usual = tops.iter().find(|(mass, _)| {
            reached += mass;
            reached >= 0.7
        });
        let top = usual.or(tops.last()).map_or(0, |(_, top)| *top);
        let boundary = boundary(sizes, depth, least, delta);
        Self { sizes, delta, boundary, depth, groups: vec![(1.0, top, None)], rest: 0.0 }
    }

    /// P(S) under epsilon, from above.
    pub(super) fn error(&mut self, epsilon: f64) -> f64 {
        let q = (1.0 - self.delta) * (-epsilon).exp();
        let (first, masses) =
            if q >= 1.0 { (self.sizes.0, vec![1.0]) } else { window(self.sizes.0, q) };
        let sum: f64 = masses.iter().sum();
        let mut error = self.rest + rounding(self.sizes);
        for (mass, top, band) in &mut self.groups {
            let left = self.sizes.1 - *top;
            let kept = if self.boundary.len() == 1 && self.boundary[0] == left + *top {
                // All members come first, in one order of M + left: the outcome without an error.
                let one = |place: usize| without_errors(first + place as u64, left);
                masses
                    .iter()
                    .enumerate()
                    .map(|(place, mass)| mass * (1.0 - one(place)))
                    .sum::<f64>()
            } else {
                let last = first + masses.len() as u64 - 1;
                if !band.as_ref().is_some_and(|band| band.covers(first, last)) {
                    let around = (last - first) / 2;
                    let range = (first.saturating_sub(around), (last + around).min(self.sizes.0));
                    *band = Some(Band::new(&self.boundary, *top, left, range, self.depth));
                }
                band.as_ref().map_or(0.0, |band| band.kept(first, &masses))
            };
            error += *mass * (1.0 - kept / sum).max(0.0);
        }
        error
    }
}

/// The probability that n members come before M non-members, from above.
fn without_errors(rows: u64, n: u64) -> f64 {
    (1..=rows.min(60)).map(|i| i as f64 / (n + i) as f64).product()
}

/// h at the ends that a range of M has.
struct Band {
    range: (u64, u64),
    left: u64,
    ends: Ends,
    /// Non-members from which on no boundary can be reached.
    past: u64,
}

enum Ends {
    /// h(M, left) for each M of the range.
    All(Vec<f64>),
    /// h(k, depth - k) from this k on, and h(M, left) where M and left are no more than the depth.
    Top { depth: u64, first: u64, row: Vec<f64>, short: Vec<f64> },
}

impl Band {
    fn new(boundary: &[u64], top: u64, left: u64, range: (u64, u64), depth: u64) -> Self {
        let past = boundary.len() as u64;
        let all = range.1 + left;
        let steps = all.min(depth);
        let share = |rows: u64| rows as f64 / (rows + left).max(1) as f64;
        let (low, high) = (share(range.0), share(range.1));
        // Where p (1 - p) is largest.
        let spread = if low <= 0.5 && high >= 0.5 {
            0.25
        } else {
            (low * (1.0 - low)).max(high * (1.0 - high))
        };
        let reached =
            |k: u64| boundary.get(k as usize).map_or(u64::MAX, |v| k + v.saturating_sub(top));
        let size = range.1.min(steps) as usize + 3;
        let (mut old, mut new) = (vec![0.0_f64; size], vec![0.0_f64; size]);
        let mut ends = vec![0.0; (range.1 - range.0 + 1) as usize];
        // The first k that keeps below the boundary on this diagonal.
        let mut inside = 0;
        // What is filled, with 0 at either side.
        let (mut from, mut to) = (0_usize, 0_usize);
        old[0] = f64::from(u8::from(reached(0) > 0));
        if left == 0 && range.0 == 0 {
            ends[0] = old[0];
        }
        for d in 1..=steps {
            while inside <= d && reached(inside) <= d {
                inside += 1;
            }
            let at = d as f64;
            let sd = (spread * at * (all - d) as f64 / all as f64).sqrt();
            let lowest = (low * at - WIDTH * sd - SKEW).max(0.0) as u64;
            let lowest = lowest.max(d.saturating_sub(left)).max(inside) as usize;
            let highest = ((high * at + WIDTH * sd + SKEW) as u64).min(range.1).min(d) as usize;
            if lowest > highest {
                // Nothing is left inside.
                return Self {
                    range,
                    left,
                    ends: Ends::All(vec![0.0; (range.1 - range.0 + 1) as usize]),
                    past,
                };
            }
            // Old values that were not computed are 0.
            let start = lowest.saturating_sub(1);
            if start < from {
                old[start..from].fill(0.0);
            }
            if highest > to {
                old[to + 1..=highest].fill(0.0);
            }
            if lowest == 0 {
                new[0] = old[0];
            }
            let begin = lowest.max(1);
            let inputs = old[begin - 1..=highest].windows(2);
            let inverse = 1.0 / at;
            // Signed 32 bits are what processors make into doubles.
            for ((value, pair), k) in
                new[begin..=highest].iter_mut().zip(inputs).zip(begin as i32..)
            {
                let k = f64::from(k);
                *value = (k * pair[0] + (at - k) * pair[1]) * inverse;
            }
            (from, to) = (lowest, highest);
            std::mem::swap(&mut old, &mut new);
            if d >= left + range.0 {
                let rows = (d - left) as usize;
                if (from..=to).contains(&rows) {
                    ends[rows - range.0 as usize] = old[rows];
                }
            }
        }
        let ends = if all <= depth {
            Ends::All(ends)
        } else {
            Ends::Top { depth, first: from as u64, row: old[from..=to].to_vec(), short: ends }
        };
        Self { range, left, ends, past }
    }

    fn covers(&self, first: u64, last: u64) -> bool {
        first >= self.range.0 && last <= self.range.1
    }

    /// The sum over M of its mass and the probability that no boundary is reached, from below.
    fn kept(&self, first: u64, masses: &[f64]) -> f64 {
        // With fewer rows some boundary is reached after all members.
        let skipped = (self.past.saturating_sub(first) as usize).min(masses.len());
        match &self.ends {
            Ends::All(ends) => {
                let ends = &ends[(first - self.range.0) as usize..];
                masses.iter().zip(ends).skip(skipped).map(|(mass, end)| mass * end).sum()
            }
            Ends::Top { depth, first: start, row, short } => {
                let step = (masses.len() / 80).max(1);
                let groups = masses[skipped..].chunks(step).enumerate();
                groups
                    .map(|(place, group)| {
                        let rows = first + (skipped + place * step) as u64;
                        let mass: f64 = group.iter().sum();
                        if rows + self.left <= *depth {
                            return mass * short[(rows - self.range.0) as usize];
                        }
                        mass * hypergeometric(rows, self.left, *depth, *start, row)
                    })
                    .sum()
            }
        }
    }
}

/// The mean of h over the number of non-members among the first `depth` of `rows` non-members and `left`
/// members; 0 where h was not computed.
fn hypergeometric(rows: u64, left: u64, depth: u64, start: u64, h: &[f64]) -> f64 {
    let (m, n, d) = (rows as f64, left as f64, depth as f64);
    let share = m / (m + n);
    let spread = 9.0 * (d * share * (1.0 - share)).sqrt() + 20.0;
    let least = (depth.saturating_sub(left)) as f64;
    let mode = ((d + 1.0) * (m + 1.0) / (m + n + 2.0)).floor().clamp(least, m.min(d));
    let value = |k: f64| {
        h.get((k - start as f64) as usize).copied().filter(|_| k >= start as f64).unwrap_or(0.0)
    };
    let (mut sum, mut mean) = (1.0, value(mode));
    let mut add = |k: f64, mass: f64| {
        sum += mass;
        mean += mass * value(k);
    };
    let (mut k, mut mass) = (mode, 1.0);
    while k < m.min(d) && k < mode + spread {
        mass *= (m - k) * (d - k) / ((k + 1.0) * (n - d + k + 1.0));
        k += 1.0;
        add(k, mass);
    }
    (k, mass) = (mode, 1.0);
    while k > least && k > mode - spread {
        mass *= k * (n - d + k) / ((m - k + 1.0) * (d - k + 1.0));
        k -= 1.0;
        add(k, mass);
    }
    mean / sum
}

/// Groups of D ~ Binomial(n1, delta), each with its largest value, and what is left.
pub(super) fn tops(n1: u64, delta: f64) -> (Vec<(f64, u64)>, f64) {
    if delta <= 0.0 {
        return (vec![(1.0, 0)], 0.0);
    }
    const CUTS: [f64; 7] = [0.2, 0.5, 0.75, 0.9, 0.97, 0.995, 0.9995];
    let (first, masses) = window(n1, delta.min(1.0 - 1e-12));
    let sum: f64 = masses.iter().sum();
    let (mut groups, mut reached, mut mass) = (Vec::new(), 0.0, 0.0);
    let mut cut = 0;
    for (place, one) in masses.iter().map(|mass| mass / sum).enumerate() {
        mass += one;
        reached += one;
        if cut < CUTS.len() && reached >= CUTS[cut] {
            groups.push((mass, first + place as u64));
            mass = 0.0;
            while cut < CUTS.len() && reached >= CUTS[cut] {
                cut += 1;
            }
        }
    }
    let grouped: f64 = groups.iter().map(|group| group.0).sum();
    (groups, (1.0 - grouped).max(0.0))
}

/// v_k: the smallest N with an L of at least `least`, as far as any N has it. N_k rises with k, so a boundary that is above a
/// later one is never the first to be reached and is lowered to it: the outcomes are the same.
pub(super) fn boundary(sizes: (u64, u64), depth: u64, least: f64, delta: f64) -> Vec<u64> {
    let mut start = 1;
    let mut found: Vec<u64> = Vec::new();
    let mut reachable = 0;
    let ranks = sizes.0.min(depth);
    let largest = |k: u64| worth(k as usize, sizes.1.min(depth - k), sizes, delta);
    // With r = k + 1 and c standard deviations taken off, the largest L of a rank falls where r (n0 + 1 - r) > c^2 / 4 (n0 + 1): with c <= 3 from the third
    // rank to the third but last, if there are a dozen. The last ones are asked.
    let rises_at_last = (ranks.saturating_sub(3)..ranks).any(|k| largest(k) >= least);
    for k in 0..ranks {
        let most = sizes.1.min(depth - k);
        let at = |n: u64| worth(k as usize, n, sizes, delta) >= least;
        if most == 0 || !at(most) {
            found.push(u64::MAX);
            if k > 2 && ranks > 12 && !rises_at_last {
                break;
            }
            continue;
        }
        // From the last one outwards: not at `not`, but at `does`.
        let (mut not, mut does, mut step) = (0, most, 1);
        let near: u64 = start.min(most);
        if at(near) {
            does = near;
            while does > step + not && does > 1 {
                let next = does - step;
                if !at(next) {
                    not = next;
                    break;
                }
                (does, step) = (next, 2 * step);
            }
        } else {
            not = near;
            while not + step < most {
                if at(not + step) {
                    does = not + step;
                    break;
                }
                (not, step) = (not + step, 2 * step);
            }
        }
        while does - not > 1 {
            let middle = not + (does - not) / 2;
            if at(middle) { does = middle } else { not = middle }
        }
        start = does;
        found.push(does);
        reachable = found.len();
    }
    found.truncate(reachable);
    let mut lowest = u64::MAX;
    for v in found.iter_mut().rev() {
        lowest = lowest.min(*v);
        *v = lowest;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(
        boundary: &[u64],
        top: u64,
        left: u64,
        range: (u64, u64),
        depth: u64,
        rows: u64,
    ) -> f64 {
        Band::new(boundary, top, left, range, depth).kept(rows, &[1.0])
    }

    /// P(S) against all orders of few members and non-members, for all ranks and for the first of them.
    #[test]
    fn the_table_counts_orders() {
        let sizes = (4_u64, 5_u64);
        for (least, depth) in
            [-1.0, -0.3, 0.0, 0.2, 0.5].into_iter().flat_map(|l| [9, 6, 4, 2].map(|d| (l, d)))
        {
            let boundary = boundary(sizes, depth, least, 0.05);
            for (top, rows) in (0..2_u64).flat_map(|top| (0..=4_u64).map(move |rows| (top, rows))) {
                let left = 5 - top;
                let (mut outside, mut all) = (0, 0);
                for order in 0..1_u32 << (rows + left) {
                    if u64::from(order.count_ones()) != left {
                        continue;
                    }
                    all += 1;
                    // Members beyond each non-member; those beyond q come after all members.
                    let (mut beyond, mut ones) = (Vec::new(), top);
                    for place in 0..rows + left {
                        if order >> place & 1 == 1 { ones += 1 } else { beyond.push(ones) }
                    }
                    beyond.resize(4, 5);
                    let reached = |(k, n): (usize, &u64)| {
                        (k as u64) < depth
                            && worth(k, (*n).min(depth - k as u64), sizes, 0.05) >= least
                    };
                    outside += u32::from(!beyond.iter().enumerate().any(reached));
                }
                let expected = f64::from(outside) / f64::from(all);
                for range in [(rows, rows), (0, 4)] {
                    let found = kept(&boundary, top, left, range, depth, rows);
                    let right = expected;
                    assert!(
                        (found - right).abs() < 1e-12,
                        "{least} {depth} {top} {rows} {range:?}: {found} {right}"
                    );
                }
            }
        }
    }

    /// A narrow band is that of all paths up to what six standard deviations leave, and never more.
    #[test]
    fn the_band_loses_nothing_that_counts() {
        for (sizes, depth) in [((400, 300), 700), ((400, 300), 250), ((30, 900), 930)] {
            let boundary = boundary(sizes, depth, 0.5, 0.0);
            let past = boundary.len() as u64;
            for rows in [past, (past + sizes.0) / 2, sizes.0] {
                let narrow = kept(&boundary, 0, sizes.1, (rows, rows), depth, rows);
                let whole = kept(&boundary, 0, sizes.1, (0, sizes.0), depth, rows);
                assert!(
                    narrow <= whole + 1e-13 && whole - narrow < 1e-7,
                    "{sizes:?} {rows}: {narrow} {whole}"
                );
                assert!(whole > 0.0 && whole < 1.0, "{sizes:?} {rows}: {whole}");
            }
        }
    }

    /// The groups of D together have all of the probability.
    #[test]
    fn groups_of_the_top_are_complete() {
        for (n, delta) in [(100, 1e-5), (1000, 1e-3), (300, 0.3)] {
            let (groups, rest) = tops(n, delta);
            let sum: f64 = groups.iter().map(|group| group.0).sum::<f64>() + rest;
            assert!((sum - 1.0).abs() < 1e-9 && rest < 1e-3, "{n} {delta}: {groups:?} {rest}");
        }
    }
}
