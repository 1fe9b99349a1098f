//! E(W - e^t)_+ and E(e^t - W)_+ for a product W of independent averages, by the inversion integral
//!   e^t/(2 pi i) * integral over Re s of E W^s e^{-st}/(s(s-1)) ds,
//! Re s > 1 for the first, Re s < 0 for the second. The trapezoid rule with spacing eta adds the same number at
//! thresholds t + mL, L = 2 pi/eta, times e^{smL}: positive terms, each with a Chernoff bound from a second
//! tilt. Beyond the last node U the moments are at most E W^s e^{-Q u^2}, Q = sum of 1/(2 S sigma^2), and 1/|s(s-1)|
//! is at most 1/u^2: at most E W^s e^{-Q U^2}/(pi U) is left.

use super::moments::{FULL, Known, LIGHT, MOST_ORDER, Moment};
use crate::contour::Ends;
use crate::elementary::{exp, exp_m1, ln, ln_1p, sin_cos};
use std::f64::consts::PI;
use std::sync::OnceLock;

const UNIT: f64 = f64::EPSILON / 2.0;
/// Minus the logarithm of what is left beyond the last node, and of aliases.
const DEPTH: f64 = 42.0;
/// Lines that are longer take longer than they are worth.
const MOST_NODES: f64 = 20_000.0;
const HIGHEST: f64 = 3000.0;

/// Real parts of lines to choose from: above 1, and minus those below 0.
const ABOVE: [f64; 13] = [1.12, 1.25, 1.5, 1.8, 2.25, 3.0, 4.0, 5.5, 7.5, 10.5, 15.0, 21.0, 30.0];
const BELOW: [f64; 12] = [0.5, 1.0, 1.7, 2.5, 4.0, 6.0, 9.0, 13.0, 19.0, 27.0, 40.0, 60.0];

/// Averages of this many numbers are narrow.
const MANY: f64 = 500.0;
/// Lines that are tried for a question, of those that can be had.
const MOST_TRIED: usize = 4;
/// Ends this close, relative to a value, are close enough.
const CLOSE: f64 = 1e-6;

/// Which average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Average {
    /// E(W - e^t)_+.
    Above,
    /// E(e^t - W)_+.
    Below,
}

/// A product of averages of log-normals: how many numbers each has, and how often it is taken.
#[derive(Debug)]
pub struct Averages {
    sigma: f64,
    factors: Vec<(f64, f64)>,
    /// ln E W^s at the tilts to choose from, and their lines: made when first asked for.
    cumulants: [Vec<OnceLock<Option<f64>>>; 2],
    lines: [Vec<OnceLock<Option<Line>>>; 2],
}

#[derive(Debug)]
struct Line {
    s: f64,
    spacing: f64,
    nodes: Vec<Known>,
    level: f64,
    truncation: f64,
    /// Tilts of aliases on the left and the right, and ln of what bounds them.
    aliases: [(f64, f64); 2],
}

impl Averages {
    /// # Panics
    /// If there is no factor.
    pub fn new(sigma: f64, factors: &[(u64, u64)]) -> Self {
        assert!(!factors.is_empty(), "a product needs a factor");
        let factors = factors.iter().map(|&(count, times)| (count as f64, times as f64)).collect();
        let sizes = [ABOVE.len(), BELOW.len()];
        let lines = sizes.map(|n| (0..n).map(|_| OnceLock::new()).collect());
        let cumulants = sizes.map(|n| (0..n).map(|_| OnceLock::new()).collect());
        Self { sigma, factors, cumulants, lines }
    }

    /// The variance of ln W if it were normal: ln E W^2.
    pub fn spread(&self) -> f64 {
        let more = exp_m1(1.0 / (self.sigma * self.sigma));
        let of = |&(count, times): &(f64, f64)| times * ln_1p(more / count);
        self.factors.iter().map(of).sum()
    }

