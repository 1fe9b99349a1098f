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
    AttackDirection, Errors, FOLDS, RateBounds, Scores, Simultaneous, Statistic, ThresholdRule,
    rates,
};
use numerics::patience::look;
use std::cell::Cell;
use std::collections::HashMap;

/// Of the logarithm of a p-value: a plan has its own error.
const PRECISION: f64 = 1e-3;

/// Cuts that share the critical value of an exact test, which hardly moves between them.
const NEIGHBOURS: usize = 16;

/// Up to so many trainings on each side the scores themselves are drawn for `union`.
const DRAWN: u64 = 3_000;

/// The power of `count` trainings on each side; `near` is where the last critical value of ranks was.
pub(super) fn power(
    points: &[(f64, f64)],
    goal: &Goal,
    target: &Target,
    rule: &ThresholdRule,
    near: &Cell<Option<f64>>,
    count: u64,
    (trials, stream): (u32, u64),
) -> Needed {
    if *rule == ThresholdRule::Union
        && let Goal::Statistic { statistic: Statistic::Epsilon { delta, direction }, value } = goal
        && ranks::applies(count, count)
    {
        let level = 1.0 - target.confidence;
        let about = (*delta, *direction, *value);
        return by_ranks(points, about, level, near, count, (trials, stream));
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
    let usual = (0..points.len()).max_by_key(|place| chosen[*place]).unwrap_or(0);
    let (fpr, tpr) = points[usual];
    Needed { count, power: f64::from(shown) / f64::from(trials), fpr, tpr, simulated: true }
}

/// Drawn scores: minus the false positive rate at which a score lies, which is uniform for non-members and has the
/// attack's curve as its law for members.
fn draw_scores(points: &[(f64, f64)], count: u64, dealer: &mut Dealer) -> Option<Scores> {
    let nonmembers: Vec<f64> = (0..count).map(|_| -uniform(dealer)).collect();
    let members: Vec<f64> = (0..count).map(|_| -rate_of(points, uniform(dealer))).collect();
    Scores::new(members, nonmembers).ok()
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
        let rate = vertices[vertex].false_positives as f64 / count as f64;
        chosen[points.partition_point(|point| point.0 < rate).min(points.len() - 1)] += 1;
    }
    let usual = (0..points.len()).max_by_key(|place| chosen[*place]).unwrap_or(0);
    let (fpr, tpr) = points[usual];
    Needed { count, power: f64::from(shown) / f64::from(trials), fpr, tpr, simulated: true }
}

/// The exact law of ranks on drawn scores.
fn by_ranks(
    points: &[(f64, f64)],
    (delta, direction, value): (f64, AttackDirection, f64),
    level: f64,
    near: &Cell<Option<f64>>,
    count: u64,
    (trials, stream): (u32, u64),
) -> Needed {
    let mut best =
        Needed { count, power: 0.0, fpr: points[0].0, tpr: points[0].1, simulated: true };
    let half = if direction == AttackDirection::Both { 0.5 * level } else { level };
    let Some(critical) = Critical::new((count, count), delta, half, value, near.get()) else {
        return best;
    };
    near.set(Some(critical.least()));
    let (least, depth) = (critical.least(), critical.depth());
    let mut dealer = Dealer::new(stream);
    let (mut shown, mut chosen) = (0_u32, vec![0_u32; points.len()]);
    for _ in 0..trials {
        look();
        let Some(scores) = draw_scores(points, count, &mut dealer) else { continue };
        let ways = [
            (direction != AttackDirection::Mirror)
                .then(|| Seen::forward(&scores, depth, delta).best()),
            (direction != AttackDirection::Forward)
                .then(|| Seen::mirror(&scores, depth, delta).best()),
        ];
        let found = ways.into_iter().enumerate().filter_map(|(way, found)| Some((way, found?)));
        let Some((way, (rank, _))) =
            found.filter(|(_, (_, worth))| *worth >= least).max_by(|a, b| a.1.1.total_cmp(&b.1.1))
        else {
            continue;
        };
        shown += 1;
        let edge = match way {
            0 => -scores.nonmembers()[count as usize - 1 - rank],
            _ => -scores.members()[rank],
        };
        chosen[points.partition_point(|point| point.0 < edge).min(points.len() - 1)] += 1;
    }
    let usual = (0..points.len()).max_by_key(|place| chosen[*place]).unwrap_or(0);
    best.power = f64::from(shown) / f64::from(trials);
    (best.fpr, best.tpr) = points[usual];
    best
}

fn uniform(dealer: &mut Dealer) -> f64 {
    ((dealer.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// The false positive rate at which the curve has this true positive rate, by straight lines.
fn rate_of(points: &[(f64, f64)], tpr: f64) -> f64 {
    let next = points.partition_point(|point| point.1 < tpr);
    let low = next.checked_sub(1).map_or((0.0, 0.0), |place| points[place]);
    let high = points.get(next).copied().unwrap_or((1.0, 1.0));
    low.0 + (tpr - low.1) / (high.1 - low.1).max(1e-300) * (high.0 - low.0)
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
    let worths: Vec<f64> =
        points.iter().map(|point| goal.worth(&band.at(&expected(*point, count)))).collect();
    let best = worths.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let bar = if best > 0.0 { 0.6 * best } else { best };
    points
        .iter()
        .zip(&worths)
        .filter(|(_, worth)| **worth >= bar)
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
                let found = (0..self.points.len())
                    .find(|place| self.goal.shown(&band.at(&table.errors(*place, |_| true))));
                if let Some(place) = found {
                    chosen[place] += 1;
                }
                found.is_some()
            }
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
                        folds.iter().all(|errors| {
                            left -= p_value(errors, &contours, PRECISION);
                            left >= 0.0
                        })
                    }
                    None => folds.iter().any(|errors| {
                        self.goal.shown(&rates::clopper_pearson(errors, self.level / FOLDS as f64))
                    }),
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
        let test = self
            .tests
            .entry(place / NEIGHBOURS)
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
        for place in 0..self.false_positives[part].len() {
            let errors = self.errors(place, |other| other == part);
            let value = statistic.value(&RateBounds::wilson(&errors, 1.96));
            if value > best.1 {
                best = (place, value);
            }
        }
        best.0
    }
}
