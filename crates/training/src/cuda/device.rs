//! A device: its context, its stream, cuBLAS, and the compiled kernels; and what its troubles
//! mean to a person.

// Calls into libraries that are loaded at run time.
#![allow(unsafe_code)]

use super::arguments::Argument;
use super::fused::Fused;
use super::group_norm::STREAM_SHARED;
use super::plan::Abilities;
use crate::TrainingError;
use cudarc::cublas::CudaBlas;
use cudarc::driver::result::launch_kernel;
use cudarc::driver::sys::{CUdevice_attribute, CUfunction_attribute_enum, CUresult};
use cudarc::driver::{CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream, DriverError};
use cudarc::driver::{DevicePtr, DeviceRepr, ValidAsZeroBits};
use cudarc::nvrtc::{CompileError, CompileOptions, compile_ptx_with_opts};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// How products are computed on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// 24 bits throughout; convolutions multiply 21 bits of each operand.
    #[default]
    Float32,
    /// Products round their operands to 11 bits. A clipped record can then contribute up to
    /// [`Precision::sensitivity_factor`] times the clip norm.
    TensorFloat32,
    /// Convolutions round the operands of their products to 8 bits, other products to 11. What is
    /// stored, summed and clipped is f32.
    BFloat16,
}

impl Precision {
    /// How many clip norms a record can contribute: 1 + 2^-20 in f32. The gradients of convolutions
    /// and normalisations are clipped as they are kept, so that only the clipped sums of linear
    /// layers, whose products round to 11 bits in TF32 and bf16 alike, raise this to 1 + 2^-10.
    pub fn sensitivity_factor(self) -> f64 {
        match self {
            Self::Float32 => 1.0 + 2f64.powi(-20),
            Self::TensorFloat32 | Self::BFloat16 => 1.0 + 2f64.powi(-10),
        }
    }
}

/// An NVIDIA device that is ready to train.
pub struct CudaDevice {
    pub(super) context: Arc<CudaContext>,
    pub(super) stream: Arc<CudaStream>,
    pub(super) blas: CudaBlas,
    /// Products with epilogues, where their library is there.
    pub(super) fused: Option<Fused>,
    name: String,
    architecture: &'static str,
    pub(super) abilities: Abilities,
    /// How many processors it has.
    pub(super) processors: usize,
    modules: Mutex<HashMap<Vec<String>, Arc<CudaModule>>>,
    times: Mutex<Option<Times>>,
}

/// How often each kernel ran, and for how many seconds in all.
type Times = HashMap<String, (u64, f64)>;

/// Memory on the device.
pub struct Buffer<T> {
    slice: CudaSlice<T>,
    address: u64,
}

impl<T> Buffer<T> {
    /// Where it begins, for kernels and products.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The address of one of its numbers.
    pub fn at(&self, index: usize) -> u64 {
        self.address + (index * size_of::<T>()) as u64
    }
}

/// The kernels of one program.
pub struct Kernels {
    module: Arc<CudaModule>,
    /// With the number of threads that each is compiled for, and the bytes of shared memory that it may use.
    functions: Mutex<HashMap<&'static str, (CudaFunction, u32, usize)>>,
}

/// Bytes of shared memory that a block may have.
const SHARED_MEMORY: CUdevice_attribute =
    CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;

const WAY_OUT: &str = "train on the processor with `--device cpu`";

/// Why there is no device, or `None` when libraries and driver are there.
fn missing() -> Option<String> {
    // Looking for libraries runs their initialisers, nothing else.
    let (driver, compiler, blas) = unsafe {
        (
            cudarc::driver::sys::is_culib_present(),
            cudarc::nvrtc::sys::is_culib_present(),
            cudarc::cublas::sys::is_culib_present(),
        )
    };
    if !driver {
        return Some("no NVIDIA driver was found (libcuda): install one".to_owned());
    }
    let libraries = [(compiler, "libnvrtc"), (blas, "libcublas")];
    libraries.iter().find(|(found, _)| !found).map(|(_, name)| {
        format!(
            "{name} of CUDA 12 or 13 was not found; install it (pip install nvidia-cuda-nvrtc \
             nvidia-cublas) and name its folder in LD_LIBRARY_PATH"
        )
    })
}

