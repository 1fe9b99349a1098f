//! Seeds of the trainings of an experiment: 32 bits, because that is what every framework takes,
//! and no two alike within an experiment.

use sha2::{Digest, Sha256};

/// The seed of training `index` of an experiment with this root seed.
///
/// For a fixed root this is a bijection of 32-bit numbers, so seeds never repeat: the index is
/// combined with the root's SHA-256 and mixed by the finaliser of MurmurHash3.
///
/// ```
/// use experiments::training_seed;
/// assert_ne!(training_seed(0, 0), training_seed(0, 1));
/// assert_ne!(training_seed(0, 0), training_seed(1, 0));
/// ```
pub fn training_seed(root: u64, index: u32) -> u32 {
    let digest = Sha256::digest(format!("dosimeter training seed {root}").as_bytes());
    let word = |place: usize| {
        u32::from_le_bytes([digest[place], digest[place + 1], digest[place + 2], digest[place + 3]])
    };
    let mut mixed = index ^ word(0);
    mixed = (mixed ^ (mixed >> 16)).wrapping_mul(0x85eb_ca6b);
    mixed = (mixed ^ (mixed >> 13)).wrapping_mul(0xc2b2_ae35);
    (mixed ^ (mixed >> 16)) ^ word(4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn seeds_never_repeat_within_an_experiment() {
        let seeds: HashSet<u32> = (0..100_000).map(|index| training_seed(7, index)).collect();
        assert_eq!(seeds.len(), 100_000);
        let high = seeds.iter().filter(|seed| **seed >= 1 << 31).count();
        // 100,000 fair coins: five standard deviations are 790.
        assert!(high.abs_diff(50_000) < 790, "{high}");
    }
}
