//! Whole trainings: what is learned, what is recorded, and that interruptions leave no trace.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use training::data::{Dataset, Provenance, Shape, Split};
use training::model::ModelDescription;
use training::{
    Canary, CpuReplicas, Device, Fault, Injection, Ledger, NoiseSource, OptimizerDescription,
    Recipe, Replica, Replicas, Rest, Start, Training, TrainingDescription, TrainingEvent,
    TrainingOptions, TrainingOutcome,
};
use vocabulary::{Run, Sampling};

/// Two well separated clouds.
fn clouds(records: usize) -> Dataset {
    let stream = random::Stream::new(5, random::Purpose::SHUFFLE, 0);
    let mut features = Vec::new();
    let mut labels = Vec::new();
    for record in 0..records as u64 {
        let label = (record % 2) as u32;
        let centre = if label == 0 { -1.0 } else { 1.0 };
        features.extend((0..6).map(|i| centre + stream.gaussian_f32(record, i)));
        labels.push(label);
    }
    Dataset {
        features,
        labels,
        classes: 2,
        shape: Shape::Flat(6),
        columns: Vec::new(),
        provenance: Provenance { name: "clouds".into(), ..Provenance::default() },
    }
}

const OPTIMIZERS: [&str; 3] = [
    "kind = \"sgd\"\nlearning_rate = 0.2\nmomentum = 0.9",
    "kind = \"adam\"\nlearning_rate = 0.02",
    "kind = \"adamw\"\nlearning_rate = 0.02\nregulariser = 0.01",
];

fn description(sampling: &str, optimizer: &str) -> TrainingDescription {
    TrainingDescription::from_toml_str(&format!(
        "[run]\nnoise_multiplier = 1.0\nsample_rate = 0.1\nsteps = 60\nsampling = \"{sampling}\"\n\
         seed = 3\n[data]\nname = \"adult\"\n[model]\nkind = \"mlp\"\nhidden = [8]\n\
         activation = \"tanh\"\n[optimizer]\n{optimizer}\n"
    ))
    .unwrap()
}

fn training(sampling: &str, optimizer: &str) -> Training {
    let description = description(sampling, optimizer);
    let run = description.run.resolve().unwrap().run;
    let split = Split { train: clouds(400), test: Some(clouds(100)) };
    Training::new(description, run, split).unwrap()
}

