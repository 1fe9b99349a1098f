use std::slice::{from_mut, from_ref};

/// A group of identical records beside the canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    pub records: u64,
    /// In every batch; otherwise each record is sampled like the canary.
    pub always: bool,
}

/// Chooses what DP-SGD is run on: the gradients of the canary and of the other records, and a
/// regulariser. Gradients are functions of the step and of the model; nothing else is asked of
/// them, not even that a loss exists. They are clipped by the trainer.
pub trait Crafter: Sync {
    /// Number of parameters of the model.
    fn dimension(&self) -> usize;

    /// The canary's gradient; `gradient` arrives as zeros.
    fn canary(&self, step: u64, model: &[f64], gradient: &mut [f64]);

    /// The other records.
    fn groups(&self) -> &[Group] {
        &[]
    }

    /// The gradient of each record of a group; `gradient` arrives as zeros.
    fn group(&self, _group: usize, _step: u64, _model: &[f64], _gradient: &mut [f64]) {}

    /// The same for several models of one parameter at once. Worth writing where a gradient is
    /// costly: a loop over slices is turned into vector code.
    fn group_abreast(&self, group: usize, step: u64, models: &[f64], gradients: &mut [f64]) {
        for (model, gradient) in models.iter().zip(gradients) {
            self.group(group, step, from_ref(model), from_mut(gradient));
        }
    }

    /// Moves the model along the regulariser's gradient, `model - rate * gradient`. The
    /// regulariser does not depend on data: no clipping, no noise, no privacy cost.
    fn regularise(&self, _step: u64, _learning_rate: f64, _model: &mut [f64]) {}

    /// Factors by which the stored model's coordinates differ from the mathematical ones, for
    /// games whose numbers would overflow. Gradients are given unscaled.
    fn scale(&self) -> Option<&[f64]> {
        None
    }
}
