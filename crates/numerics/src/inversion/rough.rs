//! Where to look: saddles, and the logarithm of the transform at real tilts, from a light quadrature
//! whose error is not bounded. It chooses places; what is said there is certified elsewhere.

use super::decay::Cells;
use super::grid::Demand;
use super::law::{Law, Strand};
use super::line::Obstacle;
use super::solve::Times;
use crate::elementary::{exp, exp_m1, ln, ln_1p};
use std::sync::Arc;

/// A place on the real axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saddle {
    pub(super) c: f64,
    /// The threshold whose saddle it is.
    pub(super) t: f64,
    pub(super) spread: f64,
    pub(super) log_value: f64,
    pub(super) level: f64,
}

/// Points for real tilts, made wider as needed.
pub(super) struct Rough<'a> {
    parts: &'a [Times],
    points: Arc<Vec<Vec<Point>>>,
    low: f64,
    high: f64,
    /// The cells last made, with their tilt and width.
    cells: Vec<(f64, f64, Vec<Cells>)>,
}

/// The points that every question starts with.
#[derive(Debug)]
pub(super) struct Start {
    points: Arc<Vec<Vec<Point>>>,
    low: f64,
    high: f64,
}

impl Start {
    pub(super) fn new(parts: &[Times]) -> Self {
        let none = Self { points: Arc::default(), low: -8.0, high: 9.0 };
        let mut rough = Rough::new(parts, &none);
        // Rare far jumps make large tilts meaningless long before they overflow.
        while rough.high > 1.001 && !rough.sensible(rough.high) {
            rough.high = 1.0 + (rough.high - 1.0) / 1.5;
        }
        while rough.low < -0.001 && !rough.sensible(rough.low) {
            rough.low /= 1.5;
        }
        rough.build();
        Self { points: rough.points, low: rough.low, high: rough.high }
    }
}

impl<'a> Rough<'a> {
    pub(super) fn new(parts: &'a [Times], start: &Start) -> Self {
        let points = start.points.clone();
        Self { parts, points, low: start.low, high: start.high, cells: Vec::new() }
    }

    fn sensible(&self, c: f64) -> bool {
        self.parts.iter().all(|part| Demand::new(&part.law, c, 0.0).scale < 300.0)
    }

    fn build(&mut self) {
        let of = |part: &Times| points(&part.law, self.low, self.high);
        self.points = Arc::new(self.parts.iter().map(of).collect());
    }

    fn cover(&mut self, c: f64) -> Result<(), Obstacle> {
        if (c > self.high || c < self.low) && !self.sensible(c) {
            return Err(Obstacle::TooFine);
        }
        if c > self.high {
            self.high = if self.sensible(1.5 * c) { 1.5 * c } else { c };
            self.build();
        } else if c < self.low {
            self.low = if self.sensible(1.5 * c) { 1.5 * c } else { c };
            self.build();
        }
        Ok(())
    }

    /// The tilted laws in cells of a width; kept for lines at the same tilt.
    pub(super) fn cells(&mut self, c: f64, width: f64) -> Result<&[Cells], Obstacle> {
        let known = self.cells.iter().position(|known| known.0 == c && known.1 == width);
        let index = match known {
            Some(index) => index,
            None => {
                let made = self.parts.iter().map(|part| Cells::new(part, c, width));
                let made = made.collect::<Result<_, _>>()?;
                self.cells.push((c, width, made));
                self.cells.len() - 1
            }
        };
        Ok(&self.cells[index].2)
    }

    /// The sum of T ln K(c) over all parts; infinite where no points are.
    pub(super) fn level(&self, c: f64) -> f64 {
        if c < self.low || c > self.high {
            return f64::INFINITY;
        }
        self.parts
            .iter()
            .zip(self.points.iter())
            .map(|(part, points)| part.times * log_transform(points, c))
            .sum()
    }

