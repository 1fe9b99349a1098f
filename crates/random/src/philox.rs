//! Philox4x32-10, one block at a time and many blocks abreast. The lanes hold 32-bit words in
//! 64-bit slots, so that the widening multiplication is one vector instruction on every target.

const MULTIPLIER_0: u64 = 0xD251_1F53;
const MULTIPLIER_1: u64 = 0xCD9E_8D57;
const WEYL_0: u32 = 0x9E37_79B9;
const WEYL_1: u32 = 0xBB67_AE85;
const MASK: u64 = 0xFFFF_FFFF;

/// Blocks computed abreast by the fill routines.
pub(crate) const LANES: usize = 8;

/// One block: ten rounds of Philox4x32.
///
/// ```
/// // Known answer of the authors' Random123 distribution.
/// let words = random::philox4x32_10([0; 4], [0; 2]);
/// assert_eq!(words, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
/// ```
pub const fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counter;
    let [mut k0, mut k1] = key;
    let mut round = 0;
    while round < 10 {
        let p0 = c0 as u64 * MULTIPLIER_0;
        let p1 = c2 as u64 * MULTIPLIER_1;
        (c0, c1, c2, c3) =
            ((p1 >> 32) as u32 ^ c1 ^ k0, p1 as u32, (p0 >> 32) as u32 ^ c3 ^ k1, p0 as u32);
        k0 = k0.wrapping_add(WEYL_0);
        k1 = k1.wrapping_add(WEYL_1);
        round += 1;
    }
    [c0, c1, c2, c3]
}

/// The four words of `LANES` blocks, word by word, each in a 64-bit slot.
pub(crate) type Lanes = [[u64; LANES]; 4];

/// Blocks `first_block .. first_block + LANES` of a row. Written without panicking operations,
/// so that the compiler turns each line into vector code.
#[inline(always)]
pub(crate) fn philox_lanes(key: [u32; 2], row: u64, first_block: u64) -> Lanes {
    let mut c0 = [0u64; LANES];
    let mut c1 = [0u64; LANES];
    for lane in 0..LANES {
        let block = first_block.wrapping_add(lane as u64);
        c0[lane] = block & MASK;
        c1[lane] = block >> 32;
    }
    ten_rounds(key, [c0, c1, [row & MASK; LANES], [row >> 32; LANES]])
}

/// The block of this number in each of several rows.
#[inline(always)]
pub(crate) fn philox_rows(key: [u32; 2], rows: [u64; LANES], block: u64) -> Lanes {
    let (low, high) = (rows.map(|row| row & MASK), rows.map(|row| row >> 32));
    ten_rounds(key, [[block & MASK; LANES], [block >> 32; LANES], low, high])
}

#[inline(always)]
fn ten_rounds(key: [u32; 2], counters: Lanes) -> Lanes {
    let [mut c0, mut c1, mut c2, mut c3] = counters;
    let [mut k0, mut k1] = key;
    for _ in 0..10 {
        let (w0, w1) = (k0 as u64, k1 as u64);
        for lane in 0..LANES {
            let p0 = (c0[lane] & MASK).wrapping_mul(MULTIPLIER_0);
            let p1 = (c2[lane] & MASK).wrapping_mul(MULTIPLIER_1);
            c0[lane] = (p1 >> 32) ^ c1[lane] ^ w0;
            c2[lane] = (p0 >> 32) ^ c3[lane] ^ w1;
            c1[lane] = p1 & MASK;
            c3[lane] = p0 & MASK;
        }
        k0 = k0.wrapping_add(WEYL_0);
        k1 = k1.wrapping_add(WEYL_1);
    }
    [c0, c1, c2, c3]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        let ones = philox4x32_10([u32::MAX; 4], [u32::MAX; 2]);
        assert_eq!(ones, [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let pi = philox4x32_10(
            [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
            [0xa409_3822, 0x299f_31d0],
        );
        assert_eq!(pi, [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }

    #[test]
    fn another_implementation_agrees() {
        let key = [0x1234_5678, 0x9ABC_DEF0];
        let mut other = rand_philox::Philox::new(key, 0);
        for block in [0u64, 1, 77, u64::from(u32::MAX), 1 << 40] {
            for row in [0u64, 5, 1 << 33] {
                other.seek(u128::from(row) << 64 | u128::from(block));
                let counter = [block as u32, (block >> 32) as u32, row as u32, (row >> 32) as u32];
                for word in philox4x32_10(counter, key) {
                    assert_eq!(word, other.next_u32());
                }
            }
        }
    }

    #[test]
    fn lanes_are_the_blocks() {
        let key = [0xDEAD_BEEF, 0x0123_4567];
        let first = (1u64 << 32) - 5;
        let row = 0x1_0000_0007u64;
        let words = |lanes: Lanes| {
            let [w0, w1, w2, w3] = lanes;
            (0..LANES).map(move |i| [w0[i], w1[i], w2[i], w3[i]].map(|word| word as u32))
        };
        for (lane, found) in words(philox_lanes(key, row, first)).enumerate() {
            let block = first + lane as u64;
            let counter = [block as u32, (block >> 32) as u32, row as u32, (row >> 32) as u32];
            assert_eq!(found, philox4x32_10(counter, key));
        }
        let (block, rows) = (row, [0, 1, 9, 1 << 32, (1 << 32) + 1, 77, 5, 1 << 63]);
        for (row, found) in rows.into_iter().zip(words(philox_rows(key, rows, block))) {
            let counter = [block as u32, (block >> 32) as u32, row as u32, (row >> 32) as u32];
            assert_eq!(found, philox4x32_10(counter, key));
        }
    }
}
