//! The CPU and a CUDA device compute the same steps from the same random words. Needs an NVIDIA
//! device; without one the tests are skipped, and say so.
#![allow(clippy::print_stderr, clippy::print_stdout, clippy::needless_pass_by_value)]

#[path = "common/device.rs"]
mod device;

use device::Test::{Everywhere, OnDevice};
use random::{Purpose, Stream};
use std::sync::Arc;
use training::cuda::{CudaDevice, CudaReplicas, Precision};
use training::data::{Dataset, Provenance, Shape};
use training::model::{ActivationName, ModelDescription};
use training::{
    Canary, CpuReplicas, Fault, Injection, OptimizerDescription, Recipe, Replica, Replicas, Rest,
    Schedule, Start, TrainingError,
};
use vocabulary::{Run, Sampling};

fn data(records: usize, shape: Shape, classes: usize) -> Dataset {
    let stream = Stream::new(11, Purpose::SHUFFLE, 0);
    let features = (0..records as u64)
        .flat_map(|record| (0..shape.len() as u64).map(move |i| (record, i)))
        .map(|(record, i)| 0.5 * stream.gaussian_f32(record, i))
        .collect();
    let labels = (0..records).map(|record| (record * 7 % classes) as u32).collect();
    let provenance = Provenance::default();
    Dataset { features, labels, classes, shape, columns: Vec::new(), provenance }
}

struct Case {
    name: &'static str,
    model: ModelDescription,
    shape: Shape,
    optimizer: OptimizerDescription,
    sampling: Sampling,
    sample_rate: f64,
    rest: Rest,
    fault: Fault,
    replicas: usize,
    canaries: bool,
    steps: u64,
    /// Bytes of the device that may be used.
    limit: Option<usize>,
    /// Most that may lie between the devices, of the distance moved.
    bound: f64,
}

/// f32 carries 24 bits; a few hundred terms a sum and six steps stay below this.
const ROUNDING: f64 = 5e-6;
/// Among millions of numbers that pass a ReLU one or two are so close to zero that rounding decides
/// their sign. Each changes a step by some millionths; where none does, these nets end within 2e-7.
const ROUNDING_AND_SIGNS: f64 = 5e-5;

impl Default for Case {
    fn default() -> Self {
        Self {
            name: "",
            model: mlp(&[32], ActivationName::Relu),
            shape: Shape::Flat(20),
            optimizer: OptimizerDescription::sgd(0.5),
            sampling: Sampling::Poisson,
            sample_rate: 0.1,
            rest: Rest::Natural,
            fault: Fault::None,
            replicas: 9,
            canaries: true,
            steps: 6,
            limit: None,
            bound: ROUNDING,
        }
    }
}

fn mlp(hidden: &[usize], activation: ActivationName) -> ModelDescription {
    ModelDescription::Mlp { hidden: hidden.to_vec(), activation }
}

/// Records 300, five classes.
fn recipe(case: &Case, data: &Dataset) -> Arc<Recipe> {
    let network = Arc::new(case.model.network(case.shape, data.classes).unwrap());
    let rate = if case.sampling == Sampling::Full { 1.0 } else { case.sample_rate };
    let run = Run::builder()
        .phase(0.7, rate, case.steps)
        .clip_norm(0.8)
        .sampling(case.sampling)
        .build()
        .unwrap();
    let mut recipe = Recipe::new(network, case.optimizer, &run, data, 17).unwrap();
    recipe.rest = case.rest;
    recipe.fault = case.fault;
    Arc::new(recipe)
}

