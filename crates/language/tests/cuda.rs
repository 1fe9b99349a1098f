//! The CPU and a CUDA device compute the same losses, texts and private steps. Needs an NVIDIA
//! device; without one the tests are skipped, and say so. Every difference is printed, and the
//! tests fail at their end: one look at a device finds what there is to find.
#![allow(clippy::print_stderr, clippy::print_stdout, clippy::needless_pass_by_value)]

mod decoders;
#[path = "../../training/tests/common/device.rs"]
mod device;

use decoders::{cases, examples};
use device::Test::OnDevice;
use language::cuda::{CudaDecoder, CudaModel, CudaTrainer, Precision};
use language::finetune::{Example, Layout, Recipe, Scope, Trainer, per_example};
use language::model::{Decoder, Projection, greedy};
use random::{Purpose, Stream};
use std::sync::Arc;
use training::cuda::CudaDevice;
use training::cuda::compute::{Matrix, Product, Store};
use training::cuda::fused::Finish;
use training::{OptimizerDescription, StepStatistics};
use vocabulary::{Run, Sampling};

fn recipe(rate: f64, noise: f64, optimizer: OptimizerDescription) -> Recipe {
    let sampling = if rate == 1.0 { Sampling::Full } else { Sampling::Poisson };
    let run =
        Run::builder().phase(noise, rate, 50).clip_norm(0.5).sampling(sampling).build().unwrap();
    let scope = Scope::Adapters { embedding: false };
    Recipe { run, optimizer, scope, micro_batch: 4, seed: 9, canaries: None }
}

fn norm(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.map(|x| x * x).sum::<f64>().sqrt()
}

/// |a - b| / |b - c|, c being where both began.
fn difference(a: &[f32], b: &[f32], c: &[f32]) -> f64 {
    let apart = norm(a.iter().zip(b).map(|(a, b)| f64::from(*a) - f64::from(*b)));
    apart / norm(b.iter().zip(c).map(|(b, c)| f64::from(*b) - f64::from(*c)))
}

struct Outcome {
    parameters: Vec<f32>,
    steps: Vec<StepStatistics>,
}

fn on_cpu(decoder: &Decoder, examples: &[Example], recipe: &Recipe, steps: usize) -> Outcome {
    let mut decoder = decoder.clone();
    let mut trainer = Trainer::new(&mut decoder, examples, recipe.clone()).unwrap();
    let steps = (0..steps).map(|_| trainer.step().unwrap()).collect();
    Outcome { parameters: trainer.state().parameters.clone(), steps }
}

fn on_device(
    device: &Arc<CudaDevice>,
    precision: Precision,
    decoder: &Decoder,
    examples: &[Example],
    recipe: &Recipe,
    steps: usize,
) -> Outcome {
    let frozen = CudaDecoder::new(decoder, Arc::clone(device), precision).unwrap();
    let mut decoder = decoder.clone();
    let mut trainer = CudaTrainer::new(&frozen, &mut decoder, examples, recipe.clone(), 0).unwrap();
    let steps = (0..steps).map(|_| trainer.step().unwrap()).collect();
    Outcome { parameters: trainer.state().unwrap().parameters.clone(), steps }
}

/// Collects what is wrong.
#[derive(Default)]
struct Wrong(Vec<String>);

impl Wrong {
    fn check(&mut self, what: String, found: f64, most: f64) {
        eprintln!("{what}: {found:.3e} (at most {most:.0e})");
        if !(found <= most) {
            self.0.push(format!("{what}: {found:.3e} above {most:.0e}"));
        }
    }

    /// A step at learning rate .5 and clip norm .5 that was computed in a lower precision.
    fn rounded(&mut self, what: &str, [cuda, cpu]: [&[f32]; 2], start: &[f32], most: f64) {
        self.check(what.to_owned(), difference(cuda, cpu, start), most);
        // However rounded, what is clipped is what is summed.
        let moved = norm(cuda.iter().zip(start).map(|(a, b)| f64::from(*a) - f64::from(*b)));
        let bound = 0.5 * 0.5 * (1.0 + 1e-5) + 1e-5;
        self.check(format!("{what}, length of the step"), moved, bound);
    }
}

impl Drop for Wrong {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.0.is_empty(), "\n{}", self.0.join("\n"));
        }
    }
}

