//! The power of n trainings on each side: the audit is played on simulated counts.
//!
//! The attack's curve is cut at the planning points; a cut attack tells a little less than the attack
//! itself. Counts between cuts are drawn as successive binomials, so that a trial costs the same for a
//! hundred trainings and for a million; for `union` on few trainings the scores themselves are drawn. Each trial then
//! asks the rule itself whether it shows the target: `union` at the thresholds that look best, `dkw` at all, `fixed` at the cut that is best for expected
//! counts, `holdout` and `k-fold` at the cuts that their parts choose.

use super::draw::binomial;
use super::{Goal, Needed, Target};
use crate::exact::Shows;
use crate::joint::Joint;
use crate::ranks::{self, Critical, Seen};
use crate::rule::p_value;
use crate::split::Dealer;
use crate::{
    AttackDirection, Design, Errors, FOLDS, RateBounds, Scores, Simultaneous, Statistic,
    ThresholdRule, rates,
};
use numerics::patience::look;
use std::cell::Cell;
use std::collections::HashMap;

/// Of the logarithm of a p-value: a plan has its own error.
const PRECISION: f64 = 1e-3;

/// Within this factor of the bar a sum of p-values is computed to [`PRECISION`].
const ROUGH: f64 = 4.0;

/// Cuts that share the critical value of an exact test, which hardly moves between them where there are many scores.
const NEIGHBOURS: usize = 16;

/// With fewer scores on a side each cut has its own.
const MANY: u64 = 1000;

/// Up to this many trainings on each side the scores themselves are drawn for `union`.
const DRAWN: u64 = 10_000;

/// Where to begin to look: the count whose expected errors show the target under Wilson's bounds at as many standard deviations as the rule and
/// the power take off together, roughly.
pub(super) fn guess(
    points: &[(f64, f64)],
    goal: &Goal,
    target: &Target,
    rule: &ThresholdRule,
    most: u64,
) -> u64 {
    let spread = 0.7 * numerics::special::inverse_normal_cdf(target.power.clamp(0.5, 0.999));
    let (share, deviations) = match rule {
        ThresholdRule::Holdout => (0.5, 2.2),
        ThresholdRule::KFold => (0.8, 2.6),
        ThresholdRule::Fixed(_) => (1.0, 2.0),
        _ => (1.0, 2.6),
    };
    let level = 1.0 - target.confidence;
    let shown = |count: u64| {
        let band =
            (*rule == ThresholdRule::Dkw).then(|| Simultaneous::dkw(count, count, 0.2 * level));
        points.iter().any(|point| {
            let errors = expected(*point, (share * count as f64) as u64);
            match &band {
                Some(band) => goal.shown(&band.at(&errors)),
                None => goal.shown(&RateBounds::wilson(&errors, deviations + spread)),
            }
        })
    };
    let mut count = 16_u64;
    while count < most && !shown(count) {
        look();
        count = (count as f64 * 1.5) as u64;
    }
    count
}

/// The power of `count` trainings on each side; `near` is the last critical value of ranks, and its count.
pub(super) fn power(
    points: &[(f64, f64)],
    goal: &Goal,
    target: &Target,
    rule: &ThresholdRule,
    near: &Cell<Option<(u64, Critical)>>,
    count: u64,
    (trials, stream): (u32, u64),
) -> Needed {
    if *rule == ThresholdRule::Union
        && let Goal::Statistic { statistic: Statistic::Epsilon { delta, direction }, value } = goal
    {
        let level = 1.0 - target.confidence;
        let about = (*delta, *direction, *value);
        return by_ranks(points, goal, about, level, near, count, (trials, stream));
    }
    if *rule == ThresholdRule::Union && count <= DRAWN {
        return by_scores(points, goal, 1.0 - target.confidence, count, (trials, stream));
    }
    let close = near_the_best(points, goal, target, rule, count);
    let points = close.as_slice();
    let mut player = Player::new(points, goal, target, rule, count);
    let mut dealer = Dealer::new(stream);
    let (mut shown, mut chosen) = (0_u32, vec![0_u32; points.len()]);
    for _ in 0..trials {
        look();
        let table = Table::draw(points, player.parts, count, &mut dealer);
        shown += u32::from(player.shows(&table, &mut chosen));
    }
    let threshold = usual(points, &chosen);
    Needed { count, power: f64::from(shown) / f64::from(trials), threshold, simulated: true }
}

