//! Random runs of the whole domain.

use super::generator::Generator;
use vocabulary::{Adjacency, Run};

/// A run of one to three phases; mostly one record, sometimes a group or the substitution pair.
pub(crate) fn any(generator: &mut Generator) -> Run {
    let mut builder = Run::builder();
    let phases = if generator.uniform() < 0.75 { 1 } else { 2 + (generator.word() % 2) as usize };
    for _ in 0..phases {
        let sigma = generator.log_uniform(0.2, 100.0);
        let q = if generator.uniform() < 0.05 { 1.0 } else { generator.log_uniform(1e-7, 1.0) };
        let steps = generator.log_uniform(1.0, 1e9 / phases as f64).round() as u64;
        builder = builder.phase(sigma, q, steps.max(1));
    }
    if generator.uniform() < 0.15 {
        builder = builder.group_size(2 + (generator.word() % 4) as u32);
    }
    if generator.uniform() < 0.2 {
        builder = builder.adjacency(Adjacency::Substitute);
    }
    builder.build().expect("the random run is in range")
}
