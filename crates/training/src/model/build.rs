//! Puts a [`Network`] together, one operation after the other.

use super::network::{
    Convolution, GroupNorm, Image, Kind, Linear, Network, Operation, Pool, Start, Tensor,
    TensorLayout,
};
use crate::TrainingError;
use crate::data::Shape;

/// Collects operations; each method appends one that reads the last buffer.
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
    shape: Shape,
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

    fn image(&self) -> Result<Image, TrainingError> {
        match self.shape {
            Shape::Image { height, width, channels } => Ok(Image { height, width, channels }),
            Shape::Flat(length) => Err(TrainingError::Model(format!(
                "a convolution or pooling needs an image, but gets {length} numbers"
            ))),
        }
    }

    fn push(&mut self, kind: Kind, shape: Shape) {
        let output = self.network.buffers.len();
        self.network.buffers.push(shape.len());
        self.network.operations.push(Operation { kind, input: self.current, output });
        (self.current, self.shape) = (output, shape);
    }

    fn tensor(
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

    pub fn linear(&mut self, name: &str, outputs: usize) {
        let inputs = self.shape.len();
        let image = self.image().ok();
        let (layout, start) = (TensorLayout::Linear(image), Start::FanIn(inputs));
        let weight = self.tensor(format!("{name}.weight"), vec![inputs, outputs], layout, start);
        let bias = self.tensor(format!("{name}.bias"), vec![outputs], TensorLayout::Vector, start);
        let linear = Linear { inputs, outputs, weight, bias };
        self.push(Kind::Linear(linear), Shape::Flat(outputs));
    }

    pub fn relu(&mut self) {
        self.push(Kind::Relu, self.shape);
    }

    pub fn tanh(&mut self) {
        self.push(Kind::Tanh, self.shape);
    }

    /// # Errors
    /// When the last buffer is no image, or smaller than the kernel.
    pub fn convolution(
        &mut self,
        name: &str,
        channels: usize,
        kernel: usize,
        stride: usize,
        padding: usize,
        standardised: bool,
    ) -> Result<(), TrainingError> {
        let input = self.image()?;
        let (height, width) = windows(input, kernel, stride, padding)?;
        let output = Image { height, width, channels };
        let patch = kernel * kernel * input.channels;
        let shape = vec![kernel, kernel, input.channels, channels];
        let start = Start::FanIn(patch);
        let weight = self.tensor(format!("{name}.weight"), shape, TensorLayout::Convolution, start);
        let bias = self.tensor(format!("{name}.bias"), vec![channels], TensorLayout::Vector, start);
        let convolution =
            Convolution { input, output, kernel, stride, padding, weight, bias, standardised };
        self.push(Kind::Convolution(convolution), Shape::Image { height, width, channels });
        Ok(())
    }

    /// # Errors
    /// When the groups do not divide the channels.
    pub fn group_norm(&mut self, name: &str, groups: usize) -> Result<(), TrainingError> {
        let image = self.image()?;
        if groups == 0 || !image.channels.is_multiple_of(groups) {
            return Err(TrainingError::Model(format!(
                "{groups} groups do not divide {} channels",
                image.channels
            )));
        }
        let channels = vec![image.channels];
        let vector = TensorLayout::Vector;
        let scale = self.tensor(format!("{name}.weight"), channels.clone(), vector, Start::One);
        let shift = self.tensor(format!("{name}.bias"), channels, vector, Start::Zero);
        self.push(Kind::GroupNorm(GroupNorm { image, groups, scale, shift }), self.shape);
        Ok(())
    }

    /// # Errors
    /// When the last buffer is no image, or smaller than the window.
    pub fn max_pool(&mut self, kernel: usize, stride: usize) -> Result<(), TrainingError> {
        let pool = self.pool(kernel, stride)?;
        self.push(Kind::MaxPool(pool), image_shape(pool.output));
        Ok(())
    }

    /// # Errors
    /// When the last buffer is no image, or smaller than the window.
    pub fn average_pool(&mut self, kernel: usize, stride: usize) -> Result<(), TrainingError> {
        let pool = self.pool(kernel, stride)?;
        self.push(Kind::AveragePool(pool), image_shape(pool.output));
        Ok(())
    }

    fn pool(&self, kernel: usize, stride: usize) -> Result<Pool, TrainingError> {
        let input = self.image()?;
        let (height, width) = windows(input, kernel, stride, 0)?;
        Ok(Pool { input, output: Image { height, width, ..input }, kernel, stride })
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

fn image_shape(image: Image) -> Shape {
    Shape::Image { height: image.height, width: image.width, channels: image.channels }
}

fn windows(
    input: Image,
    kernel: usize,
    stride: usize,
    padding: usize,
) -> Result<(usize, usize), TrainingError> {
    let (height, width) = (input.height + 2 * padding, input.width + 2 * padding);
    if kernel == 0 || stride == 0 || kernel > height || kernel > width {
        return Err(TrainingError::Model(format!(
            "a window of {kernel} x {kernel} with stride {stride} does not fit an image of {} x {}",
            input.height, input.width
        )));
    }
    Ok(((height - kernel) / stride + 1, (width - kernel) / stride + 1))
}
