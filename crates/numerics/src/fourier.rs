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

type Pair = (f64, f64);

/// Four numbers to the four of the next stage, turned by their factors.
#[inline(always)]
fn butterfly([a, b, c, d]: [Pair; 4], [w1, w2, w3]: [Pair; 3]) -> [Pair; 4] {
    let (sum, off) = ((a.0 + c.0, a.1 + c.1), (a.0 - c.0, a.1 - c.1));
    let other = (b.0 + d.0, b.1 + d.1);
    // -i (b - d).
    let turned = (b.1 - d.1, d.0 - b.0);
    let times = |z: Pair, w: Pair| (z.0 * w.0 - z.1 * w.1, z.0 * w.1 + z.1 * w.0);
    [
        (sum.0 + other.0, sum.1 + other.1),
        times((off.0 + turned.0, off.1 + turned.1), w1),
        times((sum.0 - other.0, sum.1 - other.1), w2),
        times((off.0 - turned.0, off.1 - turned.1), w3),
    ]
}

/// One stage of radix 4: sequences of `length`, `s` of them interleaved.
fn quarters(length: usize, s: usize, x: &Spectrum, y: &mut Spectrum, circle: &Circle) {
    let m = length / 4;
    let turn = circle.cosine.len() / length;
    let factors = |p: usize| -> [Pair; 3] {
        [p * turn, 2 * p * turn, 3 * p * turn].map(|k| (circle.cosine[k], -circle.sine[k]))
    };
    let quarter = |of: &[f64], k: usize| -> std::ops::Range<usize> {
        let size = of.len() / 4;
        k * size..(k + 1) * size
    };
    let [a_re, b_re, c_re, d_re] = [0, 1, 2, 3].map(|k| &x.re[quarter(&x.re, k)]);
    let [a_im, b_im, c_im, d_im] = [0, 1, 2, 3].map(|k| &x.im[quarter(&x.im, k)]);
    if s == 1 {
        let chunks = y.re.chunks_exact_mut(4).zip(y.im.chunks_exact_mut(4));
        for (p, (re, im)) in chunks.enumerate().take(m) {
            let at = [(a_re, a_im), (b_re, b_im), (c_re, c_im), (d_re, d_im)];
            let out = butterfly(at.map(|(re, im)| (re[p], im[p])), factors(p));
            for (k, z) in out.into_iter().enumerate() {
                (re[k], im[k]) = z;
            }
        }
        return;
    }
    let chunks = y.re.chunks_exact_mut(4 * s).zip(y.im.chunks_exact_mut(4 * s));
    for (p, (re, im)) in chunks.enumerate() {
        let w = factors(p);
        let here = p * s..(p + 1) * s;
        let [a_re, b_re, c_re, d_re] = [a_re, b_re, c_re, d_re].map(|x| &x[here.clone()]);
        let [a_im, b_im, c_im, d_im] = [a_im, b_im, c_im, d_im].map(|x| &x[here.clone()]);
        let (re_0, rest) = re.split_at_mut(s);
        let (re_1, rest) = rest.split_at_mut(s);
        let (re_2, re_3) = rest.split_at_mut(s);
        let (im_0, rest) = im.split_at_mut(s);
        let (im_1, rest) = rest.split_at_mut(s);
        let (im_2, im_3) = rest.split_at_mut(s);
        for q in 0..s {
            let of = [(a_re, a_im), (b_re, b_im), (c_re, c_im), (d_re, d_im)];
            let out = butterfly(of.map(|(re, im)| (re[q], im[q])), w);
            [(re_0[q], im_0[q]), (re_1[q], im_1[q]), (re_2[q], im_2[q]), (re_3[q], im_3[q])] = out;
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
