//! Where to put the line: the saddle of T K(c) - c t - log|c(c-1)| on the real axis.
//!
//! Only the position is wanted here, so a coarse quadrature does (some tens of points).

use super::grid::{Design, Grid, TooFine};
use super::jumps::Jumps;
use super::line::Zone;
use super::{Part, transform};
use crate::elementary::{exp, ln};

/// Coarse grids, good for tilts in a range that grows as needed.
pub(crate) struct Coarse<'a> {
    parts: &'a [Part],
    grids: Vec<Grid>,
    jumps: Jumps,
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
    /// T K(c) and T K'(c)
    level: f64,
    slope: f64,
}

impl Saddle {
    fn new(c: f64, (level, slope, variance): (f64, f64, f64)) -> Self {
        let variance = variance.max(0.0);
        let t = slope - 1.0 / c - 1.0 / (c - 1.0);
        let log_value = level
            - c * t
            - ln((c * (c - 1.0)).abs())
            - ln(spread(c, variance) * (2.0 * std::f64::consts::PI).sqrt());
        Self { c, t, variance, log_value, level, slope }
    }

    /// What is said of another place by a parabola through here, and the jumps upon it.
    fn predict(&self, c: f64, jumps: &Jumps) -> Self {
        let (here, there) = (jumps.cumulant(self.c), jumps.cumulant(c));
        let step = c - self.c;
        let variance = (self.variance - here.2).max(0.0);
        let slope = self.slope - here.1;
        let level = self.level - here.0 + step * (slope + 0.5 * step * variance);
        let slope = slope + step * variance;
        Self::new(c, (level + there.0, slope + there.1, variance + there.2))
    }

    /// The standard deviation to which the integrand along the line through c belongs.
    pub(crate) fn spread(&self) -> f64 {
        spread(self.c, self.variance)
    }

    /// log of the largest integrand, e^{T K(c) - ct}.
    pub(crate) fn log_top(&self, t: f64) -> f64 {
        self.level - self.c * t
    }
}

/// The same for a variance T K''(c).
pub(crate) fn spread(c: f64, variance: f64) -> f64 {
    (variance + 1.0 / (c * c) + 1.0 / ((c - 1.0) * (c - 1.0))).sqrt()
}

impl<'a> Coarse<'a> {
    pub(crate) fn new(parts: &'a [Part]) -> Result<Self, TooFine> {
        // Tilts of this order are met at ordinary deltas.
        let scale =
            parts.iter().map(|part| part.pair.scale() / part.pair.reach()).fold(0.0, f64::max);
        let highest = (2.0 + 8.0 * scale * scale).min(200.0);
        let jumps = Jumps::new(parts);
        let mut coarse = Self { parts, grids: Vec::new(), jumps, lowest: -highest, highest };
        coarse.build()?;
        Ok(coarse)
    }

