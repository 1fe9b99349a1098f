//! Where to look: saddles, and the logarithm of the transform at real tilts, from a light quadrature
//! whose error is not bounded. It chooses places; what is said there is certified elsewhere.

use super::decay::Cells;
use super::grid::Demand;
use super::law::{Law, Strand};
use super::line::Obstacle;
use super::solve::Times;
use crate::contour::Zone;
use crate::elementary::{exp, exp_m1, ln, ln_1p};

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
    points: Vec<Vec<Point>>,
    low: f64,
    high: f64,
    /// The cells last made, with their tilt and width.
    cells: Vec<(f64, f64, Vec<Cells>)>,
}

impl<'a> Rough<'a> {
    pub(super) fn new(parts: &'a [Times]) -> Result<Self, Obstacle> {
        let mut rough = Self { parts, points: Vec::new(), low: -8.0, high: 9.0, cells: Vec::new() };
        // Rare far jumps make large tilts meaningless long before they overflow.
        while rough.high > 1.001 && !rough.sensible(rough.high) {
            rough.high = 1.0 + (rough.high - 1.0) / 1.5;
        }
        while rough.low < -0.001 && !rough.sensible(rough.low) {
            rough.low /= 1.5;
        }
        rough.build();
        Ok(rough)
    }

    fn sensible(&self, c: f64) -> bool {
        self.parts.iter().all(|part| Demand::new(&part.law, c, 0.0).scale < 300.0)
    }

    fn build(&mut self) {
        self.points =
            self.parts.iter().map(|part| points(&part.law, self.low, self.high)).collect();
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
            .zip(&self.points)
            .map(|(part, points)| part.times * log_transform(points, c))
            .sum()
    }

    pub(super) fn saddle(&mut self, c: f64) -> Result<Saddle, Obstacle> {
        self.cover(c)?;
        let (mut level, mut slope, mut variance) = (0.0, 0.0, 0.0);
        for (part, points) in self.parts.iter().zip(&self.points) {
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
        Ok(Saddle { c, t, spread, log_value, level })
    }

    /// The saddle at which a function of it, rising with c within the zone, is zero.
    pub(super) fn find(
        &mut self,
        zone: Zone,
        function: impl Fn(&Saddle) -> f64,
    ) -> Result<Saddle, Obstacle> {
        // c as a function of a parameter over the whole line.
        let place = |y: f64| match zone {
            Zone::Above => 1.0 + exp(y),
            Zone::Between => 1.0 / (1.0 + exp(-y)),
            Zone::Below => -exp(-y),
        };
        // Beyond where numbers end the function is far from zero, on the side of that end.
        let far = if zone == Zone::Below { -1e3 } else { 1e3 };
        let look = |rough: &mut Self, y: f64| -> (Option<Saddle>, f64) {
            match rough.saddle(place(y)) {
                Ok(saddle) => {
                    let value = function(&saddle);
                    if value.is_finite() { (Some(saddle), value) } else { (None, far) }
                }
                Err(_) => (None, far),
            }
        };
        let mut y = 0.5;
        let (mut saddle, mut value) = look(self, y);
        let mut step = 1.0;
        // Walk until the sign changes, then bisect with secants.
        let rising = value < 0.0;
        let mut before = (y, value);
        loop {
            y += if rising { step } else { -step };
            if !(-14.0..=14.0).contains(&y) {
                return saddle.ok_or(Obstacle::TooFine);
            }
            let here = look(self, y);
            saddle = here.0.or(saddle);
            value = here.1;
            if (value >= 0.0) == rising {
                break;
            }
            before = (y, value);
            step *= 1.15;
        }
        let ((mut a, mut fa), (mut b, mut fb)) = ((before.0, before.1), (y, value));
        if a > b {
            (a, fa, b, fb) = (b, fb, a, fa);
        }
        let whole = b - a;
        for round in 0..40 {
            let guess = if round % 3 == 2 { 0.5 * (a + b) } else { a - fa * (b - a) / (fb - fa) };
            let y = if guess > a && guess < b { guess } else { 0.5 * (a + b) };
            let here = look(self, y);
            saddle = here.0.or(saddle);
            value = here.1;
            if value >= 0.0 {
                (b, fb) = (y, value);
            } else {
                (a, fa) = (y, value);
            }
            // A rough place is good enough: the line is certified wherever it is.
            if b - a < 1e-3 * whole || value.abs() < 1e-3 {
                break;
            }
        }
        saddle.ok_or(Obstacle::TooFine)
    }
}

/// A point of the light quadrature.
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