fn replicas(case: &Case, recipe: &Recipe, data: &Dataset) -> Vec<Replica> {
    let parameters = recipe.network.parameters as u32;
    let blank: Arc<[f32]> = vec![0.25; data.shape.len()].into();
    let entries: Arc<[(u32, f32)]> =
        vec![(0, 0.6), (parameters / 2, -0.6), (parameters - 1, 0.6)].into();
    let factors: Arc<[f32]> = vec![1.0, 0.0, -0.5, 1.0].into();
    (0..case.replicas as u64)
        .map(|number| {
            let mut replica = Replica::new(number);
            if number % 3 == 1 {
                replica.without = vec![0, 5, 17, 120].into();
            }
            if number % 4 == 2 {
                replica.start = Start::Drawn(0);
            }
            if case.canaries {
                let member = number % 2 == 0;
                let gradient =
                    |schedule| Injection::Gradient { entries: Arc::clone(&entries), schedule };
                let example = Injection::Example { features: Arc::clone(&blank), label: 3 };
                replica.canaries = vec![
                    Canary { injection: example, member: true },
                    Canary { injection: gradient(Schedule::Always), member },
                    Canary {
                        injection: gradient(Schedule::Factors(Arc::clone(&factors))),
                        member: true,
                    },
                    Canary::dirac(1, 0.8, !member),
                ]
                .into();
            }
            replica
        })
        .collect()
}

fn on_device(
    device: &Arc<CudaDevice>,
    case: &Case,
    recipe: &Arc<Recipe>,
    data: &Arc<Dataset>,
    precision: Precision,
) -> Result<CudaReplicas, TrainingError> {
    let replicas = replicas(case, recipe, data);
    let (recipe, data) = (Arc::clone(recipe), Arc::clone(data));
    let mut cuda = CudaReplicas::new(Arc::clone(device), precision, recipe, data, replicas)?;
    if let Some(limit) = case.limit {
        cuda.limit_memory(limit);
    }
    Ok(cuda)
}

/// Largest distance of a replica's parameters between the devices, over the distance that they
/// moved from the start.
fn difference(device: &Arc<CudaDevice>, case: &Case, precision: Precision) -> f64 {
    let data = Arc::new(data(300, case.shape, 5));
    let recipe = recipe(case, &data);
    let own = replicas(case, &recipe, &data);
    let mut cpu = CpuReplicas::new(Arc::clone(&recipe), Arc::clone(&data), own).unwrap();
    let mut cuda = on_device(device, case, &recipe, &data, precision).unwrap();
    let (mut start, mut left, mut right) = (Vec::new(), Vec::new(), Vec::new());
    cpu.all_parameters(&mut start).unwrap();
    cuda.all_parameters(&mut right).unwrap();
    assert_eq!(start, right, "{}: starts", case.name);
    cpu.keep_statistics();
    cuda.keep_statistics();
    cpu.advance(case.steps).unwrap();
    // In two parts, as a trainer that saves in between would.
    cuda.advance(2).unwrap();
    cuda.advance(case.steps).unwrap();
    cpu.all_parameters(&mut left).unwrap();
    cuda.all_parameters(&mut right).unwrap();
    let length = recipe.network.parameters;
    let distance = |a: &[f32], b: &[f32]| {
        let squares = a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2));
        squares.sum::<f64>().sqrt()
    };
    let parts = start.chunks(length).zip(left.chunks(length)).zip(right.chunks(length));
    let worst = parts
        .map(|((start, left), right)| distance(left, right) / distance(start, left))
        .fold(0.0, f64::max);
    for (ours, theirs) in cpu.statistics().unwrap().iter().zip(cuda.statistics().unwrap()) {
        assert_eq!(ours.batch_size, theirs.batch_size, "{}", case.name);
        if precision == Precision::Float32 {
            for (a, b) in ours.norms.iter().zip(&theirs.norms) {
                // The CPU states upper ends; batches may be in another order only if broken.
                assert!((a - b).abs() <= 1e-3 * a.max(1e-3), "{}: norms {a} {b}", case.name);
            }
        }
    }
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let few = data.select(&[0, 3, 9, 250]);
    cpu.losses(&few, &mut ours).unwrap();
    cuda.losses(&few, &mut theirs).unwrap();
    if precision == Precision::Float32 {
        for (a, b) in ours.iter().zip(&theirs) {
            assert!((a - b).abs() <= 1e-3 * a.abs().max(0.1), "{}: losses {a} {b}", case.name);
        }
    }
    worst
}

