//! Speed of a CUDA device: model-steps in a second for many replicas of small models.
//!
//! cargo run --release -p probes --example device_bench [-- quick|wide|profile]
//!
//! `quick` takes the largest sizes only, `wide` the wide residual nets only, and `profile` says how
//! long each kernel of a step of the wide residual nets takes (in one precision: `profile tf32`).
//!
//! Every row is the median of several repetitions after a warm-up, the device finished before the
//! clock is read. Prints a table and, as its last line, JSON.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;
use training::cuda::{CudaDevice, CudaReplicas, Precision};
use training::data::{Dataset, Provenance, Shape, adult};
use training::model::{ActivationName, ModelDescription};
use training::{Fault, OptimizerDescription, Recipe, Replica, Replicas};
use vocabulary::{Run, Sampling};

/// Records of the synthetic data sets.
fn synthetic(records: usize, shape: Shape) -> Dataset {
    let stream = random::Stream::new(1, random::Purpose::SHUFFLE, 0);
    let mut features = vec![0.0; records * shape.len()];
    for (row, chunk) in features.chunks_mut(shape.len()).enumerate() {
        stream.fill_gaussians_f32(row as u64, 0, chunk);
    }
    let labels =
        (0..records).map(|record| (stream.word(1 << 40, record as u64) % 10) as u32).collect();
    let provenance = Provenance::default();
    Dataset { features, labels, classes: 10, shape, columns: Vec::new(), provenance }
}

fn name_of(precision: Precision) -> &'static str {
    match precision {
        Precision::Float32 => "f32",
        Precision::TensorFloat32 => "tf32",
        Precision::BFloat16 => "bf16",
    }
}

struct Bench {
    device: Arc<CudaDevice>,
    rows: Vec<serde_json::Value>,
}

struct Work<'a> {
    name: &'a str,
    model: &'a ModelDescription,
    data: &'a Arc<Dataset>,
    /// One batch for all steps, or a fresh Poisson batch at each.
    fixed: bool,
    replicas: usize,
    precision: Precision,
    optimizer: OptimizerDescription,
    batch: f64,
    steps: u64,
    repetitions: usize,
}

impl Bench {
    fn replicas(&self, work: &Work<'_>, all: u64) -> Result<CudaReplicas, Box<dyn Error>> {
        let sampling = if work.fixed { Sampling::FixedSize } else { Sampling::Poisson };
        let rate = work.batch / work.data.len() as f64;
        let run = Run::builder().phase(1.0, rate, all).clip_norm(1.0).sampling(sampling).build()?;
        let network = Arc::new(work.model.network(work.data.shape, work.data.classes)?);
        let mut recipe = Recipe::new(network, work.optimizer, &run, work.data, 1)?;
        if work.fixed {
            recipe.fault = Fault::RepeatedBatch;
        }
        let replicas = (0..work.replicas as u64).map(Replica::new).collect();
        let (device, data) = (Arc::clone(&self.device), Arc::clone(work.data));
        Ok(CudaReplicas::new(device, work.precision, Arc::new(recipe), data, replicas)?)
    }

    fn run(&mut self, work: &Work<'_>) -> Result<(), Box<dyn Error>> {
        let all = work.steps * (work.repetitions as u64 + 1);
        let mut models = self.replicas(work, all)?;
        models.advance(work.steps)?;
        let mut rates = Vec::new();
        for _ in 0..work.repetitions {
            let start = Instant::now();
            models.advance(work.steps)?;
            rates.push((work.replicas as u64 * work.steps) as f64 / start.elapsed().as_secs_f64());
        }
        rates.sort_by(f64::total_cmp);
        let (least, most) = (rates[0], rates[rates.len() - 1]);
        let middle = rates[rates.len() / 2];
        let precision = name_of(work.precision);
        let batches = if work.fixed { "fixed" } else { "Poisson" };
        println!(
            "{:22} {batches:8} {precision:5} B={:5} M={:5}  {middle:>10.1} [{least:.1}..{most:.1}] \
             model-steps/s, {:.3} ms per step",
            work.name,
            work.batch,
            work.replicas,
            1e3 * work.replicas as f64 / middle
        );
        self.rows.push(serde_json::json!({
            "model": work.name, "batches": batches, "precision": precision,
            "replicas": work.replicas, "batch": work.batch, "model_steps_per_second": middle,
            "least": least, "most": most,
        }));
        Ok(())
    }
}

/// The papers' net on images of 32 x 32, and a small one in several replicas.
fn wide(bench: &mut Bench) -> Result<(), Box<dyn Error>> {
    let shape = Shape::Image { height: 32, width: 32, channels: 3 };
    let data = Arc::new(synthetic(4_096, shape));
    let large = ModelDescription::WideResnet { depth: 16, width: 4, groups: 16 };
    let small = ModelDescription::WideResnet { depth: 10, width: 1, groups: 4 };
    let all = [Precision::Float32, Precision::TensorFloat32, Precision::BFloat16];
    let mut rows = Vec::new();
    for precision in all {
        rows.push(("WideResNet-16-4", &large, 256.0, 1, precision));
        rows.push(("WideResNet-16-4", &large, 1024.0, 1, precision));
        rows.push(("WideResNet-10-1", &small, 256.0, 1, precision));
        rows.push(("WideResNet-10-1", &small, 256.0, 32, precision));
    }
    for (name, model, batch, replicas, precision) in rows {
        bench.run(&Work {
            name,
            model,
            data: &data,
            fixed: true,
            replicas,
            precision,
            optimizer: OptimizerDescription::sgd(0.1),
            batch,
            steps: 10,
            repetitions: 5,
        })?;
    }
    Ok(())
}