fn losses_and_texts_are_the_same(device: Arc<CudaDevice>) {
    let mut wrong = Wrong::default();
    for (name, decoder, examples) in cases() {
        let layout = Layout::new(&decoder, Scope::Adapters { embedding: false });
        let all: Vec<&Example> = examples.iter().collect();
        let expected = per_example(&decoder, &layout, &all).unwrap();
        // bf16 keeps 8 bits of every activation; losses average many of them.
        for (precision, most) in [
            (Precision::Float32, 1e-5),
            (Precision::TensorFloat32, 3e-3),
            (Precision::BFloat16, 3e-2),
        ] {
            let frozen = CudaDecoder::new(&decoder, Arc::clone(&device), precision).unwrap();
            let mut model = CudaModel::new(&frozen, &decoder, 256).unwrap();
            let losses = model.losses(&all).unwrap();
            let apart = losses.iter().zip(&expected).map(|(a, b)| (a - b.loss).abs() / b.loss);
            let what = format!("{name}, {precision:?}, losses");
            wrong.check(what, apart.fold(0.0, f64::max), most);
            if precision != Precision::Float32 {
                continue;
            }
            let prompts: Vec<Vec<u32>> =
                examples.iter().map(|e| e.tokens[..e.first + 1].to_vec()).collect();
            let largest = |_: usize, _: usize, logits: &[f32]| {
                let mut best = 0;
                for (i, x) in logits.iter().enumerate() {
                    if *x > logits[best] {
                        best = i;
                    }
                }
                Some(best as u32)
            };
            let texts = model.continue_prompts(&prompts, 8, &largest).unwrap();
            let same = prompts
                .iter()
                .zip(&texts)
                .filter(|(prompt, text)| greedy(&decoder, prompt, 8, &[]).unwrap() == **text);
            // A tie to rounding may fall either way.
            let missing = prompts.len() - same.count();
            wrong.check(format!("{name}, other texts"), missing as f64, 1.0);
            if name != "stories" {
                continue;
            }
            // Longer than a warp, from prompts of many lengths, up to where there is no more room.
            let mut model = CudaModel::new(&frozen, &decoder, 64).unwrap();
            let prompts: Vec<Vec<u32>> =
                (1..30).map(|n| (0..n).map(|i| 3 + (7 * n + i * i) % 500).collect()).collect();
            let stopping = |number: usize, place: usize, logits: &[f32]| {
                if place > 20 + number { None } else { largest(number, place, logits) }
            };
            let texts = model.continue_prompts(&prompts, 44, &stopping).unwrap();
            let same = prompts.iter().zip(&texts).enumerate().filter(|(number, (prompt, text))| {
                let most = 44.min(21 + number).min(65 - prompt.len());
                greedy(&decoder, prompt, most, &[]).unwrap() == **text
            });
            let missing = prompts.len() - same.count();
            wrong.check(format!("{name}, other long texts"), missing as f64, 2.0);
        }
    }
}

fn steps_agree_to_rounding(device: Arc<CudaDevice>) {
    let mut wrong = Wrong::default();
    for (name, decoder, examples) in cases() {
        let layout = Layout::new(&decoder, Scope::Adapters { embedding: false });
        let start = layout.parameters(&decoder);
        let adam = OptimizerDescription::adam(1e-2);
        // Without noise all of a step is the gradient; sums of a few hundred f32 products.
        for (optimizer, noise, steps, most) in [
            (OptimizerDescription::sgd(0.5), 1e-9, 1, 1e-5),
            (OptimizerDescription::sgd(0.5), 0.7, 3, 1e-5),
            (adam, 0.7, 3, 1e-3),
        ] {
            let rate = if steps == 1 { 1.0 } else { 0.6 };
            let recipe = recipe(rate, noise, optimizer);
            let cpu = on_cpu(&decoder, &examples, &recipe, steps);
            let cuda = on_device(&device, Precision::Float32, &decoder, &examples, &recipe, steps);
            let what = format!("{name}, {} steps of {}", steps, optimizer.moments());
            let apart = difference(&cuda.parameters, &cpu.parameters, &start);
            wrong.check(format!("{what}, parameters"), apart, most);
            if steps == 1 {
                for (piece, at) in &layout.pieces {
                    let own = *at..*at + piece.of(&decoder).unwrap().len();
                    let apart = difference(
                        &cuda.parameters[own.clone()],
                        &cpu.parameters[own.clone()],
                        &start[own],
                    );
                    wrong.check(format!("{what}, {}", piece.name()), apart, 1e-4);
                }
            }
            for (step, (a, b)) in cuda.steps.iter().zip(&cpu.steps).enumerate() {
                let what = format!("{what}, step {step}");
                let counts = |s: &StepStatistics| (s.batch_size, s.clipped, s.correct);
                let unequal = f64::from(u8::from(counts(a) != counts(b)));
                wrong.check(format!("{what}, counts {:?}", counts(a)), unequal, 0.0);
                let loss = (a.loss_sum - b.loss_sum).abs() / b.loss_sum.max(1e-9);
                wrong.check(format!("{what}, loss"), loss, 1e-5);
                let norms = a.norms.iter().zip(&b.norms).map(|(a, b)| (a - b).abs() / b);
                wrong.check(format!("{what}, norms"), norms.fold(0.0, f64::max), 1e-4);
            }
        }
    }
}

