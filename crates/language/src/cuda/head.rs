//! From states to logits and losses, and back, a part of the places at a time: logits are large.

use super::context::failed;
use super::evaluate::{Answer, CudaModel};
use super::workspace::Extent;
use crate::LanguageError;
use crate::finetune::Example;
use training::cuda::compute::Value::{Address, Int};
use training::cuda::compute::{Matrix, Store};
use training::cuda::{Buffer, CudaDevice};

/// Which places are learnt, and what was found there.
pub(super) struct Learnt {
    /// The bits of four lists of `given` numbers each: where the learnt places are, their tokens, their
    /// shares, and for every place its number among the learnt ones, or -1.
    lists: Buffer<u32>,
    losses: Buffer<f32>,
    top: Buffer<u8>,
}

/// How many places are learnt, and where each example's begin among them.
pub(super) struct Learning {
    places: usize,
    /// Numbers of each list.
    given: usize,
    starts: Vec<usize>,
}

/// Shared memory of a block that `cross_entropy_held` needs beside a row.
const RESERVED: usize = 2048;
/// Rows of logits at a time are a multiple of this, which products want.
const ROWS: usize = 128;

impl Learnt {
    pub(super) fn new(device: &CudaDevice, rows: usize) -> Result<Self, LanguageError> {
        Ok(Self {
            lists: device.zeros(4 * rows).map_err(failed)?,
            losses: device.zeros(rows).map_err(failed)?,
            top: device.zeros(rows).map_err(failed)?,
        })
    }
}

impl CudaModel {
    /// Puts onto the device which places are learnt; `back`: for going back, too.
    pub(super) fn put_learnt(
        &mut self,
        examples: &[&Example],
        extent: Extent,
        back: bool,
    ) -> Result<Learning, LanguageError> {
        let (mut places, mut tokens, mut shares) = (Vec::new(), Vec::new(), Vec::new());
        let mut from = vec![-1; extent.rows()];
        // Where each example's learnt places begin. For the gradient of a trained embedding all
        // places are there, those that are not learnt with a share of nothing.
        let mut starts = Vec::with_capacity(examples.len());
        let all = back && self.embedding.is_some();
        if all {
            places.extend(0..extent.rows() as i32);
            from.copy_from_slice(&places);
            tokens.resize(extent.rows(), 0);
            shares.resize(extent.rows(), 0.0);
        }
        for (number, example) in examples.iter().enumerate() {
            if example.first == 0 || example.first >= example.tokens.len() {
                return Err(LanguageError::InvalidInput(format!(
                    "an example of {} tokens has nothing to learn from token {} on",
                    example.tokens.len(),
                    example.first
                )));
            }
            let share = 1.0 / (example.tokens.len() - example.first) as f32;
            let start = number * extent.length + example.first - 1;
            starts.push(if all { start } else { places.len() });
            for place in example.first..example.tokens.len() {
                // A token is read off the place before it.
                let row = number * extent.length + place - 1;
                if all {
                    (tokens[row], shares[row]) = (example.tokens[place], share);
                    continue;
                }
                from[row] = places.len() as i32;
                places.push(row as i32);
                tokens.push(example.tokens[place]);
                shares.push(share);
            }
        }
        // One copy: the device waits for each.
        let given = from.len();
        let mut lists = Vec::with_capacity(4 * given);
        lists.extend(places.iter().map(|place: &i32| place.cast_unsigned()));
        lists.resize(given, 0);
        lists.extend_from_slice(&tokens);
        lists.resize(2 * given, 0);
        lists.extend(shares.iter().map(|share: &f32| share.to_bits()));
        lists.resize(3 * given, 0);
        lists.extend(from.iter().map(|number: &i32| number.cast_unsigned()));
        let device = &self.decoder.context.device;
        device.write(&mut self.learnt.lists, &lists).map_err(failed)?;
        Ok(Learning { places: places.len(), given, starts })
    }

