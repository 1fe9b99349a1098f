//! Matrix products as a decoder needs them: rows shared over threads where there are enough.

use rayon::prelude::*;
use training::cpu::panels::Panels;
pub(crate) use training::cpu::product::View;
pub(crate) use training::cpu::product::strided_product as single;

/// Multiplications below which threads do not pay.
const WORTH_THREADS: usize = 1 << 21;

/// Rows that one thread takes at a time; fixed, so that the result does not depend on threads, and
/// many, because the other matrix is rearranged for each.
const ROWS: usize = 512;

/// `out` (row by row) becomes left x right; rows in parallel where that pays.
///
/// # Panics
/// If the shapes do not match.
pub(crate) fn product(out: &mut [f32], left: View<'_>, right: View<'_>) {
    by_rows(out, left, right, false);
}

/// As [`product`], added to what `out` holds.
pub(crate) fn add_product(out: &mut [f32], left: View<'_>, right: View<'_>) {
    by_rows(out, left, right, true);
}

fn by_rows(out: &mut [f32], left: View<'_>, right: View<'_>, accumulate: bool) {
    let ((m, inner), (_, n)) = (left.extents(), right.extents());
    assert_eq!(out.len(), m * n, "extent of a product's result");
    if m <= ROWS || m * n * inner < WORTH_THREADS {
        return single(out, n, left, right, accumulate);
    }
    out.par_chunks_mut(ROWS * n).enumerate().for_each(|(i, part)| {
        single(part, n, left.rows_from(i * ROWS, part.len() / n), right, accumulate);
    });
}

/// Rows that one thread takes at least with a matrix that is laid out already.
const PACKED_ROWS: usize = 192;

/// `out` becomes x times a matrix, or is increased by it.
///
/// # Panics
/// If the shapes do not match.
pub(crate) fn packed_product(out: &mut [f32], x: &[f32], right: &Panels, accumulate: bool) {
    let (inner, n) = right.extents();
    let rows = x.len() / inner.max(1);
    if rows < 2 * PACKED_ROWS || rows * inner * n < WORTH_THREADS {
        return right.product(out, x, accumulate);
    }
    let part = even_parts(rows, rows / PACKED_ROWS);
    out.par_chunks_mut(part * n)
        .zip(x.par_chunks(part * inner))
        .for_each(|(out, x)| right.product(out, x, accumulate));
}

/// `out` becomes x times a matrix that is small beside it, or is increased by it: laid out first, so
/// that x is not rearranged.
pub(crate) fn small_product(out: &mut [f32], x: &[f32], right: View<'_>, add: bool) {
    if Panels::suit() {
        return packed_product(out, x, &Panels::new(right), add);
    }
    let inner = right.extents().0;
    by_rows(out, View::new(x, x.len() / inner.max(1), inner), right, add);
}

/// Rows of a part where `rows` are cut into about this many equal ones: whole tiles of six.
pub(crate) fn even_parts(rows: usize, parts: usize) -> usize {
    rows.div_ceil(parts.max(1)).next_multiple_of(6)
}

/// One row times the transpose of a matrix stored row by row: the numbers of a matrix-vector
/// product are read once, so that memory decides; rows are shared over threads. Added to what `out`
/// holds where `add` says so.
pub(crate) fn vector_product(out: &mut [f32], x: &[f32], weight: &[f32], add: bool) {
    let width = x.len();
    assert_eq!(weight.len(), out.len() * width, "extent of a product's matrix");
    let part = |(out, weight): (&mut [f32], &[f32])| {
        for (out, row) in out.iter_mut().zip(weight.chunks_exact(width)) {
            let sum = dot(x, row);
            *out = if add { *out + sum } else { sum };
        }
    };
    let share = out.len().div_ceil(rayon::current_num_threads()).max(1);
    if weight.len() < WORTH_THREADS / 16 {
        return part((out, weight));
    }
    out.par_chunks_mut(share).zip(weight.par_chunks(share * width)).for_each(part);
}

/// Sixteen sums side by side, so that the compiler can use vectors.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0_f32; 16];
    let (heads, tails) = (a.chunks_exact(16), b.chunks_exact(16));
    let rest: f32 = heads.remainder().iter().zip(tails.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in heads.zip(tails) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_every_orientation_and_size() {
        for (m, k, n) in [(5, 7, 3), (300, 200, 100)] {
            let a: Vec<f32> = (0..m * k).map(|i| (i % 11) as f32 - 5.0).collect();
            let b: Vec<f32> = (0..k * n).map(|i| (i % 7) as f32 - 3.0).collect();
            let transpose = |x: &[f32], rows: usize, columns: usize| -> Vec<f32> {
                (0..rows * columns).map(|i| x[(i % rows) * columns + i / rows]).collect()
            };
            let (at, bt) = (transpose(&a, m, k), transpose(&b, k, n));
            let expected: Vec<f32> = (0..m * n)
                .map(|i| (0..k).map(|l| a[i / n * k + l] * b[l * n + i % n]).sum())
                .collect();
            for left in [View::new(&a, m, k), View::new(&at, k, m).transposed()] {
                for right in [View::new(&b, k, n), View::new(&bt, n, k).transposed()] {
                    let mut out = vec![1.0; m * n];
                    product(&mut out, left, right);
                    assert_eq!(out, expected);
                }
            }
            // Small whole numbers: exact in any order.
            let mut out = vec![0.0; n];
            vector_product(&mut out, &a[..k], &bt, false);
            vector_product(&mut out, &a[..k], &bt, true);
            assert!(out.iter().zip(&expected).all(|(x, y)| *x == 2.0 * y));
        }
    }
}
