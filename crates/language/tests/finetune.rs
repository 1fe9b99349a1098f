//! Per-example gradients of adapters, embeddings and whole models, and private steps, on stories260K
//! and on small random models of both families.

use language::Decoder;
use language::finetune::gradient_canaries::GradientCanaries;
use language::finetune::{
    Example, Layout, Lora, Recipe, Scope, Trainer, attach, clipped_sum, per_example, weights,
};
use language::model::{
    Activation, Architecture, Layer, Linear, Norm, NormWeights, Pairs, Position, Projection,
};
use random::{Purpose, Stream};
use std::path::Path;
use std::sync::Arc;
use training::OptimizerDescription;
use vocabulary::{Observe, Run};

fn decoder() -> Decoder {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/stories260K/stories260K.bin");
    language::load::llama2c::decoder(&std::fs::read(path).unwrap(), "stories").unwrap()
}

/// Made-up sequences of different lengths.
fn examples(count: u32) -> Vec<Example> {
    (0..count)
        .map(|i| {
            let tokens = (0..8 + i % 5).map(|j| 259 + (37 * i + 11 * j * j) % 250).collect();
            Example { tokens, first: 1 + i as usize % 3 }
        })
        .collect()
}

/// A random decoder: GPT-2's parts with biases, or Llama's with grouped keys and a head of its own.
fn random_decoder(gpt2: bool) -> Decoder {
    let (width, hidden, context, vocabulary) = (12, 20, 16, 50);
    let architecture = Architecture {
        vocabulary,
        width,
        layers: 2,
        heads: 3,
        key_heads: if gpt2 { 3 } else { 1 },
        head_width: 4,
        hidden,
        context,
        norm: if gpt2 { Norm::Layer { epsilon: 1e-5 } } else { Norm::Rms { epsilon: 1e-5 } },
        position: if gpt2 {
            Position::Learned
        } else {
            Position::Rotary { base: 100.0, pairs: Pairs::Halves }
        },
        activation: if gpt2 { Activation::GeluTanh } else { Activation::SwiGlu },
    };
    let stream = Stream::new(11, Purpose::INITIALISATION, u64::from(gpt2));
    let mut number = 0;
    let mut numbers = |count: usize, mean: f32, size: f32| -> Vec<f32> {
        let mut out = vec![0.0; count];
        stream.fill_gaussians_f32(number, 0, &mut out);
        number += 1;
        out.iter().map(|x| mean + size * x).collect()
    };
    let mut layers = Vec::new();
    let norm = |numbers: &mut dyn FnMut(usize, f32, f32) -> Vec<f32>| NormWeights {
        weight: numbers(width, 1.0, 0.2),
        bias: gpt2.then(|| numbers(width, 0.0, 0.2)),
    };
    for _ in 0..2 {
        let mut linear = |outputs: usize, inputs: usize| Linear {
            weight: numbers(outputs * inputs, 0.0, 0.4),
            bias: gpt2.then(|| numbers(outputs, 0.0, 0.2)),
            inputs,
            outputs,
            adapter: None,
        };
        let narrow = architecture.key_width();
        let (query, key, value, output) =
            (linear(12, width), linear(narrow, width), linear(narrow, width), linear(width, 12));
        let gate = (!gpt2).then(|| linear(hidden, width));
        let (up, down) = (linear(hidden, width), linear(width, hidden));
        let (attention_norm, feed_norm) = (norm(&mut numbers), norm(&mut numbers));
        layers.push(Layer { attention_norm, query, key, value, output, feed_norm, gate, up, down });
    }
    Decoder {
        architecture,
        embedding: numbers(vocabulary * width, 0.0, 0.5),
        positions: gpt2.then(|| numbers(context * width, 0.0, 0.3)),
        layers,
        final_norm: norm(&mut numbers),
        head: (!gpt2).then(|| numbers(vocabulary * width, 0.0, 0.5)),
    }
}

