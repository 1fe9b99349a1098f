//! Room for one micro-batch, in one piece of memory.
//!
//! For n places, widths w (state), q (queries), k (keys), f (before the activation), i (hidden), L
//! layers, H heads, sequences of T places: kept for going back are L n (2 x 4 w + 2 w + 2 q + 2 k +
//! H T + f + i) numbers, the first in f32 (H in place of H T, in f32, where attention never forms its
//! matrix), and low-rank numbers after each row that an adapter reads; beside them one layer's scratch,
//! a part of the logits and every example's adapter gradients.

use super::adapters::{Map, Places};
use super::context::failed;
use super::weights::CudaDecoder;
use crate::LanguageError;
use std::sync::PoisonError;
use training::cuda::Buffer;
use training::cuda::compute::Store;

/// Sequences of a micro-batch, all padded to one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) sequences: usize,
    pub(super) length: usize,
}

impl Extent {
    pub(super) fn rows(self) -> usize {
        self.sequences * self.length
    }
}

/// The largest micro-batch that there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) rows: usize,
    pub(super) sequences: usize,
    /// Of the longest sequence.
    pub(super) length: usize,
}

/// Places of a micro-batch beyond which products gain nothing.
const ROWS: usize = 1 << 14;
const SEQUENCES: usize = 1 << 10;
/// Sequences are padded to a multiple of this.
pub(super) const PLACES: usize = 8;
/// Numbers of logits that are held at a time.
const LOGITS: usize = 1 << 28;
/// Share of the free memory that is used.
const SHARE: f64 = 0.85;
/// Parts in which an example's squared norm is summed.
pub(super) const PARTS: usize = 32;

/// What one layer keeps between its passes.
#[derive(Clone, Copy, Default)]
pub(super) struct Kept {
    pub(super) before: u64,
    pub(super) before_moments: u64,
    pub(super) attention_input: u64,
    pub(super) queries: u64,
    pub(super) keys: u64,
    pub(super) values: u64,
    pub(super) probabilities: u64,
    /// In place of probabilities where attention never forms its matrix.
    pub(super) logs: u64,
    pub(super) mixed: u64,
    pub(super) middle: u64,
    pub(super) middle_moments: u64,
    pub(super) feed_input: u64,
    pub(super) feed: u64,
    pub(super) active: u64,
}

/// The gradients of one layer's linear maps: of their outputs, row by row, each with its low-rank
/// numbers after it. Where whole models are trained every layer has its own, which wait for the clipping
/// factors; otherwise all share one. Those of `output` and `down` are the stream's.
#[derive(Clone, Copy, Default)]
pub(super) struct Slopes {
    pub(super) joint: u64,
    pub(super) output: u64,
    pub(super) feed: u64,
    pub(super) down: u64,
}

/// Addresses into one buffer; see the fields of the same names on the CPU.
#[derive(Default)]
pub(super) struct Workspace {
    buffer: Option<(Buffer<u8>, usize)>,
    pub(super) rows: usize,
    pub(super) room: Option<Room>,
    pub(super) layers: Vec<Kept>,
    pub(super) slopes: Vec<Slopes>,
    pub(super) last: u64,
    pub(super) last_moments: u64,
    pub(super) states: u64,
    pub(super) angles: Option<Buffer<f32>>,
    /// Numbers from one row of queries, keys and values to the next, where attention reads them as their
    /// product leaves them; 0 where they lie heads first.
    pub(super) columns: usize,
    // Scratch.
    pub(super) joint: u64,
    pub(super) scores: u64,
    pub(super) headed: u64,
    pub(super) delta: u64,
    pub(super) picked: u64,
    pub(super) logits: u64,
    /// Rows of logits that there is room for.
    pub(super) logits_rows: usize,
    // Going back.
    /// Of the embedded tokens, in f32, where an embedding is trained.
    pub(super) dx: u64,
    pub(super) d_normed: u64,
    pub(super) d_active: u64,
    pub(super) d_mixed: u64,
    pub(super) d_queries: u64,
    pub(super) d_keys: u64,
    pub(super) d_values: u64,
    pub(super) d_scores: u64,
    pub(super) deltas: u64,
    pub(super) d_logits: u64,
    pub(super) d_picked: u64,
    /// Inner products of an example's residuals, and of its states, for a trained embedding.
    pub(super) residual_products: u64,
    pub(super) state_products: u64,
    pub(super) row_products: u64,
    pub(super) cross_products: u64,
    /// The picked states in f32.
    pub(super) wide_states: u64,
    pub(super) gradients: u64,
    pub(super) parts: u64,
    pub(super) sum: u64,
}

