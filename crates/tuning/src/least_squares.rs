//! Ordinary least squares by Householder reflections, with classical and robust covariances.
//!
//! - classical: s^2 (X'X)^-1, s^2 = RSS / (n - p)
//! - HC1: n/(n - p) (X'X)^-1 X' diag(e_i^2) X (X'X)^-1 (MacKinnon and White 1985)
//! - HC3: the same with e_i^2 / (1 - h_i)^2 and no factor; conservative in small samples
//! - clustered: sums of x_i e_i within a cluster, factor G/(G - 1) (n - 1)/(n - p), and G - 1
//!   degrees of freedom (Liang and Zeger 1986; the factor of Stata and statsmodels)
//!
//! Cost O(n p^2). R is never squared, so that nearly collinear regressors lose half as many digits
//! as by the normal equations.

use crate::TuningError;
use crate::distributions::{f_upper_tail, student_two_sided};

/// How the uncertainty of the coefficients is estimated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Covariance {
    Classical,
    Hc1,
    Hc3,
    /// The cluster of each observation.
    Clustered(Vec<usize>),
}

/// A fitted linear model.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    pub coefficients: Vec<f64>,
    /// Row-major p x p.
    pub covariance: Vec<f64>,
    pub residuals: Vec<f64>,
    /// The diagonal of the hat matrix.
    pub leverages: Vec<f64>,
    pub residual_sum_of_squares: f64,
    /// About the mean.
    pub total_sum_of_squares: f64,
    /// Degrees of freedom for tests of coefficients.
    pub degrees_of_freedom: f64,
    pub clusters: Option<usize>,
}

/// A statement about a sum of coefficients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    pub estimate: f64,
    pub standard_error: f64,
    pub statistic: f64,
    pub p_value: f64,
}

/// Fits y = X b for a design given by columns.
///
/// ```
/// use tuning::least_squares::{Covariance, fit};
/// let fit = fit(&[vec![1.0; 3], vec![0.0, 1.0, 2.0]], &[1.0, 3.0, 5.0], &Covariance::Classical)?;
/// assert!((fit.coefficients[0] - 1.0).abs() < 1e-14 && (fit.coefficients[1] - 2.0).abs() < 1e-14);
/// # Ok::<(), tuning::TuningError>(())
/// ```
///
/// # Errors
/// `TooLittle` with fewer observations than coefficients plus one, for collinear columns, and for
/// robust errors that do not exist (a leverage of one; a single cluster).
pub fn fit(columns: &[Vec<f64>], y: &[f64], covariance: &Covariance) -> Result<Fit, TuningError> {
    let (n, p) = (y.len(), columns.len());
    if n <= p {
        return Err(TuningError::TooLittle(format!(
            "{n} observations do not determine {p} coefficients and an error; more than {p} are needed"
        )));
    }
    let (r, reflected) = triangular(columns, y)?;
    let mut coefficients = reflected[..p].to_vec();
    for i in (0..p).rev() {
        for j in i + 1..p {
            coefficients[i] -= r[i * p + j] * coefficients[j];
        }
        coefficients[i] /= r[i * p + i];
    }
    let residuals: Vec<f64> = (0..n)
        .map(|i| y[i] - (0..p).map(|j| columns[j][i] * coefficients[j]).sum::<f64>())
        .collect();
    // Row i of X R^-1 is row i of the thin Q; its square length is the leverage.
    let whitened: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let mut q: Vec<f64> = columns.iter().map(|column| column[i]).collect();
            for j in 0..p {
                for k in 0..j {
                    q[j] -= q[k] * r[k * p + j];
                }
                q[j] /= r[j * p + j];
            }
            q
        })
        .collect();
    let leverages: Vec<f64> =
        whitened.iter().map(|q| q.iter().map(|x| x * x).sum::<f64>().min(1.0)).collect();
    let squares: f64 = residuals.iter().map(|e| e * e).sum();
    let mean = y.iter().sum::<f64>() / n as f64;
    let total: f64 = y.iter().map(|value| (value - mean) * (value - mean)).sum();
    let rest = (n - p) as f64;
    let (middle, dof, clusters) = match covariance {
        Covariance::Classical => {
            let mut middle = vec![0.0; p * p];
            for j in 0..p {
                middle[j * p + j] = squares / rest;
            }
            (middle, rest, None)
        }
        Covariance::Hc1 => {
            let scale = n as f64 / rest;
            let weights = residuals.iter().map(|e| e * scale.sqrt()).collect::<Vec<_>>();
            (outer(whitened.iter().zip(weights).map(|(q, w)| scaled(q, w)), p), rest, None)
        }
        Covariance::Hc3 => {
            let mut rows = Vec::with_capacity(n);
            for ((q, e), h) in whitened.iter().zip(&residuals).zip(&leverages) {
                if 1.0 - h < 1e-10 {
                    return Err(TuningError::TooLittle(
                        "an observation determines a coefficient alone (leverage 1), so HC3 errors do not exist; use hc1 or classical, or more configurations".into(),
                    ));
                }
                rows.push(scaled(q, e / (1.0 - h)));
            }
            (outer(rows, p), rest, None)
        }
        Covariance::Clustered(labels) => {
            let count = labels.iter().max().map_or(0, |last| last + 1);
            if labels.len() != n || count < 2 {
                return Err(TuningError::TooLittle(format!(
                    "{count} cluster gives no clustered error; two or more are needed"
                )));
            }
            let mut sums = vec![vec![0.0; p]; count];
            for ((q, e), label) in whitened.iter().zip(&residuals).zip(labels) {
                for (sum, x) in sums[*label].iter_mut().zip(q) {
                    *sum += x * e;
                }
            }
            let g = count as f64;
            let factor = g / (g - 1.0) * (n as f64 - 1.0) / rest;
            (outer(sums.iter().map(|s| scaled(s, factor.sqrt())), p), g - 1.0, Some(count))
        }
    };
    Ok(Fit {
        coefficients,
        covariance: sandwich(&r, &middle, p),
        residuals,
        leverages,
        residual_sum_of_squares: squares,
        total_sum_of_squares: total,
        degrees_of_freedom: dof,
        clusters,
    })
}

