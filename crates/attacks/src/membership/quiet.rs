//! Places where a canary is not drowned: coordinates that hardly move, directions that hardly vary.

use super::target::Target;
use crate::AttackError;
use random::{Purpose, Stream};
use std::sync::Arc;
use training::data::Dataset;
use training::{CpuReplicas, Replica, Replicas, Start};

/// Coordinates in the order of their squared updates in one training without noise (the smallest
/// first; equal ones in the order of `tie`). GC-S of Cebere, Bellet and Papernot, ICLR 2025.
/// Costs one training.
pub(super) fn quiet_coordinates(
    target: &Target,
    start: &Start,
    tie: &[u32],
) -> Result<Vec<u32>, AttackError> {
    let mut recipe = target.recipe.clone();
    for phase in &mut recipe.phases {
        phase.noise_multiplier = 0.0;
    }
    let steps = recipe.steps();
    // Batches that no replica of the game has.
    let start = Start::Fixed(target.start_parameters(start).into());
    let replica = Replica { start, ..Replica::new(u64::MAX) };
    let mut replicas = CpuReplicas::new(Arc::new(recipe), Arc::clone(&target.data), vec![replica])?;
    let mut before = replicas.parameters(0).to_vec();
    let mut moved = vec![0.0_f64; before.len()];
    for _ in 0..steps {
        replicas.advance(1)?;
        let after = replicas.parameters(0);
        for ((moved, before), after) in moved.iter_mut().zip(&mut before).zip(after) {
            let step = f64::from(after - *before);
            *moved += step * step;
            *before = *after;
        }
    }
    let mut order = tie.to_vec();
    order.sort_by(|a, b| moved[*a as usize].total_cmp(&moved[*b as usize]));
    Ok(order)
}

/// Records looked at, and rounds of the iteration: enough for a direction of small variance, which
/// is all that a canary needs.
const SAMPLE: usize = 2_000;
const ROUNDS: usize = 60;

/// `count` orthogonal directions in which the records' second moment is small, each of norm 1:
/// orthogonal iteration with |X|^2 I - X'X. Costs 2 x SAMPLE x ROUNDS x width x count.
pub(super) fn quiet_directions(data: &Dataset, count: usize, seed: u64) -> Vec<Vec<f64>> {
    let width = data.shape.len();
    let rows = data.len().min(SAMPLE);
    let row = |index: usize| data.row(index * data.len() / rows.max(1));
    let top = largest(&row, rows, width);
    let stream = Stream::new(seed, Purpose::SHUFFLE, u64::MAX - 1);
    let mut found: Vec<Vec<f64>> = Vec::with_capacity(count);
    for number in 0..count {
        let mut direction = vec![0.0; width];
        stream.fill_gaussians(number as u64, 0, &mut direction);
        for _ in 0..ROUNDS {
            let product = second_moment(&row, rows, &direction);
            for (direction, product) in direction.iter_mut().zip(product) {
                *direction = top * *direction - product;
            }
            for earlier in &found {
                let shared = dot(earlier, &direction);
                for (direction, earlier) in direction.iter_mut().zip(earlier) {
                    *direction -= shared * earlier;
                }
            }
            normalise(&mut direction);
        }
        found.push(direction);
    }
    found
}

/// A little above the largest eigenvalue of X'X, by power iteration.
fn largest<'a>(row: &impl Fn(usize) -> &'a [f32], rows: usize, width: usize) -> f64 {
    let mut direction = vec![1.0 / (width.max(1) as f64).sqrt(); width];
    let mut value = 0.0;
    for _ in 0..20 {
        direction = second_moment(row, rows, &direction);
        value = normalise(&mut direction);
    }
    1.05 * value
}

/// X'X v.
fn second_moment<'a>(row: &impl Fn(usize) -> &'a [f32], rows: usize, v: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; v.len()];
    for index in 0..rows {
        let row = row(index);
        let along: f64 = row.iter().zip(v).map(|(x, v)| f64::from(*x) * v).sum();
        for (out, x) in out.iter_mut().zip(row) {
            *out += along * f64::from(*x);
        }
    }
    out
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Scales to norm 1 and returns the norm it had.
fn normalise(v: &mut [f64]) -> f64 {
    let norm = dot(v, v).sqrt();
    if norm > 0.0 {
        v.iter_mut().for_each(|x| *x /= norm);
    }
    norm
}

#[cfg(test)]
mod tests {
    use super::*;
    use training::data::{Provenance, Shape};

    /// Columns with deviations 1, 2, 3 and a constant zero: the quiet direction is the zero, the
    /// next one the first column.
    #[test]
    fn the_directions_are_those_of_least_variance() {
        let stream = Stream::new(1, Purpose::NOISE, 0);
        let records = 500;
        let mut features = Vec::new();
        for record in 0..records {
            let mut z = [0.0; 3];
            stream.fill_gaussians(record, 0, &mut z);
            features.extend([z[0], 2.0 * z[1], 0.0, 3.0 * z[2]].map(|x| x as f32));
        }
        let data = Dataset {
            features,
            labels: vec![0; records as usize],
            classes: 2,
            shape: Shape::Flat(4),
            columns: Vec::new(),
            provenance: Provenance::default(),
        };
        let found = quiet_directions(&data, 2, 7);
        assert!(found[0][2].abs() > 0.99, "{found:?}");
        assert!(found[1][0].abs() > 0.95, "{found:?}");
        assert!(dot(&found[0], &found[1]).abs() < 1e-9);
    }
}
