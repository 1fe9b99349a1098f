//! The score of memorisation regressed on log b, log T and log eta (Hu et al. 2025, section 4).
//!
//! One observation per configuration (its mean over seeds, as in the paper) or one per run (then
//! errors are clustered, because the runs of a configuration share what the regressors leave
//! out). Several (epsilon, delta) get an intercept each. The clip norm is a fourth regressor where
//! it varies. What the heuristics say about the coefficients is tested as contrasts:
//!
//! - Compute (at fixed C = bT, larger b is safer): a_b - a_T < 0
//! - Updates (at fixed U = bT eta, smaller eta is safer): a_b - a_eta < 0 and a_T - a_eta < 0
//!
//! The noise multiplier is no regressor: at one (epsilon, delta) it is a function of b and T.

use crate::least_squares::{Covariance, Fit, Test, fit};
use crate::{EpsilonGroup, STATEMENT, TuningError, student_quantile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::Problem;

/// What one observation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    #[default]
    Configurations,
    Runs,
}

/// How errors are estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Errors {
    Classical,
    Hc1,
    Hc3,
    /// Clustered by configuration.
    Configuration,
    /// Clustered by seed: for seeds that share initialisation or noise across configurations.
    Seed,
}

/// What to fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegressionOptions {
    pub unit: Unit,
    /// Absent: HC3 for configurations, clustered by configuration for runs.
    pub errors: Option<Errors>,
    pub confidence: f64,
    /// The base of the logarithms; coefficients scale with ln(base), p-values do not.
    pub log_base: f64,
    /// Regressors and score in units of their standard deviation.
    pub standardise: bool,
}

impl Default for RegressionOptions {
    fn default() -> Self {
        Self {
            unit: Unit::Configurations,
            errors: None,
            confidence: 0.95,
            log_base: std::f64::consts::E,
            standardise: false,
        }
    }
}

/// A coefficient or a difference of two, with its interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Effect {
    pub name: String,
    pub estimate: f64,
    pub standard_error: f64,
    pub statistic: f64,
    pub p_value: f64,
    pub lower: f64,
    pub upper: f64,
}

/// A test that several coefficients are zero, or equal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Joint {
    pub says: String,
    pub statistic: f64,
    pub p_value: f64,
}

/// A model in which a composite stands for its factors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Composite {
    /// `C` = bT, or `U` = bT eta.
    pub name: String,
    pub coefficients: Vec<Effect>,
    pub r_squared: f64,
    /// Does the full model explain more than this one?
    pub restriction: Option<Joint>,
}

/// The `dosimeter.tune-regress/1` document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Regression {
    pub schema: String,
    pub score: String,
    pub unit: Unit,
    pub errors: Errors,
    pub confidence: f64,
    pub log_base: f64,
    pub standardised: bool,
    pub epsilons: Vec<f64>,
    pub observations: usize,
    pub degrees_of_freedom: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters: Option<usize>,
    pub coefficients: Vec<Effect>,
    pub r_squared: f64,
    pub adjusted_r_squared: f64,
    /// That no hyper-parameter matters.
    pub joint: Option<Joint>,
    /// What the heuristics predict to be below zero.
    pub contrasts: Vec<Effect>,
    pub composites: Vec<Composite>,
    pub statement: String,
    pub warnings: Vec<String>,
}

impl Regression {
    pub const SCHEMA: &'static str = "dosimeter.tune-regress/1";
}

/// One observation before logarithms.
struct Observation {
    group: usize,
    configuration: usize,
    seed: Option<String>,
    score: f64,
    /// b, T, eta, clip norm.
    parameters: [Option<f64>; 4],
}

const NAMES: [&str; 4] = ["batch_size", "steps", "learning_rate", "clip_norm"];