    /// An average at a threshold, where a line can be had for it.
    pub fn average(&self, which: Average, t: f64) -> Option<Ends> {
        let place = usize::from(which == Average::Below);
        // The height of the integrand falls and then rises with the tilt.
        let mut best: Option<(usize, f64)> = None;
        for (index, cumulant) in self.cumulants[place].iter().enumerate() {
            let s = tilt(which, index);
            let Some(log) = cumulant.get_or_init(|| self.log_moment(s)) else { break };
            let height = log + (1.0 - s) * t - ln(s * (s - 1.0));
            if best.is_some_and(|(_, least)| height > least) {
                break;
            }
            best = Some((index, height));
        }
        // Where the best line cannot be had, or its ends are far apart, those nearer to 0 or 1: all enclose it.
        let (mut found, mut tried): (Option<Ends>, usize) = (None, 0);
        for index in (0..=best?.0).rev() {
            let line = self.lines[place][index].get_or_init(|| self.line(which, index));
            let Some(line) = line else { continue };
            let here = line.value(t);
            let ends = found.map_or(here, |last| closer(last, here));
            (found, tried) = (Some(ends), tried + 1);
            let close = ends.upper.is_finite() && ends.upper - ends.lower <= CLOSE * ends.upper;
            if close || tried == MOST_TRIED {
                break;
            }
        }
        found
    }

    /// ln E W^s over all factors, at most.
    fn log_moment(&self, s: f64) -> Option<f64> {
        let mut total = 0.0;
        for &(count, times) in &self.factors {
            total += times * self.moment(count, s, LIGHT)?.real()?.most;
        }
        Some(total + UNIT * 8.0 * total.abs())
    }

    /// What the order of a moment leaves above s: rays are shorter for more of it. Little noise has moments of high
    /// order that are those of the largest number alone, and drown all else.
    fn room(&self, s: f64) -> f64 {
        let least = self.factors.iter().map(|(count, _)| *count).fold(f64::INFINITY, f64::min);
        let little = if least < 8.0 {
            0.7
        } else if self.sigma >= 0.9 {
            3.0
        } else if self.sigma >= 0.55 {
            1.5
        } else {
            0.7
        };
        if least < MANY {
            return little;
        }
        // E Y^n < S^{n-1} as long as n < 2 sigma^2 ln S.
        (1.2 * self.sigma * self.sigma * ln(least) - s).clamp(little, 12.0)
    }

    /// The moment of order s of one factor.
    fn moment(&self, count: f64, s: f64, depth: f64) -> Option<Moment> {
        let order = if s < 0.0 { 0 } else { (s + self.room(s) - 1e-9).ceil() as u32 };
        let moment = Moment { sigma: self.sigma, count, order, c: f64::from(order) - s, depth };
        (order as usize <= MOST_ORDER).then_some(moment)
    }

    /// Tilts below or above one to choose from, from the next on, with ln E W^s; moments of order 0 and 1 are 1.
    fn beside(
        &self,
        which: Average,
        index: usize,
        sign: f64,
    ) -> impl Iterator<Item = (f64, f64)> + '_ {
        let place = usize::from(which == Average::Below);
        let count = self.cumulants[place].len();
        let (outward, zero) = match which {
            Average::Above => (sign > 0.0, 1.0),
            Average::Below => (sign < 0.0, 0.0),
        };
        let indices: Vec<usize> =
            if outward { (index + 1..count).collect() } else { (0..index).rev().collect() };
        let beyond = outward.then(|| {
            let s = tilt(which, index);
            let most = MOST_ORDER as f64 - 12.0;
            let far = if which == Average::Above {
                (s + (s - 1.0).max(0.6)).min(most)
            } else {
                1.7 * s - 1.0
            };
            Some((far, self.log_moment(far)?))
        });
        indices
            .into_iter()
            .map_while(move |other| {
                let s = tilt(which, other);
                let log = *self.cumulants[place][other].get_or_init(|| self.log_moment(s));
                Some((s, log?))
            })
            .chain((!outward).then_some((zero, 0.0)))
            .chain(beyond.flatten().filter(move |_| index + 1 == count))
    }

    fn line(&self, which: Average, index: usize) -> Option<Line> {
        let s = tilt(which, index);
        // The threshold whose saddle it is.
        let off = 0.02 * (s - 0.5).abs();
        let place = usize::from(which == Average::Below);
        let log = (*self.cumulants[place][index].get_or_init(|| self.log_moment(s)))?;
        let (low, high) = (self.log_moment(s - off)?, self.log_moment(s + off)?);
        let t = (high - low) / (2.0 * off) - 1.0 / s - 1.0 / (s - 1.0);
        let fall: f64 = self.factors.iter().map(|&(count, times)| times / count).sum::<f64>()
            / (2.0 * self.sigma * self.sigma);
        let height = (DEPTH / fall).sqrt();
        if !(height <= HIGHEST) {
            return None;
        }
        let log_value = log + (1.0 - s) * t - ln(s * (s - 1.0)) - 4.0;
        let mut aliases = [(0.0, 0.0); 2];
        let mut length = 1e-3f64;
        for (alias, sign) in aliases.iter_mut().zip([-1.0, 1.0]) {
            // What a second tilt makes of the length: it falls and then rises with the tilt.
            let needed = |second: f64, bound: f64| {
                let log = bound + log_chernoff(second);
                let excess = log + (1.0 - second) * t - log_value + DEPTH - 8.0;
                (excess / (second - s).abs(), (second, log))
            };
            let mut best = (f64::INFINITY, (0.0, 0.0));
            for (second, bound) in self.beside(which, index, sign) {
                let found = needed(second, bound);
                if found.0 > best.0 {
                    break;
                }
                best = found;
            }
            if !best.0.is_finite() {
                return None;
            }
            *alias = best.1;
            length = length.max(best.0);
        }
        let spacing = 2.0 * PI / length;
        let count = (height / spacing).ceil() + 1.0;
        if !(count <= MOST_NODES) {
            return None;
        }
        let empty = Known { log: 0.0, argument: 0.0, slip: 0.0, most: 0.0 };
        let mut nodes = vec![empty; count as usize];
        for &(numbers, times) in &self.factors {
            let found = self.moment(numbers, s, FULL)?.at_nodes(spacing, nodes.len())?;
            for (node, known) in nodes.iter_mut().zip(found) {
                node.log += times * known.log;
                // Moments at s - iu are conjugates of those at s + iu.
                node.argument -= times * known.argument;
                node.slip += times * (known.slip + UNIT * (known.log.abs() + known.argument.abs()));
                node.most += times * (known.most + 4.0 * UNIT * known.most.abs());
            }
        }
        let last = spacing * (nodes.len() - 1) as f64;
        let truncation =
            exp(-fall * last * last + nodes[0].most - nodes[0].log) * (1.0 + 1e-9) / (PI * last);
        Some(Line { s, spacing, level: nodes[0].log, nodes, truncation, aliases })
    }
}

