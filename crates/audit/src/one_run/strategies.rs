//! Which canaries a strategy guesses. A strategy is a rule that reads scores and never who was in;
//! canaries with equal scores are guessed together or not at all, so no lots are drawn.

use crate::scores::at_least;
use crate::{AttackDirection, Scores};

/// Which guesses to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// All: the upper part "in", the lower part "out", cut at the widest gap between two scores that is
    /// as near to the middle as fair coins put the number of members.
    Everything,
    /// At most this many of the highest "in" and of the lowest "out".
    Ends { inside: u64, outside: u64 },
}

/// Guesses made about canaries, and how many were right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guesses {
    /// All canaries.
    pub canaries: u64,
    /// Guessed "in" (score at or above a threshold).
    pub guessed_in: u64,
    /// Guessed "out" (score below a threshold).
    pub guessed_out: u64,
    /// Right guesses of both kinds.
    pub right: u64,
    /// The most guesses that the strategy could have made, whatever the scores: what the bounds at
    /// delta > 0 and for f-DP count. A canary that ties left out counts as a wrong guess there.
    pub planned: u64,
}

impl Guesses {
    /// All guesses that were made.
    pub fn total(&self) -> u64 {
        self.guessed_in + self.guessed_out
    }

    /// The guesses that a bound at `delta` counts: at delta 0 it holds given the scores.
    pub(crate) fn counted(&self, delta: f64) -> u64 {
        if delta == 0.0 { self.total() } else { self.planned }
    }
}

impl Strategy {
    /// The most guesses it makes about this many canaries.
    pub(crate) fn planned(self, canaries: u64) -> u64 {
        match self {
            Self::Everything => canaries,
            Self::Ends { inside, outside } => inside + outside,
        }
    }

    /// The same strategy for another number of canaries.
    pub(crate) fn scaled(self, from: u64, to: u64) -> Self {
        let scale =
            |part: u64| (u128::from(part) * u128::from(to) / u128::from(from.max(1))) as u64;
        match self {
            Self::Everything => self,
            Self::Ends { inside, outside } => {
                Self::Ends { inside: scale(inside), outside: scale(outside) }
            }
        }
    }

    /// Makes the guesses.
    pub(crate) fn guess(self, scores: &Scores) -> Guesses {
        let (members, nonmembers) = (scores.members(), scores.nonmembers());
        let all = size(scores);
        let from = |edge: f64| (at_least(members, edge), at_least(nonmembers, edge));
        let beyond = |edge: f64| (above(members, edge), above(nonmembers, edge));
        let planned = self.planned(all);
        match self {
            Self::Everything => {
                let edge = widest_gap(scores);
                let inside = from(edge);
                let outside = all - inside.0 - inside.1;
                let right = inside.0 + (nonmembers.len() as u64 - inside.1);
                Guesses {
                    canaries: all,
                    guessed_in: inside.0 + inside.1,
                    guessed_out: outside,
                    right,
                    planned,
                }
            }
            Self::Ends { inside, outside } => {
                let top = inside
                    .checked_sub(1)
                    .and_then(|rank| scores.kth_largest(rank.min(all.saturating_sub(1))))
                    .map_or((0, 0), |edge| {
                        let with = from(edge);
                        if with.0 + with.1 <= inside { with } else { beyond(edge) }
                    });
                let below = |part: (u64, u64)| {
                    (members.len() as u64 - part.0, nonmembers.len() as u64 - part.1)
                };
                let bottom = if outside == 0 {
                    (0, 0)
                } else {
                    let edge = scores.kth_largest(all.saturating_sub(outside));
                    edge.map_or((0, 0), |edge| {
                        let with = below(beyond(edge));
                        if with.0 + with.1 <= outside { with } else { below(from(edge)) }
                    })
                };
                Guesses {
                    canaries: all,
                    guessed_in: top.0 + top.1,
                    guessed_out: bottom.0 + bottom.1,
                    right: top.0 + bottom.1,
                    planned,
                }
            }
        }
    }
}

