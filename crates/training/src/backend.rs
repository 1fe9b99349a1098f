//! What every device offers.

use crate::data::Dataset;
use crate::{OptimizerState, StepStatistics, TrainingError};

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

    /// For every replica, the share of records whose class has the largest logit.
    ///
    /// # Errors
    /// Trouble with the device.
    fn accuracies(&mut self, data: &Dataset) -> Result<Vec<f64>, TrainingError>;

    /// Parameters and optimiser memory of every replica, for a checkpoint.
    ///
    /// # Errors
    /// Trouble with the device.
    fn states(&mut self) -> Result<Vec<ReplicaState>, TrainingError>;

    /// Puts all replicas back to a saved state after `steps_done` steps.
    ///
    /// # Errors
    /// When the state is that of another model, or trouble with the device.
    fn restore(&mut self, steps_done: u64, states: Vec<ReplicaState>) -> Result<(), TrainingError>;

    /// Keeps losses, norms and batch sizes of the last step from now on, where the device can.
    fn keep_statistics(&mut self) {}

    /// Statistics of the last step of every replica, where the device keeps them.
    fn statistics(&self) -> Option<&[StepStatistics]> {
        None
    }
}

/// What has to be saved of one replica to go on as if nothing had happened.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaState {
    pub parameters: Vec<f32>,
    pub optimizer: OptimizerState,
}
