//! Which operations are done together, where buffers are stored, and what is kept of each example.
//!
//! A group normalisation reads through the ReLU before it; a convolution adds the other branch of
//! a residual block; an activation works in place on what a layer writes. The gradients of
//! convolutions and normalisations are kept for each example, one after the other; their norms and
//! clipped sum are taken from there, so that what is clipped is what is added, to the bit.

use super::first::First;
use super::group_norm::Streamed;
use super::layer;
use super::layer::Layer;
use crate::model::{Convolution, Image, Kind, Network};

/// What the device makes of a network.
pub(super) struct Plan {
    /// What each operation does.
    pub(super) layers: Vec<Box<dyn Layer>>,
    /// The buffer that holds each buffer's numbers, and the one that holds their gradient.
    pub(super) storage: Vec<usize>,
    pub(super) gradients: Vec<usize>,
    /// Operations that another one does.
    pub(super) skipped: Vec<bool>,
    /// The buffer that each operation reads.
    pub(super) sources: Vec<usize>,
    /// Normalisations that read through a ReLU.
    pub(super) active: Vec<bool>,
    /// The later normalisation of the same numbers, which the earlier one does.
    pub(super) twins: Vec<Option<usize>>,
    /// The stride at which a normalisation's results are there, in rows and in columns: 2 where a
    /// convolution of single pixels reads every second one and nobody reads the others.
    pub(super) every: Vec<usize>,
    /// Such convolutions, as they see what is there.
    pub(super) dense: Vec<Option<Convolution>>,
    /// What a convolution adds to its result.
    pub(super) other: Vec<Option<usize>>,
    /// Convolutions that `convolution.cu` computes.
    pub(super) implicit: Vec<bool>,
    /// Convolutions of the examples that `first.cu` computes; others write their patches down.
    pub(super) direct: Vec<bool>,
    /// Channels of the examples, where `first.cu` reads them.
    pub(super) planes: Option<usize>,
    /// Where each operation's gradient begins within an example's.
    pub(super) kept: Vec<usize>,
    /// Numbers kept of each example.
    pub(super) kept_stride: usize,
    /// Parts of both the parameters and the kept numbers: (parameter, kept, length).
    pub(super) runs: Vec<(usize, usize, usize)>,
}

/// What a device can do.
#[derive(Clone, Copy)]
pub(super) struct Abilities {
    /// It has what `convolution.cu` needs.
    pub(super) tensor_cores: bool,
    /// It has the shared memory that `norm.cu` needs.
    pub(super) streams: bool,
}

impl Abilities {
    pub(super) const ALL: Self = Self { tensor_cores: true, streams: true };
}

/// Channels come in groups of this many in `convolution.cu`, positions are divided by
/// multiplication below this bound.
const CHANNELS: usize = 16;
const MOST_POSITIONS: usize = 1 << 15;
/// Kept tensors begin at multiples of this.
const ALIGNED: usize = 4;

fn suits(layer: &Convolution) -> bool {
    layer.input.channels.is_multiple_of(CHANNELS)
        && layer.output.channels.is_multiple_of(CHANNELS)
        && layer.input.positions() < MOST_POSITIONS
        && layer.output.positions() < MOST_POSITIONS
}

impl Plan {
    /// `fused`: the whole net is one kernel and every buffer its own.
    pub(super) fn new(network: &Network, fused: bool, can: Abilities) -> Self {
        let (count, buffers) = (network.operations.len(), network.buffers.len());
        let mut plan = Self {
            layers: network.operations.iter().map(|operation| layer(&operation.kind)).collect(),
            storage: (0..buffers).collect(),
            gradients: (0..buffers).collect(),
            skipped: vec![false; count],
            sources: network.operations.iter().map(|operation| operation.input).collect(),
            active: vec![false; count],
            twins: vec![None; count],
            every: vec![1; count],
            dense: vec![None; count],
            other: vec![None; count],
            implicit: vec![false; count],
            direct: vec![false; count],
            planes: None,
            kept: vec![0; count],
            kept_stride: 0,
            runs: Vec::new(),
        };
        if fused {
            return plan;
        }
        let mut readers = vec![0; buffers];
        let mut writer = vec![None; buffers];
        for (number, operation) in network.operations.iter().enumerate() {
            readers[operation.input] += 1;
            if let Kind::Add { other } = operation.kind {
                readers[other] += 1;
            }
            writer[operation.output] = Some(number);
        }
        for (number, operation) in network.operations.iter().enumerate() {
            if let Kind::Convolution(layer) = &operation.kind {
                plan.implicit[number] = can.tensor_cores && suits(layer);
                plan.direct[number] = operation.input == 0 && First::suits(layer);
                if plan.direct[number] {
                    plan.planes = Some(layer.input.channels);
                }
            }
            plan.fuse(network, number, &readers, &writer);
        }
        if can.streams {
            plan.find_twins(network);
            plan.leave_out(network, &readers);
        }
        plan.keep();
        plan
    }

