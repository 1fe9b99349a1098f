//! Decoders and texts that the CPU and a device are compared on.

use language::finetune::{Example, Layout, Lora, Scope, attach};
use language::load::decoder_from_safetensors;
use language::model::{
    Activation, Architecture, Decoder, Layer, Linear, Norm, NormWeights, Pairs, Position,
    Projection,
};
use random::{Purpose, Stream};

macro_rules! reference {
    ($name:literal) => {
        (
            include_str!(concat!("../reference/", $name, "/config.json")),
            &include_bytes!(concat!("../reference/", $name, "/model.safetensors"))[..],
        )
    };
}

/// A decoder with adapters of rank 3 on everything, whose `up` is not zero, and whose biases and
/// norms are not those of a fresh model.
fn adapted(mut decoder: Decoder, rank: usize) -> Decoder {
    let stream = Stream::new(11, Purpose::INITIALISATION, 7);
    let mut number = 0;
    let mut shake = |numbers: &mut Vec<f32>| {
        let mut noise = vec![0.0; numbers.len()];
        stream.fill_gaussians_f32(number, 0, &mut noise);
        number += 1;
        for (x, noise) in numbers.iter_mut().zip(noise) {
            *x += 0.2 * noise;
        }
    };
    for layer in &mut decoder.layers {
        for norm in [&mut layer.attention_norm, &mut layer.feed_norm] {
            shake(&mut norm.weight);
            norm.bias.iter_mut().for_each(&mut shake);
        }
        for projection in Projection::ALL {
            if let Some(linear) = layer.linear_mut(projection) {
                linear.bias.iter_mut().for_each(&mut shake);
            }
        }
    }
    let gate = decoder.layers[0].gate.is_some();
    let projections =
        Projection::ALL.into_iter().filter(|p| gate || *p != Projection::Gate).collect();
    attach(&mut decoder, &Lora { rank, alpha: 6.0, projections }, 1).unwrap();
    let layout = Layout::new(&decoder, Scope::Adapters { embedding: false });
    let values: Vec<f32> = layout
        .parameters(&decoder)
        .iter()
        .enumerate()
        .map(|(i, x)| x + 0.05 * ((i as f32 * 0.7).sin()))
        .collect();
    layout.set(&mut decoder, &values);
    decoder
}

/// Texts of different lengths whose beginning is given.
pub(crate) fn examples(count: u32, vocabulary: usize, longest: u32) -> Vec<Example> {
    (0..count)
        .map(|i| {
            let tokens = (0..3 + (5 * i) % (longest - 2))
                .map(|j| (37 * i + 11 * j * j + i * j) % vocabulary as u32)
                .collect();
            Example { tokens, first: 1 + i as usize % 2 }
        })
        .collect()
}

/// A decoder of two layers with random weights.
fn random_decoder(heads: (usize, usize, usize), position: Position) -> Decoder {
    let (width, hidden, vocabulary, context) = (96, 160, 67, 256);
    let rotary = position != Position::Learned;
    let (norm, activation) = match rotary {
        true => (Norm::Rms { epsilon: 1e-5 }, Activation::SwiGlu),
        false => (Norm::Layer { epsilon: 1e-5 }, Activation::GeluTanh),
    };
    let (heads, key_heads, head_width) = heads;
    let architecture = Architecture {
        vocabulary,
        width,
        layers: 2,
        heads,
        key_heads,
        head_width,
        hidden,
        context,
        norm,
        position,
        activation,
    };
    let stream = Stream::new(5, Purpose::INITIALISATION, 1);
    let mut number = 0;
    let mut numbers = |count: usize, size: f32| -> Vec<f32> {
        let mut out = vec![0.0; count];
        stream.fill_gaussians_f32(number, 0, &mut out);
        number += 1;
        out.iter_mut().for_each(|x| *x *= size);
        out
    };
    let weights =
        || NormWeights { weight: vec![1.0; width], bias: (!rotary).then(|| vec![0.0; width]) };
    let mut layers = Vec::new();
    for _ in 0..2 {
        let mut linear = |inputs: usize, outputs: usize| Linear {
            weight: numbers(inputs * outputs, 1.5 / (inputs as f32).sqrt()),
            bias: (!rotary).then(|| vec![0.0; outputs]),
            inputs,
            outputs,
            adapter: None,
        };
        layers.push(Layer {
            attention_norm: weights(),
            query: linear(width, heads * head_width),
            key: linear(width, key_heads * head_width),
            value: linear(width, key_heads * head_width),
            output: linear(heads * head_width, width),
            feed_norm: weights(),
            gate: rotary.then(|| linear(width, hidden)),
            up: linear(width, hidden),
            down: linear(hidden, width),
        });
    }
    Decoder {
        architecture,
        embedding: numbers(vocabulary * width, 0.3),
        positions: (!rotary).then(|| numbers(context * width, 0.3)),
        layers,
        final_norm: weights(),
        head: None,
    }
}

/// Texts shorter than a block of attention, as long, and longer.
fn long_examples() -> Vec<Example> {
    [5, 63, 64, 65, 120, 200, 256, 130]
        .into_iter()
        .enumerate()
        .map(|(i, length)| {
            let i = i as u32;
            let tokens = (0..length).map(|j: u32| (37 * i + 11 * j * j + 3 * j + i * j) % 67);
            Example { tokens: tokens.collect(), first: 1 + i as usize % 2 }
        })
        .collect()
}

/// Layer norm, learned positions, GELU and biases, with a vocabulary size that 4 does not divide;
/// RMS norm, rotation of halves, grouped keys, SwiGLU; a head of its own; rotation of neighbours.
/// Heads of 64 and of 48 numbers, for which attention never forms its matrix in bf16, and long texts.
pub(crate) fn cases() -> Vec<(&'static str, Decoder, Vec<Example>)> {
    let read = |(config, bytes): (&str, &[u8])| {
        decoder_from_safetensors(config, "config", &[(bytes, "model".into())]).unwrap()
    };
    let stories = include_bytes!("../data/stories260K/stories260K.bin");
    let stories = language::load::llama2c::decoder(&stories[..], "stories").unwrap();
    let learned = random_decoder((2, 2, 64), Position::Learned);
    let halves = Position::Rotary { base: 1e4, pairs: Pairs::Halves };
    let rotated = random_decoder((6, 2, 48), halves);
    vec![
        ("gpt2", adapted(read(reference!("gpt2")).with_vocabulary(61), 3), examples(12, 61, 30)),
        ("llama", adapted(read(reference!("llama")), 3), examples(12, 64, 30)),
        ("llama, own head", adapted(read(reference!("llama-untied")), 4), examples(12, 64, 20)),
        ("stories", adapted(stories, 8), examples(6, 512, 20)),
        ("heads of 64", adapted(learned, 16), long_examples()),
        ("shared heads of 48", adapted(rotated, 8), long_examples()),
    ]
}
