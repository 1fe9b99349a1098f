//! Averages at a threshold, and the threshold for an average.

use super::Part;
use super::grid::TooFine;
use super::hard::{self, Choice};
use super::line::{Line, Obstacle, Value, Zone};
use super::saddle::{Coarse, Saddle};
use super::tries::Tries;
use super::windows::Windows;
use crate::elementary::{exp, exp_m1, ln};
use std::sync::{Arc, Mutex};

/// A number with certified ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ends {
    pub lower: f64,
    pub value: f64,
    pub upper: f64,
}

impl Ends {
    /// A value with its errors; what underflows keeps an upper end above zero, and what is not a
    /// number says nothing.
    fn of(value: &Value, log_factor: f64) -> Self {
        let log = value.log_scale + log_factor;
        let scale = exp(log);
        // The sum of the logarithms is rounded once, and its exponential.
        let slip = f64::EPSILON * (4.0 + log.abs());
        let (lower, upper) = (value.mantissa - value.below, value.mantissa + value.above);
        let (lower, upper) = (lower * scale, upper * scale);
        if lower.is_nan() || upper.is_nan() {
            return Self { lower: 0.0, value: value.mantissa * scale, upper: f64::INFINITY };
        }
        Self {
            lower: (lower * (1.0 - slip)).max(0.0),
            value: value.mantissa * scale,
            upper: (upper * (1.0 + slip)).max(f64::MIN_POSITIVE),
        }
    }

    fn narrow(&self) -> bool {
        self.upper - self.lower <= NARROW * self.value.abs()
    }

    /// Both enclosures hold, so their intersection does; if it is empty, neither is to be trusted.
    pub(super) fn meet(self, other: Self) -> Result<Self, Obstacle> {
        let (lower, upper) = (self.lower.max(other.lower), self.upper.min(other.upper));
        if !(lower <= upper) {
            return Err(Obstacle::Contradiction);
        }
        let best = if other.upper - other.lower < self.upper - self.lower {
            other.value
        } else {
            self.value
        };
        Ok(Self { lower, value: best.clamp(lower, upper), upper })
    }

    fn plus(self, x: f64) -> Self {
        let slack = |y: f64| 2.0 * f64::EPSILON * (y.abs() + x.abs());
        Self {
            lower: self.lower + x - slack(self.lower),
            value: self.value + x,
            upper: self.upper + x + slack(self.upper),
        }
    }

    fn times(self, x: f64) -> Self {
        let (a, b) = (self.lower * x, self.upper * x);
        let (a, b) = if a <= b { (a, b) } else { (b, a) };
        Self {
            lower: a - 2.0 * f64::EPSILON * a.abs(),
            value: self.value * x,
            upper: b + 2.0 * f64::EPSILON * b.abs(),
        }
    }

    fn at_least(self, x: f64) -> Self {
        Self { lower: self.lower.max(x), value: self.value.max(x), upper: self.upper.max(x) }
    }
}

/// The sum of log ratios over all steps of all parts, for the questions that make up one answer.
///
/// Lines are kept: a later question near an earlier one costs only the sum over its nodes. So what
/// is found depends on what was asked before. Who wants answers that depend on the question alone
/// asks each of a `session` of its own; those share what depends on nothing but the threshold.
#[derive(Debug)]
pub struct SumOfLogRatios {
    parts: Arc<[Part]>,
    shared: Arc<Shared>,
    lines: Mutex<Vec<Arc<Line>>>,
    masked: Mutex<Vec<Arc<Windows>>>,
    /// The masks that worked last.
    hint: Mutex<Option<Choice>>,
    /// Thresholds for which masks were looked for.
    masks: Tries,
    /// Thresholds at which a line of each zone was looked for.
    plain: [Tries; 3],
}

/// Lines that were made for a threshold by nothing but the threshold (and the masks tried first):
/// whoever asks for one again gets the same one.
#[derive(Debug, Default)]
struct Shared {
    plain: Mutex<Vec<Made<Zone, Line>>>,
    masked: Mutex<Vec<Made<Option<Choice>, Windows>>>,
}

/// The threshold, what else it was made from, and what came of it.
type Made<K, L> = (f64, K, Result<Arc<L>, Obstacle>);

