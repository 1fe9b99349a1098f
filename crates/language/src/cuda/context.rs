//! A device with the decoder's kernels, and how numbers are stored there.

use crate::LanguageError;
use crate::model::Architecture;
use std::sync::Arc;
use training::TrainingError;
use training::cuda::compute::{Matrix, Product, Store, Value};
use training::cuda::fused::Finish;
use training::cuda::{Buffer, CudaDevice, Kernels};

/// How products are computed and activations stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// 24 bits throughout.
    #[default]
    Float32,
    /// Products round their operands to 11 bits.
    TensorFloat32,
    /// Weights and activations have 8 bits.
    BFloat16,
}

impl Precision {
    /// The precision of a name: `f32`, `tf32` or `bf16`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "f32" => Some(Self::Float32),
            "tf32" => Some(Self::TensorFloat32),
            "bf16" => Some(Self::BFloat16),
            _ => None,
        }
    }

    fn store(self) -> Store {
        match self {
            Self::Float32 | Self::TensorFloat32 => Store::Float32,
            Self::BFloat16 => Store::BFloat16,
        }
    }
}

const SOURCE: &str = concat!(
    include_str!("kernels.cu"),
    include_str!("head.cu"),
    include_str!("attention.cu"),
    include_str!("adapters.cu"),
    include_str!("gradients.cu")
);

/// Blocks of kernels whose threads stride over all numbers.
const MOST_BLOCKS: usize = 132 * 16;

pub(super) struct Context {
    pub(super) device: Arc<CudaDevice>,
    kernels: Kernels,
    pub(super) store: Store,
    pub(super) precision: Precision,
    /// Whether kernels of our own multiply bf16: `attention.cu`, `adapters.cu`.
    pub(super) tensor_cores: bool,
    /// Whether attention never forms its matrix: `attention.cu` is written for bf16 and heads of 16,
    /// 32, 48 or 64 numbers.
    pub(super) tiled: bool,
}

impl Context {
    pub(super) fn new(
        device: Arc<CudaDevice>,
        precision: Precision,
        architecture: &Architecture,
    ) -> Result<Self, LanguageError> {
        let store = precision.store();
        let head = architecture.head_width;
        let tensor_cores = store == Store::BFloat16 && device.has_tensor_cores();
        let tiled = tensor_cores && head.is_multiple_of(16) && head <= 64;
        let mut definitions = vec![
            format!("-DWIDTH={}", architecture.width),
            format!("-DHIDDEN={}", architecture.hidden),
        ];
        if store == Store::BFloat16 {
            definitions.push("-DBF16=1".to_owned());
        }
        if tiled {
            definitions.push(format!("-DHEAD={head}"));
        }
        device.bind().map_err(failed)?;
        let kernels = device.compile("decoder.cu", SOURCE, &definitions).map_err(failed)?;
        Ok(Self { device, kernels, store, precision, tensor_cores, tiled })
    }

    /// Bytes of one activation.
    pub(super) fn bytes(&self) -> usize {
        self.store.bytes()
    }

    /// A matrix of activations or weights.
    pub(super) fn matrix(&self, address: u64, leading: usize) -> Matrix {
        Matrix::new(address, leading, self.store)
    }

    pub(super) fn multiply(&self, product: &Product) -> Result<(), LanguageError> {
        if self.device.multiply_and(product, Finish::Nothing).map_err(failed)? {
            return Ok(());
        }
        self.device.multiply(product, self.precision == Precision::TensorFloat32).map_err(failed)
    }

    /// A product, finished where the device can do so; whether it was.
    pub(super) fn finish(
        &self,
        product: &Product,
        finish: Option<Finish>,
    ) -> Result<bool, LanguageError> {
        if let Some(finish) = finish
            && self.device.multiply_and(product, finish).map_err(failed)?
        {
            return Ok(true);
        }
        self.multiply(product).map(|()| false)
    }

    /// out = left right, once.
    pub(super) fn product(
        &self,
        out: Matrix,
        left: Matrix,
        right: Matrix,
        extents: (usize, usize, usize),
    ) -> Result<(), LanguageError> {
        let product =
            Product { out, left, right, extents, count: 1, scale: 1.0, accumulate: false };
        self.multiply(&product)
    }

    /// A kernel with one warp for each row.
    pub(super) fn by_rows(
        &self,
        name: &'static str,
        rows: usize,
        values: &[Value],
    ) -> Result<(), LanguageError> {
        self.start(name, (rows.div_ceil(8), 1), values)
    }

    /// A kernel whose threads stride over `count` pieces of work.
    pub(super) fn striding(
        &self,
        name: &'static str,
        count: usize,
        values: &[Value],
    ) -> Result<(), LanguageError> {
        self.start(name, (count.div_ceil(256).clamp(1, MOST_BLOCKS), 1), values)
    }

    /// A kernel with blocks of 256 threads.
    pub(super) fn start(
        &self,
        name: &'static str,
        grid: (usize, usize),
        values: &[Value],
    ) -> Result<(), LanguageError> {
        self.device.start(&self.kernels, name, grid, 256, values).map_err(failed)
    }

    /// A kernel with as many threads as it is compiled for, and bytes of shared memory for a block.
    pub(super) fn bounded(
        &self,
        name: &'static str,
        grid: (usize, usize),
        shared: usize,
        values: &[Value],
    ) -> Result<(), LanguageError> {
        self.device.start_bounded(&self.kernels, name, grid, shared, values).map_err(failed)
    }

    /// Numbers as activations are stored.
    pub(super) fn real(&self, numbers: &[f32]) -> Result<Buffer<u8>, LanguageError> {
        let whole = self.device.upload(numbers).map_err(failed)?;
        let stored = self.device.zeros(numbers.len() * self.bytes()).map_err(failed)?;
        self.convert(stored.address(), whole.address(), numbers.len())?;
        self.device.finish().map_err(failed)?;
        Ok(stored)
    }

    /// f32 numbers as activations are stored.
    pub(super) fn convert(&self, to: u64, from: u64, count: usize) -> Result<(), LanguageError> {
        use Value::{Address, Long};
        self.striding("convert", count, &[Address(to), Address(from), Long(count as u64)])
    }
}

pub(super) fn failed(error: TrainingError) -> LanguageError {
    LanguageError::Device(error.to_string())
}
