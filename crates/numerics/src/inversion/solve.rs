//! Averages at a threshold, and the threshold for an average.

use super::grid::{Demand, Point};
use super::law::Law;
pub use super::line::Obstacle;
use super::line::{Line, Value, cumulant, period, rough_points};
use crate::contour::{Ends, Zone};

/// A law and how many times it is taken.
#[derive(Clone, Debug)]
pub struct Times {
    pub law: Law,
    pub times: f64,
}

/// The sum of the losses of all steps.
#[derive(Clone, Debug)]
pub struct Composition {
    parts: Vec<Times>,
}

/// Natural logarithm of the cancellation that is accepted for a shorter period, and for any line.
const CANCELLATION: f64 = 7.0;
const MOST_CANCELLATION: f64 = 14.0;

/// A place on the real axis.
#[derive(Clone, Copy, Debug)]
struct Saddle {
    c: f64,
    /// The threshold whose saddle it is.
    t: f64,
    spread: f64,
    log_value: f64,
    level: f64,
}

/// Points for real tilts, made wider as needed.
struct Rough<'a> {
    parts: &'a [Times],
    points: Vec<Vec<Point>>,
    low: f64,
    high: f64,
}

impl<'a> Rough<'a> {
    fn new(parts: &'a [Times]) -> Result<Self, Obstacle> {
        let mut rough = Self { parts, points: Vec::new(), low: -8.0, high: 9.0 };
        // Rare far jumps make large tilts meaningless long before they overflow.
        while rough.high > 1.001 && !rough.sensible(rough.high) {
            rough.high = 1.0 + (rough.high - 1.0) / 1.5;
        }
        while rough.low < -0.001 && !rough.sensible(rough.low) {
            rough.low /= 1.5;
        }
        rough.build()?;
        Ok(rough)
    }

    fn sensible(&self, c: f64) -> bool {
        self.parts.iter().all(|part| Demand::new(&part.law, c, 0.0).scale < 300.0)
    }

    fn build(&mut self) -> Result<(), Obstacle> {
        self.points = self
            .parts
            .iter()
            .map(|part| rough_points(&part.law, self.low, self.high))
            .collect::<Result<_, _>>()?;
        Ok(())
    }

    fn cover(&mut self, c: f64) -> Result<(), Obstacle> {
        if (c > self.high || c < self.low) && !self.sensible(c) {
            return Err(Obstacle::TooFine);
        }
        if c > self.high {
            self.high = if self.sensible(1.5 * c) { 1.5 * c } else { c };
            self.build()
        } else if c < self.low {
            self.low = if self.sensible(1.5 * c) { 1.5 * c } else { c };
            self.build()
        } else {
            Ok(())
        }
    }

    fn level(&self, c: f64) -> f64 {
        self.parts
            .iter()
            .zip(&self.points)
            .map(|(part, points)| part.times * cumulant(points, c).0)
            .sum()
    }

    fn saddle(&mut self, c: f64) -> Result<Saddle, Obstacle> {
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
            - (c * (c - 1.0)).abs().ln()
            - (spread * (2.0 * std::f64::consts::PI).sqrt()).ln();
        Ok(Saddle { c, t, spread, log_value, level })
    }

