//! Sums at many nodes by one Fourier transform: S(k) = sum_j w_j e^(i k d L_j) for k = 0 .. n and real L_j.
//!
//! With K = n/2 rounded up, k = K + k', |k'| <= K, and v_j = w_j e^(i K d L_j), S = sum_j v_j e^(i k' x_j), x_j = d L_j.
//! Each v_j is spread over a ring of M >= 4 K points, h = 2 pi/M apart, with the Gaussian g(x) = e^(-x^2/2s^2). By
//! Poisson's formula
//!
//! ```text
//! h sum_m g(x - m h) e^(i k' m h) = sum_l G(k' - l M) e^(i (k' - l M) x),   G(k) = s sqrt(2 pi) e^(-s^2 k^2/2).
//! ```
//!
//! The term l = 0 is wanted. With a = (s M)^2 the others are at most e^(-a |l|/4) of it, since (|l| M - K)^2 - K^2 >= |l|
//! M^2/2. Points further than w + 1/2 steps from x are left out: at most 2 h e^(-(w+1/2)^2 q/2) / (1 - e^(-(w+1/2) q)),
//! q = (h/s)^2 = 4 pi^2/a, and G(k') >= G(0) e^(-a/32).
//!
//! The transform is of radix 2 in fixed point. A turn is a product of two tabled ones, off by less than 6 units and 3
//! radii; a butterfly's product by 3 units more, since moduli stay below 1. Its error reaches an output once, and there
//! are fewer than M butterflies above an output; 20 units and 8 radii for each are stated. Turns exceed 1 in
//! modulus by at most their error, which 22 levels do not make noticeable.

use crate::arithmetic::{Ball, Complex, Fixed, Magnitude, Rotor};

/// Longest ring, as a power of two.
const LONGEST: u32 = 22;
/// Work for one point beside its spreading, in rotations: its loss and weight, a turn.
const POINT: f64 = 600.0;

/// The power of two of the ring for this many nodes; None where it is too long.
fn order(nodes: usize) -> Option<u32> {
    let needed = (4 * nodes.div_ceil(2)).max(1024).next_power_of_two().ilog2();
    (needed <= LONGEST).then_some(needed)
}

/// Steps on either side over which a point is spread for an error of 2^-bits.
fn reach(bits: f64) -> f64 {
    (0.331 * bits + 5.0).ceil()
}

/// Rotations that the sums cost: directly, or by one transform where that is possible.
pub(super) fn work(points: f64, nodes: usize, bits: f64, real: bool) -> f64 {
    let direct = points * (nodes as f64 + POINT);
    match order(nodes) {
        Some(order) if real => {
            let length = f64::from(order).exp2();
            direct.min(points * (POINT + 16.0 * reach(bits)) + length * f64::from(order) + 4e5)
        }
        _ => direct,
    }
}

/// Whether one transform is cheaper.
pub(super) fn is_cheaper(points: usize, nodes: usize, bits: f64) -> bool {
    let points = points as f64;
    order(nodes).is_some() && work(points, nodes, bits, true) < points * (nodes as f64 + POINT)
}

/// e^(2 pi i k / 2^order) as products of two entries.
struct Turns<const N: usize> {
    coarse: Vec<Rotor<N>>,
    fine: Vec<Rotor<N>>,
    shift: u32,
    radius: Magnitude,
}

impl<const N: usize> Turns<N> {
    fn new(order: u32) -> Self {
        let shift = order / 2;
        let mut radius = Magnitude::ZERO;
        let mut table = |count: u64, power: u32| -> Vec<Rotor<N>> {
            let unit = Ball::pi().scaled(1 - i64::from(power));
            (0..count)
                .map(|k| {
                    let (cosine, sine) = unit.times_u64(k).cosine_sine();
                    radius = radius.max(cosine.radius).max(sine.radius);
                    Rotor::from_complex(&Complex::new(cosine, sine))
                })
                .collect()
        };
        let fine = table(1 << shift, order);
        let coarse = table(1 << (order - shift), order - shift);
        Self { coarse, fine, shift, radius }
    }

