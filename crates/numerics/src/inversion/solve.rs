//! Averages at a threshold, and the threshold for an average.

use super::grid::{Demand, Grid};
use super::ladder::{Ladder, Tolerance, tilt};
use super::law::Law;
pub use super::line::Obstacle;
use super::line::{Line, Value};
use super::nodes::Tilted;
use super::rough::Saddle;
use crate::contour::{Ends, Zone};
use crate::elementary::{exp, ln, ln_1p};

/// A law and how many times it is taken.
#[derive(Clone, Debug)]
pub struct Times {
    pub law: Law,
    pub times: f64,
}

/// The sum of the losses of all steps. Lines that were made for a question serve others.
#[derive(Debug)]
pub struct Composition {
    parts: Vec<Times>,
    ladder: Ladder,
}

impl Composition {
    /// The sum over all parts.
    pub fn new(parts: Vec<Times>) -> Self {
        Self { parts, ladder: Ladder::default() }
    }

    /// e^{growth t} E f(Y - t), f by zone, with certified ends. Growth is 0 or 1.
    ///
    /// # Errors
    /// Where no line can be certified.
    pub fn average(&self, zone: Zone, growth: f64, t: f64) -> Result<Ends, Obstacle> {
        self.average_to(Tolerance::Tight, zone, growth, t)
    }

    /// The same with three digits, at a part of the cost.
    ///
    /// # Errors
    /// Where no line can be certified.
    pub fn rough_average(&self, zone: Zone, growth: f64, t: f64) -> Result<Ends, Obstacle> {
        self.average_to(Tolerance::Loose, zone, growth, t)
    }

    fn average_to(
        &self,
        tolerance: Tolerance,
        zone: Zone,
        growth: f64,
        t: f64,
    ) -> Result<Ends, Obstacle> {
        // Within a zone the threshold rises with the saddle.
        let (rung, _) = self.ladder.find(&self.parts, zone, |saddle| saddle.t - t)?;
        let line = self.ladder.line(&self.parts, zone, rung, tolerance)?;
        Ok(ends_of(&line.value(t), growth * t))
    }

    /// A certain upper end of e^{growth t} E f(Y - t) by Chernoff, for `Above` and `Below`, also so far
    /// out that no line can be certified. Near the truth where the tail is thin; rare far jumps lift it.
    pub fn at_most(&self, zone: Zone, growth: f64, t: f64) -> Option<f64> {
        let base = match zone {
            Zone::Above => 1.0,
            Zone::Below => 0.0,
            Zone::Between => return None,
        };
        let (rung, _) = self.ladder.find(&self.parts, zone, |saddle| saddle.t - t).ok()?;
        // Every tilt gives a bound. Where the saddle leans on rare far jumps, or needs too many points, a
        // smaller one is better.
        let tilts = [1.0, 0.7, 0.5, 0.25, 0.12].map(|part| base + (tilt(zone, rung) - base) * part);
        let bound = |c: f64| {
            let moment = self.log_moment(c)?;
            let log = moment + zone.log_chernoff(c) - (c - growth) * t;
            // x ln x within a part of its size, and the sums.
            let size = moment.abs() + (c * t).abs() + (2.0 + c.abs()) * (1.0 + ln(2.0 + c.abs()));
            let bound = exp(log + 32.0 * f64::EPSILON * size);
            bound.is_finite().then(|| bound.max(f64::MIN_POSITIVE))
        };
        tilts.into_iter().filter_map(bound).min_by(f64::total_cmp)
    }

    /// An upper end of the sum of T ln K(c) over all parts.
    fn log_moment(&self, c: f64) -> Option<f64> {
        self.parts.iter().try_fold(0.0, |sum, part| {
            let demand = Demand::new(&part.law, c, 0.0);
            let grid = Grid::new(&part.law, &[demand], 1e-3 / part.times).ok()?;
            let tilted = Tilted::new(&grid.points, c);
            let error = grid.quadrature * exp(demand.scale) + tilted.round_off(0.0, 0.0);
            let log = ln_1p(tilted.real() + error);
            Some(sum + part.times * (log + 4.0 * f64::EPSILON * (1.0 + log.abs())))
        })
    }

