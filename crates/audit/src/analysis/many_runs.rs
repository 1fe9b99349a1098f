//! Bounds from rows that are trainings of their own.

use super::ANY_MECHANISM;
use crate::bayes::credible_epsilon;
use crate::family::gaussian_epsilon_above;
use crate::grid::grid_estimate;
use crate::rule::family_points;
use crate::{
    AuditError, Errors, FOLDS, Family, FamilyPoints, Finding, Measurement, Method, NotValid, Plan,
    RateBounds, Scores, Statistic, TestAt, ThresholdRule, gaussian_epsilon,
};
use numerics::patience::share;

/// The part of the time that is left which a method may take that was not asked for by name.
const SHARE: f64 = 0.6;
const TOO_LONG: &str =
    "it takes more than its share of the time limit (a larger --time-limit lets it go on)";

pub(super) fn bounds(
    scores: &Scores,
    plan: &Plan,
    methods: &[Method],
    not_valid: &mut Vec<NotValid>,
    warnings: &mut Vec<String>,
) -> Result<Vec<Finding>, AuditError> {
    let mut all = Vec::new();
    for &method in methods {
        let ask = |not_valid: &mut Vec<NotValid>| match method {
            Method::ClopperPearson => clopper_pearson(scores, plan),
            Method::Gdp => gdp(scores, plan),
            Method::Composition | Method::LastIterate => family(scores, plan, method),
            Method::Bayes => bayes(scores, plan),
            Method::Grid => grid(scores, plan, not_valid),
            // The plan objects to methods of another design.
            _ => Ok(Vec::new()),
        };
        // A method that was not asked for by name may be missing; the primary may not.
        let optional = plan.all_methods && method != plan.primary;
        let found = if optional {
            share(SHARE, || ask(not_valid)).unwrap_or_else(|| {
                not_valid.push(NotValid { method, reason: TOO_LONG.to_owned() });
                Ok(Vec::new())
            })
        } else {
            ask(not_valid)
        };
        match found {
            Ok(found) => all.extend(found),
            Err(AuditError::Accounting(error)) if optional => {
                not_valid.push(NotValid { method, reason: error.to_string() });
            }
            Err(error) => return Err(error),
        }
    }
    if methods.contains(&Method::Bayes) && band_rule(&plan.threshold) {
        warnings.push(
            "bayes has no band over all thresholds: its threshold was chosen on half of the scores (holdout)"
                .to_owned(),
        );
    }
    mark_primary(&mut all, plan);
    Ok(all)
}

/// The headline is the first of the primary method at the first delta.
pub(super) fn mark_primary(all: &mut [Finding], plan: &Plan) {
    let primary =
        |bound: &&mut Finding| bound.method() == plan.primary && bound.delta() == plan.deltas[0];
    if let Some(bound) = all.iter_mut().find(primary) {
        bound.primary = true;
    }
}

fn band_rule(rule: &ThresholdRule) -> bool {
    matches!(rule, ThresholdRule::Union | ThresholdRule::Dkw)
}

pub(super) fn tests(measurements: &[Measurement]) -> Vec<TestAt> {
    let test = |measurement: &Measurement| TestAt::Threshold {
        threshold: measurement.threshold,
        false_positives: measurement.errors.false_positives,
        nonmembers: measurement.errors.nonmembers,
        false_negatives: measurement.errors.false_negatives,
        members: measurement.errors.members,
    };
    measurements.iter().map(test).collect()
}

/// What the one test that measured could at most have shown; nothing when no test was found.
fn upper_limit(measurements: &[Measurement], statistic: &Statistic) -> Option<f64> {
    match measurements {
        [one] if one.threshold != f64::INFINITY => Some(statistic.value(&one.opposite)),
        _ => None,
    }
}

/// What a method shows under the plan's rule and confidence.
pub(super) fn finding(
    plan: &Plan,
    method: Method,
    delta: f64,
    epsilon: f64,
    valid_for: impl Into<String>,
) -> Finding {
    let level = 1.0 - plan.level();
    Finding {
        threshold_rule: Some(plan.threshold.to_string()),
        ..Finding::new(method, plan.adjacency(), delta, epsilon, level, valid_for)
    }
}

fn clopper_pearson(scores: &Scores, plan: &Plan) -> Result<Vec<Finding>, AuditError> {
    plan.deltas
        .iter()
        .map(|&delta| {
            let statistic = Statistic::Epsilon { delta, direction: plan.direction };
            let found = plan.threshold.lower_bound(scores, &statistic, plan.level(), plan.seed)?;
            Ok(Finding {
                epsilon_upper: upper_limit(&found.measurements, &statistic),
                tests: tests(&found.measurements),
                ..finding(plan, Method::ClopperPearson, delta, found.value, ANY_MECHANISM)
            })
        })
        .collect()
}

const INFINITE_AT_ZERO: &str =
    "at delta 0 every mechanism of this family with any leakage has infinite epsilon";

pub(super) const GAUSSIAN: &str = "mechanisms with a Gaussian trade-off curve";

fn gdp(scores: &Scores, plan: &Plan) -> Result<Vec<Finding>, AuditError> {
    let statistic = Statistic::GaussianMu;
    let found = plan.threshold.lower_bound(scores, &statistic, plan.level(), plan.seed)?;
    let mu = found.value;
    let upper = upper_limit(&found.measurements, &statistic);
    Ok(plan
        .deltas
        .iter()
        .map(|&delta| {
            let epsilon = gaussian_epsilon(mu, delta);
            let reason = (epsilon == f64::INFINITY).then(|| INFINITE_AT_ZERO.to_owned());
            Finding {
                epsilon_upper: upper.map(|mu| gaussian_epsilon_above(mu, delta)),
                mu_lower: Some(mu),
                tests: tests(&found.measurements),
                ..finding(plan, Method::Gdp, delta, epsilon, GAUSSIAN).because(reason)
            }
        })
        .collect())
}

