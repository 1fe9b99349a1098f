//! One step of a run, by its definition. With the clip norm as unit and k records,
//!
//! ```text
//! P = sum_j b_j N(j, s^2),   Q = N(0, s^2) (adding, removing)   or   sum_j b_j N(-j, s^2) (substitution),
//! ```
//!
//! b_j = C(k, j) q^j (1-q)^(k-j): methods for Poisson batches, k = 1 for one record. With
//! z = e^(x/s^2) and a_j = b_j e^(-j^2/2s^2), P/N(0, s^2) = A(z) = sum_j a_j z^j, a polynomial, and
//! Q/N(0, s^2) = 1 or A(1/z). Everything asked of a step is asked of A.

use crate::arithmetic::{Ball, Complex};
use vocabulary::{Adjacency, Phase, Run};

#[derive(Clone, Debug)]
pub struct Step<const N: usize> {
    pub scale: f64,
    pub records: u64,
    pub substitute: bool,
    pub times: u64,
    /// a_0 ... a_k.
    coefficients: Vec<Ball<N>>,
    inverse_square: Ball<N>,
}

/// b_0 ... b_k of a rate below 1, from the exact double. Positive products only.
pub fn binomial<const N: usize>(records: u64, rate: f64) -> Vec<Ball<N>> {
    let q = Ball::from_f64(rate);
    let rest = Ball::one() - q;
    let mut choose = Ball::one();
    (0..=records)
        .map(|j| {
            if j > 0 {
                choose = choose.times_u64(records - j + 1).over_u64(j);
            }
            choose * q.power(j) * rest.power(records - j)
        })
        .collect()
}

impl<const N: usize> Step<N> {
    /// The step of a phase with a rate below 1.
    pub fn new(phase: &Phase, run: &Run) -> Self {
        let records = u64::from(run.group_size());
        let inverse_square = Ball::from_f64(phase.noise_multiplier).squared().reciprocal();
        let coefficients = binomial(records, phase.sample_rate)
            .into_iter()
            .zip(0u64..)
            .map(|(b, j)| {
                let square = Ball::from_u64(j * j) * inverse_square;
                b * (-square.scaled(-1)).exponential()
            })
            .collect();
        Self {
            scale: phase.noise_multiplier,
            records,
            substitute: run.adjacency() == Adjacency::Substitute,
            times: phase.steps,
            coefficients,
            inverse_square,
        }
    }

    pub fn inverse_square(&self) -> Ball<N> {
        self.inverse_square
    }

    pub fn log_coefficients(&self) -> Vec<f64> {
        self.coefficients.iter().map(|a| a.logarithm().to_f64()).collect()
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