/// Where a step goes, kernel by kernel, waiting after each.
fn profile(bench: &mut Bench) -> Result<(), Box<dyn Error>> {
    let shape = Shape::Image { height: 32, width: 32, channels: 3 };
    let data = Arc::new(synthetic(4_096, shape));
    let large = ModelDescription::WideResnet { depth: 16, width: 4, groups: 16 };
    let small = ModelDescription::WideResnet { depth: 10, width: 1, groups: 4 };
    let all = [Precision::TensorFloat32, Precision::Float32, Precision::BFloat16];
    let asked = std::env::args().nth(2);
    for precision in all.into_iter().filter(|p| asked.as_ref().is_none_or(|n| *n == name_of(*p))) {
        for (name, model, batch, replicas) in [
            ("WideResNet-16-4", &large, 256.0, 1),
            ("WideResNet-16-4", &large, 1024.0, 1),
            ("WideResNet-10-1", &small, 256.0, 32),
        ] {
            let work = Work {
                name,
                model,
                data: &data,
                fixed: true,
                replicas,
                precision,
                optimizer: OptimizerDescription::sgd(0.1),
                batch,
                steps: 3,
                repetitions: 1,
            };
            let mut models = bench.replicas(&work, 6)?;
            models.advance(3)?;
            bench.device.measure();
            models.advance(3)?;
            let rows = bench.device.measured();
            let all: f64 = rows.iter().map(|(_, _, seconds)| seconds).sum();
            println!(
                "{name}, batch {batch}, {replicas} replicas, {precision:?}: {:.3} ms per step in \
                 kernels",
                1e3 * all / 3.0
            );
            for (name, count, seconds) in rows {
                println!("  {:8.3} ms {:4} x {name}", 1e3 * seconds / 3.0, count / 3);
            }
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let asked = |name: &str| std::env::args().any(|argument| argument == name);
    let quick = asked("quick");
    let start = Instant::now();
    let device = CudaDevice::open(0)?;
    println!("{}, opened in {:.2} s", device.name(), start.elapsed().as_secs_f64());
    let mut bench = Bench { device, rows: Vec::new() };
    if asked("profile") {
        return profile(&mut bench);
    }
    wide(&mut bench)?;
    if asked("wide") {
        println!("{}", serde_json::json!({"device": bench.device.name(), "rows": bench.rows}));
        return Ok(());
    }
    let sgd = OptimizerDescription::sgd(0.1);
    let mlp = ModelDescription::Mlp { hidden: vec![128], activation: ActivationName::Relu };
    let large = Arc::new(synthetic(60_000, Shape::Flat(784)));
    let small = Arc::new(synthetic(1_024, Shape::Flat(784)));
    let sizes: &[usize] = if quick { &[4096] } else { &[1, 16, 256, 1024, 4096] };
    for &replicas in sizes {
        let precisions: &[Precision] = if quick {
            &[Precision::Float32]
        } else {
            &[Precision::Float32, Precision::TensorFloat32]
        };
        for &precision in precisions {
            for fixed in [true, false] {
                let steps = (200_000 / replicas).clamp(16, 1000) as u64;
                bench.run(&Work {
                    name: "MLP 784-128-10",
                    model: &mlp,
                    data: if fixed { &small } else { &large },
                    fixed,
                    replicas,
                    precision,
                    optimizer: sgd,
                    batch: 256.0,
                    steps,
                    repetitions: 5,
                })?;
            }
        }
    }
    let image = Shape::Image { height: 28, width: 28, channels: 1 };
    let images = Arc::new(Dataset { shape: image, ..Dataset::clone(&large) });
    let cnn = ModelDescription::Cnn { activation: ActivationName::Relu, groups: 0 };
    for replicas in if quick { vec![256] } else { vec![1, 16, 256] } {
        bench.run(&Work {
            name: "Opacus MNIST CNN",
            model: &cnn,
            data: &images,
            fixed: false,
            replicas,
            precision: Precision::Float32,
            optimizer: sgd,
            batch: 256.0,
            steps: 20,
            repetitions: 3,
        })?;
    }
    // P1's net on UCI Adult: a thousand models of a thousand steps, from the data to the results.
    let train = Arc::new(adult::load()?.train.cut(26_048, 1).train);
    let tanh = ModelDescription::Mlp { hidden: vec![128], activation: ActivationName::Tanh };
    let work = Work {
        name: "Adult 108-128-2",
        model: &tanh,
        data: &train,
        fixed: false,
        replicas: 1000,
        precision: Precision::Float32,
        optimizer: OptimizerDescription::adam(1e-4),
        batch: 256.0,
        steps: 1000,
        repetitions: 1,
    };
    let start = Instant::now();
    let mut models = bench.replicas(&work, 1000)?;
    models.advance(1000)?;
    let mut parameters = Vec::new();
    models.all_parameters(&mut parameters)?;
    let seconds = start.elapsed().as_secs_f64();
    println!("Adult 108-128-2, 1000 models of 1000 steps with Adam: {seconds:.2} s in all");
    bench.rows.push(serde_json::json!({"model": "Adult 108-128-2", "replicas": 1000, "steps": 1000, "seconds": seconds}));
    println!("{}", serde_json::json!({"device": bench.device.name(), "rows": bench.rows}));
    Ok(())
}
