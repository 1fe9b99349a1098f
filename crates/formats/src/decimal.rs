//! Decimal numbers from text, correctly rounded, for the shape that almost all scores have:
//! an optional minus, digits, perhaps a point and more digits, nineteen digits in all. Anything
//! else is left to a general parser, which gives the same bits several times as slowly.
//!
//! **Digits** are read eight at a time: the first byte that is none is found in a 64-bit word, the
//! digits before it are shifted to the word's end, and three multiplications add them up.
//!
//! **Rounding.** The digits are an integer w < 10^19, and the number is w / 10^k. With up to 15
//! digits both are doubles, and their quotient is rounded once. Otherwise let W be w shifted up to
//! 64 bits and R = floor(2^s / 10^k) with 64 significant bits. Then W R is at most the true quotient
//! (scaled by a power of two) and falls short of it by less than W < 2^64. So the upper 64 bits of
//! W R are those of the truth or one less: ten or eleven of them are beyond the 53 that are
//! kept, and the rounding is known unless these are next to a midpoint. Then, twice in a thousand
//! numbers, the general parser decides.

/// 10^k.
const TENS: [u64; 20] = {
    let mut tens = [1_u64; 20];
    let mut place = 1;
    while place < 20 {
        tens[place] = tens[place - 1] * 10;
        place += 1;
    }
    tens
};

/// floor(2^s / 10^k) in [2^63, 2^64), and s; k is at most 19.
pub(crate) const fn reciprocal(k: usize) -> (u64, u64) {
    if k == 0 {
        return (1 << 63, 63);
    }
    let ten = TENS[k] as u128;
    // 10^k is not a power of two, so this many bits more make 64 of the quotient.
    let s = 63 + (128 - ten.leading_zeros());
    // 2^s = 2^64 2^(s - 64), divided in two steps.
    let upper = (1_u128 << (s - 32)) / ten;
    let rest = (1_u128 << (s - 32)) % ten;
    let quotient = (upper << 32) + (rest << 32) / ten;
    (quotient as u64, s as u64)
}

const RECIPROCALS: [(u64, u64); 20] = {
    let mut table = [(0, 0); 20];
    let mut place = 0;
    while place < 20 {
        table[place] = reciprocal(place);
        place += 1;
    }
    table
};

const MOST_DIGITS: usize = 19;

/// The bytes that the fast way may look at.
const WINDOW: usize = 1 + 7 + 1 + 24;

/// The number at the start of a cell that a comma ends, and its length.
///
/// ```
/// assert_eq!(formats::decimal::at(b"-0.25,1\n"), Some((-0.25, 5)));
/// assert_eq!(formats::decimal::at(b"1e-3,0\n"), Some((1e-3, 4)));
/// assert_eq!(formats::decimal::at(b"score,0\n"), None);
/// ```
#[inline]
pub fn at(bytes: &[u8]) -> Option<(f64, usize)> {
    match plain(bytes) {
        Some((number, length)) if bytes.get(length) == Some(&b',') => Some((number, length)),
        _ => fast_float2::parse_partial::<f64, _>(bytes).ok(),
    }
}

/// The number that a cell is, blanks around it left aside.
///
/// ```
/// assert_eq!(formats::decimal::of(b" 0.5 "), Some(0.5));
/// assert_eq!(formats::decimal::of(b"0.5x"), None);
/// ```
pub fn of(cell: &[u8]) -> Option<f64> {
    let parse = |cell: &[u8]| fast_float2::parse::<f64, _>(cell).ok();
    parse(cell).or_else(|| parse(cell.trim_ascii()))
}

