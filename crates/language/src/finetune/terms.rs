//! What the gradients of a micro-batch are made of, kept until their norms are known.
//!
//! For example i and a linear map with inputs x_i (tokens x inputs) and gradients d_i of its output,
//! the gradient is d_i' x_i. An adapter is two such maps: `up` with inputs scale x down', `down` with
//! output gradients scale d up. The squared norm is formed
//!
//! - directly, from d_i' x_i itself (tokens x inputs x outputs multiplications), or
//! - as a ghost: sum over places s, t of (x_s.x_t)(d_s.d_t) (Li et al. 2022, "Large language models
//!   can be strong differentially private learners", section 4), in tokens^2 (inputs + outputs),
//!
//! whichever is cheaper. In a ghost, products of either sign cancel; 2^-18 of the sum of their
//! absolute values is added, so that rounding cannot make a norm too small. The clipped sum is then
//! one product over the whole micro-batch with every example's rows multiplied by its factor, or a
//! sum of the gradients where they were small enough to be kept.

use crate::model::{Decoder, Packed};
use crate::product::{View, packed_product, product, single};
use std::sync::Arc;
use training::cpu::transformer::{inner, scale_by, scaled_sum};

/// Share of the absolute products that is added to a ghost.
const GHOST_SLACK: f64 = 1.0 / 262_144.0;

enum Kept {
    /// Every example's gradient.
    Whole(Vec<f32>),
    /// Inputs and output gradients of all rows.
    Pair { x: Arc<Vec<f32>>, d: Vec<f32>, inputs: usize, outputs: usize },
}

/// The terms of one micro-batch.
pub(super) struct Terms {
    /// Rows of an example; shorter ones are padded with rows whose output gradient is zero.
    length: usize,
    examples: usize,
    kept: Vec<(usize, usize, Kept)>,
    /// Of every example's gradient so far.
    pub(super) squares: Vec<f64>,
}

impl Terms {
    pub(super) fn new(examples: usize, length: usize) -> Self {
        Self { length, examples, kept: Vec::new(), squares: vec![0.0; examples] }
    }

    /// A linear map whose gradient begins at `at` in the vector of parameters.
    pub(super) fn linear(
        &mut self,
        at: usize,
        (inputs, outputs): (usize, usize),
        x: &Arc<Vec<f32>>,
        d: &[f32],
    ) {
        let (length, size) = (self.length, inputs * outputs);
        // What is cheaper to form is smaller to keep, too.
        let direct = size <= length * (inputs + outputs);
        let mut whole = vec![0.0; if direct { self.examples * size } else { 0 }];
        let ghost_size = if direct { 0 } else { length * length };
        let mut ghosts = (vec![0.0; ghost_size], vec![0.0; ghost_size]);
        for i in 0..self.examples {
            let x = View::new(&x[i * length * inputs..][..length * inputs], length, inputs);
            let d = View::new(&d[i * length * outputs..][..length * outputs], length, outputs);
            if direct {
                let gradient = &mut whole[i * size..(i + 1) * size];
                single(gradient, inputs, d.transposed(), x, false);
                self.squares[i] += square(gradient);
            } else {
                single(&mut ghosts.0, length, x, x.transposed(), false);
                single(&mut ghosts.1, length, d, d.transposed(), false);
                self.squares[i] += ghost(&ghosts.0, &ghosts.1);
            }
        }
        let kept = if direct {
            Kept::Whole(whole)
        } else {
            Kept::Pair { x: Arc::clone(x), d: d.to_vec(), inputs, outputs }
        };
        self.kept.push((at, size, kept));
    }

    /// Gradients that are there already: examples x size.
    pub(super) fn whole(&mut self, at: usize, gradients: Vec<f32>) {
        let size = gradients.len() / self.examples;
        for (total, gradient) in self.squares.iter_mut().zip(gradients.chunks_exact(size)) {
            *total += square(gradient);
        }
        self.kept.push((at, size, Kept::Whole(gradients)));
    }

