//! The power of m canaries in one run, if canaries do not disturb each other.
//!
//! The rule is played on simulated guesses. Canaries are cut by rank into the cells between the
//! numbers of guesses that the strategies make; a cell's guesses are right with the share that the
//! attack's curve has between the cell's edges, independently. Whether a trial shows the target is
//! the rule's own boundary: the smallest counts of right guesses that show it, found once for each m.

use super::draw::binomial;
use super::{Goal, Needed, Target};
use crate::one_run::one_run_bound;
use crate::one_run::{
    Chosen, Guesses, OneRunStatistic, Strategy, chains, choices, critical_counts,
    one_run_gaussian_rejects, one_run_p_value,
};
use crate::split::Dealer;
use crate::{AttackDirection, AuditError, Design, FOLDS, Scores, Statistic, ThresholdRule};
use numerics::beta::{binomial_log_at_least, binomial_log_pmf};
use numerics::patience::look;
use std::collections::HashMap;

/// The largest epsilon that any number of canaries shows: the log odds of the best guess.
pub(super) fn largest_epsilon(points: &[(f64, f64)]) -> f64 {
    let odds = |a: f64, b: f64| if b > 0.0 { (a / b).ln() } else { 0.0 };
    points
        .iter()
        .map(|&(fpr, tpr)| odds(tpr, fpr).max(odds(1.0 - fpr, 1.0 - tpr)))
        .fold(0.0, f64::max)
}

const DIRECTION: AttackDirection = AttackDirection::Both;

/// What the canaries have to show: epsilon for any mechanism, or the mu of the Gaussian family.
#[derive(Clone, Copy)]
pub(super) struct Shown {
    statistic: OneRunStatistic,
    value: f64,
}

impl Shown {
    pub(super) fn new(goal: &Goal) -> Result<Self, AuditError> {
        match *goal {
            Goal::Statistic { statistic: Statistic::Epsilon { delta, .. }, value } => {
                Ok(Self { statistic: OneRunStatistic::Epsilon { delta }, value })
            }
            Goal::Statistic { statistic: Statistic::GaussianMu, value } => {
                Ok(Self { statistic: OneRunStatistic::GaussianMu, value })
            }
            _ => Err(AuditError::NotValid(
                "one run has bounds for any mechanism and for the Gaussian family; a DP-SGD family needs independent runs"
                    .to_owned(),
            )),
        }
    }

    pub(super) fn is_epsilon(&self) -> bool {
        matches!(self.statistic, OneRunStatistic::Epsilon { .. })
    }

    /// Whether this many right guesses show it.
    fn by(&self, canaries: u64, guesses: u64, right: u64, level: f64) -> bool {
        look();
        match self.statistic {
            OneRunStatistic::Epsilon { delta } => {
                one_run_p_value(canaries, guesses, right, self.value, delta) <= level
            }
            OneRunStatistic::GaussianMu => {
                one_run_gaussian_rejects(canaries, guesses, right, self.value, level)
            }
        }
    }
}

/// The power of `count` canaries under a rule.
pub(super) fn power(
    [points, curve]: [&[(f64, f64)]; 2],
    goal: &Shown,
    target: &Target,
    rule: &ThresholdRule,
    count: u64,
    (trials, stream): (u32, u64),
) -> Needed {
    let level = 1.0 - target.confidence;
    let best = Needed { count, power: 0.0, threshold: None, simulated: true };
    let dealer = Dealer::new(stream);
    // All strategies of the Gaussian family take too long to be played.
    if count <= PLAYED && goal.is_epsilon() && !matches!(rule, ThresholdRule::Fixed(_)) {
        return played(curve, goal, rule, best, level, trials, dealer);
    }
    let chosen = |level: f64| Chosen::new(count, &goal.statistic, level);
    match rule {
        ThresholdRule::Fixed(_) => at_a_threshold(points, goal, count, level),
        ThresholdRule::Union => together(curve, goal, best, level, trials, dealer),
        // The Gaussian family was refused.
        ThresholdRule::KFold => chosen(level / FOLDS as f64)
            .map_or(best, |chosen| folds(curve, goal.value, best, chosen, trials, dealer)),
        _ => chosen(level)
            .map_or(best, |chosen| choosers(curve, goal.value, best, chosen, trials, dealer)),
    }
}

