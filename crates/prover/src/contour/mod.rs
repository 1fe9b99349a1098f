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
mod line;
mod plan;
mod rough;
mod transform;

pub use line::{Line, moment};
pub use plan::{Plan, Zone, steepest};
pub use rough::Rough;

use crate::arithmetic::{Ball, Complex};
use crate::pairs::Step;
use vocabulary::{Adjacency, Run};

/// All steps of a run with Poisson or full batches.
pub struct Composition<const N: usize> {
    pub steps: Vec<Step<N>>,
    /// sum of T (k/sigma)^2 (of 4 T (k/sigma)^2 for substitution) over phases with rate 1: there
    /// E e^(sY) = e^(s(s-1) this/2).
    pub gaussian: Ball<N>,
}

impl<const N: usize> Composition<N> {
    pub fn new(run: &Run) -> Self {
        let shift = u64::from(run.group_size())
            * if run.adjacency() == Adjacency::Substitute { 2 } else { 1 };
        let mut gaussian = Ball::ZERO;
        let mut steps: Vec<Step<N>> = Vec::new();
        let mut seen: Vec<(f64, f64)> = Vec::new();
        for phase in run.phases() {
            if phase.sample_rate == 1.0 {
                let ratio = Ball::from_u64(shift).over(Ball::from_f64(phase.noise_multiplier));
                gaussian = gaussian + ratio.squared().times_u64(phase.steps);
                continue;
            }
            let key = (phase.noise_multiplier, phase.sample_rate);
            match seen.iter().position(|one| *one == key) {
                Some(index) => steps[index].times += phase.steps,
                None => {
                    seen.push(key);
                    steps.push(Step::new(phase, run));
                }
            }
        }
        Self { steps, gaussian }
    }

    /// The factor of the phases with rate 1 at s.
    pub fn gaussian_factor(&self, s: Complex<N>) -> Complex<N> {
        let product = s * (s - Complex::one());
        product.times_real(self.gaussian.scaled(-1)).exponential()
    }
}
