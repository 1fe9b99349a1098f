//! What training costs on this machine, as one JSON object; used by `cargo xtask bench training`.
//! `cargo run --release -p probes --example speed -- mlp|cnn|adult REPLICAS SECONDS`
//! `… -- wide-resnet BATCH` (one step; time and peak memory)
//! `… -- adult-many REPLICAS STEPS` (whole trainings with Adam)
//! `… -- adult-accuracy SEED` (test accuracy) and `… -- adult-export FOLDER`
//! `… -- roof` (multiply-adds that one thread can do)
#![allow(clippy::print_stdout)]

use random::{Purpose, Stream};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use training::data::{Dataset, Provenance, Shape, Split, adult};
use training::model::{ActivationName, ModelDescription};
use training::{CpuReplicas, OptimizerDescription, Recipe, Replica, Replicas, accuracy};
use vocabulary::{Run, Sampling};

/// Random images of ten classes: cost does not depend on what they show.
fn images(records: usize, side: usize, channels: usize) -> Dataset {
    let stream = Stream::new(1, Purpose::SHUFFLE, 0);
    let mut features = vec![0.0; records * side * side * channels];
    stream.fill_gaussians_f32(0, 0, &mut features);
    Dataset {
        features,
        labels: (0..records as u64).map(|i| (stream.word(1, i) % 10) as u32).collect(),
        classes: 10,
        shape: Shape::Image { height: side, width: side, channels },
        columns: Vec::new(),
        provenance: Provenance::default(),
    }
}

fn mlp(activation: ActivationName) -> ModelDescription {
    ModelDescription::Mlp { hidden: vec![128], activation }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, usual: f64| {
        arguments.get(place).and_then(|text| text.parse().ok()).unwrap_or(usual)
    };
    let replicas = number(1, 64.0) as u64;
    let seconds = number(2, 4.0);
    match arguments.first().map_or("mlp", String::as_str) {
        "mlp" => rate(&mlp(ActivationName::Relu), images(10_000, 28, 1), replicas, seconds),
        "cnn" => {
            let cnn = ModelDescription::Cnn { activation: ActivationName::Relu, groups: 0 };
            rate(&cnn, images(10_000, 28, 1), replicas, seconds);
        }
        "adult" => rate(&mlp(ActivationName::Tanh), built_in().train, replicas, seconds),
        "wide-resnet" => wide_resnet(number(1, 4096.0) as usize),
        "adult-many" => adult_many(number(1, 1000.0) as u64, number(2, 1000.0) as u64),
        "roof" => roof(),
        "adult-accuracy" => adult_accuracy(number(1, 0.0) as u64),
        "adult-export" => export(Path::new(arguments.get(1).map_or(".", String::as_str))),
        other => panic!(
            "`{other}` is none of mlp, cnn, adult, adult-many, wide-resnet, roof, adult-accuracy"
        ),
    }
}

fn built_in() -> Split {
    adult::load().expect("the built-in data is whole")
}

/// Model-steps per second: Poisson batches of 256 on average, each replica its own.
fn rate(model: &ModelDescription, data: Dataset, replicas: u64, seconds: f64) {
    let network = Arc::new(model.network(data.shape, data.classes).expect("the model fits"));
    let sample_rate = 256.0 / data.len() as f64;
    let run = Run::builder().phase(1.0, sample_rate, 1 << 40).build().expect("a valid run");
    let data = Arc::new(data);
    let recipe = Recipe::new(network, OptimizerDescription::sgd(0.05), &run, &data, 1)
        .expect("a valid recipe");
    let replicas: Vec<Replica> = (0..replicas).map(Replica::new).collect();
    let mut models =
        CpuReplicas::new(Arc::new(recipe), data, replicas).expect("replicas fit the model");
    let start = Instant::now();
    models.advance(1).expect("finite gradients");
    let steps = ((seconds / 7.0 / start.elapsed().as_secs_f64()) as u64).clamp(1, 10_000);
    let mut rates = Vec::new();
    let (began, used) = (Instant::now(), cpu_seconds());
    for _ in 0..7 {
        let start = Instant::now();
        models.advance(steps).expect("finite gradients");
        rates.push((steps * models.len() as u64) as f64 / start.elapsed().as_secs_f64());
    }
    let all = (7 * steps * models.len() as u64) as f64;
    let used = cpu_seconds() - used;
    rates.sort_by(f64::total_cmp);
    println!(
        "{{\"rate\":{:.2},\"low\":{:.2},\"high\":{:.2},\"cpu_rate\":{:.2},\"cores\":{:.2}}}",
        rates[3],
        rates[0],
        rates[6],
        all / used,
        used / began.elapsed().as_secs_f64()
    );
}

/// Processor time of all threads so far (Linux; elsewhere NaN).
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // User and system time are fields 14 and 15, in hundredths; the name before may hold spaces.
    let after = stat.rsplit(") ").next().unwrap_or_default();
    let ticks: Vec<f64> =
        after.split(' ').skip(11).take(2).filter_map(|text| text.parse().ok()).collect();
    if ticks.len() == 2 { (ticks[0] + ticks[1]) / 100.0 } else { f64::NAN }
}

