//! Hidden-state analyses: what the last iterate alone leaks when the loss is convex, smooth and
//! known to be so. They ask for the loss's constants ([`Loss`]); without them the lenses do not
//! hold for a run. The constants are taken at their word.
//!
//! In this crate's units an update is theta <- theta - eta (sum of clipped gradients + N(0, (s C)^2)) / n
//! with n the (expected) batch; the papers' noise is s C / n for each step, and their gradient
//! sensitivity L is C for adding or removing a record (its gradient is zeroed) and 2C for replacing it.
//! `reach` = L/C below. Clipping must not act on a loss that is convex only without it: the assumptions
//! say so.
//!
//! `hidden-state` ([`gaussian`], Bok, Su, Altschuler 2024, "Shifted interpolation"):
//! - full batches, strongly convex:
//!   mu = (reach/s) sqrt( (1-c^T)/(1+c^T) (1+c)/(1-c) ), c = max(|1 - eta m|, |1 - eta M|) < 1. **Upper
//!   bound**, exact for quadratics. c -> 1 is composition, sqrt(T) reach/s.
//! - full batches, convex on a set of diameter D to which iterates are projected, eta <= 2/M:
//!   mu^2 = (reach/s)^2 (3 x + ceil(x)), x = D n/(eta reach C), and never above composition. **Upper
//!   bound.**
//! - Poisson batches, strongly convex: the central-limit form of the authors' code, smallest over nu < T:
//!   mu^2 = 2 q^2 (nu+1) (e^{w^2} Phi(3w/2) + 3 Phi(-w/2) - 2) + 2 (w (c^{nu+1} - c^T)/(1-c))^2, w = 2 reach/s.
//!   An **estimate**.
//!
//! `hidden-state-renyi` ([`renyi`], Chourasia, Ye, Shokri 2021): full batches, strongly
//! convex, eta < 1/M, and an initialisation that is random (N(0, 2 sigma^2/m), projected):
//! RDP(alpha) = alpha * 8 reach^2 (1 - e^{-m eta T/2}) / (m eta s^2), in our units. **Upper bound**, up to
//! eight times composition's for few steps; it is finite for any number of them.

pub(crate) mod gaussian;
pub(crate) mod renyi;

pub use renyi::RenyiRate;

use crate::AccountingError;
use vocabulary::{Adjacency, Phase, Problem, Run};

/// What is known about the loss and the optimiser.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// Multiplies the noisy clipped sum divided by the expected batch size.
    pub learning_rate: f64,
    /// Each record's gradient is Lipschitz with this constant (M).
    pub smoothness: f64,
    /// Each record's loss is strongly convex with this constant (m); 0 if merely convex.
    pub strong_convexity: f64,
    /// Diameter of the set to which iterates are projected, if they are.
    pub diameter: Option<f64>,
}

impl Loss {
    /// # Errors
    /// `InvalidInput` for constants that cannot be.
    pub fn check(&self) -> Result<(), AccountingError> {
        let positive = |name: &str, value: f64| {
            if value > 0.0 && value.is_finite() {
                return Ok(());
            }
            Err(AccountingError::invalid(Problem::is_not(name, value, "a finite number above 0")))
        };
        positive("learning rate", self.learning_rate)?;
        positive("smoothness", self.smoothness)?;
        if let Some(diameter) = self.diameter {
            positive("diameter", diameter)?;
        }
        if !(self.strong_convexity >= 0.0 && self.strong_convexity <= self.smoothness) {
            let range = format!("[0, {}], the smoothness", self.smoothness);
            let problem = Problem::outside("strong convexity", self.strong_convexity, &range);
            return Err(AccountingError::InvalidInput(problem));
        }
        Ok(())
    }

    /// How much a step without noise shrinks distances.
    pub fn contraction(&self) -> f64 {
        let after = |curvature: f64| (1.0 - self.learning_rate * curvature).abs();
        after(self.strong_convexity).max(after(self.smoothness))
    }

    /// The constants in words, for the assumptions of a claim.
    pub fn assumption(&self) -> String {
        let mut text = format!(
            "every record's loss, with its clipping, is convex and {}-smooth",
            self.smoothness
        );
        if self.strong_convexity > 0.0 {
            text.push_str(&format!(", {}-strongly convex", self.strong_convexity));
        }
        if let Some(diameter) = self.diameter {
            text.push_str(&format!("; iterates are projected to a set of diameter {diameter}"));
        }
        text.push_str(&format!(
            "; constant learning rate {} (as stated; not checked)",
            self.learning_rate
        ));
        text
    }
}

/// The gradient sensitivity in units of the clip norm.
fn reach(run: &Run) -> f64 {
    match run.adjacency() {
        Adjacency::AddRemove | Adjacency::ZeroOut => 1.0,
        Adjacency::Substitute => 2.0,
    }
}

fn always_in(phase: &Phase) -> bool {
    phase.sample_rate == 1.0
}
