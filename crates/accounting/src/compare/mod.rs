//! Comparisons across runs: where the last-iterate heuristic pays ([`map`]), and what the
//! heuristic's promise means in proven terms for a list of batch sizes ([`batch_sizes`]).

mod batch_sizes;
mod map;

pub use batch_sizes::{BatchSizeRow, BatchSizes, batch_sizes};
pub use map::{Cell, Map, MapNoise, MapRequest, map, map_figure};
