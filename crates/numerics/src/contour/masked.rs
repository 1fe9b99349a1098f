//! The hard region: few steps, rare or large jumps, where the loss is close to an atom plus a
//! heavy continuum and the plain contour does not converge or cancels.
//!
//! Smooth masks split each step by x into class 0 (low), 1 (middle) and 2 (high):
//! keep(x) = Phi((upper - x)/width) excludes class 2, and rise(x) = Phi((x - lower)/width) within
//! `keep` is class 1. With b = transform of `keep`, a1 of class 1, a0 = b - a1, the measure of Y
//! under Q splits exactly into
//!   H  at least one step of class 2:   A^T - b^T
//!   M  none of class 2, one of class 1: b^T - a0^T
//!   L  all of class 0:                  a0^T
//! - H: (e^y - 1)_+ = (e^y - 1) + (1 - e^y)_+, and the first part needs only b at s = 0 and 1,
//!   which are normal probabilities; the second has a Chernoff bound (a high step puts Y above t).
//! - M: a contour of its own. The far jumps are gone, so the tilt can be chosen for the threshold;
//!   the near-atom is gone, so the transform decays as fast as the masks are smooth.
//! - L: below the threshold; a Chernoff bound.
//!
//! All three are positive, so nothing cancels between them.

use super::Part;
use super::grid::{Grid, MOST_POINTS};
use super::line::{Alias, LOG_TOLERANCE, MOST_NODES, Nodes, Obstacle, Value, Zone, alias};
use super::smooth::{SMOOTH_NODES, Smoothing};
use super::tail::Path;
use super::transform::{self, Transform};
use crate::complex::Complex;
use crate::mixture::MixtureRatio;
use crate::special::{log_normal_cdf, normal_cdf};
use std::f64::consts::PI;

/// A smooth step Phi((x - centre)/width).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) centre: f64,
    pub(crate) width: f64,
}

/// The masks of one part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Masks {
    pub(crate) upper: Option<Edge>,
    pub(crate) lower: Option<Edge>,
}

impl Masks {
    pub(crate) fn keep(&self, x: f64) -> f64 {
        self.upper.map_or(1.0, |edge| normal_cdf((edge.centre - x) / edge.width))
    }

    pub(crate) fn rise(&self, x: f64) -> f64 {
        self.lower.map_or(1.0, |edge| normal_cdf((x - edge.centre) / edge.width))
    }

    /// 1 - rise and 1 - keep, without cancellation.
    fn fall(&self, x: f64) -> f64 {
        self.lower.map_or(0.0, |edge| normal_cdf((edge.centre - x) / edge.width))
    }

    fn high(&self, x: f64) -> f64 {
        self.upper.map_or(0.0, |edge| normal_cdf((x - edge.centre) / edge.width))
    }

    /// The logarithm of a mask; where the mask itself underflows, from the tail of the normal.
    fn log(mask: f64, x: f64, edges: &[(Option<Edge>, f64)]) -> f64 {
        if mask > 1e-280 {
            return mask.ln();
        }
        let log = |edge: Edge, sign: f64| log_normal_cdf(sign * (x - edge.centre) / edge.width);
        edges.iter().map(|(edge, sign)| edge.map_or(0.0, |edge| log(edge, *sign))).sum()
    }

    /// The four masks with their logarithms.
    fn keep_with_log(&self, x: f64) -> (f64, f64) {
        let mask = self.keep(x);
        (mask, Self::log(mask, x, &[(self.upper, -1.0)]))
    }

    fn middle_with_log(&self, x: f64) -> (f64, f64) {
        let mask = self.keep(x) * self.rise(x);
        (mask, Self::log(mask, x, &[(self.upper, -1.0), (self.lower, 1.0)]))
    }

    fn low_with_log(&self, x: f64) -> (f64, f64) {
        let mask = self.keep(x) * self.fall(x);
        if self.lower.is_none() {
            return (0.0, f64::NEG_INFINITY);
        }
        (mask, Self::log(mask, x, &[(self.upper, -1.0), (self.lower, -1.0)]))
    }

