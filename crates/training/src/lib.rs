//! DP-SGD for one model or thousands at once: data sets, layers with exact per-example clipping,
//! samplers, optimisers, replicas, and the ledger of what was really done.

pub mod data;