impl CudaDevice {
    /// How many devices there are; 0 without a driver.
    pub fn count() -> usize {
        if missing().is_some() {
            return 0;
        }
        CudaContext::device_count().ok().and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
    }

    /// Opens device number `ordinal`.
    ///
    /// # Errors
    /// A sentence that says what is missing and what to do.
    pub fn open(ordinal: usize) -> Result<Arc<Self>, TrainingError> {
        if let Some(reason) = missing() {
            return Err(TrainingError::Device(format!("cuda:{ordinal}: {reason}, or {WAY_OUT}")));
        }
        let count =
            CudaContext::device_count().map_err(|error| trouble("look for devices", error))?;
        if usize::try_from(count).is_ok_and(|count| ordinal >= count) {
            return Err(TrainingError::Device(format!(
                "there is no device cuda:{ordinal}; the driver knows {count}; name one below \
                 that, or {WAY_OUT}"
            )));
        }
        let context =
            CudaContext::new(ordinal).map_err(|error| trouble("open the device", error))?;
        // One stream and one thread at a time: nothing to track.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream().map_err(|error| trouble("open a stream", error))?;
        let blas = CudaBlas::new(Arc::clone(&stream)).map_err(|error| {
            TrainingError::Device(format!("cuBLAS cannot start ({error}); {WAY_OUT}"))
        })?;
        let fused = Fused::open(&stream)?;
        let capability =
            context.compute_capability().map_err(|error| trouble("ask the device", error))?;
        let architecture = match capability {
            (10.., _) => "compute_100",
            (9, _) => "sm_90",
            (8, 9) => "sm_89",
            (8, 6..) => "sm_86",
            (8, _) => "sm_80",
            (7, 5..) => "sm_75",
            (major, minor) => {
                return Err(TrainingError::Device(format!(
                    "cuda:{ordinal} has compute capability {major}.{minor}; 7.5 or newer is \
                     needed; {WAY_OUT}"
                )));
            }
        };
        let name = context.name().unwrap_or_else(|_| "unnamed".to_owned());
        let modules = Mutex::new(HashMap::new());
        let times = Mutex::new(None);
        let attribute = |which| {
            let found =
                context.attribute(which).map_err(|error| trouble("ask the device", error))?;
            Ok::<_, TrainingError>(usize::try_from(found).unwrap_or(0))
        };
        let processors =
            attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?.max(1);
        let tensor_cores = capability.0 >= 8;
        let streams = tensor_cores && attribute(SHARED_MEMORY)? >= STREAM_SHARED;
        let abilities = Abilities { tensor_cores, streams };
        Ok(Arc::new(Self {
            context,
            stream,
            blas,
            fused,
            name,
            architecture,
            abilities,
            processors,
            modules,
            times,
        }))
    }

    /// The device's own name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it has tensor cores that multiply bf16 (compute capability 8.0 or newer).
    pub fn has_tensor_cores(&self) -> bool {
        self.abilities.tensor_cores
    }

    /// Bytes of shared memory that a block may have.
    pub fn shared_memory(&self) -> usize {
        self.context
            .attribute(SHARED_MEMORY)
            .ok()
            .and_then(|bytes| usize::try_from(bytes).ok())
            .unwrap_or(0)
    }

    /// Free and all bytes.
    ///
    /// # Errors
    /// What the driver says.
    pub fn memory(&self) -> Result<(usize, usize), TrainingError> {
        self.context.mem_get_info().map_err(|error| trouble("ask for its memory", error))
    }

    /// The kernels with these definitions, compiled once.
    pub(super) fn kernels(&self, definitions: &[String]) -> Result<Kernels, TrainingError> {
        self.compile("kernels.cu", include_str!("kernels.cu"), definitions)
    }

    /// Kernels of a source with definitions (`-DNAME=VALUE`), compiled once; the name tells sources
    /// apart.
    ///
    /// # Errors
    /// What the compiler says.
    pub fn compile(
        &self,
        name: &str,
        source: &str,
        definitions: &[String],
    ) -> Result<Kernels, TrainingError> {
        let key = [&[name.to_owned()], definitions].concat();
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let module = match modules.get(&key) {
            Some(module) => Arc::clone(module),
            None => {
                let options = CompileOptions {
                    arch: Some(self.architecture),
                    options: definitions.to_vec(),
                    name: Some(name.to_owned()),
                    ..CompileOptions::default()
                };
                let compiled = compile_ptx_with_opts(source, options).map_err(compilation)?;
                let module = self
                    .context
                    .load_module(compiled)
                    .map_err(|error| trouble("load the kernels", error))?;
                modules.insert(key, Arc::clone(&module));
                module
            }
        };
        Ok(Kernels { module, functions: Mutex::new(HashMap::new()) })
    }

