//! The exact law of ranks: what `union` does for epsilon where the scores are few.
//!
//! **What is tested.** H(epsilon): p1(t) <= g(p0(t)) for every threshold t, where p0(t) and p1(t) are the shares
//! of non-members and of members with a score above t, and g(p) = min(1, e^epsilon p + delta). Let z_k be the
//! (k+1)-th highest score of n0 non-members and N_k the number of n1 members strictly above it. No rate is estimated:
//! the law of all N_k together is known.
//!
//! **Proof.** Let V_i and U_i be uniform with {score > t} = {V_i <= p0(t)} up to ties, for non-members and members
//! (the distributional transform); all are independent. V of the (k+1)-th highest score is V_(k+1), the (k+1)-th
//! smallest, and p0(z_k) <= V_(k+1). A member strictly above z_k has U <= p1(z_k) <= g(p0(z_k)) <= g(V_(k+1)),
//! that is W <= V_(k+1) with W = max(0, (U - delta) e^-epsilon). So N_k <= N*_k = #{W_i <= V_(k+1)} for all k
//! together. W is 0 with probability delta and else uniform on [0, q], q = (1 - delta) e^-epsilon. Given the
//! number D of zeros and the number M of V_i in [0, q], the other n1 - D members and the M non-members are
//! uniform on [0, q]: all of their orders are equally likely.
//!
//! Let L(k, N) be a fixed function that rises with N, l its largest value over what was seen, and v_k the
//! smallest N with L(k, N) >= l. S = {N_k >= v_k for some k} are the outcomes with at least that L, and P(S) <=
//! P(N*_k >= v_k for some k), which rises with epsilon, while S does not depend on it and the S are nested. So the largest epsilon at which
//! this is at most the level is a lower bound with that error (Buehler 1957). The mirrored inequality is the same statement
//! with the parts of members and non-members exchanged and all scores negated. Each direction gets half of the level. QED.
//!
//! **The number.** Let h(k, j) be the share of orders of k non-members and j members in which, for each i < k, fewer
//! than v_i members come before the (i+1)-th non-member, and j < v_k. An order ends with a non-member in k of k + j
//! cases, so h(k, j) = (k h(k-1, j) + j h(k, j-1)) / (k + j) where j < v_k, and 0 elsewhere. P(S given M, D = 0) =
//! 1 - h(M, n1), unless some v_k with k >= M is at most n1, where it is 1. S does not depend on epsilon, so one table serves
//! the whole search; epsilon enters by the binomial law of M alone. All numbers are in [0, 1] and rounding is below 1e-11, which is
//! added. D has some values of its own where delta > 0; they are taken in groups by their largest.
//!
//! L is the logarithm of (N / n1) / ((k + 1) / n0) less [`SPREAD`] standard deviations. It decides how much is shown,
//! not whether it holds. (Exact laws of two-sample rank statistics by counting paths: Hodges 1958.)
//!
//! Cost: n0 n1 products at most, some milliseconds for a thousand scores per side; up to [`MOST`].

use crate::exact::window;
use crate::{AttackDirection, Errors, Scores};

/// Most pairs of a member and a non-member; beyond them `union` is the joint martingale.
const MOST: u64 = 4_000_000;
/// Standard deviations that L takes off.
const SPREAD: f64 = 1.75;
/// What rounding may have taken off a probability.
const ROUNDING: f64 = 1e-11;

/// Whether the law is computed for samples of these sizes.
pub(crate) fn applies(nonmembers: u64, members: u64) -> bool {
    nonmembers > 0 && members > 0 && nonmembers.saturating_mul(members) <= MOST
}

/// A bound, and the threshold that promises most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shown {
    pub(crate) value: f64,
    pub(crate) mirror: bool,
    /// Rank of the score at the threshold, from 0: among non-members from above, or among members from below.
    pub(crate) rank: usize,
}

/// The lower bound of epsilon at total error `level`; `None` when nothing is shown.
pub(crate) fn epsilon(
    scores: &Scores,
    delta: f64,
    direction: AttackDirection,
    level: f64,
) -> Option<Shown> {
    both(&Seen::forward(scores), &Seen::mirror(scores), delta, direction, level)
}

/// As [`epsilon`], where only the errors at one threshold are known.
pub(crate) fn epsilon_of_counts(
    errors: &Errors,
    delta: f64,
    direction: AttackDirection,
    level: f64,
) -> f64 {
    let forward = Seen::at_one(
        (errors.false_positives, errors.nonmembers),
        (errors.true_positives(), errors.members),
    );
    let mirror = Seen::at_one(
        (errors.false_negatives, errors.members),
        (errors.true_negatives(), errors.nonmembers),
    );
    both(&forward, &mirror, delta, direction, level).map_or(0.0, |shown| shown.value)
}

