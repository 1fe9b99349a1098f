//! What one example costs, for choosing how the work is cut. Cutting changes rounding only.

use crate::ledger::DeviceRecord;
use crate::model::{Convolution, Kind, Network};
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

/// A convolution's.
pub(crate) fn of_convolution(layer: &Convolution) -> Shape {
    Shape {
        positions: layer.output.positions() as f64,
        inputs: layer.patch() as f64,
        outputs: layer.output.channels as f64,
    }
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
        let each = self.operations.iter().map(|operation| match &operation.kind {
            Kind::Linear(layer) => layer.inputs * layer.outputs,
            Kind::Convolution(layer) => layer.output.positions() * layer.weights(),
            _ => 0,
        });
        each.sum()
    }

    /// Numbers that one example occupies on its way through forward and backward.
    pub fn footprint(&self) -> usize {
        let buffers: usize = self.buffers.iter().sum();
        let patches = self.operations.iter().map(|operation| match &operation.kind {
            Kind::Convolution(layer) => layer.output.positions() * layer.patch(),
            Kind::GroupNorm(layer) => layer.image.len(),
            Kind::MaxPool(layer) => layer.output.len(),
            _ => 0,
        });
        2 * buffers + patches.sum::<usize>()
    }

    /// Numbers of one example's gradients that the CPU keeps until the clipped sum.
    pub(crate) fn kept(&self) -> usize {
        let kept = self.operations.iter().map(|operation| match &operation.kind {
            Kind::Convolution(layer)
                if cheapest(of_convolution(layer), CPU_ROUTES, Rates::CPU) == Route::Kept =>
            {
                layer.weights()
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