/// The line for a key: the one made before, or a new one, which is kept.
fn made<K: PartialEq + Copy, L>(
    kept: &Mutex<Vec<Made<K, L>>>,
    (t, key): (f64, K),
    nodes: impl Fn(&L) -> usize,
    make: impl FnOnce() -> Result<L, Obstacle>,
) -> Result<Arc<L>, Obstacle> {
    let same = |at: f64, of: &K| at.to_bits() == t.to_bits() && *of == key;
    let known = kept.lock().ok().and_then(|kept| {
        kept.iter().find(|(at, of, _)| same(*at, of)).map(|(_, _, line)| line.clone())
    });
    if let Some(line) = known {
        return line;
    }
    let line = make().map(Arc::new);
    if let Ok(mut kept) = kept.lock() {
        kept.push((t, key, line.clone()));
        let size = |line: &Result<Arc<L>, Obstacle>| line.as_ref().map_or(0, |line| nodes(line));
        let mut total: usize = kept.iter().map(|(_, _, line)| size(line)).sum();
        while kept.len() > MOST_SHARED || (total > MOST_KEPT_NODES && kept.len() > 1) {
            total -= size(&kept.remove(0).2);
        }
    }
    line
}

/// Lines that sessions share.
const MOST_SHARED: usize = 16;
/// Kept lines; more would only be searched in vain.
const MOST_LINES: usize = 12;
const MOST_MASKED: usize = 6;
/// Nodes of all kept lines of one kind, each of 32 bytes.
const MOST_KEPT_NODES: usize = 150_000;
/// An enclosure this narrow (relative) is not worth a second route; its value is far closer to
/// the truth, since the round-off in it is a worst case.
const NARROW: f64 = 3e-7;
/// A kept line answers if its error is below this part of the value.
const GOOD_ENOUGH: f64 = 3e-11;

impl From<TooFine> for Obstacle {
    fn from(_: TooFine) -> Self {
        Obstacle::TooFine
    }
}

impl SumOfLogRatios {
    pub fn new(parts: Vec<Part>) -> Self {
        Self::with(parts.into(), Arc::default())
    }

    /// The same sum without a memory of what was asked.
    #[must_use]
    pub fn session(&self) -> Self {
        Self::with(Arc::clone(&self.parts), Arc::clone(&self.shared))
    }

    fn with(parts: Arc<[Part]>, shared: Arc<Shared>) -> Self {
        Self {
            parts,
            shared,
            lines: Mutex::new(Vec::new()),
            masked: Mutex::new(Vec::new()),
            hint: Mutex::new(None),
            masks: Tries::default(),
            plain: Default::default(),
        }
    }

    fn keep(&self, line: Arc<Line>) -> Arc<Line> {
        if let Ok(mut lines) = self.lines.lock() {
            lines.push(Arc::clone(&line));
            forget(&mut lines, MOST_LINES, Line::nodes);
        }
        line
    }

    /// A fresh masked line for t, which is kept.
    fn masked_line(&self, t: f64) -> Result<Arc<Windows>, Obstacle> {
        if self.masks.in_vain(t, self.bottom()) {
            return Err(Obstacle::SlowDecay);
        }
        let hint = self.hint.lock().map(|hint| *hint).unwrap_or(None);
        let found = made(&self.shared.masked, (t, hint), Windows::nodes, || {
            hard::line(&self.parts, t, hint)
        });
        self.masks.remember(t, found.is_ok());
        let line = found?;
        if let Ok(mut known) = self.hint.lock() {
            *known = line.choice();
        }
        if let Ok(mut lines) = self.masked.lock() {
            lines.push(Arc::clone(&line));
            forget(&mut lines, MOST_MASKED, Windows::nodes);
        }
        Ok(line)
    }

    /// The smallest total there can be, rounded down; -infinity where there is none.
    fn bottom(&self) -> f64 {
        super::smallest(&self.parts)
    }