fn both(
    forward: &Seen,
    mirror: &Seen,
    delta: f64,
    direction: AttackDirection,
    level: f64,
) -> Option<Shown> {
    let level = if direction == AttackDirection::Both { 0.5 * level } else { level };
    let mut ways: Vec<(&Seen, bool)> = Vec::new();
    if direction != AttackDirection::Mirror {
        ways.push((forward, false));
    }
    if direction != AttackDirection::Forward {
        ways.push((mirror, true));
    }
    // The more promising first: the other has to beat it.
    ways.sort_by(|a, b| b.0.best().1.total_cmp(&a.0.best().1));
    let mut best: Option<Shown> = None;
    for (seen, mirror) in ways {
        let known = best.map_or(0.0, |best| best.value);
        if let Some(value) = seen.bound(delta, level, known) {
            best = Some(Shown { value, mirror, rank: seen.best().0 });
        }
    }
    best
}

/// L of N of n1 beyond the (k+1)-th of n0.
fn worth(k: usize, n: u64, (n0, n1): (u64, u64)) -> f64 {
    if n == 0 {
        return f64::NEG_INFINITY;
    }
    let (k, n, n0, n1) = (k as f64 + 1.0, n as f64, n0 as f64, n1 as f64);
    let variance = 1.0 / k - 1.0 / (n0 + 1.0) + 1.0 / n - 1.0 / (n1 + 1.0);
    (n * n0 / (n1 * k)).ln() - SPREAD * variance.sqrt()
}

/// N_k for all k, in one direction.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    beyond: Vec<u64>,
    sizes: (u64, u64),
}

impl Seen {
    /// Members above each non-member, from the highest non-member down.
    pub(crate) fn forward(scores: &Scores) -> Self {
        let (members, nonmembers) = (scores.members(), scores.nonmembers());
        let mut taken = members.len();
        let beyond = nonmembers
            .iter()
            .rev()
            .map(|score| {
                while taken > 0 && members[taken - 1] > *score {
                    taken -= 1;
                }
                (members.len() - taken) as u64
            })
            .collect();
        Self { beyond, sizes: (nonmembers.len() as u64, members.len() as u64) }
    }

    /// Non-members below each member, from the lowest member up.
    pub(crate) fn mirror(scores: &Scores) -> Self {
        let (members, nonmembers) = (scores.members(), scores.nonmembers());
        let mut taken = 0;
        let beyond = members
            .iter()
            .map(|score| {
                while taken < nonmembers.len() && nonmembers[taken] < *score {
                    taken += 1;
                }
                taken as u64
            })
            .collect();
        Self { beyond, sizes: (members.len() as u64, nonmembers.len() as u64) }
    }

    /// `ones` of n1 are beyond a threshold with `zeros` of n0 beyond it, and nothing else is known.
    fn at_one((zeros, n0): (u64, u64), (ones, n1): (u64, u64)) -> Self {
        let beyond = (0..n0).map(|k| if k >= zeros { ones } else { 0 }).collect();
        Self { beyond, sizes: (n0, n1) }
    }

    /// The k that promises most, and its L.
    pub(crate) fn best(&self) -> (usize, f64) {
        let mut best = (0, f64::NEG_INFINITY);
        let mut last = u64::MAX;
        for (k, &n) in self.beyond.iter().enumerate() {
            // With the same count a larger k promises less, the first two apart.
            if n == last && k > 2 {
                continue;
            }
            last = n;
            let worth = worth(k, n, self.sizes);
            if worth > best.1 {
                best = (k, worth);
            }
        }
        best
    }

    /// The largest refuted epsilon beyond `known`, from below.
    fn bound(&self, delta: f64, level: f64, known: f64) -> Option<f64> {
        let (_, worth) = self.best();
        // Far from anything: not worth a table.
        if worth < -0.2 {
            return None;
        }
        let mut law = Law::new(self.sizes, worth, delta);
        // A smaller epsilon needs more rows of the table.
        let start = known.max(0.5 * worth);
        let (mut shown, mut beyond) = (start, start);
        if law.error(start) <= level {
            beyond = worth.max(start) + 0.25;
            while law.error(beyond) <= level {
                shown = beyond;
                beyond += 0.5 + 0.25 * beyond;
                if beyond > 700.0 {
                    return Some(shown);
                }
            }
        } else if start == known || law.error(known) > level {
            return None;
        } else {
            shown = known;
        }
        while beyond - shown > 1e-7 * beyond.max(1.0) {
            let middle = 0.5 * (shown + beyond);
            if law.error(middle) <= level { shown = middle } else { beyond = middle }
        }
        (shown > known).then_some(shown)
    }
}

