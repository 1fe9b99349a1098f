//! The paper's trainings: a small network by DP-Adam, with the sensitivity of every batch to an
//! attribute. One trial is one seed; a row is one epoch.

use crate::{Context, PaperError};
use accounting::bayes_security::attribute::{AttributeSecurity, Mode};
use attacks::attribute::{
    Attribute, AttributeError, Collector, Diameter, Moment, Probe, Value, follow,
};
use experiments::{Experiment, Plan};
use formats::csv::CsvTable;
use random::{Purpose, Stream};
use serde_json::json;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use training::data::{DataSource, Dataset, adult};
use training::model::ModelDescription;
use training::{Device, OptimizerDescription, Recipe, Replica, TrainingError, accuracy};
use vocabulary::{Adjacency, Phase, Run};

/// How a data set is trained on.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) noise: f64,
    pub(super) clip_norm: f64,
    pub(super) batch: usize,
    pub(super) learning_rate: f64,
    pub(super) adaptive: bool,
    /// Share of the records that is trained on; the others are for the accuracy.
    pub(super) share: f64,
    pub(super) delta: f64,
    pub(super) epochs: u64,
    pub(super) all: Arc<Dataset>,
    pub(super) attribute: Attribute,
}

impl Setting {
    /// Adult as in the paper's section 6.
    pub(super) fn adult() -> Result<Self, PaperError> {
        let all = adult::load().map_err(|error| PaperError::Unusable(error.to_string()))?.train;
        let attribute = Attribute::of_column(&DataSource::adult(), &all, "age", None)?;
        Ok(Self {
            name: "adult",
            noise: 3.51,
            clip_norm: 2.0,
            batch: 256,
            learning_rate: 1e-4,
            adaptive: true,
            share: 0.8,
            delta: 3.8e-6,
            epochs: 30,
            all: Arc::new(all),
            attribute,
        })
    }

    /// Location in place of Purchase-100, which nobody may pass on: binary features and many classes
    /// as well, of 5,010 records in place of 197,324. Its noise follows the paper's rule, Bayes
    /// security .9 by the closed form after 20 epochs.
    pub(super) fn location(context: &Context<'_>) -> Result<Option<Self>, PaperError> {
        let Some(folder) = context.data else { return Ok(None) };
        let inside = folder.join("location").join("bangkok");
        let path = if inside.exists() { inside } else { folder.join("bangkok") };
        let source =
            DataSource { name: Some("location".into()), path: Some(path), ..DataSource::default() };
        let all = source.load(std::path::Path::new(""));
        let all = all.map_err(|error| PaperError::Unusable(error.to_string()))?.train;
        let value = |x: f32| Value { name: x.to_string(), features: vec![(0, x)] };
        Ok(Some(Self {
            name: "location",
            noise: 5.93,
            clip_norm: 2.6,
            batch: 128,
            learning_rate: 1e-3,
            adaptive: true,
            share: 0.9,
            delta: 2.2e-5,
            epochs: 30,
            all: Arc::new(all),
            attribute: Attribute::new("feature 0", vec![value(0.0), value(1.0)])?,
        }))
    }

    fn records(&self) -> usize {
        (self.share * self.all.len() as f64) as usize
    }

    /// Steps of an epoch: as many as there are batches.
    pub(super) fn epoch(&self) -> u64 {
        self.records().div_ceil(self.batch) as u64
    }

    pub(super) fn run(&self, epochs: u64) -> Result<Run, PaperError> {
        let rate = 1.0 / self.epoch() as f64;
        let run = Run::builder().phase(self.noise, rate, epochs * self.epoch());
        Ok(run.adjacency(Adjacency::Substitute).clip_norm(self.clip_norm).build()?)
    }