/// Short texts of a small vocabulary, with tokens that come back.
fn short_examples(count: u32) -> Vec<Example> {
    (0..count)
        .map(|i| {
            let tokens = (0..5 + i % 4).map(|j| (7 * i + j * j) % 50).collect();
            Example { tokens, first: 1 + i as usize % 2 }
        })
        .collect()
}

/// Adapters on everything, whose `up` is not zero, so that both gradients matter.
fn adapted(mut decoder: Decoder, embedding: bool) -> (Decoder, Layout) {
    let gate = decoder.layers[0].gate.is_some();
    let projections =
        Projection::ALL.into_iter().filter(|p| gate || *p != Projection::Gate).collect();
    attach(&mut decoder, &Lora { rank: 3, alpha: 6.0, projections }, 1).unwrap();
    let layout = Layout::new(&decoder, Scope::Adapters { embedding });
    let values: Vec<f32> = layout
        .parameters(&decoder)
        .iter()
        .enumerate()
        .map(|(i, x)| x + 0.05 * ((i as f32 * 0.7).sin()))
        .collect();
    layout.set(&mut decoder, &values);
    assert_eq!(layout.parameters(&decoder), values);
    (decoder, layout)
}

/// Every kind of training on every kind of model.
fn cases() -> Vec<(&'static str, Decoder, Layout, Vec<Example>)> {
    let mut cases = Vec::new();
    let (decoder_, layout) = adapted(decoder(), false);
    cases.push(("stories, adapters", decoder_, layout, examples(6)));
    for gpt2 in [true, false] {
        let name =
            if gpt2 { "gpt2, adapters and embedding" } else { "llama, adapters and embedding" };
        let (decoder, layout) = adapted(random_decoder(gpt2), true);
        cases.push((name, decoder, layout, short_examples(6)));
        let decoder = random_decoder(gpt2);
        let layout = Layout::new(&decoder, Scope::Full);
        cases.push((
            if gpt2 { "gpt2, full" } else { "llama, full" },
            decoder,
            layout,
            short_examples(6),
        ));
    }
    let full = decoder();
    let layout = Layout::new(&full, Scope::Full);
    cases.push(("stories, full", full, layout, examples(4)));
    cases
}

#[test]
fn a_batch_gives_the_gradients_of_its_examples_alone() {
    for (name, decoder, layout, examples) in cases() {
        let all: Vec<&Example> = examples.iter().collect();
        let together = per_example(&decoder, &layout, &all).unwrap();
        let clipped = clipped_sum(&decoder, &layout, &all, 1e9).unwrap();
        let mut sum = vec![0.0_f64; layout.size];
        for (i, (example, together)) in examples.iter().zip(&together).enumerate() {
            let alone = &per_example(&decoder, &layout, &[example]).unwrap()[0];
            assert!((alone.loss - together.loss).abs() < 1e-5 * alone.loss, "{name}");
            let scale = alone.gradient.iter().map(|x| x.abs()).fold(0.0, f32::max);
            let worst = alone
                .gradient
                .iter()
                .zip(&together.gradient)
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f32::max);
            // f32 sums in another order.
            assert!(scale > 1e-3 && worst < 2e-5 * scale, "{name}: {worst} of {scale}");
            let square: f64 = alone.gradient.iter().map(|x| f64::from(*x).powi(2)).sum();
            let norm = clipped.norms[i];
            // The norm that clips, ghosts included, is that of the gradient, and not smaller.
            assert!((norm / square.sqrt() - 1.0).abs() < 3e-5, "{name}: {norm} {}", square.sqrt());
            // Both are sums in f32, in other orders: a few units of 2^-24 apart.
            assert!(norm > square.sqrt() * (1.0 - 3e-6), "{name}: {norm} {}", square.sqrt());
            for (sum, x) in sum.iter_mut().zip(&alone.gradient) {
                *sum += f64::from(*x);
            }
        }
        let scale = sum.iter().map(|x| x.abs()).fold(0.0, f64::max);
        for (got, want) in clipped.sum.iter().zip(&sum) {
            assert!((f64::from(*got) - want).abs() < 1e-4 * scale, "{name}: {got} {want}");
        }
    }
}