/// The smallest L, to a hundredth from above, whose outcomes have probability of at most `level` under epsilon; `None` when
/// no outcome has it. For planning.
pub(crate) fn critical(sizes: (u64, u64), delta: f64, level: f64, epsilon: f64) -> Option<f64> {
    let shows = |worth: f64| Law::new(sizes, worth, delta).error(epsilon) <= level;
    let (mut not, mut does) = (epsilon - 0.5, epsilon + 0.1);
    let most = worth(0, sizes.1, sizes).max(worth(1, sizes.1, sizes));
    while !shows(does) {
        (not, does) = (does, does + 0.3);
        if does > most {
            return (shows(most) && most > not).then_some(most);
        }
    }
    while shows(not) {
        (not, does) = (not - 0.5, not);
    }
    while does - not > 0.01 {
        let middle = 0.5 * (not + does);
        if shows(middle) { does = middle } else { not = middle }
    }
    Some(does)
}

/// P(S) as a function of epsilon, for the outcomes with at least some L.
struct Law {
    sizes: (u64, u64),
    delta: f64,
    /// Groups of the number of members that delta puts at the top: probability, largest number, table.
    groups: Vec<(f64, Table)>,
    /// Probability of the numbers that are counted as reached.
    rest: f64,
    /// 1/i.
    inverse: Vec<f64>,
}

impl Law {
    fn new(sizes: (u64, u64), least: f64, delta: f64) -> Self {
        let boundary = boundary(sizes, least);
        let (tops, rest) = tops(sizes.1, delta);
        let groups =
            tops.into_iter().map(|(mass, top)| (mass, Table::new(&boundary, sizes, top))).collect();
        Self { sizes, delta, groups, rest, inverse: inverse(sizes) }
    }

    /// P(S) under epsilon, from above.
    fn error(&mut self, epsilon: f64) -> f64 {
        let q = (1.0 - self.delta) * (-epsilon).exp();
        let (first, masses) =
            if q >= 1.0 { (self.sizes.0, vec![1.0]) } else { window(self.sizes.0, q) };
        let mut error = self.rest + ROUNDING;
        for (mass, table) in &mut self.groups {
            let kept: f64 = masses
                .iter()
                .enumerate()
                .map(|(place, mass)| mass * table.kept(first as usize + place, &self.inverse))
                .sum();
            error += *mass * (1.0 - kept);
        }
        error
    }
}

fn inverse(sizes: (u64, u64)) -> Vec<f64> {
    (0..=sizes.0 + sizes.1).map(|i| 1.0 / i as f64).collect()
}

