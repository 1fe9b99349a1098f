//! Every example's own gradient, or the sum of the clipped ones.

use super::layout::{Layout, Piece};
use super::losses::{Learnt, learn};
use super::terms::{Head, Terms, square};
use crate::LanguageError;
use crate::model::{Decoder, NormPlace, Observer, Packed, Projection, norm_direction};
use std::collections::BTreeMap;
use std::sync::Arc;
use training::cpu::transformer::scaled_sum;

/// A text whose tokens from `first` on are learnt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    pub tokens: Vec<u32>,
    /// At least 1; below the number of tokens.
    pub first: usize,
}

/// What one example says.
#[derive(Clone, Debug, PartialEq)]
pub struct ExampleGradient {
    pub loss: f64,
    /// In the order of [`Layout::parameters`].
    pub gradient: Vec<f32>,
}

/// What a micro-batch says.
#[derive(Clone, Debug, PartialEq)]
pub struct Clipped {
    pub losses: Vec<f64>,
    /// Before clipping; upper bounds to rounding.
    pub norms: Vec<f64>,
    /// Examples all of whose learnt tokens are the most likely ones.
    pub correct: usize,
    /// Of the clipped gradients, in the order of [`Layout::parameters`].
    pub sum: Vec<f32>,
}

/// The sum of a micro-batch's gradients, each clipped to `clip` on its own. Shorter examples are
/// padded at their end, where no loss is and which nothing before it sees. An example whose gradient
/// is not finite counts as nothing.
///
/// # Errors
/// `InvalidInput` for an example without anything to learn; those of the decoder.
pub fn clipped_sum(
    decoder: &Decoder,
    layout: &Layout,
    examples: &[&Example],
    clip: f64,
) -> Result<Clipped, LanguageError> {
    clipped_sum_packed(decoder, None, layout, examples, clip)
}

/// As [`clipped_sum`], with the decoder's frozen weights laid out where that is at hand.
pub(super) fn clipped_sum_packed(
    decoder: &Decoder,
    packed: Option<&Packed>,
    layout: &Layout,
    examples: &[&Example],
    clip: f64,
) -> Result<Clipped, LanguageError> {
    let pass = Pass::new(decoder, packed, layout, examples)?;
    let norms = pass.norms();
    let factors: Vec<f32> = norms
        .iter()
        .map(|norm| match norm.is_finite() {
            false => 0.0,
            true if *norm > clip => (clip / norm) as f32,
            true => 1.0,
        })
        .collect();
    Ok(Clipped { sum: pass.sum(&factors), losses: pass.losses, norms, correct: pass.correct })
}

/// The gradients of a micro-batch one by one, for checks: as many sums as there are examples.
///
/// # Errors
/// As [`clipped_sum`].
pub fn per_example(
    decoder: &Decoder,
    layout: &Layout,
    examples: &[&Example],
) -> Result<Vec<ExampleGradient>, LanguageError> {
    let pass = Pass::new(decoder, None, layout, examples)?;
    let one = |i: usize| {
        let mut factors = vec![0.0; examples.len()];
        factors[i] = 1.0;
        ExampleGradient { loss: pass.losses[i], gradient: pass.sum(&factors) }
    };
    Ok((0..examples.len()).map(one).collect())
}

/// Tokens, each with the gradient of its row.
type Rows = Vec<(u32, Vec<f32>)>;

/// Forward and back, with everything that the gradients are made of.
struct Pass<'a> {
    layout: &'a Layout,
    losses: Vec<f64>,
    correct: usize,
    terms: Terms,
    head: Option<Head>,
    /// Of the embedding: its place, its width, and for each example its tokens' rows.
    embedding: Option<(usize, usize, Vec<Rows>)>,
    tied: bool,
}

