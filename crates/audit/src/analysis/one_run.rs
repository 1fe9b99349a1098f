//! Bounds from canaries of one training.

use super::ANY_MECHANISM;
use super::many_runs::{GAUSSIAN, finding, mark_primary, tests};
use crate::one_run::{
    NO_CHOICE, OneRunBound, OneRunStatistic, OneRunZero, one_run_bound, one_run_reach,
};
use crate::{
    AuditError, Design, Finding, Method, NotValid, Plan, Scores, Statistic, TestAt, ThresholdRule,
    gaussian_epsilon, words,
};

/// Why a method is not valid with a threshold rule.
pub(crate) fn objection(method: Method, rule: &ThresholdRule) -> Option<&'static str> {
    let chosen = matches!(rule, ThresholdRule::Holdout | ThresholdRule::KFold);
    (method == Method::OneRunGdp && chosen).then_some(NO_CHOICE)
}

pub(super) fn bounds(
    scores: &Scores,
    plan: &Plan,
    methods: &[Method],
    not_valid: &mut Vec<NotValid>,
    warnings: &mut Vec<String>,
) -> Result<Vec<Finding>, AuditError> {
    let level = plan.level();
    let bound = |statistic: &OneRunStatistic| {
        one_run_bound(scores, &plan.threshold, statistic, plan.direction, level, plan.seed)
    };
    let mut all = Vec::new();
    for &method in methods {
        match method {
            Method::OneRun => {
                for &delta in &plan.deltas {
                    let found = bound(&OneRunStatistic::Epsilon { delta })?;
                    let reason = why_zero(&found, delta);
                    if let Some(reason) = &reason {
                        let at = words::delta(delta);
                        warnings.push(format!("the one-run bound at delta {at} is 0: {reason}"));
                    }
                    all.push(Finding {
                        tests: vec![guesses(&found)],
                        ..finding(plan, method, delta, found.value, ANY_MECHANISM).because(reason)
                    });
                }
            }
            Method::OneRunGdp => {
                let found = bound(&OneRunStatistic::GaussianMu)?;
                for &delta in &plan.deltas {
                    all.push(Finding {
                        tests: vec![guesses(&found)],
                        ..gaussian(plan, method, delta, found.value, GAUSSIAN)
                    });
                }
            }
            Method::OneRunIndependent => {
                let found =
                    plan.threshold.lower_bound(scores, &Statistic::GaussianMu, level, plan.seed)?;
                for &delta in &plan.deltas {
                    all.push(Finding {
                        tests: tests(&found.measurements),
                        ..gaussian(plan, method, delta, found.value, NO_SHARED_RANDOMNESS)
                    });
                }
            }
            Method::GaussianPair => match gaussian_pair(scores) {
                Some(mu) => {
                    for &delta in &plan.deltas {
                        all.push(Finding {
                            threshold_rule: None,
                            ..gaussian(plan, method, delta, mu, GAUSSIAN_PAIR)
                        });
                    }
                }
                None => not_valid.push(NotValid {
                    method,
                    reason: "needs finite scores that are not all alike on both sides".to_owned(),
                }),
            },
            _ => {}
        }
    }
    mark_primary(&mut all, plan);
    Ok(all)
}

/// What `one-run-independent` holds for. Then the rows are independent, as trainings of their own are
/// (Xiang et al., "Tight privacy audit in one run", 2025), and the joint martingale reads them.
/// Where canaries share noise the bound can be far above the truth.
const NO_SHARED_RANDOMNESS: &str =
    "mechanisms with a Gaussian trade-off curve whose canaries are alike and share no randomness";

const GAUSSIAN_PAIR: &str = "Gaussian scores of one variance, as an estimate without confidence";

/// The distance of the means in standard deviations (pooled): the mu of a Gaussian pair, as in "Let's
/// ask Gauss" (arXiv 2606.12733). Asymptotic, so an estimate.
fn gaussian_pair(scores: &Scores) -> Option<f64> {
    let moments = |side: &[f64]| {
        let n = side.len() as f64;
        let mean = side.iter().sum::<f64>() / n;
        (n, mean, side.iter().map(|score| (score - mean).powi(2)).sum::<f64>())
    };
    let ((n1, mean1, squares1), (n0, mean0, squares0)) =
        (moments(scores.members()), moments(scores.nonmembers()));
    if n1 + n0 < 3.0 {
        return None;
    }
    let spread = ((squares1 + squares0) / (n1 + n0 - 2.0)).sqrt();
    let mu = (mean1 - mean0) / spread;
    (mu.is_finite() && spread > 0.0).then_some(mu.max(0.0))
}

/// A bound, or an estimate, of the Gaussian family.
fn gaussian(plan: &Plan, method: Method, delta: f64, mu: f64, valid_for: &str) -> Finding {
    let epsilon = gaussian_epsilon(mu, delta);
    let reason = (epsilon == f64::INFINITY).then(|| {
        "at delta 0 every Gaussian mechanism with any leakage has infinite epsilon".to_owned()
    });
    Finding {
        mu_lower: method.is_confidence_bound().then_some(mu),
        ..finding(plan, method, delta, epsilon, valid_for).because(reason)
    }
}

fn guesses(found: &OneRunBound) -> TestAt {
    TestAt::Guesses {
        guessed_in: found.guesses.guessed_in,
        guessed_out: found.guesses.guessed_out,
        right: found.guesses.right,
        canaries: found.guesses.canaries,
        strategies: found.strategies,
    }
}

fn why_zero(found: &OneRunBound, delta: f64) -> Option<String> {
    if found.value > 0.0 {
        return None;
    }
    let guesses = &found.guesses;
    OneRunZero::explain(guesses.canaries, guesses.counted(delta), guesses.right, found.level, delta)
        .map(|zero| zero.to_string())
}

/// The most canaries up to which a search goes, where each takes a while: canaries pay 2 m delta, and the Gaussian bound
/// counts every guess.
pub(super) fn most(method: Method, delta: f64) -> Option<u64> {
    match method {
        Method::OneRun if delta > 0.0 => Some(1 << 20),
        Method::OneRunGdp => Some(1 << 16),
        _ => None,
    }
}

/// The bound that guesses without an error would have given under the plan's rule.
pub(super) fn reach(plan: &Plan, method: Method, canaries: u64, delta: f64) -> f64 {
    let at = |statistic: &OneRunStatistic| {
        one_run_reach(canaries, &plan.threshold, statistic, plan.direction, plan.level())
    };
    match method {
        Method::OneRunGdp => gaussian_epsilon(at(&OneRunStatistic::GaussianMu), delta),
        Method::OneRunIndependent => {
            let half = (canaries / 2).max(1);
            let gaussian = Method::within_family(Design::Runs);
            super::many_runs::reach(plan, gaussian, half, half, delta).unwrap_or(f64::INFINITY)
        }
        _ => at(&OneRunStatistic::Epsilon { delta }),
    }
}
