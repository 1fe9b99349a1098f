//! Convolution as one product: all patches of all examples are the rows of one matrix.
//!
//! The gradient of example i is G_i = patches_i' delta_i, one small product. Its norm is taken
//! from G_i itself: the ghost formula needs (positions)^2 inner products and, in f32, loses the
//! norm to cancellation. Where the model of cost says that reading G_i again is cheaper than forming
//! it again, it is kept and the clipped sum is a weighted sum of exactly the rows whose norms were
//! taken. Where it is not, the clipped sum is one product over all patches, whose rounding can differ from that of G_i; then the norm is
//! raised by 2 gamma |patches_i| |delta_i| with gamma = positions 2^-24 (Higham 2002, section
//! 3.5), so that a clipped row stays below the clip norm in f32 as well.

use super::elementwise::{add_rows, add_scaled, fill_rows, scale, squared_norm};
use super::layer::{Backward, Known, Layer, Sum};
use super::linear::Inputs;
use super::product::{View, product};
use super::standardise::Standardised;
use crate::cost::{self, CPU_ROUTES, Rates, Route};
use crate::model::Convolution;

/// What a convolution remembers between forward and the clipped sum.
pub(crate) struct ConvolutionMemory {
    patches: Vec<f32>,
    /// One gradient for each example, or room for one.
    gradients: Vec<f32>,
    kept: bool,
    bias_gradients: Vec<f32>,
    standardised: Option<Standardised>,
}

impl ConvolutionMemory {
    pub(crate) fn new(layer: &Convolution, capacity: usize) -> Self {
        let kept = cost::cheapest(layer.product(), CPU_ROUTES, Rates::CPU) == Route::Kept;
        Self {
            patches: vec![0.0; capacity * layer.output.positions() * layer.patch()],
            gradients: vec![0.0; layer.weights() * if kept { capacity } else { 1 }],
            kept,
            bias_gradients: vec![0.0; capacity * layer.output.channels],
            standardised: layer
                .standardised
                .then(|| Standardised::new(layer.patch(), layer.output.channels)),
        }
    }

    /// To be called whenever the parameters have changed.
    fn prepare(&mut self, layer: &Convolution, parameters: &[f32]) {
        if let Some(standardised) = &mut self.standardised {
            standardised.prepare(&parameters[layer.weight..layer.weight + layer.weights()]);
        }
    }

    fn weight<'a>(&'a self, layer: &Convolution, parameters: &'a [f32]) -> &'a [f32] {
        match &self.standardised {
            Some(standardised) => standardised.weights(),
            None => &parameters[layer.weight..layer.weight + layer.weights()],
        }
    }

    fn forward(
        &mut self,
        layer: &Convolution,
        parameters: &[f32],
        x: &[f32],
        y: &mut [f32],
        examples: usize,
    ) {
        let (positions, patch) = (layer.output.positions(), layer.patch());
        let rows = examples * positions;
        for example in 0..examples {
            let x = &x[example * layer.input.len()..(example + 1) * layer.input.len()];
            let from = example * positions * patch;
            gather(layer, x, &mut self.patches[from..from + positions * patch]);
        }
        fill_rows(&parameters[layer.bias..layer.bias + layer.output.channels], y);
        let patches = View::new(&self.patches[..rows * patch], rows, patch);
        let weight = View::new(self.weight(layer, parameters), patch, layer.output.channels);
        product(y, patches, weight, true);
    }

    /// Gradient of the input; `scratch` holds as many numbers as the patches.
    fn backward(
        &self,
        layer: &Convolution,
        parameters: &[f32],
        dy: &[f32],
        dx: &mut [f32],
        scratch: &mut [f32],
        examples: usize,
    ) {
        let (positions, patch) = (layer.output.positions(), layer.patch());
        let rows = examples * positions;
        let weight = View::new(self.weight(layer, parameters), patch, layer.output.channels);
        let scratch = &mut scratch[..rows * patch];
        product(scratch, View::new(dy, rows, layer.output.channels), weight.transposed(), false);
        dx.fill(0.0);
        for (dx, patches) in
            dx.chunks_exact_mut(layer.input.len()).zip(scratch.chunks_exact(positions * patch))
        {
            scatter(layer, patches, dx);
        }
    }

    /// Adds each example's squared gradient norm (an upper end of it).
    fn add_squared_norms(&mut self, layer: &Convolution, dy: &[f32], squares: &mut [f64]) {
        let (positions, patch) = (layer.output.positions(), layer.patch());
        let channels = layer.output.channels;
        for (example, square) in squares.iter_mut().enumerate() {
            let from = example * positions * patch;
            let patches = &self.patches[from..from + positions * patch];
            let dy = &dy[example * positions * channels..(example + 1) * positions * channels];
            let place = if self.kept { example * layer.weights() } else { 0 };
            let gradient = &mut self.gradients[place..place + layer.weights()];
            let left = View::new(patches, positions, patch).transposed();
            product(gradient, left, View::new(dy, positions, channels), false);
            let bias = &mut self.bias_gradients[example * channels..(example + 1) * channels];
            bias.fill(0.0);
            add_rows(dy, bias);
            let mut norm = match &mut self.standardised {
                Some(standardised) => standardised.raw_norm(gradient),
                None => squared_norm(gradient).sqrt(),
            };
            if !self.kept {
                let gamma = 1.01 * positions as f64 * 2f64.powi(-24);
                let largest = self.standardised.as_ref().map_or(1.0, Standardised::largest_scale);
                norm += largest * 2.0 * gamma * (squared_norm(patches) * squared_norm(dy)).sqrt();
            }
            *square += norm * norm + squared_norm(bias);
        }
    }

