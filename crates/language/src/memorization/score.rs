//! From matches to scores with their intervals.

use super::{Completion, Completions, Matching};
use crate::LanguageError;
use numerics::beta::{
    beta_log_tails, beta_lower_quantile, beta_upper_quantile, binomial_log_at_least,
};
use numerics::special::inverse_normal_cdf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::Problem;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    Vmr,
    Air,
}

impl Metric {
    pub fn as_str(self) -> &'static str {
        match self {
            Metric::Vmr => "vmr",
            Metric::Air => "air",
        }
    }

    /// The rule that is used unless another is asked for.
    pub fn matching(self) -> Matching {
        match self {
            Metric::Vmr => Matching::VERBATIM,
            Metric::Air => Matching::ATTRIBUTE,
        }
    }
}

/// A mean with its ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateInterval {
    pub value: f64,
    pub lower: f64,
    pub upper: f64,
}

/// One secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecretRate {
    pub secret: String,
    pub completions: usize,
    pub matches: usize,
    pub rate: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_rate: Option<f64>,
}

/// One training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeedScore {
    pub seed: String,
    pub score: f64,
}

/// The un-tuned model on the same secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Base {
    pub score: RateInterval,
    /// Score minus base, secret by secret, with the t-interval over secrets.
    pub difference: RateInterval,
    /// Secrets on which the tuned model matches more often, and less often.
    pub more: usize,
    pub less: usize,
    /// Exact two-sided sign test over these.
    pub p_value: f64,
}

/// The `dosimeter.memorize/1` document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Memorization {
    pub schema: String,
    pub metric: Metric,
    pub matching: Matching,
    pub confidence: f64,
    pub secrets: usize,
    pub completions: usize,
    /// Mean over secrets, with the interval over secrets.
    pub score: RateInterval,
    /// With the interval over trainings, where there are at least two seeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_seeds: Option<RateInterval>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<SeedScore>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Base>,
    pub per_secret: Vec<SecretRate>,
    pub warnings: Vec<String>,
}

impl Memorization {
    pub const SCHEMA: &'static str = "dosimeter.memorize/1";
}

/// Scores completions; `base` holds the un-tuned model's on the same secrets.
///
/// ```
/// use language::memorization::{Completions, Metric, measure};
/// let lines = r#"{"prompt":"a","target":"b","completion":"bc"}
/// {"prompt":"d","target":"e","completion":"x"}"#;
/// let found = measure(
///     Metric::Vmr,
///     Metric::Vmr.matching(),
///     &Completions::from_jsonl(lines, "c.jsonl").unwrap(),
///     None,
///     0.95,
/// ).unwrap();
/// assert_eq!(found.score.value, 0.5);
/// assert!(found.score.lower < 0.02 && found.score.upper > 0.98); // two secrets say little
/// ```
///
/// # Errors
/// `InvalidInput` for a confidence outside (0, 1) or a base that lacks a secret.
pub fn measure(
    metric: Metric,
    matching: Matching,
    completions: &Completions,
    base: Option<&Completions>,
    confidence: f64,
) -> Result<Memorization, LanguageError> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(LanguageError::Value(Problem::outside("confidence", confidence, "(0, 1)")));
    }
    let hit = |row: &Completion| match metric {
        Metric::Vmr => matching.matches(&row.completion, &row.target),
        Metric::Air => row.attributes.iter().any(|text| matching.matches(&row.completion, text)),
    };
    let mut secrets = tally(&completions.rows, &hit, None);
    let rates: Vec<f64> = secrets.iter().map(|secret| secret.rate).collect();
    let counted: usize = secrets.iter().map(|secret| secret.completions).sum();
    let seeds = by_seed(completions, &hit);
    let base = match base {
        Some(base) => Some(compare(&mut secrets, &tally(&base.rows, &hit, None), confidence)?),
        None => None,
    };
    let score = over_secrets(&rates, counted, confidence);
    let mut warnings = Vec::new();
    if score.upper - score.lower > 0.2 {
        warnings.push(format!(
            "with {} secrets the interval is {:.0} percentage points wide; more secrets narrow it",
            secrets.len(),
            100.0 * (score.upper - score.lower)
        ));
    }
    if base.is_none() {
        warnings.push(
            "without the un-tuned model's completions a match may be a lucky guess: give them with --base".into(),
        );
    }
    let missed = completions.rows.iter().filter(|row| {
        matching == Matching::VERBATIM
            && metric == Metric::Vmr
            && !hit(row)
            && row.completion.trim_start().starts_with(row.target.trim_start())
    });
    let missed = missed.count();
    if missed > 0 {
        warnings.push(format!(
            "{missed} completions differ from their target only in leading white space and are not counted; `--normalize space` counts them"
        ));
    }
    Ok(Memorization {
        schema: Memorization::SCHEMA.into(),
        metric,
        matching,
        confidence,
        secrets: secrets.len(),
        completions: counted,
        score,
        over_seeds: over_seeds(&seeds, confidence),
        seeds,
        base,
        per_secret: secrets,
        warnings,
    })
}

