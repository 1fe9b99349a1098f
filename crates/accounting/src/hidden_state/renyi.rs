//! The Rényi rate of Chourasia, Ye, Shokri 2021; formula and direction in the parent module.
//!
//! In the paper a step adds sqrt(2 eta) sigma N(0, I) to theta - eta (gradient of the mean loss),
//! and RDP(alpha) = alpha 4 S^2/(lambda sigma^2 n^2) (1 - e^{-lambda eta K/2}) with S the sensitivity
//! of the *summed* gradient. Here the noise of a step is eta s C/n, so sigma^2 = eta s^2 C^2/(2 n^2),
//! S = reach C, and the constant becomes 8 reach^2/(lambda eta s^2). For quadratics the exact rate is
//! known (Bok et al.), and a test holds the formula against it: never below, and eight times above
//! for many small steps.
//!
//! RDP(alpha) = rho alpha becomes (epsilon, delta) by Canonne, Kamath, Steinke 2020, Proposition 12:
//! delta = e^{(alpha-1)(rho alpha - epsilon)} (1 - 1/alpha)^alpha / (alpha - 1), valid for every alpha > 1;
//! the best is searched, and any is a bound.

use super::{Loss, always_in, reach};
use crate::AccountingError;
use crate::lenses::ProfileBound;
use numerics::elementary::{exp, exp_m1, ln, powi};
use vocabulary::{NotCovered, Phase, Problem, Run, Sampling};

/// A mechanism with RDP(alpha) = rho alpha.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RenyiRate {
    pub rho: f64,
}

pub(crate) fn rate(run: &Run, phase: &Phase, loss: &Loss) -> Result<RenyiRate, AccountingError> {
    if !always_in(phase) {
        let (what, found) = ("it holds", run.sampling());
        return Err(NotCovered::Sampling {
            what,
            found,
            covered: &[Sampling::Full],
            elsewhere: false,
        }
        .into());
    }
    let (m, eta) = (loss.strong_convexity, loss.learning_rate);
    if m <= 0.0 {
        let why = "it holds for strongly convex losses only; give --strong-convexity";
        return Err(NotCovered::Missing { key: "strong_convexity", why }.into());
    }
    if eta >= 1.0 / loss.smoothness {
        let most = format!("below 1/smoothness = {}", 1.0 / loss.smoothness);
        return Err(NotCovered::Value(Problem::is_not("learning rate", eta, &most)).into());
    }
    let mixed = -exp_m1(-0.5 * m * eta * phase.steps as f64);
    let square = powi(reach(run) / phase.noise_multiplier, 2);
    Ok(RenyiRate { rho: 8.0 * square * mixed / (m * eta) * (1.0 + 1e-12) })
}

impl RenyiRate {
    /// Smallest value over orders: a logarithmic scan with refinement; every order is valid.
    fn best(value: impl Fn(f64) -> f64) -> f64 {
        let (mut best, mut least) = (0.0, f64::INFINITY);
        let mut consider = |x: f64, best: &mut f64| {
            let found = value(1.0 + exp(x));
            if found < least {
                (*best, least) = (x, found);
            }
        };
        for i in -60..=120 {
            consider(0.2 * f64::from(i), &mut best);
        }
        let mut step = 0.1;
        for _ in 0..12 {
            for x in [best - step, best + step] {
                consider(x, &mut best);
            }
            step *= 0.6;
        }
        least
    }
}

impl ProfileBound for RenyiRate {
    fn epsilon(&self, delta: f64) -> Result<f64, AccountingError> {
        let found = Self::best(|alpha| {
            let rest = ln(1.0 - 1.0 / alpha);
            self.rho * alpha + rest - (ln(delta) + ln(alpha)) / (alpha - 1.0)
        });
        Ok((found * (1.0 + 1e-12)).max(0.0))
    }

    fn delta(&self, epsilon: f64) -> Result<f64, AccountingError> {
        let log = Self::best(|alpha| {
            (alpha - 1.0) * (self.rho * alpha - epsilon) + alpha * ln(1.0 - 1.0 / alpha)
                - ln(alpha - 1.0)
        });
        Ok(exp(log + 1e-12 * (1.0 + log.abs())).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::Gaussian;
    use crate::{Order, Pair};
    use vocabulary::Sampling;

    /// rho = mu^2/2 is the Gaussian's own rate: the conversion lies above the exact epsilon and
    /// delta, and not far.
    #[test]
    fn conversion_covers_the_gaussian() {
        for mu in [0.3_f64, 1.0, 4.0] {
            let (rate, pair) = (RenyiRate { rho: 0.5 * mu * mu }, Gaussian::new(mu).unwrap());
            for delta in [1e-3, 1e-8] {
                let (bound, exact) =
                    (rate.epsilon(delta).unwrap(), pair.epsilon(delta, Order::Remove).unwrap());
                assert!(bound >= exact.upper && bound < 1.5 * exact.upper, "{mu} {delta}: {bound}");
                let back = rate.delta(bound).unwrap();
                assert!((back / delta - 1.0).abs() < 1e-3, "{back} {delta}");
            }
        }
    }

    /// Quadratic losses of the curvatures between m and M leak as much as the formula of Bok et al.
    /// says, exactly; a bound for all losses must cover them.
    #[test]
    fn it_covers_quadratics() {
        for (eta, m, smooth) in
            [(0.1, 1.0, 5.0), (1e-3, 1.0, 2.0), (0.5, 1.5, 1.9), (0.01, 0.1, 50.0)]
        {
            let loss = Loss {
                learning_rate: eta,
                smoothness: smooth,
                strong_convexity: m,
                diameter: None,
            };
            let c: f64 = 1.0 - eta * m;
            for steps in [1, 3, 30, 1000, 100_000] {
                let run =
                    Run::builder().phase(2.0, 1.0, steps).sampling(Sampling::Full).build().unwrap();
                let bound = rate(&run, &run.phases()[0], &loss).unwrap().rho;
                let power = c.powf(steps as f64);
                let mu_square = (1.0 - power) / (1.0 + power) * (1.0 + c) / (1.0 - c) / 4.0;
                assert!(bound >= 0.5 * mu_square, "{eta} {m} {steps}: {bound} {mu_square}");
                assert!(bound <= 16.0 * mu_square, "{eta} {m} {steps}: {bound} {mu_square}");
            }
        }
    }

    #[test]
    fn it_converges_and_is_looser_than_composition_at_first() {
        let loss =
            Loss { learning_rate: 0.1, smoothness: 5.0, strong_convexity: 1.0, diameter: None };
        let at = |steps: u64| {
            let run =
                Run::builder().phase(2.0, 1.0, steps).sampling(Sampling::Full).build().unwrap();
            rate(&run, &run.phases()[0], &loss).unwrap().rho
        };
        // Composition's rate is T/(2 s^2).
        assert!(at(1) > 0.125 && (at(1) / (8.0 * 0.125) - 1.0).abs() < 0.05);
        assert!((at(10_000) - 20.0).abs() < 1e-6, "{}", at(10_000));
        assert!(at(10_000) < 10_000.0 * 0.125);
    }
}
