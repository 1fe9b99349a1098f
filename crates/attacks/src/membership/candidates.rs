//! The canaries themselves.

use super::conditions::{CanaryKind, Coordinate, InputCanary};
use super::quiet::{quiet_coordinates, quiet_directions};
use super::target::Target;
use crate::AttackError;
use random::{Purpose, Stream};
use std::sync::Arc;
use training::data::{Dataset, Provenance};
use training::{CpuReplicas, Injection, Replica, Replicas, Schedule, Start};

/// What may be inserted, and records that give their place to it.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    pub(super) injections: Vec<Injection>,
    /// Records of the training that no replica has, because a canary was made of them.
    pub(super) without: Arc<[u32]>,
}

/// Makes `count` different canaries of a kind. `opposed`: gradients come in pairs of opposite
/// sign, the two furthest apart.
pub(super) fn candidates(
    target: &Target,
    kind: CanaryKind,
    start: &Start,
    count: usize,
    opposed: bool,
) -> Result<Candidates, AttackError> {
    let too_many = |most: usize, what: &str| {
        if count <= most {
            return Ok(());
        }
        let reason = format!("there are only {most} {what}");
        Err(AttackError::TooManyCanaries { asked: count, reason })
    };
    match kind {
        CanaryKind::Gradient { coordinate, every } => {
            if every == 0 {
                return Err(AttackError::Every);
            }
            let places = if opposed { count.div_ceil(2) } else { count };
            let parameters = target.recipe.network.parameters;
            too_many(if opposed { 2 * parameters } else { parameters }, "coordinates")?;
            let coordinates = coordinates(target, coordinate, start, places)?;
            let schedule = schedule(target.recipe.steps(), every);
            let clip_norm = target.recipe.clip_norm as f32;
            let injections = (0..count).map(|number| {
                let (place, sign) = if opposed {
                    (number / 2, 1.0 - 2.0 * (number % 2) as f32)
                } else {
                    (number, 1.0)
                };
                let entries = Arc::from([(coordinates[place], sign * clip_norm)]);
                Injection::Gradient { entries, schedule: schedule.clone() }
            });
            Ok(Candidates { injections: injections.collect(), without: Arc::from([]) })
        }
        CanaryKind::Input(kind @ (InputCanary::Mislabelled | InputCanary::Natural)) => {
            let (source, from_training) = match &target.held_out {
                Some(held_out) => (held_out, false),
                None => (&target.data, true),
            };
            too_many(source.len(), "records to make them of")?;
            let stream = Stream::new(target.recipe.seed, Purpose::SHUFFLE, u64::MAX);
            let chosen = &order(&stream, 1, source.len())[..count];
            let injections = chosen.iter().map(|&record| {
                let (own, classes) = (source.labels[record as usize], source.classes as u32);
                let label = match kind {
                    InputCanary::Natural => own,
                    _ => {
                        (own + 1 + (stream.word(2, record.into()) % u64::from(classes - 1)) as u32)
                            % classes
                    }
                };
                example(source.row(record as usize), label)
            });
            let injections = injections.collect();
            let mut without: Vec<u32> = if from_training { chosen.to_vec() } else { Vec::new() };
            without.sort_unstable();
            Ok(Candidates { injections, without: without.into() })
        }
        CanaryKind::Input(InputCanary::Blank) => {
            too_many(target.data.classes, "classes, and blank records differ by their class")?;
            let blank = vec![0.0; target.data.shape.len()];
            let labels = least_likely(target, start, &blank)?;
            let injections = labels[..count].iter().map(|label| example(&blank, *label)).collect();
            Ok(Candidates { injections, without: Arc::from([]) })
        }
        CanaryKind::Input(InputCanary::ClipBkd) => {
            too_many(target.data.shape.len(), "features, so only as many directions")?;
            let norm = mean_norm(&target.data);
            let mut injections = Vec::with_capacity(count);
            for direction in quiet_directions(&target.data, count, target.recipe.seed) {
                let features: Vec<f32> = direction.iter().map(|x| (x * norm) as f32).collect();
                let label = least_likely(target, start, &features)?[0];
                injections.push(example(&features, label));
            }
            Ok(Candidates { injections, without: Arc::from([]) })
        }
    }
}

fn example(features: &[f32], label: u32) -> Injection {
    Injection::Example { features: features.into(), label }
}

fn coordinates(
    target: &Target,
    coordinate: Coordinate,
    start: &Start,
    count: usize,
) -> Result<Vec<u32>, AttackError> {
    let parameters = target.recipe.network.parameters;
    let stream = Stream::new(target.recipe.seed, Purpose::SHUFFLE, u64::MAX);
    let mut order = order(&stream, 0, parameters);
    match coordinate {
        Coordinate::Random => {}
        Coordinate::Quiet => order = quiet_coordinates(target, start, &order)?,
        Coordinate::Number(number) => {
            let first = order.iter().position(|place| u64::from(*place) == number);
            let first = first.ok_or(AttackError::Coordinate { coordinate: number, parameters })?;
            order.swap(0, first);
        }
    }
    order.truncate(count);
    Ok(order)
}

/// 0..count in the order of a row's words.
fn order(stream: &Stream, row: u64, count: usize) -> Vec<u32> {
    let mut keys: Vec<(u64, u32)> =
        (0..count as u32).map(|index| (stream.word(row, index.into()), index)).collect();
    keys.sort_unstable();
    keys.into_iter().map(|(_, index)| index).collect()
}

/// Insertions once in this many steps, the last step among them.
fn schedule(steps: u64, every: u64) -> Schedule {
    if every == 1 {
        return Schedule::Always;
    }
    let on = |step: u64| if (steps - 1 - step).is_multiple_of(every) { 1.0 } else { 0.0 };
    Schedule::Factors((0..steps).map(on).collect())
}

/// All labels, the one that the start finds least likely first.
fn least_likely(target: &Target, start: &Start, features: &[f32]) -> Result<Vec<u32>, AttackError> {
    let classes = target.data.classes as u32;
    let each: Vec<Injection> = (0..classes).map(|label| example(features, label)).collect();
    let replica =
        Replica { start: Start::Fixed(target.start_parameters(start).into()), ..Replica::new(0) };
    let recipe = Arc::new(target.recipe.clone());
    let mut model = CpuReplicas::new(recipe, Arc::clone(&target.data), vec![replica])?;
    let mut losses = Vec::new();
    model.losses(&as_dataset(&target.data, &each), &mut losses)?;
    let mut labels: Vec<u32> = (0..classes).collect();
    labels.sort_by(|a, b| losses[*b as usize].total_cmp(&losses[*a as usize]));
    Ok(labels)
}

/// Canaries that are records, as a data set to be evaluated.
pub(super) fn as_dataset(like: &Dataset, injections: &[Injection]) -> Dataset {
    let mut data = Dataset {
        features: Vec::new(),
        labels: Vec::new(),
        classes: like.classes,
        shape: like.shape,
        columns: Vec::new(),
        provenance: Provenance::default(),
    };
    for injection in injections {
        if let Injection::Example { features, label } = injection {
            data.features.extend_from_slice(features);
            data.labels.push(*label);
        }
    }
    data
}

fn mean_norm(data: &Dataset) -> f64 {
    let norms = (0..data.len()).map(|record| {
        data.row(record).iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt()
    });
    norms.sum::<f64>() / data.len() as f64
}
