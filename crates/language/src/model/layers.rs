//! The parts between products, each with its derivative: norms, rotation, activations.

use super::architecture::{Architecture, Norm, Pairs, Position};
use super::decoder::NormWeights;
use training::cpu::transformer::{
    Normalised, add_normalised_backward, deviation, inner, normalised, scaled_sum, total,
};

/// Normalises every row of `x` into `out`.
pub(super) fn norm(kind: Norm, weights: &NormWeights, x: &[f32], out: &mut [f32]) {
    let width = weights.weight.len();
    for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        let (mean, scale) = moments(kind, x);
        normalised(x, &weights.weight, out, mean, scale);
        if let Some(bias) = &weights.bias {
            scaled_sum(out, bias, 1.0);
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
    let mut direction = vec![0.0; width];
    let rows = x.chunks_exact(width).zip(dy.chunks_exact(width));
    for ((x, dy), dx) in rows.zip(dx.chunks_exact_mut(width)) {
        let (mean, scale) = moments(kind, x);
        normalised(x, &weights.weight, &mut direction, mean, scale);
        let along = inner(dy, &direction) / width as f32;
        let centre = match kind {
            Norm::Layer { .. } => inner(dy, &weights.weight) / width as f32,
            Norm::Rms { .. } => 0.0,
        };
        let numbers = Normalised { mean, scale, centre, along };
        add_normalised_backward(x, &weights.weight, dy, dx, numbers);
    }
}

/// The shift and the scale of a row.
fn moments(kind: Norm, x: &[f32]) -> (f32, f32) {
    let n = x.len() as f64;
    let scale = |square: f32, epsilon: f32| {
        (1.0 / (f64::from(square) / n + f64::from(epsilon)).sqrt()) as f32
    };
    match kind {
        Norm::Rms { epsilon } => (0.0, scale(inner(x, x), epsilon)),
        Norm::Layer { epsilon } => {
            let mean = (f64::from(total(x)) / n) as f32;
            (mean, scale(deviation(x, mean), epsilon))
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
