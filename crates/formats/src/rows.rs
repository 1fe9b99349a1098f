//! Rows `D.ddddddddddddddd,M` of a score file, D one digit, eight to eighteen digits d, M 0 or 1:
//! what programs write for most scores. Everything else is left to slower readers.
//!
//! The digits after the point are filled up with zeros to eighteen, so that the number is always
//! w / 10^18 with an integer w < 10^19; it is rounded as in [`crate::decimal`]. Sixteen digits are
//! read at once, with the vector instructions that the processor has: some 120 instructions per row,
//! half of what the general reader needs, and no branch that depends on how many digits there are.

use crate::decimal::{eight_digits, reciprocal};

/// The bytes that a row may have, and those that reading it may look at behind it.
const WINDOW: usize = 48;

/// A row: the score, whether it is a member's, and the length with the line's end.
type Row = (f64, bool, usize);

/// How sixteen digits are read.
trait Digits: Copy {
    /// The number of digits at the start, and two numbers of eight digits, the first in the lower
    /// half: the digits followed by zeros. No digits may be said where there are fewer than eight.
    fn sixteen(self, bytes: &[u8; 16]) -> (u64, usize);

    /// The length of the row, of which `length` is right if it is a row at all. To know it early
    /// is to start on the next row early.
    fn row_length(self, window: &[u8; WINDOW], length: usize) -> usize;
}

/// Takes rows from the start of the buffer; members' scores go to the one side, others to the
/// other. Gives the bytes taken and the number of scores on each side.
///
/// Both sides need a place more than there can be rows.
pub fn take(buffer: &[u8], members: &mut [f64], nonmembers: &mut [f64]) -> (usize, usize, usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(instructions) = pulp::x86::V3::try_new() {
        return instructions.vectorize(
            #[inline(always)]
            || rows(instructions, buffer, members, nonmembers),
        );
    }
    rows(Words, buffer, members, nonmembers)
}

#[inline(always)]
fn rows(
    digits: impl Digits,
    buffer: &[u8],
    members: &mut [f64],
    nonmembers: &mut [f64],
) -> (usize, usize, usize) {
    let (mut place, mut inside, mut outside) = (0, 0, 0);
    while let Some((score, member, length)) = row(digits, &buffer[place..]) {
        // Who is a member may be as good as random: nothing branches on it.
        let (Some(one), Some(other)) = (members.get_mut(inside), nonmembers.get_mut(outside))
        else {
            break;
        };
        (*one, *other) = (score, score);
        inside += usize::from(member);
        outside += usize::from(!member);
        place += length;
    }
    (place, inside, outside)
}

#[inline(always)]
fn row(digits: impl Digits, bytes: &[u8]) -> Option<Row> {
    const SHIFT_18: u64 = reciprocal(18).1;
    const RECIPROCAL_18: u64 = reciprocal(18).0;
    let window = bytes.first_chunk::<WINDOW>()?;
    let negative = window[0] == b'-';
    let start = usize::from(negative);
    let number = window[start..].first_chunk::<{ WINDOW - 1 }>()?;
    let lead = number[0].wrapping_sub(b'0');
    if lead > 9 || number[1] != b'.' {
        return None;
    }
    let (eights, count) = digits.sixteen(number[2..].first_chunk()?);
    if count < 8 {
        return None;
    }
    // Behind sixteen digits there may be two more.
    let full = (count as u32 >> 4).wrapping_neg();
    let next = u32::from_le_bytes(*number[18..].first_chunk()?) ^ 0x3030_3030;
    let others = ((next.wrapping_add(0x7676_7676) | next) >> 7) & 0x0101_0101;
    let mask = (others & others.wrapping_neg()).wrapping_sub(1) & full;
    if mask > 0xffff {
        return None;
    }
    let last = next & mask;
    let last_two = u64::from(last.wrapping_mul(10).wrapping_add(last >> 8) & 0xff);
    let w = u64::from(lead).wrapping_mul(100_000_000).wrapping_add(eights & 0xffff_ffff);
    let w = w.wrapping_mul(100_000_000).wrapping_add(eights >> 32);
    let w = w.wrapping_mul(100).wrapping_add(last_two);
    let end = start + 2 + (count & 31) + (mask & 1) as usize + (mask >> 8 & 1) as usize;
    let rest = u32::from_le_bytes(*window.get(end..)?.first_chunk()?);
    const ENDS: u32 = u32::from_le_bytes(*b",0\n\0");
    if rest & 0x00ff_feff != ENDS {
        return None;
    }
    let lead = (w | 1).leading_zeros();
    let product = u128::from(w.wrapping_shl(lead)).wrapping_mul(u128::from(RECIPROCAL_18));
    let upper = (product >> 64) as u64;
    // Next to a midpoint in ten or in eleven bits, or nothing at all.
    if upper.wrapping_add(1) & 0x1ff <= 1 {
        return None;
    }
    let top = upper >> 63;
    let kept = (upper >> (9 + top)).wrapping_add(1) >> 1;
    let exponent = (1022 + 52 + 10 + 64 - SHIFT_18).wrapping_add(top).wrapping_sub(u64::from(lead));
    let bits = (exponent << 52).wrapping_add(kept) | u64::from(negative) << 63;
    Some((f64::from_bits(bits), rest & 0x100 != 0, digits.row_length(window, end + 3)))
}