#[test]
fn gradients_match_finite_differences() {
    for (name, mut decoder, layout, examples) in cases() {
        let example = &examples[1];
        let found = per_example(&decoder, &layout, &[example]).unwrap().remove(0);
        let values = layout.parameters(&decoder);
        let mut seen = 0;
        // The largest gradients of every piece, and some others.
        let mut chosen: Vec<usize> = (0..values.len()).step_by(values.len() / 40 + 1).collect();
        let ends = layout.pieces.iter().skip(1).map(|(_, at)| *at).chain([layout.size]);
        for ((_, at), end) in layout.pieces.iter().zip(ends) {
            let best = (*at..end)
                .max_by(|a, b| found.gradient[*a].abs().total_cmp(&found.gradient[*b].abs()));
            chosen.extend(best);
        }
        let scale = found.gradient.iter().map(|x| x.abs()).fold(0.0, f32::max);
        for i in chosen {
            let mut loss = |change: f32| {
                let mut moved = values.clone();
                moved[i] += change;
                layout.set(&mut decoder, &moved);
                per_example(&decoder, &layout, &[example]).unwrap()[0].loss
            };
            let h = 2e-2_f32;
            let mut central = |h: f32| (loss(h) - loss(-h)) / f64::from(2.0 * h);
            let slope = (4.0 * central(0.5 * h) - central(h)) / 3.0;
            let got = f64::from(found.gradient[i]);
            // Rounding of the loss (about 1e-6) over h, and h^4 times a fifth derivative.
            let room = 2e-3 * f64::from(scale) + 2e-4;
            assert!((got - slope).abs() < room, "{name}, {i}: {got} {slope} of {scale}");
            seen += usize::from(got.abs() > 0.02 * f64::from(scale));
        }
        assert!(seen > 10, "{name}: too few gradients are large enough to say anything: {seen}");
    }
}

#[test]
fn fresh_adapters_change_nothing_and_files_bring_trained_ones_back() {
    let (plain, mut fresh) = (decoder(), decoder());
    attach(&mut fresh, &Lora::default(), 7).unwrap();
    let tokens = [1, 403, 407, 261, 378];
    let answer = |decoder: &Decoder| decoder.log_probabilities(&tokens).unwrap();
    assert_eq!(answer(&plain), answer(&fresh));
    assert!(attach(&mut fresh, &Lora { rank: 0, ..Lora::default() }, 7).is_err());
    for (name, tuned, layout) in [
        ("adapters", adapted(decoder(), true)),
        ("full", {
            let (mut all, layout) = (decoder(), Layout::new(&decoder(), Scope::Full));
            let moved: Vec<f32> = layout.parameters(&all).iter().map(|x| 1.01 * x).collect();
            layout.set(&mut all, &moved);
            (all, layout)
        }),
    ]
    .map(|(name, (tuned, layout))| (name, tuned, layout))
    {
        let bytes = weights::to_safetensors(&tuned, &layout, plain.architecture.vocabulary);
        let mut again = decoder();
        weights::lay_over_bytes(&mut again, &bytes, "tuned").unwrap();
        assert_eq!(answer(&again), answer(&tuned), "{name}");
        assert_ne!(answer(&again), answer(&plain), "{name}");
        let mut other = random_decoder(true);
        let error = weights::lay_over_bytes(&mut other, &bytes, "tuned").unwrap_err();
        assert!(error.to_string().starts_with("tuned: tensor `"), "{error}");
    }
}

fn recipe(noise: f64, rate: f64, clip: f64, optimizer: OptimizerDescription, seed: u64) -> Recipe {
    let run = Run::builder().phase(noise, rate, 50).clip_norm(clip).build().unwrap();
    let scope = Scope::Adapters { embedding: false };
    Recipe { run, optimizer, scope, micro_batch: 4, seed, canaries: None }
}

