//! One step of a run, by its definition. With the clip norm as unit and k records,
//!
//! ```text
//! P = sum_j b_j N(j, s^2),   Q = N(0, s^2) (adding, removing)   or   sum_j b_j N(-j, s^2) (substitution),
//! ```
//!
//! b_j = C(k, j) q^j (1-q)^(k-j): methods for Poisson batches, k = 1 for one record. With
//! z = e^(x/s^2) and a_j = b_j e^(-j^2/2s^2), P/N(0, s^2) = A(z) = sum_j a_j z^j, a polynomial, and
//! Q/N(0, s^2) = 1 or A(1/z). Everything asked of a step is asked of A.

use super::mask::{Mask, RoughMask};
use crate::arithmetic::{Ball, Complex};

#[derive(Clone, Debug)]
pub struct Step<const N: usize> {
    /// About the noise, for choosing; the noise itself is [`Step::deviation`].
    pub scale: f64,
    pub records: u64,
    pub substitute: bool,
    pub times: u64,
    /// a_0 ... a_k.
    coefficients: Vec<Ball<N>>,
    inverse_square: Ball<N>,
    deviation: Ball<N>,
    /// Which outcomes are looked at.
    pub mask: Mask<N>,
    /// Outcomes beyond this distance from 0 are left out.
    pub reach: f64,
}

/// The smallest cell of bounds: a part of the noise and of the length over which the largest term of A grows, and less
/// where a mask is steeper.
pub fn cell(scale: f64, records: f64, share: f64, mask: &RoughMask) -> f64 {
    let square = scale * scale;
    let smooth = (scale / 12.0).min(square / (share * records));
    if mask.is_whole() { smooth } else { smooth.min(4.0 * square / mask.steepness().1) }
}

/// b_0 ... b_most of `draws` draws at a rate below 1. Positive products only.
pub fn binomial<const N: usize>(draws: u64, rate: Ball<N>, most: u64) -> Vec<Ball<N>> {
    let rest = Ball::one() - rate;
    let mut choose = Ball::one();
    (0..=most)
        .map(|j| {
            if j > 0 {
                choose = choose.times_u64(draws - j + 1).over_u64(j);
            }
            choose * rate.power(j) * rest.power(draws - j)
        })
        .collect()
}

impl<const N: usize> Step<N> {
    /// The step with these probabilities of 0, 1, ... uses, `times` times.
    pub fn new(noise: Ball<N>, weights: &[Ball<N>], substitute: bool, times: u64) -> Self {
        let inverse_square = noise.squared().reciprocal();
        let coefficients = weights
            .iter()
            .zip(0u64..)
            .map(|(b, j)| {
                let square = Ball::from_u64(j * j) * inverse_square;
                *b * (-square.scaled(-1)).exponential()
            })
            .collect();
        let records = weights.len() as u64 - 1;
        let mask = Mask::default();
        Self {
            scale: noise.to_f64(),
            records,
            substitute,
            times,
            coefficients,
            inverse_square,
            deviation: noise,
            mask,
            reach: f64::INFINITY,
        }
    }

    /// The same step without outcomes beyond this distance from 0.
    pub fn clipped(&self, reach: f64) -> Self {
        Self { reach, ..self.clone() }
    }

    /// The same step, of whose outcomes only a part is looked at.
    pub fn masked(&self, mask: Mask<N>, times: u64) -> Self {
        Self { mask, times, ..self.clone() }
    }

    /// The mask at the point with this e^(x/s^2).
    pub fn mask_at(&self, x: Ball<N>, turn: (Ball<N>, Ball<N>)) -> Complex<N> {
        if self.mask.is_whole() {
            return Complex::one();
        }
        let size = (x * self.inverse_square).exponential();
        self.mask.at(Complex { re: turn.0, im: turn.1 }.times_real(size))
    }

    /// ln of a bound on the mask's modulus over [a, b], with the cosines of its angles there.
    pub fn log_mask(&self, a: f64, b: f64, cosines: &[Ball<N>]) -> Ball<N> {
        if self.mask.is_whole() {
            return Ball::ZERO;
        }
        let z = |x: f64| (Ball::from_f64(x) * self.inverse_square).exponential();
        self.mask.log_bound(z(a), z(b), cosines)
    }

    pub fn rough_mask(&self) -> RoughMask {
        self.mask.rough()
    }

    /// Beyond where rho z = 1, if that is right of 0: masked outcomes may lie that far out.
    pub fn mask_place(&self) -> f64 {
        let furthest = self.rough_mask().furthest();
        furthest.map_or(0.0, |log| (8.0 + log).max(0.0) * self.scale * self.scale)
    }

    /// A length over which a bound by cells is close: the mask's logarithm changes by a few there.
    pub fn cell(&self, share: f64) -> f64 {
        cell(self.scale, self.records as f64, share, &self.rough_mask())
    }

    pub fn deviation(&self) -> Ball<N> {
        self.deviation
    }

    pub fn inverse_square(&self) -> Ball<N> {
        self.inverse_square
    }

    pub fn log_coefficients(&self) -> Vec<f64> {
        self.coefficients.iter().map(|a| a.logarithm().to_f64()).collect()
    }

    /// ln of (a_1 z + ...)/z where records are rarely used, for choosing.
    pub fn log_slope(&self) -> f64 {
        self.coefficients.get(1).map_or(0.0, |a| a.logarithm().to_f64())
    }

    /// a_0: what is left of A far to the left.
    pub fn least(&self) -> Ball<N> {
        self.coefficients[0]
    }

    fn polynomial(&self, z: Ball<N>) -> Ball<N> {
        self.coefficients.iter().rev().fold(Ball::ZERO, |sum, a| sum * z + *a)
    }

    /// ln A(z) and ln of Q's density ratio, at a real x.
    pub fn logarithms(&self, x: Ball<N>) -> (Ball<N>, Ball<N>) {
        let z = (x * self.inverse_square).exponential();
        let down =
            if self.substitute { self.polynomial(z.reciprocal()).logarithm() } else { Ball::ZERO };
        (self.polynomial(z).logarithm(), down)
    }

    /// A at a real x, and the part of it that is not a_0: (A - a_0)/A.
    pub fn value_and_share(&self, x: Ball<N>) -> (Ball<N>, Ball<N>) {
        let z = (x * self.inverse_square).exponential();
        let above = self.coefficients[1..].iter().rev().fold(Ball::ZERO, |sum, a| (sum + *a) * z);
        let whole = above + self.coefficients[0];
        (whole, above.over(whole))
    }

    /// The logarithms at x + iy; the caller keeps k y / s^2 below pi/2, where A has no zero and a
    /// positive real part.
    pub fn complex_logarithms(
        &self,
        x: Ball<N>,
        turn: (Ball<N>, Ball<N>),
    ) -> (Complex<N>, Complex<N>) {
        let size = (x * self.inverse_square).exponential();
        let at = |size: Ball<N>, sine: Ball<N>| {
            let z = Complex { re: turn.0, im: sine }.times_real(size);
            let mut sum = Complex::ZERO;
            for a in self.coefficients.iter().rev() {
                sum = sum * z;
                sum.re = sum.re + *a;
            }
            sum.logarithm()
        };
        let down = if self.substitute { at(size.reciprocal(), -turn.1) } else { Complex::ZERO };
        (at(size, turn.1), down)
    }
}