    fn high_with_log(&self, x: f64) -> (f64, f64) {
        let mask = self.high(x);
        if self.upper.is_none() {
            return (0.0, f64::NEG_INFINITY);
        }
        (mask, Self::log(mask, x, &[(self.upper, 1.0)]))
    }

    /// log of a bound on |mask(x + iy)| / mask(x): |Phi(z)| <= e^{Im z^2 / 2} Phi(Re z), and
    /// <= 1 + e^{Im z^2/2} Phi(-Re z) where that is smaller.
    pub(crate) fn keep_growth(&self, x: f64, y: f64) -> f64 {
        self.upper.map_or(0.0, |edge| growth((edge.centre - x) / edge.width, y / edge.width))
    }

    pub(crate) fn rise_growth(&self, x: f64, y: f64) -> f64 {
        self.lower.map_or(0.0, |edge| growth((x - edge.centre) / edge.width, y / edge.width))
    }
}

fn growth(re: f64, im: f64) -> f64 {
    let whole = 0.5 * im * im;
    if re <= 0.0 {
        return whole;
    }
    let outside = whole + log_normal_cdf(-re);
    let bound = if outside > 30.0 { outside } else { outside.exp().ln_1p() };
    (bound - log_normal_cdf(re)).min(whole)
}

/// One part with its masks and what is computed once for them.
struct Masked<'a> {
    part: &'a Part,
    masks: Masks,
    /// b and the three classes, on a grid fine enough for real tilts.
    keep: Grid,
    low: Grid,
    middle: Grid,
    high: Grid,
    /// (distance, for b, for class 1 where there is one)
    paths: Vec<(f64, Path, Option<Path>)>,
}

/// A contour for M and the bounds for H and L, good for thresholds near the one it was made for.
#[derive(Debug)]
pub(crate) struct MaskedLine {
    c: f64,
    spacing: f64,
    /// b^T - a0^T along the line.
    nodes: Nodes,
    level: f64,
    truncation: f64,
    smoothing: Smoothing,
    left: Alias,
    right: Alias,
    /// P and Q probability that some step is of class 2.
    high: (f64, f64),
    /// (tilt, log of the Chernoff factor) for H's remainder (tilt < 0) and for L (tilt > 1).
    high_rest: Vec<(f64, f64)>,
    low: Vec<(f64, f64)>,
    /// Relative error at the threshold it was made for.
    error: f64,
}