/// Fits the regression over all groups.
///
/// # Errors
/// `TooLittle` where the table does not determine the coefficients, `InvalidInput` for malformed
/// options.
pub fn regress(
    groups: &[EpsilonGroup],
    score: &str,
    options: &RegressionOptions,
) -> Result<Regression, TuningError> {
    check(options)?;
    let observations = observations(groups, options.unit);
    let errors = options.errors.unwrap_or(match options.unit {
        Unit::Configurations => Errors::Hc3,
        Unit::Runs => Errors::Configuration,
    });
    let mut warnings = Vec::new();
    let covariance = covariance(&observations, errors, &mut warnings)?;
    let mut y: Vec<f64> = observations.iter().map(|o| o.score).collect();
    if y.iter().all(|value| *value == y[0]) {
        return Err(TuningError::TooLittle(format!(
            "every observation has the score {}; there is nothing to explain",
            y[0]
        )));
    }
    let (names, mut logs) = regressors(&observations, options.log_base, &mut warnings)?;
    if options.standardise {
        for column in logs.iter_mut().chain(std::iter::once(&mut y)) {
            standardise(column);
        }
    }
    let intercepts = intercepts(groups, &observations);
    let (first, count) = (intercepts.len(), logs.len());
    let with = |columns: &[Vec<f64>]| [&intercepts[..], columns].concat();
    let full = fit(&with(&logs), &y, &covariance)?;
    let interval = Interval { confidence: options.confidence };
    let label = |name: &str| format!("log {name}");
    let mut coefficients: Vec<Effect> = groups
        .iter()
        .enumerate()
        .map(|(i, group)| {
            let name = if groups.len() == 1 {
                "intercept".to_owned()
            } else {
                format!("intercept at epsilon {}", vocabulary::rounding::plain(group.epsilon))
            };
            interval.of(name, &full, full.coefficient(i))
        })
        .collect();
    for (i, name) in names.iter().enumerate() {
        coefficients.push(interval.of(label(name), &full, full.coefficient(first + i)));
    }
    let unit_rows: Vec<Vec<f64>> = (0..count).map(|i| unit(first + count, first + i)).collect();
    let joint = full.joint_test(&unit_rows).map(|(statistic, p_value)| Joint {
        says: "no hyper-parameter has an effect".into(),
        statistic,
        p_value,
    });
    let place = |name: &str| names.iter().position(|known| *known == name).map(|i| first + i);
    let mut contrasts = Vec::new();
    for (text, a, b) in [
        ("Compute: batch_size - steps", "batch_size", "steps"),
        ("Updates: batch_size - learning_rate", "batch_size", "learning_rate"),
        ("Updates: steps - learning_rate", "steps", "learning_rate"),
    ] {
        if let (Some(a), Some(b)) = (place(a), place(b)) {
            let mut weights = unit(first + count, a);
            weights[b] = -1.0;
            contrasts.push(interval.of(text.into(), &full, full.test(&weights)));
        }
    }
    let composites = if options.standardise {
        Vec::new() // sums of standardised logarithms are no longer composites
    } else {
        composites(&names, &logs, &with, &y, &covariance, &full, first, interval)?
    };
    if full.clusters.is_some_and(|clusters| clusters < 20) {
        warnings.push(format!(
            "{} clusters are few: clustered errors tend to be too small below about 20",
            full.clusters.unwrap_or(0)
        ));
    }
    Ok(Regression {
        schema: Regression::SCHEMA.into(),
        score: score.into(),
        unit: options.unit,
        errors,
        confidence: options.confidence,
        log_base: options.log_base,
        standardised: options.standardise,
        epsilons: groups.iter().map(|group| group.epsilon).collect(),
        observations: y.len(),
        degrees_of_freedom: full.degrees_of_freedom,
        clusters: full.clusters,
        coefficients,
        r_squared: full.r_squared(),
        adjusted_r_squared: full.adjusted_r_squared(),
        joint,
        contrasts,
        composites,
        statement: STATEMENT.into(),
        warnings,
    })
}

fn check(options: &RegressionOptions) -> Result<(), TuningError> {
    if !(options.confidence > 0.0 && options.confidence < 1.0) {
        let problem = Problem::outside("confidence", options.confidence, "(0, 1)");
        return Err(TuningError::InvalidInput(problem));
    }
    if !(options.log_base > 1.0 && options.log_base.is_finite()) {
        let problem = Problem::is_not("log base", options.log_base, "a finite number above 1");
        return Err(TuningError::InvalidInput(problem));
    }
    Ok(())
}

fn observations(groups: &[EpsilonGroup], unit: Unit) -> Vec<Observation> {
    let mut all = Vec::new();
    let mut number = 0;
    for (group, configurations) in groups.iter().map(|g| &g.configurations).enumerate() {
        for c in configurations {
            let parameters =
                [Some(c.batch_size), Some(c.steps as f64), Some(c.learning_rate), c.clip_norm];
            let one = |score: f64, seed: Option<String>| Observation {
                group,
                configuration: number,
                seed,
                score,
                parameters,
            };
            match unit {
                Unit::Configurations => all.push(one(c.score, None)),
                Unit::Runs => {
                    for (i, score) in c.run_scores.iter().enumerate() {
                        all.push(one(*score, c.seeds.get(i).cloned()));
                    }
                }
            }
            number += 1;
        }
    }
    all
}

fn covariance(
    observations: &[Observation],
    errors: Errors,
    warnings: &mut Vec<String>,
) -> Result<Covariance, TuningError> {
    Ok(match errors {
        Errors::Classical => Covariance::Classical,
        Errors::Hc1 => Covariance::Hc1,
        Errors::Hc3 => Covariance::Hc3,
        Errors::Configuration => {
            Covariance::Clustered(observations.iter().map(|o| o.configuration).collect())
        }
        Errors::Seed => {
            let mut known: Vec<&str> = Vec::new();
            let mut labels = Vec::new();
            for observation in observations {
                let seed = observation.seed.as_deref().ok_or_else(|| {
                    TuningError::invalid(
                        "errors clustered by seed need one observation per run and a seed in every row",
                    )
                })?;
                let place = known.iter().position(|other| *other == seed);
                labels.push(place.unwrap_or_else(|| {
                    known.push(seed);
                    known.len() - 1
                }));
            }
            warnings.push(
                "clusters are seeds: meaningful only if a seed shares initialisation or noise across configurations".into(),
            );
            Covariance::Clustered(labels)
        }
    })
}

