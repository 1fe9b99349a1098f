//! The exact law of ranks: what `union` does for epsilon.
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
//! neighbouring values of it; epsilon enters by the binomial law of M alone. D has some values of its own where delta > 0;
//! they are taken in groups by their largest. How it is computed, and what is added for rounding: [`law`].
//!
//! L is the logarithm of (N / n1 - delta) / ((k + 1) / n0) less some standard deviations ([`spreads`]), more for later ranks: a standard
//! deviation is small there, so that they lose little, and what they do not use of the error is left to the first ranks. L decides how
//! much is shown, not whether it holds. (Exact laws of two-sample rank statistics by counting paths: Hodges 1958.)
//!
//! **Many scores.** A table costs about (n0 n1 (n0 + n1))^1/2 values. Up to [`BUDGET`] (about 23,000 scores per side) L reads all
//! ranks; beyond, those among the first [`depth`] scores. Thresholds further down are then left to the joint martingale
//! ([`crate::joint`]), with a twentieth of the error or more ([`share`]); standard deviations are so small there that it hardly shows.
//! Both sizes and delta decide that, before any score is read.

mod law;

use crate::{AttackDirection, Errors, Scores};
use law::Law;

/// Values of a table, in units of a few.
const BUDGET: f64 = 5e6;
/// What the law has of the error at most where L does not read all ranks; the martingale has the rest.
const SHARE: f64 = 0.95;

/// Standard deviations of the number of members that delta puts at the top.
const TOP: f64 = 2.75;

/// Standard deviations that L takes off at a rank, from 1.
fn spreads(rank: f64) -> f64 {
    (1.7 + 0.3 * rank.ln()).min(3.0)
}

/// The share of the error that the law has beside the martingale.
pub(crate) fn share(nonmembers: u64, members: u64, delta: f64) -> f64 {
    let depth = depth((nonmembers, members), delta);
    if depth >= nonmembers + members {
        return 1.0;
    }
    // The law cannot tell counts beyond the depth apart, which the martingale can.
    let told = depth as f64 / nonmembers.max(members) as f64;
    SHARE * told.min(1.0).sqrt()
}

/// How many of the first scores L reads; all where a table of them is small enough. The same for both directions.
fn depth(sizes: (u64, u64), delta: f64) -> u64 {
    let groups = law::tops(sizes.0, delta).0.len().max(law::tops(sizes.1, delta).0.len()) as f64;
    let budget = BUDGET * (2.0 / groups).min(1.0);
    let (n0, n1) = (sizes.0 as f64, sizes.1 as f64);
    let all = n0 + n1;
    let whole = (n0 * n1 * all).sqrt() + all;
    if whole <= budget {
        return sizes.0 + sizes.1;
    }
    let spread = (n0 * n1).sqrt() / all;
    let cost = |depth: f64| depth.powf(1.5) * spread + depth;
    let (mut low, mut high) = (2.0, budget.max(2.0));
    while high - low > 0.5 {
        let middle = 0.5 * (low + high);
        if cost(middle) <= budget { low = middle } else { high = middle }
    }
    low as u64
}

/// A bound, and the threshold that promises most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shown {
    pub(crate) value: f64,
    pub(crate) mirror: bool,
    /// Rank of the score at the threshold, from 0: among non-members from above, or among members from below.
    pub(crate) rank: usize,
}

/// The lower bound of epsilon at total error `level`; `None` when nothing beyond `known` is shown.
pub(crate) fn epsilon(
    scores: &Scores,
    delta: f64,
    direction: AttackDirection,
    level: f64,
    known: f64,
) -> Option<Shown> {
    let sizes = (scores.nonmembers().len() as u64, scores.members().len() as u64);
    let depth = depth(sizes, delta);
    let (forward, mirror) =
        (Seen::forward(scores, depth, delta), Seen::mirror(scores, depth, delta));
    both(&forward, &mirror, direction, level, known)
}

/// As [`epsilon`], where only the errors at one threshold are known.
pub(crate) fn epsilon_of_counts(
    errors: &Errors,
    delta: f64,
    direction: AttackDirection,
    level: f64,
) -> f64 {
    let depth = depth((errors.nonmembers, errors.members), delta);
    let forward = Seen::at_one(
        (errors.false_positives, errors.nonmembers),
        (errors.true_positives(), errors.members),
        (depth, delta),
    );
    let mirror = Seen::at_one(
        (errors.false_negatives, errors.members),
        (errors.true_negatives(), errors.nonmembers),
        (depth, delta),
    );
    both(&forward, &mirror, direction, level, 0.0).map_or(0.0, |shown| shown.value)
}

