//! The two large products of a linear layer, y = x W + b and G (+)= x' d, where neither operand
//! needs packing: a row of W or of d is whole vectors that are used as they lie, and the numbers
//! of x are spread over a vector one by one. Six rows by four vectors are kept in registers, which
//! is 24 multiply-adds for 4 loads and 6 spreads. Each number of the result is summed in the order
//! of the inner index, so that cutting the rows elsewhere changes no bit. Rows of x may lie anywhere:
//! the records of a batch are read where they are, and fetched ahead of their turn.
//!
//! With AVX-512 and outputs in multiples of 64 only; elsewhere [`super::product`] is as good.

use super::product::wanted_soon;
use pulp::{Simd, WithSimd};

/// Rows of a tile.
const ROWS: usize = 6;
/// Vectors of a tile.
const VECTORS: usize = 4;
const LANES: usize = 16;

/// Whether a layer with this many outputs is multiplied here, on this machine.
pub(crate) fn suit(outputs: usize) -> bool {
    struct Lanes;
    impl WithSimd for Lanes {
        type Output = usize;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _instructions: S) -> usize {
            S::F32_LANES
        }
    }
    outputs.is_multiple_of(VECTORS * LANES) && pulp::Arch::new().dispatch(Lanes) == LANES
}

/// y = x W + b.
pub(crate) struct Forward<'a> {
    pub(crate) x: &'a [&'a [f32]],
    /// A row for each input.
    pub(crate) weight: &'a [f32],
    pub(crate) bias: &'a [f32],
    pub(crate) y: &'a mut [f32],
}

/// G = x' d, or G += x' d.
pub(crate) struct Outer<'a> {
    pub(crate) x: &'a [&'a [f32]],
    pub(crate) d: &'a [f32],
    pub(crate) outputs: usize,
    /// A row for each input.
    pub(crate) gradient: &'a mut [f32],
    pub(crate) overwrite: bool,
}

impl Forward<'_> {
    pub(crate) fn run(self) {
        pulp::Arch::new().dispatch(self);
    }
}

impl Outer<'_> {
    pub(crate) fn run(self) {
        pulp::Arch::new().dispatch(self);
    }
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (weight, _) = S::as_simd_f32s(self.weight);
        let (bias, _) = S::as_simd_f32s(self.bias);
        let (y, _) = S::as_mut_simd_f32s(self.y);
        let width = bias.len();
        let tiles = (width / VECTORS).max(1);
        let groups = self.x.chunks(ROWS).enumerate();
        for ((group, x), y) in groups.zip(y.chunks_mut(ROWS * width)) {
            let next = self.x.chunks(ROWS).nth(group + 1).unwrap_or_default();
            for (tile, first) in (0..width).step_by(VECTORS).enumerate() {
                // Each tile fetches its share of the next rows.
                let next = &next[next.len() * tile / tiles..next.len() * (tile + 1) / tiles];
                match x.len() {
                    6 => forward::<S, 6>(simd, x, next, weight, bias, y, first),
                    5 => forward::<S, 5>(simd, x, next, weight, bias, y, first),
                    4 => forward::<S, 4>(simd, x, next, weight, bias, y, first),
                    3 => forward::<S, 3>(simd, x, next, weight, bias, y, first),
                    2 => forward::<S, 2>(simd, x, next, weight, bias, y, first),
                    _ => forward::<S, 1>(simd, x, next, weight, bias, y, first),
                }
            }
        }
    }
}

