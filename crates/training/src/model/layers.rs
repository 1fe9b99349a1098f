//! The layers as data: what each computes, where its parameters lie, what it costs, and how it is appended to a
//! network. What it does on the CPU and on a device is a file in each of those folders.

use super::build::NetworkBuilder;
use super::network::{Image, Start, TensorLayout};
use crate::TrainingError;
use crate::cost::{CPU_ROUTES, Clipping, Route, Shape as ProductShape, Work};
use crate::data::Shape;

/// y = x W + b, with W of `inputs` rows and `outputs` columns at `weight`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linear {
    pub inputs: usize,
    pub outputs: usize,
    pub weight: usize,
    pub bias: usize,
}

/// y = patches(x) W + b. A patch lists the pixels under the kernel row by row, all channels of a
/// pixel together; W has one row for each number of a patch and one column for each output
/// channel. With `standardised`, each column of W is shifted and scaled to mean zero and variance
/// 1 / rows before it is used (Qiao et al. 2019; De et al. 2022).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convolution {
    pub input: Image,
    pub output: Image,
    pub kernel: usize,
    pub stride: usize,
    pub padding: usize,
    pub weight: usize,
    pub bias: usize,
    pub standardised: bool,
}

impl Convolution {
    /// Numbers in a patch.
    pub fn patch(&self) -> usize {
        self.kernel * self.kernel * self.input.channels
    }

    pub fn weights(&self) -> usize {
        self.patch() * self.output.channels
    }

    /// The layer as products see it.
    pub(crate) fn product(&self) -> ProductShape {
        ProductShape {
            positions: self.output.positions() as f64,
            inputs: self.patch() as f64,
            outputs: self.output.channels as f64,
        }
    }
}

/// Normalises each example over groups of channels, then scales and shifts each channel
/// (Wu and He 2018).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupNorm {
    pub image: Image,
    pub groups: usize,
    pub scale: usize,
    pub shift: usize,
}

/// A window that slides over each channel, without padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    pub input: Image,
    pub output: Image,
    pub kernel: usize,
    pub stride: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Linear(Linear),
    Relu,
    Tanh,
    Convolution(Convolution),
    GroupNorm(GroupNorm),
    MaxPool(Pool),
    AveragePool(Pool),
    /// The sum of the input and another buffer.
    Add {
        other: usize,
    },
}

impl Kind {
    /// Multiplications of one example's forward pass.
    pub(crate) fn multiplications(&self) -> usize {
        match self {
            Self::Linear(layer) => layer.inputs * layer.outputs,
            Self::Convolution(layer) => layer.output.positions() * layer.weights(),
            _ => 0,
        }
    }

    /// Numbers that the CPU remembers of one example between the passes.
    pub(crate) fn remembered(&self) -> usize {
        match self {
            Self::Convolution(layer) => layer.output.positions() * layer.patch(),
            Self::GroupNorm(layer) => layer.image.len(),
            Self::MaxPool(layer) => layer.output.len(),
            _ => 0,
        }
    }

    /// How its gradients are clipped; nothing for what has no parameters.
    pub(crate) fn clipping(&self) -> Option<Clipping> {
        Some(match self {
            Self::Linear(layer) => Clipping {
                words: format!("linear {} to {}", layer.inputs, layer.outputs),
                parameters: (layer.inputs + 1) * layer.outputs,
                work: Work::Product {
                    shape: ProductShape {
                        positions: 1.0,
                        inputs: layer.inputs as f64,
                        outputs: layer.outputs as f64,
                    },
                    on_cpu: &[Route::Ghost],
                    on_device: &[Route::Ghost],
                },
            },
            Self::Convolution(layer) => Clipping {
                words: format!(
                    "convolution {0} x {0}, {1} to {2} channels, {3} x {4} positions",
                    layer.kernel,
                    layer.input.channels,
                    layer.output.channels,
                    layer.output.height,
                    layer.output.width
                ),
                parameters: layer.weights() + layer.output.channels,
                // A device has kernels for one route.
                work: Work::Product {
                    shape: layer.product(),
                    on_cpu: CPU_ROUTES,
                    on_device: &[Route::Kept],
                },
            },
            Self::GroupNorm(layer) => Clipping {
                words: format!("group norm, {} channels", layer.image.channels),
                parameters: 2 * layer.image.channels,
                work: Work::Vector { multiplications: layer.image.len() as f64 },
            },
            _ => return None,
        })
    }
}

impl NetworkBuilder {
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
