//! Every example's own gradient.

use crate::LanguageError;
use crate::model::{Decoder, Linear, Projection};
use crate::product::{View, product, single};

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
    /// In the order of [`super::parameters`].
    pub gradient: Vec<f32>,
}

/// The gradients of a micro-batch, exactly as if every example were alone. Shorter examples are
/// padded at their end, where no loss is and which nothing before it sees.
///
/// # Errors
/// `InvalidInput` for an example without anything to learn; those of the decoder.
pub fn per_example(
    decoder: &Decoder,
    examples: &[Example],
) -> Result<Vec<ExampleGradient>, LanguageError> {
    if examples.is_empty() {
        return Ok(Vec::new());
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
    let length = examples.iter().map(|e| e.tokens.len()).max().unwrap_or(0);
    let mut tokens = Vec::with_capacity(examples.len() * length);
    for example in examples {
        tokens.extend_from_slice(&example.tokens);
        tokens.resize(tokens.len() + length - example.tokens.len(), 0);
    }
    let (hidden, record) = decoder.forward_recorded(&tokens, examples.len())?;
    let mut d_hidden = vec![0.0; hidden.len()];
    let mut found = Vec::with_capacity(examples.len());
    for (i, example) in examples.iter().enumerate() {
        let count = example.tokens.len() - example.first;
        let from = (i * length + example.first - 1) * width;
        let states = &hidden[from..from + count * width];
        let mut logits = decoder.logits(states);
        let mut loss = 0.0;
        for (row, token) in
            logits.chunks_exact_mut(vocabulary).zip(&example.tokens[example.first..])
        {
            let total = crate::model::log_sum_exp(row);
            loss += total - f64::from(row[*token as usize]);
            for x in row.iter_mut() {
                *x = ((f64::from(*x) - total).exp() / count as f64) as f32;
            }
            row[*token as usize] -= 1.0 / count as f32;
        }
        product(
            &mut d_hidden[from..from + count * width],
            View::new(&logits, count, vocabulary),
            View::new(decoder.head(), vocabulary, width),
        );
        found.push(ExampleGradient { loss: loss / count as f64, gradient: Vec::new() });
    }
    let places = Places::of(decoder);
    for example in &mut found {
        example.gradient = vec![0.0; places.total];
    }
    decoder.backward_observed(&record, &d_hidden, &mut |layer, projection, input, d_output| {
        let linear = linear(decoder, layer, projection);
        let Some(adapter) = &linear.adapter else { return };
        let (rank, scale) = (adapter.rank, adapter.scale);
        let low = adapter.low(input, linear.inputs);
        let back = adapter.low_backward(d_output, linear.outputs);
        let at = places.starts[3 * layer + projection as usize];
        for (i, example) in found.iter_mut().enumerate() {
            let rows = |x: &'_ [f32], columns: usize| -> Vec<f32> {
                x[i * length * columns..(i + 1) * length * columns].to_vec()
            };
            let (x, d) = (rows(input, linear.inputs), rows(d_output, linear.outputs));
            let (low, back) = (rows(&low, rank), rows(&back, rank));
            let (down, up) = example.gradient[at..].split_at_mut(rank * linear.inputs);
            let up = &mut up[..linear.outputs * rank];
            let left = View::new(&back, length, rank).transposed();
            single(down, linear.inputs, left, View::new(&x, length, linear.inputs), false);
            let left = View::new(&d, length, linear.outputs).transposed();
            single(up, rank, left, View::new(&low, length, rank), false);
            down.iter_mut().chain(up).for_each(|x| *x *= scale);
        }
    });
    Ok(found)
}

fn linear(decoder: &Decoder, layer: usize, projection: Projection) -> &Linear {
    let layer = &decoder.layers[layer];
    match projection {
        Projection::Query => &layer.query,
        Projection::Key => &layer.key,
        Projection::Value => &layer.value,
    }
}

/// Where each adapter begins in the vector of parameters.
struct Places {
    starts: Vec<usize>,
    total: usize,
}

impl Places {
    fn of(decoder: &Decoder) -> Self {
        let (mut starts, mut total) = (Vec::new(), 0);
        for layer in 0..decoder.layers.len() {
            for projection in Projection::ALL {
                starts.push(total);
                if let Some(adapter) = &linear(decoder, layer, projection).adapter {
                    total += adapter.down.len() + adapter.up.len();
                }
            }
        }
        Self { starts, total }
    }
}
