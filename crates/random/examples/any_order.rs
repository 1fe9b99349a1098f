//! The noise of a training, made twice: in order by one thread, and in any order by four. Every number
//! has an address (step, coordinate), so the bytes are the same.
//!
//! `cargo run --release -p dosimeter-random --example any_order`
#![allow(clippy::print_stdout)]

use random::{Bernoulli, Purpose, Stream};

const STEPS: u64 = 8;
const PARAMETERS: usize = 10_000;

fn main() {
    let noise = Stream::new(2026, Purpose::NOISE, 0);
    let mut in_order = vec![0.0; STEPS as usize * PARAMETERS];
    for (step, row) in (0..STEPS).zip(in_order.chunks_mut(PARAMETERS)) {
        noise.fill_gaussians(step, 0, row);
    }
    let mut in_parts = vec![0.0; in_order.len()];
    std::thread::scope(|scope| {
        for (step, row) in in_parts.chunks_mut(PARAMETERS).enumerate().rev() {
            let (noise, step) = (&noise, step as u64);
            scope.spawn(move || {
                let (head, tail) = row.split_at_mut(PARAMETERS / 3);
                noise.fill_gaussians(step, (PARAMETERS / 3) as u64, tail);
                noise.fill_gaussians(step, 0, head);
            });
        }
    });
    assert_eq!(in_order, in_parts);
    println!("{} Gaussians, the same in any order: {:?} …", in_order.len(), &in_order[..3]);

    // Who is in the batch of step 3, each record by its own coin.
    let coins = Stream::new(2026, Purpose::SAMPLING, 0);
    let mut batch = vec![false; 1_000];
    Bernoulli::new(0.01).fill(&coins, 3, 0, &mut batch);
    println!("{} of 1,000 records are in the batch", batch.iter().filter(|drawn| **drawn).count());
}
