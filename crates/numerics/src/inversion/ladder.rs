//! Lines that serve many thresholds. The tilts of lines stand on a ladder, and which rung serves a threshold is a
//! function of the laws and the threshold alone; so is everything that is kept. What was asked before changes
//! the cost of an answer and nothing else.

use super::line::{Line, LineRequest, Obstacle};
use super::rough::{Rough, Saddle, Start};
use super::solve::Times;
use crate::contour::Zone;
use crate::elementary::{exp, ln};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Rungs per unit of the parameter of tilts, and the last one on either side.
const PER_UNIT: f64 = 10.0;
const LAST: i32 = 140;
/// Lines that are kept.
const KEPT: usize = 64;
/// Natural logarithm of the cancellation that is accepted for a shorter period, and for any line.
const CANCELLATION: f64 = 7.0;
const MOST_CANCELLATION: f64 = 14.0;

/// How good a line is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tolerance {
    Loose,
    Tight,
}

impl Tolerance {
    /// Minus the natural logarithm of the part of a value to which each of its errors is pushed.
    fn digits(self) -> f64 {
        match self {
            Self::Loose => 9.0,
            Self::Tight => 29.0,
        }
    }
}

type Made<T> = Result<T, Obstacle>;
/// By zone, rung and tolerance.
type Lines = BTreeMap<(u8, i32, Tolerance), Made<Arc<Line>>>;

/// What is kept of a composition.
#[derive(Debug, Default)]
pub(super) struct Ladder {
    start: OnceLock<Start>,
    saddles: Mutex<BTreeMap<(u8, i32), Made<Saddle>>>,
    lines: Mutex<Lines>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// c of a rung, rising with it.
pub(super) fn tilt(zone: Zone, rung: i32) -> f64 {
    let y = f64::from(rung) / PER_UNIT;
    match zone {
        Zone::Above => 1.0 + exp(y),
        Zone::Between => 1.0 / (1.0 + exp(-y)),
        Zone::Below => -exp(-y),
    }
}

impl Ladder {
    fn rough<'a>(&self, parts: &'a [Times]) -> Rough<'a> {
        Rough::new(parts, self.start.get_or_init(|| Start::new(parts)))
    }

    pub(super) fn saddle(&self, parts: &[Times], zone: Zone, rung: i32) -> Made<Saddle> {
        let key = (zone as u8, rung);
        if let Some(known) = lock(&self.saddles).get(&key) {
            return *known;
        }
        let made = self.rough(parts).saddle(tilt(zone, rung));
        lock(&self.saddles).insert(key, made);
        made
    }

    /// The last rung at which a function of the saddle, rising with the rung, is at most 0.
    pub(super) fn find(
        &self,
        parts: &[Times],
        zone: Zone,
        function: impl Fn(&Saddle) -> f64,
    ) -> Made<(i32, Saddle)> {
        // Beyond where numbers end the function is far from zero, on the side of that end.
        let far = if zone == Zone::Below { -1e3 } else { 1e3 };
        let look = |rung: i32| match self.saddle(parts, zone, rung) {
            Ok(saddle) => Some(function(&saddle)).filter(|value| value.is_finite()).unwrap_or(far),
            Err(_) => far,
        };
        // Walk until the sign changes, then close in with secants and halves in turn.
        let mut rung = 5;
        let mut value = look(rung);
        let rising = value <= 0.0;
        let mut before = (rung, value);
        let mut step = 10;
        loop {
            rung = (rung + if rising { step } else { -step }).clamp(-LAST, LAST);
            value = look(rung);
            if (value > 0.0) == rising || rung.abs() == LAST {
                break;
            }
            before = (rung, value);
            step += 2;
        }
        let (mut low, mut high) =
            if rising { (before, (rung, value)) } else { ((rung, value), before) };
        let mut round = 0;
        while high.0 - low.0 > 1 {
            let width = f64::from(high.0 - low.0);
            let part = if round % 3 == 2 { 0.5 } else { -low.1 / (high.1 - low.1) };
            let middle = low.0 + ((part * width) as i32).clamp(1, high.0 - low.0 - 1);
            let here = (middle, look(middle));
            if here.1 <= 0.0 {
                low = here
            } else {
                high = here
            }
            round += 1;
        }
        let found = self.saddle(parts, zone, low.0).map(|saddle| (low.0, saddle));
        found.or_else(|_| self.saddle(parts, zone, high.0).map(|saddle| (high.0, saddle)))
    }

    /// The line of a rung, for thresholds between its saddle's and the next one's.
    pub(super) fn line(
        &self,
        parts: &[Times],
        zone: Zone,
        rung: i32,
        tolerance: Tolerance,
    ) -> Made<Arc<Line>> {
        let key = (zone as u8, rung, tolerance);
        if let Some(known) = lock(&self.lines).get(&key) {
            return known.clone();
        }
        let made = self.make(parts, zone, rung, tolerance.digits()).map(Arc::new);
        let mut lines = lock(&self.lines);
        if lines.len() >= KEPT {
            lines.clear();
        }
        lines.insert(key, made.clone());
        made
    }

    fn make(&self, parts: &[Times], zone: Zone, rung: i32, tolerance: f64) -> Made<Line> {
        let saddle = self.saddle(parts, zone, rung)?;
        let mut rough = self.rough(parts);
        let guess = saddle.log_value;
        let line = line(parts, &mut rough, zone, &saddle, guess, tolerance)?;
        // Errors are parts of the value: where that is much smaller than guessed, again.
        let value = line.value(saddle.t);
        let log_value = value.log_scale + ln(value.mantissa);
        if log_value < guess - 2.0
            && let Ok(other) = self::line(parts, &mut rough, zone, &saddle, log_value, tolerance)
            && other.value(saddle.t).relative() < value.relative()
        {
            return Ok(other);
        }
        Ok(line)
    }
}