impl MaskedLine {
    /// Builds the line for thresholds near t; where the transform decays too slowly, M is
    /// smoothed if that is allowed (module `smooth`).
    pub(crate) fn new(
        parts: &[Part],
        masks: &[Masks],
        t: f64,
        may_smooth: bool,
    ) -> Result<Self, Obstacle> {
        let masked: Vec<Masked> = parts
            .iter()
            .zip(masks)
            .map(|(part, masks)| Masked::new(part, *masks))
            .collect::<Result<_, _>>()?;
        let has_low = masks.iter().any(|m| m.lower.is_some());
        let level_at = |c: f64| middle_level(&masked, has_low, c);

        // The tilt: minimum of a convex function of c, by golden section on log(c - 1).
        let objective = |v: f64| {
            let c = 1.0 + v.exp();
            level_at(c) - c * t - (c * (c - 1.0)).ln()
        };
        let v = golden(objective, -12.0, 40.0);
        let c = 1.0 + v.exp();
        let level = level_at(c);
        if !level.is_finite() {
            return Err(Obstacle::SlowDecay);
        }
        let low = if has_low { chernoff_low(&masked, c) } else { Vec::new() };
        let step = 0.02 * (c - 1.0);
        let curvature = (level_at(c + step) - 2.0 * level + level_at(c - step)) / (step * step);
        let variance = curvature.max(0.0);
        let spread = (variance + 1.0 / (c * c) + 1.0 / ((c - 1.0) * (c - 1.0))).sqrt();
        let log_size = -(c * (c - 1.0)).ln() - (spread * (2.0 * PI).sqrt()).ln();
        // The all-low part must be negligible beside what the saddle promises; H may be all there is.
        let promised = (level - (c - 1.0) * t + log_size).max(high_value(&masked, t).ln());
        if has_low && chernoff(&low, t) > promised - 20.0 {
            return Err(Obstacle::SlowDecay);
        }
        let (right, right_length) =
            alias(Zone::Above, c, t, level, log_size, f64::INFINITY, spread, 1.0, &level_at);
        let (left, left_length) =
            alias(Zone::Above, c, t, level, log_size, 1.0, spread, -1.0, &level_at);
        let length = right_length.max(left_length);
        if !(length.is_finite() && length > 0.0) {
            return Err(Obstacle::SlowDecay);
        }
        let spacing = 2.0 * PI / length;

        let masked: Vec<Masked> = masked.into_iter().map(|m| m.with_paths(c)).collect();
        let tail = Tail { masked: &masked, has_low, c, level, log_size, spacing };
        let (smoothing, (height, decay)) = match tail.height(Smoothing::none(), MOST_NODES) {
            Some(found) => (Smoothing::none(), found),
            None if may_smooth => {
                let smoothing = Smoothing::within(spacing, c, log_size);
                // Twice the nodes it was made for, should the rest of the decay be unkind.
                let most = 2.0 * SMOOTH_NODES;
                (smoothing, tail.height(smoothing, most).ok_or(Obstacle::SlowDecay)?)
            }
            None => return Err(Obstacle::SlowDecay),
        };
        let count = (height / spacing).ceil() as usize + 1;

        let mut nodes = Nodes::new(count);
        let mut absent = Nodes::new(count);
        for m in &masked {
            let (keep, middle) = m.fine(c, spacing * count as f64)?;
            let times = m.part.times;
            let b = transform::along(&keep, c, spacing, count);
            nodes.multiply(&b, times);
            if let Some(middle) = middle {
                absent.multiply(&without_middle(&b, &middle, c, spacing), times);
            }
        }
        if has_low {
            for k in 0..count {
                // b^T - a0^T = b^T (1 - e^z), z = T log(1 - a1/b)
                let z = absent.log[k];
                let present = exp_m1(z).scale(-1.0);
                let size = present.modulus();
                let slip = if absent.error[k] < 0.5 {
                    1.5 * absent.error[k] * z.re.exp()
                } else {
                    z.re.exp() + absent.upper[k].exp()
                };
                nodes.log[k] = nodes.log[k] + present.ln();
                nodes.upper[k] += (size + slip).ln();
                let relative = slip / size;
                nodes.error[k] += if relative < 0.25 { 1.5 * relative } else { f64::INFINITY };
            }
        }
        let level = nodes.log[0].re;
        let truncation = decay.exp() / (PI * spacing * (count - 1) as f64);
        let high = (high_mass(&masked, true), high_mass(&masked, false));
        let high_rest = chernoff_high(&masked, spread);
        let mut line = Self {
            c,
            spacing,
            nodes,
            level,
            truncation,
            smoothing,
            left,
            right,
            high,
            high_rest,
            low,
            error: f64::INFINITY,
        };
        line.error = line.value(t).relative_error();
        Ok(line)
    }

    /// Relative error at the threshold it was made for: what a fresh line would have.
    pub(crate) fn error(&self) -> f64 {
        self.error
    }

    /// e^t E (e^{Y-t} - 1)_+ : mantissa and errors relative to e^log_scale, all three parts.
    pub(crate) fn value(&self, t: f64) -> Value {
        // Everything in units of e^{level - (c-1) t}.
        let log_scale = self.level - (self.c - 1.0) * t;
        let middle = self.middle(t, log_scale);
        let chernoff = |list: &[(f64, f64)]| (chernoff(list, t) - log_scale).exp();
        let unscale = (-log_scale).exp();
        let (with, without) = (self.high.0 * unscale, self.high.1 * (t - log_scale).exp());
        let round = 60.0 * f64::EPSILON * (with + without);
        let high_rest = if self.high.0 > 0.0 { chernoff(&self.high_rest) } else { 0.0 };
        let low = if self.low.is_empty() { 0.0 } else { chernoff(&self.low) };
        Value {
            log_scale,
            mantissa: middle.mantissa + with - without,
            below: middle.below + round,
            above: middle.above + round + high_rest + low,
            slope: middle.slope - without,
        }
    }

