//! Numbers with a mantissa of N words of 64 bits and an exponent that does not run out.
//!
//! A number is `± 0.m * 2^exponent`, `m` the words read as one fraction in [1/2, 1), or zero.
//! **Every operation here cuts off towards zero and is off by less than one unit in the last
//! place of its result, 2^(exponent - 64 N)**, except where it says that it is exact.
//! [`Float::unit`] is twice that, which the balls add to their radius.

use super::magnitude::Magnitude;
use std::cmp::Ordering;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Float<const N: usize> {
    negative: bool,
    exponent: i64,
    /// Lowest word first; the highest bit of the last word is set unless the number is zero.
    words: [u64; N],
}

/// Words for products and sums.
type Buffer<const N: usize> = [[u64; N]; 2];

/// |x| = mantissa * 2^exponent, exactly, for a finite x.
pub(super) fn parts(x: f64) -> (u64, i64) {
    let bits = x.to_bits();
    let (field, fraction) = ((bits >> 52) & 0x7ff, bits & ((1 << 52) - 1));
    if field == 0 { (fraction, -1074) } else { (fraction | (1 << 52), field as i64 - 1075) }
}

impl<const N: usize> Float<N> {
    pub const ZERO: Self = Self { negative: false, exponent: 0, words: [0; N] };
    pub const BITS: i64 = 64 * N as i64;

    pub fn is_zero(&self) -> bool {
        self.words[N - 1] == 0
    }

    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// |self| < 2^exponent, and at least half of that.
    pub fn exponent(&self) -> i64 {
        self.exponent
    }

    /// A bound on the error of an operation that gave this result.
    pub fn unit(&self) -> Magnitude {
        if self.is_zero() {
            return Magnitude::ZERO;
        }
        Magnitude::power_of_two(self.exponent - Self::BITS + 1)
    }

    /// Exact: a word fits into the mantissa.
    pub fn from_u64(x: u64) -> Self {
        Self::from_parts(false, x, 0)
    }

    /// Exact, for finite numbers.
    pub fn from_f64(x: f64) -> Self {
        let (mantissa, exponent) = parts(x);
        Self::from_parts(x < 0.0, mantissa, exponent)
    }

    /// Exact.
    pub fn from_magnitude(x: Magnitude) -> Self {
        let (mantissa, exponent) = x.raw();
        Self::from_parts(false, mantissa, exponent)
    }

    fn from_parts(negative: bool, mantissa: u64, exponent: i64) -> Self {
        if mantissa == 0 {
            return Self::ZERO;
        }
        let shift = mantissa.leading_zeros();
        let mut words = [0; N];
        words[N - 1] = mantissa << shift;
        Self { negative, exponent: exponent + 64 - i64::from(shift), words }
    }

    /// The first words (highest first) of a fraction in [1/2, 1), cut off.
    pub(super) fn from_fraction(highest_first: &[u64], exponent: i64) -> Self {
        let mut words = [0; N];
        for (word, given) in words.iter_mut().rev().zip(highest_first) {
            *word = *given;
        }
        Self { negative: false, exponent, words }
    }

    /// At least |self|.
    pub fn above(&self) -> Magnitude {
        if self.is_zero() {
            return Magnitude::ZERO;
        }
        // Whatever the lower words hold is less than one unit of the upper 33 bits.
        Magnitude::above((self.words[N - 1] >> 31) + 1, self.exponent - 33)
    }

    /// At most |self|, as a magnitude's exact value.
    pub fn below(&self) -> Magnitude {
        if self.is_zero() {
            return Magnitude::ZERO;
        }
        Magnitude::above(self.words[N - 1] >> 33, self.exponent - 31)
    }

    /// Exact.
    pub fn negated(mut self) -> Self {
        self.negative = !self.negative && !self.is_zero();
        self
    }

    /// Exact.
    pub fn absolute(mut self) -> Self {
        self.negative = false;
        self
    }

    /// self * 2^power, exact.
    pub fn scaled(mut self, power: i64) -> Self {
        if !self.is_zero() {
            self.exponent += power;
        }
        self
    }