    /// The threshold t at which e^{growth t} E f(Y - t) = target, for an average that falls with t
    /// (`Above`, growth 1) or rises with it (`Below`, growth 0).
    ///
    /// # Errors
    /// Where no line can be certified.
    pub fn threshold(&self, zone: Zone, growth: f64, target: f64) -> Result<Ends, Obstacle> {
        let log_target = ln(target);
        let falling = zone == Zone::Above;
        let miss = |saddle: &Saddle| saddle.log_value + growth * saddle.t - log_target;
        let sought = |saddle: &Saddle| if falling { -miss(saddle) } else { miss(saddle) };
        let (mut rung, mut saddle) = self.ladder.find(&self.parts, zone, sought)?;
        let log_at = |value: &Value, t: f64, mantissa: f64| {
            if mantissa > 0.0 {
                ln(mantissa) + value.log_scale + growth * t
            } else {
                f64::NEG_INFINITY
            }
        };
        let newton = |line: &Line, from: f64, spread: f64| -> f64 {
            let mut t = from;
            let mut last = f64::INFINITY;
            // Points at which the average is certainly too large and too small.
            let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
            for _ in 0..60 {
                let value = line.value(t);
                let off = log_at(&value, t, value.mantissa) - log_target;
                let slope = value.slope / value.mantissa + growth;
                if (off > 0.0) == falling {
                    low = t;
                } else {
                    high = t;
                }
                let most = 0.5 * spread + 0.5;
                let wanted = -off / slope;
                // Far below what the line can tell: a step out of the bracket would be round-off.
                if wanted.abs() <= (1e-12 * t.abs()).max(1e-3 * value.relative() / slope.abs()) {
                    return t + wanted;
                }
                let mut next = t + wanted.clamp(-most, most);
                if !next.is_finite() {
                    // Nothing is left of the value so far out.
                    next = if falling { t - most } else { t + most };
                }
                let inside = next > low && next < high;
                if !inside {
                    next = match (low.is_finite(), high.is_finite()) {
                        (true, true) => 0.5 * (low + high),
                        (true, false) => low + most,
                        _ => high - most,
                    };
                }
                let step = next - t;
                t = next;
                // Down to round-off: steps of Newton no longer shrink, or the bracket is as narrow.
                if inside && step.abs() < 1e-7 && step.abs() >= 0.5 * last
                    || high - low <= 1e-15 * t.abs()
                {
                    break;
                }
                last = step.abs();
            }
            t
        };
        let line_at = |rung: i32| {
            let line = |tolerance| self.ladder.line(&self.parts, zone, rung, tolerance);
            line(Tolerance::Tight).or_else(|_| line(Tolerance::Loose))
        };
        // The saddle's own guess may be far off.
        let mut line = line_at(rung)?;
        let mut t = newton(&line, saddle.t, saddle.spread);
        for _ in 0..4 {
            let Ok((next, there)) = self.ladder.find(&self.parts, zone, |saddle| saddle.t - t)
            else {
                break;
            };
            if (next - rung).abs() <= 1 {
                break;
            }
            let Ok(other) = line_at(next) else { break };
            (rung, saddle, line) = (next, there, other);
            t = newton(&line, t, saddle.spread);
        }
        let value = line.value(t);
        let relative = value.relative();
        if !(relative <= 1e-3) {
            return Err(Obstacle::SlowDecay);
        }
        let slope = (value.slope / value.mantissa + growth).abs();
        // Certain sides: the upper end of the average is below the target, or the lower end above.
        let certainly = |t: f64, beyond: bool| {
            let value = line.value(t);
            let slack = 8.0 * f64::EPSILON * (1.0 + log_target.abs());
            let above = log_at(&value, t, value.mantissa - value.below) >= log_target + slack;
            let below = log_at(&value, t, value.mantissa + value.above) <= log_target - slack;
            if beyond == falling { below } else { above }
        };
        let mut out = Ends { lower: f64::NEG_INFINITY, value: t, upper: f64::INFINITY };
        let mut step = (0.6 * relative + 1e-15) / slope + 2.0 * f64::EPSILON * t.abs();
        for _ in 0..40 {
            if out.upper == f64::INFINITY && certainly(t + step, true) {
                out.upper = (t + step).next_up();
            }
            if out.lower == f64::NEG_INFINITY && certainly(t - step, false) {
                out.lower = (t - step).next_down();
            }
            if out.lower.is_finite() && out.upper.is_finite() {
                return Ok(out);
            }
            step *= 1.5;
        }
        Err(Obstacle::SlowDecay)
    }
}

