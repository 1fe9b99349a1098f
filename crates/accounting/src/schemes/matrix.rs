//! Matrix mechanisms: the releases are C x + noise, C lower triangular, x the sums of clipped
//! gradients of the steps.
//!
//! (a) C with at most c bands and columns of norm at most 1, cyclic Poisson with at least c groups:
//! the columns of the steps in which a record may take part have disjoint rows, and the shift of each
//! block is fixed when it starts, so that the pair is the Poisson pair with ceil(T/c) steps (Theorem
//! A, `poisson.rs`).
//!
//! (b) Without amplification mu = sens/sigma, sens^2 the largest sum of |C^T C|_st over s, t in a
//! pattern of at most k uses with gaps of at least b (Denisov et al. 2022, with adaptivity).
//! Substitution: 2 sens; groups of k: k sens.
//! - Toeplitz with nonnegative, nonincreasing coefficients: the pattern 0, b, 2b, ... (products of
//!   columns fall with their gap and with their position).
//! - At most b bands: eligible columns are orthogonal; a dynamic programme on squared norms, exact.
//! - Otherwise the programme on each row of |C^T C|, then on the row maxima: an upper bound.

use super::cyclic_poisson;
use super::{BoxedPair, Result, one_phase};
use crate::AccountingError;
use crate::pairs::{Composed, Gaussian};
use vocabulary::{
    Adjacency, Matrix, NotCovered, Permutation, Phase, Problem, Run, Sampling, batches_per_pass,
};

/// Steps for which a general matrix is looked at column by column.
const MOST_GENERAL: u64 = 3000;

pub(super) fn words(matrix: &Matrix) -> String {
    match matrix.bands {
        Some(bands) => format!(
            "noise correlated by a lower triangular matrix with {bands} bands and columns of norm at \
             most 1"
        ),
        None => "noise correlated by a lower triangular Toeplitz matrix".into(),
    }
}

pub(super) fn supports(run: &Run, matrix: &Matrix) -> Result<()> {
    if run.sampling() == Sampling::CyclicPoisson {
        return amplified(run, matrix);
    }
    if matrix.toeplitz.is_empty() {
        let why = "without cyclic Poisson batches the coefficients are needed: give [run.matrix] toeplitz, \
                   uses and separation";
        return Err(NotCovered::Missing { key: "matrix.toeplitz", why }.into());
    }
    let phase = one_phase(run, "correlated noise is covered")?;
    uses(run, matrix, phase)?;
    if run.adjacency() == Adjacency::AddRemove && run.sampling() != Sampling::Full {
        return Err(NotCovered::Adjacency {
            found: Adjacency::AddRemove,
            covered: &[Adjacency::ZeroOut, Adjacency::Substitute],
            why: "with correlated noise adding or removing a record is covered for full batches; choose \
                  --adjacency zero-out or substitute",
        }
        .into());
    }
    Ok(())
}

/// How often a record takes part, and how far apart.
fn uses(run: &Run, matrix: &Matrix, phase: &Phase) -> Result<(u64, u64)> {
    match (matrix.uses, matrix.separation) {
        (Some(uses), Some(separation)) => Ok((uses, separation)),
        _ => participation(run, phase.sample_rate, phase.steps),
    }
}

pub(super) fn pair(run: &Run, matrix: &Matrix) -> Result<BoxedPair> {
    if run.sampling() == Sampling::CyclicPoisson {
        return Ok(Box::new(Composed::for_run(&cyclic_poisson::turns(run)?)?));
    }
    let phase = one_phase(run, "correlated noise is covered")?;
    let (uses, separation) = uses(run, matrix, phase)?;
    let (sens, error) = enclosed(&matrix.toeplitz, phase.steps, uses, separation)?;
    let factor = f64::from(run.group_size())
        * if run.adjacency() == Adjacency::Substitute { 2.0 } else { 1.0 };
    let mu = factor * sens / phase.noise_multiplier;
    Ok(Box::new(Gaussian::computed(mu, error + 8.0 * f64::EPSILON)?))
}

fn amplified(run: &Run, matrix: &Matrix) -> Result<()> {
    let groups = run.drawing().cycle_length.unwrap_or(1);
    let bands = matrix.bands.unwrap_or(matrix.toeplitz.len() as u64);
    if bands == 0 || bands > groups {
        let why = format!(
            "a matrix with {bands} bands needs cyclic Poisson batches with at least as many groups, \
             and --cycle-length is {groups}"
        );
        let least = format!("at least {bands}");
        return Err(
            NotCovered::Value(Problem::from(why).about("cycle length", groups, &least)).into()
        );
    }
    let norm = matrix.toeplitz.iter().map(|c| c * c).sum::<f64>().sqrt();
    if norm > 1.0 + 1e-12 {
        let why = format!(
            "the columns have norm {norm}, above 1; divide the coefficients by it, and the noise \
             multiplier as well"
        );
        let problem =
            Problem::from(why).about("matrix.toeplitz", norm, "columns of norm 1 at most");
        return Err(NotCovered::Value(problem).into());
    }
    Ok(())
}