/// What is between the ends of both; the value of the closer one.
fn closer(a: Ends, b: Ends) -> Ends {
    let near = if b.upper - b.lower < a.upper - a.lower { b } else { a };
    let (lower, upper) = (a.lower.max(b.lower), a.upper.min(b.upper));
    // Both enclose the truth, so that they meet.
    let upper = upper.max(lower);
    Ends { lower, value: near.value.clamp(lower, upper), upper }
}

fn tilt(which: Average, index: usize) -> f64 {
    match which {
        Average::Above => ABOVE[index],
        Average::Below => -BELOW[index],
    }
}

/// ln of the largest value of (e^y - 1)_+ e^{-sy}, s >= 1, or of (1 - e^y)_+ e^{-sy}, s <= 0.
fn log_chernoff(s: f64) -> f64 {
    let power = |x: f64| if x > 0.0 { x * ln(x) } else { 0.0 };
    if s >= 1.0 { power(s - 1.0) - power(s) } else { power(-s) - (1.0 - s) * ln_1p(-s) }
}

impl Line {
    fn value(&self, t: f64) -> Ends {
        let s = self.s;
        let (mut sum, mut round, mut size) = (0.0, 0.0, 0.0);
        for (k, node) in self.nodes.iter().enumerate() {
            let u = self.spacing * k as f64;
            let here = exp(node.log - self.level);
            let angle = node.argument - u * t;
            let (sin, cos) = sin_cos(angle);
            // 1/(s(s-1)) at s + iu.
            let (a, b) = (s * (s - 1.0) - u * u, u * (2.0 * s - 1.0));
            let norm = a * a + b * b;
            let factor = if k == 0 { 0.5 } else { 1.0 } / norm;
            sum += factor * here * (cos * a + sin * b);
            let modulus = factor * norm.sqrt();
            let unit = UNIT
                * (24.0
                    + 4.0 * u * t.abs()
                    + 2.0 * node.argument.abs()
                    + 2.0 * (node.log - self.level).abs());
            let slip = node.slip + unit;
            let off =
                if slip < 0.5 { 1.3 * slip * here } else { here + exp(node.most - self.level) };
            round += off * modulus;
            size += here * modulus;
        }
        let scale = self.spacing / PI;
        let mantissa = scale * sum;
        let terms = self.nodes.len() as f64;
        let round = scale * (round * (1.0 + 1e-9) + (terms + 8.0) * UNIT * size) + self.truncation;
        let log_scale = self.level + (1.0 - s) * t;
        let length = 2.0 * PI / self.spacing;
        let alias: f64 = self
            .aliases
            .iter()
            .map(|(second, log)| {
                let ratio = exp(-(second - s).abs() * length);
                exp(log + (1.0 - second) * t - log_scale + 1e-9) * ratio / (1.0 - ratio)
            })
            .sum();
        let common = UNIT * (16.0 + self.level.abs() + 4.0 * (s * t).abs() + log_scale.abs());
        let end = |x: f64, factor: f64| (x * exp(log_scale) * factor).max(0.0);
        if !(round + alias + mantissa + log_scale).is_finite() {
            // Nothing is known, and `max` would hide that.
            return Ends { lower: 0.0, value: 0.0, upper: f64::INFINITY };
        }
        Ends {
            lower: end(mantissa - round - alias, 1.0 - 2.0 * common),
            value: end(mantissa, 1.0),
            upper: end(mantissa + round, 1.0 + 2.0 * common),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::normal_cdf;

    /// One number per average: W is log-normal, and both averages have closed forms.
    #[test]
    fn one_number_is_the_log_normal() {
        for (sigma, times) in [(1.0, 1), (2.0, 3), (0.7, 1), (4.0, 40)] {
            let spread = (f64::from(times)).sqrt() / sigma;
            let found = Averages::new(sigma, &[(1, times as u64)]);
            for t in [-0.5, 0.0, 0.4, 1.5] {
                let (a, b) = (0.5 * spread - t / spread, -0.5 * spread - t / spread);
                let above = normal_cdf(a) - exp(t) * normal_cdf(b);
                let below = exp(t) * normal_cdf(-b) - normal_cdf(-a);
                for (which, truth) in [(Average::Above, above), (Average::Below, below)] {
                    let ends = found.average(which, t).unwrap();
                    let slack = 1e-13;
                    assert!(
                        ends.lower <= truth + slack && truth - slack <= ends.upper,
                        "{sigma} {times} {which:?} {t}: {ends:?} {truth}"
                    );
                    assert!(
                        ends.upper - ends.lower < 1e-7 * truth,
                        "{sigma} {times} {t}: {ends:?}"
                    );
                }
            }
        }
    }

    /// Ten averages of a hundred numbers, by a Mellin contour in ball arithmetic (the references of balls and
    /// bins): E(W - g)_+ and E(1 - gW)_+ at g = e^0.8.
    #[test]
    fn reference_values() {
        let found = Averages::new(1.0, &[(100, 10)]);
        let above = found.average(Average::Above, 0.8).unwrap();
        assert!(above.lower <= 0.006579120993740893 && 0.006579120993740892 <= above.upper);
        let below = found.average(Average::Below, -0.8).unwrap();
        let (low, high) = (below.lower * exp(0.8), below.upper * exp(0.8));
        assert!(low <= 0.005255294524087501 && 0.005255294524087499 <= high, "{low} {high}");
        assert!(above.upper - above.lower < 1e-9 * above.value && high - low < 1e-9 * high);
    }

    /// Every line encloses the same number, whatever its tilt.
    #[test]
    fn lines_agree() {
        for (sigma, count, times) in [(0.3, 100, 1), (1.0, 10, 3), (1.0, 100, 10), (2.0, 16, 50)] {
            let spread = (f64::from(times) / f64::from(count)).sqrt() / sigma;
            let found = Averages::new(sigma, &[(count as u64, times as u64)]);
            for which in [Average::Above, Average::Below] {
                let place = usize::from(which == Average::Below);
                let lines: Vec<Line> = (0..found.lines[place].len())
                    .step_by(2)
                    .filter_map(|index| found.line(which, index))
                    .collect();
                assert!(lines.len() > 1, "{sigma} {count} {times} {which:?}");
                let sign = if which == Average::Above { 1.0 } else { -1.0 };
                for t in [0.5, 2.0, 4.0, 7.0].map(|far| sign * far * spread) {
                    let ends: Vec<Ends> = lines.iter().map(|line| line.value(t)).collect();
                    let lower = ends.iter().fold(0.0f64, |most, ends| most.max(ends.lower));
                    let upper =
                        ends.iter().fold(f64::INFINITY, |least, ends| least.min(ends.upper));
                    let tilts: Vec<f64> = lines.iter().map(|line| line.s).collect();
                    assert!(lower <= upper, "{sigma} {count} {times} {t}: {tilts:?} {ends:?}");
                }
            }
        }
    }
}