fn ends_of(value: &Value, log_factor: f64) -> Ends {
    let log = value.log_scale + log_factor;
    let (least, most) = (value.mantissa - value.below, value.mantissa + value.above);
    if !(log.is_finite() && value.log_scale.is_finite() && least.is_finite() && most.is_finite()) {
        // Nothing is known, and `max` would hide that.
        return Ends { lower: 0.0, value: 0.0, upper: f64::INFINITY };
    }
    let slack = 8.0 * f64::EPSILON * (1.0 + log.abs() + value.log_scale.abs());
    let scale = exp(log);
    let end = |mantissa: f64, factor: f64| (mantissa * scale).max(0.0) * factor;
    Ends {
        lower: end(least, 1.0 - slack),
        value: (value.mantissa * scale).max(0.0),
        upper: end(most, 1.0 + slack).max(f64::MIN_POSITIVE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contour::{Part, SumOfLogRatios};
    use crate::mixture::{Component, MixtureRatio};

    fn poisson(sigma: f64, q: f64) -> Law {
        let step = Component { weight: q, centre: 1.0 / sigma };
        Law::of_pair(MixtureRatio::new(1.0, vec![step], Vec::new()))
    }

    /// Poisson pairs have a route of their own: both enclosures must meet and be narrow.
    #[test]
    fn meets_the_contour_of_mixtures() {
        for (sigma, q, times) in
            [(1.0, 0.01, 1000.0), (2.0, 0.1, 100.0), (0.7, 0.001, 5000.0), (4.0, 0.3, 300.0)]
        {
            let other =
                SumOfLogRatios::new(vec![Part { pair: MixtureRatio::subsampled(sigma, q), times }]);
            let this = Composition::new(vec![Times { law: poisson(sigma, q), times }]);
            for (zone, growth, t) in [
                (Zone::Above, 1.0, 0.7),
                (Zone::Above, 1.0, 0.0),
                (Zone::Between, 0.0, -0.2),
                (Zone::Below, 0.0, -0.5),
            ] {
                let (a, b) =
                    (other.average(zone, growth, t).unwrap(), this.average(zone, growth, t));
                let b = b.unwrap_or_else(|e| panic!("{sigma} {q} {times} {zone:?} {e:?}"));
                assert!(a.lower <= b.upper && b.lower <= a.upper, "{sigma} {q}: {a:?} {b:?}");
                assert!(b.upper - b.lower <= 1e-7 * b.value, "{sigma} {q} {zone:?}: {b:?}");
            }
            for delta in [1e-5, 1e-12] {
                let a = other.threshold(Zone::Above, 1.0, delta).unwrap();
                let b = this.threshold(Zone::Above, 1.0, delta).unwrap();
                assert!(a.lower <= b.upper && b.lower <= a.upper, "{sigma} {q}: {a:?} {b:?}");
                assert!(b.upper - b.lower <= 1e-7 * b.value.abs(), "{sigma} {q}: {b:?}");
            }
        }
    }

    /// A rare part with far losses makes the saddles jump to where numbers end: the last one before it serves.
    #[test]
    fn saddles_that_jump() {
        for sigma in [4.0, 4.5, 5.0, 6.0, 8.0] {
            let fixed = Law::symmetric(&[(0.00975, 2.0 / sigma)], 1e-12);
            let law = poisson(sigma, 0.01).mixed(fixed, 0.00164, 1e-12);
            let sum = Composition::new(vec![Times { law, times: 1000.0 }]);
            for t in [-0.1, -0.15, -0.2124] {
                let found = sum.average(Zone::Below, 0.0, t).unwrap();
                assert!(found.upper - found.lower <= 1e-8 * found.value, "{sigma} {t}: {found:?}");
            }
        }
    }

    /// Above the truth in both zones, near it where the tail is thin, and small where no line is certified.
    #[test]
    fn chernoff_is_above_and_near() {
        let shares = [(1.0, 9.9e-3), (2.0, 4.9e-5), (3.0, 1.6e-7), (4.0, 3.9e-10)];
        let list = shares.map(|(j, weight)| Component { weight, centre: j }).to_vec();
        let law = Law::of_pair(MixtureRatio::new(1.0, list, Vec::new()));
        let sum = Composition::new(vec![Times { law, times: 1000.0 }]);
        for (zone, growth, t) in [
            (Zone::Above, 1.0, 0.5),
            (Zone::Above, 1.0, 3.0),
            (Zone::Below, 0.0, -0.5),
            (Zone::Below, 0.0, -3.0),
        ] {
            let truth = sum.average(zone, growth, t).unwrap();
            let bound = sum.at_most(zone, growth, t).unwrap();
            assert!(
                bound >= truth.lower && (bound <= 100.0 * truth.upper || zone == Zone::Above),
                "{zone:?} {t}: {bound} {truth:?}"
            );
        }
        assert!(sum.average(Zone::Below, 0.0, -5.0).is_err());
        let bound = sum.at_most(Zone::Below, 0.0, -5.0).unwrap();
        assert!(bound > 0.0 && bound < 1e-40, "{bound}");
    }

    /// Reference values of the symmetric profile (fixed-size batches, substitution), two routes in
    /// 160-bit arithmetic.
    #[test]
    fn symmetric_references() {
        for (sigma, q, times, delta, epsilon) in [
            (1.0, 0.01, 1000.0, 1e-5, 14.820666872773664),
            (2.0, 0.01, 1000.0, 1e-5, 2.1989099488734976),
            (4.0, 0.01, 1000.0, 1e-5, 0.7185710030010795),
            (2.0, 0.001, 10000.0, 1e-5, 0.6122375228141188),
            (3.0, 0.1, 100.0, 1e-6, 4.4044384840574949),
        ] {
            let law = Law::symmetric(&[(q, 2.0 / sigma)], 0.0);
            let sum = Composition::new(vec![Times { law, times }]);
            let found = sum.threshold(Zone::Above, 1.0, delta).unwrap();
            // The references have nine to twelve digits.
            let slack = 3e-10 * epsilon;
            assert!((found.value - epsilon).abs() < slack, "{found:?} {epsilon}");
            assert!(found.lower <= epsilon + slack && epsilon - slack <= found.upper);
            assert!(found.upper - found.lower < 1e-9 * epsilon);
        }
    }

    /// A ratio that falls before it rises: two routes of `batches_own.py`, an inversion integral and a lattice.
    #[test]
    fn a_ratio_that_turns() {
        for (sigma, q, times, delta, removed, added) in [
            (2.0, 0.01, 1000.0, 1e-5, 1.204536198260, 0.806479789231),
            (1.0, 0.01, 1000.0, 1e-5, 10.3685781389, 2.93251580250),
            (3.0, 0.1, 200.0, 1e-6, 3.05308930515, 2.11910932243),
        ] {
            let law = Law::of_pair(MixtureRatio::turned(q, 1.0 / sigma));
            let sum = Composition::new(vec![Times { law, times }]);
            let remove = sum.threshold(Zone::Above, 1.0, delta).unwrap();
            let add = sum.threshold(Zone::Below, 0.0, delta).unwrap();
            for (found, truth) in [(remove.value, removed), (-add.value, added)] {
                assert!((found / truth - 1.0).abs() < 1e-11, "{sigma} {q}: {found} {truth}");
            }
            assert!(remove.upper - remove.lower < 1e-9 && add.upper - add.lower < 1e-9);
        }
    }

    /// With replacement: batches of 10 out of 1,000, up to 10 copies of the record.
    #[test]
    fn several_strands() {
        let choose = |k: u32| (0..k).fold(1.0, |c, i| c * f64::from(10 - i) / f64::from(i + 1));
        // Seven copies and more have probability 1e-19 and are given away by the caller.
        let shares: Vec<(f64, f64)> = (1..=6)
            .map(|j| {
                let p = choose(j) * 1e-3f64.powi(j as i32) * 0.999f64.powi(10 - j as i32);
                (p, 2.0 * f64::from(j) / 4.0)
            })
            .collect();
        let law = Law::symmetric(&shares, 1e-15);
        let sum = Composition::new(vec![Times { law, times: 500.0 }]);
        // The reference's epsilon at delta 1e-5, 12 digits.
        let found = sum.average(Zone::Above, 1.0, 0.511176794412437).unwrap();
        assert!(found.lower <= 1e-5 * (1.0 + 1e-8) && 1e-5 * (1.0 - 1e-8) <= found.upper);
        assert!(found.upper - found.lower < 1e-5 * found.value, "{found:?}");
    }
}