impl Fit {
    pub fn r_squared(&self) -> f64 {
        1.0 - self.residual_sum_of_squares / self.total_sum_of_squares
    }

    pub fn adjusted_r_squared(&self) -> f64 {
        let (n, p) = (self.residuals.len() as f64, self.coefficients.len() as f64);
        1.0 - (1.0 - self.r_squared()) * (n - 1.0) / (n - p)
    }

    /// A t-test of `weights . b = 0`.
    pub fn test(&self, weights: &[f64]) -> Test {
        let p = self.coefficients.len();
        let estimate: f64 = weights.iter().zip(&self.coefficients).map(|(w, b)| w * b).sum();
        let mut variance = 0.0;
        for i in 0..p {
            for j in 0..p {
                variance += weights[i] * self.covariance[i * p + j] * weights[j];
            }
        }
        let standard_error = variance.max(0.0).sqrt();
        let statistic = estimate / standard_error;
        Test {
            estimate,
            standard_error,
            statistic,
            p_value: student_two_sided(statistic, self.degrees_of_freedom),
        }
    }

    /// A t-test of one coefficient.
    pub fn coefficient(&self, index: usize) -> Test {
        let mut weights = vec![0.0; self.coefficients.len()];
        weights[index] = 1.0;
        self.test(&weights)
    }

    /// Wald's F-test that all these sums of coefficients are zero: (F, p-value). `None` where the
    /// covariance of the sums is singular (fewer clusters than sums).
    pub(crate) fn joint_test(&self, rows: &[Vec<f64>]) -> Option<(f64, f64)> {
        let (k, p) = (rows.len(), self.coefficients.len());
        let values: Vec<f64> = rows
            .iter()
            .map(|row| row.iter().zip(&self.coefficients).map(|(w, b)| w * b).sum())
            .collect();
        let mut matrix = vec![0.0; k * k];
        for a in 0..k {
            for b in 0..k {
                for i in 0..p {
                    for j in 0..p {
                        matrix[a * k + b] += rows[a][i] * self.covariance[i * p + j] * rows[b][j];
                    }
                }
            }
        }
        let solved = solve(&matrix, &values)?;
        let statistic = values.iter().zip(&solved).map(|(a, b)| a * b).sum::<f64>() / k as f64;
        Some((statistic, f_upper_tail(statistic, k as f64, self.degrees_of_freedom)))
    }
}