/// Up to this many canaries the audit is played on scores.
const PLAYED: u64 = 300;

/// The rule itself on drawn scores: minus the false positive rate at which a canary lies, which is
/// uniform for a canary that is out and has the attack's curve as its law for one that is in.
fn played(
    points: &[(f64, f64)],
    goal: &Shown,
    rule: &ThresholdRule,
    best: Needed,
    level: f64,
    trials: u32,
    mut dealer: Dealer,
) -> Needed {
    let mut curve = vec![(0.0, 0.0)];
    curve.extend_from_slice(points);
    curve.push((1.0, 1.0));
    let statistic = goal.statistic;
    let mut shown = 0_u32;
    for trial in 0..trials {
        look();
        let (mut members, mut nonmembers) = (Vec::new(), Vec::new());
        for _ in 0..best.count {
            let uniform = ((dealer.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
            if dealer.next() >> 63 == 0 {
                nonmembers.push(-uniform);
                continue;
            }
            let next = curve.partition_point(|point| point.1 < uniform).clamp(1, curve.len() - 1);
            let (low, high) = (curve[next - 1], curve[next]);
            let part = (uniform - low.1) / (high.1 - low.1).max(1e-300);
            members.push(-(low.0 + part * (high.0 - low.0)));
        }
        let Ok(scores) = Scores::new(Design::OneRun, members, nonmembers) else { continue };
        let bound = one_run_bound(&scores, rule, &statistic, DIRECTION, level, u64::from(trial));
        shown += u32::from(bound.is_ok_and(|bound| bound.value >= goal.value));
    }
    Needed { power: f64::from(shown) / f64::from(trials), ..best }
}

/// All strategies on all canaries.
fn together(
    points: &[(f64, f64)],
    goal: &Shown,
    best: Needed,
    level: f64,
    trials: u32,
    mut dealer: Dealer,
) -> Needed {
    let list = chains(best.count, DIRECTION);
    let critical = match goal.statistic {
        OneRunStatistic::Epsilon { delta } => {
            let planned: Vec<Vec<Guesses>> = list
                .iter()
                .map(|chain| chain.iter().map(|one| made(*one, best.count, 0)).collect())
                .collect();
            let Some(critical) = critical_counts(&planned, level, delta, goal.value) else {
                return best;
            };
            critical
        }
        // Each strategy has its share of the error.
        OneRunStatistic::GaussianMu => {
            let each = level / list.iter().map(Vec::len).sum::<usize>() as f64;
            let least = |strategy: &Strategy| {
                let guesses = strategy.planned(best.count);
                least_right(guesses, |right| goal.by(best.count, guesses, right, each))
            };
            list.iter().map(|chain| chain.iter().map(least).collect()).collect()
        }
    };
    let cells = Cells::new(points, best.count);
    let (mut shown, mut by) = (0_u32, HashMap::new());
    for _ in 0..trials {
        let drawn = cells.draw(&mut dealer);
        let first = list.iter().zip(&critical).enumerate().find_map(|(chain, (list, critical))| {
            let reached = |place: &usize| {
                critical[*place].is_some_and(|least| cells.right(&drawn, list[*place]) >= least)
            };
            (0..list.len()).find(reached).map(|place| (chain, place))
        });
        if let Some(place) = first {
            shown += 1;
            *by.entry(place).or_insert(0_u32) += 1;
        }
    }
    let usual = by.into_iter().max_by_key(|(_, count)| *count);
    let threshold = usual.map(|((chain, place), _)| cells.rates(list[chain][place]));
    Needed { power: f64::from(shown) / f64::from(trials), threshold, ..best }
}

/// Half of the canaries choose, the others count.
fn choosers(
    points: &[(f64, f64)],
    epsilon: f64,
    best: Needed,
    chosen: Chosen,
    trials: u32,
    mut dealer: Dealer,
) -> Needed {
    let few = best.count / 2;
    let many = best.count - few;
    if few < 4 || many < 4 {
        return best;
    }
    let (chooser, counter) = (Cells::new(points, few), Cells::new(points, many));
    let mut audit = Chooser::new(few, many, epsilon, chosen);
    let (mut shown, mut by) = (0_u32, vec![0_u32; audit.list.len()]);
    for _ in 0..trials {
        let (first, second) = (chooser.draw(&mut dealer), counter.draw(&mut dealer));
        let place = audit.pick(|strategy| chooser.right(&first, strategy));
        by[place] += 1;
        let strategy = audit.list[place].scaled(few, many);
        let right = counter.right(&second, strategy);
        shown += u32::from(audit.least(place).is_some_and(|least| right >= least));
    }
    let usual = (0..by.len()).max_by_key(|place| by[*place]).unwrap_or(0);
    let threshold = Some(chooser.rates(audit.list[usual]));
    Needed { power: f64::from(shown) / f64::from(trials), threshold, ..best }
}

/// Each fifth chooses for the other four.
fn folds(
    points: &[(f64, f64)],
    epsilon: f64,
    best: Needed,
    chosen: Chosen,
    trials: u32,
    mut dealer: Dealer,
) -> Needed {
    let few = best.count / FOLDS as u64;
    let many = few * (FOLDS as u64 - 1);
    if few < 4 {
        return best;
    }
    let cells = Cells::new(points, few);
    let mut audit = Chooser::new(few, many, epsilon, chosen);
    let mut shown = 0_u32;
    for _ in 0..trials {
        let drawn: Vec<Drawn> = (0..FOLDS).map(|_| cells.draw(&mut dealer)).collect();
        let any = (0..FOLDS).any(|fold| {
            let place = audit.pick(|strategy| cells.right(&drawn[fold], strategy));
            let others = drawn.iter().enumerate().filter(|(other, _)| *other != fold);
            // The cells of the merged parts are the parts' cells put together.
            let strategy = audit.list[place];
            let right: u64 = others.map(|(_, part)| cells.right(part, strategy)).sum();
            audit.least(place).is_some_and(|least| right >= least)
        });
        shown += u32::from(any);
    }
    Needed { power: f64::from(shown) / f64::from(trials), ..best }
}

/// What choosers pick, and what then shows the target; both are looked up once.
struct Chooser {
    list: Vec<Strategy>,
    few: u64,
    many: u64,
    epsilon: f64,
    chosen: Chosen,
    values: HashMap<(usize, u64), f64>,
    least: HashMap<usize, Option<u64>>,
}

impl Chooser {
    fn new(few: u64, many: u64, epsilon: f64, chosen: Chosen) -> Self {
        Self {
            list: choices(few, DIRECTION),
            few,
            many,
            epsilon,
            chosen,
            values: HashMap::new(),
            least: HashMap::new(),
        }
    }

    fn pick(&mut self, right: impl Fn(Strategy) -> u64) -> usize {
        let (few, many) = (self.few, self.many);
        let seen: Vec<(Strategy, Guesses)> = self
            .list
            .iter()
            .map(|&strategy| {
                let right = right(strategy);
                (strategy, Guesses { right, ..made(strategy, few, 0) })
            })
            .collect();
        look();
        let (by, values) = (self.chosen, &mut self.values);
        by.pick(&seen, few, many, |place, expected, known| {
            let key = (place, expected.right);
            if let Some(value) = values.get(&key) {
                return Some(*value);
            }
            by.exceeds(expected, known).then(|| {
                let value = by.value(expected);
                values.insert(key, value);
                value
            })
        })
    }

    /// The smallest count of right guesses that shows the target.
    fn least(&mut self, place: usize) -> Option<u64> {
        let (many, chosen, epsilon) = (self.many, self.chosen, self.epsilon);
        let guesses = self.list[place].scaled(self.few, many).planned(many);
        *self
            .least
            .entry(place)
            .or_insert_with(|| least_right(guesses, |right| chosen.shows(guesses, right, epsilon)))
    }
}

/// Guesses of a strategy without ties.
fn made(strategy: Strategy, canaries: u64, right: u64) -> Guesses {
    let planned = strategy.planned(canaries);
    Guesses { canaries, guessed_in: planned, guessed_out: 0, right, planned }
}

/// The smallest count for which a predicate that holds from some point on holds.
fn least_right(guesses: u64, shows: impl Fn(u64) -> bool) -> Option<u64> {
    if guesses == 0 || !shows(guesses) {
        return None;
    }
    let (mut not, mut does) = (0, guesses);
    while does - not > 1 {
        let middle = not + (does - not) / 2;
        if shows(middle) { does = middle } else { not = middle }
    }
    Some(does)
}

/// Cells of ranks from both ends, with the share of right guesses in each.
struct Cells {
    points: Vec<(f64, f64)>,
    canaries: u64,
    /// Ends of the cells, from 0 to half of the canaries (rounded up).
    ends: Vec<u64>,
    top: Vec<f64>,
    bottom: Vec<f64>,
}

/// Right guesses from each end up to each cell's end.
struct Drawn {
    top: Vec<u64>,
    bottom: Vec<u64>,
}

impl Cells {
    fn new(points: &[(f64, f64)], canaries: u64) -> Self {
        let mut ends = vec![0, canaries.div_ceil(2)];
        let all = chains(canaries, DIRECTION).into_iter().flatten();
        for strategy in all.chain(choices(canaries, DIRECTION)) {
            if let Strategy::Ends { inside, outside } = strategy {
                ends.extend([inside, outside]);
            }
        }
        ends.sort_unstable();
        ends.dedup();
        let m = canaries as f64;
        let right_in = |count: u64| 0.5 * m * edge(points, count as f64 / m).1;
        let right_out = |count: u64| 0.5 * m * (1.0 - edge(points, 1.0 - count as f64 / m).0);
        let shares = |right: &dyn Fn(u64) -> f64| {
            ends.windows(2)
                .map(|cell| {
                    let size = (cell[1] - cell[0]) as f64;
                    ((right(cell[1]) - right(cell[0])) / size).clamp(0.0, 1.0)
                })
                .collect()
        };
        let (top, bottom) = (shares(&right_in), shares(&right_out));
        Self { points: points.to_vec(), canaries, ends, top, bottom }
    }

    fn draw(&self, dealer: &mut Dealer) -> Drawn {
        let mut side = |shares: &[f64]| {
            let mut sum = 0;
            let mut sums = vec![0];
            for (cell, share) in self.ends.windows(2).zip(shares) {
                sum += binomial(cell[1] - cell[0], *share, dealer);
                sums.push(sum);
            }
            sums
        };
        let (top, bottom) = (side(&self.top), side(&self.bottom));
        Drawn { top, bottom }
    }

    /// Right guesses of a strategy.
    fn right(&self, drawn: &Drawn, strategy: Strategy) -> u64 {
        match strategy {
            Strategy::Everything => {
                let all = drawn.top[drawn.top.len() - 1] + drawn.bottom[drawn.bottom.len() - 1];
                all.min(self.canaries)
            }
            Strategy::Ends { inside, outside } => {
                self.upto(&drawn.top, inside) + self.upto(&drawn.bottom, outside)
            }
        }
    }

    /// Between the ends of cells in proportion.
    fn upto(&self, sums: &[u64], count: u64) -> u64 {
        let next = self.ends.partition_point(|end| *end < count).min(self.ends.len() - 1);
        if next == 0 || self.ends[next] == count {
            return sums[next];
        }
        let (from, to) = (self.ends[next - 1], self.ends[next]);
        let share = (count - from) as f64 / (to - from) as f64;
        sums[next - 1] + (share * (sums[next] - sums[next - 1]) as f64).round() as u64
    }

    /// The rates at a strategy's upper edge.
    fn rates(&self, strategy: Strategy) -> (f64, f64) {
        let share = match strategy {
            Strategy::Everything => 0.5,
            Strategy::Ends { inside, outside } => inside.max(outside) as f64 / self.canaries as f64,
        };
        edge(&self.points, share)
    }
}

/// The rates where this share of fair canaries lies at or above the threshold, on the chord
/// between planning points (which is a weaker attack than the curve).
fn edge(points: &[(f64, f64)], share: f64) -> (f64, f64) {
    let twice = 2.0 * share;
    let sum = |point: &(f64, f64)| point.0 + point.1;
    let next = points.iter().position(|point| sum(point) >= twice);
    let high = next.map_or((1.0, 1.0), |next| points[next]);
    let low = match next {
        Some(0) => (0.0, 0.0),
        Some(next) => points[next - 1],
        None => points[points.len() - 1],
    };
    let part = ((twice - sum(&low)) / (sum(&high) - sum(&low)).max(1e-300)).clamp(0.0, 1.0);
    (low.0 + part * (high.0 - low.0), low.1 + part * (high.1 - low.1))
}

/// Thresholds whose power is averaged.
const FEW: usize = 12;

/// Thresholds ranked by the usual number of guesses, the best few then averaged over the number that
/// the scores will decide.
fn at_a_threshold(points: &[(f64, f64)], goal: &Shown, count: u64, level: f64) -> Needed {
    let mut ranked: Vec<(f64, (f64, f64))> = points
        .iter()
        .map(|&(fpr, tpr)| {
            let guesses = (0.5 * (fpr + tpr) * count as f64) as u64;
            (shows(count, guesses, tpr / (tpr + fpr), level, goal), (fpr, tpr))
        })
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut best = Needed { count, power: 0.0, threshold: Some(ranked[0].1), simulated: false };
    for &(_, rates) in ranked.iter().take(FEW) {
        let power = averaged(count, rates, level, goal);
        if power > best.power {
            best = Needed { power, threshold: Some(rates), ..best };
        }
    }
    best
}

/// The power at a threshold given in advance: the number of guesses is binomial.
fn averaged(count: u64, (fpr, tpr): (f64, f64), level: f64, goal: &Shown) -> f64 {
    let share = 0.5 * (fpr + tpr);
    let (mean, spread) = (share * count as f64, (share * (1.0 - share) * count as f64).sqrt());
    let low = (mean - 5.0 * spread).floor().max(0.0) as u64;
    let high = ((mean + 5.0 * spread).ceil() as u64).min(count);
    let stride = ((high - low) / 48).max(1);
    let (mut sum, mut weights) = (0.0, 0.0);
    for guesses in (low..=high).step_by(stride as usize) {
        let weight = binomial_log_pmf(guesses, count, share).exp();
        sum += weight * shows(count, guesses, tpr / (tpr + fpr), level, goal);
        weights += weight;
    }
    if weights > 0.0 { sum / weights } else { 0.0 }
}

/// P(the target is rejected) when each of `guesses` is right with probability `right`.
fn shows(canaries: u64, guesses: u64, right: f64, level: f64, goal: &Shown) -> f64 {
    let least = least_right(guesses, |count| goal.by(canaries, guesses, count, level));
    least.map_or(0.0, |least| binomial_log_at_least(least, guesses, right).exp())
}