/// How often and how far apart a record takes part, by the scheme.
fn participation(run: &Run, rate: f64, steps: u64) -> Result<(u64, u64)> {
    match (run.sampling(), run.drawing().permutation) {
        (Sampling::Full, _) => Ok((steps, 1)),
        (Sampling::Shuffle, Permutation::Kept) => {
            let batches = batches_per_pass(rate, false);
            Ok((steps.div_ceil(batches), batches))
        }
        (Sampling::Shuffle, Permutation::Fresh) => {
            Ok((steps.div_ceil(batches_per_pass(rate, false)), 1))
        }
        (found, _) => Err(NotCovered::Sampling {
            what: "correlated noise is covered",
            found,
            covered: &[Sampling::Full, Sampling::Shuffle, Sampling::CyclicPoisson],
            elsewhere: false,
        }
        .into()),
    }
}

/// The sensitivity of C x, C Toeplitz with this first column, over `steps` steps, for a record with at
/// most `uses` uses that are at least `separation` steps apart; rounded up.
///
/// ```
/// let sens = accounting::schemes::sensitivity(&[1.0, 0.5, -0.3, 0.2, 0.1], 16, 3, 5).unwrap();
/// assert!((sens - 2.0420577857).abs() < 1e-9);
/// ```
///
/// # Errors
/// `InvalidInput` for zero uses, separation or steps and for coefficients that are not finite;
/// `OutsideDomain` for general coefficients over many steps.
pub fn sensitivity(toeplitz: &[f64], steps: u64, uses: u64, separation: u64) -> Result<f64> {
    let (sens, error) = enclosed(toeplitz, steps, uses, separation)?;
    Ok(sens * (1.0 + error))
}

/// The sensitivity (its upper bound, for general coefficients) and the relative error of its arithmetic.
fn enclosed(toeplitz: &[f64], steps: u64, uses: u64, separation: u64) -> Result<(f64, f64)> {
    if steps == 0 || uses == 0 || separation == 0 || toeplitz.is_empty() {
        return Err(AccountingError::invalid(format!(
            "{} coefficients, {steps} steps, {uses} uses, separation {separation}: each must be at \
             least 1",
            toeplitz.len()
        )));
    }
    if toeplitz.iter().any(|c| !c.is_finite()) {
        return Err(AccountingError::invalid("a coefficient is not a finite number"));
    }
    let length = (toeplitz.len() as u64).min(steps) as usize;
    let c = &toeplitz[..length];
    let rounded = |square: f64, terms: f64| (square.sqrt(), f64::EPSILON * (8.0 + terms));
    let most = uses.min((steps - 1) / separation + 1);
    let falling = c.windows(2).all(|pair| pair[0] >= pair[1]) && c[length - 1] >= 0.0;
    if falling && steps <= 10_000_000 {
        // The sum of the columns 0, b, 2b, ... row by row: a moving sum of coefficients.
        let mut square = 0.0;
        for row in 0..steps {
            let mut sum = 0.0;
            let mut index = row % separation;
            // The column at position p has its coefficient row - p in this row.
            let mut position = row - index;
            loop {
                if position / separation < most && (index as usize) < length {
                    sum += c[index as usize];
                }
                if position == 0 || index as usize >= length {
                    break;
                }
                position -= separation;
                index += separation;
            }
            square += sum * sum;
        }
        return Ok(rounded(square, steps as f64));
    }
    if length as u64 <= separation {
        // Eligible columns are orthogonal; norms fall with position, so the first pattern is best.
        let norm = |position: u64| -> f64 {
            c[..length.min((steps - position) as usize)].iter().map(|x| x * x).sum()
        };
        let square: f64 = (0..most).map(|use_| norm(use_ * separation)).sum();
        return Ok(rounded(square, (length as f64) * most as f64));
    }
    if steps > MOST_GENERAL {
        return Err(AccountingError::outside_domain(format!(
            "coefficients that rise or change sign over more than {MOST_GENERAL} steps are outside \
             of the domain"
        )));
    }
    let n = steps as usize;
    // |C^T C|_st for s <= t: sum over rows of c[row - s] c[row - t].
    let product = |s: usize, t: usize| -> f64 {
        let gap = t - s;
        (0..length.saturating_sub(gap))
            .take_while(|i| t + i < n)
            .map(|i| c[i] * c[i + gap])
            .sum::<f64>()
            .abs()
    };
    let rows: Vec<f64> = (0..n)
        .map(|s| {
            let row: Vec<f64> = (0..n).map(|t| product(s.min(t), s.max(t))).collect();
            best_pattern(&row, most as usize, separation as usize)
        })
        .collect();
    Ok(rounded(best_pattern(&rows, most as usize, separation as usize), n as f64 * n as f64))
}

/// The largest sum of at most `uses` entries that are at least `separation` apart.
fn best_pattern(values: &[f64], uses: usize, separation: usize) -> f64 {
    let n = values.len();
    let mut before = vec![0.0f64; n + 1];
    for _ in 0..uses {
        // best[i]: from position i on, with one more use than before.
        let mut best = vec![0.0f64; n + 1];
        for i in (0..n).rev() {
            let next = before[(i + separation).min(n)];
            best[i] = best[i + 1].max(values[i] + next);
        }
        before = best;
    }
    before[0]
}