    fn fuse(
        &mut self,
        network: &Network,
        number: usize,
        readers: &[usize],
        writer: &[Option<usize>],
    ) {
        let operation = &network.operations[number];
        let (input, output) = (operation.input, operation.output);
        let Some(before) = writer[input].filter(|_| readers[input] == 1) else { return };
        match (&network.operations[before].kind, &operation.kind) {
            (Kind::Relu, Kind::GroupNorm(_)) if self.storage[input] == input => {
                self.skipped[before] = true;
                self.active[number] = true;
                self.sources[number] = network.operations[before].input;
            }
            (Kind::Linear(_) | Kind::Convolution(_), Kind::Relu | Kind::Tanh) => {
                // A normalisation that reads through the ReLU needs what is before it.
                let next = network.operations.iter().find(|next| next.input == output);
                let through = matches!(operation.kind, Kind::Relu)
                    && readers[output] == 1
                    && next.is_some_and(|next| matches!(next.kind, Kind::GroupNorm(_)));
                if !through {
                    self.storage[output] = input;
                    self.gradients[output] = input;
                }
            }
            (Kind::Convolution(_), Kind::Add { other })
                if self.implicit[before]
                    && *other != input
                    && writer[*other].is_none_or(|there| there < before) =>
            {
                self.skipped[number] = true;
                self.other[before] = Some(*other);
                self.storage[input] = output;
                self.gradients[input] = output;
                let only = readers[*other] == 1;
                let made = writer[*other].map(|there| &network.operations[there].kind);
                if only && matches!(made, Some(Kind::Convolution(_))) {
                    self.gradients[*other] = output;
                }
            }
            _ => {}
        }
    }

    /// Both branches of a residual block normalise its input: their statistics are the same.
    fn find_twins(&mut self, network: &Network) {
        for (number, operation) in network.operations.iter().enumerate() {
            let Kind::GroupNorm(layer) = operation.kind else { continue };
            if self.skipped[number] || Streamed::of(&layer).is_none() {
                continue;
            }
            let later = (number + 1..network.operations.len()).find(|later| {
                let Kind::GroupNorm(other) = network.operations[*later].kind else { return false };
                self.sources[*later] == self.sources[number]
                    && self.active[*later] == self.active[number]
                    && (other.image, other.groups) == (layer.image, layer.groups)
            });
            if let Some(later) = later {
                self.twins[number] = Some(later);
                self.skipped[later] = true;
            }
        }
    }

    /// Normalisations before a convolution of single pixels write what it reads.
    fn leave_out(&mut self, network: &Network, readers: &[usize]) {
        for (number, operation) in network.operations.iter().enumerate() {
            let Kind::GroupNorm(layer) = operation.kind else { continue };
            if Streamed::of(&layer).is_none() || readers[operation.output] != 1 {
                continue;
            }
            let reader = network.operations.iter().position(|next| next.input == operation.output);
            let Some(reader) = reader.filter(|reader| self.implicit[*reader]) else { continue };
            let Kind::Convolution(next) = network.operations[reader].kind else { continue };
            if (next.kernel, next.padding) == (1, 0) && next.stride > 1 {
                let input = Image { channels: next.input.channels, ..next.output };
                let dense = Convolution { input, stride: 1, ..next };
                self.every[number] = next.stride;
                self.dense[reader] = Some(dense);
                self.layers[reader] = Box::new(dense);
            }
        }
    }

    fn keep(&mut self) {
        for (number, layer) in self.layers.iter().enumerate() {
            let Some((parameter, length)) = layer.kept() else { continue };
            let begin = self.kept_stride.next_multiple_of(ALIGNED);
            self.kept[number] = begin;
            self.kept_stride = begin + length;
            match self.runs.last_mut() {
                Some((first, kept, long))
                    if *first + *long == parameter && *kept + *long == begin =>
                {
                    *long += length;
                }
                _ => self.runs.push((parameter, begin, length)),
            }
        }
        self.kept_stride = self.kept_stride.next_multiple_of(32);
    }

