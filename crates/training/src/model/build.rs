//! Puts a [`Network`] together, one operation after the other.

use super::layers::Kind;
use super::network::{Image, Network, Operation, Start, Tensor, TensorLayout};
use crate::TrainingError;
use crate::data::Shape;

/// Collects operations; each method appends one that reads the last buffer. Those of the layers stand beside them.
///
/// ```
/// use training::data::Shape;
/// use training::model::NetworkBuilder;
/// let mut network = NetworkBuilder::new(Shape::Flat(784));
/// network.linear("hidden", 128);
/// network.relu();
/// network.linear("output", 10);
/// assert_eq!(network.finish()?.parameters, 101_770);
/// # Ok::<(), training::TrainingError>(())
/// ```
#[derive(Debug)]
pub struct NetworkBuilder {
    network: Network,
    current: usize,
    pub(super) shape: Shape,
}

/// More than any model here needs: 8 GB of 32-bit numbers.
const MOST_PARAMETERS: usize = 2_000_000_000;

impl NetworkBuilder {
    pub fn new(input: Shape) -> Self {
        let network = Network {
            parameters: 0,
            operations: Vec::new(),
            buffers: vec![input.len()],
            tensors: Vec::new(),
            classes: 0,
        };
        Self { network, current: 0, shape: input }
    }

    /// The shape of the last buffer.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    pub(super) fn image(&self) -> Result<Image, TrainingError> {
        match self.shape {
            Shape::Image { height, width, channels } => Ok(Image { height, width, channels }),
            Shape::Flat(length) => Err(TrainingError::Model(format!(
                "a convolution or pooling needs an image, but gets {length} numbers"
            ))),
        }
    }

    pub(super) fn push(&mut self, kind: Kind, shape: Shape) {
        let output = self.network.buffers.len();
        self.network.buffers.push(shape.len());
        self.network.operations.push(Operation { kind, input: self.current, output });
        (self.current, self.shape) = (output, shape);
    }

    pub(super) fn tensor(
        &mut self,
        name: String,
        shape: Vec<usize>,
        layout: TensorLayout,
        start: Start,
    ) -> usize {
        let offset = self.network.parameters;
        let tensor = Tensor { name, offset, shape, layout, start };
        self.network.parameters += tensor.len();
        self.network.tensors.push(tensor);
        offset
    }

    /// The sum of two branches that both read the last buffer; an empty shortcut passes it on.
    ///
    /// # Errors
    /// Those of the branches, and branches of different shapes.
    pub fn residual(
        &mut self,
        branch: impl FnOnce(&mut Self) -> Result<(), TrainingError>,
        shortcut: impl FnOnce(&mut Self) -> Result<(), TrainingError>,
    ) -> Result<(), TrainingError> {
        let (start, start_shape) = (self.current, self.shape);
        shortcut(self)?;
        let (other, other_shape) = (self.current, self.shape);
        (self.current, self.shape) = (start, start_shape);
        branch(self)?;
        if self.shape != other_shape {
            return Err(TrainingError::Model(format!(
                "branches of a residual block have the shapes {:?} and {other_shape:?}",
                self.shape
            )));
        }
        self.push(Kind::Add { other }, self.shape);
        Ok(())
    }

    /// The network; what the last buffer holds are the logits.
    ///
    /// # Errors
    /// When there is no operation or fewer than two classes.
    pub fn finish(mut self) -> Result<Network, TrainingError> {
        self.network.classes = self.shape.len();
        if self.network.operations.is_empty() || self.network.classes < 2 {
            return Err(TrainingError::Model("a model needs at least two classes".into()));
        }
        if self.network.buffers.contains(&0) {
            return Err(TrainingError::Model("a layer has no numbers".into()));
        }
        if self.network.parameters > MOST_PARAMETERS {
            return Err(TrainingError::Model(format!(
                "it has {} parameters, more than {MOST_PARAMETERS}",
                self.network.parameters
            )));
        }
        Ok(self.network)
    }
}