/// What a workspace is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Measuring,
    Training {
        /// Whether the embedding is trained, too: all logits are kept then.
        embedding: bool,
        /// Whether everything is: the numbers of its vectors.
        whole: Option<usize>,
    },
}

/// Hands out aligned pieces.
struct Carver(u64);

impl Carver {
    fn take(&mut self, bytes: usize) -> u64 {
        let at = self.0;
        self.0 += bytes.next_multiple_of(256) as u64;
        at
    }
}

impl Workspace {
    /// The largest room up to what pays that the device has memory for; sequences have at most
    /// `length` places. For training, there is room for going back.
    pub(super) fn new(
        decoder: &CudaDecoder,
        places: &Places,
        length: usize,
        purpose: Use,
    ) -> Result<Self, LanguageError> {
        let device = &decoder.context.device;
        let mut spare = decoder.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        let held = spare.as_ref().map_or(0, |(_, size)| *size);
        let free = device.memory().map_err(failed)?.0 + held;
        let limit = (free as f64 * SHARE) as u64;
        let length = length.max(1).next_multiple_of(PLACES);
        let mut room = Room { rows: ROWS.max(length), sequences: SEQUENCES, length };
        loop {
            let needed = Self::carve(decoder, places, room, purpose, 0).1;
            if needed <= limit {
                break;
            }
            if room.rows <= length && room.sequences == 1 {
                return Err(LanguageError::Device(format!(
                    "the device is out of memory: one sequence of {length} tokens needs {} MiB and \
                     {} MiB are free; shorten `length`, or use --device cpu",
                    needed >> 20,
                    free >> 20
                )));
            }
            room.rows = (room.rows / 2).max(length);
            room.sequences = (room.sequences / 2).max(1);
        }
        let size = Self::carve(decoder, places, room, purpose, 0).1 as usize;
        if held < size {
            // What was reserved is given back only once the device has caught up.
            drop(spare.take());
            device.finish().map_err(failed)?;
        }
        // A pass writes everything before it reads it: what another left does not matter.
        let (buffer, size) = match spare {
            Some(spare) => spare,
            None => (device.zeros(size).map_err(failed)?, size),
        };
        let mut made = Self::carve(decoder, places, room, purpose, buffer.address()).0;
        made.buffer = Some((buffer, size));
        made.angles = Some(device.upload(&decoder.angles(length)).map_err(failed)?);
        Ok(made)
    }

    /// Leaves its memory to the next.
    pub(super) fn give_back(&mut self, decoder: &CudaDecoder) {
        *decoder.spare.lock().unwrap_or_else(PoisonError::into_inner) = self.buffer.take();
    }