#[test]
fn a_step_is_the_clipped_mean_and_micro_batches_change_nothing() {
    let examples = examples(7);
    let all: Vec<&Example> = examples.iter().collect();
    let (before, layout) = adapted(decoder(), false);
    let mut by_hand = vec![0.0_f64; layout.size];
    let mut clipped = 0;
    for example in per_example(&before, &layout, &all).unwrap() {
        let norm = example.gradient.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        clipped += usize::from(norm > 0.1);
        let factor = (0.1 / norm).min(1.0);
        for (sum, x) in by_hand.iter_mut().zip(&example.gradient) {
            *sum += factor * f64::from(*x) / 7.0;
        }
    }
    assert!(clipped > 0);
    for micro_batch in [1, 3, 7] {
        let mut decoder = before.clone();
        let recipe =
            Recipe { micro_batch, ..recipe(1e-9, 1.0, 0.1, OptimizerDescription::sgd(0.5), 3) };
        let report = Trainer::new(&mut decoder, &examples, recipe).unwrap().step().unwrap();
        assert_eq!((report.batch_size, report.clipped), (7, clipped));
        let old = layout.parameters(&before);
        for ((after, before), mean) in layout.parameters(&decoder).iter().zip(&old).zip(&by_hand) {
            let want = f64::from(*before) - 0.5 * mean;
            assert!((f64::from(*after) - want).abs() < 1e-6, "{after} {want}");
        }
    }
}

#[test]
fn noise_has_the_stated_size_and_the_same_seed_gives_the_same_training() {
    let examples = examples(12);
    let train = |noise: f64, seed: u64, threads: usize| {
        let (mut decoder, layout) = adapted(decoder(), false);
        let recipe = recipe(noise, 0.5, 0.1, OptimizerDescription::sgd(1.0), seed);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut trainer = Trainer::new(&mut decoder, &examples, recipe).unwrap();
            trainer.step().unwrap();
            assert_eq!(trainer.steps(), 1);
        });
        layout.parameters(&decoder)
    };
    let (quiet, loud) = (train(1e-9, 5, 2), train(3.0, 5, 2));
    assert_eq!(loud, train(3.0, 5, 1));
    assert_ne!(loud, train(3.0, 6, 2));
    // The same batch, so that the difference is noise: deviation 3 x 0.1 / (0.5 x 12).
    let n = quiet.len() as f64;
    let square: f64 =
        quiet.iter().zip(&loud).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>() / n;
    let ratio = square.sqrt() / (0.3 / 6.0);
    // Five standard errors of a deviation from n numbers.
    assert!((ratio - 1.0).abs() < 5.0 / (2.0 * n).sqrt(), "{ratio} with {n} numbers");
}

#[test]
fn training_without_noise_learns_and_goes_on_from_a_saved_state() {
    let examples = examples(8);
    let fresh = || {
        let mut decoder = decoder();
        attach(&mut decoder, &Lora::default(), 2).unwrap();
        decoder
    };
    let recipe = || recipe(1e-9, 1.0, 1.0, OptimizerDescription::adam(5e-3), 3);
    let mut one = fresh();
    let mut trainer = Trainer::new(&mut one, &examples, recipe()).unwrap();
    let first = trainer.step().unwrap().loss_sum;
    let mut last = first;
    let mut saved = None;
    for step in 1..41 {
        if step == 20 {
            saved = Some(trainer.state().clone());
        }
        last = trainer.step().unwrap().loss_sum;
    }
    assert!(last < 0.8 * first, "{first} {last}");
    let whole = trainer.state().clone();
    let mut other = fresh();
    let mut trainer = Trainer::new(&mut other, &examples, recipe()).unwrap();
    trainer.restore(20, saved.unwrap()).unwrap();
    for _ in 20..41 {
        trainer.step().unwrap();
    }
    assert_eq!(*trainer.state(), whole);
    let mut state = whole;
    state.parameters.pop();
    assert!(trainer.restore(1, state).is_err());
    let bad = Recipe { optimizer: OptimizerDescription::sgd(-1.0), ..recipe() };
    assert!(Trainer::new(&mut other, &examples, bad).is_err());
}