/// Matches of each secret, in the order of the file; of one seed, if one is named.
fn tally(
    rows: &[Completion],
    hit: &impl Fn(&Completion) -> bool,
    seed: Option<&str>,
) -> Vec<SecretRate> {
    let mut places = std::collections::HashMap::new();
    let mut all: Vec<SecretRate> = Vec::new();
    for row in rows.iter().filter(|row| seed.is_none() || row.seed.as_deref() == seed) {
        let place = *places.entry(row.secret.as_str()).or_insert_with(|| {
            all.push(SecretRate {
                secret: row.secret.clone(),
                completions: 0,
                matches: 0,
                rate: 0.0,
                base_rate: None,
            });
            all.len() - 1
        });
        all[place].completions += 1;
        all[place].matches += usize::from(hit(row));
    }
    for secret in &mut all {
        secret.rate = secret.matches as f64 / secret.completions as f64;
    }
    all
}

fn by_seed(completions: &Completions, hit: &impl Fn(&Completion) -> bool) -> Vec<SeedScore> {
    let mut names: Vec<&str> = Vec::new();
    for seed in completions.rows.iter().filter_map(|row| row.seed.as_deref()) {
        if !names.contains(&seed) {
            names.push(seed);
        }
    }
    let score = |seed: &str| {
        let secrets = tally(&completions.rows, hit, Some(seed));
        secrets.iter().map(|secret| secret.rate).sum::<f64>() / secrets.len() as f64
    };
    names.iter().map(|seed| SeedScore { seed: (*seed).to_owned(), score: score(seed) }).collect()
}

/// The share of `hits` among `of` secrets with one trial each (Clopper and Pearson).
pub fn share(hits: usize, of: usize, confidence: f64) -> RateInterval {
    let mut rates = vec![0.0; of];
    rates[..hits].fill(1.0);
    over_secrets(&rates, of, confidence)
}

fn over_secrets(rates: &[f64], completions: usize, confidence: f64) -> RateInterval {
    let m = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / m;
    let single = rates.iter().all(|rate| *rate == 0.0 || *rate == 1.0);
    let variance = rates.iter().map(|r| (r - mean) * (r - mean)).sum::<f64>() / (m - 1.0).max(1.0);
    // The variance of a secret's rate is at most that of one completion, so that m secrets are worth
    // at least m trials, and at most as many as there are completions. In between the observed
    // variance decides, discounted for how few secrets it comes from.
    let effective = if single || !(variance > 0.0) {
        m
    } else {
        let normal = inverse_normal_cdf(0.5 + 0.5 * confidence);
        let discount = (normal / student_quantile(confidence, m - 1.0)).powi(2);
        (discount * mean * (1.0 - mean) * m / variance)
            .clamp(m, completions.max(rates.len()) as f64)
    };
    let (right, wrong) = (mean * effective, (1.0 - mean) * effective);
    let tail = (0.5 * (1.0 - confidence)).ln();
    RateInterval {
        value: mean,
        lower: if right > 0.0 { beta_lower_quantile(tail, right, wrong + 1.0) } else { 0.0 },
        upper: if wrong > 0.0 { beta_upper_quantile(tail, right + 1.0, wrong) } else { 1.0 },
    }
}

fn over_seeds(seeds: &[SeedScore], confidence: f64) -> Option<RateInterval> {
    let scores: Vec<f64> = seeds.iter().map(|seed| seed.score).collect();
    (scores.len() >= 2).then(|| {
        let found = student(&scores, confidence);
        RateInterval { lower: found.lower.max(0.0), upper: found.upper.min(1.0), ..found }
    })
}

