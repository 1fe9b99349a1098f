//! The loops of a transformer between its products, each with its derivative: exponentials, softmax,
//! SiLU, GELU. For the crate `language`.
//!
//! exp is 2^n p(r) with |r| <= ln(2)/2 and the Taylor polynomial of degree 7: relative error below
//! 2e-7, flushed to 0 below -87.

use super::vectorise::vectorised;

/// Numbers added side by side, so that vectors can be used; the order is the same everywhere.
const LANES: usize = 16;

/// Of one row of a norm.
#[derive(Clone, Copy, Debug)]
pub struct Normalised {
    pub mean: f32,
    pub scale: f32,
    /// Mean of dy weight, for layer norm.
    pub centre: f32,
    /// Mean of dy weight scale (x - mean).
    pub along: f32,
}

#[inline(always)]
fn exponential(x: f32) -> f32 {
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    // ln 2 in two parts, the first with few digits.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    // Adding 1.5 x 2^23 rounds to a whole number, and leaves it in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let clamped = x.clamp(-87.0, 88.0);
    let shifted = clamped * LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let r = (clamped - whole * LN_2_HIGH) - whole * LN_2_LOW;
    let mut p = 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    if x < -87.0 { 0.0 } else { p * power }
}

#[inline(always)]
fn logistic(x: f32) -> f32 {
    1.0 / (1.0 + exponential(-x))
}

/// tanh(sqrt(2/pi) (x + 0.044715 x^3)), through 2 logistic(2u) - 1.
#[inline(always)]
fn gelu_tanh(x: f32) -> f32 {
    const ROOT: f32 = 0.797_884_6;
    2.0 * logistic(2.0 * ROOT * (x + 0.044_715 * x * x * x)) - 1.0
}

