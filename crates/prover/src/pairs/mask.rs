//! A split of one step into *low*, *middle* and *high* outcomes, smooth in x, for steps whose loss is nearly an atom:
//! rarely used records. A mask is a product of factors. With z = e^(x/s^2) (1/z where it is mirrored) and whole m and p, a
//! factor is
//!
//! ```text
//! rising: (1 - e^(-w))^p,   falling: 1 - (1 - e^(-w))^p,   w = (rho z)^m,   both in [0, 1] for real x.
//! ```
//!
//! All are entire in x. Where m |arg z| <= theta < pi/2, r = |w| cos theta is at most Re w, and
//!
//! - |1 - e^(-w)| <= min(|w|, 1 + e^-r): |1 - e^-w| is at most the integral of |e^-w| along [0, w].
//! - |falling| <= (1 + e^-r)^p - 1: the terms of the binomial sum, each with its modulus; and |falling| <= 1 + |rising|.
//!
//! So no factor exceeds 2^p. A large m makes it sharp, and the strip narrow in which that holds.

use crate::arithmetic::{Ball, Complex};

/// Where outcomes are split, and how sharply.
#[derive(Clone, Copy, Debug)]
pub struct Edge<const N: usize> {
    pub rho: Ball<N>,
    /// m.
    pub sharpness: u64,
    /// p.
    pub power: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct Factor<const N: usize> {
    pub edge: Edge<N>,
    pub rising: bool,
    pub mirrored: bool,
}

/// A product of factors; none: all outcomes.
#[derive(Clone, Debug, Default)]
pub struct Mask<const N: usize>(Vec<Factor<N>>);

/// Beyond this e^-r is nothing, whatever the tilt: a larger r is taken as this one.
const FAR: f64 = 1e15;
/// About its logarithm.
const LOG_FAR: f64 = 34.5;
/// m |arg z| at most.
const WIDEST: f64 = 1.5;

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

impl<const N: usize> Factor<N> {
    /// The factor at z. With E = e^-w, falling = E (1 + (1-E) + ... + (1-E)^(p-1)): it keeps its digits where the
    /// tilt makes up for how small it is.
    fn at(&self, z: Complex<N>) -> Complex<N> {
        let Edge { rho, sharpness, power } = self.edge;
        let z = if self.mirrored { z.reciprocal() } else { z };
        let w = z.times_real(rho).power(sharpness);
        if self.rising {
            if is_real(&w) && !is_far(&w) {
                // A small w keeps its digits.
                let fall = -((-w.re).exponential_minus_one());
                return Complex { re: fall, im: Ball::ZERO }.power(power);
            }
            return (Complex::one() - rest(w)).power(power);
        }
        let rest = rest(w);
        let other = Complex::one() - rest;
        let sum = (1..power).fold(Complex::one(), |sum, _| sum * other + Complex::one());
        rest * sum
    }

    /// ln of a bound on the modulus where |z| lies in [low, high] and m |arg z| has at least this cosine.
    fn log_bound(&self, low: Ball<N>, high: Ball<N>, cosine: Ball<N>) -> Ball<N> {
        let Edge { rho, sharpness, power } = self.edge;
        let (low, high) =
            if self.mirrored { (high.reciprocal(), low.reciprocal()) } else { (low, high) };
        let r = ((rho * low).power(sharpness) * cosine).minimum(Ball::from_f64(FAR));
        let rest = (-r).exponential();
        let most = (Ball::one() + rest).minimum((rho * high).power(sharpness)).upper();
        if self.rising {
            return most.logarithm().times_u64(power);
        }
        // (1 + e)^p - 1 <= p e (1 + e)^(p-1).
        let far = rest.upper().logarithm()
            + Ball::from_u64(power).logarithm()
            + (Ball::one() + rest).logarithm().times_u64(power - 1);
        let near = (Ball::one() + most.power(power)).logarithm();
        far.upper().minimum(near.upper())
    }
}

impl<const N: usize> Mask<N> {
    pub fn new(factors: Vec<Factor<N>>) -> Self {
        Self(factors)
    }

    pub fn is_whole(&self) -> bool {
        self.0.is_empty()
    }

    /// The mask at z.
    pub fn at(&self, z: Complex<N>) -> Complex<N> {
        self.0.iter().fold(Complex::one(), |product, factor| product * factor.at(z))
    }

    /// cos(m |arg z|) of each factor for angles of z up to this one; None where an angle is too wide.
    pub fn cosines(&self, angle: Ball<N>) -> Option<Vec<Ball<N>>> {
        let one = |factor: &Factor<N>| {
            let wide = angle.times_u64(factor.edge.sharpness);
            wide.is_at_most(&Ball::from_f64(WIDEST)).then(|| wide.cosine_sine().0)
        };
        self.0.iter().map(one).collect()
    }

    /// ln of a bound on the modulus where |z| lies in [low, high], with the cosines of its angles.
    pub fn log_bound(&self, low: Ball<N>, high: Ball<N>, cosines: &[Ball<N>]) -> Ball<N> {
        let all = self.0.iter().zip(cosines);
        all.fold(Ball::ZERO, |sum, (factor, cosine)| sum + factor.log_bound(low, high, *cosine))
    }

    /// ln2 of what no mask exceeds.
    pub fn power(&self) -> u64 {
        self.0.iter().map(|factor| factor.edge.power).sum()
    }

