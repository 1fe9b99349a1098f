//! Where a decoder is trained and measured: this machine's processor, or an NVIDIA device.

use super::{Example, Recipe, Scope, Trainer, data};
use crate::LanguageError;
use crate::model::{Choose, Decoder};
use training::{Device, ReplicaState, StepStatistics};

#[cfg(feature = "cuda")]
use crate::cuda::{CudaDecoder, CudaModel, CudaTrainer, Precision};
#[cfg(feature = "cuda")]
use std::sync::{Arc, Mutex, PoisonError};
#[cfg(feature = "cuda")]
use training::cuda::CudaDevice;

/// Where to compute. On a device, the frozen weights of one model are kept between trainings.
#[derive(Default)]
pub struct Place {
    #[cfg(feature = "cuda")]
    cuda: Option<Cuda>,
}

#[cfg(feature = "cuda")]
struct Cuda {
    device: Arc<CudaDevice>,
    precision: Precision,
    frozen: Mutex<Option<Arc<CudaDecoder>>>,
}

impl Place {
    /// This machine's processor.
    pub fn cpu() -> Self {
        Self::default()
    }

    /// The place of a device.
    ///
    /// # Errors
    /// A device that decoders do not run on.
    pub fn of(device: &Device) -> Result<Self, LanguageError> {
        if device.record.kind == "cpu" {
            return Ok(Self::cpu());
        }
        #[cfg(feature = "cuda")]
        if let (Some(cuda), Some(precision)) =
            (&device.cuda, Precision::named(&device.record.precision))
        {
            let (device, frozen) = (Arc::clone(cuda), Mutex::new(None));
            return Ok(Self { cuda: Some(Cuda { device, precision, frozen }) });
        }
        Err(LanguageError::Device(format!(
            "language models do not run on `{}`; use --device cpu",
            device.record.kind
        )))
    }

    /// Whether one training at a time is all that there is room for.
    pub(crate) fn is_device(&self) -> bool {
        #[cfg(feature = "cuda")]
        return self.cuda.is_some();
        #[cfg(not(feature = "cuda"))]
        false
    }

    /// The device's weights of a decoder. `same` says that its frozen weights are those of every
    /// other decoder given with `same`: they are sent once.
    #[cfg(feature = "cuda")]
    fn frozen(
        cuda: &Cuda,
        decoder: &Decoder,
        same: bool,
    ) -> Result<Arc<CudaDecoder>, LanguageError> {
        let mut kept = cuda.frozen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(frozen) = kept.as_ref().filter(|_| same) {
            return Ok(Arc::clone(frozen));
        }
        let frozen = CudaDecoder::new(decoder, Arc::clone(&cuda.device), cuda.precision)?;
        if same {
            *kept = Some(Arc::clone(&frozen));
        }
        Ok(frozen)
    }

    /// Starts a training; `longest` is the most tokens of a text that is measured afterwards, and
    /// `same` as for measuring.
    ///
    /// # Errors
    /// What cannot be trained there.
    pub(super) fn trainer<'a>(
        &self,
        decoder: &'a mut Decoder,
        examples: &'a [Example],
        recipe: Recipe,
        longest: usize,
        same: bool,
    ) -> Result<Engine<'a>, LanguageError> {
        #[cfg(feature = "cuda")]
        if let Some(cuda) = &self.cuda {
            // A training of everything changes the weights that it is given.
            let same = same && recipe.scope != Scope::Full;
            let frozen = Self::frozen(cuda, decoder, same)?;
            let trainer = CudaTrainer::new(&frozen, decoder, examples, recipe, longest)?;
            return Ok(Engine::Cuda(Box::new(trainer)));
        }
        let _ = (longest, same);
        Ok(Engine::Cpu(Box::new(Trainer::new(decoder, examples, recipe)?)))
    }

    /// Measures a decoder as it is.
    ///
    /// # Errors
    /// Memory that ran out on a device.
    pub fn measurer(
        &self,
        decoder: &Decoder,
        longest: usize,
        same: bool,
    ) -> Result<Measurer, LanguageError> {
        #[cfg(feature = "cuda")]
        if let Some(cuda) = &self.cuda {
            let frozen = Self::frozen(cuda, decoder, same)?;
            let model = CudaModel::new(&frozen, decoder, longest)?;
            return Ok(Measurer { cuda: Some(model) });
        }
        let _ = (decoder, longest, same);
        Ok(Measurer::default())
    }
}

