//! Matrix products of many replicas at once: strided where the replicas of a chunk lie one after
//! the other, by lists of addresses where they were sorted.
//!
//! cuBLAS takes columns first; a row-major matrix is its transpose there. C (m x n) = A B in its
//! terms is C' = B' A' in ours, which is how the callers below say it.

// Calls into cuBLAS with addresses that the engine owns.
#![allow(unsafe_code)]

use super::arguments::Argument::{Address, Int, Long};
use super::chunks::Chunk;
use super::device::{CudaDevice, Kernels, Precision};
use crate::TrainingError;
use cudarc::cublas::sys::{
    cublasComputeType_t, cublasGemmAlgo_t, cublasGemmBatchedEx, cublasGemmStridedBatchedEx,
    cublasOperation_t, cudaDataType,
};
use std::ffi::{c_int, c_void};

/// A matrix for each slot or each replica.
#[derive(Clone, Copy)]
pub(super) struct Operand {
    pub(super) address: u64,
    /// Numbers from one to the next.
    pub(super) stride: usize,
    pub(super) by_replica: bool,
    /// Numbers from one column (in cuBLAS' terms) to the next.
    pub(super) leading: usize,
    pub(super) transposed: bool,
}

/// C = A B + beta C with C of m rows and n columns, columns first.
pub(super) struct Product {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) a: Operand,
    pub(super) b: Operand,
    pub(super) c: Operand,
    pub(super) accumulate: bool,
}

/// A strided batch longer than this is cut: it becomes a dimension of the grid.
const LONGEST: usize = 32_768;

impl Product {
    fn settings(&self, precision: Precision) -> Settings {
        let operation = |operand: &Operand| {
            if operand.transposed {
                cublasOperation_t::CUBLAS_OP_T
            } else {
                cublasOperation_t::CUBLAS_OP_N
            }
        };
        Settings {
            a: operation(&self.a),
            b: operation(&self.b),
            compute: match precision {
                Precision::Float32 => cublasComputeType_t::CUBLAS_COMPUTE_32F,
                Precision::TensorFloat32 | Precision::BFloat16 => {
                    cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32
                }
            },
            beta: f32::from(u8::from(self.accumulate)),
        }
    }

    /// One product for each slot of a chunk. `addresses` has room for three lists.
    pub(super) fn run(
        &self,
        device: &CudaDevice,
        kernels: &Kernels,
        precision: Precision,
        chunk: &Chunk,
        addresses: u64,
    ) -> Result<(), TrainingError> {
        if self.k == 0 || chunk.slots == 0 {
            return Ok(());
        }
        if let Some(first) = chunk.first {
            let shifted = |operand: &Operand| {
                let start = if operand.by_replica { first * operand.stride } else { 0 };
                operand.address + 4 * start as u64
            };
            let starts = [shifted(&self.a), shifted(&self.b), shifted(&self.c)];
            return self.strided(device, precision, starts, chunk.slots);
        }
        let list = |operand: &Operand| {
            let by_replica = Int(i32::from(operand.by_replica));
            [Address(operand.address), Long(4 * operand.stride as u64), by_replica]
        };
        let mut arguments = vec![Address(addresses), Address(chunk.order), Int(chunk.slots as i32)];
        arguments.extend([list(&self.a), list(&self.b), list(&self.c)].concat());
        let blocks = chunk.slots.div_ceil(128);
        device.launch(kernels, "addresses", (blocks, 1), 128, &mut arguments)?;
        let settings = self.settings(precision);
        let alpha = 1.0f32;
        let lists =
            |number: usize| (addresses + (8 * number * chunk.slots) as u64) as *const *const c_void;
        // The lists hold one address of a matrix of the stated size for each slot.
        let status = unsafe {
            cublasGemmBatchedEx(
                *device.blas.handle(),
                settings.a,
                settings.b,
                self.m as c_int,
                self.n as c_int,
                self.k as c_int,
                std::ptr::from_ref(&alpha).cast(),
                lists(0),
                cudaDataType::CUDA_R_32F,
                self.a.leading as c_int,
                lists(1),
                cudaDataType::CUDA_R_32F,
                self.b.leading as c_int,
                std::ptr::from_ref(&settings.beta).cast(),
                lists(2).cast(),
                cudaDataType::CUDA_R_32F,
                self.c.leading as c_int,
                chunk.slots as c_int,
                settings.compute,
                cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )
        };
        status.result().map_err(failed)
    }

    /// `count` products whose operands lie one after the other.
    pub(super) fn strided(
        &self,
        device: &CudaDevice,
        precision: Precision,
        starts: [u64; 3],
        count: usize,
    ) -> Result<(), TrainingError> {
        let settings = self.settings(precision);
        let alpha = 1.0f32;
        let mut from = 0;
        while from < count {
            let part = (count - from).min(LONGEST);
            let place = |start: u64, operand: &Operand| start + (4 * from * operand.stride) as u64;
            // Addresses and strides lie inside of buffers that the engine owns.
            let status = || unsafe {
                cublasGemmStridedBatchedEx(
                    *device.blas.handle(),
                    settings.a,
                    settings.b,
                    self.m as c_int,
                    self.n as c_int,
                    self.k as c_int,
                    std::ptr::from_ref(&alpha).cast(),
                    place(starts[0], &self.a) as *const c_void,
                    cudaDataType::CUDA_R_32F,
                    self.a.leading as c_int,
                    self.a.stride as i64,
                    place(starts[1], &self.b) as *const c_void,
                    cudaDataType::CUDA_R_32F,
                    self.b.leading as c_int,
                    self.b.stride as i64,
                    std::ptr::from_ref(&settings.beta).cast(),
                    place(starts[2], &self.c) as *mut c_void,
                    cudaDataType::CUDA_R_32F,
                    self.c.leading as c_int,
                    self.c.stride as i64,
                    part as c_int,
                    settings.compute,
                    cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
                )
            };
            device.timed(
                || format!("product {} x {} x {}, {part} times", self.m, self.k, self.n),
                || status().result().map_err(failed),
            )?;
            from += part;
        }
        Ok(())
    }
}

struct Settings {
    a: cublasOperation_t,
    b: cublasOperation_t,
    compute: cublasComputeType_t,
    beta: f32,
}

fn failed(error: cudarc::cublas::result::CublasError) -> TrainingError {
    TrainingError::Device(format!(
        "cuBLAS cannot multiply ({error}); check `nvidia-smi`, or train with `--device cpu`"
    ))
}
