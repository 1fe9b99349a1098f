//! Model-steps per second on this machine, as JSON lines on stdout; used by `cargo xtask bench`.
//! `cargo run --release -p training --example speed -- mlp|cnn|adult [REPLICAS] [SECONDS]`
#![allow(clippy::print_stdout)]

use random::{Purpose, Stream};
use std::sync::Arc;
use std::time::Instant;
use training::data::{Dataset, Provenance, Shape, adult};
use training::model::{ActivationName, ModelDescription};
use training::{CpuReplicas, OptimizerDescription, Recipe, Replica, Replicas};
use vocabulary::Run;

/// Random images of ten classes: speed does not depend on what they show.
fn images(records: usize) -> Dataset {
    let stream = Stream::new(1, Purpose::SHUFFLE, 0);
    let mut features = vec![0.0; records * 784];
    stream.fill_gaussians_f32(0, 0, &mut features);
    Dataset {
        features,
        labels: (0..records as u64).map(|i| (stream.word(1, i) % 10) as u32).collect(),
        classes: 10,
        shape: Shape::Image { height: 28, width: 28, channels: 1 },
        columns: Vec::new(),
        provenance: Provenance::default(),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, usual: f64| {
        arguments.get(place).and_then(|text| text.parse().ok()).unwrap_or(usual)
    };
    let what = arguments.first().map_or("mlp", String::as_str);
    let mlp = |hidden, activation| ModelDescription::Mlp { hidden, activation };
    let (model, data) = match what {
        "cnn" => (ModelDescription::Cnn { activation: ActivationName::Relu, groups: 0 }, images(10_000)),
        "adult" => (
            mlp(vec![128], ActivationName::Tanh),
            adult::load().expect("the built-in data is whole").train,
        ),
        _ => (mlp(vec![128], ActivationName::Relu), images(10_000)),
    };
    let (replicas, seconds) = (number(1, 64.0) as u64, number(2, 4.0));
    let network = Arc::new(model.network(data.shape, data.classes).expect("the model fits"));
    let rate = 256.0 / data.len() as f64;
    let run = Run::builder().phase(1.0, rate, 1 << 40).build().expect("a valid run");
    let data = Arc::new(data);
    let mut recipe = Recipe::new(network, OptimizerDescription::sgd(0.05), &run, &data, 1)
        .expect("a valid recipe");
    if let Ok(micro) = std::env::var("MICRO_BATCH") {
        recipe.micro_batch = micro.parse().expect("a number");
    }
    let micro_batch = recipe.micro_batch;
    let replicas: Vec<Replica> = (0..replicas).map(Replica::new).collect();
    let mut models =
        CpuReplicas::new(Arc::new(recipe), data, replicas).expect("replicas fit the model");
    let advance = |models: &mut CpuReplicas, steps: u64| {
        models.advance(steps).expect("finite gradients");
    };
    let start = Instant::now();
    advance(&mut models, 1);
    let steps = ((seconds / 7.0 / start.elapsed().as_secs_f64()) as u64).clamp(1, 10_000);
    let mut rates: Vec<f64> = (0..7)
        .map(|_| {
            let start = Instant::now();
            advance(&mut models, steps);
            (steps * models.len() as u64) as f64 / start.elapsed().as_secs_f64()
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    println!(
        "{{\"what\":\"{what}\",\"replicas\":{},\"threads\":{},\"micro_batch\":{micro_batch},\"median\":{:.1},\"low\":{:.1},\"high\":{:.1}}}",
        models.len(),
        rayon::current_num_threads(),
        rates[3],
        rates[0],
        rates[6]
    );
}
