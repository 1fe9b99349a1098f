//! Figure 8: what the attribute bound costs on top of a training.

use super::trained::Setting;
use super::{PAPER, exact};
use crate::{Context, Entry, PaperError, PaperTable, Reproduction};
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
    id: "closed-form-figure-8",
    paper: PAPER,
    title: "Figure 8: the cost of the attribute bound",
    shows: "Ten epochs of Adult on a GPU: the closed form for membership costs nothing beside DP-SGD, the attribute bound makes training slower, from approximate diameters less than from full ones.",
    seconds: 60,
    compute,
};

/// Rounds, and steps of the training in each of them: ten epochs in all.
const ROUNDS: u64 = 28;
const STEPS: u64 = 36;
/// How often each look is taken in a round: the first is short.
const OFTEN: [u32; 3] = [40, 1, 1];

/// Seconds that this thread has run, which other programs do not change; where the system does not
/// say (other than Linux), seconds of the clock.
fn thread_seconds(began: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds: Option<f64> = text.split(' ').next().and_then(|word| word.parse().ok());
    nanoseconds.map_or_else(|| began.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}

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
    let began = Instant::now();
    let mut step = 0;
    // One thread: the times are of work, not of cores.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let pool = pool.map_err(|error| PaperError::Unusable(error.to_string()))?;
    for _ in 0..ROUNDS {
        context.go_on()?;
        let mut times = [0.0; 6];
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
        // To the size that a batch has on average.
        let share = setting.batch as f64 / batch.records.len().max(1) as f64;
        for ((time, look), often) in times[3..].iter_mut().zip(&mut looks).zip(OFTEN) {
            let taken = pool.install(|| -> Result<f64, PaperError> {
                let start = thread_seconds(began);
                for _ in 0..often {
                    look()?;
                }
                Ok((thread_seconds(began) - start) / f64::from(often))
            })?;
            *time = share * taken;
        }
        let trained = pool.install(|| {
            let start = thread_seconds(began);
            training.advance(STEPS).map(|()| thread_seconds(began) - start)
        });
        times[0] = trained.map_err(failed)? / STEPS as f64;
        step += STEPS;
        // The numbers about membership are asked for once per epoch.
        let run = setting.run(1)?;
        let start = Instant::now();
        black_box(security_of_mu(closed_form_mu(black_box(&run))?));
        times[1] = start.elapsed().as_secs_f64();
        let start = Instant::now();
        black_box(exact(black_box(&run))?);
        times[2] = start.elapsed().as_secs_f64();
        rounds.push(times);
    }
    // The system counts a thread's time in pieces of milliseconds: means over the rounds. The
    // numbers about membership take less than that: the lower quartile of the clock.
    let usual = |index: usize| {
        let mut all: Vec<f64> = rounds.iter().map(|times| times[index]).collect();
        all.sort_by(f64::total_cmp);
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        if index == 1 || index == 2 { all[all.len() / 4] } else { mean }
    };
    let steps = 10.0 * setting.epoch() as f64;
    let often = |index: usize| if index == 1 || index == 2 { 10.0 } else { steps };
    let seconds: Vec<f64> = (0..6).map(|index| often(index) * usual(index)).collect();
    let mut table =
        PaperTable::new("seconds", &["what", "seconds_for_ten_epochs", "relative_to_training"]);
    for (name, value) in names.iter().zip(&seconds) {
        table.push((name, value, value / seconds[0]));
    }
    let rungs = seconds.iter().enumerate().map(|(index, value)| Rung::exactly(index, *value));
    let figure = Figure::new(
        format!(
            "The attribute bound costs {:.0} trainings, those for membership nothing",
            seconds[4] / seconds[0]
        ),
        "Seconds for ten epochs of Adult beside DP-SGD itself, time of one thread, mean of 28 rounds scaled up.",
    )
    .subtitle("74 ages, batches of 256, 108-128-2 network")
    .x(Axis::log("seconds for ten epochs"))
    .y(Axis::category("", names))
    .with(Series::ladder("seconds", rungs));
    Ok(Reproduction {
        parameters: json!({"values": values.len(), "batch": setting.batch, "rounds": ROUNDS, "training_steps_a_round": STEPS}),
        we_get: format!(
            "Ten epochs of DP-SGD take {:.2} s on one thread; the attribute bound of the sampled batches adds {:.1} times that, {:.1} times with full and approximate diameters of every record, {:.2} times with the two ends of the range alone; the closed form for membership adds {:.1e} s and the exact value {:.1e} s.",
            seconds[0],
            seconds[4] / seconds[0],
            seconds[5] / seconds[0],
            seconds[3] / seconds[0],
            seconds[1],
            seconds[2]
        ),
        differs: "The paper makes every gradient of every value and compares them on a GPU, so approximate diameters are the cheaper ones there. Here inner products of gradients come from inputs and output gradients of the layers, no gradient is made, and all pairs cost what the centroid costs; records that cannot be the worst of a batch are not compared at all. Seconds of one processor of this machine.".to_owned(),
        tables: vec![table],
        figures: vec![("seconds".to_owned(), figure)],
    })
}
