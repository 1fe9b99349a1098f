//! Where to put the line: the saddle of T K(c) - c t - log|c(c-1)| on the real axis.
//!
//! Only the position is wanted here, so a coarse quadrature does (some tens of points).

use super::grid::{Design, Grid, TooFine};
use super::line::Zone;
use super::{Part, transform};

/// Coarse grids, good for tilts in a range that grows as needed.
pub(crate) struct Coarse<'a> {
    parts: &'a [Part],
    grids: Vec<Grid>,
    lowest: f64,
    highest: f64,
}

/// A point of the real axis with what the saddle-point approximation says there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Saddle {
    pub(crate) c: f64,
    /// The threshold whose saddle is c.
    pub(crate) t: f64,
    /// T K''(c)
    pub(crate) variance: f64,
    /// log E f(Y - t), approximately.
    pub(crate) log_value: f64,
}

impl<'a> Coarse<'a> {
    pub(crate) fn new(parts: &'a [Part]) -> Result<Self, TooFine> {
        // Tilts of this order are met at ordinary deltas.
        let scale =
            parts.iter().map(|part| part.pair.scale() / part.pair.reach()).fold(0.0, f64::max);
        let highest = (2.0 + 8.0 * scale * scale).min(200.0);
        let mut coarse = Self { parts, grids: Vec::new(), lowest: -highest, highest };
        coarse.build()?;
        Ok(coarse)
    }

    fn build(&mut self) -> Result<(), TooFine> {
        self.grids = self
            .parts
            .iter()
            .map(|part| {
                let digits = 24.0 + part.times.ln();
                Grid::coarse(
                    &part.pair,
                    &Design { highest: self.highest, lowest: self.lowest, frequency: 0.0, digits },
                )
            })
            .collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Makes sure tilts up to c are covered.
    pub(crate) fn cover(&mut self, c: f64) -> Result<(), TooFine> {
        if c > self.highest {
            self.highest = 1.5 * c;
            self.build()
        } else if c < self.lowest {
            self.lowest = 1.5 * c;
            self.build()
        } else {
            Ok(())
        }
    }

    pub(crate) fn grids(&self) -> &[Grid] {
        &self.grids
    }

    /// Level, slope and curvature of T K at c.
    fn cumulant(&mut self, c: f64) -> Result<(f64, f64, f64), TooFine> {
        self.cover(c)?;
        let mut sum = (0.0, 0.0, 0.0);
        for (part, grid) in self.parts.iter().zip(&self.grids) {
            let (k0, k1, k2) = transform::cumulant(grid, c);
            sum.0 += part.times * k0;
            sum.1 += part.times * k1;
            sum.2 += part.times * k2;
        }
        Ok(sum)
    }

    fn saddle(&mut self, zone: Zone, v: f64) -> Result<Saddle, TooFine> {
        let c = position(zone, v);
        let (level, slope, variance) = self.cumulant(c)?;
        let variance = variance.max(0.0);
        let t = slope - 1.0 / c - 1.0 / (c - 1.0);
        let curvature = variance + 1.0 / (c * c) + 1.0 / ((c - 1.0) * (c - 1.0));
        let log_value = level
            - c * t
            - (c * (c - 1.0)).abs().ln()
            - 0.5 * (2.0 * std::f64::consts::PI * curvature).ln();
        Ok(Saddle { c, t, variance, log_value })
    }

    /// The saddle for a threshold.
    pub(crate) fn at_threshold(&mut self, zone: Zone, t: f64) -> Result<Saddle, TooFine> {
        // t is increasing in c; c is increasing in v above and between, decreasing below.
        let sign = if zone == Zone::Below { -1.0 } else { 1.0 };
        self.search(zone, |saddle| sign * (saddle.t - t), 1e-2)
    }

    /// The saddle at which the average, times e^{growth t}, is about e^log_target.
    pub(crate) fn at_value(
        &mut self,
        zone: Zone,
        growth: f64,
        log_target: f64,
    ) -> Result<Saddle, TooFine> {
        self.search(zone, |saddle| log_target - (saddle.log_value + growth * saddle.t), 5e-2)
    }

    /// Root of a function that increases with v, to a rough tolerance in v or in value.
    fn search(
        &mut self,
        zone: Zone,
        f: impl Fn(&Saddle) -> f64,
        tolerance: f64,
    ) -> Result<Saddle, TooFine> {
        let (mut low, mut high) = (0.0, 0.0);
        let mut at = self.saddle(zone, 0.0)?;
        let start = f(&at);
        let (mut f_low, mut f_high) = (start, start);
        let mut step = 1.5;
        while f_low > 0.0 && low > -60.0 {
            (high, f_high) = (low, f_low);
            low -= step;
            step *= 1.5;
            at = self.saddle(zone, low)?;
            f_low = f(&at);
        }
        step = 1.5;
        while f_high < 0.0 && high < 60.0 {
            (low, f_low) = (high, f_high);
            high += step;
            step *= 1.5;
            at = self.saddle(zone, high)?;
            f_high = f(&at);
        }
        // Illinois variant of the false position, kept inside the bracket.
        let mut side = 0;
        for _ in 0..60 {
            if high - low < 1e-3 {
                break;
            }
            let mut v = if f_high.is_finite() && f_low.is_finite() && f_high > f_low {
                (low * f_high - high * f_low) / (f_high - f_low)
            } else {
                0.5 * (low + high)
            };
            let margin = 0.02 * (high - low);
            v = v.clamp(low + margin, high - margin);
            at = self.saddle(zone, v)?;
            let value = f(&at);
            if value.abs() < tolerance {
                break;
            }
            if value > 0.0 {
                (high, f_high) = (v, value);
                if side == 1 {
                    f_low *= 0.5;
                }
                side = 1;
            } else {
                (low, f_low) = (v, value);
                if side == -1 {
                    f_high *= 0.5;
                }
                side = -1;
            }
        }
        Ok(at)
    }
}

/// A parametrisation of each zone by the whole line.
fn position(zone: Zone, v: f64) -> f64 {
    match zone {
        Zone::Above => 1.0 + v.exp(),
        Zone::Between => 1.0 / (1.0 + (-v).exp()),
        Zone::Below => -v.exp(),
    }
}
