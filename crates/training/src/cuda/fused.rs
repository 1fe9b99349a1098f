//! Products that do the next step, too: a bias, GELU, or GELU's derivative, as epilogues of cuBLASLt, so
//! that what a linear map makes is not read from memory once more.
//!
//! cuBLASLt comes with cuBLAS. Where it is missing, or knows no algorithm for a product, the caller is
//! told so and computes in two steps. The algorithm is one that its heuristics name, which depends on
//! shapes alone: the same product gives the same bits.

// Calls into cuBLASLt with addresses of buffers.
#![allow(unsafe_code)]

use super::compute::{Matrix, Product, Store};
use super::device::{CudaDevice, trouble};
use crate::TrainingError;
use cudarc::cublas::sys::cublasOperation_t;
use cudarc::cublaslt::result::{
    CublasError, create_handle, create_matmul_desc, create_matmul_pref, create_matrix_layout,
    destroy_handle, destroy_matmul_desc, destroy_matmul_pref, destroy_matrix_layout, matmul,
    set_matmul_desc_attribute, set_matmul_pref_attribute,
};
use cudarc::cublaslt::sys::{
    cublasComputeType_t, cublasLtClusterShape_t, cublasLtEpilogue_t, cublasLtHandle_t,
    cublasLtMatmulAlgo_t, cublasLtMatmulAlgoConfigAttributes_t as Config,
    cublasLtMatmulAlgoConfigGetAttribute, cublasLtMatmulAlgoGetHeuristic, cublasLtMatmulDesc_t,
    cublasLtMatmulDescAttributes_t as Attribute, cublasLtMatmulHeuristicResult_t,
    cublasLtMatmulPreferenceAttributes_t, cublasLtMatmulTile_t, cublasLtMatrixLayout_t,
    cublasStatus_t, cudaDataType, is_culib_present,
};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

/// What is done to a product before it is stored. Matrices are rows of the product's length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Finish {
    /// Nothing: for products that cuBLASLt computes faster than cuBLAS does.
    Nothing,
    /// Adds a vector in bf16 to every row.
    Bias(u64),
    /// Adds a vector in bf16 (unless it is 0), keeps that, and stores its GELU (by tanh).
    Gelu { bias: u64, kept: Matrix },
    /// Multiplies by GELU's derivative at what was kept.
    GeluSlope { of: Matrix },
}

impl Finish {
    fn epilogue(self) -> cublasLtEpilogue_t {
        match self {
            Self::Nothing => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_DEFAULT,
            Self::Bias(_) => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS,
            Self::Gelu { bias: 0, .. } => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_GELU_AUX,
            Self::Gelu { .. } => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
            Self::GeluSlope { .. } => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_DGELU,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing more",
            Self::Bias(_) => "bias",
            Self::Gelu { .. } => "GELU",
            Self::GeluSlope { .. } => "the slope of GELU",
        }
    }

    fn bias(self) -> u64 {
        match self {
            Self::Bias(bias) | Self::Gelu { bias, .. } => bias,
            Self::Nothing | Self::GeluSlope { .. } => 0,
        }
    }

    fn kept(self) -> Option<Matrix> {
        match self {
            Self::Nothing | Self::Bias(_) => None,
            Self::Gelu { kept, .. } => Some(kept),
            Self::GeluSlope { of } => Some(of),
        }
    }
}

/// What an algorithm depends on: extents, leading dimensions, what is transposed, the epilogue.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Shape {
    extents: (usize, usize, usize),
    leading: [usize; 4],
    transposed: [bool; 2],
    whole: bool,
    epilogue: cublasLtEpilogue_t,
}

/// cuBLASLt with the memory that it may use.
pub(super) struct Fused {
    handle: cublasLtHandle_t,
    room: CudaSlice<u8>,
    algorithms: Mutex<HashMap<Shape, Option<cublasLtMatmulAlgo_t>>>,
}

// The handle may be used from every thread.
unsafe impl Send for Fused {}
unsafe impl Sync for Fused {}

impl Drop for Fused {
    fn drop(&mut self) {
        // Nothing can be done about a library that cannot let go.
        let _ = unsafe { destroy_handle(self.handle) };
    }
}

/// What cuBLASLt recommends for this generation of devices.
const ROOM: usize = 32 << 20;
/// Algorithms that heuristics are asked for.
const NAMED: usize = 8;
/// Where more terms are summed, storing what was summed takes little of the time.
const SHORT: usize = 1024;
/// What algorithms suppose that addresses are multiples of.
const ALIGNED: u64 = 256;

impl Fused {
    /// Nothing where the library is missing.
    pub(super) fn open(stream: &Arc<CudaStream>) -> Result<Option<Self>, TrainingError> {
        // Looking for a library runs its initialisers, nothing else.
        if !unsafe { is_culib_present() } {
            return Ok(None);
        }
        let Ok(handle) = create_handle() else { return Ok(None) };
        // What is reserved is written before it is read.
        let room = unsafe { stream.alloc::<u8>(ROOM) };
        let room = room.map_err(|error| trouble("reserve memory for products", error))?;
        Ok(Some(Self { handle, room, algorithms: Mutex::new(HashMap::new()) }))
    }
}

