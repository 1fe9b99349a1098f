//! The loops between the products.

use super::layer::{Backward, Layer};
use super::vectorise::vectorised;

vectorised! {
    /// out = max(x, 0).
    pub(crate) fn relu<'a>(x: &'a [f32], out: &'a mut [f32]) {
        for (x, out) in x.iter().zip(out) {
            // This way round a NaN passes, and is found by its loss.
            *out = if *x < 0.0 { 0.0 } else { *x };
        }
    }

    /// gradient of the input from that of the output.
    pub(crate) fn relu_backward<'a>(y: &'a [f32], dy: &'a [f32], dx: &'a mut [f32]) {
        for ((y, dy), dx) in y.iter().zip(dy).zip(dx) {
            *dx = if *y > 0.0 { *dy } else { 0.0 };
        }
    }

    pub(crate) fn tanh<'a>(x: &'a [f32], out: &'a mut [f32]) {
        for (x, out) in x.iter().zip(out) {
            *out = hyperbolic_tangent(*x);
        }
    }

    pub(crate) fn tanh_backward<'a>(y: &'a [f32], dy: &'a [f32], dx: &'a mut [f32]) {
        for ((y, dy), dx) in y.iter().zip(dy).zip(dx) {
            *dx = dy * (1.0 - y * y);
        }
    }

    /// Each row of `out` becomes the bias.
    pub(crate) fn fill_rows<'a>(bias: &'a [f32], out: &'a mut [f32]) {
        for row in out.chunks_exact_mut(bias.len()) {
            row.copy_from_slice(bias);
        }
    }

    pub(crate) fn add<'a>(x: &'a [f32], out: &'a mut [f32]) {
        for (x, out) in x.iter().zip(out) {
            *out += x;
        }
    }

    pub(crate) fn sum<'a>(x: &'a [f32], y: &'a [f32], out: &'a mut [f32]) {
        for ((x, y), out) in x.iter().zip(y).zip(out) {
            *out = x + y;
        }
    }

    pub(crate) fn scale<'a>(factor: f32, out: &'a mut [f32]) {
        for out in out {
            *out *= factor;
        }
    }

    /// out += factor x.
    pub(crate) fn add_scaled<'a>(factor: f32, x: &'a [f32], out: &'a mut [f32]) {
        for (x, out) in x.iter().zip(out) {
            *out += factor * x;
        }
    }

    /// out += the sum of the rows.
    pub(crate) fn add_rows<'a>(rows: &'a [f32], out: &'a mut [f32]) {
        for row in rows.chunks_exact(out.len()) {
            for (x, out) in row.iter().zip(out.iter_mut()) {
                *out += x;
            }
        }
    }

    /// Sum of squares in f64: exact but for 2^-52 a term, so that a norm never comes out too
    /// small by more than the rounding of the factor made from it.
    pub(crate) fn squared_norm<'a>(x: &'a [f32]) -> f64 {
        let mut sums = [0.0f64; 32];
        let (whole, rest) = x.as_chunks::<32>();
        // A vector at a time, or the compiler takes the numbers one by one.
        for chunk in whole {
            add_squares(&mut sums, chunk, 0);
            add_squares(&mut sums, chunk, 8);
            add_squares(&mut sums, chunk, 16);
            add_squares(&mut sums, chunk, 24);
        }
        for (lane, value) in rest.iter().enumerate() {
            let value = f64::from(*value);
            sums[lane] += value * value;
        }
        let mut width = 16;
        while width > 0 {
            for lane in 0..width {
                sums[lane] += sums[lane + width];
            }
            width /= 2;
        }
        sums[0]
    }
}

/// Eight of them, from `first` on.
#[inline(always)]
fn add_squares(sums: &mut [f64; 32], numbers: &[f32; 32], first: usize) {
    for lane in first..first + 8 {
        let value = f64::from(numbers[lane]);
        sums[lane] += value * value;
    }
}

