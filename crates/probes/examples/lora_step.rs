//! Speed and memory of LoRA DP-Adam steps on a random Llama of a stated shape, for
//! `cargo xtask bench language`:
//! `lora_step LAYERS WIDTH HEADS KEY_HEADS HIDDEN VOCABULARY BATCH LENGTH RANK STEPS THREADS`.
//! Prints processor and clock seconds per step, the largest resident memory, and how long the step's
//! multiplications alone take at the rate of one large product, in processor seconds.

use language::Decoder;
use language::finetune::{Example, Lora, Recipe, Scope, Trainer, attach, micro_batch};
use language::model::{
    Activation, Architecture, Layer, Linear, Norm, NormWeights, Pairs, Position,
};
use random::{Purpose, Stream};
use std::time::Instant;
use training::OptimizerDescription;
use training::cpu::product::{View, product};
use vocabulary::Run;

fn decoder([layers, width, heads, key_heads, hidden, vocabulary]: [usize; 6]) -> Decoder {
    let stream = Stream::new(1, Purpose::INITIALISATION, 0);
    let mut row = 0;
    let mut linear = |outputs: usize, inputs: usize| {
        let mut weight = vec![0.0; outputs * inputs];
        stream.fill_gaussians_f32(row, 0, &mut weight);
        row += 1;
        weight.iter_mut().for_each(|x| *x *= 0.02);
        Linear { weight, bias: None, inputs, outputs, adapter: None }
    };
    let norm = || NormWeights { weight: vec![1.0; width], bias: None };
    let head_width = width / heads;
    let narrow = key_heads * head_width;
    let blocks = (0..layers)
        .map(|_| Layer {
            attention_norm: norm(),
            query: linear(width, width),
            key: linear(narrow, width),
            value: linear(narrow, width),
            output: linear(width, width),
            feed_norm: norm(),
            gate: Some(linear(hidden, width)),
            up: linear(hidden, width),
            down: linear(width, hidden),
        })
        .collect();
    Decoder {
        architecture: Architecture {
            vocabulary,
            width,
            layers,
            heads,
            key_heads,
            head_width,
            hidden,
            context: 2048,
            norm: Norm::Rms { epsilon: 1e-5 },
            position: Position::Rotary { base: 10_000.0, pairs: Pairs::Halves },
            activation: Activation::SwiGlu,
        },
        embedding: linear(vocabulary, width).weight,
        positions: None,
        layers: blocks,
        final_norm: norm(),
        head: None,
    }
}

/// User and system seconds of this process so far, from the kernel's table.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = text.rsplit(')').next().unwrap_or("");
    let ticks: f64 =
        after.split_whitespace().skip(11).take(2).filter_map(|x| x.parse::<f64>().ok()).sum();
    ticks / 100.0
}

/// Additions and multiplications of the products of a step that cannot be left out, adapters not
/// counted: forward, and back to the queries and values of the first block; the last token is not
/// read; attention's past only.
fn operations(
    [layers, width, heads, key_heads, hidden, vocabulary]: [usize; 6],
    batch: usize,
    length: usize,
) -> f64 {
    let narrow = key_heads * (width / heads);
    let first = width * width + 2 * width * narrow;
    let block = first + width * width + 3 * width * hidden;
    let weights = 2 * layers * block - first;
    let head = 2 * vocabulary * width;
    // Scores and mixing forward; back through both, twice each.
    let attention = 3 * layers * length * width;
    2.0 * (batch * (length - 1)) as f64 * (weights + head + attention) as f64
}

/// Processor seconds of this many operations, at the rate of a large product.
fn product_seconds(operations: f64) -> f64 {
    const TIMES: usize = 200;
    let (m, k, n) = (512, 512, 512);
    let (left, right) = (vec![0.5_f32; m * k], vec![0.25_f32; k * n]);
    let mut out = vec![0.0_f32; m * n];
    let begin = processor_seconds();
    for _ in 0..TIMES {
        product(&mut out, View::new(&left, m, k), View::new(&right, k, n), false);
    }
    let seconds = processor_seconds() - begin;
    std::hint::black_box(out);
    operations * seconds / (2 * TIMES * m * k * n) as f64
}

fn largest_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|x| x.parse().ok()).unwrap_or(0)
}

#[allow(clippy::print_stdout)] // a program
fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|x| x.parse().ok()).collect();
    let [layers, width, heads, keys, hidden, vocabulary, batch, length, rank, steps, threads] =
        numbers[..]
    else {
        panic!("eleven whole numbers are needed: see the source's first lines");
    };
    let mut decoder = decoder([layers, width, heads, keys, hidden, vocabulary]);
    attach(&mut decoder, &Lora { rank, ..Lora::default() }, 1).expect("adapters");
    let examples: Vec<Example> = (0..batch)
        .map(|i| Example {
            tokens: (0..length).map(|j| ((i * 131 + j * 17) % vocabulary) as u32).collect(),
            first: 1,
        })
        .collect();
    let run = Run::builder().phase(1.0, 1.0, steps as u64 + 1).build().expect("a run");
    let micro_batch = micro_batch(&decoder.architecture, length);
    let optimizer = OptimizerDescription::adam(1e-3);
    let scope = Scope::Adapters { embedding: false };
    let recipe = Recipe { run, optimizer, scope, micro_batch, seed: 1, canaries: None };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    let (processor, clock) = pool.install(|| {
        let mut trainer = Trainer::new(&mut decoder, &examples, recipe).expect("a trainer");
        // The peer's first step is not counted either; one step alone is for its memory.
        if steps > 1 {
            trainer.step().expect("a step");
        }
        let (begin, start) = (processor_seconds(), Instant::now());
        for _ in 0..steps {
            trainer.step().expect("a step");
        }
        (processor_seconds() - begin, start.elapsed().as_secs_f64())
    });
    let memory = largest_memory();
    let shape = [layers, width, heads, keys, hidden, vocabulary];
    let products = product_seconds(operations(shape, batch, length));
    println!(
        "{{\"processor_seconds\":{},\"clock_seconds\":{},\"memory_kib\":{memory},\"micro_batch\":{micro_batch},\"product_seconds\":{products}}}",
        processor / steps as f64,
        clock / steps as f64,
    );
}