    /// Logits and losses of the learnt places of a forward pass; with `back`, the gradient of the
    /// states is left in `d_normed`.
    pub(super) fn head(
        &self,
        learning: &Learning,
        extent: Extent,
        back: bool,
    ) -> Result<(), LanguageError> {
        let Learning { places, given, .. } = *learning;
        let (decoder, w) = (&self.decoder, &self.workspace);
        let (a, context) = (&decoder.architecture, &decoder.context);
        let width = decoder.logits_width();
        self.pick(places)?;
        let picked = context.matrix(w.picked, a.width);
        let head = context.matrix(self.head_address(), a.width);
        // Rows of logits that fit into shared memory, in f32 or in 16 bits, are read once.
        let shared = context.bytes() * width;
        let held = shared + RESERVED <= context.device.shared_memory();
        // As many rows each time, so that no product is small.
        let parts = places.div_ceil(w.logits_rows).max(1);
        let each = places.div_ceil(parts).next_multiple_of(ROWS).min(w.logits_rows);
        let mut start = 0;
        while start < places {
            let rows = each.min(places - start);
            let logits = Matrix::new(w.logits, width, Store::Float32);
            let states = picked.from(start * a.width);
            context.product(logits, states, head.transposed(), (rows, width, a.width))?;
            let values = [
                Address(w.d_logits),
                Address(self.learnt.losses.at(start)),
                Address(self.learnt.top.at(start)),
                Address(w.logits),
                Address(self.learnt.lists.at(given + start)),
                Address(self.learnt.lists.at(2 * given + start)),
                Int(a.vocabulary as i32),
                Int(width as i32),
                Int(i32::from(back)),
            ];
            if held {
                context.bounded("cross_entropy_held", (rows, 1), shared, &values)?;
            } else {
                context.start("cross_entropy", (rows, 1), &values)?;
            }
            if back {
                let d_states = context.matrix(w.d_picked, a.width).from(start * a.width);
                let d_logits = context.matrix(w.d_logits, width);
                context.product(d_states, d_logits, head, (rows, a.width, width))?;
            }
            start += rows;
        }
        if back {
            context.by_rows(
                "spread_rows",
                extent.rows(),
                &[
                    Address(w.d_normed),
                    Address(w.d_picked),
                    Address(self.learnt.lists.at(3 * given)),
                    Int(extent.rows() as i32),
                    Int(a.width as i32),
                ],
            )?;
        }
        Ok(())
    }

    /// What the head found, read back.
    pub(super) fn answers(
        &self,
        examples: &[&Example],
        learning: &Learning,
    ) -> Result<Vec<Answer>, LanguageError> {
        let device = &self.decoder.context.device;
        let losses = device.read(&self.learnt.losses, learning.places).map_err(failed)?;
        let top = device.read(&self.learnt.top, learning.places).map_err(failed)?;
        Ok(examples
            .iter()
            .zip(&learning.starts)
            .map(|(example, start)| {
                let count = example.tokens.len() - example.first;
                let own = *start..start + count;
                let loss: f64 = losses[own.clone()].iter().map(|x| f64::from(*x)).sum();
                let correct = top[own].iter().all(|top| *top == 1);
                Answer { loss: loss / count as f64, correct }
            })
            .collect())
    }

    /// Rows of logits at places of the last forward pass, padded to the head's rows.
    pub(super) fn logits(&mut self, places: &[usize]) -> Result<Vec<f32>, LanguageError> {
        let list: Vec<u32> = places.iter().map(|place| *place as u32).collect();
        let device = &self.decoder.context.device;
        device.write(&mut self.learnt.lists, &list).map_err(failed)?;
        self.pick(places.len())?;
        let (decoder, w) = (&self.decoder, &self.workspace);
        let (a, context) = (&decoder.architecture, &decoder.context);
        let width = decoder.logits_width();
        // Read back through a buffer of its own: the workspace is one.
        let out = context.device.zeros::<f32>(places.len() * width).map_err(failed)?;
        context.product(
            Matrix::new(out.address(), width, Store::Float32),
            context.matrix(w.picked, a.width),
            context.matrix(self.head_address(), a.width).transposed(),
            (places.len(), width, a.width),
        )?;
        context.device.read(&out, places.len() * width).map_err(failed)
    }

    /// The states of the listed places, side by side.
    fn pick(&self, count: usize) -> Result<(), LanguageError> {
        let (decoder, w) = (&self.decoder, &self.workspace);
        decoder.context.by_rows(
            "gather_rows",
            count,
            &[
                Address(w.picked),
                Address(w.states),
                Address(self.learnt.lists.address()),
                Int(count as i32),
                Int(decoder.architecture.width as i32),
            ],
        )
    }
}