    fn at(&self, k: usize) -> Rotor<N> {
        let mask = (1 << self.shift) - 1;
        self.coarse[k >> self.shift].times(self.fine[k & mask])
    }
}

/// sum_m values_m e^(2 pi i k m / M) in place, M a power of two.
fn transform<const N: usize>(values: &mut [Rotor<N>], turns: &Turns<N>) {
    let length = values.len();
    let order = length.ilog2();
    for i in 0..length {
        let j = i.reverse_bits() >> (usize::BITS - order);
        if i < j {
            values.swap(i, j);
        }
    }
    let table: Vec<Rotor<N>> = (0..length / 2).map(|k| turns.at(k)).collect();
    let mut half = 1;
    while half < length {
        let stride = length / (2 * half);
        for block in values.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for (k, (x, y)) in low.iter_mut().zip(high).enumerate() {
                let turned = if k == 0 { *y } else { y.times(table[k * stride]) };
                (*x, *y) = (x.plus(turned), x.minus(turned));
            }
        }
        half *= 2;
    }
}

/// S(0), ..., S(n), each off by about 2^-bits of the sum of the weights.
pub(super) fn sums<const N: usize>(
    weights: &[Complex<N>],
    losses: &[Ball<N>],
    spacing: f64,
    nodes: usize,
    bits: f64,
) -> Option<Vec<Complex<N>>> {
    let order = order(nodes)?;
    let length = 1usize << order;
    let centre = nodes.div_ceil(2);
    let bits = bits + 6.0;
    let a = Ball::<N>::from_f64((4.0 * bits * std::f64::consts::LN_2).ceil());
    let pi = Ball::<N>::pi();
    // q = 4 pi^2/a.
    let narrow = pi.squared().scaled(2).over(a);
    let width = reach(bits) as i64;
    let falls: Vec<Ball<N>> =
        (0..=width as u64).map(|i| (-(narrow.times_u64(i * i)).scaled(-1)).exponential()).collect();
    let total = weights.iter().fold(Magnitude::ZERO, |sum, weight| sum.plus(weight.above()));
    // All that is spread stays below 1/2.
    let spread = narrow.reciprocal().times_u64(7).root() + Ball::one();
    let power = total.times(spread.above()).order() + 1;
    let (step, per_turn) = (Ball::from_f64(spacing), Ball::one().scaled(i64::from(order)));
    let per_turn = per_turn.over(pi.scaled(1));
    let mut ring = vec![Rotor::<N>::ZERO; length];
    let mut widest = Magnitude::ZERO;
    for (weight, loss) in weights.iter().zip(losses) {
        let x = step * *loss;
        let (cosine, sine) = x.times_u64(centre as u64).cosine_sine();
        let position = x * per_turn;
        let nearest = position.mid.rounded();
        let off = position - signed(nearest);
        let start = weight.times_real((-(off.squared() * narrow).scaled(-1)).exponential());
        let start = start * Complex::new(cosine, sine);
        let start = Complex::new(start.re.scaled(-power), start.im.scaled(-power));
        let mut put = |index: i64, value: Complex<N>| {
            widest = widest.max(value.re.radius).max(value.im.radius);
            let place = &mut ring[index.rem_euclid(length as i64) as usize];
            *place = place.plus(Rotor::from_complex(&value));
        };
        put(nearest, start);
        for (sign, turn) in [(1, off * narrow), (-1, -(off * narrow))] {
            let ratio = turn.exponential();
            let mut now = start;
            for i in 1..=width {
                now = now.times_real(ratio);
                put(nearest + sign * i, now.times_real(falls[i as usize]));
            }
        }
    }
    let turns = Turns::new(order);
    transform(&mut ring, &turns);
    let unit = Magnitude::power_of_two(Fixed::<N>::UNIT);
    let terms = Magnitude::from_f64(weights.len() as f64 * (2 * width + 1) as f64);
    let rounded = terms.times(unit.plus(widest)).scaled(1).plus(
        Magnitude::power_of_two(i64::from(order))
            .times(unit.scaled(5).plus(turns.radius.scaled(3))),
    );
    // Aliases and points left out, relative to the weights.
    let alias = (-a.scaled(-2)).exponential();
    let alias = alias.scaled(1).over(Ball::one() - alias);
    let last = Ball::from_f64(width as f64 + 0.5);
    let normal = narrow.over(pi.scaled(1)).root();
    let beyond = (a.scaled(-5) - (last.squared() * narrow).scaled(-1)).exponential() * normal;
    let beyond = beyond.scaled(1).over(Ball::one() - (-(last * narrow)).exponential());
    let error = total.times((alias + beyond).above());
    // 1/G(k') by restarted recurrence: e^(a (k+1)^2/2M^2) = e^(a k^2/2M^2) e^(a (2k+1)/2M^2).
    let curve = a.scaled(-1 - 2 * i64::from(order));
    let (shrink, mut back) = (curve.scaled(1).exponential(), Vec::with_capacity(centre + 1));
    let (mut value, mut ratio) = (normal, Ball::one());
    for k in 0..=centre as u64 {
        if k % 128 == 0 {
            value = normal * (curve.times_u64(k * k)).exponential();
            ratio = curve.times_u64(2 * k + 1).exponential();
        }
        back.push(value);
        value = value * ratio;
        ratio = ratio * shrink;
    }
    let node = |k: usize| {
        let shifted = k as i64 - centre as i64;
        let found = ring[shifted.rem_euclid(length as i64) as usize].to_complex(rounded);
        let found = found.times_real(back[shifted.unsigned_abs() as usize]);
        Complex::new(found.re.scaled(power).widened(error), found.im.scaled(power).widened(error))
    };
    Some((0..=nodes).map(node).collect())
}

