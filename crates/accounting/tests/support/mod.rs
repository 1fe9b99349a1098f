//! What the route tests share: closed forms, a deterministic generator, Monte Carlo, random runs.
#![allow(dead_code)]

pub mod generator;
pub mod golden;
pub mod normal;
pub mod runs;
pub mod simulation;

use vocabulary::Interval;

/// Two enclosures of one number must share a point.
pub fn overlap(a: &Interval, b: &Interval) -> bool {
    a.lower <= b.upper && b.lower <= a.upper
}

/// How many cases to try: the normal number, or what the environment asks for.
pub fn cases(normal: usize) -> usize {
    std::env::var("DOSIMETER_ROUTE_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(normal)
}