    fn kept_masked(&self, t: f64) -> Option<Value> {
        let lines: Vec<Arc<Windows>> = self.masked.lock().ok()?.iter().rev().cloned().collect();
        lines.iter().find_map(|line| {
            let value = line.value(t);
            let limit = (3.0 * line.error()).clamp(1e-9, NARROW);
            (value.relative_error() <= limit).then_some(value)
        })
    }

    /// The value at t from a kept line, if one is accurate there.
    fn kept(&self, zone: Zone, t: f64) -> Option<Value> {
        let lines: Vec<Arc<Line>> = self.lines.lock().ok()?.iter().rev().cloned().collect();
        lines.iter().filter(|line| line.zone() == zone && line.near(t)).find_map(|line| {
            let value = line.value(t);
            // A line of its own would not be much better than this one was at home.
            let limit = (3.0 * line.error()).clamp(GOOD_ENOUGH, NARROW);
            (value.relative_error() <= limit).then_some(value)
        })
    }

    /// e^{growth t} E f(Y - t), f by zone, with certified ends. Growth is 0 or 1.
    pub fn average(&self, zone: Zone, growth: f64, t: f64) -> Result<Ends, Obstacle> {
        match self.plain_average(zone, growth, t) {
            Ok(ends) if ends.narrow() || ends.upper <= 1e-300 => Ok(ends),
            plain => match (self.masked_average(zone, growth, t), plain) {
                (Ok(masked), Ok(plain)) => plain.meet(masked),
                (Ok(masked), Err(_)) => Ok(masked),
                (Err(_), plain) => plain,
            },
        }
    }

    /// By masks: the average above, from which the other two follow by E (e^{Y-t} - 1) = e^{-t} - 1.
    pub(super) fn masked_average(&self, zone: Zone, growth: f64, t: f64) -> Result<Ends, Obstacle> {
        let value = match self.kept_masked(t) {
            Some(value) => value,
            None => self.masked_line(t)?.value(t),
        };
        // In units of e^t E f, that is, growth 1.
        let above = Ends::of(&value, 0.0);
        let whole = match zone {
            Zone::Above => above,
            // min(e^y, 1) = e^y - (e^y - 1)_+
            Zone::Between => above.times(-1.0).plus(1.0),
            // (1 - e^y)_+ = (e^y - 1)_+ + 1 - e^y
            Zone::Below => above.plus(exp_m1(t)),
        };
        Ok(if growth == 1.0 { whole } else { whole.times(exp(-t)) }.at_least(0.0))
    }

    pub(super) fn plain_average(&self, zone: Zone, growth: f64, t: f64) -> Result<Ends, Obstacle> {
        let value = match self.kept(zone, t) {
            Some(value) => value,
            None => {
                let tries = &self.plain[zone as usize];
                if tries.in_vain(t, self.bottom()) {
                    return Err(Obstacle::SlowDecay);
                }
                let fresh = self.fresh(zone, t);
                tries.remember(t, fresh.as_ref().is_ok_and(|value| accurate(value).is_ok()));
                fresh?
            }
        };
        accurate(&value)?;
        Ok(Ends::of(&value, growth * t))
    }

    /// The value at t from a line of its own.
    fn fresh(&self, zone: Zone, t: f64) -> Result<Value, Obstacle> {
        let line = made(&self.shared.plain, (t, zone), Line::nodes, || {
            let mut coarse = Coarse::new(&self.parts)?;
            let saddle = coarse.at_threshold(zone, t)?;
            self.line(&mut coarse, zone, &saddle, t)
        })?;
        Ok(self.keep(line).value(t))
    }

    fn line(
        &self,
        coarse: &mut Coarse,
        zone: Zone,
        saddle: &Saddle,
        t: f64,
    ) -> Result<Line, Obstacle> {
        let (c, spread) = (saddle.c, saddle.spread());
        let (low, high) = zone.ends();
        let farthest = coarse.farthest(saddle, t, (c + 17.0 / spread).min(high));
        coarse.cover(farthest.max(1.25 * c).min(high))?;
        coarse.cover((c - 17.0 / spread).max(low))?;
        Line::new(&self.parts, coarse.grids(), zone, (c, farthest), t, saddle.variance)
    }

