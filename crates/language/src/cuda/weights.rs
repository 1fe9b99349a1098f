//! Frozen weights on the device: queries, keys and values in one matrix, gate and up in another.

use super::adapters::Map;
use super::context::{Context, Precision, failed};
use crate::LanguageError;
use crate::model::{
    Activation, Architecture, Decoder, Linear, Norm, NormWeights, Pairs, Position, Projection,
};
use std::sync::{Arc, Mutex};
use training::cuda::{Buffer, CudaDevice};

/// Rows of the head are padded to a multiple of this, which products want.
const ROWS: usize = 64;

pub(super) struct FrozenNorm {
    pub(super) weight: Buffer<f32>,
    pub(super) bias: Option<Buffer<f32>>,
}

pub(super) struct FrozenLinear {
    /// One row an output.
    pub(super) weight: Buffer<u8>,
    pub(super) bias: Option<Bias>,
}

/// A bias: in f32 where it is added to the stream, else like activations, as products read it.
pub(super) enum Bias {
    Exact(Buffer<f32>),
    Stored(Buffer<u8>),
}

impl Bias {
    pub(super) fn address(&self) -> u64 {
        match self {
            Self::Exact(own) => own.address(),
            Self::Stored(own) => own.address(),
        }
    }
}

pub(super) struct FrozenLayer {
    pub(super) attention_norm: FrozenNorm,
    pub(super) joint: FrozenLinear,
    pub(super) output: FrozenLinear,
    pub(super) feed_norm: FrozenNorm,
    pub(super) feed: FrozenLinear,
    pub(super) down: FrozenLinear,
}

/// A decoder's weights on a device, adapters left out.
pub struct CudaDecoder {
    pub(super) context: Context,
    pub(super) architecture: Architecture,
    pub(super) embedding: Buffer<f32>,
    pub(super) positions: Option<Buffer<f32>>,
    pub(super) layers: Vec<FrozenLayer>,
    pub(super) final_norm: FrozenNorm,
    /// The vocabulary, padded with zeros.
    pub(super) head: Buffer<u8>,
    /// Room of a model that is gone, and its bytes: reserving it anew takes time.
    pub(super) spare: Mutex<Option<(Buffer<u8>, usize)>>,
}

impl CudaDecoder {
    /// Puts a decoder's weights onto a device.
    ///
    /// # Errors
    /// Shapes that the kernels do not take, memory that ran out, or what the driver says.
    pub fn new(
        decoder: &Decoder,
        device: Arc<CudaDevice>,
        precision: Precision,
    ) -> Result<Arc<Self>, LanguageError> {
        let a = decoder.architecture;
        check(&a)?;
        let context = Context::new(device, precision, &a)?;
        let up = |numbers: &[f32]| context.device.upload(numbers).map_err(failed);
        let norm = |weights: &NormWeights| -> Result<FrozenNorm, LanguageError> {
            let bias = weights.bias.as_deref().map(up).transpose()?;
            Ok(FrozenNorm { weight: up(&weights.weight)?, bias })
        };
        let stacked = |parts: &[&Linear], exact: bool| -> Result<FrozenLinear, LanguageError> {
            let weight: Vec<f32> =
                parts.iter().flat_map(|part| part.weight.iter().copied()).collect();
            let bias = parts.iter().any(|part| part.bias.is_some()).then(|| {
                let zeros = |part: &Linear| vec![0.0; part.outputs];
                let own = |part: &&Linear| part.bias.clone().unwrap_or_else(|| zeros(part));
                parts.iter().flat_map(own).collect::<Vec<f32>>()
            });
            let store = |numbers: &[f32]| match exact {
                true => up(numbers).map(Bias::Exact),
                false => context.real(numbers).map(Bias::Stored),
            };
            let bias = bias.as_deref().map(store).transpose()?;
            Ok(FrozenLinear { weight: context.real(&weight)?, bias })
        };
        let mut layers = Vec::with_capacity(a.layers);
        for layer in &decoder.layers {
            let feed: Vec<&Linear> = layer.gate.iter().chain([&layer.up]).collect();
            layers.push(FrozenLayer {
                attention_norm: norm(&layer.attention_norm)?,
                joint: stacked(&[&layer.query, &layer.key, &layer.value], false)?,
                output: stacked(&[&layer.output], true)?,
                feed_norm: norm(&layer.feed_norm)?,
                feed: stacked(&feed, false)?,
                down: stacked(&[&layer.down], true)?,
            });
        }
        let mut head = decoder.head().to_vec();
        head.resize(padded(a.vocabulary) * a.width, 0.0);
        let positions = decoder.positions.as_deref().map(up).transpose()?;
        let (embedding, final_norm) = (up(&decoder.embedding)?, norm(&decoder.final_norm)?);
        let head = context.real(&head)?;
        Ok(Arc::new(Self {
            architecture: a,
            embedding,
            positions,
            layers,
            final_norm,
            head,
            context,
            spare: Mutex::new(None),
        }))
    }