impl<'a> Pass<'a> {
    fn new(
        decoder: &Decoder,
        packed: Option<&Packed>,
        layout: &'a Layout,
        examples: &[&Example],
    ) -> Result<Self, LanguageError> {
        let tied = decoder.head.is_none();
        if examples.is_empty() {
            let terms = Terms::new(0, 0);
            let (losses, head, embedding) = (Vec::new(), None, None);
            return Ok(Self { layout, losses, correct: 0, terms, head, embedding, tied });
        }
        for example in examples {
            if example.first == 0 || example.first >= example.tokens.len() {
                return Err(LanguageError::InvalidInput(format!(
                    "an example of {} tokens has nothing to learn from token {} on",
                    example.tokens.len(),
                    example.first
                )));
            }
        }
        let (width, vocabulary) = (decoder.architecture.width, decoder.architecture.vocabulary);
        // The last token is only ever foretold: nothing comes after it.
        let length = examples.iter().map(|e| e.tokens.len() - 1).max().unwrap_or(0);
        let mut tokens = Vec::with_capacity(examples.len() * length);
        for example in examples {
            let read = &example.tokens[..example.tokens.len() - 1];
            tokens.extend_from_slice(read);
            tokens.resize(tokens.len() + length - read.len(), 0);
        }
        let (hidden, record) = decoder.forward_packed(&tokens, examples.len(), packed)?;
        let place = layout.place(if tied { Piece::Embedding } else { Piece::Head });
        let mut head = place.map(|at| Head { at, width, vocabulary, kept: Vec::new() });
        // All learnt places in one product each way: the head is large.
        let rows = |i: usize, example: &Example| {
            let from = (i * length + example.first - 1) * width;
            from..from + (example.tokens.len() - example.first) * width
        };
        let mut states = Vec::new();
        for (i, example) in examples.iter().enumerate() {
            states.extend_from_slice(&hidden[rows(i, example)]);
        }
        let Learnt { losses, correct, d_states, residuals } =
            learn(decoder, packed, &states, examples, head.is_some());
        let mut d_hidden = vec![0.0; hidden.len()];
        let mut at = 0;
        for (i, example) in examples.iter().enumerate() {
            let rows = rows(i, example);
            let size = rows.len();
            d_hidden[rows].copy_from_slice(&d_states[at..at + size]);
            if let Some(head) = &mut head {
                let own = &residuals[at / width * vocabulary..][..size / width * vocabulary];
                head.kept.push((own.to_vec(), states[at..at + size].to_vec()));
            }
            at += size;
        }
        drop(residuals);
        let terms = Terms::new(examples.len(), length);
        let mut collector = Collector { decoder, layout, terms, length };
        let dx = decoder.backward_observed(&record, &d_hidden, packed, &mut collector);
        let mut terms = collector.terms;
        if let Some(at) = layout.place(Piece::Positions) {
            let context = layout_size(decoder, Piece::Positions);
            let mut gradients = vec![0.0; examples.len() * context];
            for i in 0..examples.len() {
                let rows = &dx[i * length * width..(i + 1) * length * width];
                gradients[i * context..][..length * width].copy_from_slice(rows);
            }
            terms.whole(at, gradients);
        }
        let embedding = layout.place(Piece::Embedding).map(|at| {
            let rows = examples
                .iter()
                .enumerate()
                .map(|(i, example)| {
                    let mut found: BTreeMap<u32, Vec<f32>> = BTreeMap::new();
                    for (t, token) in
                        example.tokens.iter().enumerate().take(example.tokens.len() - 1)
                    {
                        let d = &dx[(i * length + t) * width..][..width];
                        let row = found.entry(*token).or_insert_with(|| vec![0.0; width]);
                        scaled_sum(row, d, 1.0);
                    }
                    found.into_iter().collect()
                })
                .collect();
            (at, width, rows)
        });
        Ok(Self { layout, losses, correct, terms, head, embedding, tied })
    }

    fn norms(&self) -> Vec<f64> {
        let mut squares = self.terms.squares.clone();
        for (i, total) in squares.iter_mut().enumerate() {
            let rows = self.embedding.as_ref().map_or(&[][..], |(_, _, rows)| &rows[i][..]);
            match &self.head {
                Some(head) if self.tied => *total += head.square(i, rows),
                head => {
                    *total += head.as_ref().map_or(0.0, |head| head.square(i, &[]));
                    *total += rows.iter().map(|(_, row)| square(row)).sum::<f64>();
                }
            }
        }
        squares.into_iter().map(f64::sqrt).collect()
    }

