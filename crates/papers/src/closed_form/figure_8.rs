//! Figure 8: what the attribute bound costs on top of a training.

use super::trained::Setting;
use super::{PAPER, exact};
use crate::{Context, Entry, PaperError, Reproduction, Table};
use accounting::bayes_security::{closed_form_mu, security_of_mu};
use attacks::attribute::{Attribute, Probe};
use serde_json::json;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use training::sampler::{Batch, Sampler};
use training::{CpuReplicas, Replica, Replicas};
use vocabulary::figure::{Axis, Figure, Rung, Series};

pub(super) const ENTRY: Entry = Entry {
    id: "p1-figure-8",
    paper: PAPER,
    title: "Figure 8: the cost of the attribute bound",
    shows: "Ten epochs of Adult on a GPU: the closed form for membership costs nothing beside DP-SGD, the attribute bound makes training slower, from approximate diameters less than from full ones.",
    seconds: 60,
    compute,
};

/// Steps timed in a round, rounds, and the steps of ten epochs.
const STEPS: u64 = 4;
const ROUNDS: u64 = 7;

fn compute(context: &Context<'_>) -> Result<Reproduction, PaperError> {
    // Learning rate .15, clip norm 1, sigma 1, ten epochs.
    let setting = Setting {
        noise: 1.0,
        clip_norm: 1.0,
        learning_rate: 0.15,
        adaptive: false,
        epochs: 10,
        ..Setting::adult()?
    };
    let (recipe, train, _) = setting.recipe(context.seed)?;
    let probe =
        |attribute: Attribute| Probe::new(attribute, Arc::clone(&recipe.network), recipe.clip_norm);
    let every = probe(setting.attribute.clone());
    let values = &setting.attribute.values;
    let ends = vec![values[0].clone(), values[values.len() - 1].clone()];
    let ends = probe(Attribute::new("age", ends)?);
    let failed = |error: training::TrainingError| PaperError::Attribute(error.into());
    let mut training =
        CpuReplicas::new(Arc::clone(&recipe), Arc::clone(&train), vec![Replica::new(0)])
            .map_err(failed)?;
    let mut sampler = Sampler::new(recipe.seed, 0, train.len());
    let mut batch = Batch::default();
    let names = [
        "DP-SGD alone",
        "membership, closed form",
        "membership, exact",
        "attribute, the two ends of the range",
        "attribute, worst of the batch",
        "attribute, every record, all pairs and centroid",
    ];
    let mut rounds: Vec<[f64; 6]> = Vec::new();
    let mut step = 0;
    // One thread: the times are of work, not of cores.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let pool = pool.map_err(|error| PaperError::Unusable(error.to_string()))?;
    for _ in 0..ROUNDS {
        let mut times = [0.0; 6];
        for _ in 0..STEPS {
            context.go_on()?;
            sampler.draw(&recipe, step, &mut batch);
            let parameters = training.parameters(0).to_vec();
            let scale = recipe.noise_deviation(step);
            let mut looks: [Box<dyn FnMut() -> Result<(), PaperError> + Send>; 3] = [
                Box::new(|| {
                    black_box(ends.worst(&parameters, &train, &batch.records, scale)?);
                    Ok(())
                }),
                Box::new(|| {
                    black_box(every.worst(&parameters, &train, &batch.records, scale)?);
                    Ok(())
                }),
                Box::new(|| {
                    black_box(every.look(&parameters, &train, &batch.records, scale)?);
                    Ok(())
                }),
            ];
            for (time, look) in times[3..].iter_mut().zip(&mut looks) {
                let start = Instant::now();
                pool.install(look)?;
                *time += start.elapsed().as_secs_f64();
            }
            let start = Instant::now();
            pool.install(|| training.advance(1)).map_err(failed)?;
            times[0] += start.elapsed().as_secs_f64();
            step += 1;
        }
        // The numbers about membership are asked for once an epoch.
        let run = setting.run(1)?;
        let start = Instant::now();
        black_box(security_of_mu(closed_form_mu(black_box(&run))?));
        times[1] = start.elapsed().as_secs_f64();
        let start = Instant::now();
        black_box(exact(black_box(&run))?);
        times[2] = start.elapsed().as_secs_f64();
        rounds.push(times);
    }
    let median = |index: usize| {
        let mut all: Vec<f64> = rounds.iter().map(|times| times[index]).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let ten = 10.0 * setting.epoch() as f64 / STEPS as f64;
    let seconds: Vec<f64> = (0..6)
        .map(|index| match index {
            0 => ten * median(0),
            1 | 2 => 10.0 * median(index),
            _ => ten * median(index),
        })
        .collect();
    let mut table =
        Table::new("seconds", &["what", "seconds_for_ten_epochs", "relative_to_training"]);
    for (name, value) in names.iter().zip(&seconds) {
        table.push(vec![json!(name), json!(value), json!(value / seconds[0])]);
    }
    let rungs = seconds.iter().enumerate().map(|(index, value)| Rung::exactly(index, *value));
    let figure = Figure::new(
        "The attribute bound costs dozens of trainings, those for membership nothing",
        "Seconds for ten epochs of Adult beside DP-SGD itself, one thread, median of rounds scaled up.",
    )
    .subtitle("74 ages, batches of 256, 108-128-2 network")
    .x(Axis::log("seconds for ten epochs"))
    .y(Axis::category("", names))
    .with(Series::ladder("seconds", rungs));
    Ok(Reproduction {
        parameters: json!({"values": values.len(), "batch": setting.batch, "steps_timed": STEPS * ROUNDS}),
        we_get: format!(
            "Ten epochs of DP-SGD take {:.2} s on one thread; the attribute bound of the sampled batches adds {:.1} times that, {:.1} times with full and approximate diameters of every record, {:.2} times with the two ends of the range alone; the closed form for membership adds {:.1e} s and the exact value {:.1e} s.",
            seconds[0],
            seconds[4] / seconds[0],
            seconds[5] / seconds[0],
            seconds[3] / seconds[0],
            seconds[1],
            seconds[2]
        ),
        differs: "The paper makes every gradient of every value and compares them on a GPU, so approximate diameters are the cheaper ones there. Here inner products of gradients come from inputs and output gradients of the layers, no gradient is made, and all pairs cost what the centroid costs; records that cannot be the worst of a batch are not compared at all. Times of this machine, which differ from run to run.".to_owned(),
        tables: vec![table],
        figures: vec![("seconds".to_owned(), figure)],
    })
}
