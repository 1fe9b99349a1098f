//! Continuations of prompts: many texts grow together, a token at a time, against the keys and
//! values of the tokens before it.
//!
//! Cost of a token: one row through every layer and one query a head; memory: 2 x layers x key heads
//! x head width numbers for every place of every text.

use super::context::failed;
use super::evaluate::CudaModel;
use super::forward::optional;
use super::weights::Bias;
use super::workspace::{Extent, Kept};
use crate::LanguageError;
use crate::model::Choose;
use rayon::prelude::*;
use training::cuda::Buffer;
use training::cuda::compute::Value::{Address, Float, Int};

/// Keys and values of a group of texts, layer by layer.
pub(super) struct Growing {
    keys: Buffer<u8>,
    values: Buffer<u8>,
    /// Bytes of a layer.
    layer: u64,
    /// Places that there is room for.
    places: usize,
    /// For every text, where its new token goes.
    at: Buffer<i32>,
    /// Whether one new token of each text is run, not a whole prompt.
    one: bool,
}

impl Growing {
    /// Where the places of new tokens are; 0 while prompts are run.
    pub(super) fn new_places(&self) -> u64 {
        if self.one { self.at.address() } else { 0 }
    }

    fn of_layer(&self, index: usize) -> (u64, u64) {
        let from = index as u64 * self.layer;
        (self.keys.address() + from, self.values.address() + from)
    }
}

impl CudaModel {
    /// Continues prompts by at most `most` tokens each.
    ///
    /// # Errors
    /// Empty prompts, tokens that are none, memory that ran out, or what the driver says.
    pub fn continue_prompts(
        &mut self,
        prompts: &[Vec<u32>],
        most: usize,
        choose: &Choose<'_>,
    ) -> Result<Vec<Vec<u32>>, LanguageError> {
        if prompts.iter().any(Vec::is_empty) {
            return Err(LanguageError::InvalidInput("a prompt is empty".into()));
        }
        self.decoder.context.device.bind().map_err(failed)?;
        let a = self.decoder.architecture;
        let longest = self.room().length.min(a.context);
        let mut texts = prompts.to_vec();
        let mut order: Vec<usize> =
            (0..texts.len()).filter(|i| most > 0 && texts[*i].len() <= longest).collect();
        order.sort_by_key(|i| texts[*i].len());
        let lengths: Vec<usize> =
            order.iter().map(|i| (texts[*i].len() + most).min(longest)).collect();
        for (range, extent) in self.micro_batches(&lengths) {
            let group = &order[range];
            self.growing = Some(self.room_for(extent)?);
            let grown = self.grow(&mut texts, group, most, longest, choose);
            self.growing = None;
            grown?;
        }
        Ok(texts.iter().zip(prompts).map(|(text, prompt)| text[prompt.len()..].to_vec()).collect())
    }

    fn room_for(&self, extent: Extent) -> Result<Growing, LanguageError> {
        let (a, context) = (&self.decoder.architecture, &self.decoder.context);
        let layer = extent.rows() * a.key_width() * context.bytes();
        let zeros = |bytes: usize| context.device.zeros(bytes).map_err(failed);
        Ok(Growing {
            keys: zeros(a.layers * layer)?,
            values: zeros(a.layers * layer)?,
            layer: layer as u64,
            places: extent.length,
            at: context.device.zeros(extent.sequences).map_err(failed)?,
            one: false,
        })
    }

    /// Lets the texts of a group grow to their ends.
    fn grow(
        &mut self,
        texts: &mut [Vec<u32>],
        group: &[usize],
        most: usize,
        longest: usize,
        choose: &Choose<'_>,
    ) -> Result<(), LanguageError> {
        let prompt = group.iter().map(|i| texts[*i].len()).max().unwrap_or(0);
        let places = self.growing.as_ref().map_or(0, |growing| growing.places);
        let length = prompt.next_multiple_of(super::workspace::PLACES).min(places);
        let mut extent = Extent { sequences: group.len(), length };
        let prompts: Vec<Vec<u32>> = group.iter().map(|i| texts[*i].clone()).collect();
        self.put_tokens(prompts.iter().map(Vec::as_slice), extent)?;
        let mut rows: Vec<usize> =
            prompts.iter().enumerate().map(|(n, text)| n * length + text.len() - 1).collect();
        let mut open = vec![true; group.len()];
        for place in 0..most {
            self.forward(extent)?;
            let chosen = self.chosen(group, &rows, &open, place, choose)?;
            for ((number, open), token) in group.iter().zip(&mut open).zip(chosen) {
                match token {
                    Some(token) => texts[*number].push(token),
                    None => *open = false,
                }
                *open &= texts[*number].len() <= longest;
            }
            if place + 1 == most || open.iter().all(|open| !open) {
                break;
            }
            // A text that has ended goes on with its last token, which nobody looks at.
            extent = Extent { sequences: group.len(), length: 1 };
            let last = |i: &usize| texts[*i].len().min(places) - 1;
            let at: Vec<i32> = group.iter().map(|i| last(i) as i32).collect();
            let tokens: Vec<[u32; 1]> = group.iter().map(|i| [texts[*i][last(i)]]).collect();
            self.put_tokens(tokens.iter().map(|token| &token[..]), extent)?;
            let device = &self.decoder.context.device;
            if let Some(growing) = &mut self.growing {
                device.write(&mut growing.at, &at).map_err(failed)?;
                growing.one = true;
            }
            rows = (0..group.len()).collect();
        }
        Ok(())
    }

