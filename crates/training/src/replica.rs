//! One of many models that share a recipe.

use std::sync::Arc;

/// Where a replica's parameters start.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Start {
    /// Drawn from (seed, initialisation, the replica's number).
    #[default]
    Own,
    /// Drawn from (seed, initialisation, this number): replicas that name the same one start alike.
    Drawn(u64),
    /// These parameters.
    Fixed(Arc<[f32]>),
}

/// At which steps, and how strongly, a gradient is injected.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Schedule {
    /// Whenever the canary is sampled.
    #[default]
    Always,
    /// Times this factor (between -1 and 1) at each step; zero beyond the end. Crafted sequences
    /// as in Cebere et al. 2024 choose where to spend the canary.
    Factors(Arc<[f32]>),
}

/// What a canary does when it is sampled.
#[derive(Clone, Debug, PartialEq)]
pub enum Injection {
    /// Adds a vector to the sum of clipped gradients: (coordinate, value) in increasing order of
    /// coordinates; scaled down to the clip norm where longer.
    Gradient { entries: Arc<[(u32, f32)]>, schedule: Schedule },
    /// Is one more record.
    Example { features: Arc<[f32]>, label: u32 },
}

/// A record or gradient that an attacker added.
#[derive(Clone, Debug, PartialEq)]
pub struct Canary {
    pub injection: Injection,
    /// The secret bit: whether it is there at all.
    pub member: bool,
}

impl Canary {
    /// A gradient of the clip norm along one coordinate.
    pub fn dirac(coordinate: u32, clip_norm: f64, member: bool) -> Self {
        let entries = Arc::from([(coordinate, clip_norm as f32)]);
        Self { injection: Injection::Gradient { entries, schedule: Schedule::Always }, member }
    }
}

/// One of M models: its random streams, its start, its canaries. Two replicas with the same
/// numbers and different canary bits see the same coins and the same noise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replica {
    /// Names the noise stream (and the start, unless given).
    pub number: u64,
    /// Names the sampling stream.
    pub data_order: u64,
    pub start: Start,
    /// Records of the data set that this replica does not have, in increasing order.
    pub without: Arc<[u32]>,
    /// Canary j is sampled by coin number (records + j).
    pub canaries: Arc<[Canary]>,
}

impl Replica {
    /// A replica of the whole data set with all streams named by one number.
    pub fn new(number: u64) -> Self {
        Self { number, data_order: number, ..Self::default() }
    }
}
