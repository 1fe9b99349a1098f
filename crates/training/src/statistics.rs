//! What a step looked like. Computed from records: not private, and marked so wherever shown.

/// One step of one replica.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepStatistics {
    /// Records in the batch, canaries included.
    pub batch_size: usize,
    /// Gradients longer than the clip norm.
    pub clipped: usize,
    pub loss_sum: f64,
    pub correct: usize,
    /// Gradient norms before clipping.
    pub norms: Vec<f64>,
}
