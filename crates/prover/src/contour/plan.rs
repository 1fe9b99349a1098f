//! Where to put the line, how far and how densely to sample it: chosen in doubles, for one threshold.

use super::Composition;
use super::law::{Angles, LawChoice, RoughLaw};

/// Which side of the poles at 0 and 1 the line is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// c < 0: E(e^t - e^Y)_+.
    Below,
    /// 0 < c < 1: E min(e^Y, e^t).
    Between,
    /// c > 1: E(e^Y - e^t)_+.
    Above,
}

/// A line and its sampling.
pub struct Plan {
    pub zone: Zone,
    pub tilt: f64,
    pub spacing: f64,
    pub nodes: usize,
    /// Tilts at which the aliases are bounded; None: the pole itself, where M = 1.
    pub alias_tilts: [Option<f64>; 2],
    /// Angles of the paths for the nodes left out, for each law.
    pub(super) tail_angles: Vec<Angles>,
    /// Bits of each step's transform.
    pub bits: f64,
    pub(super) choices: Vec<LawChoice>,
    /// Rotations that the sums take.
    pub work: f64,
}

/// A line of which it is not yet said how far it goes.
pub(super) struct Endless {
    zone: Zone,
    pub(super) tilt: f64,
    spacing: f64,
    alias_tilts: [Option<f64>; 2],
    /// Nats below the peak that have to be reached.
    pub(super) depth: f64,
}

impl Endless {
    /// The plan whose nodes reach to `far`.
    pub(super) fn until<const N: usize>(
        self,
        composition: &Composition<N>,
        roughs: &[RoughLaw],
        far: f64,
    ) -> Option<Plan> {
        let steps: f64 = roughs.iter().map(|rough| rough.times).sum();
        let bits = self.depth / std::f64::consts::LN_2 + steps.max(1.0).log2() + 6.0;
        let nodes = (far / self.spacing).ceil();
        if !(nodes < 2e6) {
            return None;
        }
        let choices: Vec<LawChoice> = roughs
            .iter()
            .zip(&composition.laws)
            .map(|(rough, law)| LawChoice::new(rough, law, self.tilt, self.spacing * nodes, bits))
            .collect::<Option<_>>()?;
        let work = nodes * choices.iter().map(LawChoice::points).sum::<f64>();
        Some(Plan {
            zone: self.zone,
            tilt: self.tilt,
            spacing: self.spacing,
            nodes: nodes as usize,
            alias_tilts: self.alias_tilts,
            tail_angles: Vec::new(),
            bits,
            choices,
            work,
        })
    }
}

struct Search<'a> {
    roughs: &'a [RoughLaw],
    gaussian: f64,
    threshold: f64,
}

impl Search<'_> {
    /// ln M(c).
    fn log_moment(&self, c: f64) -> f64 {
        let steps: f64 = self.roughs.iter().map(|rough| rough.times * rough.log_moment(c)).sum();
        steps + 0.5 * c * (c - 1.0) * self.gaussian
    }

    fn log_integrand(&self, c: f64) -> f64 {
        let value = self.log_moment(c) + (1.0 - c) * self.threshold - (c * (c - 1.0)).abs().ln();
        if value.is_nan() { f64::INFINITY } else { value }
    }
}

fn tilt(zone: Zone, v: f64) -> f64 {
    short(match zone {
        Zone::Above => 1.0 + v.exp(),
        Zone::Below => -v.exp(),
        Zone::Between => 1.0 / (1.0 + (-v).exp()),
    })
}

/// A double near c with so few bits that 1 - c is one too: mirror images have the tilt 1 - c.
pub(super) fn short(c: f64) -> f64 {
    let power = 44.0 - c.abs().max(64.0).log2().ceil() + 6.0;
    (c * power.exp2()).round() / power.exp2()
}

/// The tilt of a zone at which M(c) e^((1-c) t) is about smallest.
pub fn steepest<const N: usize>(
    composition: &Composition<N>,
    roughs: &[RoughLaw],
    zone: Zone,
    threshold: f64,
) -> Option<f64> {
    let search = Search { roughs, gaussian: composition.gaussian.to_f64(), threshold };
    saddle(&search, zone).map(|(tilt, _)| tilt)
}

impl Plan {
    /// A plan for threshold t whose error is about e^log_error; None where none is affordable.
    pub fn new<const N: usize>(
        composition: &Composition<N>,
        roughs: &[RoughLaw],
        zone: Zone,
        threshold: f64,
        log_error: f64,
    ) -> Option<Self> {
        let line = Self::line(composition, roughs, zone, threshold, log_error)?;
        let search = Search { roughs, gaussian: composition.gaussian.to_f64(), threshold };
        let (far, tail_angles) =
            tail(&search, line.tilt, line.depth - log_error_base(&search, line.tilt))?;
        Some(Self { tail_angles, ..line.until(composition, roughs, far)? })
    }

    /// The line alone, without its end.
    pub(super) fn line<const N: usize>(
        composition: &Composition<N>,
        roughs: &[RoughLaw],
        zone: Zone,
        threshold: f64,
        log_error: f64,
    ) -> Option<Endless> {
        let search = Search { roughs, gaussian: composition.gaussian.to_f64(), threshold };
        let (tilt, log_peak) = saddle(&search, zone)?;
        if !log_peak.is_finite() {
            return None;
        }
        let depth = (log_peak - log_error).max(10.0) + 4.0;
        let (spacing, alias_tilts) = aliases(&search, zone, tilt, log_error)?;
        Some(Endless { zone, tilt, spacing, alias_tilts, depth })
    }

    /// Whether longer mantissas would need fewer points.
    pub fn is_cramped(&self) -> bool {
        self.choices.iter().any(LawChoice::is_cramped)
    }