/// The descriptors of one product; cuBLASLt takes columns first: out' = right' left'.
struct Call {
    product: cublasLtMatmulDesc_t,
    right: cublasLtMatrixLayout_t,
    left: cublasLtMatrixLayout_t,
    out: cublasLtMatrixLayout_t,
}

impl Drop for Call {
    fn drop(&mut self) {
        // They were made in `describe` and are freed once.
        unsafe {
            for layout in [self.right, self.left, self.out] {
                if !layout.is_null() {
                    let _ = destroy_matrix_layout(layout);
                }
            }
            let _ = destroy_matmul_desc(self.product);
        }
    }
}

impl Call {
    fn describe(product: &Product, finish: Finish) -> Result<Self, CublasError> {
        let Product { out, left, right, extents: (m, n, k), .. } = *product;
        let float = cudaDataType::CUDA_R_32F;
        let none = std::ptr::null_mut();
        let described = create_matmul_desc(cublasComputeType_t::CUBLAS_COMPUTE_32F, float)?;
        let mut call = Self { product: described, right: none, left: none, out: none };
        let layout = |matrix: &Matrix, (rows, columns): (usize, usize)| {
            let (rows, columns) = if matrix.transposed { (columns, rows) } else { (rows, columns) };
            let kind = match matrix.store {
                Store::Float32 => cudaDataType::CUDA_R_32F,
                Store::BFloat16 => cudaDataType::CUDA_R_16BF,
            };
            create_matrix_layout(kind, columns as u64, rows as u64, matrix.leading as i64)
        };
        call.right = layout(&right, (k, n))?;
        call.left = layout(&left, (m, k))?;
        call.out = layout(&out, (m, n))?;
        let operation = |matrix: &Matrix| match matrix.transposed {
            true => cublasOperation_t::CUBLAS_OP_T,
            false => cublasOperation_t::CUBLAS_OP_N,
        };
        call.set(Attribute::CUBLASLT_MATMUL_DESC_TRANSA, &operation(&right))?;
        call.set(Attribute::CUBLASLT_MATMUL_DESC_TRANSB, &operation(&left))?;
        call.set(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, &finish.epilogue())?;
        if finish.bias() != 0 {
            call.set(Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &finish.bias())?;
        }
        if let Some(kept) = finish.kept() {
            let leading = kept.leading as i64;
            call.set(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &kept.address)?;
            call.set(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &leading)?;
        }
        Ok(call)
    }

    fn set<T>(&self, attribute: Attribute, value: &T) -> Result<(), CublasError> {
        let value: *const T = value;
        // The value is copied, with the size that the attribute has.
        unsafe { set_matmul_desc_attribute(self.product, attribute, value.cast(), size_of::<T>()) }
    }

    /// The algorithms that heuristics name, best first.
    fn algorithms(
        &self,
        handle: cublasLtHandle_t,
    ) -> Result<Vec<cublasLtMatmulAlgo_t>, CublasError> {
        let preference = create_matmul_pref()?;
        let most = ROOM;
        let none = cublasLtMatmulHeuristicResult_t {
            algo: cublasLtMatmulAlgo_t { data: [0; 8] },
            workspaceSize: 0,
            state: cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED,
            wavesCount: 0.0,
            reserved: [0; 4],
        };
        let (mut named, mut count) = ([none; NAMED], 0);
        // All descriptors are alive, the preference is freed once, and `named` has room for `NAMED`.
        unsafe {
            let found = set_matmul_pref_attribute(
                preference,
                cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                std::ptr::from_ref(&most).cast(),
                size_of::<usize>(),
            )
            .and_then(|()| {
                let (a, b, c) = (self.right, self.left, self.out);
                let (most, named) = (NAMED as i32, named.as_mut_ptr());
                cublasLtMatmulAlgoGetHeuristic(
                    handle,
                    self.product,
                    a,
                    b,
                    c,
                    c,
                    preference,
                    most,
                    named,
                    &raw mut count,
                )
                .result()
            });
            let _ = destroy_matmul_pref(preference);
            found?;
        }
        let works = |found: &&cublasLtMatmulHeuristicResult_t| {
            found.state == cublasStatus_t::CUBLAS_STATUS_SUCCESS
        };
        let named = named.iter().take(usize::try_from(count).unwrap_or(0));
        Ok(named.filter(works).map(|found| found.algo).collect())
    }
}

