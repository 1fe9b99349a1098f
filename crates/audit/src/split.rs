//! Random parts of the scores: which stream decides, and why a bound holds at every seed.
//!
//! A stream that depends on the seed and the counts alone puts the same ranks into the same part
//! for every data set of a size. A bound is then valid on average over seeds and can fail at one of
//! them, the default one too. So each choice here depends on the scores themselves.
//!
//! **Canaries of one run** ([`parts_of_canaries`]). The part of a canary is a function of the seed,
//! the purpose, all scores with their membership left out, and its own score; canaries with equal
//! scores share a part, and no lots are drawn. So the parts are a function of what the mechanism
//! put out, and a guess may depend on that output in any way. The mechanism may know the seed and choose scores by where they are dealt; at delta > 0
//! that has a price ([`crate::one_run`], `chosen`). With it the bound holds at
//! every seed and for every hash function; no exchangeability is used, only the fair bits. The price of equal scores that share a part is
//! that few distinct values are dealt badly.
//!
//! **Trainings of their own** ([`deal`]). The rows of a side are independent and alike. Given both
//! sorted sides, every way to deal the ranks is equally likely to be how the rows fell, so parts
//! that are dealt by a uniform choice are independent samples. The choice is read off a
//! stream whose key mixes seed, purpose and every score of both sides. For a function that is
//! drawn at random this is exactly a uniform choice given the scores. For the one function that is
//! used it is as good as a random number generator is: two data sets share lots only if they share
//! every score, and then they are one data set. Where scores take few values, the share of misses
//! at one seed is an average over the data sets that can occur, each with lots of its own; its
//! variance over seeds is the sum of their squared probabilities times the error, so that already for
//! ten binary scores on each side no seed is far from the mean (a test holds this at fixed seeds).
//! Constant scores are dealt into parts that are all alike.

use crate::Scores;

/// What a stream is for. Streams of different purposes have nothing in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Halves,
    Folds,
    Resamples,
}

/// SplitMix64 (Steele, Lea and Flood 2014): enough to deal cards.
#[derive(Clone, Debug)]
pub(crate) struct Dealer(u64);