/// Gradient canaries on a small random model: what the trainer says of all iterates is what the
/// iterates say, and the last iterate has moved by the insertions and the noise.
#[test]
fn gradient_canaries_are_in_the_sum_and_both_scores_are_those_of_the_iterates() {
    let examples: Vec<Example> = (0..6)
        .map(|i| Example { tokens: (0..9).map(|j| (7 * i + 3 * j) % 50).collect(), first: 1 })
        .collect();
    let (start, _) = adapted(random_decoder(false), false);
    let layout = Layout::new(&start, Scope::Adapters { embedding: false });
    let (noise, rate, clip, steps) = (0.8, 0.5, 0.3, 40);
    let plant = |observe, seed| {
        GradientCanaries::plant(&start, &layout, layout.size / 2, observe, seed).unwrap()
    };
    let planted = Arc::new(plant(Observe::All, 5));
    let count = planted.places.len();
    let places: std::collections::BTreeSet<u32> = planted.places.iter().copied().collect();
    assert_eq!(places.len(), count, "a coordinate each");
    let mut tuned = start.clone();
    let optimizer = OptimizerDescription::sgd(0.5);
    let recipe =
        Recipe { canaries: Some(Arc::clone(&planted)), ..recipe(noise, rate, clip, optimizer, 5) };
    let mut trainer = Trainer::new(&mut tuned, &examples, recipe).unwrap();
    let unit = 0.5 * clip / (rate * examples.len() as f64);
    let mut by_hand = vec![0.0; count];
    let mut before = layout.parameters(&start);
    for _ in 0..steps {
        trainer.step().unwrap();
        let after = &trainer.state().parameters;
        for (found, place) in by_hand.iter_mut().zip(&planted.places) {
            let place = *place as usize;
            let sum = (f64::from(before[place]) - f64::from(after[place])) / unit;
            let ratio = ((2.0 * sum - 1.0) / (2.0 * noise * noise)).exp();
            *found += (1.0 - rate + rate * ratio).ln();
        }
        before.clone_from(after);
    }
    // Of f32 in the parameters: 1e-7 of their size over the size of an insertion, at every step.
    for (a, b) in trainer.evidence().iter().zip(&by_hand) {
        assert!((a - b).abs() < 1e-2, "{a} {b}");
    }
    // The moves: rate x steps insertions apart on average, over five standard errors of the noise,
    // the coins of the batches and the other records, which are clipped to `clip` each.
    let last = trainer.state().parameters.clone();
    let first = layout.parameters(&start);
    let moved = |member: bool| -> Vec<f64> {
        let chosen = planted.places.iter().zip(&planted.members).filter(|(_, m)| **m == member);
        chosen
            .map(|(place, _)| f64::from(first[*place as usize] - last[*place as usize]) / unit)
            .collect()
    };
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let (inside, outside) = (moved(true), moved(false));
    let apart = mean(&inside) - mean(&outside);
    let spread = |x: &[f64]| {
        let m = mean(x);
        x.iter().map(|x| (x - m).powi(2)).sum::<f64>() / (x.len() as f64 - 1.0) / x.len() as f64
    };
    let error = (spread(&inside) + spread(&outside)).sqrt();
    let expected = rate * f64::from(steps);
    assert!((apart - expected).abs() < 5.0 * error, "{apart} of {expected}, error {error}");
    assert!(apart > 10.0 * error, "{apart}, error {error}");
    let too_many =
        GradientCanaries::plant(&start, &layout, layout.size, Observe::Last, 5).unwrap_err();
    assert!(too_many.to_string().contains("trained numbers"), "{too_many}");
}