    fn sum(&self, factors: &[f32]) -> Vec<f32> {
        let mut sum = vec![0.0; self.layout.size];
        self.terms.add_sum(factors, &mut sum);
        if let Some(head) = &self.head {
            head.add_sum(factors, &mut sum);
        }
        if let Some((at, width, rows)) = &self.embedding {
            for (rows, factor) in rows.iter().zip(factors).filter(|(_, factor)| **factor > 0.0) {
                for (token, row) in rows {
                    let to = &mut sum[at + *token as usize * width..][..*width];
                    scaled_sum(to, row, *factor);
                }
            }
        }
        sum
    }
}

fn layout_size(decoder: &Decoder, piece: Piece) -> usize {
    piece.of(decoder).map_or(0, Vec::len)
}

/// Turns what a backward pass shows into terms.
struct Collector<'a> {
    decoder: &'a Decoder,
    layout: &'a Layout,
    terms: Terms,
    length: usize,
}

impl Collector<'_> {
    /// Sums over the places of every example.
    fn columns(&self, d: &[f32], width: usize) -> Vec<f32> {
        let mut sums = Vec::with_capacity(d.len() / self.length);
        for rows in d.chunks_exact(self.length * width) {
            let mut sum = vec![0.0; width];
            for row in rows.chunks_exact(width) {
                scaled_sum(&mut sum, row, 1.0);
            }
            sums.extend(sum);
        }
        sums
    }
}

impl Observer for Collector<'_> {
    fn wants(&self, layer: usize, projection: Projection) -> bool {
        [Piece::Up(layer, projection), Piece::Weight(layer, projection)]
            .into_iter()
            .any(|piece| self.layout.place(piece).is_some())
    }

    fn last_layer(&self) -> Option<usize> {
        let whole = [Piece::Embedding, Piece::Positions].map(|piece| self.layout.place(piece));
        if whole.iter().any(Option::is_some) {
            return None;
        }
        (0..self.decoder.layers.len())
            .find(|layer| Projection::ALL.iter().any(|projection| self.wants(*layer, *projection)))
    }

    fn wants_norms(&self) -> bool {
        self.layout.place(Piece::NormWeight(NormPlace::Final)).is_some()
    }

    fn linear(
        &mut self,
        layer: usize,
        projection: Projection,
        input: &Arc<Vec<f32>>,
        d_output: &[f32],
    ) {
        let Some(linear) = self.decoder.layers[layer].linear(projection) else { return };
        let (inputs, outputs) = (linear.inputs, linear.outputs);
        if let Some(at) = self.layout.place(Piece::Weight(layer, projection)) {
            self.terms.linear(at, (inputs, outputs), input, d_output);
        }
        if let Some(at) = self.layout.place(Piece::Bias(layer, projection)) {
            let sums = self.columns(d_output, outputs);
            self.terms.whole(at, sums);
        }
        let places = (
            self.layout.place(Piece::Down(layer, projection)),
            self.layout.place(Piece::Up(layer, projection)),
        );
        if let ((Some(down), Some(up)), Some(adapter)) = (places, &linear.adapter) {
            let back = adapter.low_backward(d_output, outputs);
            self.terms.linear(down, (inputs, adapter.rank), input, &back);
            let low = Arc::new(adapter.low(input, inputs));
            self.terms.linear(up, (adapter.rank, outputs), &low, d_output);
        }
    }

    fn norm(&mut self, place: NormPlace, x: &[f32], dy: &[f32]) {
        let width = self.decoder.architecture.width;
        if let Some(at) = self.layout.place(Piece::NormWeight(place)) {
            // Weight i multiplies the normalised x_i.
            let mut products = vec![0.0; x.len()];
            norm_direction(self.decoder.architecture.norm, width, x, &mut products);
            for (product, dy) in products.iter_mut().zip(dy) {
                *product *= dy;
            }
            let sums = self.columns(&products, width);
            self.terms.whole(at, sums);
        }
        if let Some(at) = self.layout.place(Piece::NormBias(place)) {
            let sums = self.columns(dy, width);
            self.terms.whole(at, sums);
        }
    }
}