/// Drawn scores: minus the false positive rate at which a score lies, which is uniform for non-members and has the
/// attack's curve as its law for members.
fn draw_scores(points: &[(f64, f64)], count: u64, dealer: &mut Dealer) -> Option<Scores> {
    let nonmembers: Vec<f64> = falling(count, dealer).into_iter().map(|rate| -rate).collect();
    let mut next = points.len();
    let members: Vec<f64> = falling(count, dealer)
        .into_iter()
        .map(|tpr| {
            // The false positive rate at which the curve has this true positive rate, by straight lines.
            while next > 0 && points[next - 1].1 >= tpr {
                next -= 1;
            }
            let low = next.checked_sub(1).map_or((0.0, 0.0), |place| points[place]);
            let high = points.get(next).copied().unwrap_or((1.0, 1.0));
            -(low.0 + (tpr - low.1) / (high.1 - low.1).max(1e-300) * (high.0 - low.0))
        })
        .collect();
    Scores::new(Design::Runs, members, nonmembers).ok()
}

/// The rates of the cut that showed the target most often, if any did.
fn usual(points: &[(f64, f64)], chosen: &[u32]) -> Option<(f64, f64)> {
    let most = (0..points.len()).max_by_key(|place| chosen[*place])?;
    (chosen[most] > 0).then_some(points[most])
}

/// Uniform numbers, the largest first: the largest of n is U^(1/n), and the others are uniform below it.
fn falling(count: u64, dealer: &mut Dealer) -> Vec<f64> {
    let mut log = 0.0;
    (1..=count)
        .rev()
        .map(|left| {
            log += uniform(dealer).ln() / left as f64;
            f64::exp(log)
        })
        .collect()
}

/// The rule on drawn scores. Cuts would tell less than the scores, which counts where few of them decide.
fn by_scores(
    points: &[(f64, f64)],
    goal: &Goal,
    level: f64,
    count: u64,
    (trials, stream): (u32, u64),
) -> Needed {
    let joint = Joint::new(count, count, level);
    let mut dealer = Dealer::new(stream);
    let (mut shown, mut chosen) = (0_u32, vec![0_u32; points.len()]);
    for _ in 0..trials {
        look();
        let Some(scores) = draw_scores(points, count, &mut dealer) else { continue };
        let vertices = crate::grid::hull(&scores, 0);
        let Some(vertex) = goal.refuted_by(&joint, &vertices) else { continue };
        shown += 1;
        chosen[cut_of(points, &vertices[vertex])] += 1;
    }
    let threshold = usual(points, &chosen);
    Needed { count, power: f64::from(shown) / f64::from(trials), threshold, simulated: true }
}

/// The cut with about these false positives; none stands for half of one.
fn cut_of(points: &[(f64, f64)], errors: &Errors) -> usize {
    let rate = (errors.false_positives as f64).max(0.5) / errors.nonmembers as f64;
    points.partition_point(|point| point.0 < rate).min(points.len() - 1)
}

