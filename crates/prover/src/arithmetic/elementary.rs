//! Exponential, logarithm, sine and cosine of real balls, pi and ln 2.
//!
//! Series are summed by Horner's rule in [`Float`], whose operations cut off. **Rounding of a
//! Horner sum.** Let p_j = c_j + r p_{j+1} with |r| <= 1, |c_j| <= 1, |p_j| < 2 and c_j known to
//! a unit. A step adds at most: the product's error, 2^(2-B); the sum's, 2^(2-B); the
//! coefficient's, 2^(1-B), B the bits of a mantissa. Errors of earlier steps are multiplied by |r|.
//! So the whole is off by less than 10 * 2^-B / (1 - |r|); below |r| is at most 0.63, and 2^(5-B)
//! is stated.

use super::ball::Ball;
use super::float::Float;
use super::magnitude::Magnitude;
use std::cmp::Ordering;
use std::sync::OnceLock;

/// Words of tabled numbers: one more than mantissas have at most.
const WORDS: usize = 9;

/// ln 2, first 576 bits.
const LN_2: [u64; WORDS] = [
    0xb17217f7d1cf79ab,
    0xc9e3b39803f2f6af,
    0x40f343267298b62d,
    0x8a0d175b8baafa2b,
    0xe7b876206debac98,
    0x559552fb4afa1b10,
    0xed2eae35c1382144,
    0x27573b291169b825,
    0x3e96ca16224ae8c5,
];

/// pi/4, first 576 bits.
const QUARTER_PI: [u64; WORDS] = [
    0xc90fdaa22168c234,
    0xc4c6628b80dc1cd1,
    0x29024e088a67cc74,
    0x020bbea63b139b22,
    0x514a08798e3404dd,
    0xef9519b3cd3a431b,
    0x302b0a6df25f1437,
    0x4fe1356d6d51c245,
    0xe485b576625e7ec6,
];

/// Words of 1/n!, and the exponent; cut off, with an error far below the words ever used.
struct Inverse {
    highest_first: [u64; WORDS],
    exponent: i64,
}

const FACTORIALS: usize = 110;

/// 1 = 0.5 * 2.
const ONE: Inverse = {
    let mut highest_first = [0; WORDS];
    highest_first[0] = 1 << 63;
    Inverse { highest_first, exponent: 1 }
};

fn inverse_factorials() -> &'static [Inverse] {
    static TABLE: OnceLock<Vec<Inverse>> = OnceLock::new();
    TABLE.get_or_init(|| {
        // A hundred divisions are off by far less than the 2^-512 that a mantissa of eight words
        // could notice.
        let mut all = vec![ONE];
        for n in 1..FACTORIALS as u64 {
            let next = divided(&all[all.len() - 1], n);
            all.push(next);
        }
        all
    })
}

/// 1/n for 0 < n < 1024, from a table.
pub(super) fn inverse<const N: usize>(n: u64) -> Ball<N> {
    static TABLE: OnceLock<Vec<Inverse>> = OnceLock::new();
    let table = TABLE.get_or_init(|| (0..1024u64).map(|n| divided(&ONE, n.max(1))).collect());
    match table.get(n as usize) {
        Some(entry) if n > 0 => {
            Ball::rounded(Float::from_fraction(&entry.highest_first, entry.exponent))
        }
        _ => Ball::from_u64(n).reciprocal(),
    }
}

/// A tabled number divided by n, cut off by less than 2^-575 of itself.
fn divided(number: &Inverse, n: u64) -> Inverse {
    let (mut words, mut rest) = ([0u64; WORDS + 2], 0u128);
    for (i, word) in words.iter_mut().enumerate() {
        let given = number.highest_first.get(i).copied().unwrap_or(0);
        let value = (rest << 64) | u128::from(given);
        *word = (value / u128::from(n)) as u64;
        rest = value % u128::from(n);
    }
    let shift = words[0].leading_zeros();
    let mut highest_first = [0; WORDS];
    for (i, word) in highest_first.iter_mut().enumerate() {
        *word = if shift == 0 {
            words[i]
        } else {
            (words[i] << shift) | (words[i + 1] >> (64 - shift))
        };
    }
    Inverse { highest_first, exponent: number.exponent - i64::from(shift) }
}

