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
//! - |low| <= (1 + e^-r)^p - 1: the terms of the binomial sum, each with its modulus.

use crate::arithmetic::{Ball, Complex};

/// p.
pub const POWER: u64 = 16;

#[derive(Clone, Copy, Debug)]
pub enum Mask<const N: usize> {
    Whole,
    Low(Ball<N>),
    Middle(Ball<N>),
}

/// Beyond this e^-r is nothing: a larger r is taken as this one.
const FAR: f64 = 1e9;

impl<const N: usize> Mask<N> {
    /// The mask at z.
    pub fn at(&self, z: Complex<N>) -> Complex<N> {
        let fall = |rho: &Ball<N>| {
            // 1 - e^(-rho z); a small rho z keeps its digits on the real axis.
            let w = z.times_real(*rho);
            if w.im.mid.is_zero() && w.im.radius.is_zero() {
                return Complex { re: -((-w.re).exponential_minus_one()), im: Ball::ZERO };
            }
            Complex::one() - (-w).exponential()
        };
        match self {
            Self::Whole => Complex::one(),
            Self::Middle(rho) => fall(rho).power(POWER),
            Self::Low(rho) => Complex::one() - fall(rho).power(POWER),
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
            Self::Middle(rho) => {
                let most = (Ball::one() + rest(rho)).minimum(*rho * high);
                most.upper().logarithm().times_u64(POWER)
            }
            Self::Low(rho) => {
                let rest = rest(rho);
                // (1 + e)^p - 1 <= p e (1 + e)^(p-1).
                rest.upper().logarithm()
                    + Ball::from_u64(POWER).logarithm()
                    + (Ball::one() + rest).logarithm().times_u64(POWER - 1)
            }
        }
    }

    /// The same in doubles, for choosing; on the real axis the mask itself.
    pub fn rough(kind: RoughMask, log_z: f64, cosine: f64) -> f64 {
        let p = POWER as f64;
        let log_fall = |log: f64| (-(-(log.min(6.0)).exp()).exp_m1()).ln();
        match kind {
            RoughMask::Middle(log_rho) if cosine == 1.0 => p * log_fall(log_rho + log_z),
            RoughMask::Low(log_rho) if cosine == 1.0 => {
                let log = log_rho + log_z;
                // Far to the right 1 - (1 - e)^p is p e.
                if log > 3.4 {
                    p.ln() - log.min(20.0).exp()
                } else {
                    (-(p * log_fall(log)).exp_m1()).ln()
                }
            }
            RoughMask::Whole => 0.0,
            RoughMask::Middle(log_rho) => {
                let log = log_rho + log_z;
                let r = (log.min(20.0)).exp() * cosine;
                p * log.min((-r).exp().ln_1p())
            }
            RoughMask::Low(log_rho) => {
                let r = ((log_rho + log_z).min(20.0)).exp() * cosine;
                -r + p.ln() + (p - 1.0) * (-r).exp().ln_1p()
            }
        }
    }
}

/// A mask in doubles.
#[derive(Clone, Copy, Debug)]
pub enum RoughMask {
    Whole,
    Low(f64),
    Middle(f64),
}
