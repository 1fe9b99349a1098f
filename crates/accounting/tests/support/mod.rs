//! What the route tests share: closed forms, a deterministic generator, Monte Carlo, random runs.
#![allow(dead_code)]

pub(crate) mod generator;
pub(crate) mod golden;
pub(crate) mod normal;
pub(crate) mod pair_laws;
pub(crate) mod runs;
pub(crate) mod simulation;

use vocabulary::Interval;

/// Two enclosures of one number must share a point.
pub(crate) fn overlap(a: &Interval, b: &Interval) -> bool {
    a.lower <= b.upper && b.lower <= a.upper
}

/// How many cases to try: the normal number, or what the environment asks for.
pub(crate) fn cases(normal: usize) -> usize {
    std::env::var("DOSIMETER_ROUTE_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(normal)
}