/// tanh in f32 from additions, multiplications and one division; relative error below 2^-21.
#[inline(always)]
pub(crate) fn hyperbolic_tangent(x: f32) -> f32 {
    let magnitude = x.abs().min(10.0);
    let square = magnitude * magnitude;
    // Below 0.55 the odd Taylor series to the 15th power, above 1 - 2 / (e^2x + 1).
    let mut series = -929_569.0f32 / 638_512_875.0;
    series = series * square + 21_844.0 / 6_081_075.0;
    series = series * square - 1_382.0 / 155_925.0;
    series = series * square + 62.0 / 2_835.0;
    series = series * square - 17.0 / 315.0;
    series = series * square + 2.0 / 15.0;
    series = series * square - 1.0 / 3.0;
    let small = magnitude + magnitude * (square * series);
    let large = 1.0 - 2.0 / (exponential(2.0 * magnitude) + 1.0);
    let positive = if magnitude < 0.55 { small } else { large };
    let signed = f32::from_bits(positive.to_bits() | (x.to_bits() & 0x8000_0000));
    // A NaN passes, and is found by its loss.
    if x.is_nan() { x } else { signed }
}

/// e^x in f32 for |x| <= 87; relative error below 2^-21.
#[inline(always)]
pub(crate) fn exponential(x: f32) -> f32 {
    const SHIFT: f32 = 12_582_912.0; // 1.5 * 2^23
    const LN2_HIGH: f32 = 0.693_359_375;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let shifted = x * std::f32::consts::LOG2_E + SHIFT;
    let k = shifted - SHIFT;
    let r = (x - k * LN2_HIGH) - k * LN2_LOW;
    let mut series = 1.0f32 / 5040.0;
    series = series * r + 1.0 / 720.0;
    series = series * r + 1.0 / 120.0;
    series = series * r + 1.0 / 24.0;
    series = series * r + 1.0 / 6.0;
    series = series * r + 0.5;
    let value = 1.0 + (r + r * r * series);
    // The low bits of the shifted number are k.
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    value * power
}

/// max(x, 0).
pub(super) struct Relu;

impl Layer for Relu {
    fn forward(&mut self, _: &[f32], x: &[f32], y: &mut [f32], _: usize) {
        relu(x, y);
    }

    fn backward(&mut self, given: Backward<'_>, dx: Option<&mut [f32]>) {
        if let Some(dx) = dx {
            relu_backward(given.y, given.dy, dx);
        }
    }
}

/// The hyperbolic tangent.
pub(super) struct Tanh;

impl Layer for Tanh {
    fn forward(&mut self, _: &[f32], x: &[f32], y: &mut [f32], _: usize) {
        tanh(x, y);
    }

    fn backward(&mut self, given: Backward<'_>, dx: Option<&mut [f32]>) {
        if let Some(dx) = dx {
            tanh_backward(given.y, given.dy, dx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elementary_functions_are_accurate() {
        for i in -120_000..120_000 {
            let x = i as f32 * 1e-4;
            let exact = f64::from(x).tanh();
            let found = f64::from(hyperbolic_tangent(x));
            assert!((found - exact).abs() <= exact.abs() * 2f64.powi(-21), "tanh {x}");
            let y = x * 7.0;
            let exact = f64::from(y).exp();
            let found = f64::from(exponential(y));
            assert!((found - exact).abs() <= exact * 2f64.powi(-21), "exp {y}");
        }
        assert!(hyperbolic_tangent(f32::NAN).is_nan());
        assert_eq!(hyperbolic_tangent(-50.0), -1.0);
    }

    #[test]
    fn norms_count_every_number() {
        for length in [0, 1, 31, 32, 33, 100] {
            let x: Vec<f32> = (0..length).map(|i| i as f32).collect();
            let expected: f64 = x.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
            assert_eq!(squared_norm(&x), expected);
        }
    }
}
