//! Averages at a threshold, and the threshold for an average.

use super::grid::TooFine;
use super::line::{Line, Obstacle, Value, Zone};
use super::saddle::{Coarse, Saddle};
use super::Part;
use std::sync::{Arc, Mutex};

/// A number with certified ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ends {
    pub lower: f64,
    pub value: f64,
    pub upper: f64,
}

/// The sum of log ratios over all steps of all parts.
///
/// Lines are kept: a later question near an earlier one costs only the sum over its nodes.
#[derive(Debug)]
pub struct SumOfLogRatios {
    parts: Vec<Part>,
    lines: Mutex<Vec<Arc<Line>>>,
}

impl Clone for SumOfLogRatios {
    fn clone(&self) -> Self {
        Self::new(self.parts.clone())
    }
}

/// Kept lines; more would only be searched in vain.
const MOST_LINES: usize = 12;
/// A kept line answers if its error is below this part of the value.
const GOOD_ENOUGH: f64 = 3e-11;

impl From<TooFine> for Obstacle {
    fn from(_: TooFine) -> Self {
        Obstacle::TooFine
    }
}

impl SumOfLogRatios {
    pub fn new(parts: Vec<Part>) -> Self {
        Self { parts, lines: Mutex::new(Vec::new()) }
    }

    fn keep(&self, line: Line) -> Arc<Line> {
        let line = Arc::new(line);
        if let Ok(mut lines) = self.lines.lock() {
            if lines.len() >= MOST_LINES {
                lines.remove(0);
            }
            lines.push(Arc::clone(&line));
        }
        line
    }

    /// The value at t from a kept line, if one is accurate there.
    fn kept(&self, zone: Zone, t: f64) -> Option<Value> {
        let lines: Vec<Arc<Line>> = self.lines.lock().ok()?.iter().rev().cloned().collect();
        lines.iter().filter(|line| line.zone() == zone && line.near(t)).find_map(|line| {
            let value = line.value(t);
            (value.mantissa > 0.0 && value.below + value.above <= GOOD_ENOUGH * value.mantissa).then_some(value)
        })
    }

    /// e^{growth t} E f(Y - t), f by zone, with certified ends.
    pub fn average(&self, zone: Zone, growth: f64, t: f64) -> Result<Ends, Obstacle> {
        let value = match self.kept(zone, t) {
            Some(value) => value,
            None => {
                let mut coarse = Coarse::new(&self.parts)?;
                let saddle = coarse.at_threshold(zone, t)?;
                self.line(&mut coarse, zone, &saddle, t)?.value(t)
            }
        };
        accurate(&value)?;
        let scale = (value.log_scale + growth * t).exp();
        Ok(Ends {
            lower: ((value.mantissa - value.below) * scale).max(0.0) * (1.0 - 4.0 * f64::EPSILON),
            value: value.mantissa * scale,
            upper: (value.mantissa + value.above) * scale * (1.0 + 4.0 * f64::EPSILON),
        })
    }

    fn line(&self, coarse: &mut Coarse, zone: Zone, saddle: &Saddle, t: f64) -> Result<Arc<Line>, Obstacle> {
        let c = saddle.c;
        let spread = (saddle.variance + 1.0 / (c * c) + 1.0 / ((c - 1.0) * (c - 1.0))).sqrt();
        let (low, high) = zone.ends();
        coarse.cover((c + 17.0 / spread).min(high))?;
        coarse.cover((c - 17.0 / spread).max(low))?;
        Ok(self.keep(Line::new(&self.parts, coarse.grids(), zone, c, t, saddle.variance)?))
    }

    /// The threshold t at which e^{growth t} E f(Y - t) = target, with certified ends.
    /// The average must fall as t rises (`Above` with growth 1) or rise with t (`Below`, growth 0).
    pub fn threshold(&self, zone: Zone, growth: f64, target: f64) -> Result<Ends, Obstacle> {
        let log_target = target.ln();
        let mut coarse = Coarse::new(&self.parts)?;
        let mut saddle = coarse.at_value(zone, growth, log_target)?;
        let mut t = saddle.t;
        for _ in 0..4 {
            let line = self.line(&mut coarse, zone, &saddle, t)?;
            let start = t;
            let (mut value, mut slope) = (line.value(t), 0.0);
            for _ in 0..40 {
                accurate(&value)?;
                let miss = value.mantissa.ln() + value.log_scale + growth * t - log_target;
                slope = value.slope / value.mantissa + growth;
                let step = miss / slope;
                if !step.is_finite() {
                    return Err(Obstacle::SlowDecay);
                }
                t -= step;
                value = line.value(t);
                if step.abs() <= 1e-15 * t.abs() + 1e-14 / slope.abs() {
                    break;
                }
            }
            let spread = (saddle.variance + 1.0 / (saddle.c * saddle.c)).sqrt();
            if (t - start).abs() < 0.5 * spread && accurate(&value).is_ok() {
                return Ok(self.ends(&line, growth, log_target, t, &value, slope));
            }
            saddle = coarse.at_threshold(zone, t)?;
        }
        Err(Obstacle::SlowDecay)
    }

    /// Steps away from t until the certified average is on the right side of the target.
    fn ends(&self, line: &Line, growth: f64, log_target: f64, t: f64, value: &Value, slope: f64) -> Ends {
        let high_side = |t: f64| {
            let v = line.value(t);
            (v.mantissa + v.above).ln() + v.log_scale + growth * t + 8.0 * f64::EPSILON * (1.0 + v.log_scale.abs())
        };
        let low_side = |t: f64| {
            let v = line.value(t);
            (v.mantissa - v.below).ln() + v.log_scale + growth * t - 8.0 * f64::EPSILON * (1.0 + v.log_scale.abs())
        };
        let relative = (value.above + value.below) / value.mantissa;
        let first = 1.2 * relative / slope.abs() + 4.0 * f64::EPSILON * t.abs() + f64::MIN_POSITIVE;
        let walk = |direction: f64, done: &dyn Fn(f64) -> bool| {
            let mut step = first;
            for _ in 0..60 {
                let candidate = t + direction * step;
                if done(candidate) {
                    return candidate;
                }
                step *= 2.0;
            }
            direction * f64::INFINITY
        };
        // Falling average: above t it is certainly below the target. Rising: mirror image.
        let down = if slope < 0.0 { 1.0 } else { -1.0 };
        let under = walk(down, &|x| high_side(x) <= log_target);
        let over = walk(-down, &|x| low_side(x) >= log_target);
        Ends { lower: under.min(over), value: t, upper: under.max(over) }
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }
}

/// A value is of use when its error is a small part of it.
fn accurate(value: &Value) -> Result<(), Obstacle> {
    if value.mantissa > 0.0 && value.below + value.above <= 1e-4 * value.mantissa {
        Ok(())
    } else {
        Err(Obstacle::SlowDecay)
    }
}
