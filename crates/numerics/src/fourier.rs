//! The discrete Fourier transform of real numbers, the same bits on every machine.
//!
//! Lengths are powers of two. Two real numbers make one complex number, and a Stockham transform of radix 4 (one
//! of radix 2 at the end where the length asks for it) takes half of the length.
//!
//! Round-off, with u = 2^-53 and S the sum of |input|: every value of a stage is a sum of inputs times numbers of modulus 1, so
//! its exact size is at most S. A stage of radix 4 adds twice (u S each) and multiplies once (sqrt 5 u, Brent, Percival and
//! Zimmermann 2007) by a factor whose own error is at most 2.8 u: the angle 2 pi k/n, at most pi/4 after reflection, has two
//! roundings (1 u in all), and sine and cosine err by 1.7 u of their size. That is 7.1 u S for two bits of the length, so
//! at most **3.6 u S for each bit, or 5.1 u S for a single last one**. Taking even and odd numbers apart has two sums and
//! one product of this kind: **8 u S**. Second order is a part of 1e-13 of it. The way back is the same transform with real and
//! imaginary parts exchanged, of the same numbers.

use crate::elementary::sin_cos;
use std::cell::RefCell;
use std::f64::consts::TAU;
use std::rc::Rc;

/// Real and imaginary parts, side by side.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spectrum {
    pub(crate) re: Vec<f64>,
    pub(crate) im: Vec<f64>,
}

impl Spectrum {
    pub(crate) fn zeros(length: usize) -> Self {
        Self { re: vec![0.0; length], im: vec![0.0; length] }
    }
}

/// cos(2 pi k/n) and sin(2 pi k/n) for every k below n.
#[derive(Debug)]
struct Circle {
    cosine: Vec<f64>,
    sine: Vec<f64>,
}

impl Circle {
    /// Each octant by reflection of the first; n is a power of two.
    fn new(n: usize) -> Self {
        let mut circle = Self { cosine: vec![1.0; n], sine: vec![0.0; n] };
        for k in 0..n {
            let (eighth, part) = (8 * k / n, k % (n / 8).max(1));
            let from_zero = if eighth % 2 == 0 { part } else { (n / 8).max(1) - part };
            let (s, c) = sin_cos(TAU * from_zero as f64 / n as f64);
            (circle.cosine[k], circle.sine[k]) = match (n, eighth) {
                // Fewer than eight points: quarters of the circle, exactly.
                (1..8, 0) => (1.0, 0.0),
                (1..8, 2) => (0.0, 1.0),
                (1..8, 4) => (-1.0, 0.0),
                (1..8, _) => (0.0, -1.0),
                (_, 0) => (c, s),
                (_, 1) => (s, c),
                (_, 2) => (-s, c),
                (_, 3) => (-c, s),
                (_, 4) => (-c, -s),
                (_, 5) => (-s, -c),
                (_, 6) => (s, -c),
                _ => (c, -s),
            };
        }
        circle
    }
}

thread_local! {
    /// Circles are worth keeping; the position is the logarithm of the length.
    static CIRCLES: RefCell<Vec<Option<Rc<Circle>>>> = const { RefCell::new(Vec::new()) };
}

fn circle(length: usize) -> Rc<Circle> {
    let at = length.trailing_zeros() as usize;
    CIRCLES.with_borrow_mut(|kept| {
        if kept.len() <= at {
            kept.resize(at + 1, None);
        }
        Rc::clone(kept[at].get_or_insert_with(|| Rc::new(Circle::new(length))))
    })
}

/// Sums of x_j e^(-2 pi i j k/n) for k up to n/2, n the length of `x`, a power of two of at least 4.
pub(crate) fn forward(x: &[f64]) -> Spectrum {
    let n = x.len();
    assert!(n.is_power_of_two() && n >= 4, "length {n} is not a power of two of at least 4");
    let (half, circle) = (n / 2, circle(n));
    let mut z = Spectrum {
        re: x.iter().step_by(2).copied().collect(),
        im: x.iter().skip(1).step_by(2).copied().collect(),
    };
    complex(&mut z, &circle);
    let mut out = Spectrum::zeros(half + 1);
    for k in 0..=half {
        let (a, b) = (k % half, (half - k) % half);
        // Transforms of the even and of the odd numbers.
        let (even_re, even_im) = (0.5 * (z.re[a] + z.re[b]), 0.5 * (z.im[a] - z.im[b]));
        let (odd_re, odd_im) = (0.5 * (z.im[a] + z.im[b]), 0.5 * (z.re[b] - z.re[a]));
        let (c, s) = (circle.cosine[k], circle.sine[k]);
        out.re[k] = even_re + (odd_re * c + odd_im * s);
        out.im[k] = even_im + (odd_im * c - odd_re * s);
    }
    out
}

/// The way back: the n real numbers of which this is the spectrum, times n.
pub(crate) fn inverse(spectrum: &Spectrum) -> Vec<f64> {
    let half = spectrum.re.len() - 1;
    let n = 2 * half;
    assert!(n.is_power_of_two() && n >= 4, "length {n} is not a power of two of at least 4");
    let circle = circle(n);
    // Real and imaginary parts exchanged turn the transform into its inverse.
    let mut z = Spectrum::zeros(half);
    for k in 0..half {
        let (a, b) = (k, half - k);
        let (sum_re, sum_im) = (spectrum.re[a] + spectrum.re[b], spectrum.im[a] - spectrum.im[b]);
        let (off_re, off_im) = (spectrum.re[a] - spectrum.re[b], spectrum.im[a] + spectrum.im[b]);
        let (c, s) = (circle.cosine[k], circle.sine[k]);
        // i e^(2 pi i k/n) times the difference.
        let (turned_re, turned_im) = (-(off_re * s + off_im * c), off_re * c - off_im * s);
        z.im[k] = sum_re + turned_re;
        z.re[k] = sum_im + turned_im;
    }
    complex(&mut z, &circle);
    z.im.iter().zip(&z.re).flat_map(|(even, odd)| [*even, *odd]).collect()
}