fn compare(
    secrets: &mut [SecretRate],
    base: &[SecretRate],
    confidence: f64,
) -> Result<Base, LanguageError> {
    let mut differences = Vec::new();
    let mut rates = Vec::new();
    for secret in secrets.iter_mut() {
        let other = base.iter().find(|other| other.secret == secret.secret).ok_or_else(|| {
            LanguageError::InvalidInput(format!(
                "the base has no completion for the secret `{}`; it must cover the same secrets",
                crate::error::shown(&secret.secret)
            ))
        })?;
        secret.base_rate = Some(other.rate);
        rates.push(other.rate);
        differences.push(secret.rate - other.rate);
    }
    let completions = base.iter().map(|secret| secret.completions).sum();
    let more = differences.iter().filter(|d| **d > 0.0).count();
    let less = differences.iter().filter(|d| **d < 0.0).count();
    let difference = student(&differences, confidence);
    Ok(Base {
        score: over_secrets(&rates, completions, confidence),
        difference: RateInterval {
            lower: difference.lower.max(-1.0),
            upper: difference.upper.min(1.0),
            ..difference
        },
        more,
        less,
        p_value: sign_test(more as u64, less as u64),
    })
}

/// The two-sided p-value that plus and minus are equally likely.
fn sign_test(more: u64, less: u64) -> f64 {
    let n = more + less;
    if n == 0 { 1.0 } else { (2.0 * binomial_log_at_least(more.max(less), n, 0.5).exp()).min(1.0) }
}

/// Mean with Student's interval.
fn student(values: &[f64], confidence: f64) -> RateInterval {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 2 {
        return RateInterval { value: mean, lower: f64::NEG_INFINITY, upper: f64::INFINITY };
    }
    let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
    let reach = student_quantile(confidence, n - 1.0) * (variance / n).sqrt();
    RateInterval { value: mean, lower: mean - reach, upper: mean + reach }
}

/// The t with P(|T| <= t) = confidence, by bisection on the beta tail P(|T| > t) = I_{nu/(nu+t^2)}.
fn student_quantile(confidence: f64, dof: f64) -> f64 {
    let (mut low, mut high) = (-60.0_f64, 60.0_f64);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        let square = (2.0 * middle).exp();
        let inside = beta_log_tails(square / (dof + square), 0.5, 0.5 * dof).lower.exp();
        if inside < confidence { low = middle } else { high = middle }
    }
    high.exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_quantiles_and_sign_tests() {
        // Standard tables: t_{0.975} with 1, 4 and 30 degrees of freedom.
        for (dof, want) in [(1.0, 12.706_204_736), (4.0, 2.776_445_105), (30.0, 2.042_272_456)] {
            assert!((student_quantile(0.95, dof) - want).abs() < 1e-8, "{dof}");
        }
        assert_eq!(sign_test(0, 0), 1.0);
        assert!((sign_test(6, 0) - 2.0 / 64.0).abs() < 1e-15);
        assert!((sign_test(3, 3) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn one_completion_a_secret_is_the_plain_interval() {
        let found = share(4, 13, 0.95);
        let lower = numerics::beta::clopper_pearson_lower(4, 13, 0.025);
        let upper = numerics::beta::clopper_pearson_upper(4, 13, 0.025);
        assert!((found.lower - lower).abs() < 1e-12 && (found.upper - upper).abs() < 1e-12);
        // Thirteen secrets: about fifty points wide.
        assert!(upper - lower > 0.45);
    }

    #[test]
    fn secrets_that_agree_are_not_more_secrets() {
        // Ten completions each of four secrets, all at one half: at least as wide as four secrets
        // could make it with variance 0 seen, and no narrower than forty completions.
        let same = over_secrets(&[0.5; 4], 40, 0.95);
        let split = over_secrets(&[0.0, 0.0, 1.0, 1.0], 40, 0.95);
        assert!((same.lower - split.lower).abs() < 1e-12);
        // Two secrets that happen to be close are two secrets.
        let close = over_secrets(&[0.2, 0.0], 10, 0.95);
        assert!(close.upper > 0.8, "{close:?}");
        // Many secrets with rates between 0 and 1 are worth more than one completion each.
        let many: Vec<f64> = (0..40).map(|i| 0.4 + 0.2 * f64::from(i % 2)).collect();
        let found = over_secrets(&many, 400, 0.95);
        let single = over_secrets(&(0..40).map(|i| f64::from(i % 2)).collect::<Vec<_>>(), 40, 0.95);
        assert!(found.upper - found.lower < 0.5 * (single.upper - single.lower), "{found:?}");
    }
}
