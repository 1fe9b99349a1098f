//! Linear layers. The gradient of example i is the outer product x_i delta_i', so its squared
//! norm is (|x_i|^2 + 1) |delta_i|^2 (Goodfellow 2015), taken in f64, and the clipped sum is
//! X' (c delta), one product.

use super::active::Active;
use super::elementwise::{add_rows, fill_rows, scale, squared_norm};
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

pub(crate) fn backward(
    layer: &Linear,
    parameters: &[f32],
    dy: &[f32],
    dx: &mut [f32],
    examples: usize,
) {
    let weight = weight(layer, parameters).transposed();
    product(dx, View::new(dy, examples, layer.outputs), weight, false);
}

pub(crate) fn add_squared_norms(layer: &Linear, x: &[f32], dy: &[f32], squares: &mut [f64]) {
    let examples = x.chunks_exact(layer.inputs).zip(dy.chunks_exact(layer.outputs));
    for (square, (x, dy)) in squares.iter_mut().zip(examples) {
        *square += (squared_norm(x) + 1.0) * squared_norm(dy);
    }
}

/// The same, where the squared norms of the inputs are known.
pub(crate) fn add_known_squared_norms(
    layer: &Linear,
    inputs: &[f64],
    dy: &[f32],
    squares: &mut [f64],
) {
    for ((square, input), dy) in squares.iter_mut().zip(inputs).zip(dy.chunks_exact(layer.outputs))
    {
        *square += (input + 1.0) * squared_norm(dy);
    }
}

/// The rows that a layer reads.
#[derive(Clone, Copy)]
pub(crate) enum Inputs<'a> {
    Together(&'a [f32]),
    Anywhere(&'a [&'a [f32]]),
}

/// Adds the clipped gradients (or writes them); `dy` is scaled in place.
pub(crate) fn add_clipped(
    layer: &Linear,
    x: Inputs<'_>,
    dy: &mut [f32],
    factors: &[f32],
    gradient: &mut [f32],
    overwrite: bool,
    active: &mut Active,
) {
    for (factor, dy) in factors.iter().zip(dy.chunks_exact_mut(layer.outputs)) {
        if *factor != 1.0 {
            scale(*factor, dy);
        }
    }
    let (examples, outputs) = (factors.len(), layer.outputs);
    let out = &mut gradient[layer.weight..layer.weight + layer.inputs * outputs];
    let mut outer = |x: &[&[f32]]| {
        let mut work = Outer { x, d: dy, outputs, gradient: out, overwrite };
        if !active.outer(&mut work) {
            work.run();
        }
    };
    match x {
        Inputs::Anywhere(x) => outer(x),
        Inputs::Together(x) if tiles::suit(outputs) => {
            outer(&x.chunks_exact(layer.inputs).collect::<Vec<&[f32]>>());
        }
        Inputs::Together(x) => {
            let left = View::new(x, examples, layer.inputs).transposed();
            product(out, left, View::new(dy, examples, outputs), !overwrite);
        }
    }
    let bias = &mut gradient[layer.bias..layer.bias + outputs];
    if overwrite {
        bias.fill(0.0);
    }
    add_rows(dy, bias);
}