/// The complex transform in place, with the circle of twice the length.
fn complex(z: &mut Spectrum, circle: &Circle) {
    let mut other = Spectrum::zeros(z.re.len());
    let (mut length, mut stride) = (z.re.len(), 1);
    while length >= 4 {
        quarters(length, stride, z, &mut other, circle);
        std::mem::swap(z, &mut other);
        (length, stride) = (length / 4, stride * 4);
    }
    if length == 2 {
        let ((re, im), half) = ((&mut z.re, &mut z.im), stride);
        for part in [re, im] {
            let (low, high) = part.split_at_mut(half);
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
    }
}

/// One stage of radix 4: sequences of `length`, `stride` of them interleaved.
fn quarters(length: usize, s: usize, x: &Spectrum, y: &mut Spectrum, circle: &Circle) {
    let m = length / 4;
    let turn = circle.cosine.len() / length;
    for (p, (y_re, y_im)) in
        y.re.chunks_exact_mut(4 * s).zip(y.im.chunks_exact_mut(4 * s)).enumerate()
    {
        let w = |k: usize| (circle.cosine[k * p * turn], -circle.sine[k * p * turn]);
        let (w1, w2, w3) = (w(1), w(2), w(3));
        let part = |of: &[f64], k: usize| -> std::ops::Range<usize> {
            debug_assert!(of.len() == length * s);
            s * (p + k * m)..s * (p + k * m + 1)
        };
        let [a_re, b_re, c_re, d_re] = [0, 1, 2, 3].map(|k| &x.re[part(&x.re, k)]);
        let [a_im, b_im, c_im, d_im] = [0, 1, 2, 3].map(|k| &x.im[part(&x.im, k)]);
        let (y0_re, rest) = y_re.split_at_mut(s);
        let (y1_re, rest) = rest.split_at_mut(s);
        let (y2_re, y3_re) = rest.split_at_mut(s);
        let (y0_im, rest) = y_im.split_at_mut(s);
        let (y1_im, rest) = rest.split_at_mut(s);
        let (y2_im, y3_im) = rest.split_at_mut(s);
        for q in 0..s {
            let (sum_re, sum_im) = (a_re[q] + c_re[q], a_im[q] + c_im[q]);
            let (off_re, off_im) = (a_re[q] - c_re[q], a_im[q] - c_im[q]);
            let (other_re, other_im) = (b_re[q] + d_re[q], b_im[q] + d_im[q]);
            // -i (b - d).
            let (turned_re, turned_im) = (b_im[q] - d_im[q], d_re[q] - b_re[q]);
            (y0_re[q], y0_im[q]) = (sum_re + other_re, sum_im + other_im);
            let (re, im) = (off_re + turned_re, off_im + turned_im);
            (y1_re[q], y1_im[q]) = (re * w1.0 - im * w1.1, re * w1.1 + im * w1.0);
            let (re, im) = (sum_re - other_re, sum_im - other_im);
            (y2_re[q], y2_im[q]) = (re * w2.0 - im * w2.1, re * w2.1 + im * w2.0);
            let (re, im) = (off_re - turned_re, off_im - turned_im);
            (y3_re[q], y3_im[q]) = (re * w3.0 - im * w3.1, re * w3.1 + im * w3.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize) -> Vec<f64> {
        (0..n).map(|j| (j as f64 * 0.618_034 + 0.1).fract() - 0.3).collect()
    }

    /// Against plain sums, within the stated bound, at every length and frequency.
    #[test]
    fn transforms_are_as_good_as_they_say() {
        for bits in 2..12 {
            let n = 1usize << bits;
            let x = numbers(n);
            let size: f64 = x.iter().map(|x| x.abs()).sum();
            let bound = f64::EPSILON / 2.0 * size * (3.6 * f64::from(bits) + 1.5 + 8.0);
            let found = forward(&x);
            for k in 0..=n / 2 {
                let (mut re, mut im) = (crate::sum::Sum::default(), crate::sum::Sum::default());
                for (j, x) in x.iter().enumerate() {
                    let (s, c) = sin_cos(TAU * ((j * k) % n) as f64 / n as f64);
                    re.add(x * c);
                    im.add(-x * s);
                }
                let off = (found.re[k] - re.total()).hypot(found.im[k] - im.total());
                // The plain sum errs by four units of each term.
                assert!(off <= bound + 4.0 * f64::EPSILON * size, "{n} {k}: {off:e} {bound:e}");
                assert!(off <= 1e-14 * size, "{n} {k}: {off:e}");
            }
            let back = inverse(&found);
            for (x, y) in x.iter().zip(&back) {
                assert!((x - y / n as f64).abs() <= 2.0 * bound, "{n}");
            }
        }
    }

    /// A few bits that every machine must reproduce.
    #[test]
    fn the_bits_are_fixed() {
        let found = forward(&numbers(4096));
        let mark = found.re.iter().chain(&found.im).fold(0u64, |mark, value| {
            (mark ^ value.to_bits()).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29)
        });
        assert_eq!(mark, 0x6330_1e37_c1c2_7933, "{mark:#x}");
    }
}