    /// M alone.
    fn middle(&self, t: f64, log_scale: f64) -> Value {
        let once = self.smoothed(t, log_scale, self.smoothing);
        if self.smoothing.is_none() {
            return once;
        }
        let twice = self.smoothed(t, log_scale, self.smoothing.doubled());
        let step = twice.mantissa - once.mantissa;
        let reach = self.smoothing.reach();
        let extrapolated = once.mantissa - step / 3.0;
        let slips = twice.above + once.below;
        let lower = once.mantissa - once.below - reach * (step + slips).max(0.0);
        let upper = once.mantissa + once.above;
        // Where round-off hides the step, extrapolation may leave the enclosure.
        let mantissa = extrapolated.min(upper).max(lower);
        Value {
            log_scale,
            mantissa,
            below: mantissa - lower,
            above: upper - mantissa,
            slope: once.slope - (twice.slope - once.slope) / 3.0,
        }
    }

    /// The average of M over neighbouring thresholds.
    fn smoothed(&self, t: f64, log_scale: f64, smoothing: Smoothing) -> Value {
        let c = self.c;
        let sums = self.nodes.sums(c, self.spacing, self.level, t, 1.0, smoothing);
        let weight = self.spacing / PI;
        let alias = |alias: &Alias| {
            let ratio = (-(alias.tilt - c).abs() * 2.0 * PI / self.spacing).exp();
            if ratio >= 0.5 {
                return f64::INFINITY;
            }
            let grown = alias.log_bound + smoothing.log_factor(alias.tilt, 0.0);
            (grown - (alias.tilt - 1.0) * t - log_scale).exp() * ratio / (1.0 - ratio)
        };
        let terms = self.nodes.log.len() as f64;
        let mantissa = weight * sums.sum;
        let round = weight * sums.round + terms * f64::EPSILON * mantissa.abs() + self.truncation;
        Value {
            log_scale,
            mantissa,
            below: round + alias(&self.left) + alias(&self.right),
            above: round,
            slope: weight * sums.slope,
        }
    }
}

impl<'a> Masked<'a> {
    fn new(part: &'a Part, masks: Masks) -> Result<Self, Obstacle> {
        let pair = &part.pair;
        let scale = pair.scale();
        let span = scale * (2.0 * (45.0 + part.times.ln())).sqrt();
        let mut step = (0.25 * scale).min(0.2 * scale * scale / pair.reach());
        for edge in masks.upper.iter().chain(&masks.lower) {
            step = step.min(0.3 * edge.width);
        }
        let low = if pair.infimum().is_finite() { -span } else { -span - 2.0 * pair.reach() };
        let top = masks
            .upper
            .map_or(span + 60.0 * pair.reach(), |edge| (edge.centre + 18.0 * edge.width).max(span));
        let count = ((top.max(span + pair.reach()) - low) / step).ceil();
        if count > MOST_POINTS / 4.0 {
            return Err(Obstacle::TooFine);
        }
        let whole = Grid::between(pair, low, step, count as usize);
        let keep = whole.masked(|x| masks.keep_with_log(x), deficit(pair, &masks));
        let middle = whole.masked(|x| masks.middle_with_log(x), (0.0, 0.0));
        let low = whole.masked(|x| masks.low_with_log(x), (0.0, 0.0));
        let high = whole.masked(|x| masks.high_with_log(x), (0.0, 0.0));
        Ok(Self { part, masks, keep, low, middle, high, paths: Vec::new() })
    }

    /// Candidate paths at tilt c: (distance, for b, for class 1).
    fn with_paths(mut self, c: f64) -> Self {
        let pair = &self.part.pair;
        let cap = 0.8 * PI * pair.scale() * pair.scale() / pair.reach();
        let sides = if pair.one_sided() { 1.0 } else { 2.0 };
        let masks = self.masks;
        for index in 0..8 {
            let distance = cap * 0.45f64.powi(index);
            for bent in [false, true] {
                let path = |x: f64| {
                    if !bent {
                        return (distance, 0.0);
                    }
                    let (shift, slope) = pair.posterior_shift(x);
                    let full = sides * pair.reach();
                    (distance * shift / full, distance * slope / full)
                };
                let keep = Path::masked(pair, &self.keep, c, path, |x, y| masks.keep_growth(x, y));
                let middle = masks.lower.is_some().then(|| {
                    Path::masked(pair, &self.middle, c, path, |x, y| {
                        masks.keep_growth(x, y) + masks.rise_growth(x, y)
                    })
                });
                self.paths.push((if bent { 0.0 } else { distance }, keep, middle));
            }
        }
        self
    }

