//! The attribute bound and the attribute game on a data set small enough to see through.

use accounting::bayes_security::attribute::{Candidates, Mode};
use attacks::attribute::{
    Accuracy, Attribute, AttributeGame, Collector, Diameter, Observe, Probe, Value, accuracy_bound,
    follow, read_csv, write_csv,
};
use experiments::{Outcome, Settings, Shard, Silent};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use training::cpu::Executor;
use training::data::{Dataset, Provenance, Shape};
use training::model::ModelDescription;
use training::{OptimizerDescription, Recipe, Replica};
use vocabulary::{Run, Sampling};

static NEVER: AtomicBool = AtomicBool::new(false);

/// 40 records of 3 numbers in 2 classes.
fn data() -> Arc<Dataset> {
    let features = (0..120).map(|i| ((i * 37 % 101) as f32 / 50.0) - 1.0).collect();
    Arc::new(Dataset {
        features,
        labels: (0..40).map(|i| i % 2).collect(),
        classes: 2,
        shape: Shape::Flat(3),
        columns: ["a", "b", "c"].map(String::from).to_vec(),
        provenance: Provenance::default(),
    })
}

fn attribute(values: &[f32]) -> Attribute {
    let value = |x: &f32| Value { name: x.to_string(), features: vec![(1, *x)] };
    Attribute::new("b", values.iter().map(value).collect()).unwrap()
}

fn run(sigma: f64, rate: f64, steps: u64) -> Run {
    let sampling = if rate < 1.0 { Sampling::Poisson } else { Sampling::Full };
    Run::builder().phase(sigma, rate, steps).sampling(sampling).clip_norm(0.5).build().unwrap()
}

fn recipe(run: &Run, model: &str, data: &Dataset) -> Arc<Recipe> {
    let model: ModelDescription = toml::from_str(model).unwrap();
    let network = Arc::new(model.network(data.shape, data.classes).unwrap());
    let optimizer: OptimizerDescription =
        toml::from_str("kind = \"sgd\"\nlearning_rate = 0.5").unwrap();
    Arc::new(Recipe::new(network, optimizer, run, data, 11).unwrap())
}

const MLP: &str = "kind = \"mlp\"\nhidden = [6]\nactivation = \"tanh\"";
const SOFTMAX: &str = "kind = \"softmax\"";

/// Every mode against gradients that are made, clipped and compared one by one.
#[test]
fn sensitivities_are_distances_of_clipped_gradients() {
    let (data, values) = (data(), [-2.0, 0.1, 1.5]);
    let run = run(1.0, 0.2, 12);
    let recipe = recipe(&run, MLP, &data);
    let probe = Probe::new(attribute(&values), Arc::clone(&recipe.network), recipe.clip_norm);
    let all: Vec<u32> = (0..40).collect();
    let mut collectors = [
        Collector::new(Mode::Batch, Diameter::Full, Vec::new()),
        Collector::new(Mode::Dataset, Diameter::Full, all.clone()),
        Collector::new(Mode::Record, Diameter::Full, vec![3, 8]),
        Collector::new(Mode::Dataset, Diameter::Approximate, all),
    ];
    let mut expected: [Vec<f64>; 3] = Default::default();
    let mut executor = Executor::new(Arc::clone(&recipe.network), 1);
    follow(&recipe, &data, Replica::new(0), &NEVER, |moment| {
        if moment.step == recipe.steps() {
            return Ok(());
        }
        for collector in &mut collectors {
            collector.add(&probe, &recipe, &data, moment)?;
        }
        let mut distance = |record: u32| {
            let record = record as usize;
            let gradients: Vec<Vec<f32>> = values
                .iter()
                .map(|value| {
                    let mut row = data.row(record).to_vec();
                    row[1] = *value;
                    let mut gradient = vec![0.0; recipe.network.parameters];
                    executor.prepare(moment.parameters);
                    let label = data.labels[record];
                    executor.clipped_gradient(moment.parameters, &row, label, 1e9, &mut gradient);
                    gradient
                })
                .collect();
            let gradients: Vec<&[f32]> = gradients.iter().map(Vec::as_slice).collect();
            Candidates::clipped(&gradients, recipe.clip_norm).farthest().unwrap().distance()
        };
        let batch = moment.batch.iter().map(|record| distance(*record)).fold(0.0, f64::max);
        expected[0].push(batch);
        expected[1].push((0..40).map(&mut distance).fold(0.0, f64::max));
        expected[2].push(distance(8));
        Ok(())
    })
    .unwrap();
    let found = |collector: &Collector, entry: usize| -> Vec<f64> {
        let rows = &collector.rows()[entry].1;
        let steps = rows.chunk_by(|a, b| a.step == b.step);
        steps.map(|rows| rows.iter().map(|row| row.sensitivity).fold(0.0, f64::max)).collect()
    };
    // Distances of f32 gradients: squares carry a few 2^-23 of C^2.
    let close = |found: &[f64], expected: &[f64]| {
        assert_eq!(found.len(), 12);
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
    };
    close(&found(&collectors[0], 0), &expected[0]);
    close(&found(&collectors[1], 0), &expected[1]);
    close(&found(&collectors[2], 1), &expected[2]);
    for (rough, full) in found(&collectors[3], 0).iter().zip(&expected[1]) {
        assert!(*rough >= full - 1e-5 && *rough <= 2.0 * full + 1e-5);
    }
    // The file says the same as the rows.
    for collector in &collectors {
        let mode = collector.sensitivities().unwrap().mode();
        let read = read_csv(&write_csv(collector.rows()), mode).unwrap();
        assert_eq!(
            read.security(&run).unwrap(),
            collector.sensitivities().unwrap().security(&run).unwrap()
        );
    }
    // A batch is part of the data set; one record is no worse than the worst.
    let security = |i: usize| collectors[i].sensitivities().unwrap().security(&run).unwrap();
    assert!(security(0).central_limit >= security(1).central_limit);
    assert!(security(2).central_limit >= security(1).central_limit);
    assert!(security(3).central_limit <= security(1).central_limit);
}

