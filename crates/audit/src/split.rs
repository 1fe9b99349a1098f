//! Random parts of the scores, reproducible from a seed.
//!
//! The rows of a side are exchangeable, so sorted scores may be dealt out directly; each part
//! comes out sorted. Which score goes where depends on the seed and the counts alone.

use crate::Scores;

/// SplitMix64 (Steele, Lea and Flood 2014): enough to deal cards.
#[derive(Clone, Debug)]
pub(crate) struct Dealer(u64);

impl Dealer {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x6a09_e667_f3bc_c908)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in 0..bound (Lemire's multiplication; the bias is below bound / 2^64).
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

/// Deals both sides into parts with the given shares; sizes are exact up to rounding.
pub(crate) fn deal(scores: &Scores, parts: usize, first_share: f64, seed: u64) -> Vec<Scores> {
    let mut dealer = Dealer::new(seed);
    let members = deal_side(scores.members(), parts, first_share, &mut dealer);
    let nonmembers = deal_side(scores.nonmembers(), parts, first_share, &mut dealer);
    members.into_iter().zip(nonmembers).map(|(m, n)| Scores::from_sorted(m, n)).collect()
}

/// Deals canaries of one run: each goes to the first part with probability `first_share`,
/// independently of whether it was in. Fixed numbers of members in each part would tell the one
/// part about the bits of the other.
pub(crate) fn deal_canaries(scores: &Scores, first_share: f64, seed: u64) -> (Scores, Scores) {
    let mut dealer = Dealer::new(seed);
    let bar = (first_share * 2f64.powi(32)) as u64;
    let mut part = |side: &[f64]| -> (Vec<f64>, Vec<f64>) {
        side.iter().partition(|_| dealer.next() >> 32 < bar)
    };
    let (members, nonmembers) = (part(scores.members()), part(scores.nonmembers()));
    (Scores::from_sorted(members.0, nonmembers.0), Scores::from_sorted(members.1, nonmembers.1))
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