    /// Grids for the nodes: fine enough for frequencies up to `top`.
    fn fine(&self, c: f64, top: f64) -> Result<(Grid, Option<Grid>), Obstacle> {
        let pair = &self.part.pair;
        let digits = LOG_TOLERANCE + 4.0 + (self.part.times * (3.0 + top + c)).ln();
        let scale2 = pair.scale() * pair.scale();
        // Straight paths tell the integral of the modulus on either edge of the strip.
        let mut step = 0.0f64;
        for (distance, keep, middle) in self.paths.iter().filter(|path| path.0 > 0.0) {
            let size = keep
                .log_ratio(-top)
                .max(middle.as_ref().map_or(f64::NEG_INFINITY, |middle| middle.log_ratio(-top)))
                .max(distance * distance / (2.0 * scale2))
                + 1.0;
            step = step.max(2.0 * PI * distance / (digits + size));
        }
        // Ends: where every tilted integrand has fallen below e^-digits of its top.
        // Class 1 by its own measure: it may be e^-50 of the bulk and still be the whole answer.
        let (mut first, mut last) = support(&self.keep, c, digits);
        if self.masks.lower.is_some() {
            let (low, high) = support(&self.middle, c, digits);
            (first, last) = (first.min(low), last.max(high));
        }
        let count = ((last - first) / step).ceil();
        if !(count <= MOST_POINTS) {
            return Err(Obstacle::TooFine);
        }
        let mut whole = Grid::between(pair, first, step, count as usize);
        whole.relative_error = 8.0 * (-digits).exp();
        let masks = self.masks;
        let keep = whole.masked(|x| masks.keep_with_log(x), deficit(pair, &masks));
        let middle =
            masks.lower.is_some().then(|| whole.masked(|x| masks.middle_with_log(x), (0.0, 0.0)));
        Ok((keep, middle))
    }
}

/// Q mass of class 2, and P mass minus it: normal probabilities, since both mask and mixture are.
fn deficit(pair: &MixtureRatio, masks: &Masks) -> (f64, f64) {
    let Some(edge) = masks.upper else { return (0.0, 0.0) };
    let (p, q) = high_step(pair, &edge);
    (q, p - q)
}

/// P and Q probability of class 2 in one step.
fn high_step(pair: &MixtureRatio, edge: &Edge) -> (f64, f64) {
    let spread = pair.scale().hypot(edge.width);
    let mass = |components: &[crate::mixture::Component]| {
        let rest = 1.0 - components.iter().map(|c| c.weight).sum::<f64>();
        components
            .iter()
            .map(|c| c.weight * normal_cdf((c.centre - edge.centre) / spread))
            .sum::<f64>()
            + rest.max(0.0) * normal_cdf(-edge.centre / spread)
    };
    (mass(pair.numerator()), mass(pair.denominator()))
}

/// Main part of H at threshold t.
fn high_value(masked: &[Masked], t: f64) -> f64 {
    (high_mass(masked, true) - t.exp() * high_mass(masked, false)).max(0.0)
}

/// log of the best of several Chernoff bounds at threshold t.
fn chernoff(list: &[(f64, f64)], t: f64) -> f64 {
    list.iter().map(|(tilt, bound)| bound - (tilt - 1.0) * t).fold(f64::INFINITY, f64::min)
}

/// Probability under P (or Q) that some step is of class 2.
fn high_mass(masked: &[Masked], under_p: bool) -> f64 {
    let log_none: f64 = masked
        .iter()
        .map(|m| {
            m.masks.upper.map_or(0.0, |edge| {
                let (p, q) = high_step(&m.part.pair, &edge);
                m.part.times * (-(if under_p { p } else { q })).ln_1p()
            })
        })
        .sum();
    -log_none.exp_m1()
}