    /// The next token of every open text, given the rows of their last places.
    fn chosen(
        &mut self,
        group: &[usize],
        rows: &[usize],
        open: &[bool],
        place: usize,
        choose: &Choose<'_>,
    ) -> Result<Vec<Option<u32>>, LanguageError> {
        let (width, vocabulary) =
            (self.decoder.logits_width(), self.decoder.architecture.vocabulary);
        let mut found = vec![None; group.len()];
        let asked: Vec<usize> = (0..group.len()).filter(|n| open[*n]).collect();
        for part in asked.chunks(self.workspace.logits_rows) {
            let places: Vec<usize> = part.iter().map(|n| rows[*n]).collect();
            let logits = self.logits(&places)?;
            let chosen: Vec<Option<u32>> = part
                .par_iter()
                .zip(logits.par_chunks_exact(width))
                .map(|(n, row)| choose(group[*n], place, &row[..vocabulary]))
                .collect();
            for (n, token) in part.iter().zip(chosen) {
                found[*n] = token;
            }
        }
        Ok(found)
    }

    /// Keeps the keys and values of a whole pass.
    pub(super) fn keep_places(
        &self,
        growing: &Growing,
        index: usize,
        extent: Extent,
        kept: &Kept,
    ) -> Result<(), LanguageError> {
        let (a, context) = (&self.decoder.architecture, &self.decoder.context);
        let (keys, values) = growing.of_layer(index);
        for (to, from) in [(keys, kept.keys), (values, kept.values)] {
            context.striding(
                "keep_places",
                extent.rows() * a.key_width() / 4,
                &[
                    Address(to),
                    Address(from),
                    Int(extent.sequences as i32),
                    Int(a.key_heads as i32),
                    Int(extent.length as i32),
                    Int(growing.places as i32),
                    Int(a.head_width as i32),
                    Int(self.workspace.columns as i32),
                ],
            )?;
        }
        Ok(())
    }

    /// From one new row of each text to what its heads see, into `headed`.
    pub(super) fn attend(
        &self,
        growing: &Growing,
        index: usize,
        extent: Extent,
        kept: &Kept,
    ) -> Result<(), LanguageError> {
        let (decoder, w) = (&self.decoder, &self.workspace);
        let (a, context) = (&decoder.architecture, &decoder.context);
        let (keys, values) = growing.of_layer(index);
        let rows = extent.rows();
        let shape = [
            Int(rows as i32),
            Int(growing.places as i32),
            Int(a.heads as i32),
            Int(a.key_heads as i32),
            Int(a.head_width as i32),
        ];
        let layer = &decoder.layers[index];
        let given = [
            Address(kept.queries),
            Address(keys),
            Address(values),
            Address(w.joint),
            Address(layer.joint.bias.as_ref().map_or(0, Bias::address)),
            Address(optional(w.angles.as_ref())),
            Address(growing.at.address()),
        ];
        let pairs = [Int(decoder.pairs())];
        let count = rows * decoder.joint_width() / 4;
        context.striding("split_heads_at", count, &[&given[..], &shape, &pairs].concat())?;
        let given = [
            Address(w.headed),
            Address(kept.queries),
            Address(keys),
            Address(values),
            Address(growing.at.address()),
        ];
        let scale = [Float(1.0 / (a.head_width as f32).sqrt())];
        context.by_rows("attend", rows * a.heads, &[&given[..], &shape, &scale].concat())
    }
}