/// Words of eight bytes.
#[derive(Clone, Copy)]
struct Words;

impl Digits for Words {
    #[inline(always)]
    fn sixteen(self, bytes: &[u8; 16]) -> (u64, usize) {
        const ONES: u64 = 0x0101_0101_0101_0101;
        let both = u128::from_le_bytes(*bytes);
        let (first, second) = (both as u64 ^ (0x30 * ONES), (both >> 64) as u64 ^ (0x30 * ONES));
        // A one in every byte that is no digit; a carry only spoils those behind it.
        let others = |word: u64| ((word.wrapping_add(0x76 * ONES) | word) >> 7) & ONES;
        if others(first) != 0 {
            return (0, 0);
        }
        let end = others(second);
        let digits = (end & end.wrapping_neg()).wrapping_sub(1);
        let count = 8 + ((digits & ONES).wrapping_mul(ONES) >> 56) as usize;
        (eight_digits(first) | eight_digits(second & digits) << 32, count)
    }

    #[inline(always)]
    fn row_length(self, _window: &[u8; WINDOW], length: usize) -> usize {
        length
    }
}

#[cfg(target_arch = "x86_64")]
impl Digits for pulp::x86::V3 {
    #[inline(always)]
    fn sixteen(self, bytes: &[u8; 16]) -> (u64, usize) {
        const KEPT: [u8; 32] = {
            let mut kept = [0; 32];
            let mut place = 0;
            while place < 16 {
                kept[place] = 0xff;
                place += 1;
            }
            kept
        };
        let sse2 = self.sse2;
        let values = sse2._mm_xor_si128(bytemuck::cast(*bytes), sse2._mm_set1_epi8(0x30));
        let is_digit =
            sse2._mm_cmpeq_epi8(sse2._mm_min_epu8(values, sse2._mm_set1_epi8(9)), values);
        // The upper half of the word is no digit, so the count is at most sixteen.
        let count = (!sse2._mm_movemask_epi8(is_digit)).trailing_zeros() as usize;
        let Some(kept) = KEPT.get(16 - count..).and_then(<[u8]>::first_chunk::<16>) else {
            return (0, 0);
        };
        let digits = sse2._mm_and_si128(values, bytemuck::cast(*kept));
        // Neighbours are joined: twos, fours, eights.
        let twos = self.ssse3._mm_maddubs_epi16(digits, sse2._mm_set1_epi16(10 | 1 << 8));
        let fours = sse2._mm_madd_epi16(twos, sse2._mm_set1_epi32(100 | 1 << 16));
        let fours = sse2._mm_packs_epi32(fours, fours);
        let eights = sse2._mm_madd_epi16(fours, sse2._mm_set1_epi32(10_000 | 1 << 16));
        let [both, _] = bytemuck::cast::<_, [u64; 2]>(eights);
        (both, count)
    }