fn both(
    forward: &Seen,
    mirror: &Seen,
    direction: AttackDirection,
    level: f64,
    known: f64,
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
        let known = best.map_or(known, |best| best.value);
        if let Some(value) = seen.bound(level, known) {
            best = Some(Shown { value, mirror, rank: seen.best().0 });
        }
    }
    best
}

/// L of N of n1 beyond the (k+1)-th of n0.
fn worth(k: usize, n: u64, (n0, n1): (u64, u64), delta: f64) -> f64 {
    let (rank, n, n0, n1) = (k as f64 + 1.0, n as f64, n0 as f64, n1 as f64);
    let excess = n - delta * n1;
    if excess <= 0.0 {
        return f64::NEG_INFINITY;
    }
    (excess * n0 / (n1 * rank)).ln() - spreads(rank) * deviation(rank, n, (n0, n1), delta)
}

/// The standard deviation of the logarithm; infinite where what is beyond delta may be chance.
fn deviation(rank: f64, n: f64, (n0, n1): (f64, f64), delta: f64) -> f64 {
    let excess = n - delta * n1;
    // The members that delta puts at the top are the same for all ranks. Their number enters as it is, not by its logarithm.
    let top = TOP * (delta * (1.0 - delta) * n1).sqrt() / excess;
    if top >= 1.0 {
        return f64::INFINITY;
    }
    let top = (-top).ln_1p() / spreads(rank);
    let members = (1.0 - n / (n1 + 1.0)).max(0.0) / excess;
    (1.0 / rank - 1.0 / (n0 + 1.0) + members + top * top).max(0.0).sqrt()
}

/// min(N_k, depth - k) for all k below the depth, in one direction.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    beyond: Vec<u64>,
    sizes: (u64, u64),
    depth: u64,
    delta: f64,
}

impl Seen {
    /// Members above each non-member, from the highest non-member down.
    pub(crate) fn forward(scores: &Scores, depth: u64, delta: f64) -> Self {
        let (members, nonmembers) = (scores.members(), scores.nonmembers());
        let mut taken = members.len();
        let beyond = nonmembers
            .iter()
            .rev()
            .zip((1..=depth).rev())
            .map(|(score, most)| {
                while taken > 0 && members[taken - 1] > *score {
                    taken -= 1;
                }
                ((members.len() - taken) as u64).min(most)
            })
            .collect();
        Self { beyond, sizes: (nonmembers.len() as u64, members.len() as u64), depth, delta }
    }

    /// Non-members below each member, from the lowest member up.
    pub(crate) fn mirror(scores: &Scores, depth: u64, delta: f64) -> Self {
        let (members, nonmembers) = (scores.members(), scores.nonmembers());
        let mut taken = 0;
        let beyond = members
            .iter()
            .zip((1..=depth).rev())
            .map(|(score, most)| {
                while taken < nonmembers.len() && nonmembers[taken] < *score {
                    taken += 1;
                }
                (taken as u64).min(most)
            })
            .collect();
        Self { beyond, sizes: (members.len() as u64, nonmembers.len() as u64), depth, delta }
    }

    /// `ones` of n1 are beyond a threshold with `zeros` of n0 beyond it, and nothing else is known.
    fn at_one((zeros, n0): (u64, u64), (ones, n1): (u64, u64), (depth, delta): (u64, f64)) -> Self {
        let beyond =
            (0..n0.min(depth)).map(|k| if k >= zeros { ones.min(depth - k) } else { 0 }).collect();
        Self { beyond, sizes: (n0, n1), depth, delta }
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
            let worth = worth(k, n, self.sizes, self.delta);
            if worth > best.1 {
                best = (k, worth);
            }
        }
        best
    }

    /// The largest refuted epsilon beyond `known`, from below.
    fn bound(&self, level: f64, known: f64) -> Option<f64> {
        let ((rank, worth), delta) = (self.best(), self.delta);
        // Far from anything: not worth a table.
        if worth < -0.4 || worth < known - 1.0 {
            return None;
        }
        // The bound is about one standard deviation below L.
        let (n0, n1) = (self.sizes.0 as f64, self.sizes.1 as f64);
        let count = self.beyond[rank] as f64;
        let spread = deviation(rank as f64 + 1.0, count, (n0, n1), delta);
        let start = worth - spread;
        // A little less, so that no rounding of L leaves the outcome itself out.
        let least = worth - 1e-9;
        let precision = if self.depth >= self.sizes.0 + self.sizes.1 { 1e-7 } else { 1e-5 };
        let law = Law::new(self.sizes, self.depth, least, delta);
        let mut near = Near { epsilon: start, step: 0.5 * spread, slope: None };
        if delta > 0.0 {
            // One number of members at the top shows where to look; what is returned is the whole law's.
            let guide = Law::with_one_top(self.sizes, self.depth, least, delta);
            near = Near { step: 0.1 * spread, ..largest(guide, level, known, near, 0.1 * spread)? };
        }
        Some(largest(law, level, known, near, precision)?.epsilon)
    }
}

