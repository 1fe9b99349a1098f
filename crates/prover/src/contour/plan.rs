//! Where to put the line, how far and how densely to sample it: chosen in doubles, for one threshold.

use super::Composition;
use super::law::LawChoice;
use super::rough_law::{Angles, RoughLaw};

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

/// Work for one node of one law beside its sums, in rotations.
pub(super) const NODE: f64 = 200.0;

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
    /// Points of all sums, and the bits that a path off the axis loses.
    pub(super) points: f64,
    pub(super) lost_bits: f64,
    /// Rotations that the sums take.
    pub work: f64,
}

/// A line of which it is not yet said how far it goes.
pub(super) struct Endless {
    pub(super) zone: Zone,
    pub(super) tilt: f64,
    pub(super) spacing: f64,
    pub(super) alias_tilts: [Option<f64>; 2],
    /// Nats below the peak that have to be reached.
    pub(super) depth: f64,
}

impl Endless {
    /// Bits of each step's transform.
    pub(super) fn bits(&self, roughs: &[RoughLaw]) -> f64 {
        let steps: f64 = roughs.iter().map(|rough| rough.times).sum();
        self.depth / std::f64::consts::LN_2 + steps.max(1.0).log2() + 6.0
    }

    /// The plan whose nodes reach to `far`.
    pub(super) fn until<const N: usize>(
        self,
        composition: &Composition<N>,
        roughs: &[RoughLaw],
        far: f64,
    ) -> Option<Plan> {
        let bits = self.bits(roughs);
        let nodes = (far / self.spacing).ceil();
        if !(nodes < 2e6) {
            return None;
        }
        let choices: Vec<LawChoice> = roughs
            .iter()
            .zip(&composition.laws)
            .map(|(rough, law)| {
                let most = (self.spacing * nodes, nodes as usize);
                LawChoice::new(rough, law, self.tilt, most, bits)
            })
            .collect::<Option<_>>()?;
        // A node's power, kernel and turn, and its sums.
        let sums = choices.iter().map(|choice| choice.work(nodes as usize, bits)).sum::<f64>();
        let work = nodes * NODE * roughs.len() as f64 + sums;
        Some(Plan {
            zone: self.zone,
            tilt: self.tilt,
            spacing: self.spacing,
            nodes: nodes as usize,
            alias_tilts: self.alias_tilts,
            tail_angles: Vec::new(),
            bits,
            points: choices.iter().map(LawChoice::points).sum(),
            lost_bits: choices.iter().map(LawChoice::lost_bits).fold(0.0, f64::max),
            choices,
            work,
        })
    }
}

pub(super) struct Search<'a> {
    pub(super) roughs: &'a [RoughLaw],
    pub(super) gaussian: f64,
    pub(super) threshold: f64,
    /// ln of the transform at a real point, where it is not that of the whole.
    pub(super) other: Option<&'a dyn Fn(f64) -> f64>,
}

impl<'a> Search<'a> {
    fn new<const N: usize>(
        composition: &Composition<N>,
        roughs: &'a [RoughLaw],
        threshold: f64,
    ) -> Self {
        Self { roughs, gaussian: composition.gaussian.to_f64(), threshold, other: None }
    }

    /// ln M(c).
    fn log_moment(&self, c: f64) -> f64 {
        if let Some(other) = self.other {
            return other(c);
        }
        let steps: f64 = self.roughs.iter().map(|rough| rough.times * rough.log_moment(c)).sum();
        steps + 0.5 * c * (c - 1.0) * self.gaussian
    }

    pub(super) fn log_integrand(&self, c: f64) -> f64 {
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
pub fn short(c: f64) -> f64 {
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
    let search = Search::new(composition, roughs, threshold);
    saddle(&search, zone).map(|(tilt, _)| tilt)
}

/// ln of the least bound by one moment on a zone's mean, about.
pub fn log_bound<const N: usize>(
    composition: &Composition<N>,
    roughs: &[RoughLaw],
    zone: Zone,
    threshold: f64,
) -> Option<f64> {
    let search = Search::new(composition, roughs, threshold);
    let (tilt, _) = saddle(&search, zone)?;
    let level = search.log_moment(tilt) + (1.0 - tilt) * threshold;
    let less = |x: f64| x * x.abs().ln();
    Some(level + if zone == Zone::Between { 0.0 } else { less(tilt - 1.0) - less(tilt) })
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
        let search = Search::new(composition, roughs, threshold);
        let mut line = Self::line(&search, zone, log_error)?;
        let reach = |line: &Endless| {
            tail(&search, line.tilt, line.depth - log_error_base(&search, line.tilt))
        };
        let (mut far, mut tail_angles) = reach(&line)?;
        if far / line.spacing > 2000.0 {
            // Far jumps make M explode just beyond the saddle: a line at some distance has fewer nodes.
            for part in [0.98, 0.93, 0.85, 0.7, 0.5, 0.3] {
                let Some(other) = Self::nearer(&search, &line, part, log_error) else { continue };
                if far / other.spacing < 0.6 * far / line.spacing
                    && let Some((reached, angles)) = reach(&other)
                    && reached / other.spacing < 0.7 * far / line.spacing
                {
                    (line, far, tail_angles) = (other, reached, angles);
                }
            }
        }
        Some(Self { tail_angles, ..line.until(composition, roughs, far)? })
    }

    /// The line alone, without its end.
    pub(super) fn line(search: &Search<'_>, zone: Zone, log_error: f64) -> Option<Endless> {
        let (tilt, _) = saddle(search, zone)?;
        Self::at(search, zone, tilt, log_error)
    }

    /// The line at `part` of the way from the pole to another one.
    fn nearer(search: &Search<'_>, line: &Endless, part: f64, log_error: f64) -> Option<Endless> {
        let tilt = short(match line.zone {
            Zone::Above => 1.0 + (line.tilt - 1.0) * part,
            Zone::Below => line.tilt * part,
            Zone::Between => return None,
        });
        Self::at(search, line.zone, tilt, log_error)
    }

    /// The line at a tilt.
    pub(super) fn at(
        search: &Search<'_>,
        zone: Zone,
        tilt: f64,
        log_error: f64,
    ) -> Option<Endless> {
        let log_peak = search.log_integrand(tilt);
        if !log_peak.is_finite() {
            return None;
        }
        let depth = (log_peak - log_error).max(10.0) + 4.0;
        let (spacing, alias_tilts) = aliases(search, zone, tilt, log_error)?;
        Some(Endless { zone, tilt, spacing, alias_tilts, depth })
    }

    /// Whether longer mantissas would need fewer points.
    pub fn is_cramped(&self) -> bool {
        self.choices.iter().any(LawChoice::is_cramped)
    }

    /// Bits that the arithmetic needs: those of the transforms and the growth of roundings.
    pub fn needed_bits(&self) -> f64 {
        self.bits
            + self.lost_bits
            + (self.nodes as f64 + 1.0).log2()
            + self.points.max(1.0).log2()
            + 8.0
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
pub(super) fn aliases(
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
            // Where the transform is not that of the whole, it is not 1 there.
            let known = search.other.is_none();
            let log = if known { log } else { level(at) };
            all.push(((!known).then_some(at), (at - c).abs(), log));
        }
        let room = pole.map_or(f64::INFINITY, |(at, _): (f64, f64)| (at - c).abs());
        let scale = match zone {
            Zone::Above => c - 1.0,
            Zone::Below => -c,
            Zone::Between => c.min(1.0 - c),
        };
        for part in [0.01, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0] {
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