fn inverse_factorial<const N: usize>(n: usize) -> Float<N> {
    let entry = &inverse_factorials()[n];
    Float::from_fraction(&entry.highest_first, entry.exponent)
}

/// Sizes of arguments for which series are summed.
#[derive(Clone, Copy)]
enum Size {
    /// 2^-6.
    Tiny,
    /// 2^-5.
    Small,
    /// 0.8.
    Turn,
}

/// The first n with size^n / n! < 2^(-BITS - 4).
fn terms<const N: usize>(size: Size) -> usize {
    static TABLE: OnceLock<[[usize; 3]; WORDS]> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        std::array::from_fn(|words| [-6.0, -5.0, -0.32].map(|order| count_terms(words, order)))
    });
    table[N][size as usize]
}

fn count_terms(words: usize, order: f64) -> usize {
    let mut log_factorial = 0.0;
    for n in 1..FACTORIALS {
        log_factorial += (n as f64).log2();
        if n as f64 * order - log_factorial < -(64.0 * words as f64) - 4.0 {
            return n;
        }
    }
    FACTORIALS - 1
}

impl<const N: usize> Ball<N> {
    pub fn ln_2() -> Self {
        Self::rounded(Float::from_fraction(&LN_2, 0))
    }

    pub fn pi() -> Self {
        Self::rounded(Float::from_fraction(&QUARTER_PI, 2))
    }

    /// |e^x - e^mid| <= e^mid (e^radius - 1), and e^radius - 1 <= 2 radius for radius <= 1. A wider
    /// ball becomes [0, e^upper].
    pub fn exponential(self) -> Self {
        if !self.is_finite() || self.mid.exponent() > 54 {
            return if self.is_finite() && self.is_negative() {
                // At most e^(-2^50).
                Self::up_to(Magnitude::power_of_two(-(1 << 50)))
            } else {
                Self::everything()
            };
        }
        let point = exponential_of_point(&self.mid);
        if self.radius.is_zero() {
            return point;
        }
        if self.radius <= Magnitude::power_of_two(0) {
            return point.widened(point.above().times(self.radius).scaled(1));
        }
        let upper = self.upper();
        let highest = upper.mid.plus(&Float::from_magnitude(upper.radius).scaled(1));
        if highest.exponent() > 54 && !highest.is_negative() {
            return Self::everything();
        }
        Self::up_to(exponential_of_point(&highest).above())
    }

    /// e^x - 1, of which small x keep their digits.
    pub fn exponential_minus_one(self) -> Self {
        if self.above() >= Magnitude::power_of_two(-6) {
            return self.exponential() - Self::one();
        }
        // x (1 + x/2 + x^2/6 + ...).
        let mut sum = Self::ZERO;
        let last = terms::<N>(Size::Tiny) + 1;
        for n in (1..=last).rev() {
            sum = sum * self + Self::rounded(inverse_factorial(n));
        }
        let size = self.above();
        // What was left out, relative to x: below twice its first term, 2^(-6 last) / (last + 1)!.
        let rest = inverse_factorial::<N>(last + 1).above().scaled(1 - 6 * last as i64).times(size);
        (sum * self).widened(rest)
    }

    /// The logarithm of a ball of positive members. With y close to ln mid and z = mid e^-y,
    /// ln mid = y + 2 artanh((z-1)/(z+1)).
    pub fn logarithm(self) -> Self {
        if !self.is_positive() || !self.is_finite() {
            return Self::everything();
        }
        // x in [1/sqrt 2, sqrt 2), so that numbers close to 1 keep their digits.
        let mut power = self.mid.exponent();
        let mut fraction = self.mid.scaled(-power);
        if fraction.to_f64() < std::f64::consts::FRAC_1_SQRT_2 {
            fraction = fraction.scaled(1);
            power -= 1;
        }
        let guess = Float::from_f64(fraction.to_f64().ln());
        let z = if guess.is_zero() {
            Self::exact(fraction)
        } else {
            Self::exact(fraction) * exponential_of_point(&guess.negated())
        };
        let w = (z - Self::one()).over(z + Self::one());
        let square = w.squared();
        let bound = square.above();
        // 2 w (1 + w^2/3 + w^4/5 + ...): after n terms less than w^(2n) is left, relative to w.
        let (mut sum, mut term, mut odd) = (Self::one(), Self::one(), 3);
        while bound.times(term.above()).order() > -Float::<N>::BITS {
            term = term * square;
            sum = sum + term.over_u64(odd);
            odd += 2;
            if odd > 400 {
                return Self::everything();
            }
        }
        let rest = term.above().times(bound).times(w.above()).scaled(1);
        let near = (w * sum).scaled(1).widened(rest);
        let mut result = Self::exact(guess) + near;
        if power != 0 {
            let size = Self::ln_2().times_u64(power.unsigned_abs());
            result = if power < 0 { result - size } else { result + size };
        }
        if self.radius.is_zero() {
            return result;
        }
        result.widened(self.radius.over(self.below()))
    }

