//! Matrix products on one thread, by the `gemm` crate (AVX-512, AVX2 or NEON, chosen at run
//! time). The only unsafe code of the CPU back end: `gemm` takes pointers, the extents are checked
//! here; and a hint to the cache has an address.

/// A matrix inside a slice: the number at (i, j) is `data[i * row + j * column]`.
#[derive(Clone, Copy)]
pub struct View<'a> {
    data: &'a [f32],
    rows: usize,
    columns: usize,
    row: usize,
    column: usize,
}

impl<'a> View<'a> {
    /// Row by row, without gaps.
    pub fn new(data: &'a [f32], rows: usize, columns: usize) -> Self {
        Self::strided(data, rows, columns, columns)
    }

    /// Row by row, with `stride` numbers from one row to the next.
    pub fn strided(data: &'a [f32], rows: usize, columns: usize, stride: usize) -> Self {
        Self { data, rows, columns, row: stride, column: 1 }
    }

    /// The same numbers, rows and columns exchanged.
    #[must_use]
    pub fn transposed(self) -> Self {
        Self { rows: self.columns, columns: self.rows, row: self.column, column: self.row, ..self }
    }

    /// `count` rows from `first` on.
    ///
    /// # Panics
    /// If the first of them lies outside the slice.
    #[must_use]
    pub fn rows_from(self, first: usize, count: usize) -> Self {
        Self { data: &self.data[first * self.row..], rows: count, ..self }
    }

    /// Rows and columns.
    pub fn extents(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    /// The number at (i, j).
    #[inline]
    pub(crate) fn number(&self, i: usize, j: usize) -> f32 {
        self.data[i * self.row + j * self.column]
    }

    fn assert_inside(&self) {
        if self.rows > 0 && self.columns > 0 {
            let last = (self.rows - 1) * self.row + (self.columns - 1) * self.column;
            assert!(last < self.data.len(), "a matrix of the product lies outside its slice");
        }
    }
}

/// `out` (row by row) becomes left x right, or is increased by it.
///
/// # Panics
/// If the shapes do not match.
pub fn product(out: &mut [f32], left: View<'_>, right: View<'_>, accumulate: bool) {
    assert_eq!(out.len(), left.rows * right.columns, "extent of a product's result");
    strided_product(out, right.columns, left, right, accumulate);
}

/// The same with `stride` numbers from row to row of `out`.
///
/// # Panics
/// If the shapes do not match.
#[allow(unsafe_code)]
pub fn strided_product(
    out: &mut [f32],
    stride: usize,
    left: View<'_>,
    right: View<'_>,
    accumulate: bool,
) {
    let (m, k, n) = (left.rows, left.columns, right.columns);
    assert_eq!(k, right.rows, "inner extents of a product");
    if m == 0 || n == 0 {
        return;
    }
    assert!((m - 1) * stride + n <= out.len() && n <= stride, "extent of a product's result");
    left.assert_inside();
    right.assert_inside();
    // SAFETY: `out` holds m rows of n numbers, `stride` apart, as asserted; both views were
    // checked to lie inside their slices; `out` is borrowed mutably, so nothing overlaps.
    unsafe {
        // The kernels want their result in columns: rows are written as the transposed product.
        let one = Strided { data: left.data.as_ptr(), across: left.column, down: left.row };
        let other = Strided { data: right.data.as_ptr(), across: right.column, down: right.row };
        let (m, n, across, down, left, right) = if stride > 1 {
            (n, m, stride, 1, other.transposed(), one.transposed())
        } else {
            (m, n, 1, stride, one, other)
        };
        gemm_f32::gemm::f32::get_gemm_fn()(
            m,
            n,
            k,
            out.as_mut_ptr(),
            across as isize,
            down as isize,
            accumulate,
            left.data,
            left.across as isize,
            left.down as isize,
            right.data,
            right.across as isize,
            right.down as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            gemm_common::Parallelism::None,
        );
    }
}

/// Where a factor lies: steps from one column and from one row to the next.
struct Strided {
    data: *const f32,
    across: usize,
    down: usize,
}

impl Strided {
    fn transposed(self) -> Strided {
        Strided { data: self.data, across: self.down, down: self.across }
    }
}

/// Tells the cache that these numbers are wanted soon; changes no result.
#[allow(unsafe_code)]
#[inline]
pub(crate) fn wanted_soon(numbers: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    for line in numbers.chunks(16) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a hint; the address is inside the slice besides.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = numbers;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_every_orientation() {
        let (m, k, n) = (5, 7, 3);
        let a: Vec<f32> = (0..m * k).map(|i| (i % 11) as f32 - 5.0).collect();
        let b: Vec<f32> = (0..k * n).map(|i| (i % 7) as f32 - 3.0).collect();
        let transpose = |x: &[f32], rows: usize, columns: usize| -> Vec<f32> {
            (0..rows * columns).map(|i| x[(i % rows) * columns + i / rows]).collect()
        };
        let (at, bt) = (transpose(&a, m, k), transpose(&b, k, n));
        let expected: Vec<f32> =
            (0..m * n).map(|i| (0..k).map(|l| a[i / n * k + l] * b[l * n + i % n]).sum()).collect();
        for left in [View::new(&a, m, k), View::new(&at, k, m).transposed()] {
            for right in [View::new(&b, k, n), View::new(&bt, n, k).transposed()] {
                let mut out = vec![1.0; m * n];
                product(&mut out, left, right, false);
                assert_eq!(out, expected);
                product(&mut out, left, right, true);
                assert!(out.iter().zip(&expected).all(|(x, y)| *x == 2.0 * y));
            }
        }
    }
}