fn lower_precision_is_what_it_says(device: Arc<CudaDevice>) {
    let mut wrong = Wrong::default();
    for (name, decoder, examples) in cases() {
        let layout = Layout::new(&decoder, Scope::Adapters { embedding: false });
        let start = layout.parameters(&decoder);
        let recipe = recipe(1.0, 1e-9, OptimizerDescription::sgd(0.5));
        let cpu = on_cpu(&decoder, &examples, &recipe, 1);
        // Operands of 11 and of 8 bits through two to five layers.
        for (precision, most) in [(Precision::TensorFloat32, 1e-2), (Precision::BFloat16, 8e-2)] {
            let cuda = on_device(&device, precision, &decoder, &examples, &recipe, 1);
            let what = format!("{name}, {precision:?}");
            wrong.rounded(&what, [&cuda, &cpu].map(|found| &found.parameters[..]), &start, most);
        }
    }
}

fn a_training_goes_on_from_a_saved_state_in_the_same_bits(device: Arc<CudaDevice>) {
    // With attention's matrix in bf16, and without it.
    for case in [1, 4] {
        let (_, decoder, examples) = cases().swap_remove(case);
        goes_on(&device, &decoder, &examples);
    }
}

fn goes_on(device: &Arc<CudaDevice>, decoder: &Decoder, examples: &[Example]) {
    let recipe = recipe(0.5, 0.7, OptimizerDescription::adam(1e-2));
    for precision in [Precision::Float32, Precision::TensorFloat32, Precision::BFloat16] {
        let whole = on_device(device, precision, decoder, examples, &recipe, 4);
        let frozen = CudaDecoder::new(decoder, Arc::clone(device), precision).unwrap();
        let mut first = decoder.clone();
        let mut trainer =
            CudaTrainer::new(&frozen, &mut first, examples, recipe.clone(), 0).unwrap();
        trainer.step().unwrap();
        trainer.step().unwrap();
        let state = trainer.state().unwrap().clone();
        drop(trainer);
        let mut second = decoder.clone();
        let mut trainer =
            CudaTrainer::new(&frozen, &mut second, examples, recipe.clone(), 0).unwrap();
        trainer.restore(2, state).unwrap();
        trainer.step().unwrap();
        trainer.step().unwrap();
        assert_eq!(trainer.state().unwrap().parameters, whole.parameters, "{precision:?}");
        drop(trainer.finish().unwrap());
        let layout = Layout::new(decoder, Scope::Adapters { embedding: false });
        assert_eq!(layout.parameters(&second), whole.parameters);
    }
}

fn an_embedding_is_trained_as_on_the_cpu(device: Arc<CudaDevice>) {
    trained_as_on_the_cpu(&device, Scope::Adapters { embedding: true });
}

fn a_whole_model_is_trained_as_on_the_cpu(device: Arc<CudaDevice>) {
    trained_as_on_the_cpu(&device, Scope::Full);
}