    /// Comparison of |self| and |other|, exact.
    pub fn compare_absolute(&self, other: &Self) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self
                .exponent
                .cmp(&other.exponent)
                .then_with(|| self.words.iter().rev().cmp(other.words.iter().rev())),
        }
    }

    /// Exact.
    pub fn compare(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.compare_absolute(other),
            (true, true) => other.compare_absolute(self),
        }
    }

    pub fn times(&self, other: &Self) -> Self {
        if self.is_zero() || other.is_zero() {
            return Self::ZERO;
        }
        let mut product: Buffer<N> = [[0; N]; 2];
        let product = product.as_flattened_mut();
        for i in 0..N {
            let mut carry = 0u128;
            for j in 0..N {
                let sum = u128::from(self.words[i]) * u128::from(other.words[j])
                    + u128::from(product[i + j])
                    + carry;
                product[i + j] = sum as u64;
                carry = sum >> 64;
            }
            product[i + N] = carry as u64;
        }
        // The product of two fractions in [1/2, 1) lies in [1/4, 1).
        let mut words = [0; N];
        let low = product[2 * N - 1] >> 63 == 0;
        for i in 0..N {
            words[i] = if low {
                (product[N + i] << 1) | (product[N + i - 1] >> 63)
            } else {
                product[N + i]
            };
        }
        Self {
            negative: self.negative != other.negative,
            exponent: self.exponent + other.exponent - i64::from(low),
            words,
        }
    }

    pub fn plus(&self, other: &Self) -> Self {
        if other.is_zero() {
            return *self;
        }
        if self.is_zero() {
            return *other;
        }
        if self.negative == other.negative {
            let (large, small) =
                if self.exponent >= other.exponent { (self, other) } else { (other, self) };
            return large.plus_same_sign(small);
        }
        match self.compare_absolute(other) {
            Ordering::Equal => Self::ZERO,
            Ordering::Greater => self.minus_smaller(other),
            Ordering::Less => other.minus_smaller(self),
        }
    }

    pub fn minus(&self, other: &Self) -> Self {
        self.plus(&other.negated())
    }

    /// The words shifted down by `by` bits into N + 1 words, the lowest of which holds the first 64
    /// bits that would be lost.
    fn shifted_down(&self, by: u64) -> Buffer<N> {
        let mut out: Buffer<N> = [[0; N]; 2];
        let (whole, bits) = ((by / 64) as usize, (by % 64) as u32);
        if whole > N {
            return out;
        }
        // In N + 1 words the number starts at word 1.
        for (i, word) in out.as_flattened_mut().iter_mut().enumerate().take(N + 1) {
            let read = |index: usize| {
                if (1..=N).contains(&index) { self.words[index - 1] } else { 0 }
            };
            let low = read(i + whole);
            let high = read(i + whole + 1);
            *word = if bits == 0 { low } else { (low >> bits) | (high << (64 - bits)) };
        }
        out
    }

    /// `self` has the larger exponent. What is shifted out is less than a unit of `self`; a carry
    /// loses half a unit of the result more, and makes the first loss half a unit too.
    fn plus_same_sign(&self, small: &Self) -> Self {
        let gap = (self.exponent - small.exponent) as u64;
        if gap > Self::BITS as u64 {
            return *self;
        }
        let shifted = small.shifted_down(gap);
        let shifted = shifted.as_flattened();
        let mut words = [0; N];
        let mut carry = false;
        for i in 0..N {
            let (sum, first) = self.words[i].overflowing_add(shifted[i + 1]);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            words[i] = sum;
            carry = first || second;
        }
        let mut exponent = self.exponent;
        if carry {
            for i in 0..N {
                let above = if i + 1 < N { words[i + 1] } else { 1 };
                words[i] = (words[i] >> 1) | (above << 63);
            }
            exponent += 1;
        }
        Self { negative: self.negative, exponent, words }
    }

    /// |self| > |other|, opposite signs. With a gap of at most 64 bits the difference is exact in
    /// N + 1 words and cut off once. With a larger gap the result has at most one bit fewer than
    /// `self`, and what was shifted out is below 2^-63 of its unit: less than 2 units in all.
    fn minus_smaller(&self, other: &Self) -> Self {
        let gap = (self.exponent - other.exponent) as u64;
        if gap > Self::BITS as u64 + 1 {
            return *self;
        }
        let shifted = other.shifted_down(gap);
        let shifted = shifted.as_flattened();
        let mut difference: Buffer<N> = [[0; N]; 2];
        let difference = difference.as_flattened_mut();
        let mut borrow = false;
        for i in 0..=N {
            let own = if i == 0 { 0 } else { self.words[i - 1] };
            let (rest, first) = own.overflowing_sub(shifted[i]);
            let (rest, second) = rest.overflowing_sub(u64::from(borrow));
            difference[i] = rest;
            borrow = first || second;
        }
        let Some(top) = (0..=N).rev().find(|i| difference[*i] != 0) else { return Self::ZERO };
        let bits = difference[top].leading_zeros();
        let moved = (N - top) * 64 + bits as usize;
        let mut words = [0; N];
        for (i, word) in words.iter_mut().enumerate() {
            // Word i of the result is word i + 1 - (N - top) of the difference, shifted up.
            let index = i as i64 + 1 - (N - top) as i64;
            let read = |k: i64| if k >= 0 { difference[k as usize] } else { 0 };
            let (own, lower) = (read(index), read(index - 1));
            *word = if bits == 0 { own } else { (own << bits) | (lower >> (64 - bits)) };
        }
        Self { negative: self.negative, exponent: self.exponent - moved as i64, words }
    }

    /// The nearest double or a neighbour of it; 0 or infinite where the exponent runs out.
    pub fn to_f64(&self) -> f64 {
        if self.is_zero() {
            return 0.0;
        }
        let size = match self.exponent {
            ..-1080 => 0.0,
            1025.. => f64::INFINITY,
            // In two factors, so that neither runs out before the product does.
            exponent => {
                let half = exponent / 2;
                let mantissa = self.words[N - 1] as f64 * (-64f64).exp2();
                mantissa * (half as f64).exp2() * ((exponent - half) as f64).exp2()
            }
        };
        if self.negative { -size } else { size }
    }

    /// floor(self + 1/2) for |self| < 2^62, to within one: good enough to reduce an argument.
    pub fn rounded(&self) -> i64 {
        if self.is_zero() || self.exponent < 0 {
            return 0;
        }
        let exponent = self.exponent.min(62);
        let half_up = (self.words[N - 1] >> (63 - exponent)).wrapping_add(1) >> 1;
        if self.negative { -(half_up as i64) } else { half_up as i64 }
    }

    /// |self| * 2^(64 N - guard), cut off to an integer, and the sign; for |self| < 2^guard.
    pub(super) fn fraction_words(&self, guard: i64) -> (bool, [u64; N]) {
        let by = guard - self.exponent;
        if self.is_zero() || by < 0 {
            return (false, [0; N]);
        }
        let shifted = self.shifted_down(by.min(Self::BITS + 64) as u64);
        let mut words = [0; N];
        words.copy_from_slice(&shifted.as_flattened()[1..=N]);
        (self.negative, words)
    }

    /// The words as hexadecimal digits, sign and exponent: an exact record.
    pub fn hexadecimal(&self) -> String {
        let digits: String = self.words.iter().rev().map(|word| format!("{word:016x}")).collect();
        format!("{}0x0.{digits}p{}", if self.negative { "-" } else { "" }, self.exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small generator of words with many leading or trailing ones and zeros.
    struct Words(u64);

    impl Words {
        fn next(&mut self) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let word = self.0 ^ (self.0 >> 29);
            match word % 5 {
                0 => word >> (self.0 >> 58),
                1 => u64::MAX << (self.0 >> 58),
                2 => u64::MAX >> (self.0 >> 58),
                _ => word,
            }
        }

        fn float<const N: usize>(&mut self, spread: i64) -> Float<N> {
            let mut words = [0; N];
            for word in &mut words {
                *word = self.next();
            }
            words[N - 1] |= 1 << 63;
            let exponent = (self.next() % (2 * spread as u64 + 1)) as i64 - spread;
            Float { negative: self.next().is_multiple_of(2), exponent, words }
        }
    }

    fn widen(x: &Float<2>) -> Float<6> {
        let mut words = [0; 6];
        words[4..].copy_from_slice(&x.words);
        Float { negative: x.negative, exponent: x.exponent, words }
    }

    /// In six words sums and products of two-word numbers with near exponents are exact, so the
    /// error of two words can be looked at.
    #[test]
    fn operations_are_off_by_less_than_two_units() {
        let mut source = Words(7);
        for round in 0..200_000 {
            let spread = if round % 2 == 0 { 3 } else { 100 };
            let (a, b): (Float<2>, Float<2>) = (source.float(spread), source.float(spread));
            let check = |narrow: Float<2>, exact: Float<6>, name: &str| {
                let error = widen(&narrow).minus(&exact);
                let unit = Float::<6>::from_magnitude(narrow.unit());
                assert!(
                    error.is_zero() || error.compare_absolute(&unit) == Ordering::Less,
                    "{name} {a:?} {b:?}"
                );
            };
            check(a.times(&b), widen(&a).times(&widen(&b)), "times");
            check(a.plus(&b), widen(&a).plus(&widen(&b)), "plus");
            check(a.minus(&b), widen(&a).minus(&widen(&b)), "minus");
        }
    }

    /// Integers of at most 62 bits against the machine's own arithmetic.
    #[test]
    fn small_integers_are_exact() {
        let mut source = Words(11);
        for _ in 0..20_000 {
            let (a, b) = ((source.next() >> 33) as i64, (source.next() >> 33) as i64);
            let float = |x: i64| {
                let size = Float::<2>::from_u64(x.unsigned_abs());
                if x < 0 { size.negated() } else { size }
            };
            assert_eq!(float(a).plus(&float(b)), float(a + b));
            assert_eq!(float(a).minus(&float(b)), float(a - b));
            assert_eq!(float(a).times(&float(b)), float(a * b));
            assert_eq!(float(a - b).to_f64(), (a - b) as f64);
            assert_eq!(float(a - b).rounded(), a - b);
        }
        assert_eq!(Float::<2>::from_f64(-0.1).to_f64(), -0.1);
        assert_eq!(Float::<3>::from_f64(f64::MIN_POSITIVE / 8.0).to_f64(), f64::MIN_POSITIVE / 8.0);
        assert_eq!(Float::<2>::from_f64(2.5).rounded(), 3);
        assert_eq!(Float::<2>::from_f64(-2.4).rounded(), -2);
        assert_eq!(Float::<2>::from_f64(0.4).rounded(), 0);
    }

    #[test]
    fn magnitudes_enclose() {
        let mut source = Words(13);
        for _ in 0..10_000 {
            let a: Float<3> = source.float(100);
            let (above, below) = (a.above(), a.below());
            assert_ne!(a.compare_absolute(&Float::from_magnitude(above)), Ordering::Greater);
            assert_ne!(a.compare_absolute(&Float::from_magnitude(below)), Ordering::Less);
        }
    }
}