/// Where to look first, the first step from there, and the slope of the error's logarithm where it is known.
#[derive(Clone, Copy)]
struct Near {
    epsilon: f64,
    step: f64,
    slope: Option<f64>,
}

/// The largest epsilon beyond `known` at which the law's error is at most `level`, from below, to `precision`. The logarithm of the error is nearly straight in
/// epsilon: a line through the two ends of the bracket tells where to look, and the middle where that does not halve it.
fn largest(mut law: Law, level: f64, known: f64, near: Near, precision: f64) -> Option<Near> {
    let mut step = near.step.max(1e-3);
    let mut slope = near.slope;
    // Epsilons with their excess of the error over the level, in logarithms.
    let mut shown: Option<(f64, f64)> = None;
    let mut beyond: Option<(f64, f64)> = None;
    let mut here = near.epsilon.max(known);
    let mut width = f64::INFINITY;
    loop {
        let excess = (law.error(here) / level).ln();
        if excess <= 0.0 {
            shown = Some((here, excess));
        } else if here <= known {
            return None;
        } else {
            beyond = Some((here, excess));
        }
        here = match (shown, beyond) {
            (Some(low), Some(high)) => {
                let fine = precision * high.0.max(1.0);
                let gap = high.0 - low.0;
                let rise = (high.1 - low.1) / gap;
                slope = Some(rise).filter(|rise| *rise > 0.0).or(slope);
                if gap <= fine {
                    break;
                }
                let guess = low.0 - low.1 / rise;
                let straight = gap <= 0.5 * width && guess > low.0 && guess < high.0;
                width = gap;
                if !straight {
                    0.5 * (low.0 + high.0)
                } else if guess < low.0 + 0.5 * fine {
                    low.0 + 0.9 * fine
                } else if guess > high.0 - 0.5 * fine {
                    high.0 - 0.9 * fine
                } else {
                    guess - 0.4 * fine
                }
            }
            (Some((low, excess)), None) => {
                if low > 700.0 {
                    break;
                }
                let far =
                    slope.map_or(step, |slope| (-excess / slope).clamp(0.1 * step, 4.0 * step));
                step *= 2.0;
                low + far
            }
            (_, Some((high, excess))) => {
                let far =
                    slope.map_or(step, |slope| (excess / slope).clamp(0.1 * step, 4.0 * step));
                step *= 2.0;
                (high - far).max(known)
            }
            // The first error is on one side or the other.
            (None, None) => break,
        };
    }
    let (epsilon, _) = shown.filter(|(epsilon, _)| *epsilon > known)?;
    Some(Near { epsilon, step, slope })
}

/// The L that shows a value, for planning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Critical {
    least: f64,
    depth: u64,
}

impl Critical {
    /// The smallest L, to a hundredth from above, whose outcomes have probability of at most `level` under epsilon; `None`
    /// when no outcome has it. `near` is where to look first.
    pub(crate) fn new(
        sizes: (u64, u64),
        delta: f64,
        level: f64,
        epsilon: f64,
        near: Option<f64>,
    ) -> Option<Self> {
        let depth = depth(sizes, delta);
        let shows = |worth: f64| Law::new(sizes, depth, worth, delta).error(epsilon) <= level;
        let at = |k: usize| worth(k, sizes.1.min(depth - k as u64), sizes, delta);
        let most = at(0).max(at(1.min(depth as usize - 1)));
        let found = |least: f64| Some(Self { least, depth });
        let (start, mut step) = near.map_or((epsilon + 0.1, 0.3), |near| (near, 0.03));
        let start = start.min(most);
        let (mut not, mut does);
        if shows(start) {
            (does, not) = (start, start - step);
            while shows(not) {
                step *= 2.0;
                (not, does) = (not - step, not);
            }
        } else {
            (not, does) = (start, start + step);
            loop {
                if does >= most {
                    return if not < most && shows(most) { found(most) } else { None };
                }
                if shows(does) {
                    break;
                }
                step *= 1.5;
                (not, does) = (does, does + step);
            }
        }
        while does - not > 0.01 {
            let middle = 0.5 * (not + does);
            if shows(middle) { does = middle } else { not = middle }
        }
        found(does)
    }

