//! Gaussians per second of the generator alone, on one thread.
//! `cargo run --release -p probes --example generator`
#![allow(clippy::print_stdout)]

use random::{Bernoulli, Purpose, Stream};
use std::time::Instant;

fn main() {
    let mut buffer = vec![0.0; 1000];
    let replicas = 200_000;
    let start = Instant::now();
    let mut sum = 0.0;
    for replica in 0..replicas {
        Stream::new(1, Purpose::NOISE, replica).fill_gaussians(0, 0, &mut buffer);
        sum += buffer[999];
    }
    let rate = replicas as f64 * buffer.len() as f64 / start.elapsed().as_secs_f64();
    println!("{:.0} million Gaussians per second ({sum:.3})", rate / 1e6);

    let mut buffer = vec![0.0f32; 1000];
    let start = Instant::now();
    let mut sum = 0.0;
    for replica in 0..replicas {
        Stream::new(1, Purpose::NOISE, replica).fill_gaussians_f32(0, 0, &mut buffer);
        sum += buffer[999];
    }
    let rate = replicas as f64 * buffer.len() as f64 / start.elapsed().as_secs_f64();
    println!("{:.0} million Gaussians per second in f32 ({sum:.3})", rate / 1e6);

    let mut hits = vec![false; 1000];
    let start = Instant::now();
    let mut count = 0u64;
    for replica in 0..replicas {
        let stream = Stream::new(1, Purpose::SAMPLING, replica);
        Bernoulli::new(0.01).fill(&stream, 0, 0, &mut hits);
        count += u64::from(hits[999]);
    }
    let rate = replicas as f64 * hits.len() as f64 / start.elapsed().as_secs_f64();
    println!("{:.0} million Bernoulli draws per second ({count})", rate / 1e6);
}
