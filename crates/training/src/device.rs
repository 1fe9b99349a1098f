//! Devices by name: `auto`, `cpu`, `cuda:N`.

use crate::TrainingError;
use crate::backend::Replicas;
use crate::cpu::CpuReplicas;
use crate::data::Dataset;
use crate::ledger::DeviceRecord;
use crate::recipe::Recipe;
use crate::replica::Replica;
use serde::Deserialize;
use std::sync::Arc;

/// Opens M replicas on a device.
pub type Open = dyn Fn(Arc<Recipe>, Arc<Dataset>, Vec<Replica>) -> Result<Box<dyn Replicas>, TrainingError>
    + Send
    + Sync;

/// How a device computes; anything but f32 has to be asked for by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrecisionName {
    /// 24 bits throughout; convolutions on a device multiply 21 bits of each operand.
    #[default]
    F32,
    /// Products round their operands to 11 bits.
    Tf32,
    /// Weights and activations of 8 bits in language models; operands of 8 bits in the products of
    /// convolutions.
    Bf16,
}

impl PrecisionName {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Tf32 => "tf32",
            Self::Bf16 => "bf16",
        }
    }
}

/// A device that can train.
pub struct Device {
    pub record: DeviceRecord,
    pub open: Box<Open>,
    /// For those who compute with it themselves.
    #[cfg(feature = "cuda")]
    pub cuda: Option<Arc<crate::cuda::CudaDevice>>,
}

impl Device {
    /// This machine's processor.
    pub fn cpu() -> Self {
        let record = DeviceRecord {
            kind: "cpu".into(),
            instructions: instructions().into(),
            precision: "f32".into(),
            lanes: 1,
            sensitivity: 1.0 + 2f64.powi(-20),
        };
        let open: Box<Open> = Box::new(|recipe, data, replicas| {
            Ok(Box::new(CpuReplicas::new(recipe, data, replicas)?))
        });
        Self {
            record,
            open,
            #[cfg(feature = "cuda")]
            cuda: None,
        }
    }

    /// The device of a name; `auto` is the first NVIDIA device, or the CPU where there is none.
    /// TF32 has to be asked for, because a record can then contribute more than the clip norm.
    ///
    /// ```
    /// assert_eq!(training::Device::named("cpu", false)?.record.kind, "cpu");
    /// assert!(training::Device::named("tpu", false).is_err());
    /// # Ok::<(), training::TrainingError>(())
    /// ```
    ///
    /// # Errors
    /// Names that are none, and devices that are not there or cannot be used.
    pub fn named(name: &str, tf32: bool) -> Result<Self, TrainingError> {
        Self::with_precision(name, if tf32 { PrecisionName::Tf32 } else { PrecisionName::F32 })
    }

    /// As [`Device::named`], with any precision.
    ///
    /// # Errors
    /// As [`Device::named`].
    pub fn with_precision(name: &str, precision: PrecisionName) -> Result<Self, TrainingError> {
        let plain = precision == PrecisionName::F32;
        let number = match name {
            "cpu" if !plain => {
                return Err(TrainingError::Device(format!(
                    "{} needs an NVIDIA device; the CPU computes in f32",
                    precision.as_str().to_uppercase()
                )));
            }
            "cpu" => return Ok(Self::cpu()),
            "auto" if plain => {
                return Ok(Self::cuda(0, precision).unwrap_or_else(|_| Self::cpu()));
            }
            "auto" | "cuda" => Some(0),
            _ => name.strip_prefix("cuda:").and_then(|number| number.parse().ok()),
        };
        match number {
            Some(number) => Self::cuda(number, precision),
            None => Err(TrainingError::Device(format!(
                "device `{}` is none of auto, cpu, cuda:N",
                name.escape_debug()
            ))),
        }
    }

    #[cfg(feature = "cuda")]
    fn cuda(number: usize, name: PrecisionName) -> Result<Self, TrainingError> {
        use crate::cuda::{CudaDevice, CudaReplicas, Precision};
        let device = CudaDevice::open(number)?;
        let precision = match name {
            PrecisionName::F32 => Precision::Float32,
            PrecisionName::Tf32 => Precision::TensorFloat32,
            PrecisionName::Bf16 => Precision::BFloat16,
        };
        let record = DeviceRecord {
            kind: "cuda".into(),
            instructions: device.name().to_owned(),
            precision: name.as_str().into(),
            lanes: 1,
            sensitivity: precision.sensitivity_factor(),
        };
        let cuda = Some(Arc::clone(&device));
        let open: Box<Open> = Box::new(move |recipe, data, replicas| {
            let device = Arc::clone(&device);
            Ok(Box::new(CudaReplicas::new(device, precision, recipe, data, replicas)?))
        });
        Ok(Self { record, open, cuda })
    }

    #[cfg(not(feature = "cuda"))]
    fn cuda(_: usize, _: PrecisionName) -> Result<Self, TrainingError> {
        Err(TrainingError::Device(
            "this build has no CUDA; use --device cpu, or build with the feature `cuda`".into(),
        ))
    }
}

fn instructions() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if std::is_x86_feature_detected!("avx512f") {
            "x86-64 avx512"
        } else if std::is_x86_feature_detected!("fma") {
            "x86-64 avx2"
        } else {
            "x86-64"
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        std::env::consts::ARCH
    }
}
