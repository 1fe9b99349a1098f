//! Maxima and averages over sliding windows, channel by channel.

use super::layer::{Backward, Layer};
use super::vectorise::vectorised;
use crate::model::Pool;

vectorised! {
    fn take_larger<'a>(offset: u32, x: &'a [f32], y: &'a mut [f32], winners: &'a mut [u32]) {
        for ((x, y), winner) in x.iter().zip(y).zip(winners) {
            let larger = *x > *y;
            *y = if larger { *x } else { *y };
            *winner = if larger { offset } else { *winner };
        }
    }

    fn give_back<'a>(offset: u32, winners: &'a [u32], dy: &'a [f32], dx: &'a mut [f32]) {
        for ((winner, dy), dx) in winners.iter().zip(dy).zip(dx) {
            *dx += if *winner == offset { *dy } else { 0.0 };
        }
    }
}

/// Where the window at an output position reads: (position out, window offset, position in).
fn windows(layer: &Pool, mut each: impl FnMut(usize, u32, usize)) {
    for row in 0..layer.output.height {
        for column in 0..layer.output.width {
            let out = row * layer.output.width + column;
            for window in 0..layer.kernel * layer.kernel {
                let y = row * layer.stride + window / layer.kernel;
                let x = column * layer.stride + window % layer.kernel;
                each(out, window as u32, y * layer.input.width + x);
            }
        }
    }
}

fn max_forward(layer: &Pool, x: &[f32], y: &mut [f32], winners: &mut [u32]) {
    let channels = layer.input.channels;
    let examples = x
        .chunks_exact(layer.input.len())
        .zip(y.chunks_exact_mut(layer.output.len()))
        .zip(winners.chunks_exact_mut(layer.output.len()));
    for ((x, y), winners) in examples {
        windows(layer, |out, offset, place| {
            let x = &x[place * channels..(place + 1) * channels];
            let range = out * channels..(out + 1) * channels;
            if offset == 0 {
                y[range.clone()].copy_from_slice(x);
                winners[range].fill(0);
            } else {
                take_larger(offset, x, &mut y[range.clone()], &mut winners[range]);
            }
        });
    }
}

fn max_backward(layer: &Pool, winners: &[u32], dy: &[f32], dx: &mut [f32]) {
    let channels = layer.input.channels;
    dx.fill(0.0);
    let examples = dx
        .chunks_exact_mut(layer.input.len())
        .zip(dy.chunks_exact(layer.output.len()))
        .zip(winners.chunks_exact(layer.output.len()));
    for ((dx, dy), winners) in examples {
        windows(layer, |out, offset, place| {
            let range = out * channels..(out + 1) * channels;
            let dx = &mut dx[place * channels..(place + 1) * channels];
            give_back(offset, &winners[range.clone()], &dy[range], dx);
        });
    }
}

fn average_forward(layer: &Pool, x: &[f32], y: &mut [f32]) {
    let channels = layer.input.channels;
    let share = 1.0 / (layer.kernel * layer.kernel) as f32;
    y.fill(0.0);
    for (x, y) in x.chunks_exact(layer.input.len()).zip(y.chunks_exact_mut(layer.output.len())) {
        windows(layer, |out, _, place| {
            let x = &x[place * channels..(place + 1) * channels];
            for (y, x) in y[out * channels..(out + 1) * channels].iter_mut().zip(x) {
                *y += share * x;
            }
        });
    }
}

fn average_backward(layer: &Pool, dy: &[f32], dx: &mut [f32]) {
    let channels = layer.input.channels;
    let share = 1.0 / (layer.kernel * layer.kernel) as f32;
    dx.fill(0.0);
    let examples = dx.chunks_exact_mut(layer.input.len()).zip(dy.chunks_exact(layer.output.len()));
    for (dx, dy) in examples {
        windows(layer, |out, _, place| {
            let dy = &dy[out * channels..(out + 1) * channels];
            for (dx, dy) in dx[place * channels..(place + 1) * channels].iter_mut().zip(dy) {
                *dx += share * dy;
            }
        });
    }
}

/// The largest number of each window, and which of them it was.
pub(super) struct MaxPool {
    layer: Pool,
    winners: Vec<u32>,
}

impl MaxPool {
    pub(super) fn new(layer: Pool, capacity: usize) -> Self {
        Self { layer, winners: vec![0; capacity * layer.output.len()] }
    }
}

impl Layer for MaxPool {
    fn forward(&mut self, _: &[f32], x: &[f32], y: &mut [f32], _: usize) {
        let winners = &mut self.winners[..y.len()];
        max_forward(&self.layer, x, y, winners);
    }

    fn backward(&mut self, given: Backward<'_>, dx: Option<&mut [f32]>) {
        if let Some(dx) = dx {
            max_backward(&self.layer, &self.winners[..given.dy.len()], given.dy, dx);
        }
    }
}

/// The mean of each window.
pub(super) struct AveragePool(pub(super) Pool);

impl Layer for AveragePool {
    fn forward(&mut self, _: &[f32], x: &[f32], y: &mut [f32], _: usize) {
        average_forward(&self.0, x, y);
    }

    fn backward(&mut self, given: Backward<'_>, dx: Option<&mut [f32]>) {
        if let Some(dx) = dx {
            average_backward(&self.0, given.dy, dx);
        }
    }
}