    /// Whether a convolution needs no room for its patches.
    pub(super) fn without_patches(&self, number: usize) -> bool {
        self.implicit[number] || self.direct[number]
    }

    /// Whether a buffer has activations of its own: it is the storage of itself and is written.
    pub(super) fn owns(&self, network: &Network, buffer: usize) -> bool {
        self.storage[buffer] == buffer && !self.passed_over(network, buffer)
    }

    /// Whether a buffer has gradients of its own.
    pub(super) fn owns_gradient(&self, network: &Network, buffer: usize) -> bool {
        buffer > 0 && self.gradients[buffer] == buffer && !self.passed_over(network, buffer)
    }

    /// The result of a ReLU that a normalisation reads through is nowhere.
    fn passed_over(&self, network: &Network, buffer: usize) -> bool {
        let mut operations = network.operations.iter().zip(&self.skipped);
        operations.any(|(operation, skipped)| {
            *skipped && operation.output == buffer && matches!(operation.kind, Kind::Relu)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Abilities, Plan};
    use crate::data::Shape;
    use crate::model::{ActivationName, Kind, ModelDescription};

    #[test]
    fn residual_blocks_have_no_operation_of_their_own() {
        let model = ModelDescription::WideResnet { depth: 16, width: 4, groups: 16 };
        let shape = Shape::Image { height: 32, width: 32, channels: 3 };
        let network = model.network(shape, 10).unwrap();
        let plan = Plan::new(&network, false, Abilities::ALL);
        // The first normalisation of each stage's first block does that of the other branch, too.
        let later: Vec<usize> = plan.twins.iter().flatten().copied().collect();
        assert_eq!(later.len(), 3);
        for (first, later) in plan.twins.iter().enumerate().filter_map(|(i, t)| Some((i, (*t)?))) {
            assert!(first < later && plan.sources[first] == plan.sources[later]);
        }
        for (number, operation) in network.operations.iter().enumerate() {
            let joined = matches!(operation.kind, Kind::Relu | Kind::Add { .. });
            let done = joined || later.contains(&number);
            assert_eq!(plan.skipped[number], done, "{number}: {:?}", operation.kind);
            if let Kind::Convolution(layer) = &operation.kind {
                assert_eq!(plan.implicit[number], layer.input.channels != 3);
                assert_eq!(plan.direct[number], layer.input.channels == 3);
            }
        }
        // Shortcuts that halve the image read every second pixel of every second row.
        assert_eq!(plan.every.iter().filter(|every| **every == 2).count(), 2);
        for (dense, operation) in plan.dense.iter().zip(&network.operations) {
            let Kind::Convolution(layer) = &operation.kind else { continue };
            assert_eq!(dense.is_some(), layer.kernel == 1 && layer.stride == 2);
            if let Some(dense) = dense {
                assert_eq!((dense.input.positions(), dense.stride), (dense.output.positions(), 1));
                assert_eq!(dense.weights(), layer.weights());
            }
        }
        // All but the last layer is kept, as one run.
        let output = 256 * 10 + 10;
        assert_eq!(plan.runs, [(0, 0, network.parameters - output)]);
        // Without tensor cores additions stay, and every buffer that is read is written.
        let nothing = Abilities { tensor_cores: false, streams: false };
        let plain = Plan::new(&network, false, nothing);
        assert!(plain.twins.iter().all(Option::is_none));
        assert!(plain.every.iter().all(|every| *every == 1));
        assert!(plain.other.iter().all(Option::is_none));
        for operation in &network.operations {
            if matches!(operation.kind, Kind::Add { .. }) {
                assert!(plain.owns(&network, operation.output));
            }
        }
    }

    #[test]
    fn activations_of_layers_work_in_place() {
        let model = ModelDescription::Cnn { activation: ActivationName::Relu, groups: 0 };
        let shape = Shape::Image { height: 28, width: 28, channels: 1 };
        let network = model.network(shape, 10).unwrap();
        let plan = Plan::new(&network, false, Abilities::ALL);
        for operation in &network.operations {
            if matches!(operation.kind, Kind::Relu) {
                assert_eq!(plan.storage[operation.output], operation.input);
            }
        }
        assert_eq!(plan.implicit.iter().filter(|implicit| **implicit).count(), 1);
        // Its windows of 8 x 8 with stride 2 are not those of `first.cu`.
        assert!(!plan.direct.contains(&true));
        // Two convolutions one after the other in the parameters.
        assert_eq!(plan.runs.len(), 1);
    }
}
