//! LoRA gradients and private steps on stories260K.

use language::Decoder;
use language::finetune::{
    Example, Lora, Optimizer, Recipe, Trainer, attach, parameters, per_example, set_parameters,
};
use language::model::Projection;
use std::path::Path;

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

/// Adapters whose `up` is not zero, so that both gradients matter.
fn adapted() -> Decoder {
    let mut decoder = decoder();
    let lora = Lora { rank: 3, alpha: 6.0, projections: Projection::ALL.to_vec() };
    attach(&mut decoder, &lora, 1).unwrap();
    let values: Vec<f32> = parameters(&decoder)
        .iter()
        .enumerate()
        .map(|(i, x)| x + 0.05 * ((i as f32 * 0.7).sin()))
        .collect();
    set_parameters(&mut decoder, &values);
    assert_eq!(parameters(&decoder), values);
    decoder
}

#[test]
fn a_batch_gives_the_gradients_of_its_examples_alone() {
    let (decoder, examples) = (adapted(), examples(6));
    let together = per_example(&decoder, &examples).unwrap();
    for (example, together) in examples.iter().zip(&together) {
        let alone = &per_example(&decoder, std::slice::from_ref(example)).unwrap()[0];
        assert!((alone.loss - together.loss).abs() < 1e-5 * alone.loss);
        let scale = alone.gradient.iter().map(|x| x.abs()).fold(0.0, f32::max);
        let worst = alone
            .gradient
            .iter()
            .zip(&together.gradient)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f32::max);
        // f32 sums in another order.
        assert!(scale > 1e-3 && worst < 2e-5 * scale, "{worst} of {scale}");
    }
}

#[test]
fn adapter_gradients_match_finite_differences() {
    let mut decoder = adapted();
    let example = examples(2).remove(1);
    let found = per_example(&decoder, std::slice::from_ref(&example)).unwrap().remove(0);
    let values = parameters(&decoder);
    let scale = found.gradient.iter().map(|x| x.abs()).fold(0.0, f32::max);
    let mut seen = 0;
    for i in (0..values.len()).step_by(97) {
        let mut loss = |change: f32| {
            let mut moved = values.clone();
            moved[i] += change;
            set_parameters(&mut decoder, &moved);
            per_example(&decoder, std::slice::from_ref(&example)).unwrap()[0].loss
        };
        let h = 2e-2_f32;
        let mut central = |h: f32| (loss(h) - loss(-h)) / f64::from(2.0 * h);
        let slope = (4.0 * central(0.5 * h) - central(h)) / 3.0;
        let got = f64::from(found.gradient[i]);
        // Rounding of the loss (about 1e-6) over h.
        assert!((got - slope).abs() < 2e-3 * f64::from(scale), "{i}: {got} {slope} of {scale}");
        seen += usize::from(got.abs() > 0.02 * f64::from(scale));
    }
    assert!(seen > 10, "too few gradients are large enough to say anything: {seen}");
}

#[test]
fn fresh_adapters_change_nothing() {
    let (plain, mut adapted) = (decoder(), decoder());
    attach(&mut adapted, &Lora::default(), 7).unwrap();
    let tokens = [1, 403, 407, 261, 378];
    assert_eq!(
        plain.log_probabilities(&tokens).unwrap(),
        adapted.log_probabilities(&tokens).unwrap()
    );
    assert!(attach(&mut adapted, &Lora { rank: 0, ..Lora::default() }, 7).is_err());
}

const RECIPE: Recipe = Recipe {
    noise_multiplier: 0.0,
    clip_norm: 0.1,
    sample_rate: 1.0,
    learning_rate: 0.5,
    optimizer: Optimizer::Sgd,
    micro_batch: 4,
    seed: 3,
};

#[test]
fn a_step_is_the_clipped_mean_and_micro_batches_change_nothing() {
    let examples = examples(7);
    let before = parameters(&adapted());
    let mut by_hand = vec![0.0_f64; before.len()];
    let mut clipped = 0;
    for example in per_example(&adapted(), &examples).unwrap() {
        let norm = example.gradient.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        clipped += usize::from(norm > 0.1);
        let factor = (0.1 / norm).min(1.0);
        for (sum, x) in by_hand.iter_mut().zip(&example.gradient) {
            *sum += factor * f64::from(*x) / 7.0;
        }
    }
    assert!(clipped > 0);
    for micro_batch in [1, 3, 7] {
        let mut decoder = adapted();
        let recipe = Recipe { micro_batch, ..RECIPE };
        let report = Trainer::new(&mut decoder, &examples, recipe).unwrap().step().unwrap();
        assert_eq!((report.batch, report.clipped), (7, clipped as f64 / 7.0));
        for ((after, before), mean) in parameters(&decoder).iter().zip(&before).zip(&by_hand) {
            let want = f64::from(*before) - 0.5 * mean;
            assert!((f64::from(*after) - want).abs() < 1e-6, "{after} {want}");
        }
    }
}

#[test]
fn noise_has_the_stated_size_and_the_same_seed_gives_the_same_training() {
    let examples = examples(12);
    let train = |noise_multiplier: f64, seed: u64| {
        let mut decoder = adapted();
        let recipe =
            Recipe { noise_multiplier, seed, sample_rate: 0.5, learning_rate: 1.0, ..RECIPE };
        let mut trainer = Trainer::new(&mut decoder, &examples, recipe).unwrap();
        trainer.step().unwrap();
        assert_eq!(trainer.steps(), 1);
        parameters(&decoder)
    };
    let (quiet, loud) = (train(0.0, 5), train(3.0, 5));
    assert_eq!(loud, train(3.0, 5));
    assert_ne!(loud, train(3.0, 6));
    // The same batch, so that the difference is noise: deviation 3 x 0.1 / (0.5 x 12).
    let n = quiet.len() as f64;
    let square: f64 =
        quiet.iter().zip(&loud).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>() / n;
    let ratio = square.sqrt() / (0.3 / 6.0);
    // Five standard errors of a deviation from n numbers.
    assert!((ratio - 1.0).abs() < 5.0 / (2.0 * n).sqrt(), "{ratio} with {n} numbers");
}

#[test]
fn training_without_noise_learns() {
    let examples = examples(8);
    let mut decoder = decoder();
    attach(&mut decoder, &Lora::default(), 2).unwrap();
    let recipe =
        Recipe { clip_norm: 1.0, learning_rate: 5e-3, optimizer: Optimizer::ADAM, ..RECIPE };
    let mut trainer = Trainer::new(&mut decoder, &examples, recipe).unwrap();
    let first = trainer.step().unwrap().loss;
    let mut last = first;
    for _ in 0..40 {
        last = trainer.step().unwrap().loss;
    }
    assert!(last < 0.8 * first, "{first} {last}");
    let bad = Recipe { sample_rate: 1.5, ..RECIPE };
    assert!(Trainer::new(&mut decoder, &examples, bad).is_err());
}
