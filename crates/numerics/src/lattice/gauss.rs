//! Gauss-Legendre rules for mixtures of Gaussians on short intervals.
//!
//! For f analytic in the Bernstein ellipse E_rho of [-1, 1] and |f| <= M there, the n-point rule
//! is off by at most (64/15) M rho^(-2(n-1)) / (1 - rho^-2) (Trefethen, Approximation Theory and
//! Approximation Practice, theorem 19.3). A Gaussian seen from X standard deviations away on a
//! piece of half-width r standard deviations grows by at most exp(|X| r a + r^2 a^2 / 2) in the
//! ellipse, a = (rho + 1/rho)/2; with rho = 2/(r (1 + |X|)) >= 16 that is below e^1.53, so the
//! remainder is below 20 rho^(-2(n-1)) times the half-width times the value at the middle.

use crate::elementary::powi;
use crate::legendre;
use std::sync::OnceLock;

/// Nodes and weights on [-1, 1].
#[derive(Clone, Debug)]
pub struct Rule {
    pub nodes: Vec<f64>,
    pub weights: Vec<f64>,
}

/// Largest half-width r (in standard deviations) times 1 + |X| that [`rule_for`] accepts.
pub const REACH: f64 = 0.125;

/// The smallest stored rule whose remainder on a Gaussian piece is at most `wanted` (relative to
/// half-width times middle value), with the remainder that it has. `reach` is r (1 + |X|).
pub fn rule_for(reach: f64, wanted: f64) -> (&'static Rule, f64) {
    static RULES: OnceLock<[Rule; 4]> = OnceLock::new();
    let rules = RULES.get_or_init(|| [rule::<4>(), rule::<6>(), rule::<8>(), rule::<12>()]);
    debug_assert!(reach <= REACH * 1.000_001);
    let squared = (0.5 * reach) * (0.5 * reach);
    let mut remainder = f64::INFINITY;
    for candidate in rules {
        remainder = 20.0 * powi(squared, candidate.nodes.len() as i32 - 1);
        if remainder <= wanted {
            return (candidate, remainder);
        }
    }
    (&rules[3], remainder)
}

fn rule<const N: usize>() -> Rule {
    let (nodes, weights) = legendre::rule::<N>();
    Rule { nodes: nodes.into(), weights: weights.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The remainder must hold where the piece is widest: integral of exp(-x^2/2) over
    /// [3 - r, 3 + r] against a rule with far more points.
    #[test]
    fn the_remainder_bounds_the_error() {
        let integrate = |rule: &Rule, middle: f64, half: f64| -> f64 {
            rule.nodes
                .iter()
                .zip(&rule.weights)
                .map(|(node, weight)| {
                    let x: f64 = middle + half * node;
                    weight * (-0.5 * x * x).exp()
                })
                .sum()
        };
        let fine = rule::<40>();
        for middle in [0.0_f64, 1.0, 3.0, 9.0] {
            let half = REACH / (1.0 + middle);
            let (chosen, remainder) = rule_for(REACH, 1e-9);
            let middle_value = (-0.5 * middle * middle).exp();
            let off = (integrate(chosen, middle, half) - integrate(&fine, middle, half)).abs();
            assert!(off <= remainder * middle_value + 1e-15 * middle_value, "{off} {remainder}");
        }
    }

    #[test]
    fn weights_sum_to_two() {
        for rule in [rule::<4>(), rule::<6>(), rule::<8>(), rule::<12>()] {
            let sum: f64 = rule.weights.iter().sum();
            assert!((sum - 2.0).abs() < 1e-14, "{}: {sum}", rule.nodes.len());
        }
    }
}
