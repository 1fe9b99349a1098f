//! Inner products of clipped gradients, for telling apart the values that a record could have.
//!
//! The gradient of a linear layer is the outer product of its input x and the gradient d of its
//! output, so two examples have the inner product (<x, x'> + 1) <d, d'>: the Gram matrix of n
//! examples costs n^2 (inputs + outputs) multiplications for each layer and no gradient is ever
//! made. Other layers have their gradients made one by one. Sums are in f64, of numbers that were
//! computed in f32 as in training; clipping is training's own.

use super::super::vectorise::vectorised;
use super::{Executor, clipping_factor};
use crate::model::Kind;

/// Lanes of a partial sum.
const LANES: usize = 8;

impl Executor {
    /// Gram matrices of the clipped gradients of the loaded examples, for consecutive groups of
    /// `group` examples: `group` x `group` numbers each, one group after the other. Belongs after
    /// [`Executor::prepare`].
    ///
    /// Says whether everything was finite.
    ///
    /// # Panics
    /// If `examples` are more than were made room for, or no multiple of `group`.
    pub fn clipped_grams(
        &mut self,
        parameters: &[f32],
        examples: usize,
        group: usize,
        clip_norm: f64,
        out: &mut Vec<f64>,
    ) -> bool {
        assert!(examples <= self.capacity && group > 0 && examples.is_multiple_of(group));
        out.clear();
        out.resize(examples * group, 0.0);
        if self
            .network
            .operations
            .iter()
            .any(|operation| matches!(operation.kind, Kind::Convolution(_) | Kind::GroupNorm(_)))
        {
            return self.explicit_grams(parameters, examples, group, clip_norm, out);
        }
        self.forward(parameters, examples);
        self.loss(examples);
        self.backward(parameters, examples);
        self.norms(examples);
        let mut work = Work::default();
        for (number, gram) in out.chunks_exact_mut(group * group).enumerate() {
            let first = number * group;
            for operation in &self.network.operations {
                let Kind::Linear(layer) = &operation.kind else { continue };
                let rows = |buffer: &'_ [f32], width: usize| -> std::ops::Range<usize> {
                    debug_assert!(buffer.len() >= (first + group) * width);
                    first * width..(first + group) * width
                };
                let x = &self.activations[operation.input];
                let x = &x[rows(x, layer.inputs)];
                let dy = &self.gradients[operation.output];
                let dy = &dy[rows(dy, layer.outputs)];
                work.add_layer(x, layer.inputs, dy, layer.outputs, gram);
            }
            let factors: Vec<f64> = self.squares[first..first + group]
                .iter()
                .map(|square| f64::from(clipping_factor(square.sqrt(), clip_norm)))
                .collect();
            scale(gram, &factors);
        }
        let finite = self.losses[..examples].iter().all(|loss| loss.is_finite());
        finite && out.iter().all(|value| value.is_finite())
    }

    fn explicit_grams(
        &mut self,
        parameters: &[f32],
        examples: usize,
        group: usize,
        clip_norm: f64,
        out: &mut [f64],
    ) -> bool {
        let width = self.network.inputs();
        let inputs = self.activations[0][..examples * width].to_vec();
        let labels = self.labels[..examples].to_vec();
        let length = self.network.parameters;
        let mut work = Work::default();
        let mut gradients = vec![0.0; group * length];
        let mut finite = true;
        for (number, gram) in out.chunks_exact_mut(group * group).enumerate() {
            for (slot, gradient) in gradients.chunks_exact_mut(length).enumerate() {
                let example = number * group + slot;
                let features = &inputs[example * width..(example + 1) * width];
                finite &= self.clipped_gradient(
                    parameters,
                    features,
                    labels[example],
                    clip_norm,
                    gradient,
                );
            }
            work.gram(&gradients, length);
            gram.copy_from_slice(&work.sums);
        }
        finite && out.iter().all(|value| value.is_finite())
    }

    /// The clipped gradient of one example, written to `out`; says whether it is finite. Belongs
    /// after [`Executor::prepare`]. Overwrites the first loaded example.
    pub fn clipped_gradient(
        &mut self,
        parameters: &[f32],
        features: &[f32],
        label: u32,
        clip_norm: f64,
        out: &mut [f32],
    ) -> bool {
        self.load(0, features, label);
        out.fill(0.0);
        let found = self.add_clipped_gradients(parameters, 1, Some(clip_norm), out);
        let finite = found.norms[0].is_finite() && found.losses[0].is_finite();
        self.finish(out);
        finite
    }
}

/// Row i times factor i, column j times factor j.
fn scale(gram: &mut [f64], factors: &[f64]) {
    for (row, factor) in gram.chunks_exact_mut(factors.len()).zip(factors) {
        for (value, other) in row.iter_mut().zip(factors) {
            *value *= factor * other;
        }
    }
}

/// Buffers of the sums.
#[derive(Default)]
struct Work {
    rows: Vec<f64>,
    sums: Vec<f64>,
    inputs: Vec<f64>,
}

impl Work {
    fn add_layer(&mut self, x: &[f32], inputs: usize, dy: &[f32], outputs: usize, out: &mut [f64]) {
        self.gram(x, inputs);
        std::mem::swap(&mut self.inputs, &mut self.sums);
        self.gram(dy, outputs);
        for ((out, inputs), outputs) in out.iter_mut().zip(&self.inputs).zip(&self.sums) {
            *out += (inputs + 1.0) * outputs;
        }
    }

