//! The composition of steps, by a contour integral whose every error is a ball.
//!
//! Y is the sum of the losses of all steps under Q, M(s) = E_Q e^(sY) the product of the steps'
//! transforms to their powers. For a line Re s = c the integral
//!
//! ```text
//! R(t) = 1/(2 pi i) * integral of M(s) e^(-(s-1)t) / (s (s-1)) ds
//! ```
//!
//! is E(e^Y - e^t)_+ for c > 1, -E min(e^Y, e^t) for 0 < c < 1, and E(e^t - e^Y)_+ for c < 0. They
//! differ by the residues 1 and e^t, so each gives the others.
//!
//! - **Aliases.** The trapezoid sum with spacing h is, by Poisson's formula, the sum over all m of
//!   e^((c-1) m P) g(t + m P), P = 2 pi/h, g the function of the zone: the wanted one and others that
//!   are not negative. For every c' of the closed zone g(t) <= M(c') e^((1-c') t), so the m-th is at
//!   most M(c') e^((1-c')t) e^((c-c') m P): a geometric series for c' above c (m > 0) and below it (m < 0).
//! - **Nodes left out.** |M(c+iu)| for all u >= U is bounded ([`transform::tail_bound`]) and
//!   1/|s(s-1)| <= 1/u^2.

mod bounds;
mod fast;
mod few;
mod half;
mod jumps;
mod law;
mod line;
mod masked;
mod plan;
mod rough;
mod rough_law;
mod thrown;
mod transform;

pub use few::{FewPlan, has_atoms, masses, plan as plan_of_more};
pub use law::{Law, Strand};
pub use line::{Line, moment};
pub use masked::MaskedPlan;
pub use plan::{Plan, Zone, log_bound, short, steepest};
pub use rough_law::RoughLaw;
pub use thrown::{Factor, Thrown};

use crate::arithmetic::normal_tail;
use crate::arithmetic::{Ball, Complex, Magnitude};
use crate::pairs::{Drawn, Draws, Step};
use vocabulary::Adjacency;

/// All steps of a run whose pairs are Gaussian mixtures.
pub struct Composition<const N: usize> {
    pub laws: Vec<Law<N>>,
    /// sum of T (j/sigma)^2 (of 4 T (j/sigma)^2 for substitution) over phases in which j records are certainly
    /// used: there E e^(sY) = e^(s(s-1) this/2).
    pub gaussian: Ball<N>,
    /// Mass that is counted at no use instead of at many, over all steps. It moves each of the three means
    /// by no more than itself: they are means under P or differences of means under P and Q, and Q is exact.
    pub lost: Magnitude,
}

impl<const N: usize> Composition<N> {
    /// Phases with the same noise and the same law of uses are put together.
    pub fn new(phases: Vec<Drawn<N>>, adjacency: Adjacency, depth: i64) -> Self {
        let substitute = adjacency == Adjacency::Substitute;
        let (mut gaussian, mut lost) = (Ball::ZERO, Magnitude::ZERO);
        let mut laws: Vec<Law<N>> = Vec::new();
        let mut seen: Vec<(f64, Vec<Ball<N>>)> = Vec::new();
        for phase in phases {
            match phase.draws {
                Draws::Certain(uses) => {
                    let shift = if substitute { 2 * uses } else { uses };
                    let ratio = Ball::from_u64(shift).over(Ball::from_f64(phase.noise));
                    gaussian = gaussian + ratio.squared().times_u64(phase.times);
                }
                Draws::Folded { shares, lost: here } => {
                    lost = lost.plus(here.times(Magnitude::from_f64(phase.times as f64)));
                    let (atom, strands) = folded(Ball::from_f64(phase.noise), &shares);
                    laws.push(Law { times: phase.times, atom, strands });
                    seen.push((f64::NAN, Vec::new()));
                }
                Draws::Cut { tau, kept, rate } => {
                    let law = cut(&phase, (tau, kept, rate), adjacency, depth);
                    if law.strands.len() == 1 {
                        // What happens so rarely is given away.
                        let all = tau.above().times(Magnitude::from_f64(phase.times as f64));
                        lost = lost.plus(all.scaled(1));
                    }
                    laws.push(law);
                    seen.push((f64::NAN, Vec::new()));
                }
                Draws::Shares { weights, lost: here } => {
                    lost = lost.plus(here.times(Magnitude::from_f64(phase.times as f64)));
                    let same = |one: &(f64, Vec<Ball<N>>)| {
                        one.0 == phase.noise
                            && one.1.len() == weights.len()
                            && one.1.iter().zip(&weights).all(|(a, b)| a.is_same(b))
                    };
                    match seen.iter().position(same) {
                        Some(index) => laws[index].times += phase.times,
                        None => {
                            let noise = Ball::from_f64(phase.noise);
                            let step = Step::new(noise, &weights, substitute, phase.times);
                            laws.push(Law::plain(step));
                            seen.push((phase.noise, weights));
                        }
                    }
                }
            }
        }
        Self { laws, gaussian, lost }
    }