fn trained_as_on_the_cpu(device: &Arc<CudaDevice>, scope: Scope) {
    let mut wrong = Wrong::default();
    for (name, decoder, mut examples) in cases() {
        // A head of its own is refused, see below.
        if decoder.head.is_some() {
            continue;
        }
        let decoder = if scope == Scope::Full { without_adapters(decoder) } else { decoder };
        // A token that comes again, and one place that is learnt: terms that only they have.
        examples.push(Example { tokens: vec![3, 5, 3, 3, 9, 5], first: 1 });
        examples.push(Example { tokens: vec![7, 60], first: 1 });
        let layout = Layout::new(&decoder, scope);
        let start = layout.parameters(&decoder);
        // A ghost's square is raised by 2^-16 of the square of the sum over places of |input||slope|.
        // Where places do not cancel, that is at most as many times the square as there are places:
        // 2^-17 of the norm for each.
        let places = examples.iter().map(|example| example.tokens.len()).max().unwrap();
        let most = 5e-4f64.max(places as f64 * 2f64.powi(-17));
        for (optimizer, noise, steps) in [
            (OptimizerDescription::sgd(0.5), 1e-9, 1),
            (OptimizerDescription::sgd(0.5), 0.7, 3),
            (OptimizerDescription::adam(1e-2), 0.7, 3),
        ] {
            // Adam makes steps of one size of whatever the norms' safe sides leave of a small number.
            if optimizer.moments() == 2 && places > 64 {
                continue;
            }
            let rate = if steps == 1 { 1.0 } else { 0.6 };
            let recipe = Recipe { scope, ..recipe(rate, noise, optimizer) };
            let cpu = on_cpu(&decoder, &examples, &recipe, steps);
            let cuda = on_device(device, Precision::Float32, &decoder, &examples, &recipe, steps);
            let what = format!("{name}, {scope:?}, {steps} steps of {}", optimizer.moments());
            // Norms are on the safe side, each in its own way: by less than the tolerance here.
            let apart = difference(&cuda.parameters, &cpu.parameters, &start);
            wrong.check(format!("{what}, parameters"), apart, most);
            for (step, (a, b)) in cuda.steps.iter().zip(&cpu.steps).enumerate() {
                let loss = (a.loss_sum - b.loss_sum).abs() / b.loss_sum.max(1e-9);
                wrong.check(format!("{what}, step {step}, loss"), loss, 1e-4);
                let norms = a.norms.iter().zip(&b.norms).map(|(a, b)| (a - b).abs() / b);
                wrong.check(format!("{what}, step {step}, norms"), norms.fold(0.0, f64::max), most);
            }
            if steps > 1 {
                continue;
            }
            for (piece, at) in &layout.pieces {
                let own = *at..*at + piece.of(&decoder).unwrap().len();
                let moved = norm(
                    cpu.parameters[own.clone()]
                        .iter()
                        .zip(&start[own.clone()])
                        .map(|(a, b)| f64::from(*a) - f64::from(*b)),
                );
                let apart = difference(
                    &cuda.parameters[own.clone()],
                    &cpu.parameters[own.clone()],
                    &start[own.clone()],
                );
                // A bias of keys moves nothing: the softmax takes it out, and rounding is left.
                let whole = difference(&cuda.parameters, &cpu.parameters, &start);
                let still = scope == Scope::Full && moved <= 1e-6;
                let apart = if still { whole } else { apart };
                wrong.check(format!("{what}, {}", piece.name()), apart, most);
            }
            for (precision, most) in [(Precision::TensorFloat32, 2e-2), (Precision::BFloat16, 0.1)]
            {
                let cuda = on_device(device, precision, &decoder, &examples, &recipe, 1);
                let what = format!("{what}, {precision:?}");
                wrong.rounded(
                    &what,
                    [&cuda, &cpu].map(|found| &found.parameters[..]),
                    &start,
                    most,
                );
            }
        }
    }
}

fn without_adapters(mut decoder: Decoder) -> Decoder {
    for layer in &mut decoder.layers {
        for projection in Projection::ALL {
            if let Some(linear) = layer.linear_mut(projection) {
                linear.adapter = None;
            }
        }
    }
    decoder
}