/// The exact law of ranks on drawn scores, or on counts between cuts where the scores are many.
fn by_ranks(
    points: &[(f64, f64)],
    goal: &Goal,
    (delta, direction, value): (f64, AttackDirection, f64),
    level: f64,
    near: &Cell<Option<(u64, Critical)>>,
    count: u64,
    (trials, stream): (u32, u64),
) -> Needed {
    let share = ranks::share(count, count, delta);
    let half = share * if direction == AttackDirection::Both { 0.5 * level } else { level };
    // On the way to the answer a neighbour's critical value will do where a table of its own is dear.
    let close = |other: u64| {
        let apart = (count as f64 / other as f64).ln().abs();
        count > DRAWN && apart < if trials < 1000 { 0.7 } else { 0.15 }
    };
    let critical = match near.get() {
        Some((other, critical)) if close(other) => Some(critical),
        known => {
            let start = known.map(|(_, critical)| critical.least());
            let found = Critical::new((count, count), delta, half, value, start);
            near.set(found.map(|critical| (count, critical)).or(known));
            found
        }
    };
    let rest = (share < 1.0).then(|| Joint::new(count, count, (1.0 - share) * level));
    let mut dealer = Dealer::new(stream);
    let (mut shown, mut chosen) = (0_u32, vec![0_u32; points.len()]);
    let ways = [direction != AttackDirection::Mirror, direction != AttackDirection::Forward];
    for _ in 0..trials {
        look();
        let found = if count <= DRAWN {
            let Some(scores) = draw_scores(points, count, &mut dealer) else { continue };
            let by_ranks =
                critical.as_ref().and_then(|it| on_scores(points, it, delta, ways, &scores));
            by_ranks.or_else(|| {
                let vertices = crate::grid::hull(&scores, 0);
                let vertex = goal.refuted_by(rest.as_ref()?, &vertices)?;
                Some(cut_of(points, &vertices[vertex]))
            })
        } else {
            let table = Table::draw(points, 1, count, &mut dealer);
            let by_ranks = critical.as_ref().and_then(|it| on_cuts(&table, it, delta, ways));
            by_ranks.or_else(|| {
                // What the martingale shows with its share of the error.
                let vertices = table.vertices();
                let errors: Vec<Errors> =
                    vertices.iter().map(|place| table.errors(*place, |_| true)).collect();
                let found = rest.as_ref().and_then(|joint| goal.refuted_by(joint, &errors));
                found.map(|vertex| vertices[vertex])
            })
        };
        if let Some(place) = found {
            shown += 1;
            chosen[place] += 1;
        }
    }
    let threshold = usual(points, &chosen);
    Needed { count, power: f64::from(shown) / f64::from(trials), threshold, simulated: true }
}

/// The cut next to the rank that shows the target, if one does.
fn on_scores(
    points: &[(f64, f64)],
    critical: &Critical,
    delta: f64,
    ways: [bool; 2],
    scores: &Scores,
) -> Option<usize> {
    let depth = critical.depth();
    let seen = [
        ways[0].then(|| Seen::forward(scores, depth, delta).best()),
        ways[1].then(|| Seen::mirror(scores, depth, delta).best()),
    ];
    let found = seen.into_iter().enumerate().filter_map(|(way, found)| Some((way, found?)));
    let (way, (rank, _)) = found
        .filter(|(_, (_, worth))| *worth >= critical.least())
        .max_by(|a, b| a.1.1.total_cmp(&b.1.1))?;
    let edge = match way {
        0 => -scores.nonmembers()[scores.nonmembers().len() - 1 - rank],
        _ => -scores.members()[rank],
    };
    Some(points.partition_point(|point| point.0 < edge).min(points.len() - 1))
}

/// The cut whose counts show the target, if any do: with k non-members above it, the next one is the (k+1)-th.
fn on_cuts(table: &Table, critical: &Critical, delta: f64, ways: [bool; 2]) -> Option<usize> {
    let worth = |place: usize| {
        let errors = table.errors(place, |_| true);
        let forward = (errors.false_positives, errors.true_positives());
        let mirror = (errors.false_negatives, errors.true_negatives());
        let sides = [forward, mirror].into_iter().zip(ways);
        sides
            .filter(|((zeros, _), asked)| *asked && *zeros < errors.nonmembers)
            .map(|((zeros, ones), _)| critical.worth(zeros, ones, errors.nonmembers, delta))
            .fold(f64::NEG_INFINITY, f64::max)
    };
    let all = (0..table.false_positives[0].len()).map(|place| (worth(place), place));
    let (worth, place) = all.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (worth >= critical.least()).then_some(place)
}

