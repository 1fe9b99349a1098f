//! Adapters as one vector of parameters: layer by layer, query, key, value, down before up.

use crate::LanguageError;
use crate::model::{Adapter, Decoder, Linear, Projection};
use random::{Purpose, Stream};

/// Which adapters.
#[derive(Clone, Debug, PartialEq)]
pub struct Lora {
    pub rank: usize,
    /// The change is multiplied by alpha / rank.
    pub alpha: f32,
    pub projections: Vec<Projection>,
}

impl Default for Lora {
    /// Of the paper's e-mail experiments: rank 4, alpha 32, queries and values.
    fn default() -> Self {
        Self { rank: 4, alpha: 32.0, projections: vec![Projection::Query, Projection::Value] }
    }
}

/// Puts fresh adapters into a decoder: `down` normal with variance 1/inputs, `up` zero, so that the
/// decoder's answers are unchanged.
///
/// # Errors
/// `InvalidInput` for a rank of 0 or above the width, and without projections.
pub fn attach(decoder: &mut Decoder, lora: &Lora, seed: u64) -> Result<(), LanguageError> {
    if lora.rank == 0 || lora.rank > decoder.architecture.width || lora.projections.is_empty() {
        return Err(LanguageError::InvalidInput(format!(
            "rank {} with {} projections is no adapter for width {}",
            lora.rank,
            lora.projections.len(),
            decoder.architecture.width
        )));
    }
    let rank = lora.rank;
    let mut number = 0;
    for_each(decoder, |projection, linear| {
        linear.adapter = lora.projections.contains(&projection).then(|| {
            let stream = Stream::new(seed, Purpose::INITIALISATION, number);
            let mut down = vec![0.0; rank * linear.inputs];
            stream.fill_gaussians_f32(0, 0, &mut down);
            let scale = 1.0 / (linear.inputs as f32).sqrt();
            down.iter_mut().for_each(|x| *x *= scale);
            let up = vec![0.0; linear.outputs * rank];
            Adapter { down, up, rank, scale: lora.alpha / rank as f32 }
        });
        number += 1;
    });
    Ok(())
}

/// All adapters' numbers.
pub fn parameters(decoder: &Decoder) -> Vec<f32> {
    let mut all = Vec::new();
    for layer in &decoder.layers {
        for linear in [&layer.query, &layer.key, &layer.value] {
            if let Some(adapter) = &linear.adapter {
                all.extend_from_slice(&adapter.down);
                all.extend_from_slice(&adapter.up);
            }
        }
    }
    all
}

/// Puts them back.
///
/// # Panics
/// If there are not as many as [`parameters`] gives.
pub fn set_parameters(decoder: &mut Decoder, values: &[f32]) {
    let mut rest = values;
    for_each(decoder, |_, linear| {
        if let Some(adapter) = &mut linear.adapter {
            for part in [&mut adapter.down, &mut adapter.up] {
                let (taken, left) = rest.split_at(part.len());
                part.copy_from_slice(taken);
                rest = left;
            }
        }
    });
    assert!(rest.is_empty(), "{} numbers too many for the adapters", rest.len());
}

fn for_each(decoder: &mut Decoder, mut act: impl FnMut(Projection, &mut Linear)) {
    for layer in &mut decoder.layers {
        act(Projection::Query, &mut layer.query);
        act(Projection::Key, &mut layer.key);
        act(Projection::Value, &mut layer.value);
    }
}