/// One text, hardly any noise, a large learning rate: how far a step moves is what the text
/// contributes.
fn no_text_contributes_more_than_the_clip_norm(device: Arc<CudaDevice>) {
    let mut wrong = Wrong::default();
    let (rate, clip) = (1e5, 0.5);
    for (name, decoder, _) in cases() {
        if decoder.head.is_some() {
            continue;
        }
        let plain = without_adapters(decoder.clone());
        let scopes = [
            (Scope::Adapters { embedding: false }, &decoder),
            (Scope::Adapters { embedding: true }, &decoder),
            (Scope::Full, &plain),
        ];
        for (scope, decoder) in scopes {
            for power in [-3, 0, 3] {
                let mut decoder = decoder.clone();
                decoder.embedding.iter_mut().for_each(|x| *x *= 10f32.powi(power));
                let example = [Example { tokens: vec![3, 5, 3, 3, 9, 5, 17, 3, 41], first: 1 }];
                let sgd = OptimizerDescription::sgd(rate);
                let recipe = Recipe { scope, ..recipe(1.0, 1e-12, sgd) };
                let start = Layout::new(&decoder, scope).parameters(&decoder);
                for precision in [Precision::Float32, Precision::TensorFloat32, Precision::BFloat16]
                {
                    let cuda = on_device(&device, precision, &decoder, &example, &recipe, 1);
                    let moved = cuda.parameters.iter().zip(&start);
                    let moved = norm(moved.map(|(a, b)| f64::from(*a) - f64::from(*b))) / rate;
                    let what = format!(
                        "{name}, {scope:?}, {precision:?}, 1e{power}: norm {:.3e} contributes",
                        cuda.steps[0].norms[0]
                    );
                    wrong.check(what.clone(), moved, clip * (1.0 + 4e-6));
                    if precision == Precision::Float32 {
                        let least = 0.99 * cuda.steps[0].norms[0].min(clip);
                        wrong.check(format!("{what}, missing"), least - moved, 0.0);
                    }
                }
            }
        }
    }
}

fn an_embedding_goes_on_in_the_same_bits_and_is_measured(device: Arc<CudaDevice>) {
    goes_on_in_the_same_bits_and_is_measured(&device, Scope::Adapters { embedding: true });
}

fn a_whole_model_goes_on_in_the_same_bits_and_is_measured(device: Arc<CudaDevice>) {
    goes_on_in_the_same_bits_and_is_measured(&device, Scope::Full);
}

fn goes_on_in_the_same_bits_and_is_measured(device: &Arc<CudaDevice>, scope: Scope) {
    let (_, mut decoder, examples) = cases().swap_remove(1);
    if scope == Scope::Full {
        decoder = without_adapters(decoder);
    }
    let recipe = Recipe { scope, ..recipe(0.5, 0.7, OptimizerDescription::adam(1e-2)) };
    for precision in [Precision::Float32, Precision::TensorFloat32, Precision::BFloat16] {
        let whole = on_device(device, precision, &decoder, &examples, &recipe, 4);
        let frozen = CudaDecoder::new(&decoder, Arc::clone(device), precision).unwrap();
        let mut first = decoder.clone();
        let mut trainer =
            CudaTrainer::new(&frozen, &mut first, &examples, recipe.clone(), 0).unwrap();
        trainer.step().unwrap();
        trainer.step().unwrap();
        let state = trainer.state().unwrap().clone();
        drop(trainer);
        let frozen = CudaDecoder::new(&decoder, Arc::clone(device), precision).unwrap();
        let mut second = decoder.clone();
        let mut trainer =
            CudaTrainer::new(&frozen, &mut second, &examples, recipe.clone(), 0).unwrap();
        trainer.restore(2, state).unwrap();
        trainer.step().unwrap();
        trainer.step().unwrap();
        assert_eq!(trainer.state().unwrap().parameters, whole.parameters, "{precision:?}");
        let mut model = trainer.finish().unwrap();
        let all: Vec<&Example> = examples.iter().collect();
        let losses = model.losses(&all).unwrap();
        let layout = Layout::new(&second, scope);
        assert_eq!(layout.parameters(&second), whole.parameters);
        let most = if precision == Precision::Float32 { 1e-4 } else { 5e-2 };
        for (loss, expected) in losses.iter().zip(per_example(&second, &layout, &all).unwrap()) {
            assert!((loss - expected.loss).abs() <= most * expected.loss, "{precision:?}");
        }
    }
}