    /// Adds the clipped gradients (or writes them); `dy` is scaled in place.
    fn add_clipped(
        &mut self,
        layer: &Convolution,
        dy: &mut [f32],
        factors: &[f32],
        gradient: &mut [f32],
        overwrite: bool,
    ) {
        let (positions, patch) = (layer.output.positions(), layer.patch());
        let channels = layer.output.channels;
        if overwrite {
            gradient[layer.bias..layer.bias + channels].fill(0.0);
            gradient[layer.weight..layer.weight + layer.weights()].fill(0.0);
        }
        let bias = &mut gradient[layer.bias..layer.bias + channels];
        for (factor, own) in factors.iter().zip(self.bias_gradients.chunks_exact(channels)) {
            add_scaled(*factor, own, bias);
        }
        let weight = &mut gradient[layer.weight..layer.weight + layer.weights()];
        if self.kept {
            for (factor, own) in factors.iter().zip(self.gradients.chunks_exact(layer.weights())) {
                add_scaled(*factor, own, weight);
            }
            return;
        }
        for (factor, dy) in factors.iter().zip(dy.chunks_exact_mut(positions * channels)) {
            scale(*factor, dy);
        }
        let rows = factors.len() * positions;
        let patches = View::new(&self.patches[..rows * patch], rows, patch);
        product(weight, patches.transposed(), View::new(dy, rows, channels), true);
    }

    /// From the gradient of the weights in use to that of the parameters, once per step.
    fn finish(&self, layer: &Convolution, gradient: &mut [f32]) {
        if let Some(standardised) = &self.standardised {
            standardised.pull_back(&mut gradient[layer.weight..layer.weight + layer.weights()]);
        }
    }
}

impl Layer for (Convolution, ConvolutionMemory) {
    fn prepare(&mut self, parameters: &[f32]) {
        self.1.prepare(&self.0, parameters);
    }

    fn forward(&mut self, parameters: &[f32], x: &[f32], y: &mut [f32], examples: usize) {
        self.1.forward(&self.0, parameters, x, y, examples);
    }

    fn backward(&mut self, given: Backward<'_>, dx: Option<&mut [f32]>) {
        if let Some(dx) = dx {
            let Backward { parameters, dy, scratch, examples, .. } = given;
            self.1.backward(&self.0, parameters, dy, dx, scratch, examples);
        }
    }

    fn add_squared_norms(&mut self, _: Known<'_>, dy: &[f32], squares: &mut [f64]) {
        self.1.add_squared_norms(&self.0, dy, squares);
    }

    fn add_clipped(&mut self, _: Inputs<'_>, dy: &mut [f32], sum: Sum<'_>) {
        self.1.add_clipped(&self.0, dy, sum.factors, sum.gradient, sum.overwrite);
    }

    fn finish(&self, sum: &mut [f32]) {
        self.1.finish(&self.0, sum);
    }

    fn scratch(&self) -> usize {
        self.0.output.positions() * self.0.patch()
    }
}

/// One run of numbers for each row of the kernel: where it starts in the patch, where in the
/// image, how long it is. What lies outside of the image is left out.
#[inline(always)]
fn runs(layer: &Convolution, mut each: impl FnMut(usize, usize, usize)) {
    let Convolution { input, output, kernel, stride, padding, .. } = *layer;
    let channels = input.channels;
    let run = kernel * channels;
    for row in 0..output.height {
        for column in 0..output.width {
            let patch = (row * output.width + column) * kernel * run;
            let left = (column * stride) as isize - padding as isize;
            let (skip, end) = (
                (-left).max(0) as usize,
                (input.width as isize - left).clamp(0, kernel as isize) as usize,
            );
            if skip >= end {
                continue;
            }
            let first = (left + skip as isize) as usize;
            for kernel_row in 0..kernel {
                let y = (row * stride + kernel_row) as isize - padding as isize;
                if y < 0 || y >= input.height as isize {
                    continue;
                }
                let place = (y as usize * input.width + first) * channels;
                each(patch + kernel_row * run + skip * channels, place, (end - skip) * channels);
            }
        }
    }
}

/// The patches of one image. What lies outside of it is not written: it is zero from the start.
fn gather(layer: &Convolution, x: &[f32], patches: &mut [f32]) {
    runs(layer, |patch, place, length| {
        patches[patch..patch + length].copy_from_slice(&x[place..place + length]);
    });
}

/// Adds each number of the patches to the pixel it came from.
fn scatter(layer: &Convolution, patches: &[f32], dx: &mut [f32]) {
    runs(layer, |patch, place, length| {
        let own = &patches[patch..patch + length];
        for (own, dx) in own.iter().zip(&mut dx[place..place + length]) {
            *dx += own;
        }
    });
}