    pub fn rough(&self) -> RoughMask {
        let one = |factor: &Factor<N>| RoughFactor {
            log_rho: factor.edge.rho.logarithm().to_f64(),
            sharpness: factor.edge.sharpness as f64,
            power: factor.edge.power as f64,
            rising: factor.rising,
            mirrored: factor.mirrored,
        };
        RoughMask(self.0.iter().map(one).collect())
    }
}

/// A factor in doubles.
#[derive(Clone, Copy, Debug)]
struct RoughFactor {
    log_rho: f64,
    sharpness: f64,
    power: f64,
    rising: bool,
    mirrored: bool,
}

/// A mask in doubles, for choosing.
#[derive(Clone, Debug)]
pub struct RoughMask(Vec<RoughFactor>);

impl RoughFactor {
    /// ln of the bound at this ln |z| and angle of z; on the real axis of the factor itself.
    fn log_at(&self, log_z: f64, angle: f64) -> f64 {
        let log_w = self.sharpness * (self.log_rho + if self.mirrored { -log_z } else { log_z });
        let p = self.power;
        if angle == 0.0 {
            let log_fall = |log: f64| (-(-(log.min(6.0)).exp()).exp_m1()).ln();
            return if self.rising {
                p * log_fall(log_w)
            } else if log_w > 3.4 {
                // Far to the right 1 - (1 - e)^p is p e.
                p.ln() - log_w.min(LOG_FAR).exp()
            } else {
                (-(p * log_fall(log_w)).exp_m1()).ln()
            };
        }
        let wide = self.sharpness * angle;
        if wide > WIDEST {
            return f64::INFINITY;
        }
        let r = log_w.min(LOG_FAR).exp() * wide.cos();
        let most = log_w.min((-r).exp().ln_1p());
        if self.rising {
            return p * most;
        }
        let far = -r + p.ln() + (p - 1.0) * (-r).exp().ln_1p();
        far.min((p * most).exp().ln_1p())
    }
}

impl RoughMask {
    pub fn is_whole(&self) -> bool {
        self.0.is_empty()
    }

    pub fn log_at(&self, log_z: f64, angle: f64) -> f64 {
        self.0.iter().map(|factor| factor.log_at(log_z, angle)).sum()
    }

    /// Whether the bounds hold up to this angle of z.
    pub fn allows(&self, angle: f64) -> bool {
        self.0.iter().all(|factor| factor.sharpness * angle < 0.99 * WIDEST)
    }

    /// The largest |ln rho| of a factor whose edge lies right of 0 (left of it where it is mirrored).
    pub fn furthest(&self) -> Option<f64> {
        self.0.iter().map(|factor| -factor.log_rho).reduce(f64::max)
    }

    /// The largest m, and the largest m p: how fast the logarithm changes with ln z.
    pub fn steepness(&self) -> (f64, f64) {
        let most = |of: fn(&RoughFactor) -> f64| self.0.iter().map(of).fold(0.0, f64::max);
        (most(|factor| factor.sharpness), most(|factor| factor.sharpness * factor.power))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bounds over a range of |z| and of angles are at least the mask's modulus at every point of it.
    #[test]
    fn bounds_of_masks() {
        let edge =
            |rho: f64, sharpness, power| Edge { rho: Ball::<2>::from_f64(rho), sharpness, power };
        let all = [
            (edge(0.03, 1, 64), true, false),
            (edge(0.5, 4, 16), true, false),
            (edge(0.02, 4, 16), false, false),
            (edge(0.3, 8, 8), false, true),
            (edge(3.0, 8, 8), true, true),
        ];
        let factors = all.map(|(edge, rising, mirrored)| Factor { edge, rising, mirrored });
        for mask in [vec![factors[0]], vec![factors[3]], factors[..3].to_vec(), factors.to_vec()] {
            let sharpest = mask.iter().map(|one| one.edge.sharpness).max().unwrap_or(1);
            let (mask, widest) = (Mask::new(mask), 1.49 / sharpest as f64);
            assert!(mask.cosines(Ball::from_f64(1.02 * widest)).is_none());
            for step in -20..20 {
                let (low, high) = (1.4f64.powi(step), 1.4f64.powi(step + 1));
                for part in [0.0, 0.4, 0.99] {
                    let most = Ball::from_f64(part * widest);
                    let cosines = mask.cosines(most).expect("an angle that is allowed");
                    let (from, to) = (Ball::from_f64(low), Ball::from_f64(high));
                    let bound = mask.log_bound(from, to, &cosines).exponential();
                    for place in 0..=4 {
                        for turn in -2..=2 {
                            let angle = most * Ball::from_f64(0.5 * f64::from(turn));
                            let (cosine, sine) = angle.cosine_sine();
                            let size = low * (high / low).powf(0.25 * f64::from(place));
                            let z = Complex::new(cosine, sine).times_real(Ball::from_f64(size));
                            let found = mask.at(z).square_modulus();
                            let slack = Ball::from_f64(1.0 + 1e-12);
                            assert!(
                                !(bound * slack).squared().is_below(&found),
                                "{step} {part} {place} {turn}"
                            );
                        }
                    }
                    // The two halves of one edge are all of it.
                    let [one, two] = [true, false].map(|rising| {
                        let at = Complex::new(from, Ball::ZERO);
                        Mask::new(vec![Factor { rising, ..factors[1] }]).at(at).re
                    });
                    let gap = one + two - Ball::one();
                    assert!(!gap.is_positive() && !gap.is_negative());
                }
            }
        }
    }
}