fn played(game: &AttributeGame) -> Accuracy {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("scores.csv");
    let settings =
        Settings { threads: 2, shard: Shard::ALL, force: false, reporter: &Silent, stop: &NEVER };
    assert!(matches!(experiments::run(game, &out, &settings).unwrap(), Outcome::Complete { .. }));
    Accuracy::of_table(&std::fs::read_to_string(out).unwrap(), 0.999).unwrap()
}

/// Bayes security of a record between two values, along one training.
fn security(recipe: &Arc<Recipe>, data: &Arc<Dataset>, run: &Run, values: &[f32]) -> [f64; 2] {
    let probe = Probe::new(attribute(values), Arc::clone(&recipe.network), recipe.clip_norm);
    let mut collector = Collector::new(Mode::Record, Diameter::Full, vec![5]);
    follow(recipe, data, Replica::new(0), &NEVER, |moment| match moment.batch {
        _ if moment.step == recipe.steps() => Ok(()),
        _ => collector.add(&probe, recipe, data, moment),
    })
    .unwrap();
    let found = collector.sensitivities().unwrap().security(run).unwrap();
    [found.closed_form, found.certified]
}

/// In full batches the channel is Gaussian: the best attacker's accuracy is known from R, and he
/// reaches it. The sensitivities of a nearly linear model change little from training to training.
#[test]
fn the_best_attacker_reaches_the_bound_in_full_batches() {
    let (data, values) = (data(), [-2.0, 2.0]);
    let run = run(2.0, 1.0, 12);
    let recipe = recipe(&run, SOFTMAX, &data);
    let [closed_form, certified] = security(&recipe, &data, &run, &values);
    let game = |observe| {
        let (recipe, data) = (Arc::clone(&recipe), Arc::clone(&data));
        AttributeGame::about_attribute(recipe, data, &attribute(&values), 5, &[0, 1], observe, 1500)
            .unwrap()
    };
    let all = played(&game(Observe::All));
    let bound = accuracy_bound(closed_form, 2);
    assert!(bound > 0.7 && bound < 0.95, "{bound}");
    // 3,000 guesses: standard deviation below .01.
    assert!((all.value - bound).abs() < 0.03, "{all:?} {bound}");
    assert!(all.lower <= accuracy_bound(certified, 2));
    // Who sees the last model only knows less; he must not beat the bound.
    let last = played(&game(Observe::Last));
    assert!(last.lower <= bound && last.value <= all.value + 0.02, "{last:?}");
}

/// With sampled batches the certified form holds for the pair, and the attacker learns something.
#[test]
fn the_bound_holds_for_sampled_batches_and_many_candidates() {
    let data = data();
    let run = run(0.8, 0.25, 20);
    let recipe = recipe(&run, SOFTMAX, &data);
    let values = [-2.0, 0.0, 2.0];
    let [_, certified] = security(&recipe, &data, &run, &values);
    let game = AttributeGame::about_attribute(
        Arc::clone(&recipe),
        Arc::clone(&data),
        &attribute(&values),
        5,
        &[0, 1, 2],
        Observe::All,
        500,
    )
    .unwrap();
    let found = played(&game);
    assert_eq!(found.guesses, 1500);
    assert!(found.lower > 1.0 / 3.0, "{found:?}");
    assert!(found.lower <= accuracy_bound(certified, 3), "{found:?} {certified}");
    let records =
        AttributeGame::about_records(recipe, data, &[5, 6, 7, 8], Observe::All, 100).unwrap();
    assert!(played(&records).lower > 0.25);
}

#[test]
fn games_that_make_no_sense_are_refused() {
    let data = data();
    let (sampled, values) = (run(1.0, 0.2, 3), attribute(&[0.0, 1.0]));
    let recipe = recipe(&sampled, SOFTMAX, &data);
    let about = |record: u32, chosen: &[usize]| {
        let (recipe, data) = (Arc::clone(&recipe), Arc::clone(&data));
        AttributeGame::about_attribute(recipe, data, &values, record, chosen, Observe::Last, 1)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    assert!(about(40, &[0, 1]).contains("records are 0 to 39"));
    assert!(about(0, &[1]).contains("at least two"));
    assert!(about(0, &[1, 1]).contains("twice"));
}