    /// The saddle at which a function of it, rising with c within the zone, is zero.
    fn find(&mut self, zone: Zone, function: impl Fn(&Saddle) -> f64) -> Result<Saddle, Obstacle> {
        // c as a function of a parameter over the whole line.
        let place = |y: f64| match zone {
            Zone::Above => 1.0 + y.exp(),
            Zone::Between => 1.0 / (1.0 + (-y).exp()),
            Zone::Below => -(-y).exp(),
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

impl Composition {
    /// The sum over all parts.
    pub fn new(parts: Vec<Times>) -> Self {
        Self { parts }
    }

    /// e^{growth t} E f(Y - t), f by zone, with certified ends. Growth is 0 or 1.
    ///
    /// # Errors
    /// Where no line can be certified.
    pub fn average(&self, zone: Zone, growth: f64, t: f64) -> Result<Ends, Obstacle> {
        let mut rough = Rough::new(&self.parts)?;
        // Within a zone the threshold rises with the saddle.
        let saddle = rough.find(zone, |saddle| saddle.t - t)?;
        let log_value = saddle.log_value + saddle.c * (saddle.t - t);
        let line = self.line(&mut rough, zone, &saddle, t, log_value)?;
        Ok(ends_of(&line.value(t), growth * t))
    }

    /// A line for thresholds near t, at the saddle or at a smaller tilt: a saddle that leans on rare
    /// far jumps has aliases that need a long period, and a few digits of cancellation save most of it.
    fn line(
        &self,
        rough: &mut Rough<'_>,
        zone: Zone,
        saddle: &Saddle,
        t: f64,
        log_value: f64,
    ) -> Result<Line, Obstacle> {
        let at_saddle = self.line_within(rough, zone, saddle, t, log_value, 0.0);
        at_saddle
            .or_else(|_| self.line_within(rough, zone, saddle, t, log_value, CANCELLATION))
            .or_else(|_| self.line_within(rough, zone, saddle, t, log_value, MOST_CANCELLATION))
    }

    fn line_within(
        &self,
        rough: &mut Rough<'_>,
        zone: Zone,
        saddle: &Saddle,
        t: f64,
        log_value: f64,
        most: f64,
    ) -> Result<Line, Obstacle> {
        let base = match zone {
            Zone::Above => 1.0,
            Zone::Between => saddle.c,
            Zone::Below => 0.0,
        };
        let mut best: Option<(f64, Saddle, f64)> = None;
        for factor in [1.0, 0.85, 0.7, 0.55, 0.42, 0.3] {
            let Ok(place) = rough.saddle(base + (saddle.c - base) * factor) else { continue };
            let log_size = log_value - (place.level - place.c * t);
            if best.is_some() && (log_size < -most || base == saddle.c) {
                break;
            }
            let level = |c: f64| {
                if c < rough.low || c > rough.high { f64::INFINITY } else { rough.level(c) }
            };
            let length = period(zone, place.c, t, log_size, place.spread, &level);
            // Not worth the digits for a little.
            if best.as_ref().is_none_or(|known| length < 0.8 * known.0) {
                best = Some((length, place, log_size));
            }
        }
        let (_, place, log_size) = best.ok_or(Obstacle::TooFine)?;
        Line::new(&self.parts, zone, place.c, t, place.spread, log_size.max(-30.0), &|c| {
            if c < rough.low || c > rough.high { f64::INFINITY } else { rough.level(c) }
        })
    }

    /// The threshold t at which e^{growth t} E f(Y - t) = target, for an average that falls with t
    /// (`Above`, growth 1) or rises with it (`Below`, growth 0).
    ///
    /// # Errors
    /// Where no line can be certified.
    pub fn threshold(&self, zone: Zone, growth: f64, target: f64) -> Result<Ends, Obstacle> {
        let log_target = target.ln();
        let falling = zone == Zone::Above;
        let mut rough = Rough::new(&self.parts)?;
        let miss = |saddle: &Saddle| saddle.log_value + growth * saddle.t - log_target;
        let saddle =
            rough.find(zone, |saddle| if falling { -miss(saddle) } else { miss(saddle) })?;
        let mut line = self.line(&mut rough, zone, &saddle, saddle.t, saddle.log_value)?;
        let log_at = |value: &Value, t: f64, mantissa: f64| {
            if mantissa > 0.0 {
                mantissa.ln() + value.log_scale + growth * t
            } else {
                f64::NEG_INFINITY
            }
        };
        let mut t = saddle.t;
        // The saddle's own guess may be far off; the line that finds it out is made again at home.
        for _ in 0..4 {
            let home = t;
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
                let most = 0.5 * saddle.spread + 0.5;
                let mut next = t + (-off / slope).clamp(-most, most);
                if !next.is_finite() {
                    // Nothing is left of the value so far out.
                    next = if falling { t - most } else { t + most };
                }
                if !(next > low && next < high) {
                    next = match (low.is_finite(), high.is_finite()) {
                        (true, true) => 0.5 * (low + high),
                        (true, false) => low + most,
                        _ => high - most,
                    };
                }
                let step = next - t;
                t = next;
                // Down to round-off: no longer shrinking, or far below what the ends can tell.
                if step.abs() <= 1e-12 * t.abs() || (step.abs() < 1e-7 && step.abs() >= 0.5 * last)
                {
                    break;
                }
                last = step.abs();
            }
            let value = line.value(t);
            let relative = (value.below + value.above) / value.mantissa;
            if (t - home).abs() <= 0.2 * saddle.spread && relative < 1e-8 {
                break;
            }
            let next = self.line(&mut rough, zone, &saddle, t, log_target - growth * t);
            let Ok(next) = next else { break };
            line = next;
        }
        let value = line.value(t);
        let relative = (value.below + value.above) / value.mantissa;
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
    let scale = log.exp();
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
            // The value is the middle of what is certified; the ends hold the reference.
            assert!((found.value / epsilon - 1.0).abs() < 1e-7, "{found:?} {epsilon}");
            assert!(
                found.lower <= epsilon * (1.0 + 1e-11) && epsilon * (1.0 - 1e-11) <= found.upper
            );
            assert!(found.upper - found.lower < 1e-7 * epsilon);
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
