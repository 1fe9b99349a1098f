//! Products with a matrix that stays as it is while many others are multiplied by it: y = x W or
//! y += x W, with W cut once into the order in which a product reads it.
//!
//! Panels of 64 columns and at most 768 rows, which a core's second cache holds; inside a panel row
//! after row. Six rows of x by a panel's four vectors are kept in registers, as in [`super::tiles`],
//! and x is read where it lies, so that a product rearranges nothing: 97-99 % of the multiply-adds
//! that one thread can do at 250 rows already, where a product that packs its operands reaches 90 %.
//! Each number of the result is summed in the order of the inner index, panel after panel: cutting
//! the rows elsewhere, or other rows beside a row, change no bit of it.
//!
//! With AVX-512 only; elsewhere [`Panels`] keeps W row by row and [`super::product`] multiplies.
//! Memory: W once more.

use super::product::{View, product, wanted_soon};
use pulp::{Simd, WithSimd};

/// Rows of a tile.
const ROWS: usize = 6;
/// Vectors of a tile.
const VECTORS: usize = 4;
const LANES: usize = 16;
/// Columns of a panel.
const WIDE: usize = VECTORS * LANES;
/// Rows of a panel at most.
const DEPTH: usize = 768;

/// A matrix laid out for products from its left.
#[derive(Clone, Debug)]
pub struct Panels {
    numbers: Vec<f32>,
    /// Where the first panel begins: at a line of the cache.
    skip: usize,
    rows: usize,
    columns: usize,
    /// Rows of a panel; 0 where the matrix is kept row by row.
    depth: usize,
}

impl Panels {
    /// Whether this machine multiplies with panels.
    pub fn suit() -> bool {
        #[cfg(target_arch = "x86_64")]
        return pulp::x86::V4::try_new().is_some();
        #[cfg(not(target_arch = "x86_64"))]
        false
    }

    /// Lays out a matrix.
    pub fn new(matrix: View<'_>) -> Self {
        let (rows, columns) = matrix.extents();
        if !Self::suit() || rows == 0 || columns == 0 {
            let all = (0..rows).flat_map(|i| (0..columns).map(move |j| matrix.number(i, j)));
            return Self { numbers: all.collect(), skip: 0, rows, columns, depth: 0 };
        }
        let depth = rows.div_ceil(rows.div_ceil(DEPTH));
        let padded = columns.next_multiple_of(LANES);
        let mut numbers = vec![0.0; rows * padded + LANES];
        let skip = numbers.as_ptr().align_offset(4 * LANES).min(LANES);
        let mut at = skip;
        for from in (0..rows).step_by(depth) {
            for first in (0..columns).step_by(WIDE) {
                let real = first..(first + WIDE).min(columns);
                let wide = WIDE.min(padded - first);
                for row in from..(from + depth).min(rows) {
                    for (to, column) in numbers[at..at + wide].iter_mut().zip(real.clone()) {
                        *to = matrix.number(row, column);
                    }
                    at += wide;
                }
            }
        }
        Self { numbers, skip, rows, columns, depth }
    }

    /// Rows and columns.
    pub fn extents(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    /// `out` (row by row) becomes x times the matrix, or is increased by it.
    ///
    /// # Panics
    /// If the shapes do not match.
    pub fn product(&self, out: &mut [f32], x: &[f32], accumulate: bool) {
        let count = x.len() / self.rows.max(1);
        assert_eq!(x.len(), count * self.rows, "inner extents of a product");
        assert_eq!(out.len(), count * self.columns, "extent of a product's result");
        if self.depth == 0 {
            let right = View::new(&self.numbers, self.rows, self.columns);
            return product(out, View::new(x, count, self.rows), right, accumulate);
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V4::try_new() {
            Simd::vectorize(simd, Multiply { panels: self, out, x, accumulate });
        }
    }
}

struct Multiply<'a> {
    panels: &'a Panels,
    out: &'a mut [f32],
    x: &'a [f32],
    accumulate: bool,
}

/// One panel's part of a product.
struct Part<'a, V> {
    panel: &'a [V],
    /// What is multiplied next.
    next: &'a [f32],
    /// Rows and columns of the matrix.
    extents: (usize, usize),
    /// First row and rows of the panel.
    rows: (usize, usize),
    /// First column and columns.
    columns: (usize, usize),
    accumulate: bool,
}

impl WithSimd for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Panels { numbers, skip, rows, columns, depth } = self.panels;
        let padded = columns.next_multiple_of(LANES);
        let mut rest = &numbers[*skip..*skip + rows * padded];
        for from in (0..*rows).step_by(*depth) {
            let depth = (*depth).min(rows - from);
            for first in (0..*columns).step_by(WIDE) {
                let wide = WIDE.min(padded - first);
                let (panel, next) = rest.split_at(depth * wide);
                rest = next;
                let part = Part {
                    panel: S::as_simd_f32s(panel).0,
                    next: &next[..next.len().min(depth * WIDE)],
                    extents: (*rows, *columns),
                    rows: (from, depth),
                    columns: (first, WIDE.min(columns - first)),
                    accumulate: self.accumulate || from > 0,
                };
                match wide / LANES {
                    4 => groups::<S, 4>(simd, self.out, self.x, &part),
                    3 => groups::<S, 3>(simd, self.out, self.x, &part),
                    2 => groups::<S, 2>(simd, self.out, self.x, &part),
                    _ => groups::<S, 1>(simd, self.out, self.x, &part),
                }
            }
        }
    }
}

