//! What one example costs, for choosing how the work is cut. Cutting changes rounding only.

use crate::ledger::DeviceRecord;
use crate::model::Network;
use serde::Serialize;

/// A way to a layer's norms and clipped sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Route {
    Kept,
    Again,
    Ghost,
}

impl Route {
    pub const ALL: [Self; 3] = [Self::Kept, Self::Again, Self::Ghost];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Again => "again",
            Self::Ghost => "ghost",
        }
    }
}

/// What a route costs for one record, beside the passes forward and back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RouteCost {
    pub route: Route,
    pub multiplications: f64,
    /// Read and written.
    pub bytes_moved: f64,
    /// That wait for the clipping factor.
    pub bytes_kept: f64,
    pub microseconds: f64,
}

/// Multiplications and bytes per second.
#[derive(Clone, Copy)]
pub(crate) struct Rates {
    pub(crate) multiplications: f64,
    pub(crate) bytes: f64,
}

impl Rates {
    /// One core with 512-bit vectors. A constant: the route must not depend on the machine.
    pub(crate) const CPU: Self = Self { multiplications: 3e10, bytes: 1e10 };

    /// What products reached: on a device, convolutions of WideResNet-16-4 on an H200 and its copy
    /// rate (docs/results/device-speed.md).
    pub(crate) fn of(device: &DeviceRecord) -> Self {
        let multiplications = match (device.kind.as_str(), device.precision.as_str()) {
            ("cpu", _) => return Self::CPU,
            (_, "tf32") => 4e13,
            (_, "bf16") => 5e13,
            _ => 2.3e13,
        };
        Self { multiplications, bytes: 4.2e12 }
    }
}

/// A layer as products see it.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) positions: f64,
    pub(crate) inputs: f64,
    pub(crate) outputs: f64,
}

/// How the gradients of a layer are clipped.
pub(crate) struct Clipping {
    /// The layer in words.
    pub(crate) words: String,
    pub(crate) parameters: usize,
    pub(crate) work: Work,
}

pub(crate) enum Work {
    /// The gradient is a product of inputs and slopes, with the routes that there are.
    Product { shape: Shape, on_cpu: &'static [Route], on_device: &'static [Route] },
    /// The gradient is a vector: formed on the way back, and kept.
    Vector { multiplications: f64 },
}

/// The routes that convolutions have on the CPU. Ghosts lose the norm to cancellation in f32.
pub(crate) const CPU_ROUTES: &[Route] = &[Route::Kept, Route::Again];

/// The cheapest of the routes that there are.
pub(crate) fn cheapest(shape: Shape, routes: &[Route], rates: Rates) -> Route {
    let costs = routes.iter().map(|route| shape.cost(*route, rates));
    let best = costs.min_by(|a, b| a.microseconds.total_cmp(&b.microseconds));
    best.map_or(Route::Kept, |cost| cost.route)
}

impl Shape {
    pub(crate) fn cost(&self, route: Route, rates: Rates) -> RouteCost {
        let Self { positions, inputs, outputs } = *self;
        let (formed, size) = (positions * inputs * outputs, 4.0 * inputs * outputs);
        let rows = 4.0 * positions * (inputs + outputs);
        let (multiplications, bytes_moved, bytes_kept) = match route {
            // Written, read for the norm, read for the sum.
            Route::Kept => (formed, rows + 3.0 * size, size),
            // The norm is taken where the gradient is formed; what waits is there already.
            Route::Again => (2.0 * formed, 2.0 * rows, 0.0),
            Route::Ghost => {
                let inner = positions * positions * (inputs + outputs);
                let square = if positions > 1.0 { 16.0 * positions * positions } else { 0.0 };
                (inner + formed, 2.0 * rows + square, 0.0)
            }
        };
        let seconds = multiplications / rates.multiplications + bytes_moved / rates.bytes;
        RouteCost { route, multiplications, bytes_moved, bytes_kept, microseconds: 1e6 * seconds }
    }
}

impl Network {
    /// Multiplications of one forward pass of one example.
    pub fn multiplications(&self) -> usize {
        self.operations.iter().map(|operation| operation.kind.multiplications()).sum()
    }

    /// Numbers that one example occupies on its way through forward and backward.
    pub(crate) fn footprint(&self) -> usize {
        let buffers: usize = self.buffers.iter().sum();
        let remembered = self.operations.iter().map(|operation| operation.kind.remembered());
        2 * buffers + remembered.sum::<usize>()
    }

    /// Numbers of one example's gradients that the CPU keeps until the clipped sum.
    pub(crate) fn kept(&self) -> usize {
        let kept = self.operations.iter().filter_map(|operation| operation.kind.clipping());
        let kept = kept.map(|layer| match layer.work {
            Work::Product { shape, on_cpu, .. }
                if cheapest(shape, on_cpu, Rates::CPU) == Route::Kept =>
            {
                (shape.inputs * shape.outputs) as usize
            }
            _ => 0,
        });
        kept.sum()
    }
}

/// Multiplications of a batch that are worth a lane of their own.
const LANE: f64 = 8_388_608.0;

/// Numbers that all lanes together may occupy: 2 GB.
const MEMORY: usize = 1 << 29;

/// Lanes for a single model: the same on every machine, so that results do not depend on the
/// number of cores.
pub(crate) fn lanes(network: &Network, batch: f64, micro_batch: usize) -> usize {
    let worth = (batch * network.multiplications() as f64 / LANE).clamp(1.0, 16.0) as usize;
    let each = micro_batch * (network.footprint() + network.kept()) + network.parameters;
    let room = MEMORY / each;
    worth.min(room.max(1))
}
