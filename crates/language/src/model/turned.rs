//! Copies of frozen weights with rows and columns exchanged, for many forward passes through them.
//!
//! A product with a weight's transpose rearranges the weight before it multiplies, every time: a sixth
//! of a forward pass at 256 tokens. Memory: the weights once more.

use super::backward::Projection;
use super::decoder::Decoder;

/// The turned weights of a decoder: good for as long as the weights do not change.
pub struct Turned {
    /// For each layer, in the order of [`Projection::ALL`].
    layers: Vec<[Option<Vec<f32>>; Projection::ALL.len()]>,
    head: Option<Vec<f32>>,
}

impl Turned {
    /// Turns every linear map of the blocks; the head only where that does not change either.
    pub fn new(decoder: &Decoder, head: bool) -> Self {
        let layers = decoder.layers.iter().map(|layer| {
            Projection::ALL.map(|projection| {
                let linear = layer.linear(projection)?;
                Some(turn(&linear.weight, linear.outputs, linear.inputs))
            })
        });
        let (rows, columns) = (decoder.architecture.vocabulary, decoder.architecture.width);
        Self { layers: layers.collect(), head: head.then(|| turn(decoder.head(), rows, columns)) }
    }

    pub(super) fn weight(&self, layer: usize, projection: Projection) -> Option<&[f32]> {
        self.layers[layer][projection as usize].as_deref()
    }

    pub(super) fn head(&self) -> Option<&[f32]> {
        self.head.as_deref()
    }
}

/// Blocks of 16 x 16, so that both sides stay near.
fn turn(matrix: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    const BLOCK: usize = 16;
    let mut turned = vec![0.0; rows * columns];
    for row in (0..rows).step_by(BLOCK) {
        for column in (0..columns).step_by(BLOCK) {
            for i in row..(row + BLOCK).min(rows) {
                for j in column..(column + BLOCK).min(columns) {
                    turned[j * rows + i] = matrix[i * columns + j];
                }
            }
        }
    }
    turned
}