    pub(crate) fn least(&self) -> f64 {
        self.least
    }

    /// L of `ones` of n beyond a threshold with `zeros` of n beyond it.
    pub(crate) fn worth(&self, zeros: u64, ones: u64, n: u64, delta: f64) -> f64 {
        if zeros >= self.depth {
            return f64::NEG_INFINITY;
        }
        worth(zeros as usize, ones.min(self.depth - zeros), (n, n), delta)
    }

    pub(crate) fn depth(&self) -> u64 {
        self.depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Design;

    /// Without an error the bound is where (1 - e^-epsilon)^n0 and a little more is the level.
    #[test]
    fn separated_scores_show_what_they_can() {
        let errors =
            Errors { false_positives: 0, nonmembers: 100, false_negatives: 0, members: 100 };
        let shown = epsilon_of_counts(&errors, 0.0, AttackDirection::Both, 0.05);
        let tail = (1.0 - (-shown).exp()).powi(100);
        assert!(tail <= 0.025 && tail > 0.024, "{shown} {tail}");
        let members: Vec<f64> = (0..100).map(|i| 200.0 + f64::from(i)).collect();
        let scores = Scores::new(Design::Runs, members, (0..100).map(f64::from).collect()).unwrap();
        let whole = epsilon(&scores, 0.0, AttackDirection::Both, 0.05, 0.0).unwrap();
        assert!((whole.value - shown).abs() < 1e-6, "{whole:?} {shown}");
    }

    /// P(S) against draws of the worst case that the hypothesis allows, for all ranks and for the first of them. With delta its
    /// groups only make it larger.
    #[test]
    fn the_law_is_that_of_draws() {
        const DRAWS: u32 = 20_000;
        let mut dealer = crate::split::Dealer::new(11);
        let mut uniform = || ((dealer.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        for (sizes, depth, delta, epsilon, least) in [
            ((60, 40), 100, 0.0, 0.7, 0.6),
            ((60, 40), 45, 0.0, 0.7, 0.6),
            ((40, 200), 100, 0.0, 0.3, 0.1),
            ((200, 20), 220, 0.02, 1.0, 0.8),
            ((100, 100), 80, 0.03, 0.5, 0.2),
            ((150, 150), 300, 0.3, 0.5, 0.2),
        ] {
            let mut reached = 0;
            for _ in 0..DRAWS {
                let v: Vec<f64> = (0..sizes.0).map(|_| -uniform()).collect();
                let w = (0..sizes.1).map(|_| -((uniform() - delta) * f64::exp(-epsilon)).max(0.0));
                let scores = Scores::new(Design::Runs, w.collect(), v).unwrap();
                reached += u32::from(Seen::forward(&scores, depth, delta).best().1 >= least);
            }
            let share = f64::from(reached) / f64::from(DRAWS);
            let law = Law::new(sizes, depth, least, delta).error(epsilon);
            let error = 4.0 * (law * (1.0 - law) / f64::from(DRAWS)).sqrt();
            assert!(share <= law + error, "{sizes:?} {depth} {delta}: {share} {law}");
            let slack = if delta > 0.0 { 0.4 * law } else { 0.0 };
            assert!(share >= law - error - slack, "{sizes:?} {depth} {delta}: {share} {law}");
            assert!(law > 0.005 && law < 0.5, "{sizes:?} {depth} {delta}: {law}");
        }
    }

    /// The critical L shows the target and a little less does not.
    #[test]
    fn the_critical_value_is_critical() {
        for (size, delta, target) in [(60, 0.0, 1.0), (200, 1e-3, 0.5)] {
            let sizes = (size, size);
            for near in [None, Some(target), Some(target + 0.5)] {
                let found = Critical::new(sizes, delta, 0.025, target, near).unwrap();
                let (least, depth) = (found.least(), found.depth());
                assert!(Law::new(sizes, depth, least, delta).error(target) <= 0.025);
                assert!(Law::new(sizes, depth, least - 0.05, delta).error(target) > 0.025);
            }
        }
    }
}