fn a_batch_of_many_micro_batches_is_one_batch(device: Arc<CudaDevice>) {
    let (_, decoder, _) = cases().swap_remove(1);
    let examples = examples(1100, 64, 6);
    let layout = Layout::new(&decoder, Scope::Adapters { embedding: false });
    let start = layout.parameters(&decoder);
    let recipe = recipe(1.0, 1e-9, OptimizerDescription::sgd(0.5));
    let cpu = on_cpu(&decoder, &examples, &recipe, 1);
    let cuda = on_device(&device, Precision::Float32, &decoder, &examples, &recipe, 1);
    let mut wrong = Wrong::default();
    wrong.check(
        "1100 examples".into(),
        difference(&cuda.parameters, &cpu.parameters, &start),
        1e-5,
    );
    assert_eq!(cuda.steps[0].batch_size, 1100);
}

fn what_a_device_cannot_train_is_a_sentence(device: Arc<CudaDevice>) {
    let (_, mut decoder, examples) = cases().swap_remove(0);
    let frozen = CudaDecoder::new(&decoder, Arc::clone(&device), Precision::Float32).unwrap();
    let mut wanted = recipe(1.0, 1.0, OptimizerDescription::sgd(0.5));
    wanted.scope = Scope::Full;
    let error = CudaTrainer::new(&frozen, &mut decoder, &examples, wanted, 0).map(|_| ());
    assert!(error.unwrap_err().to_string().contains("without adapters"));
    let (_, mut untied, own) = cases().swap_remove(2);
    let weights = CudaDecoder::new(&untied, Arc::clone(&device), Precision::Float32).unwrap();
    let mut wanted = recipe(1.0, 1.0, OptimizerDescription::sgd(0.5));
    wanted.scope = Scope::Adapters { embedding: true };
    let error = CudaTrainer::new(&weights, &mut untied, &own, wanted, 0).map(|_| ());
    assert!(error.unwrap_err().to_string().contains("a head beside its embedding"));
    let foreign = [Example { tokens: vec![1, 61], first: 1 }];
    let mut model = CudaModel::new(&frozen, &decoder, 8).unwrap();
    let error = model.losses(&[&foreign[0]]).unwrap_err().to_string();
    assert_eq!(error, "token 61 is outside the vocabulary of 61");
}

/// bf16 numbers and what they are.
fn halves(count: usize, number: u64) -> (Vec<u16>, Vec<f64>) {
    let mut numbers = vec![0.0; count];
    Stream::new(3, Purpose::SHUFFLE, number).fill_gaussians_f32(0, 0, &mut numbers);
    let stored: Vec<u16> = numbers.iter().map(|x: &f32| (x.to_bits() >> 16) as u16).collect();
    let exact = stored.iter().map(|x| half(*x)).collect();
    (stored, exact)
}

fn half(stored: u16) -> f64 {
    f64::from(f32::from_bits(u32::from(stored) << 16))
}

/// GELU, its derivative, and that of its tanh's argument.
fn gelu(z: f64) -> (f64, f64, f64) {
    let root = (2.0 / std::f64::consts::PI).sqrt();
    let (t, du) = ((root * (z + 0.044715 * z.powi(3))).tanh(), root * (1.0 + 0.134145 * z * z));
    (0.5 * z * (1.0 + t), 0.5 * (1.0 + t) + 0.5 * z * (1.0 - t * t) * du, du)
}