    /// By the line's end, which does not wait for the digits to be counted.
    #[inline(always)]
    fn row_length(self, window: &[u8; WINDOW], length: usize) -> usize {
        let Some(start) = window.first_chunk::<32>() else { return length };
        let ends = self.avx2._mm256_cmpeq_epi8(
            bytemuck::cast(*start),
            self.avx._mm256_set1_epi8(b'\n'.cast_signed()),
        );
        1 + self.avx2._mm256_movemask_epi8(ends).trailing_zeros() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;

    /// Reads one row in every way that this machine has; they agree.
    fn read(text: &str) -> Option<Row> {
        let padded = format!("{text}{}", "7".repeat(WINDOW));
        let slow = row(Words, padded.as_bytes());
        #[cfg(target_arch = "x86_64")]
        if let Some(instructions) = pulp::x86::V3::try_new() {
            let fast = instructions.vectorize(|| row(instructions, padded.as_bytes()));
            let bits = |row: Option<Row>| row.map(|(score, ..)| score.to_bits());
            assert_eq!((fast, bits(fast)), (slow, bits(slow)), "{text}");
        }
        slow
    }

    fn check(number: &str, member: u8) -> bool {
        let Some((score, inside, length)) = read(&format!("{number},{member}\n")) else {
            return false;
        };
        let expected: f64 = number.parse().unwrap_or(f64::NAN);
        assert_eq!(score.to_bits(), expected.to_bits(), "{number}");
        assert_eq!((inside, length), (member == 1, number.len() + 3), "{number}");
        true
    }

    /// A row is read with the bits of the standard library, or left to others.
    #[test]
    fn the_bits_are_those_of_the_standard_library() {
        let mut dice = Dice::new(21);
        let (mut taken, mut all) = (0, 0);
        for digits in 8..=18_usize {
            for turn in 0..20_000_u32 {
                let fraction = dice.below(10_u64.pow(digits as u32));
                // Small ones too: zeros behind the point.
                let fraction = fraction / 10_u64.pow(turn % 7 * (turn % 2));
                let lead = dice.below(10) * u64::from(turn % 3 != 0);
                let sign = if dice.below(2) == 0 { "" } else { "-" };
                let text = format!("{sign}{lead}.{fraction:0digits$}");
                all += 1;
                taken += u32::from(check(&text, (turn & 1) as u8));
            }
        }
        assert!(taken < all && taken > all - all / 100, "{taken} of {all}");
    }

    /// What programs print: the shortest text that reads back as the same double.
    #[test]
    fn printed_doubles_come_back() {
        let mut dice = Dice::new(22);
        let (mut taken, all) = (0, 300_000);
        for _ in 0..all {
            let uniform = (dice.next() >> 11) as f64 / (1_u64 << 53) as f64;
            taken += u32::from(check(&format!("{}", 20.0 * uniform - 10.0), 1));
        }
        assert!(taken > all - all / 50, "{taken} of {all}");
    }

    #[test]
    fn what_is_no_such_row_is_left_alone() {
        for text in [
            "",
            "\n",
            "1.2345678,1\n",
            "12.345678901,1\n",
            "1,1\n",
            ".123456789,1\n",
            "-.123456789,1\n",
            "--1.123456789,1\n",
            "+1.123456789,1\n",
            "0.00000000000,1\n",
            "1.1234567890123456789,1\n",
            "1.12345678901234567890123456789,1\n",
            "1.123456789e5,1\n",
            "1.123456789,2\n",
            "1.123456789,/\n",
            "1.123456789,1\r\n",
            "1.123456789,1,1\n",
            "1.123456789, 1\n",
            "1.123456789\n",
            "1.12345678\u{b2}9,1\n",
            "1.123456789012345\u{b2},1\n",
            "1.123456789nan,1\n",
            "nan,1\n",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        // Too near to the buffer's end.
        assert_eq!(row(Words, b"1.123456789,1\n"), None);
    }

    #[test]
    fn rows_go_to_their_sides() {
        let text = format!("0.123456789,1\n-1.123456789,0\n0.223456789,1\n5,1\n{:60}", "");
        let (mut members, mut nonmembers) = ([0.0; 4], [0.0; 4]);
        let taken = take(text.as_bytes(), &mut members, &mut nonmembers);
        assert_eq!(taken, (14 + 15 + 14, 2, 1));
        assert_eq!(members[..2], [0.123456789, 0.223456789]);
        assert_eq!(nonmembers[..1], [-1.123456789]);
        // Where a side is full, the rest is left.
        assert_eq!(take(text.as_bytes(), &mut members[..1], &mut nonmembers).1, 1);
    }
}