    /// Zeros on the device.
    ///
    /// # Errors
    /// Memory that ran out, or what the driver says.
    pub fn zeros<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        length: usize,
    ) -> Result<Buffer<T>, TrainingError> {
        let slice = self
            .stream
            .alloc_zeros::<T>(length.max(1))
            .map_err(|error| memory_trouble(error, length * size_of::<T>()))?;
        let address = slice.device_ptr(&self.stream).0;
        Ok(Buffer { slice, address })
    }

    /// A copy on the device.
    ///
    /// # Errors
    /// Memory that ran out, or what the driver says.
    pub fn upload<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        values: &[T],
    ) -> Result<Buffer<T>, TrainingError> {
        let mut buffer = self.zeros(values.len())?;
        self.write(&mut buffer, values)?;
        Ok(buffer)
    }

    /// Replaces the first numbers of a buffer.
    ///
    /// # Errors
    /// Memory that ran out, or what the driver says.
    pub fn write<T: DeviceRepr>(
        &self,
        buffer: &mut Buffer<T>,
        values: &[T],
    ) -> Result<(), TrainingError> {
        if values.is_empty() {
            return Ok(());
        }
        let mut part = buffer.slice.slice_mut(..values.len());
        self.stream
            .memcpy_htod(values, &mut part)
            .map_err(|error| trouble("copy to the device", error))?;
        // The copy may still read `values`, which the caller owns.
        self.finish()
    }

    /// The first numbers of a buffer.
    ///
    /// # Errors
    /// Memory that ran out, or what the driver says.
    pub fn read<T: DeviceRepr + Clone + Default>(
        &self,
        buffer: &Buffer<T>,
        length: usize,
    ) -> Result<Vec<T>, TrainingError> {
        let mut values = vec![T::default(); length];
        if length > 0 {
            self.stream
                .memcpy_dtoh(&buffer.slice.slice(..length), &mut values)
                .map_err(|error| trouble("copy from the device", error))?;
            self.finish()?;
        }
        Ok(values)
    }

    /// Waits for everything that was started.
    ///
    /// # Errors
    /// What went wrong since the last call.
    pub fn finish(&self) -> Result<(), TrainingError> {
        self.stream.synchronize().map_err(|error| trouble("finish its work", error))
    }

    /// From now on waits for every kernel and product and notes how long it took.
    pub fn measure(&self) {
        *self.times.lock().unwrap_or_else(PoisonError::into_inner) = Some(Times::new());
    }

    /// What was noted: name and grid, calls, seconds in all; the longest first.
    pub fn measured(&self) -> Vec<(String, u64, f64)> {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut rows: Vec<_> = times
            .into_iter()
            .flatten()
            .map(|(name, (count, seconds))| (name, count, seconds))
            .collect();
        rows.sort_by(|a, b| b.2.total_cmp(&a.2));
        rows
    }

    /// Does something, and notes under a name how long it takes, if it was asked to.
    pub(super) fn timed<T>(
        &self,
        name: impl FnOnce() -> String,
        work: impl FnOnce() -> Result<T, TrainingError>,
    ) -> Result<T, TrainingError> {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(times) = times.as_mut() else { return work() };
        self.finish()?;
        let start = Instant::now();
        let done = work()?;
        self.finish()?;
        let entry = times.entry(name()).or_default();
        *entry = (entry.0 + 1, entry.1 + start.elapsed().as_secs_f64());
        Ok(done)
    }

    /// Starts a kernel.
    pub(super) fn launch(
        &self,
        kernels: &Kernels,
        name: &'static str,
        grid: (usize, usize),
        threads: u32,
        arguments: &mut [Argument],
    ) -> Result<(), TrainingError> {
        self.launch_with(kernels, name, grid, threads, 0, arguments)
    }

    /// Starts a kernel with as many threads as it is compiled for, and bytes of shared memory for
    /// each block.
    pub(super) fn launch_bounded(
        &self,
        kernels: &Kernels,
        name: &'static str,
        grid: (usize, usize),
        shared: usize,
        arguments: &mut [Argument],
    ) -> Result<(), TrainingError> {
        self.launch_with(kernels, name, grid, 0, shared, arguments)
    }

    /// Starts a kernel with a number of threads, or as many as it is compiled for (0), and bytes of
    /// shared memory for each block.
    pub(super) fn launch_with(
        &self,
        kernels: &Kernels,
        name: &'static str,
        grid: (usize, usize),
        threads: u32,
        shared: usize,
        arguments: &mut [Argument],
    ) -> Result<(), TrainingError> {
        if grid.0 == 0 || grid.1 == 0 {
            return Ok(());
        }
        let (function, most) = kernels.function(name, shared)?;
        let threads = if threads == 0 { most } else { threads };
        let mut places: Vec<_> = arguments.iter_mut().map(Argument::place).collect();
        let (x, y) =
            (u32::try_from(grid.0).unwrap_or(u32::MAX), u32::try_from(grid.1).unwrap_or(u32::MAX));
        // The kernels' parameters are listed in `kernels.cu` in this order and of these types;
        // the arguments outlive the call, which copies them.
        let mut result = || unsafe {
            launch_kernel(
                function.cu_function(),
                (x, y, 1),
                (threads, 1, 1),
                shared as u32,
                self.stream.cu_stream(),
                &mut places,
            )
        };
        self.timed(
            || format!("{name} ({x}, {y})"),
            || result().map_err(|error| trouble(&format!("run the kernel `{name}`"), error)),
        )
    }
}

