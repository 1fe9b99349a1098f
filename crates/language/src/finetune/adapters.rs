//! Fresh adapters.

use crate::LanguageError;
use crate::model::{Adapter, Decoder, Projection};
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
/// `InvalidInput` for a rank of 0 or above the width, and for projections that there are not.
pub fn attach(decoder: &mut Decoder, lora: &Lora, seed: u64) -> Result<(), LanguageError> {
    let width = decoder.architecture.width;
    if lora.rank == 0 || lora.rank > width {
        return Err(LanguageError::InvalidInput(format!(
            "rank {} is outside 1 to the model's width of {width}",
            lora.rank
        )));
    }
    if !(lora.alpha > 0.0 && lora.alpha.is_finite()) {
        return Err(LanguageError::InvalidInput(format!(
            "alpha {} is not a finite number above 0",
            lora.alpha
        )));
    }
    if lora.projections.is_empty() {
        return Err(LanguageError::InvalidInput("no projection is to have an adapter".into()));
    }
    let rank = lora.rank;
    let mut number = 0;
    for layer in &mut decoder.layers {
        for projection in Projection::ALL {
            let wanted = lora.projections.contains(&projection);
            let Some(linear) = layer.linear_mut(projection) else {
                if wanted {
                    return Err(LanguageError::InvalidInput(format!(
                        "this model has no projection `{}`",
                        projection.name()
                    )));
                }
                continue;
            };
            linear.adapter = wanted.then(|| {
                let stream = Stream::new(seed, Purpose::INITIALISATION, number);
                let mut down = vec![0.0; rank * linear.inputs];
                stream.fill_gaussians_f32(0, 0, &mut down);
                let scale = 1.0 / (linear.inputs as f32).sqrt();
                down.iter_mut().for_each(|x| *x *= scale);
                let up = vec![0.0; linear.outputs * rank];
                Adapter { down, up, rank, scale: lora.alpha / rank as f32 }
            });
            number += 1;
        }
    }
    Ok(())
}