/// All rows of x, six at a time; each group fetches its share of the next panel.
#[inline(always)]
fn groups<S: Simd, const V: usize>(simd: S, out: &mut [f32], x: &[f32], part: &Part<'_, S::f32s>) {
    let (inner, width) = part.extents;
    let share = part.next.len().div_ceil(x.len().div_ceil(ROWS * inner)).next_multiple_of(LANES);
    let mut ahead = part.next.chunks(share.max(LANES));
    for (out, x) in out.chunks_mut(ROWS * width).zip(x.chunks(ROWS * inner)) {
        wanted_soon(ahead.next().unwrap_or_default());
        match x.len() / inner {
            6 => tile::<S, 6, V>(simd, out, x, part),
            5 => tile::<S, 5, V>(simd, out, x, part),
            4 => tile::<S, 4, V>(simd, out, x, part),
            3 => tile::<S, 3, V>(simd, out, x, part),
            2 => tile::<S, 2, V>(simd, out, x, part),
            _ => tile::<S, 1, V>(simd, out, x, part),
        }
    }
}

#[inline(always)]
fn tile<S: Simd, const R: usize, const V: usize>(
    simd: S,
    out: &mut [f32],
    x: &[f32],
    part: &Part<'_, S::f32s>,
) {
    let ((inner, width), (from, depth), (first, wide)) = (part.extents, part.rows, part.columns);
    let rows: [&[f32]; R] = std::array::from_fn(|row| &x[row * inner + from..][..depth]);
    let mut sums = [[simd.splat_f32s(0.0); V]; R];
    for (k, right) in part.panel.chunks_exact(V).enumerate() {
        for row in 0..R {
            let left = simd.splat_f32s(rows[row][k]);
            for vector in 0..V {
                sums[row][vector] = simd.mul_add_f32s(left, right[vector], sums[row][vector]);
            }
        }
    }
    // Loops over the sums are short and their ends constant: unrolled, or the sums live in memory.
    if wide == V * LANES {
        for row in 0..R {
            let out = &mut out[row * width + first..][..V * LANES];
            put::<S, V>(simd, out, &sums[row], part.accumulate);
        }
    } else {
        let mut last = [[0.0; WIDE]; R];
        for row in 0..R {
            put::<S, V>(simd, &mut last[row][..V * LANES], &sums[row], false);
        }
        for (out, last) in out.chunks_mut(width).zip(last) {
            for (out, sum) in out[first..].iter_mut().zip(last) {
                *out = if part.accumulate { *out + sum } else { sum };
            }
        }
    }
}

#[inline(always)]
fn put<S: Simd, const V: usize>(simd: S, out: &mut [f32], sums: &[S::f32s; V], add: bool) {
    let (out, _) = S::as_mut_simd_f32s(out);
    for vector in 0..V {
        let sum = sums[vector];
        out[vector] = if add { simd.add_f32s(out[vector], sum) } else { sum };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small whole numbers: every sum is exact.
    fn numbers(length: usize, factor: usize) -> Vec<f32> {
        (0..length).map(|i| (i * factor % 13) as f32 - 6.0).collect()
    }

    #[test]
    fn panels_are_the_product() {
        let shapes =
            [(1, 1, 1), (6, 5, 64), (13, 29, 172), (7, 1600, 80), (20, 12, 49), (3, 770, 200)];
        for (count, rows, columns) in shapes {
            let (x, matrix) = (numbers(count * rows, 7), numbers(rows * columns, 5));
            let right = View::new(&matrix, rows, columns);
            let mut expected = numbers(count * columns, 3);
            let mut out = expected.clone();
            let panels = Panels::new(right);
            assert_eq!(panels.extents(), (rows, columns));
            for accumulate in [true, false] {
                product(&mut expected, View::new(&x, count, rows), right, accumulate);
                panels.product(&mut out, &x, accumulate);
                assert_eq!(out, expected, "{count} {rows} {columns} {accumulate}");
            }
            let turned: Vec<f32> =
                (0..rows * columns).map(|i| matrix[i % rows * columns + i / rows]).collect();
            let panels = Panels::new(View::new(&turned, columns, rows).transposed());
            panels.product(&mut out, &x, false);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn a_row_does_not_depend_on_the_rows_beside_it() {
        let (rows, columns) = (900, 100);
        let values = |n: usize| -> Vec<f32> { (0..n).map(|i| (i as f32 * 0.7).sin()).collect() };
        let (x, matrix) = (values(17 * rows), values(rows * columns));
        let panels = Panels::new(View::new(&matrix, rows, columns));
        let mut whole = vec![0.0; 17 * columns];
        panels.product(&mut whole, &x, false);
        if !Panels::suit() {
            return;
        }
        for (x, whole) in x.chunks(5 * rows).zip(whole.chunks(5 * columns)) {
            let mut out = vec![0.0; whole.len()];
            panels.product(&mut out, x, false);
            assert_eq!(out, whole);
        }
    }
}
