//! Frozen weights laid out for products, for many passes through them.
//!
//! A product rearranges a weight before it multiplies, every time: a tenth of a pass at 256 tokens,
//! and a sixth more with the weight's transpose. Weights that are not trained are rearranged once,
//! for the way forward and for the way back. Memory: the weights twice more; on machines where
//! [`Panels`] do not suit, only the way forward and once more.

use super::backward::Projection;
use super::decoder::Decoder;
use crate::product::View;
use rayon::prelude::*;
use training::cpu::panels::Panels;

/// One weight (outputs x inputs), both ways.
pub(crate) struct BothWays {
    /// Inputs to outputs.
    pub(crate) forward: Panels,
    /// Outputs to inputs.
    pub(crate) backward: Option<Panels>,
}

impl BothWays {
    fn new(weight: &[f32], outputs: usize, inputs: usize) -> Self {
        let weight = View::new(weight, outputs, inputs);
        let backward = Panels::suit().then(|| Panels::new(weight));
        Self { forward: Panels::new(weight.transposed()), backward }
    }
}

/// The weights of a decoder: good for as long as they do not change.
pub struct Packed {
    /// For each layer, in the order of [`Projection::ALL`].
    layers: Vec<[Option<BothWays>; Projection::ALL.len()]>,
    head: Option<BothWays>,
}

impl Packed {
    /// Every linear map of the blocks; the head only where that does not change either.
    pub fn new(decoder: &Decoder, head: bool) -> Self {
        let layers = decoder.layers.par_iter().map(|layer| {
            Projection::ALL.map(|projection| {
                let linear = layer.linear(projection)?;
                Some(BothWays::new(&linear.weight, linear.outputs, linear.inputs))
            })
        });
        let (rows, columns) = (decoder.architecture.vocabulary, decoder.architecture.width);
        let head = head.then(|| BothWays::new(decoder.head(), rows, columns));
        Self { layers: layers.collect(), head }
    }

    pub(super) fn weight(&self, layer: usize, projection: Projection) -> Option<&BothWays> {
        self.layers[layer][projection as usize].as_ref()
    }

    pub(crate) fn head(&self) -> Option<&BothWays> {
        self.head.as_ref()
    }
}
