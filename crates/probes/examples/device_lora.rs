//! Speed of a private LoRA step on a CUDA device: GPT-2 of 124 million numbers (random weights), a
//! batch of 64 x 256 tokens, rank 16 on queries, keys and values, DP-Adam.
//!
//! cargo run --release -p probes --example device_lora [-- [full] [profile] [f32] [tf32] [bf16]]
//!
//! `full` trains every weight, `profile` says how long each kernel of a step takes; the names of
//! precisions are those to measure, all three where none is given.
//!
//! Every row is the median of several steps after a warm-up; a step ends when its losses have been
//! read. Beside it `device_lora.py` does the same in PyTorch. The last line is JSON.
#![allow(clippy::print_stdout)]

use language::cuda::{CudaDecoder, CudaTrainer, Precision};
use language::finetune::{Example, Lora, Recipe, Scope, attach};
use language::model::{
    Activation, Architecture, Decoder, Layer, Linear, Norm, NormWeights, Position, Projection,
};
use random::{Purpose, Stream};
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;
use training::OptimizerDescription;
use training::cuda::CudaDevice;
use vocabulary::{Run, Sampling};

const BATCH: usize = 64;
const LENGTH: usize = 256;
const STEPS: usize = 12;
const WARM_UP: usize = 3;

/// GPT-2 of the small size with random weights.
fn gpt2() -> Decoder {
    let architecture = Architecture {
        vocabulary: 50_257,
        width: 768,
        layers: 12,
        heads: 12,
        key_heads: 12,
        head_width: 64,
        hidden: 3072,
        context: 1024,
        norm: Norm::Layer { epsilon: 1e-5 },
        position: Position::Learned,
        activation: Activation::GeluTanh,
    };
    let stream = Stream::new(1, Purpose::INITIALISATION, 0);
    let mut number = 0;
    let mut numbers = |count: usize| -> Vec<f32> {
        let mut out = vec![0.0; count];
        stream.fill_gaussians_f32(number, 0, &mut out);
        number += 1;
        out.iter_mut().for_each(|x| *x *= 0.02);
        out
    };
    let norm = || NormWeights { weight: vec![1.0; 768], bias: Some(vec![0.0; 768]) };
    let mut layers = Vec::new();
    for _ in 0..12 {
        let mut linear = |inputs: usize, outputs: usize| Linear {
            weight: numbers(inputs * outputs),
            bias: Some(vec![0.0; outputs]),
            inputs,
            outputs,
            adapter: None,
        };
        layers.push(Layer {
            attention_norm: norm(),
            query: linear(768, 768),
            key: linear(768, 768),
            value: linear(768, 768),
            output: linear(768, 768),
            feed_norm: norm(),
            gate: None,
            up: linear(768, 3072),
            down: linear(3072, 768),
        });
    }
    Decoder {
        architecture,
        embedding: numbers(50_257 * 768),
        positions: Some(numbers(1024 * 768)),
        layers,
        final_norm: norm(),
        head: None,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let profile = std::env::args().any(|argument| argument == "profile");
    let device = CudaDevice::open(0)?;
    println!("{}", device.name());
    let mut decoder = gpt2();
    let full = std::env::args().any(|argument| argument == "full");
    if !full {
        let projections = vec![Projection::Query, Projection::Key, Projection::Value];
        attach(&mut decoder, &Lora { rank: 16, alpha: 16.0, projections }, 1)?;
    }
    let stream = Stream::new(2, Purpose::SHUFFLE, 0);
    let examples: Vec<Example> = (0..BATCH as u64)
        .map(|i| {
            let token = |j: u64| (stream.word(i, j) % 50_257) as u32;
            Example { tokens: (0..LENGTH as u64).map(token).collect(), first: 1 }
        })
        .collect();
    let run = Run::builder()
        .phase(1.0, 1.0, (STEPS + WARM_UP + 1) as u64)
        .clip_norm(1.0)
        .sampling(Sampling::Full)
        .build()?;
    let recipe = Recipe {
        run,
        optimizer: OptimizerDescription::adam(1e-3),
        scope: if full { Scope::Full } else { Scope::Adapters { embedding: false } },
        micro_batch: 1,
        seed: 1,
        canaries: None,
    };
    let mut rows = Vec::new();
    let all = ["f32", "tf32", "bf16"];
    let asked = |name: &str| std::env::args().any(|argument| argument == name);
    let chosen = |name: &&str| asked(name) || !all.iter().any(|other| asked(other));
    for name in all.into_iter().filter(chosen) {
        let precision = Precision::named(name).ok_or("no such precision")?;
        let frozen = CudaDecoder::new(&decoder, Arc::clone(&device), precision)?;
        let mut tuned = decoder.clone();
        let mut trainer = CudaTrainer::new(&frozen, &mut tuned, &examples, recipe.clone(), 0)?;
        let mut seconds = Vec::new();
        let mut loss = 0.0;
        for step in 0..STEPS + WARM_UP {
            let start = Instant::now();
            loss = trainer.step()?.loss_sum / BATCH as f64;
            device.finish()?;
            if step >= WARM_UP {
                seconds.push(start.elapsed().as_secs_f64());
            }
        }
        if profile {
            device.measure();
            trainer.step()?;
            let rows = device.measured();
            let all: f64 = rows.iter().map(|(_, _, seconds)| seconds).sum();
            println!("{name}: {:.3} ms in kernels and products, waiting after each", 1e3 * all);
            for (name, count, seconds) in rows.iter().take(40) {
                println!("  {:8.3} ms {count:4} x {name}", 1e3 * seconds);
            }
        }
        let mut model = trainer.finish()?;
        let all: Vec<&Example> = examples.iter().collect();
        let start = Instant::now();
        model.losses(&all)?;
        let forward = start.elapsed().as_secs_f64();
        seconds.sort_by(f64::total_cmp);
        let tokens = (BATCH * LENGTH) as f64;
        let (middle, least, most) = (seconds[STEPS / 2], seconds[0], seconds[STEPS - 1]);
        println!(
            "{name:5} {:>9.0} tokens/s  [{:.0}..{:.0}]  {:.1} ms per step, {:.1} ms of them forward and loss; loss {loss:.4}",
            tokens / middle,
            tokens / most,
            tokens / least,
            1e3 * middle,
            1e3 * forward
        );
        rows.push(serde_json::json!({
            "precision": name, "tokens_per_second": tokens / middle, "milliseconds": 1e3 * middle,
        }));
    }
    println!("{}", serde_json::json!({"device": device.name(), "full": full, "rows": rows}));
    Ok(())
}