    /// (cosine, sine). Both have slope at most 1.
    pub fn cosine_sine(self) -> (Self, Self) {
        let everywhere = Self { mid: Float::ZERO, radius: Magnitude::power_of_two(0) };
        if !self.is_finite() || self.mid.exponent() > 54 {
            return (everywhere, everywhere);
        }
        let half_pi = Self::pi().scaled(-1);
        let turns = (self.mid.times(&Float::from_f64(std::f64::consts::FRAC_2_PI))).rounded();
        let multiple = half_pi.times_u64(turns.unsigned_abs());
        let rest = if turns < 0 {
            Self::exact(self.mid) + multiple
        } else {
            Self::exact(self.mid) - multiple
        };
        // |rest| <= pi/4 + a rounding: its square is below 0.63. Checked: the turns are a guess.
        if rest.mid.absolute().compare(&Float::from_f64(0.79)) == Ordering::Greater {
            return (everywhere, everywhere);
        }
        let (cosine, sine) = near_zero(&rest.mid);
        let moved = rest.radius.plus(self.radius);
        let (cosine, sine) = (cosine.widened(moved), sine.widened(moved));
        match turns.rem_euclid(4) {
            0 => (cosine, sine),
            1 => (-sine, cosine),
            2 => (-cosine, -sine),
            _ => (sine, -cosine),
        }
    }
}

/// e^x for |x| < 2^60: x = k ln 2 + r, e^r = (e^(r/16))^16.
fn exponential_of_point<const N: usize>(x: &Float<N>) -> Ball<N> {
    if x.is_zero() {
        return Ball::one();
    }
    let turns = x.times(&Float::from_f64(std::f64::consts::LOG2_E)).rounded();
    let multiple = Ball::<N>::ln_2().times_u64(turns.unsigned_abs());
    let rest = if turns < 0 { Ball::exact(*x) + multiple } else { Ball::exact(*x) - multiple };
    // |r| <= ln(2)/2 + a rounding, so |small| < 2^-5; checked, since the number of turns is a guess.
    if rest.mid.exponent() > -1 && !rest.mid.is_zero() {
        return Ball::everything();
    }
    let small = rest.mid.scaled(-4);
    let mut sum: Float<N> = Float::ZERO;
    for n in (0..terms::<N>(Size::Small)).rev() {
        sum = sum.times(&small).plus(&inverse_factorial(n));
    }
    // The terms left out add up to less than twice the first: 2^(-BITS - 3).
    let mut result = Ball {
        mid: sum,
        radius: Magnitude::power_of_two(6 - Float::<N>::BITS).plus(rest.radius.scaled(-3)),
    };
    for _ in 0..4 {
        result = result.squared();
    }
    result.scaled(turns)
}

/// (cosine, sine) of |r| < 0.8 by their series in r^2.
fn near_zero<const N: usize>(r: &Float<N>) -> (Ball<N>, Ball<N>) {
    let square = r.times(r).negated();
    let last = terms::<N>(Size::Turn) + 1;
    let (mut cosine, mut sine): (Float<N>, Float<N>) = (Float::ZERO, Float::ZERO);
    for n in (0..=last / 2).rev() {
        cosine = cosine.times(&square).plus(&inverse_factorial(2 * n));
        sine = sine.times(&square).plus(&inverse_factorial(2 * n + 1));
    }
    // The square is off by a unit of at most 2^-B: with slopes below 1/2 in r^2 that is less
    // than the rounding stated; the terms left out are below 2^(-BITS - 3).
    let error = Magnitude::power_of_two(6 - Float::<N>::BITS);
    let sine = Ball { mid: sine, radius: error } * Ball::exact(*r);
    (Ball { mid: cosine, radius: error }, sine)
}