/// log of the M transform at a real tilt.
fn middle_level(masked: &[Masked], has_low: bool, c: f64) -> f64 {
    let mut level = 0.0;
    let mut absent = 0.0;
    for m in masked {
        if log_total(&m.keep, c) == f64::INFINITY {
            return f64::INFINITY;
        }
        let b = transform::cumulant(&m.keep, c).0;
        level += m.part.times * b;
        if m.masks.lower.is_some() {
            let ratio = (log_total(&m.middle, c) - b).exp().min(1.0);
            absent += m.part.times * (-ratio).ln_1p();
        }
    }
    if has_low { level + crate::special::log1mexp(absent) } else { level }
}

/// Whether the tilted weights have died out at both ends of the grid.
fn covers(grid: &Grid, c: f64, top: f64) -> bool {
    [0, grid.len() - 1].iter().all(|&j| grid.log_weight[j] + c * grid.log_ratio[j] < top - 30.0)
}

/// log of the plain sum at a real tilt; infinite where the grid does not reach far enough for it.
fn log_total(grid: &Grid, c: f64) -> f64 {
    let terms = || grid.log_weight.iter().zip(&grid.log_ratio).map(|(lw, l)| lw + c * l);
    let top = terms().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY {
        return top;
    }
    if !covers(grid, c, top) {
        return f64::INFINITY;
    }
    top + terms().map(|x| (x - top).exp()).sum::<f64>().ln()
}

/// Chernoff factors of H's remainder E_H (1 - e^{Y-t})_+ for some negative tilts.
fn chernoff_high(masked: &[Masked], spread: f64) -> Vec<(f64, f64)> {
    let steps: f64 = masked.iter().map(|m| m.part.times).sum();
    let mut out = Vec::new();
    for step in 0..14 {
        let tilt = -0.5 * 2f64.powi(step) / spread.max(1e-12);
        let mut level = 0.0;
        // In logarithms throughout: at large tilts the share of class 2 underflows.
        let mut share = f64::NEG_INFINITY;
        for m in masked {
            let high = log_total(&m.high, tilt);
            // All of A: keep plus high.
            let all = crate::special::log_add_exp(log_total(&m.keep, tilt), high);
            level += m.part.times * all;
            share = crate::special::log_add_exp(share, m.part.times.ln() + high - all);
        }
        // A share of zero would be an underflow of the mask, not a bound.
        if !(level.is_finite() && share.is_finite()) {
            continue;
        }
        out.push((tilt, level + share + Zone::Below.log_chernoff(tilt) + 0.01 + 1e-13 * steps));
    }
    out
}

/// Chernoff factors of L for some tilts around and beyond c.
/// The sums are plain, so their logarithm times T is only as good as T round-offs: added.
fn chernoff_low(masked: &[Masked], c: f64) -> Vec<(f64, f64)> {
    let steps: f64 = masked.iter().map(|m| m.part.times).sum();
    let mut out = Vec::new();
    for step in -2..16 {
        let tilt = 1.0 + (c - 1.0) * 1.6f64.powi(step);
        let mut level = 0.0;
        for m in masked {
            level += m.part.times * log_total(&m.low, tilt);
        }
        if level < f64::INFINITY {
            out.push((tilt, level + Zone::Above.log_chernoff(tilt) + 0.01 + 1e-13 * steps));
        }
    }
    out
}

/// What is known of the transform beyond a height.
struct Tail<'a> {
    masked: &'a [Masked<'a>],
    has_low: bool,
    c: f64,
    level: f64,
    log_size: f64,
    spacing: f64,
}