    /// The threshold t at which e^{growth t} E f(Y - t) = target, with certified ends.
    /// The average must fall as t rises (`Above` with growth 1) or rise with t (`Below`, growth 0).
    pub fn threshold(&self, zone: Zone, growth: f64, target: f64) -> Result<Ends, Obstacle> {
        match self.plain_threshold(zone, growth, target) {
            Ok(ends) if ends.narrow() => Ok(ends),
            plain => {
                let masked = match zone {
                    Zone::Above => self.masked_threshold(target, plain.as_ref().ok()),
                    _ => self.stepped_threshold(zone, growth, target),
                };
                match (masked, plain) {
                    (Ok(masked), Ok(plain)) => plain.meet(masked),
                    (Ok(masked), Err(_)) => Ok(masked),
                    (Err(_), plain) => plain,
                }
            }
        }
    }

    /// Newton on log delta with a fresh masked line at each step.
    fn masked_threshold(&self, target: f64, start: Option<&Ends>) -> Result<Ends, Obstacle> {
        let log_target = ln(target);
        let mut t = match start {
            Some(ends) => ends.value,
            None if hard::many_jumps(&self.parts) => {
                Coarse::new(&self.parts)?.at_value(Zone::Above, 1.0, log_target)?.t
            }
            None => hard::guess(&self.parts, log_target),
        };
        if !(t.is_finite() && t > 0.0) {
            t = hard::guess(&self.parts, log_target);
        }
        for _ in 0..16 {
            let line = self.masked_line(t)?;
            let value = line.value(t);
            let slope = value.slope / value.mantissa;
            let miss = ln(value.mantissa) + value.log_scale - log_target;
            let next = t - miss / slope;
            if (next - t).abs() < 0.02 * t {
                // Close: finish on this line.
                let mut t = next;
                for _ in 0..20 {
                    let value = line.value(t);
                    let step = (ln(value.mantissa) + value.log_scale - log_target)
                        / (value.slope / value.mantissa);
                    t -= step;
                    if !(step.abs() > 1e-15 * t.abs()) {
                        break;
                    }
                }
                let value = line.value(t);
                if value.relative_error() <= 1e-4 {
                    let slope = value.slope / value.mantissa;
                    return Ok(ends(&|t| line.value(t), 0.0, log_target, t, &value, slope));
                }
                return Err(Obstacle::SlowDecay);
            }
            // Nothing above zero is wanted where delta(0) is already small enough.
            if next < 1e-3 * t
                && self.masked_average(Zone::Above, 1.0, 0.0).is_ok_and(|e| e.upper <= target)
            {
                return Ok(Ends { lower: 0.0, value: 0.0, upper: 0.0 });
            }
            // Losses live on a logarithmic scale here: never move by more than a factor.
            t = if next.is_finite() { next.clamp(t / 3.0, 3.0 * t) } else { t / 3.0 };
        }
        Err(Obstacle::SlowDecay)
    }

    /// False position on certified averages (rising with t), for the order that seldom matters.
    fn stepped_threshold(&self, zone: Zone, growth: f64, target: f64) -> Result<Ends, Obstacle> {
        let bottom = self.bottom();
        if !bottom.is_finite() {
            return Err(Obstacle::SlowDecay);
        }
        // The answer lies in (bottom, 0]; each evaluation moves a certified end inwards.
        let mut ends = Ends { lower: bottom, value: bottom, upper: 0.0 };
        let Ok(at_zero) = self.average(zone, growth, 0.0) else { return Ok(ends) };
        if at_zero.upper <= target {
            return Ok(Ends { lower: 0.0, value: 0.0, upper: 0.0 });
        }
        let (mut low, mut high) = ((bottom, -target), (0.0, at_zero.value - target));
        let mut side = 0;
        for _ in 0..24 {
            if high.0 - low.0 <= 1e-13 * bottom.abs() {
                break;
            }
            let t = ((low.0 * high.1 - high.0 * low.1) / (high.1 - low.1)).clamp(low.0, high.0);
            let Ok(here) = self.average(zone, growth, t) else { break };
            if here.upper <= target {
                ends.lower = ends.lower.max(t);
            }
            if here.lower >= target {
                ends.upper = ends.upper.min(t);
            }
            ends.value = t;
            let miss = here.value - target;
            let scatter = here.upper - here.lower;
            if miss.abs() <= 4.0 * scatter {
                // As good as it gets: step to either side until the ends are certain.
                let slope = ((high.1 - low.1) / (high.0 - low.0)).max(f64::MIN_POSITIVE);
                let mut step = (8.0 * scatter / slope).max(1e-14 * bottom.abs());
                for _ in 0..12 {
                    let (left, right) = ((t - step).max(bottom), (t + step).min(0.0));
                    if ends.lower < left
                        && self.average(zone, growth, left).is_ok_and(|e| e.upper <= target)
                    {
                        ends.lower = left;
                    }
                    if ends.upper > right
                        && self.average(zone, growth, right).is_ok_and(|e| e.lower >= target)
                    {
                        ends.upper = right;
                    }
                    if ends.lower >= left && ends.upper <= right {
                        break;
                    }
                    step *= 4.0;
                }
                break;
            }
            if miss > 0.0 {
                high = (t, miss);
                low.1 *= if side == 1 { 0.5 } else { 1.0 };
                side = 1;
            } else {
                low = (t, miss);
                high.1 *= if side == -1 { 0.5 } else { 1.0 };
                side = -1;
            }
        }
        ends.value = ends.value.clamp(ends.lower, ends.upper);
        Ok(ends)
    }