#[inline(always)]
fn forward<S: Simd, const R: usize>(
    simd: S,
    x: &[&[f32]],
    next: &[&[f32]],
    weight: &[S::f32s],
    bias: &[S::f32s],
    y: &mut [S::f32s],
    first: usize,
) {
    let (inputs, width) = (weight.len() / bias.len(), bias.len());
    let rows: [&[f32]; R] = std::array::from_fn(|row| &x[row][..inputs]);
    let start: [S::f32s; VECTORS] = std::array::from_fn(|vector| bias[first + vector]);
    let mut sums = [start; R];
    let mut from = 0;
    while from < inputs {
        let end = (from + LANES).min(inputs);
        for row in next {
            wanted_soon(&row[from..end]);
        }
        for k in from..end {
            let right = &weight[k * width + first..k * width + first + VECTORS];
            for row in 0..R {
                let left = simd.splat_f32s(rows[row][k]);
                for vector in 0..VECTORS {
                    sums[row][vector] = simd.mul_add_f32s(left, right[vector], sums[row][vector]);
                }
            }
        }
        from = end;
    }
    for (row, sums) in sums.iter().enumerate() {
        y[row * width + first..row * width + first + VECTORS].copy_from_slice(sums);
    }
}

impl WithSimd for Outer<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (d, _) = S::as_simd_f32s(self.d);
        let (gradient, _) = S::as_mut_simd_f32s(self.gradient);
        let width = self.outputs / S::F32_LANES;
        for (tile, out) in gradient.chunks_mut(ROWS * width).enumerate() {
            let at = tile * ROWS;
            for first in (0..width).step_by(VECTORS) {
                let start = !self.overwrite;
                match out.len() / width {
                    6 => outer::<S, 6>(simd, self.x, d, width, (at, first), start, out),
                    5 => outer::<S, 5>(simd, self.x, d, width, (at, first), start, out),
                    4 => outer::<S, 4>(simd, self.x, d, width, (at, first), start, out),
                    3 => outer::<S, 3>(simd, self.x, d, width, (at, first), start, out),
                    2 => outer::<S, 2>(simd, self.x, d, width, (at, first), start, out),
                    _ => outer::<S, 1>(simd, self.x, d, width, (at, first), start, out),
                }
            }
        }
    }
}

#[inline(always)]
fn outer<S: Simd, const R: usize>(
    simd: S,
    x: &[&[f32]],
    d: &[S::f32s],
    width: usize,
    (at, first): (usize, usize),
    add: bool,
    out: &mut [S::f32s],
) {
    let mut sums = [[simd.splat_f32s(0.0); VECTORS]; R];
    for (x, d) in x.iter().zip(d.chunks_exact(width)) {
        let (left, right) = (&x[at..at + R], &d[first..first + VECTORS]);
        for row in 0..R {
            let left = simd.splat_f32s(left[row]);
            for vector in 0..VECTORS {
                sums[row][vector] = simd.mul_add_f32s(left, right[vector], sums[row][vector]);
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        let out = &mut out[row * width + first..row * width + first + VECTORS];
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = if add { simd.add_f32s(*out, *sum) } else { *sum };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::product::{View, product};

    /// Small whole numbers: every sum is exact.
    fn numbers(length: usize, factor: usize) -> Vec<f32> {
        (0..length).map(|i| (i * factor % 13) as f32 - 6.0).collect()
    }

    #[test]
    fn tiles_are_the_products() {
        if !suit(64) {
            return;
        }
        for (rows, inputs, outputs) in [(1, 1, 64), (6, 5, 128), (13, 29, 64), (20, 12, 192)] {
            let (x, weight) = (numbers(rows * inputs, 7), numbers(inputs * outputs, 5));
            let bias = numbers(outputs, 3);
            let mut expected: Vec<f32> = bias.repeat(rows);
            let (left, right) = (View::new(&x, rows, inputs), View::new(&weight, inputs, outputs));
            product(&mut expected, left, right, true);
            let mut y = vec![f32::NAN; rows * outputs];
            let lines: Vec<&[f32]> = x.chunks(inputs).collect();
            Forward { x: &lines, weight: &weight, bias: &bias, y: &mut y }.run();
            assert_eq!(y, expected);
            let d = numbers(rows * outputs, 11);
            let mut expected = numbers(inputs * outputs, 2);
            let mut gradient = expected.clone();
            for overwrite in [false, true] {
                product(&mut expected, left.transposed(), View::new(&d, rows, outputs), !overwrite);
                Outer { x: &lines, d: &d, outputs, gradient: &mut gradient, overwrite }.run();
                assert_eq!(gradient, expected);
            }
        }
    }
}