impl Dealer {
    /// A stream for simulated data, which has no scores to depend on.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x6a09_e667_f3bc_c908)
    }

    /// The stream of these scores.
    pub(crate) fn of(scores: &Scores, seed: u64, purpose: Purpose) -> Self {
        let sides = mix(sum(scores.members())) ^ sum(scores.nonmembers());
        Self(key(sides, seed, purpose))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        finish(self.0)
    }

    /// Uniform in 0..bound (Lemire's multiplication; the bias is below bound / 2^64).
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn finish(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn mix(word: u64) -> u64 {
    finish(word.wrapping_add(STEP))
}

fn key(scores: u64, seed: u64, purpose: Purpose) -> u64 {
    mix(mix(mix(purpose as u64 + 1) ^ seed) ^ mix(scores))
}

/// The bits of a score; both zeros are one score.
fn bits(score: f64) -> u64 {
    (score + 0.0).to_bits()
}

/// A fingerprint of a multiset: the same in any order.
fn sum(scores: &[f64]) -> u64 {
    let total = scores.iter().fold(0_u64, |total, &score| total.wrapping_add(mix(bits(score))));
    mix(total ^ scores.len() as u64)
}

/// Deals both sides into parts with the given share for the first; sizes are exact up to rounding.
pub(crate) fn deal(
    scores: &Scores,
    parts: usize,
    first_share: f64,
    seed: u64,
    purpose: Purpose,
) -> Vec<Scores> {
    let mut dealer = Dealer::of(scores, seed, purpose);
    let members = deal_side(scores.members(), parts, first_share, &mut dealer);
    let nonmembers = deal_side(scores.nonmembers(), parts, first_share, &mut dealer);
    members.into_iter().zip(nonmembers).map(|(m, n)| scores.part(m, n)).collect()
}

/// Deals canaries of one run: the first `shares.len()` parts get these shares on average, the last
/// part the rest. Each distinct score is dealt whole.
pub(crate) fn parts_of_canaries(
    scores: &Scores,
    shares: &[f64],
    seed: u64,
    purpose: Purpose,
) -> Vec<Scores> {
    // Addition forgets who was in.
    let pooled = [scores.members(), scores.nonmembers()]
        .iter()
        .flat_map(|side| side.iter())
        .fold(0_u64, |total, &score| total.wrapping_add(mix(bits(score))));
    let key = key(pooled, seed, purpose);
    let mut bars = Vec::with_capacity(shares.len());
    let mut reached = 0.0;
    for share in shares {
        reached += share;
        bars.push((reached * 2f64.powi(32)) as u64);
    }
    let part_of = |score: f64| {
        let ticket = mix(mix(bits(score)) ^ key) >> 32;
        bars.iter().position(|bar| ticket < *bar).unwrap_or(bars.len())
    };
    let dealt = |side: &[f64]| {
        let mut parts = vec![Vec::new(); shares.len() + 1];
        for &score in side {
            parts[part_of(score)].push(score);
        }
        parts
    };
    let (members, nonmembers) = (dealt(scores.members()), dealt(scores.nonmembers()));
    members.into_iter().zip(nonmembers).map(|(m, n)| scores.part(m, n)).collect()
}

/// Part 0 gets `first_share` of the values, the others equal shares of the rest; selection
/// sampling (Knuth, Algorithm S) keeps the order and the exact sizes.
fn deal_side(sorted: &[f64], parts: usize, first_share: f64, dealer: &mut Dealer) -> Vec<Vec<f64>> {
    let size = sorted.len();
    let first = ((size as f64 * first_share).round() as usize).min(size);
    let mut room = vec![first];
    for part in 1..parts {
        let (rest, others) = (size - first, parts - 1);
        room.push(rest * part / others - rest * (part - 1) / others);
    }
    let mut dealt: Vec<Vec<f64>> = room.iter().map(|&room| Vec::with_capacity(room)).collect();
    let mut left = size as u64;
    for &value in sorted {
        let mut ticket = dealer.below(left) as usize;
        for (part, space) in room.iter_mut().enumerate() {
            if ticket < *space {
                *space -= 1;
                dealt[part].push(value);
                break;
            }
            ticket -= *space;
        }
        left -= 1;
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Design;

    #[test]
    fn streams_depend_on_scores_seed_and_purpose() {
        let scores = |last: f64| {
            Scores::new(Design::Runs, vec![1.0, 2.0, last], vec![0.0, -0.0, 1.5]).unwrap()
        };
        let first = |scores: &Scores, seed, purpose| Dealer::of(scores, seed, purpose).next();
        let one = first(&scores(3.0), 0, Purpose::Halves);
        assert_eq!(one, first(&scores(3.0), 0, Purpose::Halves));
        assert_ne!(one, first(&scores(3.5), 0, Purpose::Halves));
        assert_ne!(one, first(&scores(3.0), 1, Purpose::Halves));
        assert_ne!(one, first(&scores(3.0), 0, Purpose::Folds));
    }

    /// Who is a member changes nothing: every score keeps its part, and ties share one.
    #[test]
    fn canaries_are_dealt_by_their_scores_alone() {
        let pooled: Vec<f64> = (0..200).map(|i| f64::from(i / 3)).collect();
        let dealt = |parity: usize| {
            let side = |wanted: usize| {
                let rows = pooled.iter().enumerate().filter(|(row, _)| row % 2 == wanted);
                rows.map(|(_, score)| *score).collect::<Vec<f64>>()
            };
            let scores = Scores::new(Design::Runs, side(parity), side(1 - parity)).unwrap();
            let parts = parts_of_canaries(&scores, &[0.5], 0, Purpose::Halves);
            let mut first: Vec<f64> = parts[0].members().to_vec();
            first.extend_from_slice(parts[0].nonmembers());
            first.sort_by(f64::total_cmp);
            first
        };
        assert_eq!(dealt(0), dealt(1));
        let (first, all) = (dealt(0), |score: f64| pooled.iter().filter(|s| **s == score).count());
        assert!(first.iter().all(|s| first.iter().filter(|t| *t == s).count() == all(*s)));
        assert!((50..150).contains(&first.len()), "{}", first.len());
    }
}