/// The number at the start of `bytes` and its length; `None` where the general parser must look.
/// What follows is not looked at: an exponent, say, is for the caller to refuse.
#[inline(always)]
fn plain(bytes: &[u8]) -> Option<(f64, usize)> {
    let window = bytes.first_chunk::<WINDOW>()?;
    let negative = window[0] == b'-';
    let start = usize::from(negative);
    let (mut digits, whole) = match window[start].wrapping_sub(b'0') {
        digit @ 0..=9 if window[start + 1] == b'.' => (u64::from(digit), 1),
        _ => leading(word(window, start)?),
    };
    if whole == 0 || whole == 8 {
        return None;
    }
    let mut end = start + whole;
    let mut after_point = 0;
    if window[end] == b'.' {
        end += 1;
        let (value, count) = leading(word(window, end)?);
        digits = digits.wrapping_mul(TENS[count]).wrapping_add(value);
        after_point = count;
        if count == 8 {
            // Whether seven, eight or nine more follow is a toss-up, so nothing branches on it.
            let (value, count) = leading(word(window, end + 8)?);
            digits = digits.wrapping_mul(TENS[count]).wrapping_add(value);
            let (value, more) = leading_two(&window[end + 16..], count == 8)?;
            digits = digits.wrapping_mul(TENS[more]).wrapping_add(value);
            after_point += count + more;
            if whole + after_point > MOST_DIGITS {
                return None;
            }
        }
        end += after_point;
    }
    let size = quotient(digits, whole + after_point, after_point)?;
    Some((f64::from_bits(size.to_bits() | u64::from(negative) << 63), end))
}

/// As [`leading`], of the last digits that there is room for; `None` where a third follows.
#[inline(always)]
fn leading_two(bytes: &[u8], wanted: bool) -> Option<(u64, usize)> {
    let [one, two, three] = *bytes.first_chunk::<3>()?;
    let digit = |byte: u8| byte.wrapping_sub(b'0');
    let first = wanted & (digit(one) <= 9);
    let second = first & (digit(two) <= 9);
    if second && digit(three) <= 9 {
        return None;
    }
    let head = u64::from(digit(one)) & u64::from(first).wrapping_neg();
    let tail = u64::from(digit(two)) & u64::from(second).wrapping_neg();
    let more = usize::from(first) + usize::from(second);
    Some((if second { 10 * head + tail } else { head }, more))
}

#[inline(always)]
fn word(window: &[u8; WINDOW], start: usize) -> Option<u64> {
    window.get(start..)?.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes))
}

/// The value and the number of the digits at the start of eight bytes.
#[inline(always)]
fn leading(word: u64) -> (u64, usize) {
    // Digits become 0..=9; adding six lifts everything from 10 to 15 into the upper four bits. A
    // carry only spoils bytes behind the first that is no digit.
    let values = word ^ 0x3030_3030_3030_3030;
    let others = (values.wrapping_add(0x0606_0606_0606_0606) | values) & 0xf0f0_f0f0_f0f0_f0f0;
    let count = (others.trailing_zeros() / 8) as usize;
    let half = 4 * (8 - count);
    // Zeros in front; in two halves, because a shift by 64 is none.
    let digits = (values << half) << half;
    (eight_digits(digits), count)
}

/// The number that eight digits (0 to 9, the first in the lowest byte) make.
#[inline(always)]
pub(crate) fn eight_digits(digits: u64) -> u64 {
    const BYTES: u64 = 0x0000_00ff_0000_00ff;
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let outer = (pairs & BYTES).wrapping_mul(100 + (1_000_000 << 32));
    let inner = ((pairs >> 16) & BYTES).wrapping_mul(1 + (10_000 << 32));
    outer.wrapping_add(inner) >> 32
}