fn uniform(dealer: &mut Dealer) -> f64 {
    ((dealer.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// The cuts that matter: all, but for `dkw` those that show nearly as much as the best one at expected
/// counts. Its band is flat, so that chance decides between many of them, and they have to be dense.
fn near_the_best(
    points: &[(f64, f64)],
    goal: &Goal,
    target: &Target,
    rule: &ThresholdRule,
    count: u64,
) -> Vec<(f64, f64)> {
    if *rule != ThresholdRule::Dkw {
        return points.to_vec();
    }
    let band = Simultaneous::dkw(count, count, 1.0 - target.confidence);
    let worths: Vec<[f64; 2]> =
        points.iter().map(|point| goal.worths(&band.at(&expected(*point, count)))).collect();
    // Near the best for one of the orders of a family.
    let bars = [0, 1].map(|order: usize| {
        let best = worths.iter().map(|worths| worths[order]).fold(f64::NEG_INFINITY, f64::max);
        if best > 0.0 { 0.6 * best } else { best }
    });
    points
        .iter()
        .zip(&worths)
        .filter(|(_, worths)| worths[0] >= bars[0] || worths[1] >= bars[1])
        .map(|(point, _)| *point)
        .collect()
}

struct Player<'a> {
    points: &'a [(f64, f64)],
    goal: &'a Goal,
    rule: ThresholdRule,
    level: f64,
    parts: usize,
    joint: Option<Joint>,
    band: Option<Simultaneous>,
    /// The cut of `fixed`.
    fixed: usize,
    /// What shows the target at a cut, by an exact test.
    tests: HashMap<usize, Option<Shows>>,
    count: u64,
}

impl<'a> Player<'a> {
    fn new(
        points: &'a [(f64, f64)],
        goal: &'a Goal,
        target: &Target,
        rule: &ThresholdRule,
        count: u64,
    ) -> Self {
        let level = 1.0 - target.confidence;
        let parts = match rule {
            ThresholdRule::Holdout => 2,
            ThresholdRule::KFold => FOLDS,
            _ => 1,
        };
        let expected = |place: usize| expected(points[place], count);
        let worth = |place: usize| goal.worth(&RateBounds::wilson(&expected(place), 1.4));
        let fixed = (0..points.len()).max_by(|a, b| worth(*a).total_cmp(&worth(*b))).unwrap_or(0);
        Self {
            points,
            goal,
            rule: *rule,
            level,
            parts,
            joint: (*rule == ThresholdRule::Union).then(|| Joint::new(count, count, level)),
            band: (*rule == ThresholdRule::Dkw).then(|| Simultaneous::dkw(count, count, level)),
            fixed,
            tests: HashMap::new(),
            count,
        }
    }

    fn shows(&mut self, table: &Table, chosen: &mut [u32]) -> bool {
        match self.rule {
            ThresholdRule::Dkw => {
                let Some(band) = &self.band else { return false };
                let bounds = (0..self.points.len()).map(|place| table.errors(place, |_| true));
                let bounds: Vec<RateBounds> = bounds.map(|errors| band.at(&errors)).collect();
                let found = self.goal.shown_by(&bounds);
                if let Some(place) = found {
                    chosen[place] += 1;
                }
                found.is_some()
            }
            // The martingale: what is not epsilon.
            ThresholdRule::Union => {
                let Some(joint) = &self.joint else { return false };
                let vertices = table.vertices();
                let errors: Vec<Errors> =
                    vertices.iter().map(|place| table.errors(*place, |_| true)).collect();
                let found = self.goal.refuted_by(joint, &errors);
                if let Some(vertex) = found {
                    chosen[vertices[vertex]] += 1;
                }
                found.is_some()
            }
            ThresholdRule::Fixed(_) => {
                chosen[self.fixed] += 1;
                self.measured(self.fixed, &table.errors(self.fixed, |_| true), self.count)
            }
            ThresholdRule::Holdout => {
                let place = table.choose(0, self.goal);
                chosen[place] += 1;
                self.measured(place, &table.errors(place, |part| part == 1), table.sizes[1])
            }
            ThresholdRule::KFold => {
                let folds: Vec<Errors> = (0..self.parts)
                    .map(|fold| {
                        let place = table.choose(fold, self.goal);
                        chosen[place] += 1;
                        table.errors(place, |part| part != fold)
                    })
                    .collect();
                match self.goal.contours() {
                    Some(contours) => {
                        let mut left = 0.5 * self.level * self.parts as f64;
                        // Most of the time a rough number tells.
                        let rough: f64 = folds.iter().map(|errors| self.goal.rough(errors)).sum();
                        if rough > ROUGH * left || rough < left / ROUGH {
                            return rough < left;
                        }
                        folds.iter().all(|errors| {
                            left -= p_value(errors, &contours, PRECISION);
                            left >= 0.0
                        })
                    }
                    None => {
                        let level = self.level / FOLDS as f64;
                        let bounds = folds.iter().map(|it| rates::clopper_pearson(it, level));
                        self.goal.shown_by(&bounds.collect::<Vec<RateBounds>>()).is_some()
                    }
                }
            }
        }
    }

    /// At a cut that these counts did not choose.
    fn measured(&mut self, place: usize, errors: &Errors, count: u64) -> bool {
        let Goal::Statistic { statistic, value } = self.goal else {
            return self.goal.shown(&rates::clopper_pearson(errors, self.level));
        };
        let (level, point) = (self.level, self.points[place]);
        let shared = if count < MANY { place } else { place / NEIGHBOURS };
        let test = self
            .tests
            .entry(shared)
            .or_insert_with(|| Shows::near(&expected(point, count), statistic, level, *value));
        test.as_ref().is_some_and(|test| test.holds(errors))
    }
}

/// The errors that are expected at a cut.
fn expected((fpr, tpr): (f64, f64), count: u64) -> Errors {
    let n = count as f64;
    Errors {
        false_positives: (n * fpr).round() as u64,
        nonmembers: count,
        false_negatives: (n * (1.0 - tpr)).round() as u64,
        members: count,
    }
}

/// Counts at or above each cut, for each part.
struct Table {
    sizes: Vec<u64>,
    false_positives: Vec<Vec<u64>>,
    true_positives: Vec<Vec<u64>>,
}

impl Table {
    fn draw(points: &[(f64, f64)], parts: usize, count: u64, dealer: &mut Dealer) -> Self {
        let share = |part: u64| count * (part + 1) / parts as u64 - count * part / parts as u64;
        let sizes: Vec<u64> = (0..parts as u64).map(share).collect();
        let side = |rate: &dyn Fn(&(f64, f64)) -> f64, dealer: &mut Dealer| {
            sizes
                .iter()
                .map(|&size| {
                    // Given what lies above the last cut, the rest falls above the next one with
                    // the conditional probability.
                    let (mut above, mut reached) = (0, 0.0);
                    points
                        .iter()
                        .map(|point| {
                            let next = rate(point);
                            let step = ((next - reached) / (1.0 - reached)).clamp(0.0, 1.0);
                            above += binomial(size - above, step, dealer);
                            reached = next;
                            above
                        })
                        .collect()
                })
                .collect::<Vec<Vec<u64>>>()
        };
        let false_positives = side(&|point| point.0, dealer);
        let true_positives = side(&|point| point.1, dealer);
        Self { sizes, false_positives, true_positives }
    }

    fn errors(&self, place: usize, counts: impl Fn(usize) -> bool) -> Errors {
        let mut errors =
            Errors { false_positives: 0, nonmembers: 0, false_negatives: 0, members: 0 };
        for part in (0..self.sizes.len()).filter(|part| counts(*part)) {
            errors.nonmembers += self.sizes[part];
            errors.members += self.sizes[part];
            errors.false_positives += self.false_positives[part][place];
            errors.false_negatives += self.sizes[part] - self.true_positives[part][place];
        }
        errors
    }

    /// The cuts on the convex hull of the curve that was drawn, which is where the rule looks.
    fn vertices(&self) -> Vec<usize> {
        let at = |place: usize| {
            let sum = |side: &[Vec<u64>]| side.iter().map(|part| part[place]).sum::<u64>() as f64;
            (sum(&self.false_positives), sum(&self.true_positives))
        };
        let mut hull: Vec<(usize, (f64, f64))> = Vec::new();
        for place in 0..self.false_positives[0].len() {
            let here = at(place);
            while let Some(&(_, last)) = hull.last() {
                let before = hull.len().checked_sub(2).map_or((0.0, 0.0), |place| hull[place].1);
                let rise = |from: (f64, f64), to: (f64, f64)| (to.0 - from.0, to.1 - from.1);
                let (first, second) = (rise(before, last), rise(before, here));
                // The last one lies on or below the line to this one.
                if first.1 * second.0 > second.1 * first.0 {
                    break;
                }
                hull.pop();
            }
            hull.push((place, here));
        }
        hull.into_iter().map(|(place, _)| place).collect()
    }

    /// The cut that looks best to one part, as the rule itself chooses.
    fn choose(&self, part: usize, goal: &Goal) -> usize {
        let statistic = goal.chooser();
        let mut best = (0, f64::NEG_INFINITY);
        let counts =
            |place: usize| (self.false_positives[part][place], self.true_positives[part][place]);
        for place in 0..self.false_positives[part].len() {
            if place > 0 && counts(place) == counts(place - 1) {
                continue;
            }
            let errors = self.errors(place, |other| other == part);
            let value = statistic.value(&RateBounds::wilson(&errors, 1.96));
            if value > best.1 {
                best = (place, value);
            }
        }
        best.0
    }
}