/// The lowest score that is guessed "in" when all are guessed: above the widest gap among the ranks
/// within three standard deviations of a fair count (at most a quarter of all), or beyond these the
/// nearest edge of a tie.
fn widest_gap(scores: &Scores) -> f64 {
    let (members, nonmembers) = (scores.members(), scores.nonmembers());
    let all = members.len() + nonmembers.len();
    let reach = ((1.5 * (all as f64).sqrt()) as usize).min(all / 4);
    // From the highest score that may be the first one "out", downwards.
    let first = (all / 2).saturating_sub(reach).max(1);
    let Some(start) = scores.kth_largest(first as u64 - 1) else { return f64::INFINITY };
    let (mut m, mut n) = (at_least(members, start) as usize, at_least(nonmembers, start) as usize);
    let mut upper = start;
    let mut best: Option<(f64, f64)> = None;
    // m and n scores are at or above `upper`; the next ones down follow.
    while m + n < all {
        let next = |side: &[f64], taken: usize| {
            side.len().checked_sub(taken + 1).map_or(f64::NEG_INFINITY, |place| side[place])
        };
        let lower = next(members, m).max(next(nonmembers, n));
        let gap = if upper == lower { 0.0 } else { upper - lower };
        let inside = m + n <= all / 2 + reach;
        if best.is_none_or(|(widest, _)| inside && gap > widest) {
            best = Some((gap, upper));
        }
        if !inside {
            break;
        }
        (m, n) = (at_least(members, lower) as usize, at_least(nonmembers, lower) as usize);
        upper = lower;
    }
    // All are alike from there on: everything is "in".
    best.map_or(upper, |(_, edge)| edge)
}

pub(crate) fn size(scores: &Scores) -> u64 {
    (scores.members().len() + scores.nonmembers().len()) as u64
}

fn above(side: &[f64], edge: f64) -> u64 {
    (side.len() - side.partition_point(|&score| score <= edge)) as u64
}

/// The strategies of the `union` rule: chains in which each one guesses what the one before guesses,
/// and more. Numbers of guesses are spaced by two; they depend on the number of canaries alone.
pub(crate) fn chains(canaries: u64, direction: AttackDirection) -> Vec<Vec<Strategy>> {
    let ends = |most: u64, fewest: u64, of: &dyn Fn(u64) -> Strategy| {
        let mut sizes = Vec::new();
        let mut size = most;
        // Fewer than five guesses show nothing at 95 %: 2^-5 < 0.05.
        while size >= fewest && sizes.len() < 40 {
            sizes.push(of(size));
            size /= 2;
        }
        sizes.reverse();
        sizes
    };
    let inside = || ends(canaries / 2, 5, &|inside| Strategy::Ends { inside, outside: 0 });
    let outside = || ends(canaries / 2, 5, &|outside| Strategy::Ends { inside: 0, outside });
    let mut chains = match direction {
        AttackDirection::Forward => vec![inside()],
        AttackDirection::Mirror => vec![outside()],
        AttackDirection::Both => {
            let mut both =
                ends(canaries / 4, 3, &|part| Strategy::Ends { inside: part, outside: part });
            both.push(Strategy::Everything);
            vec![both, inside()]
        }
    };
    chains.retain(|chain| !chain.is_empty());
    if chains.is_empty() {
        let half = canaries / 2;
        chains.push(vec![match direction {
            AttackDirection::Mirror => Strategy::Ends { inside: 0, outside: half },
            _ => Strategy::Ends { inside: half, outside: 0 },
        }]);
    }
    chains
}

/// The strategies among which canaries choose that do not count. As [`chains`], but the ends are a little larger: what is
/// chosen is alone on the other canaries and need not be nested in others. More of them would be chosen among by chance.
pub(crate) fn choices(canaries: u64, direction: AttackDirection) -> Vec<Strategy> {
    let larger = |one: Strategy| match one {
        Strategy::Ends { inside, outside } if inside == outside => {
            let part = inside + inside * 3 / 25;
            Strategy::Ends { inside: part, outside: part }
        }
        other => other,
    };
    chains(canaries, direction).into_iter().flatten().map(larger).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Design;

    /// In a chain every guess of a strategy is made by the next one, ties or not.
    #[test]
    fn chains_are_nested() {
        for distinct in [1_u32, 2, 3, 7, 50, 1000] {
            for size in [10_u32, 11, 40, 173] {
                let value = |i: u32| f64::from((i * 7919 + i * i) % distinct);
                let scores = Scores::new(
                    Design::OneRun,
                    (0..size).step_by(2).map(value).collect(),
                    (1..size).step_by(2).map(value).collect(),
                )
                .unwrap();
                for direction in
                    [AttackDirection::Both, AttackDirection::Forward, AttackDirection::Mirror]
                {
                    for chain in chains(u64::from(size), direction) {
                        let made: Vec<Guesses> =
                            chain.iter().map(|one| one.guess(&scores)).collect();
                        for pair in made.windows(2) {
                            assert!(pair[0].guessed_in <= pair[1].guessed_in, "{pair:?}");
                            assert!(pair[0].guessed_out <= pair[1].guessed_out, "{pair:?}");
                            assert!(pair[0].right <= pair[1].right, "{pair:?}");
                        }
                        assert!(made.iter().all(|one| one.total() <= one.planned));
                    }
                }
            }
        }
    }
}