/// A line for thresholds near the saddle's, at the saddle or at a smaller tilt: a saddle that leans on rare
/// far jumps has aliases that need a long period, and a few digits of cancellation save most of it.
fn line(
    parts: &[Times],
    rough: &mut Rough<'_>,
    zone: Zone,
    saddle: &Saddle,
    log_value: f64,
    tolerance: f64,
) -> Made<Line> {
    let mut within = |most: f64| {
        let place = place(rough, zone, saddle, log_value, tolerance, most)?;
        Line::new(parts, rough, &place)
    };
    within(0.0).or_else(|_| within(CANCELLATION)).or_else(|_| within(MOST_CANCELLATION))
}

/// The saddle, or the smaller tilt with the shortest period that loses no more than `most` digits (as a
/// natural logarithm) to cancellation.
fn place(
    rough: &mut Rough<'_>,
    zone: Zone,
    saddle: &Saddle,
    log_value: f64,
    tolerance: f64,
    most: f64,
) -> Made<LineRequest> {
    let base = match zone {
        Zone::Above => 1.0,
        Zone::Between => saddle.c,
        Zone::Below => 0.0,
    };
    let mut best: Option<(f64, LineRequest)> = None;
    for factor in [1.0, 0.85, 0.7, 0.55, 0.42, 0.3] {
        let Ok(found) = rough.saddle(base + (saddle.c - base) * factor) else { continue };
        let log_size = log_value - (found.level - found.c * saddle.t);
        if best.is_some() && (log_size < -most || base == saddle.c) {
            break;
        }
        let place = LineRequest {
            zone,
            c: found.c,
            t: saddle.t,
            spread: found.spread,
            log_size: log_size.clamp(-30.0, 0.0),
            tolerance,
        };
        if most == 0.0 {
            return Ok(place);
        }
        let length = place.period(rough);
        // Not worth the digits for a little.
        if best.as_ref().is_none_or(|known| length < 0.8 * known.0) {
            best = Some((length, place));
        }
    }
    best.map(|(_, place)| place).ok_or(Obstacle::TooFine)
}
