//! What other crates compute with on a device: kernels of their own, products of matrices stored row
//! by row, and the noisy step of an optimiser.
//!
//! Addresses are those of [`Buffer`]s that the caller owns; one that is wrong makes the device fail,
//! not this program's memory.

// Calls into cuBLAS with addresses of buffers.
#![allow(unsafe_code)]

use super::arguments::Argument;
use super::device::{Buffer, CudaDevice, Kernels, trouble};
use super::update::numbers;
use crate::optimizer::OptimizerDescription;
use crate::{ReplicaState, TrainingError};
use cudarc::cublas::sys::{
    cublasComputeType_t, cublasGemmAlgo_t, cublasGemmStridedBatchedEx, cublasOperation_t,
    cudaDataType,
};
use random::Stream;
use std::ffi::{c_int, c_void};

/// One argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Address(u64),
    Int(i32),
    Long(u64),
    Float(f32),
    Double(f64),
}

/// How a matrix is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    Float32,
    BFloat16,
}

impl Store {
    /// Bytes of one number.
    pub fn bytes(self) -> usize {
        match self {
            Self::Float32 => 4,
            Self::BFloat16 => 2,
        }
    }

    fn kind(self) -> cudaDataType {
        match self {
            Self::Float32 => cudaDataType::CUDA_R_32F,
            Self::BFloat16 => cudaDataType::CUDA_R_16BF,
        }
    }
}

/// A matrix for each product of a batch, row by row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matrix {
    pub address: u64,
    /// Numbers from one row to the next.
    pub leading: usize,
    /// Numbers from one product's matrix to the next's.
    pub stride: usize,
    pub store: Store,
    /// Whether the transpose is meant.
    pub transposed: bool,
}

impl Matrix {
    /// One matrix, or the first of many without a stride.
    pub fn new(address: u64, leading: usize, store: Store) -> Self {
        Self { address, leading, stride: 0, store, transposed: false }
    }

    /// The same with a stride from one to the next.
    #[must_use]
    pub fn every(self, stride: usize) -> Self {
        Self { stride, ..self }
    }

    /// Its transpose.
    #[must_use]
    pub fn transposed(self) -> Self {
        Self { transposed: !self.transposed, ..self }
    }

    /// The same beginning some numbers later.
    #[must_use]
    pub fn from(self, numbers: usize) -> Self {
        Self { address: self.address + (numbers * self.store.bytes()) as u64, ..self }
    }
}

/// out = scale left right (+ out), `count` times; left is m x k, right k x n.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Product {
    pub out: Matrix,
    pub left: Matrix,
    pub right: Matrix,
    /// (m, n, k)
    pub extents: (usize, usize, usize),
    pub count: usize,
    pub scale: f32,
    pub accumulate: bool,
}

/// A strided batch longer than this is cut: it becomes a dimension of the grid.
const LONGEST: usize = 32_768;

impl CudaDevice {
    /// Makes the device's context that of this thread; needed once on every thread that computes.
    ///
    /// # Errors
    /// What the driver says.
    pub fn bind(&self) -> Result<(), TrainingError> {
        self.context.bind_to_thread().map_err(|error| trouble("open its context", error))
    }

    /// Starts a kernel on a grid of (x, y) blocks.
    ///
    /// # Errors
    /// A kernel that is not there, or what the driver says.
    pub fn start(
        &self,
        kernels: &Kernels,
        name: &'static str,
        grid: (usize, usize),
        threads: u32,
        values: &[Value],
    ) -> Result<(), TrainingError> {
        self.launch(kernels, name, grid, threads, &mut arguments(values))
    }

    /// Starts a kernel with as many threads as it is compiled for, and bytes of shared memory for
    /// each block; [`CudaDevice::shared_memory`] says how many there are.
    ///
    /// # Errors
    /// A kernel that is not there, or what the driver says.
    pub fn start_bounded(
        &self,
        kernels: &Kernels,
        name: &'static str,
        grid: (usize, usize),
        shared: usize,
        values: &[Value],
    ) -> Result<(), TrainingError> {
        self.launch_bounded(kernels, name, grid, shared, &mut arguments(values))
    }

