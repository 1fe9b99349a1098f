//! A split of one step into *low* and *middle* outcomes, smooth in x, for steps whose loss is nearly an atom: rarely
//! used records. With z = e^(x/s^2) and p even,
//!
//! ```text
//! middle(x) = (1 - e^(-rho z))^p,   low(x) = 1 - middle(x),   both in [0, 1] for real x.
//! ```
//!
//! Both are entire in x. Where |arg z| <= theta < pi/2, with r = rho |z| cos theta = a bound on Re(rho z):
//!
//! - |1 - e^(-rho z)| <= min(rho |z|, 1 + e^-r): |1 - e^-w| is at most the integral of |e^-w| along [0, w].
//! - |low| <= (1 + e^-r)^p - 1: the terms of the binomial sum, each with its modulus; and |low| <= 1 + |middle|.

use crate::arithmetic::{Ball, Complex};

/// rho and p, or no mask.
#[derive(Clone, Copy, Debug)]
pub enum Mask<const N: usize> {
    Whole,
    Low(Ball<N>, u64),
    Middle(Ball<N>, u64),
}

/// Beyond this e^-r is nothing: a larger r is taken as this one.
const FAR: f64 = 1e6;

fn is_real<const N: usize>(z: &Complex<N>) -> bool {
    z.im.mid.is_zero() && z.im.radius.is_zero()
}

/// Whether e^-w is nothing beside everything else.
fn is_far<const N: usize>(w: &Complex<N>) -> bool {
    Ball::from_f64(FAR).is_at_most(&w.re)
}

/// e^-w.
fn rest<const N: usize>(w: Complex<N>) -> Complex<N> {
    if is_far(&w) {
        // So small that its angle, which may be huge, does not matter.
        let around = Ball::ZERO.widened((-Ball::<N>::from_f64(FAR)).exponential().above());
        return Complex { re: around, im: if is_real(&w) { Ball::ZERO } else { around } };
    }
    if is_real(&w) {
        return Complex { re: (-w.re).exponential(), im: Ball::ZERO };
    }
    (-w).exponential()
}

impl<const N: usize> Mask<N> {
    /// The mask at z. With E = e^(-rho z), low = E (1 + (1-E) + ... + (1-E)^(p-1)): it keeps its digits where the
    /// tilt makes up for how small it is.
    pub fn at(&self, z: Complex<N>) -> Complex<N> {
        match self {
            Self::Whole => Complex::one(),
            Self::Middle(rho, power) => {
                let w = z.times_real(*rho);
                if is_real(&w) && !is_far(&w) {
                    // A small rho z keeps its digits.
                    let fall = -((-w.re).exponential_minus_one());
                    return Complex { re: fall, im: Ball::ZERO }.power(*power);
                }
                (Complex::one() - rest(w)).power(*power)
            }
            Self::Low(rho, power) => {
                let rest = rest(z.times_real(*rho));
                let other = Complex::one() - rest;
                let sum = (1..*power).fold(Complex::one(), |sum, _| sum * other + Complex::one());
                rest * sum
            }
        }
    }

    /// ln of a bound on the modulus where |z| lies in [low, high] and |arg z| has at least this cosine.
    pub fn log_bound(&self, low: Ball<N>, high: Ball<N>, cosine: Ball<N>) -> Ball<N> {
        let rest = |rho: &Ball<N>| {
            let r = (*rho * low * cosine).minimum(Ball::from_f64(FAR));
            (-r).exponential()
        };
        match self {
            Self::Whole => Ball::ZERO,
            Self::Middle(rho, power) => {
                let most = (Ball::one() + rest(rho)).minimum(*rho * high);
                most.upper().logarithm().times_u64(*power)
            }
            Self::Low(rho, power) => {
                let rest = rest(rho);
                let most = (Ball::one() + rest).minimum(*rho * high);
                // (1 + e)^p - 1 <= p e (1 + e)^(p-1).
                let far = rest.upper().logarithm()
                    + Ball::from_u64(*power).logarithm()
                    + (Ball::one() + rest).logarithm().times_u64(power - 1);
                let near = (Ball::one() + most.upper().power(*power)).logarithm();
                far.upper().minimum(near.upper())
            }
        }
    }

    /// p; 0 without a mask.
    pub fn power(&self) -> u64 {
        match self {
            Self::Whole => 0,
            Self::Low(_, power) | Self::Middle(_, power) => *power,
        }
    }

    /// The same in doubles, for choosing; on the real axis the mask itself.
    pub fn rough(kind: RoughMask, log_z: f64, cosine: f64) -> f64 {
        let log_fall = |log: f64| (-(-(log.min(6.0)).exp()).exp_m1()).ln();
        match kind {
            RoughMask::Middle(log_rho, p) if cosine == 1.0 => p * log_fall(log_rho + log_z),
            RoughMask::Low(log_rho, p) if cosine == 1.0 => {
                let log = log_rho + log_z;
                // Far to the right 1 - (1 - e)^p is p e.
                if log > 3.4 {
                    p.ln() - log.min(20.0).exp()
                } else {
                    (-(p * log_fall(log)).exp_m1()).ln()
                }
            }
            RoughMask::Whole => 0.0,
            RoughMask::Middle(log_rho, p) => {
                let log = log_rho + log_z;
                let r = (log.min(20.0)).exp() * cosine;
                p * log.min((-r).exp().ln_1p())
            }
            RoughMask::Low(log_rho, p) => {
                let log = log_rho + log_z;
                let r = (log.min(20.0)).exp() * cosine;
                let far = -r + p.ln() + (p - 1.0) * (-r).exp().ln_1p();
                far.min((p * log.min((-r).exp().ln_1p())).exp().ln_1p())
            }
        }
    }
}

/// A mask in doubles.
#[derive(Clone, Copy, Debug)]
pub enum RoughMask {
    Whole,
    Low(f64, f64),
    Middle(f64, f64),
}
