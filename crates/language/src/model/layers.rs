//! The parts between products, each with its derivative: norms, rotation, activations.

use super::architecture::{Architecture, Norm, Pairs, Position};
use super::decoder::NormWeights;

/// Normalises every row of `x` into `out`.
pub(super) fn norm(kind: Norm, weights: &NormWeights, x: &[f32], out: &mut [f32]) {
    let width = weights.weight.len();
    for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        let (mean, scale) = moments(kind, x);
        for (i, (out, x)) in out.iter_mut().zip(x).enumerate() {
            *out = (x - mean) * scale * weights.weight[i];
        }
        if let Some(bias) = &weights.bias {
            for (out, bias) in out.iter_mut().zip(bias) {
                *out += bias;
            }
        }
    }
}

/// Normalises every row of `x` into `out`, weights left out.
pub(crate) fn norm_direction(kind: Norm, width: usize, x: &[f32], out: &mut [f32]) {
    for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        let (mean, scale) = moments(kind, x);
        for (out, x) in out.iter_mut().zip(x) {
            *out = (x - mean) * scale;
        }
    }
}

/// Adds to `dx` the gradient through the norm of `x`, given that of its output.
///
/// With y = s (x - m) the normalised row and g = dy w: dx = s (g - mean(g) [layer norm] - y mean(g y)).
pub(super) fn norm_backward(
    kind: Norm,
    weights: &NormWeights,
    x: &[f32],
    dy: &[f32],
    dx: &mut [f32],
) {
    let width = weights.weight.len();
    let rows = x.chunks_exact(width).zip(dy.chunks_exact(width));
    for ((x, dy), dx) in rows.zip(dx.chunks_exact_mut(width)) {
        let (mean, scale) = moments(kind, x);
        let (mut sum, mut along) = (0.0_f64, 0.0_f64);
        for i in 0..width {
            let g = f64::from(dy[i] * weights.weight[i]);
            sum += g;
            along += g * f64::from((x[i] - mean) * scale);
        }
        let n = width as f64;
        let centre = if matches!(kind, Norm::Layer { .. }) { (sum / n) as f32 } else { 0.0 };
        let along = (along / n) as f32;
        for i in 0..width {
            let y = (x[i] - mean) * scale;
            dx[i] += scale * (dy[i] * weights.weight[i] - centre - y * along);
        }
    }
}

/// The shift and the scale of a row.
fn moments(kind: Norm, x: &[f32]) -> (f32, f32) {
    let n = x.len() as f64;
    let sum = |of: &dyn Fn(f64) -> f64| x.iter().map(|x| of(f64::from(*x))).sum::<f64>() / n;
    match kind {
        Norm::Rms { epsilon } => {
            let square = sum(&|x| x * x);
            (0.0, (1.0 / (square + f64::from(epsilon)).sqrt()) as f32)
        }
        Norm::Layer { epsilon } => {
            let mean = sum(&|x| x);
            let variance = sum(&|x| (x - mean) * (x - mean));
            (mean as f32, (1.0 / (variance + f64::from(epsilon)).sqrt()) as f32)
        }
    }
}

/// Cosines and sines of the rotary angles.
pub(super) struct Rotation {
    /// (cos, sin) of place p and frequency i at `p * half + i`.
    table: Vec<(f32, f32)>,
    half: usize,
    pairs: Pairs,
}

impl Rotation {
    /// The table for places 0..`places`; nothing for learned positions.
    pub(super) fn new(architecture: &Architecture, places: usize) -> Option<Self> {
        let Position::Rotary { base, pairs } = architecture.position else { return None };
        let half = architecture.head_width / 2;
        let mut table = Vec::with_capacity(places * half);
        for place in 0..places {
            for i in 0..half {
                let angle = place as f64 * base.powf(-(i as f64) / half as f64);
                table.push((angle.cos() as f32, angle.sin() as f32));
            }
        }
        Some(Self { table, half, pairs })
    }

    /// Rotates every head of a row at a place; `back` by the negative angle, which is the
    /// derivative's way.
    pub(super) fn rotate(&self, row: &mut [f32], place: usize, back: bool) {
        let angles = &self.table[place * self.half..(place + 1) * self.half];
        for head in row.chunks_exact_mut(2 * self.half) {
            for (i, &(cos, sin)) in angles.iter().enumerate() {
                let sin = if back { -sin } else { sin };
                let (a, b) = match self.pairs {
                    Pairs::Neighbours => (2 * i, 2 * i + 1),
                    Pairs::Halves => (i, i + self.half),
                };
                let (x, y) = (head[a], head[b]);
                head[a] = x * cos - y * sin;
                head[b] = x * sin + y * cos;
            }
        }
    }
}