    /// Bits that the arithmetic needs: those of the transforms and the growth of roundings.
    pub fn needed_bits(&self) -> f64 {
        let points = self.choices.iter().map(LawChoice::points).sum::<f64>().max(1.0);
        let lost = self.choices.iter().map(LawChoice::lost_bits).fold(0.0, f64::max);
        self.bits + lost + (self.nodes as f64 + 1.0).log2() + points.log2() + 8.0
    }
}

/// The integrand without 1/|s(s-1)|, which the tail bound does not have.
fn log_error_base(search: &Search<'_>, c: f64) -> f64 {
    search.log_integrand(c) - (search.log_moment(c) + (1.0 - c) * search.threshold)
}

/// The c of the zone where the integrand on the real axis is smallest: a convex function of c.
fn saddle(search: &Search<'_>, zone: Zone) -> Option<(f64, f64)> {
    let value = |v: f64| search.log_integrand(tilt(zone, v));
    let (low, high) = match zone {
        Zone::Between => (-12.0, 12.0),
        _ => (-14.0, 20.0),
    };
    let count = 24;
    let at = |i: i32| low + (high - low) * f64::from(i) / f64::from(count);
    let mut best = (0.0, f64::INFINITY);
    let mut risen = 0;
    for i in 0..=count {
        let here = value(at(i));
        if here < best.1 {
            best = (at(i), here);
            risen = 0;
        } else if best.1.is_finite() {
            // Convex: it does not fall again.
            risen += 1;
            if risen > 2 {
                break;
            }
        }
    }
    if !best.1.is_finite() {
        return None;
    }
    let mut step = 0.5 * (high - low) / f64::from(count);
    for _ in 0..9 {
        for v in [best.0 - step, best.0 + step] {
            let here = value(v);
            if here < best.1 {
                best = (v, here);
            }
        }
        step *= 0.5;
    }
    Some((tilt(zone, best.0), best.1))
}

/// A spacing for which aliases are below e^log_error, and the tilts that show it.
fn aliases(
    search: &Search<'_>,
    zone: Zone,
    c: f64,
    log_error: f64,
) -> Option<(f64, [Option<f64>; 2])> {
    // ln of M(c') e^((1-c')t) for a few c' on each side.
    let level = |other: f64| search.log_moment(other) + (1.0 - other) * search.threshold;
    let candidates = |up: bool| -> Vec<(Option<f64>, f64, f64)> {
        let mut all = Vec::new();
        let pole = match (zone, up) {
            (Zone::Above, false) | (Zone::Between, true) => Some((1.0, 0.0)),
            (Zone::Between, false) | (Zone::Below, true) => Some((0.0, search.threshold)),
            _ => None,
        };
        if let Some((at, log)) = pole {
            all.push((None, (at - c).abs(), log));
        }
        let room = pole.map_or(f64::INFINITY, |(at, _): (f64, f64)| (at - c).abs());
        let scale = match zone {
            Zone::Above => c - 1.0,
            Zone::Below => -c,
            Zone::Between => c.min(1.0 - c),
        };
        for part in [0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0] {
            let gap = scale * part;
            if gap < room {
                let other = short(if up { c + gap } else { c - gap });
                let gap = (other - c).abs();
                let log = level(other);
                if log.is_finite() {
                    all.push((Some(other), gap, log));
                }
            }
        }
        all
    };
    let mut period = 0.0f64;
    let mut tilts = [None; 2];
    for (index, up) in [true, false].into_iter().enumerate() {
        let mut best: Option<(f64, Option<f64>)> = None;
        for (other, gap, log) in candidates(up) {
            let needed = ((log - log_error + 1.0) / gap).max(0.7 / gap);
            if best.is_none_or(|best| needed < best.0) {
                best = Some((needed, other));
            }
        }
        let (needed, other) = best?;
        period = period.max(needed);
        tilts[index] = other;
    }
    let spacing = 2.0 * std::f64::consts::PI / period;
    // A short double, so that multiples of it are exact.
    let power = spacing.log2().floor() - 5.0;
    Some(((spacing / power.exp2()).floor() * power.exp2(), tilts))
}

/// How far the nodes have to reach for what is left out to be `depth` nats below the real point.
fn tail(search: &Search<'_>, c: f64, depth: f64) -> Option<(f64, Vec<Angles>)> {
    let shapes: Vec<_> =
        search.roughs.iter().map(|rough| rough.shapes(c)).collect::<Option<_>>()?;
    let here: f64 = search.log_moment(c);
    let left = |u: f64| -> (f64, Vec<Angles>) {
        let mut log = 0.5 * (c * (c - 1.0) - u * u) * search.gaussian - here - u.ln();
        let mut angles = Vec::new();
        for (rough, shape) in search.roughs.iter().zip(&shapes) {
            let (tail, found) = rough.tail(c, u, shape);
            angles.push(found);
            log += rough.times * tail;
        }
        (log, angles)
    };
    let (mut low, mut high) = (0.0, 1.0f64.max(c.abs() * 0.01));
    // Start where something happens: doubling is cheap, but each look costs milliseconds.
    while left(high).0 > -depth {
        low = high;
        high *= 2.0;
        if high > 1e13 {
            return None;
        }
    }
    if low == 0.0 {
        let mut down = high;
        while down > 1e-6 && left(down * 0.5).0 <= -depth {
            down *= 0.5;
        }
        (low, high) = (down * 0.5, down);
    }
    for _ in 0..4 {
        let middle = 0.5 * (low + high);
        if left(middle).0 > -depth { low = middle } else { high = middle }
    }
    let angles = left(high).1;
    Some((high, angles))
}
