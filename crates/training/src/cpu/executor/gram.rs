//! Inner products of clipped gradients, for telling apart the values that a record could have.
//!
//! The gradient of a linear layer is the outer product of its input x and the gradient d of its
//! output, so two examples have the inner product (<x, x'> + 1) <d, d'>: the Gram matrix of n
//! examples costs n^2 (inputs + outputs) multiplications for each layer and no gradient is ever
//! made. Other layers have their gradients made one by one. Sums are in f64, of numbers that were
//! computed in f32 as in training; clipping is training's own.

use super::super::linear;
use super::super::vectorise::vectorised;
use super::{Executor, clipping_factor};
use crate::model::{Kind, Operation};

/// Lanes of a partial sum.
const LANES: usize = 8;

impl Executor {
    /// Forward and backward of the loaded examples, of which each `group` in a row are variants of
    /// one record; belongs after [`Executor::prepare`]. Says whether everything was finite.
    ///
    /// # Panics
    /// If `examples` are more than were made room for, or no multiple of `group`.
    pub fn run_variants(&mut self, parameters: &[f32], examples: usize, group: usize) -> bool {
        assert!(examples <= self.capacity && group > 0 && examples.is_multiple_of(group));
        let first = usize::from(self.forward_variants(parameters, examples, group));
        self.forward_from(first, parameters, examples);
        self.loss(examples);
        self.backward(parameters, examples);
        self.norms(examples);
        self.losses[..examples].iter().all(|loss| loss.is_finite())
            && self.squares[..examples].iter().all(|square| square.is_finite())
    }

    /// The first layer of variants of a record: once for the first of them, then what changes.
    fn forward_variants(&mut self, parameters: &[f32], examples: usize, group: usize) -> bool {
        let Some(Operation { kind: Kind::Linear(layer), input: 0, output }) =
            self.network.operations.first()
        else {
            return false;
        };
        let (before, after) = self.activations.split_at_mut(*output);
        let (inputs, outputs) = (layer.inputs, layer.outputs);
        let weights = &parameters[layer.weight..layer.weight + inputs * outputs];
        let x = before[0][..examples * inputs].chunks_exact(group * inputs);
        let y = after[0][..examples * outputs].chunks_exact_mut(group * outputs);
        for (x, y) in x.zip(y) {
            let (base, others) = y.split_at_mut(outputs);
            linear::forward(layer, parameters, &x[..inputs], base, 1);
            for (x_other, y) in x.chunks_exact(inputs).skip(1).zip(others.chunks_exact_mut(outputs))
            {
                y.copy_from_slice(base);
                for (column, (new, old)) in x_other.iter().zip(x).enumerate() {
                    if new != old {
                        let weights = &weights[column * outputs..(column + 1) * outputs];
                        add_multiple(new - old, weights, y);
                    }
                }
            }
        }
        true
    }

    /// Whether Gram matrices come from [`Executor::run_variants`] alone.
    pub fn has_linear_layers_only(&self) -> bool {
        self.network
            .operations
            .iter()
            .map(|operation| &operation.kind)
            .all(|kind| matches!(kind, Kind::Linear(_)) || kind.clipping().is_none())
    }

