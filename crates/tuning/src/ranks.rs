//! Rank correlations: Spearman's rho and Kendall's tau-b.
//!
//! rho is Pearson's correlation of average ranks; its p-value is that of t = rho
//! sqrt((n-2)/(1-rho^2)) with n - 2 degrees of freedom, its interval Fisher's z with the variance
//! (1 + rho^2/2)/(n - 3) of Bonett and Wright (2000). tau-b counts concordant minus discordant
//! pairs; its p-value is the normal approximation with ties (Kendall 1970).

use crate::distributions::student_two_sided;
use numerics::special::{erfc, inverse_normal_cdf};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Two columns compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Correlation {
    pub of: String,
    pub with: String,
    pub pairs: usize,
    pub spearman: f64,
    pub p_value: f64,
    pub lower: f64,
    pub upper: f64,
    pub kendall: f64,
    pub kendall_p_value: f64,
}

/// Correlates two columns; `None` with fewer than four pairs or where one of them is constant.
///
/// ```
/// let found = tuning::ranks::correlate("a", "b", &[1.0, 2.0, 3.0, 4.0], &[1.0, 3.0, 2.0, 4.0], 0.95).unwrap();
/// assert!((found.spearman - 0.8).abs() < 1e-15 && (found.kendall - 2.0 / 3.0).abs() < 1e-15);
/// ```
pub fn correlate(
    of: &str,
    with: &str,
    x: &[f64],
    y: &[f64],
    confidence: f64,
) -> Option<Correlation> {
    let n = x.len();
    if n < 4 || y.len() != n {
        return None;
    }
    let (x, y) = (&snapped(x)[..], &snapped(y)[..]);
    let rho = pearson(&ranks(x), &ranks(y))?;
    let count = n as f64;
    let t = rho * ((count - 2.0) / ((1.0 - rho) * (1.0 + rho)).max(0.0)).sqrt();
    let reach = inverse_normal_cdf(0.5 + 0.5 * confidence)
        * ((1.0 + 0.5 * rho * rho) / (count - 3.0)).sqrt();
    let z = rho.atanh();
    let (kendall, kendall_p_value) = tau_b(x, y)?;
    Some(Correlation {
        of: of.into(),
        with: with.into(),
        pairs: n,
        spearman: rho,
        p_value: student_two_sided(t, count - 2.0),
        lower: if rho.abs() < 1.0 { (z - reach).tanh() } else { rho },
        upper: if rho.abs() < 1.0 { (z + reach).tanh() } else { rho },
        kendall,
        kendall_p_value,
    })
}

/// Values to 12 significant digits, so that means which are equal but for the order of their sums
/// are ties.
pub(crate) fn snapped(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| format!("{value:.11e}").parse().unwrap_or(*value)).collect()
}

/// Ranks from 1, ties sharing their average.
pub fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let mut end = start + 1;
        while end < order.len() && values[order[end]] == values[order[start]] {
            end += 1;
        }
        for place in &order[start..end] {
            ranks[*place] = 0.5 * (start + 1 + end) as f64;
        }
        start = end;
    }
    ranks
}

fn pearson(x: &[f64], y: &[f64]) -> Option<f64> {
    let n = x.len() as f64;
    let (mx, my) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (a, b) in x.iter().zip(y) {
        xx += (a - mx) * (a - mx);
        yy += (b - my) * (b - my);
        xy += (a - mx) * (b - my);
    }
    (xx > 0.0 && yy > 0.0).then(|| (xy / (xx * yy).sqrt()).clamp(-1.0, 1.0))
}

fn tau_b(x: &[f64], y: &[f64]) -> Option<(f64, f64)> {
    let n = x.len();
    let mut score = 0.0;
    for i in 0..n {
        for j in 0..i {
            let order = |a: f64, b: f64| f64::from(i8::from(a > b) - i8::from(a < b));
            score += order(x[i], x[j]) * order(y[i], y[j]);
        }
    }
    let count = n as f64;
    let all = count * (count - 1.0);
    let (x_ties, y_ties) = (Ties::of(x), Ties::of(y));
    let scale = ((0.5 * all - x_ties.pairs) * (0.5 * all - y_ties.pairs)).sqrt();
    if !(scale > 0.0) {
        return None;
    }
    let variance = (all * (2.0 * count + 5.0) - x_ties.fives - y_ties.fives) / 18.0
        + 2.0 * x_ties.pairs * y_ties.pairs / all
        + x_ties.triples * y_ties.triples / (9.0 * all * (count - 2.0));
    let z = score / variance.sqrt();
    Some((score / scale, erfc(z.abs() / std::f64::consts::SQRT_2).min(1.0)))
}

/// Sums over groups of t equal values.
struct Ties {
    /// t(t-1)/2
    pairs: f64,
    /// t(t-1)(t-2)
    triples: f64,
    /// t(t-1)(2t+5)
    fives: f64,
}

impl Ties {
    fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let mut ties = Self { pairs: 0.0, triples: 0.0, fives: 0.0 };
        for group in sorted.chunk_by(|a, b| a == b) {
            let t = group.len() as f64;
            ties.pairs += 0.5 * t * (t - 1.0);
            ties.triples += t * (t - 1.0) * (t - 2.0);
            ties.fives += t * (t - 1.0) * (2.0 * t + 5.0);
        }
        ties
    }
}