/// One step of WideResNet-16-4 on a batch of 32 x 32 images.
fn wide_resnet(batch: usize) {
    let data = Arc::new(images(batch, 32, 3));
    let model = ModelDescription::WideResnet { depth: 16, width: 4, groups: 16 };
    let network = Arc::new(model.network(data.shape, 10).expect("the model fits"));
    let run = Run::builder().phase(1.0, 1.0, 1).sampling(Sampling::Full).build().expect("valid");
    let parameters = network.parameters;
    // Forward, gradients of inputs, gradients of weights; two operations for a multiplication.
    let gflop = 6e-9 * batch as f64 * network.multiplications() as f64;
    let mut recipe = Recipe::new(network, OptimizerDescription::sgd(1.0), &run, &data, 1)
        .expect("a valid recipe");
    recipe.lanes = recipe.suggested_lanes();
    let (lanes, micro_batch) = (recipe.lanes, recipe.micro_batch);
    let mut models = CpuReplicas::new(Arc::new(recipe), data, vec![Replica::new(0)])
        .expect("the replica fits the model");
    let (start, used) = (Instant::now(), cpu_seconds());
    models.advance(1).expect("finite gradients");
    let used = cpu_seconds() - used;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes: f64 =
        peak.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(f64::NAN);
    println!(
        "{{\"wall_s\":{:.1},\"cpu_s\":{used:.2},\"gflop\":{gflop:.1},\"peak_mb\":{:.0},\"parameters\":{parameters},\"lanes\":{lanes},\"micro_batch\":{micro_batch},\"batch\":{batch}}}",
        start.elapsed().as_secs_f64(),
        kilobytes / 1024.0
    );
}

/// The network and constants of Cherubin et al. 2024 on Adult: 80 % of the training records,
/// Adam 1e-4, clip norm 2, batches of 256, noise multiplier 3.51, 30 epochs.
fn adult_accuracy(seed: u64) {
    let split = built_in().train.cut(26_048, 0);
    let test = split.test.expect("a fifth is left");
    let data = Arc::new(split.train);
    let network =
        Arc::new(mlp(ActivationName::Tanh).network(data.shape, 2).expect("the model fits"));
    let sample_rate = 256.0 / data.len() as f64;
    let steps = (30.0 / sample_rate).ceil() as u64;
    let run = Run::builder().phase(3.51, sample_rate, steps).clip_norm(2.0).build().expect("valid");
    let recipe =
        Recipe::new(Arc::clone(&network), OptimizerDescription::adam(1e-4), &run, &data, seed)
            .expect("a valid recipe");
    let mut models = CpuReplicas::new(Arc::new(recipe), data, vec![Replica::new(0)])
        .expect("the replica fits the model");
    let start = Instant::now();
    models.advance(steps).expect("finite gradients");
    println!(
        "{{\"accuracy\":{:.5},\"wall_s\":{:.2},\"steps\":{steps}}}",
        accuracy(&network, models.parameters(0), &test),
        start.elapsed().as_secs_f64()
    );
}

/// The same training as in [`adult_accuracy`], many times and for fewer steps.
fn adult_many(replicas: u64, steps: u64) {
    let data = Arc::new(built_in().train.cut(26_048, 0).train);
    let network =
        Arc::new(mlp(ActivationName::Tanh).network(data.shape, 2).expect("the model fits"));
    let sample_rate = 256.0 / data.len() as f64;
    let run = Run::builder().phase(3.51, sample_rate, steps).clip_norm(2.0).build().expect("valid");
    let recipe = Recipe::new(network, OptimizerDescription::adam(1e-4), &run, &data, 1)
        .expect("a valid recipe");
    let (start, used) = (Instant::now(), cpu_seconds());
    let replicas = (0..replicas).map(Replica::new).collect();
    let mut models =
        CpuReplicas::new(Arc::new(recipe), data, replicas).expect("replicas fit the model");
    models.advance(steps).expect("finite gradients");
    println!(
        "{{\"replicas\":{},\"steps\":{steps},\"wall_s\":{:.1},\"cpu_s\":{:.1}}}",
        models.len(),
        start.elapsed().as_secs_f64(),
        cpu_seconds() - used
    );
}

/// Multiply-adds of one thread with everything in registers: what no product can exceed.
fn roof() {
    struct Chains(u64);
    impl pulp::WithSimd for Chains {
        type Output = f64;
        #[inline(always)]
        fn with_simd<S: pulp::Simd>(self, simd: S) -> f64 {
            let numbers = std::hint::black_box([0.999, 1e-3]).map(|x| simd.splat_f32s(x));
            let [factor, summand] = numbers;
            // All different, or the compiler makes one chain of them.
            let mut sums = std::hint::black_box([
                1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0,
            ])
            .map(|x| simd.splat_f32s(x));
            for _ in 0..self.0 {
                for sum in &mut sums {
                    *sum = simd.mul_add_f32s(*sum, factor, summand);
                }
            }
            std::hint::black_box(sums);
            (2 * 12 * S::F32_LANES) as f64 * self.0 as f64
        }
    }
    let mut rates: Vec<f64> = (0..7)
        .map(|_| {
            let used = cpu_seconds();
            let mut done = 0.0;
            while cpu_seconds() - used < 0.5 {
                done += pulp::Arch::new().dispatch(Chains(1_000_000));
            }
            done / (cpu_seconds() - used)
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    println!("{{\"gflop_s\":{:.1},\"high\":{:.1}}}", rates[3] / 1e9, rates[6] / 1e9);
}

/// The same records for other programs: little-endian f32 rows and u32 labels.
fn export(folder: &Path) {
    let split = built_in().train.cut(26_048, 0);
    for (name, data) in [("train", Some(&split.train)), ("test", split.test.as_ref())] {
        let data = data.expect("both parts are there");
        let write = |ending: &str, bytes: Vec<u8>| {
            std::fs::File::create(folder.join(format!("adult-{name}.{ending}")))
                .and_then(|mut file| file.write_all(&bytes))
                .expect("the folder can be written");
        };
        write("f32", data.features.iter().flat_map(|x| x.to_le_bytes()).collect());
        write("u32", data.labels.iter().flat_map(|x| x.to_le_bytes()).collect());
    }
    println!("{{\"records\":{}}}", split.train.len());
}