/// Trains, stopping after each of the given numbers of steps; the bytes of the model and the ledger.
fn carried_out(
    folder: &Path,
    sampling: &str,
    optimizer: &str,
    noise: NoiseSource,
    stops: &[u64],
) -> (Vec<u8>, Ledger) {
    for &limit in stops.iter().chain([&u64::MAX]) {
        let stop = AtomicBool::new(false);
        let taken = AtomicU64::new(0);
        let report = |event: &TrainingEvent| {
            if let TrainingEvent::Step { .. } = event
                && taken.fetch_add(1, Ordering::Relaxed) + 1 >= limit
            {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let options = TrainingOptions {
            out: folder,
            noise,
            device: &Device::cpu(),
            force: false,
            checkpoint_every: Duration::from_millis(1),
            stop: &stop,
            report: &report,
        };
        match training(sampling, optimizer).carry_out(&options).unwrap() {
            TrainingOutcome::Interrupted { done, .. } => assert!(done < 60),
            TrainingOutcome::Complete { ledger, .. } => {
                let model = std::fs::read(folder.join("model.safetensors")).unwrap();
                assert!(!folder.join("checkpoint.safetensors").exists());
                return (model, *ledger);
            }
        }
    }
    unreachable!("the last part is not interrupted")
}

#[test]
fn interrupted_trainings_end_in_the_same_bytes() {
    for optimizer in OPTIMIZERS {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let fast = NoiseSource::Fast;
        let (whole, ledger) = carried_out(folders[0].path(), "poisson", optimizer, fast, &[]);
        let (parts, again) =
            carried_out(folders[1].path(), "poisson", optimizer, fast, &[1, 20, 7]);
        assert!(whole == parts, "a resumed training must end in the same bytes");
        assert_eq!(again.sessions.len(), 4);
        assert_eq!(again.sessions[2].from_step, 21);
        let statistics = |ledger: &Ledger| serde_json::to_string(&ledger.not_private).unwrap();
        assert_eq!(statistics(&ledger), statistics(&again));
        assert_eq!(again.run.steps(), 60);
        assert!(again.not_private.test_accuracy.unwrap() > 0.9);
    }
}

#[test]
fn the_ledger_is_a_run_that_account_reads() {
    for (sampling, warned, even) in [
        ("poisson", false, false),
        ("shuffle", true, true),
        ("fixed-size", true, true),
        ("balls-and-bins", true, false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (_, ledger) =
            carried_out(folder.path(), sampling, OPTIMIZERS[0], NoiseSource::Fast, &[]);
        let text = std::fs::read_to_string(folder.path().join("ledger.json")).unwrap();
        let run = Run::from_json(&text).unwrap();
        assert_eq!(run.sampling().as_str(), sampling);
        assert_eq!((run.steps(), run.phases()[0].sample_rate), (60, 0.1));
        assert_eq!(ledger.warnings.iter().any(|w| w.contains("Poisson")), warned);
        let sizes = ledger.not_private.statistics.unwrap().batch_sizes;
        assert_eq!(sizes.smallest == sizes.largest, even, "{sizes:?}");
        assert!((sizes.mean - 40.0).abs() < 4.0, "{sizes:?}");
        assert_eq!(ledger.clipping.normalisers, [40.0]);
        // A finished training is found, not repeated; another one is not overwritten.
        let (_, found) =
            carried_out(folder.path(), sampling, OPTIMIZERS[0], NoiseSource::Fast, &[]);
        assert_eq!(found.plan, ledger.plan);
    }
}

#[test]
fn secure_training_learns_leaves_no_seed_and_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let (_, ledger) =
        carried_out(folder.path(), "poisson", OPTIMIZERS[0], NoiseSource::Secure, &[9]);
    assert!(ledger.noise.secure && ledger.noise.seed.is_none() && ledger.sampling.seed.is_none());
    assert!(ledger.not_private.test_accuracy.unwrap() > 0.85);
    let other = tempfile::tempdir().unwrap();
    let (_, again) = carried_out(other.path(), "poisson", OPTIMIZERS[0], NoiseSource::Secure, &[]);
    assert_eq!(again.plan, ledger.plan);
    // Nobody can repeat it.
    let model = |folder: &tempfile::TempDir| {
        std::fs::read(folder.path().join("model.safetensors")).unwrap()
    };
    assert_ne!(model(&folder), model(&other));
    let text = std::fs::read_to_string(folder.path().join("ledger.json")).unwrap();
    assert!(!text.contains("secret"));
}

fn recipe(run: &Run, data: &Dataset) -> Recipe {
    let model = ModelDescription::Softmax {};
    let network = Arc::new(model.network(data.shape, data.classes).unwrap());
    Recipe::new(network, OptimizerDescription::sgd(1.0), run, data, 11).unwrap()
}

fn final_parameters(recipe: Recipe, data: &Arc<Dataset>, replicas: Vec<Replica>) -> Vec<Vec<f32>> {
    let count = recipe.network.parameters;
    let steps = recipe.steps();
    let mut models = CpuReplicas::new(Arc::new(recipe), Arc::clone(data), replicas).unwrap();
    // In two parts: nothing may depend on how often one asks.
    models.advance(steps / 2).unwrap();
    models.advance(u64::MAX).unwrap();
    let mut all = Vec::new();
    models.all_parameters(&mut all).unwrap();
    all.chunks_exact(count).map(<[f32]>::to_vec).collect()
}

/// With all other gradients zero, the last iterate's coordinate is a known random walk: the start
/// minus (number of times sampled x C + sigma C sum of noise) / L.
#[test]
fn a_gradient_canary_does_what_the_mechanism_says() {
    let data = Arc::new(clouds(50));
    let run = Run::builder().phase(2.0, 0.3, 25).clip_norm(0.7).build().unwrap();
    let mut recipe = recipe(&run, &data);
    recipe.rest = Rest::Zero;
    let replica = |member| Replica {
        canaries: Arc::from([Canary::dirac(3, 0.7, member)]),
        start: Start::Fixed(Arc::from(vec![0.0; recipe.network.parameters])),
        ..Replica::new(17)
    };
    let found = final_parameters(recipe.clone(), &data, vec![replica(false), replica(true)]);
    let coins = random::Stream::new(11, random::Purpose::SAMPLING, 17);
    let noise = random::Stream::new(11, random::Purpose::NOISE, 17);
    let bernoulli = random::Bernoulli::new(0.3);
    let (mut with, mut without) = (0.0, 0.0);
    for step in 0..25 {
        let z = f64::from(noise.gaussian_f32(step, 3)) * 1.4;
        let hit = f64::from(u8::from(bernoulli.draw(&coins, step, 50))) * 0.7;
        with -= (z + hit) / 15.0;
        without -= z / 15.0;
    }
    assert!((f64::from(found[0][3]) - without).abs() < 1e-5, "{} {without}", found[0][3]);
    assert!((f64::from(found[1][3]) - with).abs() < 1e-5, "{} {with}", found[1][3]);
    // Everything else is the same noise.
    assert!(found[0].iter().zip(&found[1]).enumerate().all(|(i, (a, b))| i == 3 || a == b));
}

/// An extra record as canary is the same as a record of a larger data set, coin by coin.
#[test]
fn an_example_canary_is_one_more_record() {
    let all = clouds(41);
    let less = Arc::new(all.select(&(0..40).collect::<Vec<_>>()));
    let run = Run::builder().phase(1.0, 0.5, 12).dataset_size(40).build().unwrap();
    let canary = |member| Canary {
        injection: Injection::Example { features: Arc::from(all.row(40)), label: all.labels[40] },
        member,
    };
    let with = |member| Replica { canaries: Arc::from([canary(member)]), ..Replica::new(2) };
    let small = final_parameters(recipe(&run, &less), &less, vec![with(true), with(false)]);
    let large = recipe(&run, &all);
    let without = Replica { without: Arc::from([40u32]), ..Replica::new(2) };
    let large = final_parameters(large, &Arc::new(all), vec![Replica::new(2), without]);
    assert_eq!(small, large);
    assert_ne!(small[0], small[1]);
}

#[test]
fn planted_faults_do_what_they_say() {
    let data = Arc::new(clouds(50));
    let run = Run::builder().phase(2.0, 0.3, 40).build().unwrap();
    let with = |fault| {
        let mut recipe = recipe(&run, &data);
        (recipe.rest, recipe.fault) = (Rest::Zero, fault);
        let replica = Replica {
            canaries: Arc::from([Canary::dirac(0, 1.0, true)]),
            start: Start::Fixed(Arc::from(vec![0.0; recipe.network.parameters])),
            ..Replica::new(1)
        };
        final_parameters(recipe, &data, vec![replica]).remove(0)
    };
    let (right, half) = (with(Fault::None), with(Fault::HalfNoise));
    assert!((right[5] - 2.0 * half[5]).abs() < 1e-5);
    // The same noise and coins, but the canary counts four times.
    let loud = with(Fault::NoClipping);
    assert_eq!(loud[5], right[5]);
    assert!(loud[0] < right[0] - 1.0, "{} {}", loud[0], right[0]);
    let repeated = with(Fault::RepeatedBatch);
    let shift = (repeated[0] - right[0]).abs();
    assert!(shift > 0.1, "{shift}");
}

#[test]
fn replicas_do_not_depend_on_their_company() {
    let data = Arc::new(clouds(60));
    let run = Run::builder().phase(1.0, 0.4, 9).build().unwrap();
    let all = final_parameters(recipe(&run, &data), &data, (0..5).map(Replica::new).collect());
    let one = final_parameters(recipe(&run, &data), &data, vec![Replica::new(3)]);
    assert_eq!(all[3], one[0]);
    assert_ne!(all[2], all[3]);
}

/// P4's regulariser: with strength 1/learning rate every step forgets the model; what remains is
/// the last step's noise.
#[test]
fn the_regulariser_is_not_clipped() {
    let data = Arc::new(clouds(50));
    let run = Run::builder().phase(2.0, 0.3, 7).build().unwrap();
    let mut recipe = recipe(&run, &data);
    recipe.rest = Rest::Zero;
    recipe.optimizer = OptimizerDescription::Sgd {
        learning_rate: 0.5,
        momentum: 0.0,
        weight_decay: 0.0,
        regulariser: 2.0,
    };
    let found = final_parameters(recipe, &data, vec![Replica::new(4)]).remove(0);
    let noise = random::Stream::new(11, random::Purpose::NOISE, 4);
    for (i, value) in (0u64..).zip(&found) {
        let expected = -0.5 * 2.0 * noise.gaussian_f32(6, i) / 15.0;
        assert!((value - expected).abs() < 1e-6, "{i}: {value} {expected}");
    }
}

#[test]
fn losses_that_are_not_finite_are_errors() {
    let mut data = clouds(50);
    data.features[0] = 3e38;
    data.features[6] = -3e38;
    let data = Arc::new(data);
    let run = Run::builder().phase(1.0, 1.0, 50).sampling(Sampling::Full).build().unwrap();
    let mut recipe = recipe(&run, &data);
    recipe.optimizer = OptimizerDescription::sgd(1e30);
    let mut models =
        CpuReplicas::new(Arc::new(recipe), Arc::clone(&data), vec![Replica::new(0)]).unwrap();
    let error = models.advance(50).unwrap_err().to_string();
    assert!(error.contains("not finite"), "{error}");
}

#[test]
fn checkpoints_of_another_training_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    carried_out(folder.path(), "poisson", OPTIMIZERS[0], NoiseSource::Fast, &[]);
    let options = TrainingOptions {
        out: folder.path(),
        noise: NoiseSource::Fast,
        device: &Device::cpu(),
        force: false,
        checkpoint_every: Duration::from_secs(9),
        stop: &AtomicBool::new(false),
        report: &|_| {},
    };
    let error = training("poisson", OPTIMIZERS[1]).carry_out(&options).unwrap_err();
    assert!(error.to_string().contains("another training"), "{error}");
    std::fs::remove_file(folder.path().join("ledger.json")).unwrap();
    std::fs::write(folder.path().join("checkpoint.safetensors"), b"broken").unwrap();
    let error = training("poisson", OPTIMIZERS[1]).carry_out(&options).unwrap_err();
    assert!(error.to_string().contains("cannot be resumed from"), "{error}");
}

/// Lanes cut a batch into parts; any number of threads gives the same bits.
#[test]
fn lanes_change_rounding_only_and_threads_nothing() {
    let data = Arc::new(clouds(300));
    let run = Run::builder().phase(1.0, 0.5, 6).build().unwrap();
    let with = |lanes, threads| {
        let mut recipe = recipe(&run, &data);
        (recipe.lanes, recipe.micro_batch) = (lanes, 16);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| final_parameters(recipe, &data, vec![Replica::new(0)]).remove(0))
    };
    let four = with(4, 1);
    assert_eq!(four, with(4, 3));
    let one = with(1, 1);
    assert!(one.iter().zip(&four).all(|(a, b)| (a - b).abs() < 1e-5));
}