fn cases() -> Vec<Case> {
    let image = Shape::Image { height: 28, width: 28, channels: 1 };
    let cnn = || ModelDescription::Cnn { activation: ActivationName::Relu, groups: 0 };
    let sgd = |momentum: f64, weight_decay: f64, regulariser: f64| OptimizerDescription::Sgd {
        learning_rate: 0.3,
        momentum,
        weight_decay,
        regulariser,
    };
    let adamw = OptimizerDescription::AdamW {
        learning_rate: 0.01,
        beta1: 0.9,
        beta2: 0.99,
        epsilon: 1e-6,
        weight_decay: 0.1,
        regulariser: 0.01,
    };
    let tanh = ActivationName::Tanh;
    vec![
        Case { name: "hidden layer", ..Case::default() },
        Case { name: "many replicas, sorted", replicas: 300, ..Case::default() },
        Case {
            name: "tanh, odd sizes",
            model: mlp(&[37], tanh),
            shape: Shape::Flat(19),
            ..Case::default()
        },
        Case { name: "softmax", model: ModelDescription::Softmax {}, ..Case::default() },
        Case {
            name: "softmax, sorted",
            model: ModelDescription::Softmax {},
            replicas: 270,
            ..Case::default()
        },
        Case { name: "deep", model: mlp(&[24, 17, 9], tanh), replicas: 260, ..Case::default() },
        Case { name: "wide", model: mlp(&[1500], ActivationName::Relu), ..Case::default() },
        Case {
            name: "convolutions",
            model: cnn(),
            shape: image,
            replicas: 4,
            steps: 4,
            ..Case::default()
        },
        Case {
            name: "group norm",
            model: ModelDescription::Cnn { activation: tanh, groups: 4 },
            shape: image,
            replicas: 4,
            steps: 4,
            ..Case::default()
        },
        Case {
            name: "wide residual net",
            model: ModelDescription::WideResnet { depth: 10, width: 1, groups: 4 },
            shape: Shape::Image { height: 12, width: 12, channels: 3 },
            replicas: 3,
            steps: 3,
            bound: ROUNDING_AND_SIGNS,
            ..Case::default()
        },
        Case {
            name: "wider residual net, odd sizes",
            model: ModelDescription::WideResnet { depth: 10, width: 2, groups: 8 },
            shape: Shape::Image { height: 11, width: 11, channels: 3 },
            replicas: 2,
            steps: 2,
            bound: ROUNDING_AND_SIGNS,
            ..Case::default()
        },
        Case {
            name: "residual net of whole rows",
            model: ModelDescription::WideResnet { depth: 10, width: 1, groups: 4 },
            shape: Shape::Image { height: 32, width: 32, channels: 3 },
            replicas: 3,
            steps: 2,
            sample_rate: 0.05,
            bound: ROUNDING_AND_SIGNS,
            ..Case::default()
        },
        Case {
            name: "wide residual net of whole rows",
            model: ModelDescription::WideResnet { depth: 10, width: 4, groups: 16 },
            shape: Shape::Image { height: 32, width: 32, channels: 3 },
            replicas: 1,
            steps: 2,
            sample_rate: 0.03,
            bound: ROUNDING_AND_SIGNS,
            ..Case::default()
        },
        Case {
            name: "residual net with channels beside the tiles",
            model: ModelDescription::WideResnet { depth: 10, width: 3, groups: 16 },
            shape: Shape::Image { height: 8, width: 8, channels: 3 },
            replicas: 2,
            steps: 2,
            bound: ROUNDING_AND_SIGNS,
            ..Case::default()
        },
        Case { name: "momentum and decay", optimizer: sgd(0.9, 0.1, 0.2), ..Case::default() },
        Case { name: "Adam", optimizer: OptimizerDescription::adam(0.01), ..Case::default() },
        Case { name: "AdamW", optimizer: adamw, ..Case::default() },
        Case { name: "full batch", sampling: Sampling::Full, ..Case::default() },
        Case { name: "fixed size", sampling: Sampling::FixedSize, ..Case::default() },
        Case { name: "shuffle", sampling: Sampling::Shuffle, ..Case::default() },
        Case { name: "large rate", sample_rate: 0.9, ..Case::default() },
        Case { name: "nothing but canaries", rest: Rest::Zero, ..Case::default() },
        Case {
            name: "empty batches",
            sample_rate: 0.002,
            canaries: false,
            replicas: 130,
            ..Case::default()
        },
        Case { name: "repeated batch", fault: Fault::RepeatedBatch, ..Case::default() },
        Case { name: "half the noise", fault: Fault::HalfNoise, ..Case::default() },
        Case { name: "no clipping", fault: Fault::NoClipping, ..Case::default() },
        Case {
            name: "micro-batches",
            sampling: Sampling::Full,
            limit: Some(150_000),
            replicas: 3,
            ..Case::default()
        },
        Case { name: "groups", limit: Some(60_000), replicas: 7, ..Case::default() },
    ]
}