    pub(super) fn saddle(&mut self, c: f64) -> Result<Saddle, Obstacle> {
        self.cover(c)?;
        let (mut level, mut slope, mut variance) = (0.0, 0.0, 0.0);
        for (part, points) in self.parts.iter().zip(self.points.iter()) {
            let (value, first, second) = cumulant(points, c);
            level += part.times * value;
            slope += part.times * first;
            variance += part.times * second;
        }
        let t = slope - 1.0 / c - 1.0 / (c - 1.0);
        let spread = (variance.max(0.0) + 1.0 / (c * c) + 1.0 / ((c - 1.0) * (c - 1.0))).sqrt();
        let log_value = level
            - c * t
            - ln((c * (c - 1.0)).abs())
            - ln(spread * (2.0 * std::f64::consts::PI).sqrt());
        // Beyond where numbers end there is no saddle.
        if !(t.is_finite() && spread > 0.0 && log_value.is_finite()) {
            return Err(Obstacle::TooFine);
        }
        Ok(Saddle { c, t, spread, log_value, level })
    }
}

/// A point of the light quadrature.
#[derive(Debug)]
struct Point {
    weight: f64,
    loss: f64,
    lifted: f64,
    mirror: bool,
}

/// Points of a panel; with the widths below good for some nine digits.
const POINTS: usize = 10;

/// Points for real tilts between two ends.
fn points(law: &Law, low: f64, high: f64) -> Vec<Point> {
    let (nodes, weights) = crate::legendre::rule::<POINTS>();
    let mut all = Vec::new();
    for strand in &law.strands {
        let ends = [low, high]
            .into_iter()
            .flat_map(|tilt| strand.tilts(tilt))
            .map(|(tilt, _)| strand.extent(tilt));
        let (from, to) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |known, next| {
            (known.0.min(next.0), known.1.max(next.1))
        });
        let panels = ((to - from) / (4.0 / strand.pair.reach()).min(2.0)).ceil().min(2000.0);
        let half = 0.5 * (to - from) / panels;
        for panel in 0..panels as usize {
            let middle = from + half * (2 * panel + 1) as f64;
            for (node, weight) in nodes.iter().zip(&weights) {
                all.push(point(strand, middle + half * node, half * weight));
            }
        }
    }
    all
}

fn point(strand: &Strand, x: f64, length: f64) -> Point {
    const SQRT_TWO_PI: f64 = 2.506_628_274_631_000_5;
    let denominator = strand.pair.log_denominator(x);
    let loss = strand.pair.log_numerator(x) - denominator;
    let weight = strand.weight * length * exp(denominator - 0.5 * x * x) / SQRT_TWO_PI;
    Point { weight, loss, lifted: exp_m1(loss), mirror: strand.mirror }
}

/// ln K at a real tilt.
fn log_transform(points: &[Point], c: f64) -> f64 {
    let mut value = 0.0;
    for point in points {
        let mut here = exp_m1(c * point.loss) - c * point.lifted;
        if point.mirror {
            here += exp_m1((1.0 - c) * point.loss) - (1.0 - c) * point.lifted;
        }
        value += point.weight * here;
    }
    ln_1p(value)
}

/// ln K at a real tilt, with first and second derivatives.
fn cumulant(points: &[Point], c: f64) -> (f64, f64, f64) {
    let (mut value, mut first, mut second) = (0.0, 0.0, 0.0);
    for point in points {
        let (l, lifted) = (point.loss, point.lifted);
        let mut add = |a: f64, sign: f64| {
            let grown = exp_m1(a * l);
            value += point.weight * (grown - a * lifted);
            first += point.weight * sign * (l * (1.0 + grown) - lifted);
            second += point.weight * l * l * (1.0 + grown);
        };
        add(c, 1.0);
        if point.mirror {
            add(1.0 - c, -1.0);
        }
    }
    let k = 1.0 + value;
    (ln_1p(value), first / k, second / k - (first / k) * (first / k))
}