impl Kernels {
    /// A kernel, which may use this many bytes of shared memory.
    fn function(
        &self,
        name: &'static str,
        shared: usize,
    ) -> Result<(CudaFunction, u32), TrainingError> {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        let known = functions.get(name);
        if let Some((function, threads, room)) = known
            && shared <= *room
        {
            return Ok((function.clone(), *threads));
        }
        let function = match known {
            Some((function, ..)) => function.clone(),
            None => self
                .module
                .load_function(name)
                .map_err(|error| trouble(&format!("find the kernel `{name}`"), error))?,
        };
        if shared > 0 {
            let most = CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            function
                .set_attribute(most, shared as i32)
                .map_err(|error| trouble(&format!("prepare the kernel `{name}`"), error))?;
        }
        let threads = CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
        let threads = function
            .get_attribute(threads)
            .map_err(|error| trouble(&format!("ask for the kernel `{name}`"), error))?;
        functions.insert(name, (function.clone(), threads as u32, shared));
        Ok((function, threads as u32))
    }
}

/// Whether an error says that memory ran out.
pub(crate) fn out_of_memory(error: &TrainingError) -> bool {
    matches!(error, TrainingError::Device(text) if text.starts_with(NO_MEMORY))
}

const NO_MEMORY: &str = "the device is out of memory";

fn memory_trouble(error: DriverError, bytes: usize) -> TrainingError {
    if error.0 == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        let megabytes = bytes.div_ceil(1 << 20);
        return TrainingError::Device(format!(
            "{NO_MEMORY} ({megabytes} MiB more were wanted); lower the batch size or the model's \
             width, close other programs that use the device, or {WAY_OUT}"
        ));
    }
    trouble("reserve memory", error)
}

pub(super) fn trouble(action: &str, error: DriverError) -> TrainingError {
    let advice = match error.0 {
        CUresult::CUDA_ERROR_STUB_LIBRARY
        | CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
        | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
        | CUresult::CUDA_ERROR_INVALID_PTX
        | CUresult::CUDA_ERROR_NOT_SUPPORTED => {
            "the driver is older than the CUDA libraries: update the driver, install older \
             libraries"
        }
        CUresult::CUDA_ERROR_NO_DEVICE => "the driver sees no device: check `nvidia-smi`",
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
            return TrainingError::Device(format!(
                "{NO_MEMORY}; close other programs that use it, or {WAY_OUT}"
            ));
        }
        _ => "check `nvidia-smi`",
    };
    TrainingError::Device(format!("CUDA cannot {action} ({error}); {advice}, or {WAY_OUT}"))
}

fn compilation(error: CompileError) -> TrainingError {
    TrainingError::Device(format!("NVRTC cannot compile the kernels ({error}); {WAY_OUT}"))
}