fn devices_agree_to_rounding(device: Arc<CudaDevice>) {
    let mut wrong = Vec::new();
    for case in cases() {
        let found = difference(&device, &case, Precision::Float32);
        eprintln!("{}: {found:.2e}", case.name);
        if !(found < case.bound) {
            wrong.push(format!("{}: {found:e}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Operands rounded to 11 bits: further away than f32, by no more than a few times 2^-11.
fn tf32_is_what_it_says(device: Arc<CudaDevice>) {
    let shape = Shape::Flat(128);
    let case =
        Case { name: "TF32", shape, model: mlp(&[128], ActivationName::Relu), ..Case::default() };
    let found = difference(&device, &case, Precision::TensorFloat32);
    eprintln!("TF32: {found:.2e}");
    assert!(found < 1e-2, "{found:e}");
    assert!(
        Precision::TensorFloat32.sensitivity_factor() > Precision::Float32.sensitivity_factor()
    );
}

/// Convolutions with operands of 11 and of 8 bits, through ten layers and back.
fn convolutions_round_as_they_say(device: Arc<CudaDevice>) {
    for (width, side) in [(2, 32), (1, 32), (1, 12), (2, 12)] {
        let case = Case {
            name: "wide residual net",
            model: ModelDescription::WideResnet { depth: 10, width, groups: 4 },
            shape: Shape::Image { height: side, width: side, channels: 3 },
            replicas: 2,
            steps: 2,
            ..Case::default()
        };
        for (precision, bound) in [(Precision::TensorFloat32, 1e-2), (Precision::BFloat16, 8e-2)] {
            let found = difference(&device, &case, precision);
            eprintln!("width {width}, side {side}, {precision:?}: {found:.2e}");
            assert!(found < bound, "{precision:?}: {found:e}");
            // Not f32 in disguise.
            assert!(found > 1e-6, "{precision:?}: {found:e}");
        }
    }
}

/// One record, hardly any noise: its contribution is what the step moves by. Records from hardly
/// visible to blinding, in every precision.
fn no_record_contributes_more_than_is_stated(device: Arc<CudaDevice>) {
    let image = |side: usize, channels| Shape::Image { height: side, width: side, channels };
    let wide = |width| ModelDescription::WideResnet { depth: 10, width, groups: 4 };
    let models = [
        (wide(1), image(12, 3)),
        (wide(1), image(32, 3)),
        (wide(2), image(9, 3)),
        (ModelDescription::Cnn { activation: ActivationName::Relu, groups: 0 }, image(28, 1)),
        (mlp(&[64], ActivationName::Tanh), Shape::Flat(40)),
    ];
    let precisions = [Precision::Float32, Precision::TensorFloat32, Precision::BFloat16];
    let (rate, clip) = (1e6, 0.8);
    for (model, shape) in &models {
        for precision in precisions {
            if precision == Precision::BFloat16 && matches!(shape, Shape::Flat(_)) {
                continue;
            }
            for power in [-6, -3, 0, 2, 4] {
                let mut data = data(1, *shape, 5);
                data.features.iter_mut().for_each(|x| *x *= 10f32.powi(power));
                let network = Arc::new(model.network(*shape, 5).unwrap());
                let run = Run::builder()
                    .phase(1e-30, 1.0, 1)
                    .clip_norm(clip)
                    .sampling(Sampling::Full)
                    .build()
                    .unwrap();
                let sgd = OptimizerDescription::sgd(rate);
                let recipe = Arc::new(Recipe::new(network, sgd, &run, &data, 3).unwrap());
                let replicas = (0..3).map(Replica::new).collect();
                let normaliser = recipe.normaliser(0);
                let length = recipe.network.parameters;
                let mut cuda = CudaReplicas::new(
                    Arc::clone(&device),
                    precision,
                    recipe,
                    Arc::new(data),
                    replicas,
                )
                .unwrap();
                let (mut start, mut end) = (Vec::new(), Vec::new());
                cuda.all_parameters(&mut start).unwrap();
                cuda.keep_statistics();
                cuda.advance(1).unwrap();
                cuda.all_parameters(&mut end).unwrap();
                let moved = start.chunks(length).zip(end.chunks(length));
                for ((start, end), step) in moved.zip(cuda.statistics().unwrap()) {
                    let squares = start.iter().zip(end).map(|(a, b)| f64::from(a - b).powi(2));
                    let found = squares.sum::<f64>().sqrt() * normaliser / rate;
                    let least = step.norms[0].min(clip) * 0.99;
                    // The step itself is rounded to 24 bits, twice.
                    let most = clip * precision.sensitivity_factor() * (1.0 + 2f64.powi(-22));
                    let what = format!("{model:?} {precision:?} 1e{power}: {found}");
                    assert!(found <= most, "{what}");
                    // A saturated softmax leaves nothing that the parameters can show.
                    if step.norms[0] > 1e-3 {
                        assert!(found >= least, "{what}, norm {}", step.norms[0]);
                    }
                }
            }
        }
    }
}

/// The noise is the same to the bit: from zero, with nothing but noise, one step is -rate x noise.
fn noise_is_the_same_to_the_bit(device: Arc<CudaDevice>) {
    let case = Case { rest: Rest::Zero, canaries: false, steps: 1, ..Case::default() };
    let data = Arc::new(data(300, case.shape, 5));
    let recipe = recipe(&case, &data);
    let zeros: Arc<[f32]> = vec![0.0; recipe.network.parameters].into();
    let replicas: Vec<Replica> = (0..50)
        .map(|number| Replica { start: Start::Fixed(Arc::clone(&zeros)), ..Replica::new(number) })
        .collect();
    let mut cpu =
        CpuReplicas::new(Arc::clone(&recipe), Arc::clone(&data), replicas.clone()).unwrap();
    let mut cuda = CudaReplicas::new(device, Precision::Float32, recipe, data, replicas).unwrap();
    let (mut left, mut right) = (Vec::new(), Vec::new());
    cpu.advance(1).unwrap();
    cuda.advance(1).unwrap();
    cpu.all_parameters(&mut left).unwrap();
    cuda.all_parameters(&mut right).unwrap();
    let different = left.iter().zip(&right).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
    assert_eq!(different, 0, "of {}", left.len());
    assert!(left.iter().any(|value| *value != 0.0));
}

fn a_run_gives_the_same_bits_again_and_resumes(device: Arc<CudaDevice>) {
    let optimizer = OptimizerDescription::adam(0.01);
    let wide = Case {
        model: ModelDescription::WideResnet { depth: 10, width: 2, groups: 8 },
        shape: Shape::Image { height: 12, width: 12, channels: 3 },
        replicas: 3,
        optimizer,
        ..Case::default()
    };
    again_and_resumed(
        &device,
        &Case { replicas: 300, optimizer, ..Case::default() },
        Precision::Float32,
    );
    // Images whose rows are streamed, more of them than a device takes at once.
    let small = Case {
        model: ModelDescription::WideResnet { depth: 10, width: 1, groups: 4 },
        shape: Shape::Image { height: 32, width: 32, channels: 3 },
        replicas: 10,
        optimizer,
        ..Case::default()
    };
    for precision in [Precision::Float32, Precision::TensorFloat32, Precision::BFloat16] {
        again_and_resumed(&device, &wide, precision);
        again_and_resumed(&device, &small, precision);
    }
}

fn again_and_resumed(device: &Arc<CudaDevice>, case: &Case, precision: Precision) {
    let data = Arc::new(data(300, case.shape, 5));
    let recipe = recipe(case, &data);
    let make = || on_device(device, case, &recipe, &data, precision).unwrap();
    let (mut whole, mut again) = (Vec::new(), Vec::new());
    let mut one = make();
    one.advance(6).unwrap();
    one.all_parameters(&mut whole).unwrap();
    let mut first = make();
    first.advance(4).unwrap();
    let states = first.states().unwrap();
    drop(first);
    let mut second = make();
    second.restore(4, states).unwrap();
    second.advance(9).unwrap();
    assert_eq!(second.steps_done(), 6);
    second.all_parameters(&mut again).unwrap();
    assert!(whole == again);
}

fn a_step_that_is_not_finite_is_named(device: Arc<CudaDevice>) {
    let optimizer = OptimizerDescription::sgd(1e30);
    let case = Case { optimizer, canaries: false, ..Case::default() };
    let data = Arc::new(data(300, case.shape, 5));
    let recipe = recipe(&case, &data);
    let mut cuda = on_device(&device, &case, &recipe, &data, Precision::Float32).unwrap();
    match cuda.advance(6) {
        Err(TrainingError::NotFinite { step, .. }) => assert!(step > 0 && step < 6),
        other => panic!("{other:?}"),
    }
}

/// Runs everywhere: with a driver the number is too large, without one there is none.
fn a_device_that_is_not_there_is_a_sentence() {
    let error = CudaDevice::open(4_711).err().unwrap().to_string();
    assert!(error.contains("cuda:4711") && error.contains("--device cpu"), "{error}");
}

/// Less memory than one model needs: a sentence, not a crash.
fn too_little_memory_is_a_sentence(device: Arc<CudaDevice>) {
    let case = Case { limit: Some(1_000), ..Case::default() };
    let data = Arc::new(data(300, case.shape, 5));
    let recipe = recipe(&case, &data);
    let mut cuda = on_device(&device, &case, &recipe, &data, Precision::Float32).unwrap();
    let error = cuda.advance(1).unwrap_err().to_string();
    assert!(error.contains("out of memory") && error.contains("--device cpu"), "{error}");
    let case = Case { limit: Some(60_000), replicas: 40, ..Case::default() };
    let mut cuda = on_device(&device, &case, &recipe, &data, Precision::Float32).unwrap();
    cuda.advance(1).unwrap();
    assert!(cuda.replicas_at_a_time() < 40);
}

fn main() -> std::process::ExitCode {
    device::run(&[
        OnDevice("devices_agree_to_rounding", devices_agree_to_rounding),
        OnDevice("tf32_is_what_it_says", tf32_is_what_it_says),
        OnDevice("convolutions_round_as_they_say", convolutions_round_as_they_say),
        OnDevice(
            "no_record_contributes_more_than_is_stated",
            no_record_contributes_more_than_is_stated,
        ),
        OnDevice("noise_is_the_same_to_the_bit", noise_is_the_same_to_the_bit),
        OnDevice(
            "a_run_gives_the_same_bits_again_and_resumes",
            a_run_gives_the_same_bits_again_and_resumes,
        ),
        OnDevice("a_step_that_is_not_finite_is_named", a_step_that_is_not_finite_is_named),
        Everywhere(
            "a_device_that_is_not_there_is_a_sentence",
            a_device_that_is_not_there_is_a_sentence,
        ),
        OnDevice("too_little_memory_is_a_sentence", too_little_memory_is_a_sentence),
    ])
}