    /// -ln of the least dP/dQ: sum of T ln(1/b_0), for adding and removing without phases of rate 1.
    pub fn largest_loss(&self) -> Option<Ball<N>> {
        if !self.gaussian.mid.is_zero() {
            return None;
        }
        let mut sum = Ball::ZERO;
        for law in &self.laws {
            let step = law.as_plain().filter(|step| !step.substitute)?;
            sum = sum - step.least().logarithm().times_u64(law.times);
        }
        Some(sum)
    }

    /// The factor of the phases with rate 1 at s.
    pub fn gaussian_factor(&self, s: Complex<N>) -> Complex<N> {
        let product = s * (s - Complex::one());
        product.times_real(self.gaussian.scaled(-1)).exponential()
    }
}

/// The law of the symmetric profile with these p_1, p_2, ... at shifts of j in units of the noise `noise`, half the
/// step's own: W = 1 - q + q e^((2x-1)/2s^2) from 1/2 on at s = noise/j, its mirror image, and the rest at 1.
fn folded<const N: usize>(noise: Ball<N>, shares: &[Ball<N>]) -> (Ball<N>, Vec<Strand<N>>) {
    let q = shares.iter().fold(Ball::ZERO, |sum, share| sum + *share);
    let rest = Ball::one() - q;
    let (mut atom, mut strands) = (Ball::ZERO, Vec::new());
    for (share, j) in shares.iter().zip(1u64..) {
        let weight = share.over(q);
        let noise = noise.over_u64(j);
        // 2 Phi(1/2s) - 1.
        let inside = Ball::one() - normal_tail(noise.reciprocal().scaled(-1)).scaled(1);
        atom = atom + rest * weight * inside;
        let step = Step::new(noise, &[rest, q], false, 1);
        strands.push(Strand { weight, step, half: true, mirror: None });
    }
    (atom, strands)
}

/// The law of a batch that is cut with probability tau.
fn cut<const N: usize>(
    phase: &Drawn<N>,
    (tau, kept, rate): (Ball<N>, Ball<N>, Ball<N>),
    adjacency: Adjacency,
    depth: i64,
) -> Law<N> {
    let (one, noise) = (Ball::one(), Ball::from_f64(phase.noise));
    let coins = |noise: Ball<N>, rate: Ball<N>, substitute: bool| {
        Step::new(noise, &[one - rate, rate], substitute, phase.times)
    };
    let plain = coins(noise, rate, adjacency == Adjacency::Substitute);
    if tau.above() < Magnitude::power_of_two(-depth) {
        return Law::plain(plain);
    }
    let mut law = Law::plain(plain);
    law.strands[0].weight = one - tau;
    if rate.is_same(&one) {
        // Every batch is cut.
        law.strands.clear();
    }
    let noise = noise.scaled(-1);
    if adjacency == Adjacency::AddRemove {
        let step = coins(noise, kept, false);
        law.strands.push(Strand { weight: tau, step, half: false, mirror: None });
    } else {
        let (atom, strands) = folded(noise, &[kept]);
        law.atom = atom * tau;
        law.strands
            .extend(strands.into_iter().map(|one| Strand { weight: one.weight * tau, ..one }));
    }
    law
}