/// Every record is drawn with the stated probability, and independently of its neighbour.
#[test]
fn poisson_batches_are_poisson() {
    use training::sampler::{Batch, Sampler};
    let data = clouds(2000);
    let run = Run::builder().phase(1.0, 0.05, 4000).build().unwrap();
    for secure in [false, true] {
        let mut recipe = recipe(&run, &data);
        recipe.secure = secure.then(|| random::SecureKey::from_bytes([5; 32]));
        let mut sampler = Sampler::new(1, 0, data.len());
        let mut batch = Batch::default();
        let (mut total, mut squares, mut both) = (0.0, 0.0, 0.0);
        let steps = 500;
        for step in 0..steps {
            sampler.draw(&recipe, step, &mut batch);
            let size = batch.records.len() as f64;
            total += size;
            squares += size * size;
            both += batch.records.windows(2).filter(|pair| pair[1] == pair[0] + 1).count() as f64;
        }
        let n = steps as f64;
        let mean = total / n;
        // Binomial(2000, 0.05): mean 100, variance 95.
        assert!((mean - 100.0).abs() < 5.0 * (95.0 / n).sqrt(), "{mean}");
        let variance = squares / n - mean * mean;
        assert!((variance / 95.0 - 1.0).abs() < 5.0 * (2.0 / n).sqrt(), "{variance}");
        // Neighbours together with probability q^2.
        let expected = n * 1999.0 * 0.0025;
        assert!((both - expected).abs() < 6.0 * expected.sqrt(), "{both} {expected}");
    }
}
