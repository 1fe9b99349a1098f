//! Files of a training: the model as others read it, and the checkpoint.

use crate::TrainingError;
use crate::backend::ReplicaState;
use crate::ledger::SessionRecord;
use crate::model::{Network, TensorLayout};
use crate::optimizer::OptimizerState;
use crate::summary::Summary;
use random::SecureKey;
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Writes a file of a training, whole or not at all.
///
/// # Errors
/// What the file system says.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), TrainingError> {
    formats::files::write(path, bytes).map_err(TrainingError::io("write", path))
}

fn little_endian(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn encode(tensors: &[(String, Vec<usize>, Vec<u8>)], metadata: HashMap<String, String>) -> Vec<u8> {
    let views = tensors.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytes).expect("shapes fit");
        (name.clone(), view)
    });
    serialize(views, Some(metadata)).expect("names and shapes are plain")
}

/// The model as others read it: PyTorch's layouts, outputs first, channels before rows and columns.
pub(crate) fn model_bytes(
    network: &Network,
    parameters: &[f32],
    metadata: HashMap<String, String>,
) -> Vec<u8> {
    let tensors: Vec<_> = network
        .tensors
        .iter()
        .map(|tensor| {
            let own = &parameters[tensor.offset..tensor.offset + tensor.len()];
            let (shape, numbers) = foreign_layout(&tensor.shape, tensor.layout, own);
            (tensor.name.clone(), shape, little_endian(&numbers))
        })
        .collect();
    encode(&tensors, metadata)
}

fn foreign_layout(shape: &[usize], layout: TensorLayout, own: &[f32]) -> (Vec<usize>, Vec<f32>) {
    match (layout, shape) {
        (TensorLayout::Linear(image), [inputs, outputs]) => {
            // An input that was an image is flattened with its channels first elsewhere.
            let order: Vec<usize> = match image {
                None => (0..*inputs).collect(),
                Some(image) => {
                    let positions = image.positions();
                    let place = |i: usize| i % positions * image.channels + i / positions;
                    (0..*inputs).map(place).collect()
                }
            };
            let numbers = (0..*outputs)
                .flat_map(|o| order.iter().map(move |i| own[i * outputs + o]))
                .collect();
            (vec![*outputs, *inputs], numbers)
        }
        (TensorLayout::Convolution, [height, width, inputs, outputs]) => {
            let mut numbers = Vec::with_capacity(own.len());
            for o in 0..*outputs {
                for i in 0..*inputs {
                    for place in 0..height * width {
                        numbers.push(own[(place * inputs + i) * outputs + o]);
                    }
                }
            }
            (vec![*outputs, *inputs, *height, *width], numbers)
        }
        _ => (shape.to_vec(), own.to_vec()),
    }
}

/// What a checkpoint says besides the vectors.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Progress {
    /// Names the training; see [`crate::Ledger::plan`].
    pub plan: String,
    pub steps_done: u64,
    pub summary: Summary,
    pub sessions: Vec<SessionRecord>,
    /// Present while a secure training is unfinished; as secret as the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_key: Option<[u8; 32]>,
}

impl Progress {
    /// The key of a secure training.
    pub fn key(&self) -> Option<SecureKey> {
        self.secret_key.map(SecureKey::from_bytes)
    }
}

/// Writes a checkpoint, for its owner only.
///
/// # Errors
/// What the file system says.
pub(crate) fn write_checkpoint(
    path: &Path,
    progress: &Progress,
    state: &ReplicaState,
) -> Result<(), TrainingError> {
    let length = vec![state.parameters.len()];
    let mut tensors =
        vec![("parameters".to_owned(), length.clone(), little_endian(&state.parameters))];
    for (number, moment) in state.optimizer.moments.iter().enumerate() {
        tensors.push((format!("moment.{number}"), length.clone(), little_endian(moment)));
    }
    let text = serde_json::to_string(progress).expect("progress is plain data");
    let metadata = HashMap::from([("progress".to_owned(), text)]);
    formats::files::write_secret(path, &encode(&tensors, metadata))
        .map_err(TrainingError::io("write", path))
}

/// The checkpoint, `None` when there is none.
///
/// # Errors
/// A file that cannot be read, or that is no checkpoint.
pub(crate) fn read_checkpoint(
    path: &Path,
) -> Result<Option<(Progress, ReplicaState)>, TrainingError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(TrainingError::io("read", path)(error)),
    };
    decode(&bytes)
        .map(Some)
        .map_err(|reason| TrainingError::Checkpoint { path: PathBuf::from(path), reason })
}

fn decode(bytes: &[u8]) -> Result<(Progress, ReplicaState), String> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| error.to_string())?;
    let text = header.metadata().as_ref().and_then(|metadata| metadata.get("progress"));
    let text = text.ok_or("it carries no progress")?;
    let progress: Progress = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let read = |name: &str| -> Option<Vec<f32>> {
        let tensor = tensors.tensor(name).ok()?;
        let (numbers, rest) = tensor.data().as_chunks::<4>();
        (tensor.dtype() == Dtype::F32 && rest.is_empty())
            .then(|| numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    };
    let parameters = read("parameters").ok_or("it carries no parameters")?;
    let moments = (0..2).map_while(|number| read(&format!("moment.{number}"))).collect();
    Ok((progress, ReplicaState { parameters, optimizer: OptimizerState { moments } }))
}
