//! The optional column `run`: which training a row belongs to. It tells the design, and shows
//! when rows are neither independent trainings nor canaries of one.
//!
//! Only a 64-bit hash of each entry is kept (two of 10^7 different runs collide with probability
//! 3e-6), and it is dropped before the scores are sorted.

use crate::Design;

/// Hashes of the entries, side by side with the scores.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    members: Vec<u64>,
    nonmembers: Vec<u64>,
}

/// What the column says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grouping {
    /// Not every row has an entry.
    Nothing,
    Design(Design),
    /// Some rows share a training and some do not.
    Mixed,
}

impl Runs {
    pub(super) fn note(&mut self, entry: &[u8], member: bool) {
        // FNV-1a, finished by a mix so that short numbers spread.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in entry {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        hash = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if member { self.members.push(hash) } else { self.nonmembers.push(hash) }
    }

    #[cfg(feature = "parquet")]
    pub(super) fn append(&mut self, mut other: Self) {
        self.members.append(&mut other.members);
        self.nonmembers.append(&mut other.nonmembers);
    }

    /// What the entries say about rows of these numbers. A training may stand once on either side
    /// (the same seed with and without the canary), never twice on one.
    pub(super) fn grouping(mut self, members: usize, nonmembers: usize) -> Grouping {
        if self.members.len() != members || self.nonmembers.len() != nonmembers {
            return Grouping::Nothing;
        }
        let first = self.members.first().or(self.nonmembers.first()).copied();
        let alike = |side: &[u64]| side.iter().all(|hash| Some(*hash) == first);
        if members + nonmembers > 2 && alike(&self.members) && alike(&self.nonmembers) {
            return Grouping::Design(Design::OneRun);
        }
        for side in [&mut self.members, &mut self.nonmembers] {
            side.sort_unstable();
            if side.windows(2).any(|pair| pair[0] == pair[1]) {
                return Grouping::Mixed;
            }
        }
        Grouping::Design(Design::Runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grouping_of(members: &[&str], nonmembers: &[&str]) -> Grouping {
        let mut runs = Runs::default();
        for (side, member) in [(members, true), (nonmembers, false)] {
            side.iter().for_each(|entry| runs.note(entry.as_bytes(), member));
        }
        runs.grouping(members.len(), nonmembers.len())
    }

    #[test]
    fn the_column_tells_the_design() {
        assert_eq!(grouping_of(&["1", "2"], &["3", "4"]), Grouping::Design(Design::Runs));
        assert_eq!(grouping_of(&["1", "2"], &["1", "2"]), Grouping::Design(Design::Runs));
        assert_eq!(grouping_of(&["a", "a"], &["a"]), Grouping::Design(Design::OneRun));
        assert_eq!(grouping_of(&["1", "1", "2"], &["1", "2"]), Grouping::Mixed);
        assert_eq!(Runs::default().grouping(1, 1), Grouping::Nothing);
    }
}