/// Groups of D ~ Binomial(n1, delta), each with its largest value, and what is left.
fn tops(n1: u64, delta: f64) -> (Vec<(f64, u64)>, f64) {
    if delta <= 0.0 {
        return (vec![(1.0, 0)], 0.0);
    }
    const CUTS: [f64; 10] = [0.1, 0.3, 0.5, 0.7, 0.85, 0.93, 0.97, 0.99, 0.997, 0.9995];
    let (first, masses) = window(n1, delta.min(1.0 - 1e-12));
    let (mut groups, mut reached, mut mass) = (Vec::new(), 0.0, 0.0);
    let mut cut = 0;
    for (place, one) in masses.iter().enumerate() {
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

/// v_k: the smallest N with an L of at least `least`; n1 + 1 where none has it.
fn boundary(sizes: (u64, u64), least: f64) -> Vec<u64> {
    let n1 = sizes.1;
    let mut start = 1;
    (0..sizes.0 as usize)
        .map(|k| {
            if worth(k, n1, sizes) < least {
                return n1 + 1;
            }
            // From the last one outwards.
            let (mut not, mut does, mut step) = (0, n1, 1);
            let mut at: u64 = start;
            loop {
                if at >= n1 {
                    break;
                }
                if worth(k, at, sizes) >= least {
                    does = at;
                    if at == not + 1 || not > 0 {
                        break;
                    }
                    at = at.saturating_sub(step).max(not + 1);
                } else {
                    not = at;
                    if does < n1 {
                        break;
                    }
                    at += step;
                }
                step *= 2;
            }
            while does - not > 1 {
                let middle = not + (does - not) / 2;
                if worth(k, middle, sizes) >= least { does = middle } else { not = middle }
            }
            start = does;
            does
        })
        .collect()
}

/// h(M, n1), row by row as far as it is asked for.
struct Table {
    boundary: Vec<u64>,
    /// Members that are not at the top.
    left: usize,
    top: u64,
    /// The largest k with a boundary that can be reached.
    last: Option<usize>,
    row: Vec<f64>,
    /// h(M, n1) for the rows so far.
    ends: Vec<f64>,
}

impl Table {
    fn new(boundary: &[u64], (_, n1): (u64, u64), top: u64) -> Self {
        let left = (n1 - top) as usize;
        let last = boundary.iter().rposition(|least| *least <= n1);
        let mut table = Self {
            boundary: boundary.to_vec(),
            left,
            top,
            last,
            row: vec![0.0; left + 1],
            ends: Vec::new(),
        };
        let width = table.width(0);
        table.row[..width].fill(1.0);
        table.ends.push(table.row[left]);
        table
    }

    /// How many counts of members, from 0, keep below the boundary of row k.
    fn width(&self, k: usize) -> usize {
        let Some(&least) = self.boundary.get(k) else { return self.left + 1 };
        (least.saturating_sub(self.top) as usize).min(self.left + 1)
    }

    fn kept(&mut self, rows: usize, inverse: &[f64]) -> f64 {
        if self.last.is_some_and(|last| rows <= last) {
            return 0.0;
        }
        // One order of M + n in which all members come first: the outcome without an error.
        if self.last == Some(0) && self.width(0) == self.left {
            let n = self.left as f64;
            let first: f64 = (1..=rows.min(60)).map(|i| i as f64 / (n + i as f64)).product();
            return 1.0 - first;
        }
        while self.ends.len() <= rows {
            self.advance(inverse);
        }
        self.ends[rows]
    }

    fn advance(&mut self, inverse: &[f64]) {
        let k = self.ends.len();
        let width = self.width(k);
        let rows = k as f64;
        let mut left = 0.0;
        for ((j, value), inverse) in self.row[..width].iter_mut().enumerate().zip(&inverse[k..]) {
            // One product and one sum after another; the rest does not wait.
            left = (j as f64 * inverse) * left + rows * inverse * *value;
            *value = left;
        }
        self.row[width..].fill(0.0);
        self.ends.push(self.row[self.left]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P(S) against all orders of few members and non-members, and against draws.
    #[test]
    fn the_table_counts_orders() {
        let sizes = (4, 5);
        for least in [-1.0, -0.3, 0.0, 0.2, 0.5] {
            let boundary = boundary(sizes, least);
            for (k, v) in boundary.iter().enumerate() {
                let smallest = (1..=5).find(|n| worth(k, *n, sizes) >= least).unwrap_or(6);
                assert_eq!(*v, smallest, "{k} {least}");
            }
            for top in 0..2_u64 {
                let mut table = Table::new(&boundary, sizes, top);
                for rows in 0..=4_usize {
                    let (mut kept, mut all) = (0, 0);
                    let members = 5 - top as usize;
                    for order in 0..1_u32 << (rows + members) {
                        if order.count_ones() as usize != members {
                            continue;
                        }
                        all += 1;
                        let (mut zeros, mut ones, mut inside) = (0, top, true);
                        for place in 0..rows + members {
                            if order >> place & 1 == 1 {
                                ones += 1;
                            } else {
                                zeros += 1;
                            }
                            inside &= boundary.get(zeros).is_none_or(|v| ones < *v);
                        }
                        inside &= boundary[0] > top;
                        // Those beyond q come after all members.
                        inside &= (rows..4).all(|k| 5 < boundary[k]);
                        kept += u32::from(inside);
                    }
                    let expected = f64::from(kept) / f64::from(all);
                    let found = table.kept(rows, &inverse(sizes));
                    assert!((found - expected).abs() < 1e-12, "{least} {top} {rows}");
                }
            }
        }
    }

    /// Without an error the bound is where (1 - e^-epsilon)^n0 and a little more is the level.
    #[test]
    fn separated_scores_show_what_they_can() {
        let errors =
            Errors { false_positives: 0, nonmembers: 100, false_negatives: 0, members: 100 };
        let shown = epsilon_of_counts(&errors, 0.0, AttackDirection::Both, 0.05);
        let tail = (1.0 - (-shown).exp()).powi(100);
        assert!(tail <= 0.025 && tail > 0.024, "{shown} {tail}");
        let members: Vec<f64> = (0..100).map(|i| 200.0 + f64::from(i)).collect();
        let scores = Scores::new(members, (0..100).map(f64::from).collect()).unwrap();
        let whole = epsilon(&scores, 0.0, AttackDirection::Both, 0.05).unwrap();
        assert!((whole.value - shown).abs() < 1e-6, "{whole:?} {shown}");
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

    /// The critical L shows the target and a little less does not.
    #[test]
    fn the_critical_value_is_critical() {
        for (size, delta, target) in [(60, 0.0, 1.0), (200, 1e-3, 0.5)] {
            let sizes = (size, size);
            let least = critical(sizes, delta, 0.025, target).unwrap();
            assert!(Law::new(sizes, least, delta).error(target) <= 0.025);
            assert!(Law::new(sizes, least - 0.05, delta).error(target) > 0.025);
        }
    }
}