    /// Records to train on and to measure with, drawn by a seed.
    fn split(&self, seed: u64) -> (Dataset, Dataset) {
        let stream = Stream::new(seed, Purpose::SHUFFLE, 0);
        let mut keys: Vec<(u64, usize)> =
            (0..self.all.len()).map(|row| (stream.word(0, row as u64), row)).collect();
        keys.sort_unstable();
        let rows: Vec<usize> = keys.into_iter().map(|(_, row)| row).collect();
        let (train, test) = rows.split_at(self.records());
        (self.all.select(train), self.all.select(test))
    }

    /// The recipe of a seed, and its records.
    pub(super) fn recipe(
        &self,
        seed: u64,
    ) -> Result<(Arc<Recipe>, Arc<Dataset>, Dataset), PaperError> {
        let (train, test) = self.split(seed);
        let model: ModelDescription =
            serde_json::from_value(json!({"kind": "mlp", "hidden": [128], "activation": "tanh"}))
                .map_err(|error| PaperError::Unusable(error.to_string()))?;
        let kind = if self.adaptive { "adam" } else { "sgd" };
        let optimizer: OptimizerDescription =
            serde_json::from_value(json!({"kind": kind, "learning_rate": self.learning_rate}))
                .map_err(|error| PaperError::Unusable(error.to_string()))?;
        let attack = |error: TrainingError| PaperError::Attribute(error.into());
        let network = model.network(train.shape, train.classes).map_err(attack)?;
        let run = self.run(self.epochs)?;
        let recipe =
            Recipe::new(Arc::new(network), optimizer, &run, &train, seed).map_err(attack)?;
        Ok((Arc::new(recipe), Arc::new(train), test))
    }
}

/// Trains with several seeds.
pub(super) struct Trained {
    plan: Plan,
    setting: Setting,
}

/// One epoch of one seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch {
    pub(super) epoch: u64,
    pub(super) accuracy: f64,
    /// Bayes security of the attribute from full diameters: closed form, central limit, certified.
    pub(super) full: [f64; 3],
    pub(super) approximate: [f64; 3],
}

const HEADER: &str = "seed,epoch,test_accuracy,full_closed_form,full_central_limit,full_certified,\
                      approximate_closed_form,approximate_central_limit,approximate_certified";

impl Trained {
    pub(super) fn new(setting: Setting, seed: u64, seeds: u64) -> Self {
        let parameters = json!({
            "data": setting.name,
            "noise_multiplier": setting.noise,
            "clip_norm": setting.clip_norm,
            "batch_size": setting.batch,
            "learning_rate": setting.learning_rate,
            "share": setting.share,
            "epochs": setting.epochs,
            "model": "mlp 128 tanh, adam",
            "attribute": setting.attribute.name,
            "values": setting.attribute.values.len(),
            "mode": "batch",
            "instructions": Device::cpu().record.instructions,
        });
        let plan = Plan::new("paper 1 trainings", parameters, seed, HEADER, 1, seeds);
        Self { plan, setting }
    }

    /// Trains, or finds it done, and reads the table.
    pub(super) fn epochs(&self, context: &Context<'_>) -> Result<Vec<Epoch>, PaperError> {
        let path = context.carry_out(self.setting.name, &Stoppable(self, context.stop))?;
        let text = std::fs::read_to_string(&path)
            .map_err(|source| PaperError::Write { path: path.clone(), source })?;
        let bad =
            || PaperError::Unusable(format!("{} is not a table of trainings", path.display()));
        let table = CsvTable::read(&text).map_err(|_| bad())?;
        table
            .rows()
            .map(|(_, cells)| {
                let cells: Option<Vec<f64>> = cells.iter().map(|cell| cell.parse().ok()).collect();
                match cells.as_deref() {
                    Some(&[_, epoch, accuracy, a, b, c, d, e, f]) => Ok(Epoch {
                        epoch: epoch as u64,
                        accuracy,
                        full: [a, b, c],
                        approximate: [d, e, f],
                    }),
                    _ => Err(bad()),
                }
            })
            .collect()
    }