    fn plain_threshold(&self, zone: Zone, growth: f64, target: f64) -> Result<Ends, Obstacle> {
        let log_target = ln(target);
        let mut coarse = Coarse::new(&self.parts)?;
        let mut saddle = coarse.at_value(zone, growth, log_target)?;
        let mut t = saddle.t;
        for _ in 0..4 {
            let line = self.keep(Arc::new(self.line(&mut coarse, zone, &saddle, t)?));
            let start = t;
            let (mut value, mut slope) = (line.value(t), 0.0);
            for _ in 0..40 {
                // Far from the answer a rough value leads to it.
                if !(value.relative_error() <= 0.1) {
                    return Err(Obstacle::SlowDecay);
                }
                let miss = ln(value.mantissa) + value.log_scale + growth * t - log_target;
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
            // A billion round-offs may hide the digits of the average where they hide none of the threshold.
            let error = value.relative_error();
            let sharp = error <= 0.1 && error <= 0.3 * NARROW * (slope * t).abs();
            if (t - start).abs() < 0.5 * spread && (sharp || accurate(&value).is_ok()) {
                return Ok(ends(&|t| line.value(t), growth, log_target, t, &value, slope));
            }
            saddle = coarse.at_threshold(zone, t)?;
        }
        Err(Obstacle::SlowDecay)
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }
}

/// Drops the oldest lines until few enough, with few enough nodes, are left.
fn forget<L>(lines: &mut Vec<Arc<L>>, most: usize, nodes: impl Fn(&L) -> usize) {
    let mut total: usize = lines.iter().map(|line| nodes(line)).sum();
    while lines.len() > most || (total > MOST_KEPT_NODES && lines.len() > 1) {
        total -= nodes(&lines.remove(0));
    }
}

/// Steps away from t until the certified average is on the right side of the target.
fn ends(
    at: &dyn Fn(f64) -> Value,
    growth: f64,
    log_target: f64,
    t: f64,
    value: &Value,
    slope: f64,
) -> Ends {
    // Three numbers are added, one of which is a logarithm like the target's.
    let slip = |v: &Value, t: f64| {
        let size = v.log_scale.abs() + (growth * t).abs() + log_target.abs();
        8.0 * f64::EPSILON * (1.0 + size + ln(v.mantissa).abs())
    };
    let high_side = |t: f64| {
        let v = at(t);
        ln(v.mantissa + v.above) + v.log_scale + growth * t + slip(&v, t)
    };
    let low_side = |t: f64| {
        let v = at(t);
        ln(v.mantissa - v.below) + v.log_scale + growth * t - slip(&v, t)
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

/// A value is of use when its error is a small part of it.
fn accurate(value: &Value) -> Result<(), Obstacle> {
    if value.relative_error() <= 1e-4 { Ok(()) } else { Err(Obstacle::SlowDecay) }
}
