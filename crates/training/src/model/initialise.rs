//! Where a model starts: weights and biases uniform in +-1/sqrt(fan in) (PyTorch's default for
//! linear and convolutional layers), normalisations at one and zero, from the stream
//! (seed, initialisation, replica), row 0, one 64-bit word for each parameter.

use super::{Network, Start};
use random::{Purpose, Stream};

impl Network {
    /// The parameters a replica starts from.
    pub fn initial_parameters(&self, seed: u64, replica: u64) -> Vec<f32> {
        let stream = Stream::new(seed, Purpose::INITIALISATION, replica);
        let mut parameters = vec![0.0; self.parameters];
        for tensor in &self.tensors {
            let part = &mut parameters[tensor.offset..tensor.offset + tensor.len()];
            match tensor.start {
                Start::Zero => {}
                Start::One => part.fill(1.0),
                Start::FanIn(fan_in) => {
                    let bound = 1.0 / (fan_in as f64).sqrt();
                    for (index, value) in (tensor.offset as u64..).zip(part) {
                        *value = ((2.0 * stream.uniform(0, index) - 1.0) * bound) as f32;
                    }
                }
            }
        }
        parameters
    }
}