    /// Addresses from `base` on, and where they end.
    fn carve(
        decoder: &CudaDecoder,
        places: &Places,
        room: Room,
        purpose: Use,
        base: u64,
    ) -> (Self, u64) {
        let training = purpose != Use::Measuring;
        let (embedding, whole) = match purpose {
            Use::Measuring => (false, None),
            Use::Training { embedding, whole } => (embedding, whole),
        };
        let vectors = whole.unwrap_or(places.size);
        let a = &decoder.architecture;
        let Room { rows, sequences, length } = room;
        let real = decoder.context.bytes();
        let exact = decoder.context.store == Store::Float32;
        let (scores, logs) = match decoder.context.tiled {
            true => (0, 4 * rows * a.heads),
            false => (rows * a.heads * length, 0),
        };
        let mut carver = Carver(base);
        let direct = training && decoder.context.tiled && decoder.pairs() == 0;
        let columns = if direct { decoder.joint_width() } else { 0 };
        let mut own = Self { rows, room: Some(room), columns, ..Self::default() };
        let [joint, output, feed, down] = Map::ALL.map(|map| {
            let ((inputs, outputs), tail) = (decoder.shape(map), places.tail(map));
            [inputs + tail, outputs + tail].map(|numbers| real * rows * numbers)
        });
        let c = &mut carver;
        for layer in 0..a.layers {
            if layer > 0 && !training {
                own.layers.push(own.layers[0]);
                continue;
            }
            // In a pass that keeps nothing, the stream is changed in place.
            let before = c.take(4 * rows * a.width);
            let (wide, narrow) = (a.query_width(), a.key_width());
            let [queries, keys, values] = if direct {
                let start = c.take(real * rows * decoder.joint_width());
                [0, wide, wide + narrow].map(|number| start + (real * number) as u64)
            } else {
                [wide, narrow, narrow].map(|numbers| c.take(real * rows * numbers))
            };
            own.layers.push(Kept {
                before,
                before_moments: c.take(8 * rows),
                attention_input: c.take(joint[0]),
                queries,
                keys,
                values,
                probabilities: c.take(real * scores),
                logs: c.take(logs),
                mixed: c.take(output[0]),
                middle: if training { c.take(4 * rows * a.width) } else { before },
                middle_moments: c.take(8 * rows),
                feed_input: c.take(feed[0]),
                feed: c.take(real * rows * decoder.feed_width()),
                active: c.take(down[0]),
            });
        }
        own.last = c.take(4 * rows * a.width);
        own.last_moments = c.take(8 * rows);
        own.states = c.take(real * rows * a.width);
        own.joint = c.take(joint[1]);
        own.scores = c.take(4 * scores);
        own.headed = c.take(real * rows * a.query_width());
        own.delta = c.take(real * rows * a.width);
        own.picked = c.take(real * rows * a.width);
        let most = if embedding { usize::MAX } else { LOGITS };
        own.logits_rows = (most / decoder.logits_width()).clamp(1, rows);
        own.logits = c.take(4 * own.logits_rows * decoder.logits_width());
        if training {
            own.d_normed = c.take(real * rows * a.width);
            // GELU's derivative works in place.
            if decoder.feed_width() != a.hidden {
                own.d_active = c.take(real * rows * a.hidden);
            }
            let mut slopes = || Slopes {
                joint: c.take(joint[1]),
                output: c.take(output[1]),
                feed: c.take(feed[1]),
                down: c.take(down[1]),
            };
            own.slopes = match whole {
                Some(_) => (0..a.layers).map(|_| slopes()).collect(),
                None => vec![slopes(); a.layers],
            };
            own.d_mixed = c.take(real * rows * a.query_width());
            own.d_queries = c.take(real * rows * a.query_width());
            own.d_keys = c.take(real * rows * a.key_width());
            own.d_values = c.take(real * rows * a.key_width());
            own.deltas = c.take(logs);
            own.d_scores = if exact { own.scores } else { c.take(real * scores) };
            own.d_logits = if exact {
                own.logits
            } else {
                c.take(real * own.logits_rows * decoder.logits_width())
            };
            own.d_picked = c.take(real * rows * a.width);
            if embedding {
                own.dx = c.take(4 * rows * a.width);
                own.residual_products = c.take(4 * rows * length);
                own.state_products = c.take(4 * rows * length);
                own.row_products = c.take(4 * rows * length);
                own.cross_products = c.take(4 * rows * length);
                own.wide_states = if exact { own.picked } else { c.take(4 * rows * a.width) };
            }
            own.gradients = c.take(4 * sequences * vectors);
            own.parts = c.take(8 * sequences * PARTS);
            own.sum = c.take(8 * vectors);
        }
        let end = carver.0;
        (own, end)
    }
}
