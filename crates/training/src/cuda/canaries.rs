//! Canaries and missing records of a group of replicas, as lists on the device.

use super::device::{Buffer, CudaDevice};
use crate::TrainingError;
use crate::recipe::{Fault, Recipe};
use crate::replica::{Injection, Replica, Schedule};
use std::sync::Arc;

/// As in `kernels.cu`: a canary that is not there, and one that is a gradient.
const ABSENT: i32 = -1;
const GRADIENT: i32 = -2;

pub(super) struct Canaries {
    /// Most canaries of one replica.
    pub(super) most: usize,
    /// Whether some canary is a gradient.
    pub(super) gradients: bool,
    pub(super) start: Buffer<i32>,
    pub(super) kind: Buffer<i32>,
    /// (start, length, schedule, 0, scale) of each, 24 bytes.
    pub(super) injected: Buffer<u64>,
    pub(super) places: Buffer<i32>,
    pub(super) values: Buffer<f32>,
    pub(super) without_start: Buffer<i32>,
    pub(super) without: Buffer<i32>,
    pub(super) factors: Buffer<f32>,
    schedules: Vec<Schedule>,
    /// The kinds again, for batches that are drawn on the host.
    pub(super) host_kind: Vec<Vec<i32>>,
}

/// Examples that canaries add, to be put after the data set's records.
#[derive(Default)]
pub(super) struct Examples {
    pub(super) features: Vec<f32>,
    pub(super) labels: Vec<i32>,
}

impl Canaries {
    pub(super) fn new(
        device: &CudaDevice,
        recipe: &Recipe,
        records: usize,
        replicas: &[Replica],
    ) -> Result<(Self, Examples), TrainingError> {
        let mut examples = Examples::default();
        let mut known: Vec<(Arc<[f32]>, u32)> = Vec::new();
        /// The entries of an injected gradient, and where they begin on the device.
        type Known = (Arc<[(u32, f32)]>, i32);
        let mut known_entries: Vec<Known> = Vec::new();
        let mut schedules = vec![Schedule::Always];
        let (mut start, mut kinds, mut injected) = (vec![0_i32], Vec::new(), Vec::new());
        let (mut places, mut values) = (Vec::new(), Vec::new());
        let (mut without_start, mut without) = (vec![0_i32], Vec::new());
        let mut host_kind = Vec::with_capacity(replicas.len());
        for replica in replicas {
            let mut own = Vec::new();
            for canary in replica.canaries.iter() {
                let mut description = [0_u64; 3];
                let kind = match &canary.injection {
                    _ if !canary.member => ABSENT,
                    Injection::Example { features, label } => {
                        let same = |(other, other_label): &(Arc<[f32]>, u32)| {
                            Arc::ptr_eq(other, features) && other_label == label
                        };
                        let place = known.iter().position(same).unwrap_or_else(|| {
                            known.push((Arc::clone(features), *label));
                            examples.features.extend_from_slice(features);
                            examples.labels.push(*label as i32);
                            known.len() - 1
                        });
                        (records + place) as i32
                    }
                    Injection::Gradient { entries, schedule } => {
                        let found =
                            known_entries.iter().find(|(other, _)| Arc::ptr_eq(other, entries));
                        let from = found.map(|(_, from)| *from).unwrap_or_else(|| {
                            let from = places.len() as i32;
                            places.extend(entries.iter().map(|(place, _)| *place as i32));
                            values.extend(entries.iter().map(|(_, value)| *value));
                            known_entries.push((Arc::clone(entries), from));
                            from
                        });
                        let number = schedules.iter().position(|other| other == schedule);
                        let number = number.unwrap_or_else(|| {
                            schedules.push(schedule.clone());
                            schedules.len() - 1
                        });
                        let scale = clipping_scale(recipe, entries);
                        description = [
                            u64::from(from as u32) | (entries.len() as u64) << 32,
                            number as u64,
                            scale.to_bits(),
                        ];
                        GRADIENT
                    }
                };
                own.push(kind);
                injected.extend(description);
            }
            kinds.extend_from_slice(&own);
            host_kind.push(own);
            start.push(kinds.len() as i32);
            without.extend(replica.without.iter().map(|record| *record as i32));
            without_start.push(without.len() as i32);
        }
        let canaries = Self {
            most: host_kind.iter().map(Vec::len).max().unwrap_or(0),
            gradients: kinds.contains(&GRADIENT),
            start: device.upload(&start)?,
            kind: device.upload(&kinds)?,
            injected: device.upload(&injected)?,
            places: device.upload(&places)?,
            values: device.upload(&values)?,
            without_start: device.upload(&without_start)?,
            without: device.upload(&without)?,
            factors: device.upload(&vec![1.0; schedules.len()])?,
            schedules,
            host_kind,
        };
        Ok((canaries, examples))
    }

    /// Puts the strength of each schedule at a step onto the device.
    pub(super) fn set_step(&mut self, device: &CudaDevice, step: u64) -> Result<(), TrainingError> {
        if self.schedules.len() == 1 {
            return Ok(());
        }
        let factors: Vec<f32> = self
            .schedules
            .iter()
            .map(|schedule| match schedule {
                Schedule::Always => 1.0,
                Schedule::Factors(factors) => {
                    let place = usize::try_from(step).unwrap_or(usize::MAX);
                    factors.get(place).copied().unwrap_or(0.0).clamp(-1.0, 1.0)
                }
            })
            .collect();
        device.write(&mut self.factors, &factors)
    }
}

/// What brings a gradient down to the clip norm where it is longer.
fn clipping_scale(recipe: &Recipe, entries: &[(u32, f32)]) -> f64 {
    let square: f64 = entries.iter().map(|(_, value)| f64::from(*value) * f64::from(*value)).sum();
    let scale = (recipe.clip_norm / square.sqrt()).min(1.0);
    if recipe.fault == Fault::NoClipping { 4.0 * scale } else { scale }
}
