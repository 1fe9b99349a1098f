//! Linear layers. The gradient of example i is the outer product x_i delta_i', so its squared
//! norm is (|x_i|^2 + 1) |delta_i|^2 (Goodfellow 2015), taken in f64, and the clipped sum is
//! X' (c delta), one product.

use super::elementwise::{add_rows, fill_rows, scale, squared_norm};
use super::layer::{Backward, Known, Layer, Sum};
use super::product::{View, product};
use super::tiles::{self, Forward, Outer};
use crate::model::Linear;

fn weight<'a>(layer: &Linear, parameters: &'a [f32]) -> View<'a> {
    let weights = &parameters[layer.weight..layer.weight + layer.inputs * layer.outputs];
    View::new(weights, layer.inputs, layer.outputs)
}

pub(crate) fn forward(
    layer: &Linear,
    parameters: &[f32],
    x: &[f32],
    y: &mut [f32],
    examples: usize,
) {
    let bias = &parameters[layer.bias..layer.bias + layer.outputs];
    if tiles::suit(layer.outputs) {
        let rows: Vec<&[f32]> = x.chunks_exact(layer.inputs).collect();
        return forward_rows(layer, parameters, &rows, y);
    }
    fill_rows(bias, y);
    product(y, View::new(x, examples, layer.inputs), weight(layer, parameters), true);
}

/// The same for rows that lie anywhere, where tiles suit the layer.
pub(crate) fn forward_rows(layer: &Linear, parameters: &[f32], x: &[&[f32]], y: &mut [f32]) {
    let weight = &parameters[layer.weight..layer.weight + layer.inputs * layer.outputs];
    let bias = &parameters[layer.bias..layer.bias + layer.outputs];
    Forward { x, weight, bias, y }.run();
}

/// The rows that a layer reads.
#[derive(Clone, Copy)]
pub(crate) enum Inputs<'a> {
    Together(&'a [f32]),
    Anywhere(&'a [&'a [f32]]),
}

impl Layer for Linear {
    fn forward(&mut self, parameters: &[f32], x: &[f32], y: &mut [f32], examples: usize) {
        forward(self, parameters, x, y, examples);
    }

    fn backward(&mut self, given: Backward<'_>, dx: Option<&mut [f32]>) {
        if let Some(dx) = dx {
            let weight = weight(self, given.parameters).transposed();
            product(dx, View::new(given.dy, given.examples, self.outputs), weight, false);
        }
    }

    fn add_squared_norms(&mut self, x: Known<'_>, dy: &[f32], squares: &mut [f64]) {
        let dy = dy.chunks_exact(self.outputs).map(squared_norm);
        match x.squares {
            Some(inputs) => {
                for ((square, input), dy) in squares.iter_mut().zip(inputs).zip(dy) {
                    *square += (input + 1.0) * dy;
                }
            }
            None => {
                let inputs = x.inputs.chunks_exact(self.inputs).map(squared_norm);
                for ((square, input), dy) in squares.iter_mut().zip(inputs).zip(dy) {
                    *square += (input + 1.0) * dy;
                }
            }
        }
    }

    fn add_clipped(&mut self, x: Inputs<'_>, dy: &mut [f32], sum: Sum<'_>) {
        let Sum { factors, gradient, overwrite, active } = sum;
        for (factor, dy) in factors.iter().zip(dy.chunks_exact_mut(self.outputs)) {
            if *factor != 1.0 {
                scale(*factor, dy);
            }
        }
        let (examples, outputs) = (factors.len(), self.outputs);
        let out = &mut gradient[self.weight..self.weight + self.inputs * outputs];
        let mut outer = |x: &[&[f32]]| {
            let mut work = Outer { x, d: dy, outputs, gradient: out, overwrite };
            if !active.outer(&mut work) {
                work.run();
            }
        };
        match x {
            Inputs::Anywhere(x) => outer(x),
            Inputs::Together(x) if tiles::suit(outputs) => {
                outer(&x.chunks_exact(self.inputs).collect::<Vec<&[f32]>>());
            }
            Inputs::Together(x) => {
                let left = View::new(x, examples, self.inputs).transposed();
                product(out, left, View::new(dy, examples, outputs), !overwrite);
            }
        }
        let bias = &mut gradient[self.bias..self.bias + outputs];
        if overwrite {
            bias.fill(0.0);
        }
        add_rows(dy, bias);
    }

    fn reads_squares(&self) -> bool {
        true
    }
}