/// The logarithms of what varies.
fn regressors(
    observations: &[Observation],
    base: f64,
    warnings: &mut Vec<String>,
) -> Result<(Vec<&'static str>, Vec<Vec<f64>>), TuningError> {
    let (mut names, mut logs) = (Vec::new(), Vec::new());
    for (index, name) in NAMES.iter().enumerate() {
        let column: Option<Vec<f64>> = observations
            .iter()
            .map(|o| o.parameters[index].map(|value| value.ln() / base.ln()))
            .collect();
        let Some(column) = column else {
            if observations.iter().any(|o| o.parameters[index].is_some()) {
                warnings.push(format!("{name} is missing in some rows and is left out"));
            }
            continue;
        };
        if column.iter().all(|value| *value == column[0]) {
            if index < 3 {
                warnings.push(format!("{name} is the same in all rows and is left out"));
            }
            continue;
        }
        names.push(*name);
        logs.push(column);
    }
    if names.is_empty() {
        return Err(TuningError::TooLittle(
            "all runs have the same hyper-parameters; there is nothing to regress on".into(),
        ));
    }
    Ok((names, logs))
}

fn intercepts(groups: &[EpsilonGroup], observations: &[Observation]) -> Vec<Vec<f64>> {
    (0..groups.len())
        .map(|g| observations.iter().map(|o| f64::from(u8::from(o.group == g))).collect())
        .collect()
}

#[allow(clippy::too_many_arguments)] // one caller; a struct would only rename them
fn composites(
    names: &[&str],
    logs: &[Vec<f64>],
    with: &impl Fn(&[Vec<f64>]) -> Vec<Vec<f64>>,
    y: &[f64],
    covariance: &Covariance,
    full: &Fit,
    first: usize,
    interval: Interval,
) -> Result<Vec<Composite>, TuningError> {
    let place = |name: &str| names.iter().position(|known| *known == name);
    let (Some(b), Some(t)) = (place("batch_size"), place("steps")) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for (name, factors) in
        [("C", vec![Some(b), Some(t)]), ("U", vec![Some(b), Some(t), place("learning_rate")])]
    {
        let Some(factors) = factors.into_iter().collect::<Option<Vec<usize>>>() else { continue };
        let product: Vec<f64> =
            (0..y.len()).map(|i| factors.iter().map(|f| logs[*f][i]).sum()).collect();
        let varies = product.iter().any(|value| (value - product[0]).abs() > 1e-9);
        if !varies {
            continue; // the sweep holds this composite fixed
        }
        let mut columns = vec![product];
        let mut labels = vec![format!("log {name}")];
        for (i, column) in logs.iter().enumerate() {
            if !factors.contains(&i) {
                columns.push(column.clone());
                labels.push(format!("log {}", names[i]));
            }
        }
        let Ok(model) = fit(&with(&columns), y, covariance) else { continue };
        let rows: Vec<Vec<f64>> = factors
            .windows(2)
            .map(|pair| {
                let mut row = unit(first + logs.len(), first + pair[0]);
                row[first + pair[1]] = -1.0;
                row
            })
            .collect();
        let coefficients = labels
            .into_iter()
            .enumerate()
            .map(|(i, label)| interval.of(label, &model, model.coefficient(first + i)))
            .collect();
        found.push(Composite {
            name: name.into(),
            coefficients,
            r_squared: model.r_squared(),
            restriction: full.joint_test(&rows).map(|(statistic, p_value)| Joint {
                says: format!("the factors of {name} have one common coefficient"),
                statistic,
                p_value,
            }),
        });
    }
    Ok(found)
}

#[derive(Clone, Copy)]
struct Interval {
    confidence: f64,
}

impl Interval {
    fn of(self, name: String, fit: &Fit, test: Test) -> Effect {
        let reach = student_quantile(self.confidence, fit.degrees_of_freedom) * test.standard_error;
        Effect {
            name,
            estimate: test.estimate,
            standard_error: test.standard_error,
            statistic: test.statistic,
            p_value: test.p_value,
            lower: test.estimate - reach,
            upper: test.estimate + reach,
        }
    }
}

fn unit(length: usize, at: usize) -> Vec<f64> {
    let mut row = vec![0.0; length];
    row[at] = 1.0;
    row
}

fn standardise(column: &mut [f64]) {
    let n = column.len() as f64;
    let mean = column.iter().sum::<f64>() / n;
    let variance = column.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    for value in column {
        *value = (*value - mean) / variance.sqrt();
    }
}