fn signed<const N: usize>(k: i64) -> Ball<N> {
    let size = Ball::from_u64(k.unsigned_abs());
    if k < 0 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One transform and direct sums agree within their balls, and the balls are as small as asked.
    #[test]
    fn the_transform_is_the_sum() {
        let count = 40;
        // Of all angles: along a ray off the real axis they are complex.
        let weights: Vec<Complex<2>> = (0..count)
            .map(|j| {
                let (cosine, sine) = Ball::from_f64(0.3 * f64::from(j)).cosine_sine();
                let size = Ball::from_f64(1.0 / (1.0 + f64::from(j * j)));
                Complex::new(cosine, sine).times_real(size)
            })
            .collect();
        let losses: Vec<Ball<2>> = (0..count)
            .map(|j| Ball::from_f64(f64::from(j) * 3.7 - 20.0).exponential_minus_one())
            .map(|x| x.minimum(Ball::from_f64(900.0)))
            .collect();
        for (nodes, spacing, bits) in [(1500usize, 0.011, 40.0), (700, 1.7, 70.0)] {
            let found = sums(&weights, &losses, spacing, nodes, bits).unwrap();
            assert_eq!(found.len(), nodes + 1);
            for k in [0, 1, 2, nodes / 2, nodes / 2 + 1, nodes - 1, nodes] {
                let mut sum = Complex::<2>::ZERO;
                for (weight, loss) in weights.iter().zip(&losses) {
                    let angle = (Ball::from_f64(spacing) * *loss).times_u64(k as u64);
                    let (cosine, sine) = angle.cosine_sine();
                    sum = sum + Complex::new(cosine, sine) * *weight;
                }
                for (one, two) in [(sum.re, found[k].re), (sum.im, found[k].im)] {
                    let gap = one - two;
                    assert!(!gap.is_positive() && !gap.is_negative(), "{nodes} {k}");
                    assert!(two.radius < Magnitude::power_of_two(2 - bits as i64), "{nodes} {k}");
                }
            }
        }
    }
}