    pub(super) fn frozen(&self, index: usize, map: Map) -> &FrozenLinear {
        let layer = &self.layers[index];
        match map {
            Map::Joint => &layer.joint,
            Map::Output => &layer.output,
            Map::Feed => &layer.feed,
            Map::Down => &layer.down,
        }
    }

    /// (inputs, outputs) of a map.
    pub(super) fn shape(&self, map: Map) -> (usize, usize) {
        let a = &self.architecture;
        match map {
            Map::Joint => (a.width, self.joint_width()),
            Map::Output => (a.query_width(), a.width),
            Map::Feed => (a.width, self.feed_width()),
            Map::Down => (a.hidden, a.width),
        }
    }

    /// The first output of a projection among those of its map.
    pub(super) fn row(&self, projection: Projection) -> usize {
        let a = &self.architecture;
        match projection {
            Projection::Key => a.query_width(),
            Projection::Value => a.query_width() + a.key_width(),
            Projection::Up if a.activation == Activation::SwiGlu => a.hidden,
            _ => 0,
        }
    }

    /// Numbers of a row of queries, keys and values.
    pub(super) fn joint_width(&self) -> usize {
        self.architecture.query_width() + 2 * self.architecture.key_width()
    }

    /// Numbers of a row before the activation.
    pub(super) fn feed_width(&self) -> usize {
        match self.architecture.activation {
            Activation::GeluTanh => self.architecture.hidden,
            Activation::SwiGlu => 2 * self.architecture.hidden,
        }
    }

    /// Numbers of a row of logits.
    pub(super) fn logits_width(&self) -> usize {
        padded(self.architecture.vocabulary)
    }

    /// (cos, sin) of places 0..length, as the CPU computes them; `pairs` as kernels name them.
    pub(super) fn angles(&self, length: usize) -> Vec<f32> {
        let Position::Rotary { base, .. } = self.architecture.position else { return Vec::new() };
        let half = self.architecture.head_width / 2;
        let angle = |place: usize, i: usize| place as f64 * base.powf(-(i as f64) / half as f64);
        (0..length * half)
            .map(|at| angle(at / half, at % half))
            .flat_map(|angle| [angle.cos() as f32, angle.sin() as f32])
            .collect()
    }

    pub(super) fn pairs(&self) -> i32 {
        match self.architecture.position {
            Position::Learned => 0,
            Position::Rotary { pairs: Pairs::Neighbours, .. } => 1,
            Position::Rotary { pairs: Pairs::Halves, .. } => 2,
        }
    }

    /// (epsilon, whether the mean is taken out).
    pub(super) fn norm(&self) -> (f32, i32) {
        match self.architecture.norm {
            Norm::Layer { epsilon } => (epsilon, 1),
            Norm::Rms { epsilon } => (epsilon, 0),
        }
    }
}

fn padded(vocabulary: usize) -> usize {
    vocabulary.next_multiple_of(ROWS)
}

fn check(a: &Architecture) -> Result<(), LanguageError> {
    let mut parts = vec![("width", a.width, 4), ("hidden width", a.hidden, 4)];
    let head = if matches!(a.position, Position::Rotary { .. }) { 8 } else { 4 };
    parts.push(("head width", a.head_width, head));
    if a.head_width > 256 {
        return Err(LanguageError::Device(format!(
            "heads of {} numbers are more than the device's kernels take, 256; use --device cpu",
            a.head_width
        )));
    }
    match parts.iter().find(|(_, value, of)| !value.is_multiple_of(*of)) {
        None => Ok(()),
        Some((name, value, of)) => Err(LanguageError::Device(format!(
            "{name} {value} of this model is not a multiple of {of}, which the device's kernels \
             need; use --device cpu"
        ))),
    }
}
