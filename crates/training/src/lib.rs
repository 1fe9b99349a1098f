//! DP-SGD for one model or thousands at once: data sets, layers with exact per-example clipping,
//! samplers, optimisers, replicas, and the ledger of what was really done.
//!
//! A [`Recipe`] says how one model is trained; a [`Replica`] is one of M models that share it,
//! with its own data order, noise stream, start and canaries. [`CpuReplicas`] holds the M models
//! as flat vectors and advances them; other devices implement the same [`Replicas`].
//!
//! What a step does, for every back end: the batch is drawn ([`sampler`]); the gradient of each
//! record in it is clipped to the clip norm and summed; gradients injected by canaries are added;
//! Gaussian noise of standard deviation noise_multiplier x clip_norm is added to each coordinate
//! (stream (seed, NOISE, replica), row = step, index = coordinate, f32); the sum is divided by the
//! expected batch size, a public constant; the optimiser uses that as its gradient.

mod backend;
mod cost;
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod data;
mod description;
mod device;
mod error;
mod evidence;
mod explain;
pub mod files;
mod ledger;
pub mod model;
mod optimizer;
mod recipe;
mod replica;
pub mod sampler;
mod session;
mod statistics;
mod summary;
mod train;

pub use backend::{ReplicaState, Replicas};
pub use cost::{Route, RouteCost};
pub use cpu::CpuReplicas;
pub use description::{PrivacyTarget, TrainingDescription};
pub use device::{Device, Open, PrecisionName};
pub use error::TrainingError;
pub use evidence::log_mixture;
pub use explain::{Explanation, LayerExplanation};
pub use ledger::{
    BatchSizes, ClippingRecord, DataRecord, DeviceRecord, HistoryPoint, LEDGER_SCHEMA, Ledger,
    ModelRecord, NoiseRecord, NotPrivate, Quantile, SamplingRecord, SessionRecord,
    StatisticsRecord,
};
pub use optimizer::{OptimizerDescription, OptimizerState};
pub use recipe::{Fault, Recipe, Rest};
pub use replica::{Canary, Injection, Replica, Schedule, Start};
pub use session::{NoiseSource, Session, Steps, TrainingEvent, TrainingOptions, TrainingOutcome};
pub use statistics::StepStatistics;
pub use summary::Summary;
pub use train::{Training, accuracy};
