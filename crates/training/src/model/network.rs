//! The program of a model. Buffer 0 is the example; an operation reads one buffer (an addition
//! two) and writes a fresh one; the last one holds the logits. Parameters are offsets into one
//! vector of `parameters` numbers, so that M replicas are M such vectors one after the other.

use serde::Serialize;

/// Height, width and channels of a buffer; the channel runs fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Image {
    pub height: usize,
    pub width: usize,
    pub channels: usize,
}

impl Image {
    pub fn len(self) -> usize {
        self.positions() * self.channels
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    pub fn positions(self) -> usize {
        self.height * self.width
    }
}

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    pub kind: Kind,
    /// Buffer read.
    pub input: usize,
    /// Buffer written; each is written once.
    pub output: usize,
}

/// How a tensor's numbers are ordered in the flat vector, for files that others read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorLayout {
    Vector,
    /// `inputs` x `outputs`; where the input was an image, its arrangement.
    Linear(Option<Image>),
    /// kernel x kernel x channels in x channels out.
    Convolution,
}

/// A named part of the parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    pub name: String,
    pub offset: usize,
    pub shape: Vec<usize>,
    pub layout: TensorLayout,
    pub start: Start,
}

/// What a tensor's parameters are before the first step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Zero,
    One,
    /// Uniform in +-1/sqrt(this), the numbers that feed one output.
    FanIn(usize),
}

impl Tensor {
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A model without its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Numbers in the flat vector.
    pub parameters: usize,
    pub operations: Vec<Operation>,
    /// Numbers in each buffer, for one example.
    pub buffers: Vec<usize>,
    pub tensors: Vec<Tensor>,
    pub classes: usize,
}

impl Network {
    /// The buffer with the logits.
    pub fn logits(&self) -> usize {
        self.operations.last().map_or(0, |operation| operation.output)
    }

    /// Numbers of one example.
    pub fn inputs(&self) -> usize {
        self.buffers[0]
    }
}