/// A training under way somewhere.
pub(super) enum Engine<'a> {
    Cpu(Box<Trainer<'a>>),
    #[cfg(feature = "cuda")]
    Cuda(Box<CudaTrainer<'a>>),
}

impl Engine<'_> {
    pub(super) fn step(&mut self) -> Result<StepStatistics, LanguageError> {
        match self {
            Self::Cpu(trainer) => trainer.step(),
            #[cfg(feature = "cuda")]
            Self::Cuda(trainer) => trainer.step(),
        }
    }

    pub(super) fn state(&mut self) -> Result<&ReplicaState, LanguageError> {
        match self {
            Self::Cpu(trainer) => Ok(trainer.state()),
            #[cfg(feature = "cuda")]
            Self::Cuda(trainer) => trainer.state(),
        }
    }

    /// What gradient canaries gathered of all iterates.
    pub(super) fn evidence(&self) -> &[f64] {
        match self {
            Self::Cpu(trainer) => trainer.evidence(),
            #[cfg(feature = "cuda")]
            Self::Cuda(trainer) => trainer.evidence(),
        }
    }

    pub(super) fn restore(&mut self, steps: u64, state: ReplicaState) -> Result<(), LanguageError> {
        match self {
            Self::Cpu(trainer) => trainer.restore(steps, state),
            #[cfg(feature = "cuda")]
            Self::Cuda(trainer) => trainer.restore(steps, state),
        }
    }

    /// Puts what was trained into the decoder.
    pub(super) fn finish(self) -> Result<Measurer, LanguageError> {
        match self {
            Self::Cpu(_) => Ok(Measurer::default()),
            #[cfg(feature = "cuda")]
            Self::Cuda(trainer) => Ok(Measurer { cuda: Some(trainer.finish()?) }),
        }
    }
}

/// Losses and texts of a decoder, where it was trained.
#[derive(Default)]
pub struct Measurer {
    #[cfg(feature = "cuda")]
    cuda: Option<CudaModel>,
}

impl Measurer {
    /// The mean loss of each example's learnt tokens.
    ///
    /// # Errors
    /// Those of the decoder or the device.
    pub fn losses(
        &mut self,
        decoder: &Decoder,
        examples: &[Example],
    ) -> Result<Vec<f64>, LanguageError> {
        #[cfg(feature = "cuda")]
        if let Some(model) = &mut self.cuda {
            return model.losses(&examples.iter().collect::<Vec<_>>());
        }
        use rayon::prelude::*;
        examples
            .par_iter()
            .map(|example| {
                let learnt = &decoder.log_probabilities(&example.tokens)?[example.first - 1..];
                Ok(-learnt.iter().sum::<f64>() / learnt.len() as f64)
            })
            .collect()
    }

    /// Mean loss in nats of the learnt tokens, each token counting once.
    ///
    /// # Errors
    /// As [`Measurer::losses`].
    pub fn loss(&mut self, decoder: &Decoder, examples: &[Example]) -> Result<f64, LanguageError> {
        #[cfg(feature = "cuda")]
        if self.cuda.is_some() {
            let (mut total, mut count) = (0.0, 0);
            for (loss, example) in self.losses(decoder, examples)?.iter().zip(examples) {
                let learnt = example.tokens.len() - example.first;
                total += loss * learnt as f64;
                count += learnt;
            }
            return Ok(total / count.max(1) as f64);
        }
        data::loss(decoder, examples)
    }

    /// Continuations of prompts on a device; nothing on the CPU.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn continue_prompts(
        &mut self,
        prompts: &[Vec<u32>],
        most: usize,
        choose: &Choose<'_>,
    ) -> Option<Result<Vec<Vec<u32>>, LanguageError>> {
        #[cfg(feature = "cuda")]
        if let Some(model) = &mut self.cuda {
            return Some(model.continue_prompts(prompts, most, choose));
        }
        let _ = (prompts, most, choose);
        None
    }
}
