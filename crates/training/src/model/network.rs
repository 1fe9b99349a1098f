//! The program of a model. Buffer 0 is the example; an operation reads one buffer (an addition
//! two) and writes a fresh one; the last one holds the logits. Parameters are offsets into one
//! vector of `parameters` numbers, so that M replicas are M such vectors one after the other.

use super::layers::Kind;
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