impl Tail<'_> {
    /// log of a bound on the transform beyond height u, in units of its value at the real tilt.
    fn decay(&self, u: f64, smoothing: Smoothing) -> f64 {
        let best = |m: &Masked, middle: bool| {
            m.paths
                .iter()
                .filter_map(|(_, keep, mid)| if middle { mid.as_ref() } else { Some(keep) })
                .map(|path| path.log_ratio(u))
                .fold(0.0f64, f64::min)
        };
        let decay = if self.has_low {
            // |b^T - a0^T| <= sum_i T_i |a1_i| prod b(c)^T / b_i(c)
            let mut sum = 0.0;
            let mut whole = 0.0;
            for m in self.masked {
                let b = transform::cumulant(&m.keep, self.c).0;
                whole += m.part.times * b;
                sum += m.part.times * (log_total(&m.middle, self.c) - b + best(m, true)).exp();
            }
            sum.ln() + whole - self.level
        } else {
            self.masked.iter().map(|m| m.part.times * best(m, false)).sum()
        };
        decay + smoothing.log_factor(self.c, u)
    }

    /// The height beyond which nodes are left out, and the log of the decay reached there; none
    /// if that takes more than `most` nodes. Decay falls with height, so the farthest is asked
    /// first and the rest by bisection.
    fn height(&self, smoothing: Smoothing, most: f64) -> Option<(f64, f64)> {
        let enough = |u: f64| {
            let decay = self.decay(u, smoothing);
            (decay - (PI * u).ln() < self.log_size - LOG_TOLERANCE).then_some((u, decay))
        };
        let mut found = enough(most * self.spacing)?;
        let (mut low, mut high) = ((2.0 * self.spacing).ln(), found.0.ln());
        while high - low > 0.15 {
            let middle = 0.5 * (low + high);
            match enough(middle.exp()) {
                Some(better) => {
                    found = better;
                    high = middle;
                }
                None => low = middle,
            }
        }
        Some(found)
    }
}

/// First and last x at which some tilt between 0 and c still counts.
fn support(grid: &Grid, c: f64, digits: f64) -> (f64, f64) {
    let (mut first, mut last) = (f64::INFINITY, f64::NEG_INFINITY);
    for tilt in [0.0, 1.0, c] {
        let at = |j: usize| grid.log_weight[j] + tilt * grid.log_ratio[j];
        let top = (0..grid.len()).map(at).fold(f64::NEG_INFINITY, f64::max);
        for j in 0..grid.len() {
            if at(j) > top - digits - 6.0 {
                first = first.min(grid.x[j]);
                last = last.max(grid.x[j]);
            }
        }
    }
    (first, last)
}

/// Minimum of a unimodal function by golden section.
fn golden(f: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    let safe = |v: f64| {
        let y = f(v);
        if y.is_nan() { f64::INFINITY } else { y }
    };
    let (mut a, mut b) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut fa, mut fb) = (safe(a), safe(b));
    while high - low > 1e-3 {
        // Both infinite: the far side overflowed; the minimum is on the near side.
        if fa < fb || (fa.is_infinite() && fb.is_infinite()) {
            high = b;
            (b, fb) = (a, fa);
            a = high - ratio * (high - low);
            fa = safe(a);
        } else {
            low = a;
            (a, fa) = (b, fb);
            b = low + ratio * (high - low);
            fb = safe(b);
        }
    }
    0.5 * (low + high)
}

/// log(1 - a1/b) along the line.
fn without_middle(b: &Transform, middle: &Grid, c: f64, spacing: f64) -> Transform {
    let count = b.log.len();
    let (scale, a1, a1_error) = transform::plain(middle, c, spacing, count);
    let mut out = Transform { log: Vec::new(), error: Vec::new(), upper: Vec::new() };
    for k in 0..count {
        let shrink = (scale - b.log[k].re).exp();
        let (sin, cos) = (-b.log[k].im).sin_cos();
        let ratio = a1[k] * Complex::new(cos * shrink, sin * shrink);
        let absolute =
            a1_error[k] * shrink + ratio.modulus() * (b.error[k].min(1e9) + 4.0 * f64::EPSILON);
        let distance = Complex::new(1.0 - ratio.re, ratio.im).modulus();
        out.log.push(ln_1p(ratio.scale(-1.0)));
        out.upper.push((distance + absolute).ln());
        let relative = absolute / distance;
        out.error.push(if relative < 0.25 { 1.5 * relative } else { f64::INFINITY });
    }
    out
}

fn ln_1p(z: Complex) -> Complex {
    Complex::new(0.5 * (z.re * (2.0 + z.re) + z.im * z.im).ln_1p(), z.im.atan2(1.0 + z.re))
}

fn exp_m1(z: Complex) -> Complex {
    let half = (0.5 * z.im).sin();
    let grown = z.re.exp();
    Complex::new(z.re.exp_m1() - 2.0 * grown * half * half, grown * z.im.sin())
}