    /// Squared distances of the clipped gradients of group `number` from that of its variant
    /// `reference`; belongs after [`Executor::run_variants`], for linear layers only.
    pub fn squared_distances(
        &self,
        number: usize,
        group: usize,
        reference: usize,
        clip_norm: f64,
    ) -> Vec<f64> {
        let first = number * group;
        let mut inner = vec![0.0; group];
        for operation in &self.network.operations {
            let Kind::Linear(layer) = &operation.kind else { continue };
            let x = &self.activations[operation.input];
            let x = &x[first * layer.inputs..(first + group) * layer.inputs];
            let dy = &self.gradients[operation.output];
            let dy = &dy[first * layer.outputs..(first + group) * layer.outputs];
            let one = |rows: &'_ [f32], width: usize| -> Vec<f64> {
                let own = &rows[reference * width..(reference + 1) * width];
                rows.chunks_exact(width).map(|row| inner_product(own, row)).collect()
            };
            let (inputs, outputs) = (one(x, layer.inputs), one(dy, layer.outputs));
            for ((inner, inputs), outputs) in inner.iter_mut().zip(inputs).zip(outputs) {
                *inner += (inputs + 1.0) * outputs;
            }
        }
        let squares = &self.squares[first..first + group];
        let factors = factors(squares, clip_norm);
        let own = factors[reference];
        let square = |i: usize| factors[i] * factors[i] * squares[i];
        (0..group)
            .map(|i| (square(i) + square(reference) - 2.0 * own * factors[i] * inner[i]).max(0.0))
            .collect()
    }

    /// The Gram matrix of the clipped gradients of group `number`; belongs after
    /// [`Executor::run_variants`], for linear layers only.
    pub fn clipped_gram(&self, number: usize, group: usize, clip_norm: f64) -> Vec<f64> {
        let first = number * group;
        let mut work = Work::default();
        let mut gram = vec![0.0; group * group];
        for operation in &self.network.operations {
            let Kind::Linear(layer) = &operation.kind else { continue };
            let x = &self.activations[operation.input];
            let x = &x[first * layer.inputs..(first + group) * layer.inputs];
            let dy = &self.gradients[operation.output];
            let dy = &dy[first * layer.outputs..(first + group) * layer.outputs];
            work.add_layer(x, layer.inputs, dy, layer.outputs, &mut gram);
        }
        scale(&mut gram, &factors(&self.squares[first..first + group], clip_norm));
        gram
    }

    /// Gram matrices of the clipped gradients of the loaded examples, for consecutive groups of
    /// `group` variants: `group` x `group` numbers each, one group after the other. Any network;
    /// belongs after [`Executor::prepare`]. Says whether everything was finite.
    ///
    /// # Panics
    /// As [`Executor::run_variants`].
    pub fn clipped_grams(
        &mut self,
        parameters: &[f32],
        examples: usize,
        group: usize,
        clip_norm: f64,
        out: &mut Vec<f64>,
    ) -> bool {
        out.clear();
        if !self.has_linear_layers_only() {
            out.resize(examples * group, 0.0);
            return self.explicit_grams(parameters, examples, group, clip_norm, out);
        }
        let finite = self.run_variants(parameters, examples, group);
        for number in 0..examples / group {
            out.extend(self.clipped_gram(number, group, clip_norm));
        }
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

fn factors(squares: &[f64], clip_norm: f64) -> Vec<f64> {
    let factor = |square: &f64| f64::from(clipping_factor(square.sqrt(), clip_norm));
    squares.iter().map(factor).collect()
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
    /// In f64.
    fn inner_product<'a>(a: &'a [f32], b: &'a [f32]) -> f64 {
        let mut sums = [0.0; 2 * LANES];
        let (mut a, mut b) = (a.chunks_exact(2 * LANES), b.chunks_exact(2 * LANES));
        for (a, b) in a.by_ref().zip(b.by_ref()) {
            for lane in 0..2 * LANES {
                sums[lane] += f64::from(a[lane]) * f64::from(b[lane]);
            }
        }
        let rest = a.remainder().iter().zip(b.remainder());
        let rest: f64 = rest.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        rest + sums.iter().sum::<f64>()
    }

    fn add_multiple<'a>(factor: f32, x: &'a [f32], y: &'a mut [f32]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y += factor * x;
        }
    }

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
            if executor.has_linear_layers_only() {
                for g in 0..groups {
                    let gram = |i: usize, j: usize| found[(g * group + i) * group + j];
                    for (i, square) in
                        executor.squared_distances(g, group, 2, clip).into_iter().enumerate()
                    {
                        let expected = gram(i, i) + gram(2, 2) - 2.0 * gram(i, 2);
                        assert!((square - expected).abs() < 1e-6, "{square} {expected}");
                    }
                }
            }
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