    /// Computes products. f32 matrices are multiplied in f32, or with operands rounded to 11 bits
    /// where `tf32`; bf16 ones in bf16. Sums are f32.
    ///
    /// # Errors
    /// What cuBLAS says.
    pub fn multiply(&self, product: &Product, tf32: bool) -> Result<(), TrainingError> {
        let Product { out, left, right, extents: (m, n, k), count, scale, accumulate } = *product;
        if m == 0 || n == 0 || k == 0 {
            return Ok(());
        }
        // cuBLAS takes columns first: it sees every matrix transposed, and out' = right' left'.
        let operation = |matrix: &Matrix| {
            if matrix.transposed {
                cublasOperation_t::CUBLAS_OP_T
            } else {
                cublasOperation_t::CUBLAS_OP_N
            }
        };
        let compute = if tf32 && left.store == Store::Float32 {
            cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32
        } else {
            cublasComputeType_t::CUBLAS_COMPUTE_32F
        };
        let beta = f32::from(u8::from(accumulate));
        let mut from = 0;
        while from < count {
            let part = (count - from).min(LONGEST);
            let place = |matrix: &Matrix| matrix.from(from * matrix.stride).address;
            // Addresses and strides lie inside of buffers that the caller owns.
            let status = || unsafe {
                cublasGemmStridedBatchedEx(
                    *self.blas.handle(),
                    operation(&right),
                    operation(&left),
                    n as c_int,
                    m as c_int,
                    k as c_int,
                    std::ptr::from_ref(&scale).cast(),
                    place(&right) as *const c_void,
                    right.store.kind(),
                    right.leading as c_int,
                    right.stride as i64,
                    place(&left) as *const c_void,
                    left.store.kind(),
                    left.leading as c_int,
                    left.stride as i64,
                    std::ptr::from_ref(&beta).cast(),
                    place(&out) as *mut c_void,
                    out.store.kind(),
                    out.leading as c_int,
                    out.stride as i64,
                    part as c_int,
                    compute,
                    cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
                )
            };
            let failed = |error| {
                TrainingError::Device(format!(
                    "cuBLAS cannot multiply {m} x {k} by {k} x {n}, {part} times ({error}); check \
                     `nvidia-smi`, or train with `--device cpu`"
                ))
            };
            self.timed(
                || format!("product {m} x {k} x {n}, {part} times"),
                || status().result().map_err(failed),
            )?;
            from += part;
        }
        Ok(())
    }
}

fn arguments(values: &[Value]) -> Vec<Argument> {
    let argument = |value: &Value| match *value {
        Value::Address(x) => Argument::Address(x),
        Value::Int(x) => Argument::Int(x),
        Value::Long(x) => Argument::Long(x),
        Value::Float(x) => Argument::Float(x),
        Value::Double(x) => Argument::Double(x),
    };
    values.iter().map(argument).collect()
}

/// Trained numbers with their optimiser, on a device.
pub struct Trained {
    parameters: Buffer<f32>,
    moments: Vec<Buffer<f32>>,
    /// Where the sum of clipped gradients is put before [`Trained::update`].
    pub sum: Buffer<f32>,
    key: Buffer<u32>,
    kernels: Kernels,
    size: usize,
}

/// Kernels take whole groups of numbers.
const GROUP: usize = 32;

impl Trained {
    /// Puts a state onto the device; `noise` is the stream of its noise.
    ///
    /// # Errors
    /// Memory that ran out, or what the driver says.
    pub fn new(
        device: &CudaDevice,
        state: &ReplicaState,
        noise: &Stream,
    ) -> Result<Self, TrainingError> {
        let size = state.parameters.len();
        let room = size.next_multiple_of(GROUP);
        let padded = |numbers: &[f32]| -> Result<Buffer<f32>, TrainingError> {
            let mut buffer = device.zeros(room)?;
            device.write(&mut buffer, numbers)?;
            Ok(buffer)
        };
        let [a, b] = noise.key();
        Ok(Self {
            parameters: padded(&state.parameters)?,
            moments: state
                .optimizer
                .moments
                .iter()
                .map(|moment| padded(moment))
                .collect::<Result<_, _>>()?,
            sum: device.zeros(room)?,
            key: device.upload(&[a, b, 0, 0])?,
            kernels: device.kernels(&[])?,
            size,
        })
    }

    /// Where the trained numbers begin.
    pub fn parameters(&self) -> u64 {
        self.parameters.address()
    }

    /// Adds the noise of `step` to the sum, divides, and lets the optimiser take it; `noise` is the
    /// (deviation, normaliser) of the noisy sum.
    ///
    /// # Errors
    /// What the driver says.
    pub fn update(
        &self,
        device: &CudaDevice,
        optimizer: &OptimizerDescription,
        step: u64,
        noise: (f64, f64),
    ) -> Result<(), TrainingError> {
        let room = self.size.next_multiple_of(GROUP);
        let moment = |i: usize| self.moments.get(i).map_or(0, Buffer::address);
        let mut arguments = [
            Argument::Address(self.parameters.address()),
            Argument::Address(self.sum.address()),
            Argument::Address(moment(0)),
            Argument::Address(moment(1)),
            Argument::Address(self.key.address()),
            Argument::Update(numbers(optimizer, step, noise, self.size, room)),
        ];
        let blocks = self.size.div_ceil(4 * 256).min(4096);
        device.launch(&self.kernels, "update", (blocks, 1), 256, &mut arguments)
    }

    /// Writes the state back to where it came from.
    ///
    /// # Errors
    /// What the driver says.
    pub fn read(&self, device: &CudaDevice, state: &mut ReplicaState) -> Result<(), TrainingError> {
        state.parameters = device.read(&self.parameters, self.size)?;
        for (to, from) in state.optimizer.moments.iter_mut().zip(&self.moments) {
            *to = device.read(from, self.size)?;
        }
        Ok(())
    }

    /// Replaces the state.
    ///
    /// # Errors
    /// What the driver says.
    pub fn write(
        &mut self,
        device: &CudaDevice,
        state: &ReplicaState,
    ) -> Result<(), TrainingError> {
        device.write(&mut self.parameters, &state.parameters)?;
        for (to, from) in self.moments.iter_mut().zip(&state.optimizer.moments) {
            device.write(to, from)?;
        }
        Ok(())
    }
}