    fn build(&mut self) -> Result<(), TooFine> {
        self.grids = self
            .parts
            .iter()
            .map(|part| {
                let digits = 24.0 + ln(part.times);
                Grid::coarse(
                    &part.pair,
                    &Design { highest: self.highest, lowest: self.lowest, frequency: 0.0, digits },
                )
            })
            .collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Makes sure tilts up to c are covered, and some more.
    fn reach(&mut self, c: f64) -> Result<(), TooFine> {
        let cliff = self.jumps.cliff();
        let more = if cliff > c && cliff < 2.2 * c { cliff } else { 1.5 * c };
        self.cover(if c > self.highest || c < self.lowest { more } else { c })
    }

    /// Makes sure tilts up to c are covered.
    pub(crate) fn cover(&mut self, c: f64) -> Result<(), TooFine> {
        if c > self.highest {
            self.highest = c;
            self.build()
        } else if c < self.lowest {
            self.lowest = c;
            self.build()
        } else {
            Ok(())
        }
    }

    /// The largest tilt up to `most` that can be of use for bounds at t: beyond it the jumps
    /// alone outgrow what lies at the saddle.
    pub(crate) fn farthest(&self, saddle: &Saddle, t: f64, most: f64) -> f64 {
        // Three deviations are enough, and farther points that are nothing are not missed.
        let enough = saddle.c + 3.0 / saddle.spread();
        let most = if self.highest >= enough && self.jumps.log_share(saddle.c) < NOTHING {
            most.min(self.highest)
        } else {
            most
        };
        let top = saddle.log_top(t);
        let useful = |tilt: f64| self.jumps.least(tilt) - tilt * t - top < JUMPS_OUTGROW;
        // Jumps say nothing of tilts up to 1.
        if most <= 1.0 || useful(most) {
            return most;
        }
        let (mut low, mut high) = (saddle.c, most);
        for _ in 0..20 {
            let middle = 0.5 * (low + high);
            if useful(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    pub(crate) fn grids(&self) -> &[Grid] {
        &self.grids
    }

    /// Level, slope and curvature of T K at c.
    fn cumulant(&mut self, c: f64) -> Result<(f64, f64, f64), TooFine> {
        self.reach(c)?;
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
        Ok(Saddle::new(c, self.cumulant(c)?))
    }

    /// The saddle for a threshold.
    pub(crate) fn at_threshold(&mut self, zone: Zone, t: f64) -> Result<Saddle, TooFine> {
        // t is increasing in c; c is increasing in v above and between, decreasing below.
        let sign = if zone == Zone::Below { -1.0 } else { 1.0 };
        // A tenth of the spread costs nothing.
        self.search(zone, |saddle| sign * (saddle.t - t), |at| (0.1 * at.spread()).max(1e-2))
    }

    /// The saddle at which the average, times e^{growth t}, is about e^log_target.
    pub(crate) fn at_value(
        &mut self,
        zone: Zone,
        growth: f64,
        log_target: f64,
    ) -> Result<Saddle, TooFine> {
        self.search(zone, |at| log_target - (at.log_value + growth * at.t), |_| 5e-2)
    }

    /// Root of a function that increases with v, to a rough tolerance in v or in value: each try
    /// where the nearest one says it is, kept inside the bracket.
    fn search(
        &mut self,
        zone: Zone,
        f: impl Fn(&Saddle) -> f64,
        tolerance: impl Fn(&Saddle) -> f64,
    ) -> Result<Saddle, TooFine> {
        let (mut low, mut high) = (-FARTHEST, FARTHEST);
        let (mut v, mut stride) = (0.0, 4.0);
        let mut widths = [f64::INFINITY; 2];
        let mut at = self.saddle(zone, v)?;
        // The place nearest to the root: far beyond it, jumps hide everything else.
        let (mut base, mut nearest) = (at, f64::INFINITY);
        for _ in 0..80 {
            let value = f(&at);
            if value.abs() < tolerance(&at) {
                break;
            }
            if value > 0.0 {
                high = v;
            } else {
                low = v;
            }
            if value.abs() < nearest {
                (base, nearest) = (at, value.abs());
            }
            let width = high - low;
            if width < 1e-3 {
                break;
            }
            let bracketed = low > -FARTHEST && high < FARTHEST;
            v = if bracketed && width > 0.5 * widths[0] {
                // Misled: two steps have not halved the bracket.
                0.5 * (low + high)
            } else {
                let (from, to) = (low.max(v - stride), high.min(v + stride));
                let found = root(from, to, |v| f(&base.predict(position(zone, v), &self.jumps)));
                let margin = 0.02 * (to - from);
                found.clamp(from + margin, to - margin)
            };
            if bracketed {
                widths = [widths[1], width];
            } else {
                stride *= 1.5;
            }
            at = self.saddle(zone, v)?;
        }
        Ok(at)
    }
}

/// Where the search for a place ends.
const FARTHEST: f64 = 60.0;
/// log of a share that counts nowhere: the paths of module `tail` leave it out too.
const NOTHING: f64 = -100.0;
/// log of what jumps may carry at a tilt that is worth trying.
const JUMPS_OUTGROW: f64 = 20.0;

/// Where an increasing function changes its sign, to a part of the width.
fn root(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let tolerance = (2e-3 * (high - low)).min(0.01);
    while high - low > tolerance {
        let middle = 0.5 * (low + high);
        if f(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// A parametrisation of each zone by the whole line.
fn position(zone: Zone, v: f64) -> f64 {
    match zone {
        Zone::Above => 1.0 + exp(v),
        Zone::Between => 1.0 / (1.0 + exp(-v)),
        Zone::Below => -exp(v),
    }
}
