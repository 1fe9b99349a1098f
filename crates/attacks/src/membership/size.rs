//! How many trials make a chunk: a few seconds of work on the kind of device, within its memory. A
//! function of the plan alone, so that chunks are the same on every machine.

use super::conditions::Others;
use super::target::Target;

/// Arithmetic of a chunk (operations), numbers it may hold, and the most trials: a kill loses at
/// most these.
const CPU: (f64, f64, f64) = (2e10, 2.5e8, 512.0);
const CUDA: (f64, f64, f64) = (4e13, 5e9, 4096.0);

/// Trials of two trainings each.
pub(super) fn chunk_trials(target: &Target, others: Others, device: &str) -> u64 {
    let recipe = &target.recipe;
    let network = &recipe.network;
    let batch = if others == Others::Zero { 1.0 } else { recipe.normaliser(0) };
    // Forward and backward are three products; a Gaussian or a coin is some twenty operations.
    let step = 6.0 * batch * network.multiplications() as f64
        + 30.0 * network.parameters as f64
        + 4.0 * target.data.len() as f64
        + 20_000.0;
    let work = 2.0 * step * recipe.steps() as f64;
    let numbers = 2.0 * (4.0 + recipe.optimizer.moments() as f64) * network.parameters as f64;
    let (operations, room, most) = if device == "cuda" { CUDA } else { CPU };
    (operations / work).min(room / numbers).clamp(1.0, most) as u64
}