    /// Adds the sum over the examples of factor x gradient.
    pub(super) fn add_sum(&self, factors: &[f32], sum: &mut [f32]) {
        for (at, size, kept) in &self.kept {
            let sum = &mut sum[*at..at + size];
            match kept {
                Kept::Whole(gradients) => {
                    for (gradient, factor) in gradients.chunks_exact(*size).zip(factors) {
                        if *factor > 0.0 {
                            scaled_sum(sum, gradient, *factor);
                        }
                    }
                }
                Kept::Pair { x, d, inputs, outputs } => {
                    let mut d = d.clone();
                    for (rows, factor) in d.chunks_exact_mut(self.length * outputs).zip(factors) {
                        if *factor > 0.0 { scale_by(rows, *factor) } else { rows.fill(0.0) }
                    }
                    let rows = self.length * self.examples;
                    let left = View::new(&d, rows, *outputs).transposed();
                    single(sum, *inputs, left, View::new(x, rows, *inputs), true);
                }
            }
        }
    }
}

/// Sum of squares: f32 in blocks, f64 over them.
pub(super) fn square(numbers: &[f32]) -> f64 {
    numbers.chunks(2048).map(|block| f64::from(inner(block, block))).sum()
}

/// Sum of the products of two symmetric matrices' numbers, on the safe side.
pub(super) fn ghost(a: &[f32], b: &[f32]) -> f64 {
    let (mut sum, mut absolute) = (0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        let product = f64::from(*a) * f64::from(*b);
        sum += product;
        absolute += product.abs();
    }
    sum + GHOST_SLACK * absolute
}

/// The head's gradient: residuals p_i (places x vocabulary) and states h_i, whose gradient is p_i' h_i;
/// and, where it is tied, the embedding's: the sum of dx over the places of each token.
pub(super) struct Head {
    pub(super) at: usize,
    pub(super) width: usize,
    pub(super) vocabulary: usize,
    /// For each example, residuals and states of its learnt places.
    pub(super) kept: Vec<(Vec<f32>, Vec<f32>)>,
}

impl Head {
    /// The squared norm of example i; `rows` are the embedding's own rows for the same tensor (token,
    /// gradient), none for a head of its own.
    pub(super) fn square(&self, i: usize, rows: &[(u32, Vec<f32>)]) -> f64 {
        let (p, h) = &self.kept[i];
        let (width, vocabulary) = (self.width, self.vocabulary);
        let count = h.len() / width;
        let (p_view, h_view) = (View::new(p, count, vocabulary), View::new(h, count, width));
        let mut total = if width <= count {
            let mut gradient = vec![0.0; vocabulary * width];
            single(&mut gradient, width, p_view.transposed(), h_view, false);
            square(&gradient)
        } else {
            let mut ghosts = (vec![0.0; count * count], vec![0.0; count * count]);
            single(&mut ghosts.0, count, p_view, p_view.transposed(), false);
            single(&mut ghosts.1, count, h_view, h_view.transposed(), false);
            ghost(&ghosts.0, &ghosts.1)
        };
        // |a + b|^2 = |a|^2 + |b|^2 + 2 a.b, with b = 0 but for a few tokens.
        for (token, row) in rows {
            total += square(row);
            for (h, p) in h.chunks_exact(width).zip(p.chunks_exact(vocabulary)) {
                let along = 2.0 * f64::from(p[*token as usize]) * f64::from(inner(h, row));
                total += along + GHOST_SLACK * along.abs();
            }
        }
        total
    }

    pub(super) fn add_sum(&self, factors: &[f32], sum: &mut [f32]) {
        let (width, vocabulary) = (self.width, self.vocabulary);
        let sum = &mut sum[self.at..self.at + width * vocabulary];
        let (mut residuals, mut states) = (Vec::new(), Vec::new());
        for ((p, h), factor) in self.kept.iter().zip(factors).filter(|(_, factor)| **factor > 0.0) {
            let from = states.len();
            residuals.extend_from_slice(p);
            states.extend_from_slice(h);
            scale_by(&mut states[from..], *factor);
        }
        let rows = states.len() / width;
        if rows > 0 {
            let left = View::new(&residuals, rows, vocabulary).transposed();
            single(sum, width, left, View::new(&states, rows, width), true);
        }
    }
}

/// Logits' gradient times the head: what the last norm's output gets.
pub(super) fn through_head(
    out: &mut [f32],
    residuals: &[f32],
    decoder: &Decoder,
    packed: Option<&Packed>,
) {
    if let Some(head) = packed.and_then(Packed::head).and_then(|head| head.backward.as_ref()) {
        return packed_product(out, residuals, head, false);
    }
    let (vocabulary, width) = (decoder.architecture.vocabulary, decoder.architecture.width);
    let left = View::new(residuals, residuals.len() / vocabulary, vocabulary);
    product(out, left, View::new(decoder.head(), vocabulary, width));
}
