//! What a fine-tuning leaves: its trained tensors in one safetensors file, to be laid over the model
//! it started from. Names: `layers.N.query.lora_down` (rank x inputs), `….lora_up` (outputs x rank),
//! `lora_scale`; `layers.N.query.weight`, `….bias`, `embedding`, `head`, `positions`, norms.

use super::layout::{Layout, Piece, Scope};
use crate::LanguageError;
use crate::load::read_tensor;
use crate::model::{Adapter, Decoder, Projection};
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

const SCALE: &str = "lora_scale";

/// The file's bytes. Rows of the vocabulary from `vocabulary` on are left out: they were added for
/// canaries.
pub fn to_safetensors(decoder: &Decoder, layout: &Layout, vocabulary: usize) -> Vec<u8> {
    let mut tensors: Vec<(String, Vec<usize>, Vec<u8>)> = Vec::new();
    let bytes = |numbers: &[f32]| numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut scale = None;
    for (piece, _) in &layout.pieces {
        let (Some(numbers), Some((mut rows, columns))) = (piece.of(decoder), piece.shape(decoder))
        else {
            continue;
        };
        if matches!(piece, Piece::Embedding | Piece::Head) {
            rows = rows.min(vocabulary);
        }
        if let Piece::Down(layer, projection) = *piece {
            let linear = decoder.layers[layer].linear(projection);
            scale = linear.and_then(|linear| linear.adapter.as_ref()).map(|a| a.scale);
        }
        let vector = matches!(piece, Piece::Bias(..) | Piece::NormWeight(_) | Piece::NormBias(_));
        let shape = if vector { vec![columns] } else { vec![rows, columns] };
        tensors.push((piece.name(), shape, bytes(&numbers[..rows * columns])));
    }
    if let Some(scale) = scale {
        tensors.push((SCALE.into(), vec![1], bytes(&[scale])));
    }
    let views = tensors.iter().map(|(name, shape, bytes)| {
        (name.clone(), TensorView::new(Dtype::F32, shape.clone(), bytes).expect("shapes fit"))
    });
    // One entry only: the order of several would differ from run to run.
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    serialize(views, Some(metadata)).expect("names and shapes are plain")
}

/// Lays trained tensors over the model they were trained from; `path` is the file, or the folder
/// with `model.safetensors`.
///
/// # Errors
/// Names the file, and the tensor that does not fit.
pub fn lay_over(decoder: &mut Decoder, path: &Path) -> Result<(), LanguageError> {
    let file = if path.is_dir() { path.join("model.safetensors") } else { path.to_owned() };
    let place = file.display().to_string();
    let bytes = std::fs::read(&file)
        .map_err(|source| LanguageError::Read { place: place.clone(), source })?;
    lay_over_bytes(decoder, &bytes, &place)
}

/// As [`lay_over`], from the bytes of the file.
///
/// # Errors
/// As [`lay_over`].
pub fn lay_over_bytes(
    decoder: &mut Decoder,
    bytes: &[u8],
    place: &str,
) -> Result<(), LanguageError> {
    let refuse = |problem: String| LanguageError::file(place, problem);
    let tensors = SafeTensors::deserialize(bytes)
        .map_err(|error| refuse(format!("is not safetensors: {error}")))?;
    let names: BTreeSet<&str> = tensors.names().into_iter().collect();
    let mut known = BTreeSet::new();
    let read = |name: &str, shape: &[usize]| read_tensor(&tensors, name, shape, place);
    if names.contains(SCALE) {
        known.insert(SCALE.to_owned());
        let scale = read(SCALE, &[1])?[0];
        for (index, layer) in decoder.layers.iter_mut().enumerate() {
            for projection in Projection::ALL {
                let (down, up) = (Piece::Down(index, projection), Piece::Up(index, projection));
                let Some(linear) = layer.linear_mut(projection) else { continue };
                let Ok(tensor) = tensors.tensor(&down.name()) else { continue };
                let rank = tensor.shape().first().copied().unwrap_or(0);
                if rank == 0 || rank > linear.inputs {
                    return Err(refuse(format!("tensor `{}` has rank {rank}", down.name())));
                }
                linear.adapter = Some(Adapter {
                    down: read(&down.name(), &[rank, linear.inputs])?,
                    up: read(&up.name(), &[linear.outputs, rank])?,
                    rank,
                    scale,
                });
                known.extend([down.name(), up.name()]);
            }
        }
    }
    for (piece, _) in Layout::new(decoder, Scope::Full).pieces {
        let name = piece.name();
        if !names.contains(name.as_str()) {
            continue;
        }
        let Some((rows, columns)) = piece.shape(decoder) else { continue };
        let vector = matches!(piece, Piece::Bias(..) | Piece::NormWeight(_) | Piece::NormBias(_));
        let shape = if vector { vec![columns] } else { vec![rows, columns] };
        let numbers = read(&name, &shape)?;
        *piece.of_mut(decoder).expect("it has a shape") = numbers;
        known.insert(name);
    }
    match names.iter().find(|name| !known.contains(**name)) {
        Some(name) => Err(refuse(format!(
            "tensor `{}` is not one of this model's; give the model that was fine-tuned",
            crate::error::shown(name)
        ))),
        None => Ok(()),
    }
}