/// A bias, GELU and its derivative in a product's epilogue against f64, in matrices whose rows have
/// more after them.
fn products_are_finished_as_they_say(device: Arc<CudaDevice>) {
    let mut wrong = Wrong::default();
    let (rows, inputs, outputs, leading) = (40, 72, 96, 128);
    let (x, own_x) = halves(rows * leading, 1);
    let (weight, own_weight) = halves(outputs * leading, 2);
    let (bias, own_bias) = halves(outputs, 3);
    let up = |numbers: &[u16]| device.upload(numbers).unwrap();
    let (x, weight, bias) = (up(&x), up(&weight), up(&bias));
    let kept = device.zeros::<u16>(rows * outputs).unwrap();
    let out = device.zeros::<u16>(rows * leading).unwrap();
    let matrix = |address: u64, leading: usize| Matrix::new(address, leading, Store::BFloat16);
    let product = |out: Matrix| Product {
        out,
        left: matrix(x.address(), leading),
        right: matrix(weight.address(), leading).transposed(),
        extents: (rows, outputs, inputs),
        count: 1,
        // So that GELU is neither flat nor straight.
        scale: 0.125,
        accumulate: false,
    };
    let whole = |row: usize, column: usize| {
        let terms =
            (0..inputs).map(|i| own_x[row * leading + i] * own_weight[column * leading + i]);
        0.125 * terms.sum::<f64>()
    };
    let (kept_there, bias) = (matrix(kept.address(), outputs), bias.address());
    for finish in [
        Finish::Bias(bias),
        Finish::Gelu { bias, kept: kept_there },
        Finish::GeluSlope { of: kept_there },
        Finish::Gelu { bias: 0, kept: kept_there },
    ] {
        let before = device.read(&kept, rows * outputs).unwrap();
        let own = product(matrix(out.address(), leading));
        assert!(device.multiplies_and(&own, finish), "{finish:?}");
        assert!(device.multiply_and(&own, finish).unwrap());
        let found = device.read(&out, rows * leading).unwrap();
        let after = device.read(&kept, rows * outputs).unwrap();
        let mut apart = 0.0f64;
        for (row, column) in (0..rows).flat_map(|row| (0..outputs).map(move |c| (row, c))) {
            let sum = whole(row, column);
            let (found, at) = (half(found[row * leading + column]), row * outputs + column);
            // What is written has 8 bits: half of the last is 2^-8 of it. The device's tanh is within
            // 2^-11 (PTX, tanh.approx), which GELU has |z| / 2 of, and its derivative, through 1 - t^2,
            // 1 / 2 + |z| du. cuBLASLt rounds the product to 8 bits before the derivative multiplies it. 72
            // terms are summed in f32.
            let [unit, tanh, rest] = [1.0 / 256.0, 1.0 / 2048.0, 1e-5];
            let (expected, formula) = match finish {
                Finish::Nothing => (sum, 0.0),
                Finish::Bias(_) => (sum + own_bias[column], 0.0),
                Finish::Gelu { bias, .. } => {
                    let z = sum + if bias == 0 { 0.0 } else { own_bias[column] };
                    apart = apart.max((half(after[at]) - z).abs() / (unit * z.abs() + rest));
                    (gelu(z).0, 0.5 * z.abs() * tanh)
                }
                // What was kept is read as it was written.
                Finish::GeluSlope { .. } => {
                    let z = half(before[at]);
                    let (_, slope, du) = gelu(z);
                    let rounded = unit * (sum * slope).abs();
                    (sum * slope, rounded + (1.0 + unit) * sum.abs() * (0.5 + z.abs() * du) * tanh)
                }
            };
            let budget = unit * (expected.abs() + formula) + formula + rest;
            apart = apart.max((found - expected).abs() / budget);
        }
        wrong.check(format!("{finish:?}, of the error budget"), apart, 1.0);
        assert!(device.multiply_and(&own, finish).unwrap());
        let again = device.read(&out, rows * leading).unwrap();
        assert_eq!(found, again, "the same bits");
    }
    let summed = Product { accumulate: true, ..product(matrix(out.address(), leading)) };
    assert!(!device.multiply_and(&summed, Finish::Bias(bias)).unwrap());
}