    /// All inner products of rows, into `sums`. Columns in which all rows agree (all but the
    /// attribute's, in the first layer) are added up once.
    fn gram(&mut self, rows: &[f32], width: usize) {
        let count = rows.len() / width;
        let first = &rows[..width];
        let mut common = 0.0;
        let mut kept = Vec::with_capacity(width);
        for (column, value) in first.iter().enumerate() {
            if rows.iter().skip(column).step_by(width).all(|other| other == value) {
                common += f64::from(*value) * f64::from(*value);
            } else {
                kept.push(column);
            }
        }
        let padded = kept.len().next_multiple_of(LANES);
        self.rows.clear();
        self.rows.resize(count * padded, 0.0);
        if padded > 0 {
            for (row, out) in rows.chunks_exact(width).zip(self.rows.chunks_exact_mut(padded)) {
                for (out, column) in out.iter_mut().zip(&kept) {
                    *out = f64::from(row[*column]);
                }
            }
        }
        self.sums.clear();
        self.sums.resize(count * count, common);
        if padded > 0 {
            add_products(&self.rows, padded, &mut self.sums);
        }
    }
}

#[inline(always)]
fn products<const ROWS: usize>(left: &[f64], right: [&[f64]; ROWS]) -> [f64; ROWS] {
    let mut sums = [[0.0; LANES]; ROWS];
    for at in (0..left.len()).step_by(LANES) {
        let mine = &left[at..at + LANES];
        for (sum, right) in sums.iter_mut().zip(right) {
            let other = &right[at..at + LANES];
            for lane in 0..LANES {
                sum[lane] += mine[lane] * other[lane];
            }
        }
    }
    sums.map(|sum| sum.iter().sum())
}

vectorised! {
    /// Adds the inner products of rows of `width` numbers (a multiple of the lanes) to a symmetric
    /// matrix.
    fn add_products<'a>(rows: &'a [f64], width: usize, out: &'a mut [f64]) {
        let count = rows.len() / width;
        let row = |i: usize| &rows[i * width..(i + 1) * width];
        for i in 0..count {
            let mut j = 0;
            while j <= i {
                // Four at a time; the last few may be computed again.
                let found = products(row(i), [j, j + 1, j + 2, j + 3].map(|j| row(j.min(i))));
                for (offset, value) in found.into_iter().enumerate() {
                    let at = j + offset;
                    if at < i {
                        out[i * count + at] += value;
                        out[at * count + i] += value;
                    } else if at == i {
                        out[i * count + i] += value;
                    }
                }
                j += 4;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::Executor;
    use crate::data::Shape;
    use crate::model::ModelDescription;
    use random::{Purpose, Stream};
    use std::sync::Arc;

    fn executor(text: &str, shape: Shape, capacity: usize) -> (Executor, Vec<f32>) {
        let model: ModelDescription = toml::from_str(text).unwrap();
        let network = Arc::new(model.network(shape, 3).unwrap());
        let parameters = network.initial_parameters(5, 0);
        (Executor::new(network, capacity), parameters)
    }

    /// Both routes against gradients made one by one and multiplied in f64. Inner products are at
    /// most 1 here and f32 gradients carry 2^-20 of them.
    #[test]
    fn inner_products_are_those_of_the_gradients() {
        let image = Shape::Image { height: 28, width: 28, channels: 1 };
        for (text, shape) in [
            ("kind = \"mlp\"\nhidden = [9, 7]\nactivation = \"tanh\"", Shape::Flat(6)),
            ("kind = \"softmax\"", Shape::Flat(6)),
            ("kind = \"cnn\"", image),
        ] {
            let (group, groups, width) = (5, 2, shape.len());
            let (mut executor, parameters) = executor(text, shape, group * groups);
            executor.prepare(&parameters);
            let mut rows = vec![0.0; group * groups * width];
            Stream::new(1, Purpose::NOISE, 0).fill_gaussians_f32(0, 0, &mut rows);
            for (number, row) in rows.chunks_exact_mut(width).enumerate() {
                // Candidates of a record differ in two columns only.
                row[2..].fill(0.3 + (number / group) as f32);
            }
            let clip = 0.7;
            let length = executor.network().parameters;
            let mut gradients = vec![vec![0.0; length]; group * groups];
            for (number, gradient) in gradients.iter_mut().enumerate() {
                let row = &rows[number * width..(number + 1) * width];
                let label = (number % 3) as u32;
                assert!(executor.clipped_gradient(&parameters, row, label, clip, gradient));
            }
            for (number, row) in rows.chunks_exact(width).enumerate() {
                executor.load(number, row, (number % 3) as u32);
            }
            let mut found = Vec::new();
            assert!(executor.clipped_grams(&parameters, group * groups, group, clip, &mut found));
            for g in 0..groups {
                for i in 0..group {
                    for j in 0..group {
                        let (a, b) = (&gradients[g * group + i], &gradients[g * group + j]);
                        let expected: f64 =
                            a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
                        let value = found[(g * group + i) * group + j];
                        assert!((value - expected).abs() < 2e-6, "{text}: {value} {expected}");
                    }
                }
            }
        }
    }
}
