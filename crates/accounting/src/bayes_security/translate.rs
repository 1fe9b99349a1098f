//! From Bayes security to what people ask for, and back. Each function says on which side its
//! answer lies when the number given is a bound; with an exact beta of the worst two secrets the
//! accuracy at a uniform prior is exact.
//!
//! Everything here follows from TPR - FPR <= 1 - beta for every attack (beta = 1 - TV), for every
//! prior; the trade-off curve, where there is one, says more.

use numerics::elementary::{exp, ln};
use numerics::special::normal_sf;

/// The accuracy of the best attacker who tells two secrets apart, one of which has this prior:
/// at most (1 - p) + p (1 - beta), p the smaller prior. **Upper bound** if beta is a lower one;
/// exact at prior 1/2, where it is 1 - beta/2.
///
/// ```
/// use accounting::bayes_security::translate::attack_accuracy;
/// assert!((attack_accuracy(0.9, 0.5) - 0.55).abs() < 1e-15);
/// ```
pub fn attack_accuracy(security: f64, prior: f64) -> f64 {
    let smaller = prior.min(1.0 - prior);
    (1.0 - smaller) + smaller * (1.0 - security)
}

/// The true positive rate at a false positive rate: at most min(1, 1 + FPR - beta). **Upper
/// bound**; the paper's other form, by prior, is never needed.
pub fn tpr(security: f64, fpr: f64) -> f64 {
    (1.0 - security + fpr).min(1.0)
}

/// Every (epsilon, delta) that holds for a mechanism with this Bayes security has epsilon at
/// least ln((2 - 2 delta - beta)/beta): a **lower bound on epsilon** (Humphries et al. 2023), and a
/// loose one. Infinite for beta 0.
///
/// ```
/// use accounting::bayes_security::{closed_form_mu, security_of_mu, translate};
/// use vocabulary::{Adjacency, Run};
/// let run = Run::builder().phase(2.0, 1e-4, 300_000).adjacency(Adjacency::Substitute).build()?;
/// let beta = security_of_mu(closed_form_mu(&run)?);
/// assert!((translate::least_epsilon(beta, 1e-8) - 0.0437).abs() < 5e-5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn least_epsilon(security: f64, delta: f64) -> f64 {
    if security <= 0.0 {
        return f64::INFINITY;
    }
    ln((2.0 - 2.0 * delta - security) / security).max(0.0)
}

/// What (epsilon, delta) guarantees: Bayes security of at least 2 (1 - delta)/(e^epsilon + 1).
/// **Lower bound**, reached by randomised response.
pub fn security_of_epsilon(epsilon: f64, delta: f64) -> f64 {
    2.0 * (1.0 - delta) / (exp(epsilon) + 1.0)
}

/// What mu-Gaussian privacy guarantees: 2 Phi(-mu/2). **Lower bound**, reached by the Gaussian.
pub fn security_of_mu(mu: f64) -> f64 {
    (2.0 * normal_sf(0.5 * mu)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pair;
    use crate::directions;
    use crate::pairs::Gaussian;
    use vocabulary::Direction;

    /// Translations bound what the whole curve says, and are exact where they claim to be.
    #[test]
    fn translations_are_on_their_side() {
        for mu in [0.05, 0.4, 1.0, 3.0] {
            let pair = Gaussian::new(mu).unwrap();
            let beta = security_of_mu(mu);
            for prior in [0.1, 0.3, 0.5, 0.8] {
                let exact = directions::accuracy(&pair, prior, Direction::Both).unwrap();
                let bound = attack_accuracy(beta, prior);
                assert!(bound >= exact.lower - 1e-12, "{mu} {prior}");
                if prior == 0.5 {
                    assert!((bound - exact.value).abs() < 1e-12);
                }
            }
            for fpr in [1e-3, 0.01, 0.1, 0.5] {
                let exact = directions::tpr(&pair, fpr, Direction::Both).unwrap();
                assert!(tpr(beta, fpr) >= exact.lower - 1e-12);
            }
            for delta in [1e-9, 1e-3] {
                let epsilon = pair.epsilon(delta, crate::Order::Remove).unwrap();
                assert!(least_epsilon(beta, delta) <= epsilon.upper);
                assert!(security_of_epsilon(epsilon.value, delta) <= beta + 1e-12);
            }
        }
    }

    /// Figure 7 of the paper: p 1e-4, T 5e5, sigma 2, replacing a record. Its beta is that of
    /// the central limit and of composition (the closed form would be .97180).
    #[test]
    fn figure_7() {
        let run = vocabulary::Run::builder()
            .phase(2.0, 1e-4, 500_000)
            .adjacency(vocabulary::Adjacency::Substitute)
            .build()
            .unwrap();
        let limit = crate::bayes_security::central_limit_mu(&run).unwrap();
        let exact = crate::pairs::Composed::for_run(&run).unwrap();
        let beta = directions::bayes_security(&exact).unwrap().value;
        assert!((beta - 0.97165).abs() < 5e-6, "{beta}");
        assert!((security_of_mu(limit) - beta).abs() < 1e-5);
        let curve = Gaussian::new(limit).unwrap();
        for (fpr, by_security, by_curve) in
            [(0.1, 0.1283, 0.1130), (0.05, 0.0783, 0.0578), (0.01, 0.0383, 0.0121)]
        {
            assert!((tpr(beta, fpr) - by_security).abs() < 1e-4, "{fpr}: {}", tpr(beta, fpr));
            for pair in [&curve as &dyn Pair, &exact] {
                let found = directions::tpr(pair, fpr, Direction::Both).unwrap().value;
                assert!((found - by_curve).abs() < 6e-5, "{fpr}: {found}");
            }
        }
    }
}
