//! Group normalisation: per example and group of channels, z = (x - mean) / sqrt(var + 1e-5),
//! y = scale z + shift. The per-example gradients of scale and shift are two numbers a channel
//! and are kept.

use super::elementwise::{add_scaled, squared_norm};
use super::layer::{Backward, Known, Layer, Sum};
use super::linear::Inputs;
use crate::model::GroupNorm;

const SMALLEST: f64 = 1e-5;

pub(crate) struct GroupNormMemory {
    normalised: Vec<f32>,
    inverse_deviations: Vec<f32>,
    /// Of scale, then of shift, for each example.
    gradients: Vec<f32>,
}

impl GroupNormMemory {
    pub(crate) fn new(layer: &GroupNorm, capacity: usize) -> Self {
        Self {
            normalised: vec![0.0; capacity * layer.image.len()],
            inverse_deviations: vec![0.0; capacity * layer.groups],
            gradients: vec![0.0; capacity * 2 * layer.image.channels],
        }
    }

    fn forward(&mut self, layer: &GroupNorm, parameters: &[f32], x: &[f32], y: &mut [f32]) {
        let (channels, length) = (layer.image.channels, layer.image.len());
        let width = channels / layer.groups;
        let count = (width * layer.image.positions()) as f64;
        let scale = &parameters[layer.scale..layer.scale + channels];
        let shift = &parameters[layer.shift..layer.shift + channels];
        let examples = x.chunks_exact(length).zip(y.chunks_exact_mut(length));
        for (example, (x, y)) in examples.enumerate() {
            let normalised = &mut self.normalised[example * length..(example + 1) * length];
            let (means, inverses) = moments(x, channels, width, count);
            self.inverse_deviations[example * layer.groups..(example + 1) * layer.groups]
                .copy_from_slice(&inverses);
            let mean: Vec<f32> = (0..channels).map(|channel| means[channel / width]).collect();
            let inverse: Vec<f32> =
                (0..channels).map(|channel| inverses[channel / width]).collect();
            for ((x, z), y) in x
                .chunks_exact(channels)
                .zip(normalised.chunks_exact_mut(channels))
                .zip(y.chunks_exact_mut(channels))
            {
                for channel in 0..channels {
                    z[channel] = (x[channel] - mean[channel]) * inverse[channel];
                    y[channel] = z[channel] * scale[channel] + shift[channel];
                }
            }
        }
    }

    /// Gradients of the input (where wanted) and of scale and shift.
    fn backward(
        &mut self,
        layer: &GroupNorm,
        parameters: &[f32],
        dy: &[f32],
        mut dx: Option<&mut [f32]>,
    ) {
        let (channels, length) = (layer.image.channels, layer.image.len());
        let width = channels / layer.groups;
        let count = (width * layer.image.positions()) as f32;
        let scale = &parameters[layer.scale..layer.scale + channels];
        for (example, dy) in dy.chunks_exact(length).enumerate() {
            let normalised = &self.normalised[example * length..(example + 1) * length];
            let own = &mut self.gradients[example * 2 * channels..(example + 1) * 2 * channels];
            own.fill(0.0);
            let (of_scale, of_shift) = own.split_at_mut(channels);
            for (dy, z) in dy.chunks_exact(channels).zip(normalised.chunks_exact(channels)) {
                for channel in 0..channels {
                    of_scale[channel] += dy[channel] * z[channel];
                    of_shift[channel] += dy[channel];
                }
            }
            let Some(dx) = dx.as_deref_mut() else { continue };
            // dz = scale dy; dx = (dz - mean dz - z mean(z dz)) / deviation, means over the group.
            let mut mean = vec![0.0f32; layer.groups];
            let mut along = vec![0.0f32; layer.groups];
            for channel in 0..channels {
                mean[channel / width] += scale[channel] * of_shift[channel] / count;
                along[channel / width] += scale[channel] * of_scale[channel] / count;
            }
            let inverse = &self.inverse_deviations[example * layer.groups..];
            let spread = |of: &[f32]| -> Vec<f32> {
                (0..channels).map(|channel| of[channel / width]).collect()
            };
            let (mean, along, inverse) = (spread(&mean), spread(&along), spread(inverse));
            let dx = &mut dx[example * length..(example + 1) * length];
            for ((dx, dy), z) in dx
                .chunks_exact_mut(channels)
                .zip(dy.chunks_exact(channels))
                .zip(normalised.chunks_exact(channels))
            {
                for channel in 0..channels {
                    let dz = scale[channel] * dy[channel];
                    dx[channel] =
                        inverse[channel] * (dz - mean[channel] - z[channel] * along[channel]);
                }
            }
        }
    }

    fn add_squared_norms(&self, layer: &GroupNorm, squares: &mut [f64]) {
        for (square, own) in
            squares.iter_mut().zip(self.gradients.chunks_exact(2 * layer.image.channels))
        {
            *square += squared_norm(own);
        }
    }

    fn add_clipped(
        &self,
        layer: &GroupNorm,
        factors: &[f32],
        gradient: &mut [f32],
        overwrite: bool,
    ) {
        let channels = layer.image.channels;
        if overwrite {
            gradient[layer.scale..layer.scale + channels].fill(0.0);
            gradient[layer.shift..layer.shift + channels].fill(0.0);
        }
        for (factor, own) in factors.iter().zip(self.gradients.chunks_exact(2 * channels)) {
            let (of_scale, of_shift) = own.split_at(channels);
            add_scaled(*factor, of_scale, &mut gradient[layer.scale..layer.scale + channels]);
            add_scaled(*factor, of_shift, &mut gradient[layer.shift..layer.shift + channels]);
        }
    }
}

/// Mean and 1 / deviation of each group of one example.
fn moments(x: &[f32], channels: usize, width: usize, count: f64) -> (Vec<f32>, Vec<f32>) {
    let mut sums = vec![0.0f64; channels];
    for row in x.chunks_exact(channels) {
        for (sum, x) in sums.iter_mut().zip(row) {
            *sum += f64::from(*x);
        }
    }
    let means: Vec<f64> = sums.chunks_exact(width).map(|g| g.iter().sum::<f64>() / count).collect();
    let mean: Vec<f64> = (0..channels).map(|channel| means[channel / width]).collect();
    let mut squares = vec![0.0f64; channels];
    for row in x.chunks_exact(channels) {
        for ((square, x), mean) in squares.iter_mut().zip(row).zip(&mean) {
            *square += (f64::from(*x) - mean).powi(2);
        }
    }
    let inverses = squares
        .chunks_exact(width)
        .map(|group| (1.0 / (group.iter().sum::<f64>() / count + SMALLEST).sqrt()) as f32)
        .collect();
    (means.iter().map(|mean| *mean as f32).collect(), inverses)
}

impl Layer for (GroupNorm, GroupNormMemory) {
    fn forward(&mut self, parameters: &[f32], x: &[f32], y: &mut [f32], _: usize) {
        self.1.forward(&self.0, parameters, x, y);
    }

    /// Makes the gradients of scale and shift as well, which are wanted even where `dx` is not.
    fn backward(&mut self, given: Backward<'_>, dx: Option<&mut [f32]>) {
        self.1.backward(&self.0, given.parameters, given.dy, dx);
    }

    fn add_squared_norms(&mut self, _: Known<'_>, _: &[f32], squares: &mut [f64]) {
        self.1.add_squared_norms(&self.0, squares);
    }

    fn add_clipped(&mut self, _: Inputs<'_>, _: &mut [f32], sum: Sum<'_>) {
        self.1.add_clipped(&self.0, sum.factors, sum.gradient, sum.overwrite);
    }
}
