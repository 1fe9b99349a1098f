//! AUROC as the Mann-Whitney probability, ties counted one half, with DeLong's interval
//! (DeLong, DeLong and Clarke-Pearson 1988) on the logit scale.
//!
//! Not the area under the ROC's convex hull, which is biased upwards and hides a reversed sign.
//! Standing: asymptotic. When a side is separated from the other the variance estimate is zero;
//! the interval then falls back to the exact Clopper-Pearson one for "all pairs in order" among
//! min(n, m) disjoint pairs. Cost: one merge of the sorted sides.

use super::Measured;
use crate::Scores;
use numerics::beta::{clopper_pearson_lower, clopper_pearson_upper};
use numerics::special::inverse_normal_sf;

/// AUROC with a two-sided interval.
///
/// ```
/// let scores = audit::Scores::new(audit::Design::Runs, vec![1.0, 2.0, 2.0], vec![0.0, 2.0])?;
/// // Pairs: (1,0) (2,0) (2,0) won, (1,2) lost, (2,2) (2,2) tied: 4 of 6.
/// assert_eq!(audit::quality::auroc(&scores, 0.95).value, 4.0 / 6.0);
/// # Ok::<(), audit::AuditError>(())
/// ```
pub fn auroc(scores: &Scores, confidence: f64) -> Measured {
    let (members, nonmembers) = (scores.members(), scores.nonmembers());
    let (wins, losses) = placements(scores);
    let (m, n) = (members.len() as f64, nonmembers.len() as f64);
    let value = wins.mean;
    let variance = wins.variance / m + losses.variance / n;
    let tail = 0.5 * (1.0 - confidence);
    if variance <= 0.0 || value <= 0.0 || value >= 1.0 {
        let pairs = members.len().min(nonmembers.len()) as u64;
        let ordered = (value * pairs as f64).round() as u64;
        return Measured {
            value,
            lower: clopper_pearson_lower(ordered, pairs, tail).min(value),
            upper: clopper_pearson_upper(ordered, pairs, tail).max(value),
        };
    }
    // On the logit scale the interval stays inside (0, 1).
    let spread = inverse_normal_sf(tail) * variance.sqrt() / (value * (1.0 - value));
    let logit = (value / (1.0 - value)).ln();
    let back = |x: f64| 1.0 / (1.0 + (-x).exp());
    Measured { value, lower: back(logit - spread), upper: back(logit + spread) }
}

struct Placements {
    mean: f64,
    variance: f64,
}

/// The share of the other side below each value (ties one half), of members and of non-members:
/// mean and variance.
fn placements(scores: &Scores) -> (Placements, Placements) {
    let (members, nonmembers) = (scores.members(), scores.nonmembers());
    let mut merges = parts(scores);
    // Which side comes next is as good as random: nothing branches on it, and four independent
    // parts fill the time that each step waits for the one before.
    loop {
        let steps = merges.iter().map(Merge::sure_steps).min().unwrap_or(0);
        if steps == 0 {
            break;
        }
        for _ in 0..steps {
            let mut tied = false;
            for merge in &mut merges {
                tied |= merge.step(members, nonmembers);
            }
            if tied {
                break;
            }
        }
    }
    let (mut wins, mut losses) = (Doubled::default(), Doubled::default());
    for mut merge in merges {
        while merge.sure_steps() > 0 {
            merge.step(members, nonmembers);
        }
        merge.rest();
        wins.add(&merge.wins);
        losses.add(&merge.losses);
    }
    (
        wins.placements(members.len(), nonmembers.len()),
        losses.placements(nonmembers.len(), members.len()),
    )
}

/// Parts of the merge that share no score, about equally long.
fn parts(scores: &Scores) -> [Merge; PARTS] {
    let (members, nonmembers) = (scores.members(), scores.nonmembers());
    let all = (members.len() + nonmembers.len()) as u64;
    let edge = |part: usize| match part {
        0 => (0, 0),
        PARTS => (members.len(), nonmembers.len()),
        _ => scores.kth_largest(all - 1 - (all - 1) * part as u64 / PARTS as u64).map_or(
            (0, 0),
            |edge| {
                let below = |side: &[f64]| side.partition_point(|&score| score < edge);
                (below(members), below(nonmembers))
            },
        ),
    };
    std::array::from_fn(|part| Merge::new(edge(part), edge(part + 1)))
}

const PARTS: usize = 4;

/// Twice the placements are integers: their sum and the sum of their squares, exactly.
#[derive(Default)]
struct Doubled {
    sum: u128,
    squares: u128,
}

impl Doubled {
    fn add(&mut self, other: &Self) {
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// One value; the product of two 64-bit numbers cannot overflow, nor can so few sums.
    #[inline(always)]
    fn one(&mut self, doubled: u64) {
        let doubled = u128::from(doubled);
        self.sum = self.sum.wrapping_add(doubled);
        self.squares = self.squares.wrapping_add(doubled.wrapping_mul(doubled));
    }

    fn note(&mut self, doubled: usize, times: usize) {
        let (doubled, times) = (doubled as u128, times as u128);
        self.sum += doubled * times;
        self.squares += doubled * doubled * times;
    }

    fn placements(&self, of: usize, among: usize) -> Placements {
        let (count, size) = (of as f64, among as f64);
        let mean = self.sum as f64 / count / (2.0 * size);
        // sum of squares - sum^2/n in integers, so that nothing cancels.
        let deviation = (self.squares * of as u128 - self.sum * self.sum) as f64 / count;
        let variance = if of > 1 { deviation / (count - 1.0) / (4.0 * size * size) } else { 0.0 };
        Placements { mean, variance }
    }
}

/// A merge of a stretch of both sides that counts, for each value, the others below it.
struct Merge {
    member: usize,
    members_end: usize,
    nonmember: usize,
    nonmembers_end: usize,
    wins: Doubled,
    losses: Doubled,
}

impl Merge {
    fn new(start: (usize, usize), end: (usize, usize)) -> Self {
        Self {
            member: start.0,
            members_end: end.0,
            nonmember: start.1,
            nonmembers_end: end.1,
            wins: Doubled::default(),
            losses: Doubled::default(),
        }
    }

    /// This many steps cannot run into an end, when no scores tie.
    fn sure_steps(&self) -> usize {
        (self.members_end - self.member).min(self.nonmembers_end - self.nonmember)
    }

    /// Takes the smaller of the two next values, or all that tie with both; tells which.
    #[inline(always)]
    fn step(&mut self, members: &[f64], nonmembers: &[f64]) -> bool {
        let (i, j) = (self.member, self.nonmember);
        let (value, other) = (members[i], nonmembers[j]);
        if value == other {
            let run = |side: &[f64]| side.iter().take_while(|&&next| next == value).count();
            let here = run(&members[i..self.members_end]);
            let there = run(&nonmembers[j..self.nonmembers_end]);
            self.wins.note(2 * j + there, here);
            self.losses.note(2 * i + here, there);
            self.member += here;
            self.nonmember += there;
            return true;
        }
        let first = usize::from(value < other);
        let won = (2 * j as u64) & (first as u64).wrapping_neg();
        let lost = (2 * i as u64) & (first as u64).wrapping_sub(1);
        self.wins.one(won);
        self.losses.one(lost);
        self.member = i + first;
        self.nonmember = j + (1 - first);
        false
    }

    /// What is left of one side lies above all of the other's stretch.
    fn rest(&mut self) {
        self.wins.note(2 * self.nonmember, self.members_end - self.member);
        self.losses.note(2 * self.member, self.nonmembers_end - self.nonmember);
    }
}