fn family(scores: &Scores, plan: &Plan, method: Method) -> Result<Vec<Finding>, AuditError> {
    let Some(family) = plan.family(method) else { return Ok(Vec::new()) };
    let points = family_points(&plan.threshold, scores, plan.level(), plan.seed)?;
    let violated = points.least_violated(&family)?;
    let noise = violated.as_ref().map(|violated| violated.noise);
    // The thresholds that show the bound, one for each order of the pair, or what came closest.
    let closest = || [points.closest(); 2];
    let [one, other] = violated.map_or_else(closest, |violated| violated.points);
    let mut shown = vec![points.measurement(one)];
    let second = points.measurement(other);
    if second.threshold != shown[0].threshold {
        shown.push(second);
    }
    let tested = shown.iter().all(|test| test.threshold != f64::INFINITY)
        && plan.threshold != ThresholdRule::KFold;
    let limits = if tested {
        let opposite: Vec<RateBounds> = shown.iter().map(|test| test.opposite).collect();
        family.epsilon_within_reach(&opposite, &plan.deltas, noise)?
    } else {
        None
    };
    let mut found = Vec::new();
    for (place, &delta) in plan.deltas.iter().enumerate() {
        let epsilon = noise.map_or(Ok(0.0), |noise| family.epsilon(noise, delta))?;
        let reason = if noise.is_none() {
            Some("no noise of the family is ruled out by these rates".to_owned())
        } else {
            (epsilon == f64::INFINITY).then(|| INFINITE_AT_ZERO.to_owned())
        };
        found.push(Finding {
            epsilon_upper: limits.as_ref().map(|limits| limits[place]),
            noise_multiplier_upper: noise,
            tests: tests(&shown),
            ..finding(plan, method, delta, epsilon, family.describe()).because(reason)
        });
    }
    Ok(found)
}

fn bayes(scores: &Scores, plan: &Plan) -> Result<Vec<Finding>, AuditError> {
    let rule = if band_rule(&plan.threshold) || plan.threshold == ThresholdRule::KFold {
        ThresholdRule::Holdout
    } else {
        plan.threshold
    };
    plan.deltas
        .iter()
        .map(|&delta| {
            let statistic = Statistic::Epsilon { delta, direction: plan.direction };
            let measured = rule.measure(scores, &statistic, 1.0 - plan.confidence, plan.seed)?;
            let one = &measured[0];
            let credible = credible_epsilon(&one.errors, delta, plan.confidence, plan.direction);
            let valid_for = "any mechanism, under Jeffreys' prior (credible, not confidence)";
            Ok(Finding {
                threshold_rule: Some(rule.to_string()),
                epsilon_upper: Some(credible.upper),
                credibility: Some(plan.confidence),
                tests: tests(&measured[..1]),
                ..finding(plan, Method::Bayes, delta, credible.lower, valid_for)
            })
        })
        .collect()
}

fn grid(
    scores: &Scores,
    plan: &Plan,
    not_valid: &mut Vec<NotValid>,
) -> Result<Vec<Finding>, AuditError> {
    let Some(family) = plan.family(Method::Grid) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for &delta in &plan.deltas {
        match grid_estimate(scores, &family, delta, plan.min_count) {
            Ok(estimate) => {
                let beyond = estimate.beyond_grid;
                let reason = beyond.then(|| "beyond the grid, which ends at 20".to_owned());
                let valid_for = format!("{}, as an estimate without confidence", family.describe());
                found.push(Finding {
                    threshold_rule: None,
                    ..finding(plan, Method::Grid, delta, estimate.epsilon, valid_for)
                        .because(reason)
                });
            }
            Err(AuditError::NotValid(reason)) => {
                not_valid.push(NotValid { method: Method::Grid, reason });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The counts that measure under the plan's rule when scores of these sizes are separated.
pub(super) fn without_errors(plan: &Plan, members: u64, nonmembers: u64) -> Errors {
    // What the first part, which only chooses, leaves; see [`crate::split::deal`].
    let share = match plan.threshold {
        ThresholdRule::Holdout => 0.5,
        ThresholdRule::KFold => 1.0 / FOLDS as f64,
        _ => 0.0,
    };
    let left = |all: u64| all - ((all as f64 * share).round() as u64).min(all);
    Errors {
        false_positives: 0,
        nonmembers: left(nonmembers),
        false_negatives: 0,
        members: left(members),
    }
}

/// What points show within a family.
pub(super) fn family_reach(
    family: &Family,
    points: &FamilyPoints,
    delta: f64,
) -> Result<f64, AuditError> {
    match points.least_violated(family)? {
        Some(violated) => family.epsilon(violated.noise, delta),
        None => Ok(0.0),
    }
}

/// The bound that separated scores of these sizes would have given under the plan's rule.
pub(super) fn reach(
    plan: &Plan,
    method: Method,
    members: u64,
    nonmembers: u64,
    delta: f64,
) -> Result<f64, AuditError> {
    let level = plan.level();
    let errors = without_errors(plan, members, nonmembers);
    let statistic = match method {
        Method::Gdp => Statistic::GaussianMu,
        Method::Composition | Method::LastIterate => {
            let Some(family) = plan.family(method) else { return Ok(0.0) };
            let points = FamilyPoints::of_counts(&plan.threshold, &errors, level);
            return family_reach(&family, &points, delta);
        }
        _ => Statistic::Epsilon { delta, direction: plan.direction },
    };
    let value = plan.threshold.lower_bound_of_counts(&errors, &statistic, level);
    Ok(if method == Method::Gdp { gaussian_epsilon(value, delta) } else { value })
}