/// R of the QR decomposition (row-major p x p) and Q'y.
fn triangular(columns: &[Vec<f64>], y: &[f64]) -> Result<(Vec<f64>, Vec<f64>), TuningError> {
    let (n, p) = (y.len(), columns.len());
    let mut a: Vec<Vec<f64>> = columns.to_vec();
    let mut y = y.to_vec();
    let lengths: Vec<f64> = a.iter().map(|c| c.iter().map(|x| x * x).sum::<f64>().sqrt()).collect();
    for j in 0..p {
        let length = a[j][j..].iter().map(|x| x * x).sum::<f64>().sqrt();
        if !(length > 1e-9 * lengths[j]) {
            return Err(TuningError::TooLittle(
                "the regressors determine one another (a grid with a fixed product, say), so their effects cannot be told apart".into(),
            ));
        }
        let diagonal = if a[j][j] > 0.0 { -length } else { length };
        let mut v = a[j][j..].to_vec();
        v[0] -= diagonal;
        let norm: f64 = v.iter().map(|x| x * x).sum();
        let reflect = |column: &mut [f64]| {
            let dot: f64 = v.iter().zip(&*column).map(|(a, b)| a * b).sum();
            for (x, v) in column.iter_mut().zip(&v) {
                *x -= 2.0 * dot / norm * v;
            }
        };
        for column in &mut a[j..] {
            reflect(&mut column[j..n]);
        }
        reflect(&mut y[j..n]);
    }
    let mut r = vec![0.0; p * p];
    for i in 0..p {
        for j in i..p {
            r[i * p + j] = a[j][i];
        }
    }
    Ok((r, y))
}

fn scaled(row: &[f64], factor: f64) -> Vec<f64> {
    row.iter().map(|x| x * factor).collect()
}

fn outer(rows: impl IntoIterator<Item = Vec<f64>>, p: usize) -> Vec<f64> {
    let mut sum = vec![0.0; p * p];
    for row in rows {
        for i in 0..p {
            for j in 0..p {
                sum[i * p + j] += row[i] * row[j];
            }
        }
    }
    sum
}

/// R^-1 M R^-T.
fn sandwich(r: &[f64], middle: &[f64], p: usize) -> Vec<f64> {
    let mut left = middle.to_vec();
    // Columns of M, then rows of the result.
    for _ in 0..2 {
        for column in 0..p {
            for i in (0..p).rev() {
                for j in i + 1..p {
                    left[i * p + column] -= r[i * p + j] * left[j * p + column];
                }
                left[i * p + column] /= r[i * p + i];
            }
        }
        let copy = left.clone();
        for i in 0..p {
            for j in 0..p {
                left[i * p + j] = copy[j * p + i];
            }
        }
    }
    left
}

/// Solves a small positive definite system by Cholesky.
fn solve(matrix: &[f64], b: &[f64]) -> Option<Vec<f64>> {
    let k = b.len();
    let mut l = vec![0.0; k * k];
    for i in 0..k {
        for j in 0..=i {
            let mut sum = matrix[i * k + j];
            for m in 0..j {
                sum -= l[i * k + m] * l[j * k + m];
            }
            if i == j {
                if !(sum > 1e-13 * matrix[i * k + i]) {
                    return None;
                }
                l[i * k + i] = sum.sqrt();
            } else {
                l[i * k + j] = sum / l[j * k + j];
            }
        }
    }
    let mut x = b.to_vec();
    for i in 0..k {
        for j in 0..i {
            x[i] -= l[i * k + j] * x[j];
        }
        x[i] /= l[i * k + i];
    }
    for i in (0..k).rev() {
        for j in i + 1..k {
            x[i] -= l[j * k + i] * x[j];
        }
        x[i] /= l[i * k + i];
    }
    Some(x)
}
