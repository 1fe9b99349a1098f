//! Bounds from canaries of one training.

use super::{ANY_MECHANISM, Bound, TestAt};
use crate::one_run::{OneRunBound, OneRunStatistic, OneRunZero, one_run_bound, one_run_reach};
use crate::{AuditError, Method, Plan, Scores, gaussian_epsilon, words};

pub(super) fn bounds(
    scores: &Scores,
    plan: &Plan,
    methods: &[Method],
    warnings: &mut Vec<String>,
) -> Result<Vec<Bound>, AuditError> {
    let level = plan.level();
    let mut all = Vec::new();
    for &method in methods {
        match method {
            Method::OneRun => {
                for &delta in &plan.deltas {
                    let statistic = OneRunStatistic::Epsilon { delta };
                    let found = one_run_bound(
                        scores,
                        &plan.threshold,
                        &statistic,
                        plan.direction,
                        level,
                        plan.seed,
                    )?;
                    let reason = why_zero(&found, delta);
                    if let Some(reason) = &reason {
                        let at = words::delta(delta);
                        warnings.push(format!("the one-run bound at delta {at} is 0: {reason}"));
                    }
                    all.push(Bound {
                        epsilon: found.value,
                        reason,
                        valid_for: ANY_MECHANISM.to_owned(),
                        ..bound(plan, method, delta, &found)
                    });
                }
            }
            Method::OneRunGdp => {
                let statistic = OneRunStatistic::GaussianMu;
                let found = one_run_bound(
                    scores,
                    &plan.threshold,
                    &statistic,
                    plan.direction,
                    level,
                    plan.seed,
                )?;
                for &delta in &plan.deltas {
                    let epsilon = gaussian_epsilon(found.value, delta);
                    all.push(Bound {
                        epsilon,
                        reason: (epsilon == f64::INFINITY).then(|| {
                            "at delta 0 every Gaussian mechanism with any leakage has infinite epsilon"
                                .to_owned()
                        }),
                        mu_lower: Some(found.value),
                        valid_for: "mechanisms with a Gaussian trade-off curve".to_owned(),
                        ..bound(plan, method, delta, &found)
                    });
                }
            }
            _ => {}
        }
    }
    let mut primary_seen = false;
    for bound in &mut all {
        bound.primary =
            !primary_seen && bound.method == plan.primary && bound.delta == plan.deltas[0];
        primary_seen |= bound.primary;
    }
    Ok(all)
}

fn bound(plan: &Plan, method: Method, delta: f64, found: &OneRunBound) -> Bound {
    Bound {
        method,
        threshold_rule: Some(plan.threshold),
        delta,
        epsilon: found.value,
        reason: None,
        epsilon_upper: None,
        confidence: 1.0 - plan.level(),
        valid_for: String::new(),
        primary: false,
        mu_lower: None,
        noise_multiplier_upper: None,
        tests: vec![TestAt::Guesses {
            guessed_in: found.guesses.guessed_in,
            guessed_out: found.guesses.guessed_out,
            right: found.guesses.right,
            canaries: found.guesses.canaries,
            strategies: found.strategies,
        }],
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

/// The bound that guesses without an error would have given under the plan's rule.
pub(super) fn reach(plan: &Plan, method: Method, canaries: u64, delta: f64) -> f64 {
    let at = |statistic: &OneRunStatistic| {
        one_run_reach(canaries, &plan.threshold, statistic, plan.direction, plan.level())
    };
    match method {
        Method::OneRunGdp => gaussian_epsilon(at(&OneRunStatistic::GaussianMu), delta),
        _ => at(&OneRunStatistic::Epsilon { delta }),
    }
}
