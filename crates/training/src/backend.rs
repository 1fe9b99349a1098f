//! What every device offers.

use crate::data::Dataset;
use crate::{StepStatistics, TrainingError};

/// M models in training on one device. Parameters are M flat vectors, one after the other in
/// [`Replicas::all_parameters`]; what a step does is fixed by the recipe and specified in the
/// crate's documentation, so that devices differ by rounding only.
pub trait Replicas {
    /// M.
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Steps that all replicas have taken.
    fn steps_done(&self) -> u64;

    /// Takes `steps` more steps (at most up to the recipe's last one) in every replica.
    ///
    /// # Errors
    /// A gradient that is not finite, or trouble with the device.
    fn advance(&mut self, steps: u64) -> Result<(), TrainingError>;

    /// Copies the parameters of all replicas, one vector after the other.
    ///
    /// # Errors
    /// Trouble with the device.
    fn all_parameters(&mut self, out: &mut Vec<f32>) -> Result<(), TrainingError>;

    /// Loss of every record of `data` under every replica: replica by replica.
    ///
    /// # Errors
    /// Trouble with the device.
    fn losses(&mut self, data: &Dataset, out: &mut Vec<f32>) -> Result<(), TrainingError>;

    /// Statistics of the last step of every replica, where the device keeps them.
    fn statistics(&self) -> Option<&[StepStatistics]> {
        None
    }
}