    fn train(&self, seed: u64, stop: &AtomicBool, table: &mut String) -> Result<(), PaperError> {
        let setting = &self.setting;
        let (recipe, train, test) = setting.recipe(seed)?;
        let network = Arc::clone(&recipe.network);
        let probe = Probe::new(setting.attribute.clone(), Arc::clone(&network), recipe.clip_norm);
        let mut full = Collector::new(Mode::Batch, Diameter::Full, Vec::new());
        let mut rough = Collector::new(Mode::Batch, Diameter::Approximate, Vec::new());
        let each = |moment: &Moment<'_>| -> Result<(), AttributeError> {
            let steps = setting.epoch();
            if moment.step > 0 && moment.step.is_multiple_of(steps) {
                let epoch = moment.step / steps;
                let phase = Phase { steps: moment.step, ..recipe.phase(0) };
                let run = setting.run(epoch).and_then(|run| Ok(run.with_phases(vec![phase])?));
                let run = run.map_err(|error| AttributeError::Invalid(error.to_string()))?;
                let numbers = |found: AttributeSecurity| {
                    [found.closed_form, found.central_limit, found.certified]
                };
                let accuracy = accuracy(&network, moment.parameters, &test);
                let [a, b, c] = numbers(full.sensitivities()?.security(&run)?);
                let [d, e, f] = numbers(rough.sensitivities()?.security(&run)?);
                formats::csv::row(table, &[&seed, &epoch, &accuracy, &a, &b, &c, &d, &e, &f]);
            }
            if moment.step < recipe.steps() {
                let scale = recipe.noise_deviation(moment.step);
                let worst = probe.worst(moment.parameters, &train, moment.batch, scale)?;
                full.add_spreads(moment.step, scale, &[worst]);
                rough.add_spreads(moment.step, scale, &[worst]);
            }
            Ok(())
        };
        follow(&recipe, &train, Replica::new(0), stop, each)?;
        Ok(())
    }
}

/// Trainings that Ctrl-C breaks off: one of them takes minutes.
struct Stoppable<'a>(&'a Trained, &'a AtomicBool);

impl Experiment for Stoppable<'_> {
    fn plan(&self) -> &Plan {
        &self.0.plan
    }

    fn rows(&self, trials: Range<u64>, table: &mut String) -> Result<(), String> {
        for trial in trials {
            let seed = self.0.plan.seed + trial;
            self.0.train(seed, self.1, table).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// Mean and deviation over seeds of something of an epoch.
pub(super) fn over_seeds(
    epochs: &[Epoch],
    epoch: u64,
    value: impl Fn(&Epoch) -> f64,
) -> (f64, f64) {
    let values: Vec<f64> = epochs.iter().filter(|row| row.epoch == epoch).map(value).collect();
    crate::tools::mean_and_deviation(&values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use accounting::bayes_security::{closed_form_mu, security_of_mu};
    use experiments::Silent;

    /// A short training: the attribute leaks less than membership could, the centroid says less
    /// than all pairs, and the certified form is below both.
    #[test]
    fn epochs_are_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(false);
        let context = Context {
            folder: folder.path(),
            threads: 1,
            trials: None,
            seed: 0,
            data: None,
            reporter: &Silent,
            stop: &stop,
        };
        let setting = Setting { share: 0.03, epochs: 2, batch: 200, ..Setting::adult().unwrap() };
        assert_eq!(setting.epoch(), 5);
        let membership = security_of_mu(closed_form_mu(&setting.run(2).unwrap()).unwrap());
        let found = Trained::new(setting, 7, 2).epochs(&context).unwrap();
        assert_eq!(found.len(), 4);
        for row in &found {
            assert!(row.accuracy > 0.2 && row.accuracy < 0.9, "{row:?}");
            assert!(row.full[0] > membership && row.full[0] < 1.0, "{row:?} {membership}");
            for form in 0..3 {
                assert!(row.approximate[form] <= row.full[form] + 1e-12, "{row:?}");
            }
            assert!(row.full[2] < row.full[1] && row.full[1] < row.full[0], "{row:?}");
        }
        assert!(found[1].full[0] < found[0].full[0]);
    }
}