/// Products as large as GPT-2's, for which cuBLASLt's first algorithm is not what is taken: single
/// numbers against f64, and the same bits again.
fn large_products_are_right(device: Arc<CudaDevice>) {
    let mut wrong = Wrong::default();
    let (inputs, kept_rows) = (768, 3072);
    let (left, own_left) = halves(16384 * inputs, 1);
    let (right, own_right) = halves(16384 * inputs, 2);
    let (kept, own_kept) = halves(16384 * kept_rows, 3);
    let up = |numbers: &[u16]| device.upload(numbers).unwrap();
    let (left, right, kept) = (up(&left), up(&right), up(&kept));
    let matrix = |address: u64, leading: usize| Matrix::new(address, leading, Store::BFloat16);
    let slope = Finish::GeluSlope { of: matrix(kept.address(), kept_rows) };
    for (rows, outputs, store, finish) in [
        (16384, 768, Store::BFloat16, Finish::Nothing),
        (4096, 16384, Store::Float32, Finish::Nothing),
        (16384, kept_rows, Store::BFloat16, slope),
    ] {
        let out = device.zeros::<u8>(rows * outputs * store.bytes()).unwrap();
        let product = Product {
            out: Matrix::new(out.address(), outputs, store),
            left: matrix(left.address(), inputs),
            right: if finish == Finish::Nothing {
                matrix(right.address(), inputs).transposed()
            } else {
                matrix(right.address(), outputs)
            },
            extents: (rows, outputs, inputs),
            count: 1,
            scale: 0.125,
            accumulate: false,
        };
        let run = || {
            let finished = device.multiply_and(&product, finish).unwrap();
            if !finished {
                device.multiply(&product, false).unwrap();
            }
            (finished, device.read(&out, rows * outputs * store.bytes()).unwrap())
        };
        let (finished, found) = run();
        let name = format!("{rows} x {outputs}, {store:?}, {finish:?}, by cuBLASLt: {finished}");
        assert!(finished || finish == Finish::Nothing, "{name}");
        let mut apart = 0.0f64;
        for at in (0..rows * outputs).step_by(10_007) {
            let (row, column) = (at / outputs, at % outputs);
            let weight = |i: usize| match finish {
                Finish::Nothing => own_right[column * inputs + i],
                _ => own_right[i * outputs + column],
            };
            let terms = (0..inputs).map(|i| 0.125 * own_left[row * inputs + i] * weight(i));
            let (sum, size) = terms.fold((0.0, 0.0), |(a, b), term| (a + term, b + term.abs()));
            let slope =
                if finish == Finish::Nothing { (0.0, 1.0, 0.0) } else { gelu(own_kept[at]) };
            let bytes = &found[at * store.bytes()..];
            // What is written, half of the last bit of 8, once more before a slope, which is within
            // 2^-11 of its tanh; and sums in f32, which may be cut and not rounded.
            let (value, unit) = match store {
                Store::Float32 => {
                    (f64::from(f32::from_le_bytes(bytes[..4].try_into().unwrap())), 0.0)
                }
                Store::BFloat16 => {
                    (half(u16::from_le_bytes(bytes[..2].try_into().unwrap())), 1.0 / 256.0)
                }
            };
            let tanh = (0.5 + own_kept[at % own_kept.len()].abs() * slope.2) / 2048.0;
            let tanh =
                if finish == Finish::Nothing { 0.0 } else { (1.0 + unit) * sum.abs() * tanh };
            let expected = sum * slope.1;
            let terms = inputs as f64 / 2f64.powi(23) * size * slope.1.abs().max(1.0);
            let budget = 2.0 * unit * expected.abs() + 1.01 * (tanh + terms);
            apart = apart.max((value - expected).abs() / budget);
        }
        wrong.check(format!("{name}, of the error budget"), apart, 1.0);
        assert_eq!(found, run().1, "the same bits");
    }
}

fn main() -> std::process::ExitCode {
    device::run(&[
        OnDevice("losses_and_texts_are_the_same", losses_and_texts_are_the_same),
        OnDevice("steps_agree_to_rounding", steps_agree_to_rounding),
        OnDevice("lower_precision_is_what_it_says", lower_precision_is_what_it_says),
        OnDevice(
            "a_training_goes_on_from_a_saved_state_in_the_same_bits",
            a_training_goes_on_from_a_saved_state_in_the_same_bits,
        ),
        OnDevice("an_embedding_is_trained_as_on_the_cpu", an_embedding_is_trained_as_on_the_cpu),
        OnDevice(
            "an_embedding_goes_on_in_the_same_bits_and_is_measured",
            an_embedding_goes_on_in_the_same_bits_and_is_measured,
        ),
        OnDevice("a_whole_model_is_trained_as_on_the_cpu", a_whole_model_is_trained_as_on_the_cpu),
        OnDevice(
            "a_whole_model_goes_on_in_the_same_bits_and_is_measured",
            a_whole_model_goes_on_in_the_same_bits_and_is_measured,
        ),
        OnDevice(
            "no_text_contributes_more_than_the_clip_norm",
            no_text_contributes_more_than_the_clip_norm,
        ),
        OnDevice(
            "a_batch_of_many_micro_batches_is_one_batch",
            a_batch_of_many_micro_batches_is_one_batch,
        ),
        OnDevice("products_are_finished_as_they_say", products_are_finished_as_they_say),
        OnDevice("large_products_are_right", large_products_are_right),
        OnDevice(
            "what_a_device_cannot_train_is_a_sentence",
            what_a_device_cannot_train_is_a_sentence,
        ),
    ])
}