/// Of the algorithms that heuristics name, the first; but two rules, because on an H200 other ones are
/// faster (GPT-2's shapes, product by product). GELU's derivative: pairs of blocks, by 9 %. A short sum:
/// small tiles in pairs of blocks, by 7 to 9 %; where none is named, cuBLAS computes it.
fn choose(
    named: &[cublasLtMatmulAlgo_t],
    finish: Finish,
    terms: usize,
) -> Option<cublasLtMatmulAlgo_t> {
    use cublasLtClusterShape_t as Cluster;
    use cublasLtMatmulTile_t as Tile;
    let pairs = [Cluster::CUBLASLT_CLUSTER_SHAPE_2x1x1, Cluster::CUBLASLT_CLUSTER_SHAPE_1x2x1];
    let small = [
        Tile::CUBLASLT_MATMUL_TILE_128x128,
        Tile::CUBLASLT_MATMUL_TILE_128x160,
        Tile::CUBLASLT_MATMUL_TILE_176x128,
    ];
    let paired = |named: &&cublasLtMatmulAlgo_t| {
        let cluster = ask::<u16>(named, Config::CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID);
        pairs.iter().any(|pair| cluster == Some(*pair as u16))
    };
    let in_small_tiles = |named: &&cublasLtMatmulAlgo_t| {
        let tile = ask::<u32>(named, Config::CUBLASLT_ALGO_CONFIG_TILE_ID);
        small.iter().any(|small| tile == Some(*small as u32))
    };
    let mut paired = named.iter().filter(paired);
    match finish {
        Finish::Nothing if terms > SHORT => None,
        Finish::Nothing => paired.find(in_small_tiles),
        Finish::GeluSlope { .. } => paired.next().or(named.first()),
        Finish::Bias(_) | Finish::Gelu { .. } => named.first(),
    }
    .copied()
}

/// What an algorithm is made of.
fn ask<T: Default>(algorithm: &cublasLtMatmulAlgo_t, what: Config) -> Option<T> {
    let (mut found, mut written) = (T::default(), 0);
    let size = size_of::<T>();
    let to = (&raw mut found).cast();
    // `found` has room for as much as is said.
    let status = unsafe {
        cublasLtMatmulAlgoConfigGetAttribute(algorithm, what, to, size, &raw mut written)
    };
    (status.result().is_ok() && written == size).then_some(found)
}

impl CudaDevice {
    /// Whether [`CudaDevice::multiply_and`] computes a product of this shape, wherever it lies.
    pub fn multiplies_and(&self, product: &Product, finish: Finish) -> bool {
        self.algorithm(product, finish).is_some()
    }

    fn algorithm(&self, product: &Product, finish: Finish) -> Option<cublasLtMatmulAlgo_t> {
        let fused = self.fused.as_ref()?;
        let Product { out, left, right, extents, .. } = *product;
        let plain = finish == Finish::Nothing;
        let stored = [left, right].iter().all(|matrix| matrix.store == Store::BFloat16)
            && (plain || out.store == Store::BFloat16);
        let empty = extents.0 == 0 || extents.1 == 0 || extents.2 == 0;
        // cuBLAS looks at addresses itself.
        let odd = plain
            && [out, left, right].iter().any(|matrix| !matrix.address.is_multiple_of(ALIGNED));
        if !stored || odd || product.count != 1 || product.accumulate || empty {
            return None;
        }
        let kept = finish.kept().map_or(0, |kept| kept.leading);
        let shape = Shape {
            extents,
            leading: [out.leading, left.leading, right.leading, kept],
            transposed: [left.transposed, right.transposed],
            whole: out.store == Store::Float32,
            epilogue: finish.epilogue(),
        };
        let mut known = fused.algorithms.lock().unwrap_or_else(PoisonError::into_inner);
        let find = || Call::describe(product, finish)?.algorithms(fused.handle);
        *known.entry(shape).or_insert_with(|| choose(&find().ok()?, finish, extents.2))
    }

    /// A product of bf16 matrices, finished before it is stored; one that nothing finishes may be stored
    /// in f32. False where there is no algorithm for it, and nothing was computed.
    ///
    /// # Errors
    /// What cuBLASLt says.
    pub fn multiply_and(&self, product: &Product, finish: Finish) -> Result<bool, TrainingError> {
        let Some(algorithm) = self.algorithm(product, finish) else { return Ok(false) };
        let Some(fused) = self.fused.as_ref() else { return Ok(false) };
        let Product { out, left, right, extents: (m, n, k), scale, .. } = *product;
        let beta = 0.0f32;
        let run = || {
            let call = Call::describe(product, finish)?;
            let (room, _held) = fused.room.device_ptr(&self.stream);
            // Addresses and leading dimensions lie inside of buffers that the caller owns.
            unsafe {
                matmul(
                    fused.handle,
                    call.product,
                    std::ptr::from_ref(&scale).cast(),
                    std::ptr::from_ref(&beta).cast(),
                    right.address as *const c_void,
                    call.right,
                    left.address as *const c_void,
                    call.left,
                    out.address as *const c_void,
                    call.out,
                    out.address as *mut c_void,
                    call.out,
                    &raw const algorithm,
                    room as *mut c_void,
                    ROOM,
                    self.stream.cu_stream().cast(),
                )
            }
        };
        let name = finish.name();
        let failed = |error: CublasError| {
            TrainingError::Device(format!(
                "cuBLASLt cannot multiply {m} x {k} by {k} x {n} with {name} ({error}); check \
                 `nvidia-smi`, or train with `--device cpu`"
            ))
        };
        self.timed(|| format!("product {m} x {k} x {n} with {name}"), || run().map_err(failed))?;
        Ok(true)
    }
}