/// w / 10^k to the nearest double, w of this many digits; `None` when it is too near to a midpoint
/// to tell.
#[inline(always)]
fn quotient(w: u64, digits: usize, k: usize) -> Option<f64> {
    if digits <= 15 || w == 0 {
        // Below 2^53, and powers of ten up to 10^22 are doubles.
        return Some(w as i64 as f64 / TENS[k] as i64 as f64);
    }
    let (reciprocal, s) = RECIPROCALS[k];
    let lead = w.leading_zeros();
    // A product of 64-bit numbers in 128 bits, where nothing can overflow.
    let product = u128::from(w << lead).wrapping_mul(u128::from(reciprocal));
    // In [2^62, 2^64): ten or eleven bits are left over.
    let upper = (product >> 64) as u64;
    let shift = 10 + (upper >> 63);
    let kept = upper >> shift;
    let (rest, half) = (upper & ((1 << shift) - 1), 1_u64 << (shift - 1));
    if rest.wrapping_sub(half - 1) <= 1 {
        return None;
    }
    // kept 2^(shift + 64 - s - lead), kept in [2^52, 2^53]: its upper bit adds one to the exponent,
    // and so does a carry out of rounding, as it should.
    let exponent = 1022 + 52 + shift + 64 - s - u64::from(lead);
    Some(f64::from_bits((exponent << 52) + kept + u64::from(rest > half)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;

    fn check(text: &str) -> bool {
        let padded = format!("{text},1\n{}", "0".repeat(WINDOW));
        match plain(padded.as_bytes()) {
            Some((value, length)) => {
                let expected: f64 = text.parse().unwrap_or(f64::NAN);
                assert_eq!(value.to_bits(), expected.to_bits(), "{text}");
                assert_eq!(length, text.len(), "{text}");
                true
            }
            None => false,
        }
    }

    /// Against the standard library, on every length before and after the point.
    #[test]
    fn the_bits_are_those_of_the_standard_library() {
        let mut dice = Dice::new(11);
        let (mut taken, mut all) = (0, 0);
        for whole in 1..=7_usize {
            for after in 0..=(19 - whole) {
                for _ in 0..400 {
                    let number = dice.below(TENS[whole + after]);
                    let (left, right) = (number / TENS[after], number % TENS[after]);
                    let sign = if number.is_multiple_of(2) { "-" } else { "" };
                    let text = if after == 0 {
                        format!("{sign}{left}")
                    } else {
                        format!("{sign}{left}.{right:0after$}")
                    };
                    all += 1;
                    taken += u32::from(check(&text));
                }
            }
        }
        // Some of the long ones are next to a midpoint.
        assert!(taken < all && taken > all - all / 200, "{taken} of {all}");
    }

    /// What programs print: the shortest text that reads back as the same double.
    #[test]
    fn printed_doubles_come_back() {
        let mut dice = Dice::new(12);
        for _ in 0..50_000 {
            let uniform = (dice.next() >> 11) as f64 / (1_u64 << 53) as f64;
            check(&format!("{}", 20.0 * uniform - 10.0));
            check(&format!("{:.17}", uniform));
        }
    }

    /// Numbers half-way between two doubles, and their neighbours, must not be rounded twice.
    #[test]
    fn midpoints_are_left_to_the_general_parser_or_right() {
        for text in [
            "9007199254740993",
            "9007199254740992",
            "9007199254740995",
            "900719925474099.3",
            "0.5000000000000000555",
            "1.000000000000000111",
            "1.000000000000000112",
            "4503599627370497.5",
            "2251799813685249.25",
            "1125899906842624.125",
            "1.0000000000000001",
            "9999999.999999999999",
            "0.0000000000000000001",
        ] {
            check(text);
        }
        for step in 0..2000_u64 {
            // (2^53 + 2 step + 1) / 2 is a midpoint of doubles with 54 bits.
            let odd = (1 << 53) + 2 * step + 1;
            check(&format!("{}.5", odd / 2));
            check(&format!("{odd}"));
        }
    }

    #[test]
    fn other_shapes_are_left_alone() {
        for text in
            ["", "-", ".5", "inf", "nan", "12345678", "12345678.5", "1.23456789012345678901"]
        {
            assert!(!check(text), "{text}");
        }
        // The exponent is not part of it: the caller sees that no comma follows.
        let text = format!("1.5e3,1\n{}", "0".repeat(WINDOW));
        assert_eq!(plain(text.as_bytes()), Some((1.5, 3)));
        assert_eq!(plain(b"1.5,1\n"), None);
    }
}