vectorised! {
    /// Every number becomes exp(scale (x - largest)); gives their sum.
    pub fn exponentials<'a>(row: &'a mut [f32], largest: f32, scale: f32) -> f32 {
        let mut sums = [0.0_f32; LANES];
        let mut parts = row.chunks_exact_mut(LANES);
        for part in parts.by_ref() {
            for (x, sum) in part.iter_mut().zip(&mut sums) {
                *x = exponential(scale * (*x - largest));
                *sum += *x;
            }
        }
        let mut total: f32 = sums.iter().sum();
        for x in parts.into_remainder() {
            *x = exponential(scale * (*x - largest));
            total += *x;
        }
        total
    }

    /// The largest number.
    pub fn maximum<'a>(row: &'a [f32]) -> f32 {
        let mut best = [f32::NEG_INFINITY; LANES];
        let parts = row.chunks_exact(LANES);
        let rest = parts.remainder().iter().copied().fold(f32::NEG_INFINITY, f32::max);
        for part in parts {
            for (x, best) in part.iter().zip(&mut best) {
                *best = if *x > *best { *x } else { *best };
            }
        }
        best.iter().copied().fold(rest, f32::max)
    }

    pub fn scale_by<'a>(row: &'a mut [f32], factor: f32) {
        for x in row.iter_mut() {
            *x *= factor;
        }
    }

    /// to += factor x what
    pub fn scaled_sum<'a>(to: &'a mut [f32], what: &'a [f32], factor: f32) {
        for (to, what) in to.iter_mut().zip(what) {
            *to += factor * what;
        }
    }

    /// Sum of products, sixteen side by side.
    pub fn inner<'a>(a: &'a [f32], b: &'a [f32]) -> f32 {
        let mut sums = [0.0_f32; LANES];
        let (heads, tails) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
        let rest: f32 = heads.remainder().iter().zip(tails.remainder()).map(|(a, b)| a * b).sum();
        for (a, b) in heads.zip(tails) {
            for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
                *sum += a * b;
            }
        }
        sums.iter().sum::<f32>() + rest
    }

    /// Sum, sixteen side by side.
    pub fn total<'a>(x: &'a [f32]) -> f32 {
        let mut sums = [0.0_f32; LANES];
        let parts = x.chunks_exact(LANES);
        let rest: f32 = parts.remainder().iter().sum();
        for part in parts {
            for (sum, x) in sums.iter_mut().zip(part) {
                *sum += x;
            }
        }
        sums.iter().sum::<f32>() + rest
    }

    /// Sum of (x - mean)^2.
    pub fn deviation<'a>(x: &'a [f32], mean: f32) -> f32 {
        let mut sums = [0.0_f32; LANES];
        let parts = x.chunks_exact(LANES);
        let rest: f32 = parts.remainder().iter().map(|x| (x - mean) * (x - mean)).sum();
        for part in parts {
            for (sum, x) in sums.iter_mut().zip(part) {
                *sum += (x - mean) * (x - mean);
            }
        }
        sums.iter().sum::<f32>() + rest
    }

    /// out = scale (x - mean) weight: one row of a norm.
    pub fn normalised<'a>(
        x: &'a [f32], weight: &'a [f32], out: &'a mut [f32], mean: f32, scale: f32,
    ) {
        for ((x, weight), out) in x.iter().zip(weight).zip(out) {
            *out = (x - mean) * scale * weight;
        }
    }

    /// dx += scale (dy weight - centre - scale (x - mean) along): back through a row of a norm.
    pub fn add_normalised_backward<'a>(
        x: &'a [f32], weight: &'a [f32], dy: &'a [f32], dx: &'a mut [f32], numbers: Normalised,
    ) {
        let Normalised { mean, scale, centre, along } = numbers;
        for (((x, weight), dy), dx) in x.iter().zip(weight).zip(dy).zip(dx) {
            *dx += scale * (dy * weight - centre - (x - mean) * scale * along);
        }
    }

    /// d becomes scale p (d - sum(d p)): back through a row of softmax.
    pub fn softmax_backward<'a>(d: &'a mut [f32], p: &'a [f32], scale: f32) {
        let mut sums = [0.0_f32; LANES];
        let (heads, tails) = (d.chunks_exact(LANES), p.chunks_exact(LANES));
        let rest: f32 = heads.remainder().iter().zip(tails.remainder()).map(|(d, p)| d * p).sum();
        for (d, p) in heads.zip(tails) {
            for (sum, (d, p)) in sums.iter_mut().zip(d.iter().zip(p)) {
                *sum += d * p;
            }
        }
        let along = sums.iter().sum::<f32>() + rest;
        for (d, p) in d.iter_mut().zip(p) {
            *d = scale * p * (*d - along);
        }
    }

    /// out = silu(gate) up
    pub fn silu_times<'a>(gate: &'a [f32], up: &'a [f32], out: &'a mut [f32]) {
        for ((gate, up), out) in gate.iter().zip(up).zip(out) {
            *out = gate * logistic(*gate) * up;
        }
    }

    /// `d`, the gradient of silu(gate) up, becomes that of `up`; `d_gate` that of `gate`.
    pub fn silu_backward<'a>(
        gate: &'a [f32], up: &'a [f32], d: &'a mut [f32], d_gate: &'a mut [f32],
    ) {
        for (((gate, up), d), d_gate) in gate.iter().zip(up).zip(d).zip(d_gate) {
            let s = logistic(*gate);
            *d_gate = *d * up * (s * (1.0 + gate * (1.0 - s)));
            *d *= gate * s;
        }
    }

    /// out = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
    pub fn gelu<'a>(x: &'a [f32], out: &'a mut [f32]) {
        for (x, out) in x.iter().zip(out) {
            *out = 0.5 * x * (1.0 + gelu_tanh(*x));
        }
    }

    /// `d` is multiplied by the derivative at `x`.
    pub fn gelu_backward<'a>(x: &'a [f32], d: &'a mut [f32]) {
        for (x, d) in x.iter().zip(d) {
            let t = gelu_tanh(*x);
            let slope = 0.797_884_6 * (1.0 + 3.0 * 0.044_715 * x * x);
            *d *= 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_right_to_rounding() {
        let mut row: Vec<f32> = (-8800..=0).map(|i| i as f32 * 0.01).collect();
        let exact: Vec<f64> = row.iter().map(|x| f64::from(*x).exp()).collect();
        let sum = exponentials(&mut row, 0.0, 1.0);
        for (got, want) in row.iter().zip(&exact).filter(|(_, want)| **want > 2e-38) {
            assert!((f64::from(*got) / want - 1.0).abs() < 3e-7, "{got} {want}");
        }
        assert!((f64::from(sum) / exact.iter().sum::<f64>() - 1.0).abs() < 1e-5);
        let mut far = [-1e30, f32::NEG_INFINITY, 0.0];
        exponentials(&mut far, 0.0, 1.0);
        assert_eq!(far, [0.0, 0.0, 1.0]);
        assert_eq!(maximum(&[-3.0; 40]), -3.0);
    }

    #[test]
    fn derivatives_are_those_of_the_functions() {
        let x: Vec<f32> = (-40..40).map(|i| i as f32 * 0.1).collect();
        let up: Vec<f32> = x.iter().map(|x| 1.0 + 0.3 * x).collect();
        let h = 1e-2_f32;
        let moved = |by: f32| -> Vec<f32> { x.iter().map(|x| x + by).collect() };
        let slope = |of: &dyn Fn(&[f32]) -> Vec<f32>| -> Vec<f32> {
            of(&moved(h)).iter().zip(of(&moved(-h))).map(|(a, b)| (a - b) / (2.0 * h)).collect()
        };
        let run = |f: &dyn Fn(&[f32], &mut [f32]), x: &[f32]| {
            let mut out = vec![0.0; x.len()];
            f(x, &mut out);
            out
        };
        let mut d = vec![1.0; x.len()];
        gelu_backward(&x, &mut d);
        // h^2 times a third derivative, and rounding over h.
        for (d, s) in d.iter().zip(slope(&|x| run(&|x, out| gelu(x, out), x))) {
            assert!((d - s).abs() < 3e-4, "{d} {s}");
        }
        let (mut d, mut d_gate) = (vec![1.0; x.len()], vec![0.0; x.len()]);
        silu_backward(&x, &up, &mut d, &mut d_gate);
        let silu = |gate: &[f32]| run(&|gate, out| silu_times(gate, &up, out), gate);
        for (d, s) in d_gate.iter().zip(slope(&silu)) {
            assert!((d - s).abs() < 3e-4, "{d} {s}");
        }
        let ones = vec![1.0; x.len()];
        assert_eq!(d, run(&|gate, out| silu_times(gate, &ones, out), &x));
    }
}
