//! log A(s) along a vertical line Re s = c at equally spaced heights.
//!
//! Points with |s log W| <= 1/2 for every s on the line enter through their moments (a short
//! Taylor polynomial in s); the others through e^{iu log W}, advanced from node to node by one
//! complex product. So a node costs a few hundred multiply-adds and no transcendental function,
//! and nothing is lost to cancellation when W is close to 1 almost everywhere.

use super::grid::{Deficit, Grid};
use super::spread;
use crate::complex::Complex;
use crate::elementary::{exp, exp_m1, hypot, ln, ln_1p, powi, sin_cos};
use crate::sum::Sum;

const TERMS: usize = 18;
/// Moments, from the second on, whose sums are compensated: in units of the second the others are
/// below 1/1500 (1/2)^6, so that 60,000 roundings of theirs are one of it.
const CAREFUL: usize = 5;
/// Nodes between fresh sines and cosines: bounds the drift of the recurrence.
const REFRESH: usize = 64;
const UNIT: f64 = f64::EPSILON;

/// e^x - 1 - x without cancellation.
pub(crate) fn second_remainder(x: f64) -> f64 {
    if x.abs() > 0.35 { exp_m1(x) - x } else { second_remainder_small(x) }
}

/// The same for |x| <= 0.35: the first neglected term is below 1e-17 of the sum.
fn second_remainder_small(x: f64) -> f64 {
    // 1/2!, 1/3!, ..., 1/14!
    const INVERSE_FACTORIALS: [f64; 13] = {
        let mut out = [0.0; 13];
        let mut factorial = 1.0;
        let mut n = 2;
        while n <= 14 {
            factorial *= n as f64;
            out[n - 2] = 1.0 / factorial;
            n += 1;
        }
        out
    };
    let sum = INVERSE_FACTORIALS.iter().rev().fold(0.0, |sum, c| sum * x + c);
    x * x * sum
}

/// Real cumulant of one grid at tilt c: (log A, first and second derivative).
pub(crate) fn cumulant(grid: &Grid, c: f64) -> (f64, f64, f64) {
    crate::patience::look();
    let mut top = 0.0f64;
    for (lw, l) in grid.log_weight.iter().zip(&grid.log_ratio) {
        top = top.max(lw + c * l);
    }
    let (mut a0, mut a1, mut a2) = (0.0, 0.0, 0.0);
    if top > 30.0 {
        for (lw, l) in grid.log_weight.iter().zip(&grid.log_ratio) {
            let x = lw + c * l - top;
            if x > -45.0 {
                let w = exp(x);
                a0 += w;
                a1 += w * l;
                a2 += w * l * l;
            }
        }
        let mean = a1 / a0;
        return (top + ln(a0), mean, a2 / a0 - mean * mean);
    }
    for (j, (&w, &l)) in grid.weight.iter().zip(&grid.log_ratio).enumerate() {
        let cl = c * l;
        if cl.abs() < 0.35 && l.abs() < 0.35 {
            let curved = second_remainder_small(cl);
            let grown = cl + curved;
            let base = grid.curved(j);
            a0 += w * curved - c * base;
            // l e^{cl} - (e^l - 1), which also integrates to K'A
            a1 += w * l * grown - base;
            a2 += w * l * l * (1.0 + grown);
        } else {
            // Through the logarithm of the weight: far out the weight underflows and W overflows.
            let grown = exp(grid.log_weight[j] + cl);
            let lifted = grid.lifted(j);
            a0 += grown - w - c * lifted;
            a1 += l * grown - lifted;
            a2 += l * l * grown;
        }
    }
    a0 -= grid.deficit.mass + c * grid.deficit.slope;
    a1 -= grid.deficit.slope;
    let a = 1.0 + a0;
    let mean = a1 / a;
    (ln_1p(a0), mean, a2 / a - mean * mean)
}

/// Values of log A on the line, with an absolute error for each.
pub(crate) struct Transform {
    pub(crate) log: Vec<Complex>,
    pub(crate) error: Vec<f64>,
    /// log of an upper bound on |A|, which still says something where the error is infinite.
    pub(crate) upper: Vec<f64>,
}

/// Sums that bound the round-off, in units of `UNIT` and of e^shift.
#[derive(Default)]
struct Bounds {
    /// Points summed through their moments: the powers, the polynomial and the sums are some five
    /// roundings of |s| (|s| + 1) l^2 / 2 ...
    small: f64,
    /// ... and a term W^s - 1 - s (W - 1), at most .83 |s| |s - 1| l^2, has a derivative in l of at
    /// most 1.7 |s| |s - 1| |l|.
    moved: f64,
    tilted_mass: f64,
    /// Points summed one by one: what does not depend on s ...
    fixed: f64,
    /// ... and what grows with |s|.
    growing: f64,
}

/// Evaluates log A(c + i k spacing) for k = 0..count.
pub(crate) fn along(grid: &Grid, c: f64, spacing: f64, count: usize) -> Transform {
    crate::patience::look();
    let highest = (c * c + powi(spacing * count as f64, 2)).sqrt().max(1.0);
    let cut = 0.5 / highest;
    let tilted_top = grid
        .log_weight
        .iter()
        .zip(&grid.log_ratio)
        .map(|(lw, l)| lw + c * l)
        .fold(0.0f64, f64::max);
    let shift = if tilted_top > 30.0 { tilted_top } else { 0.0 };
    let unit = exp(-shift);

    // Powers of small losses fall so fast that only the first sums need care.
    let mut moments = [0.0f64; TERMS + 1];
    let mut first_moments = [Sum::default(); CAREFUL];
    let mut linear = Sum::default();
    let mut direct = Direct::default();
    let (mut mass, mut slope) = (Sum::default(), Sum::default());
    let mut bounds = Bounds::default();
    for j in 0..grid.len() {
        let (w, l) = (grid.weight[j] * unit, grid.log_ratio[j]);
        let (weight_slip, ratio_slip) = (grid.weight_slip[j], grid.ratio_slip[j]);
        if l.abs() <= cut {
            let mut power = w * l;
            for (m, sum) in first_moments.iter_mut().enumerate() {
                power *= l / (m + 2) as f64;
                sum.add(power);
            }
            for (m, moment) in moments.iter_mut().enumerate().skip(CAREFUL + 2) {
                power *= l / m as f64;
                *moment += power;
            }
            linear.add(unit * grid.curved(j));
            bounds.small += 6.0 * w * l * l;
            bounds.moved += w * l.abs() * (0.83 * l.abs() * weight_slip + 1.7 * ratio_slip);
        } else {
            let tilted = exp(grid.log_weight[j] + c * l - shift);
            direct.push(tilted, l);
            let lift = grid.lifted(j) * unit;
            mass.add(w);
            slope.add(lift);
            bounds.tilted_mass += tilted;
            bounds.fixed += tilted * (16.0 + weight_slip) + w * (4.0 + weight_slip);
            bounds.growing += tilted * (6.0 * l.abs() + ratio_slip)
                + lift.abs() * (8.0 + weight_slip + ratio_slip)
                + w * ratio_slip;
        }
    }
    for (moment, sum) in moments[2..].iter_mut().zip(&first_moments) {
        *moment = sum.total();
    }
    moments[1] = -linear.total();
    let (mass, slope, tilted_mass) = (mass.total(), slope.total(), bounds.tilted_mass);

    let mut out = Transform {
        log: Vec::with_capacity(count),
        error: Vec::with_capacity(count),
        upper: Vec::with_capacity(count),
    };
    let mut sums = direct.sums(spacing, count);
    let Deficit { mass: lost, slope: lost_slope, mass_error, slope_error } = grid.deficit;
    let (lost, lost_slope) = (lost * unit, lost_slope * unit);
    let (mass_error, slope_error) = (mass_error * unit, slope_error * unit);
    let discretisation = grid.relative_error;
    for k in 0..count {
        let u = spacing * k as f64;
        let s = Complex::new(c, u);
        let mut polynomial = Complex::new(moments[TERMS], 0.0);
        for m in (1..TERMS).rev() {
            polynomial = polynomial * s + Complex::new(moments[m], 0.0);
        }
        polynomial = polynomial * s;
        let (sum, chain) = sums.at(k, u);
        let excess = Complex::new(
            polynomial.re + (sum.re - mass - c * slope) - lost - c * lost_slope,
            polynomial.im + (sum.im - u * slope) - u * lost_slope,
        );
        let size = s.modulus();
        let whole = Complex::new(unit + excess.re, excess.im);
        let modulus = whole.modulus();
        let absolute = UNIT
            * (size * (size + 1.0) * bounds.small
                + size * hypot(c - 1.0, u) * bounds.moved
                + bounds.fixed
                + size * bounds.growing
                + 4.0 * (mass + lost + size * (slope.abs() + lost_slope.abs())))
            + chain
            + mass_error
            + size * slope_error
            + discretisation * (unit * (1.0 + size) + 1.0 + tilted_mass);
        let (log, rounded) = if shift > 0.0 {
            let log = whole.ln() + Complex::new(shift, 0.0);
            (log, UNIT * (4.0 + 2.0 * log.modulus()))
        } else {
            excess.ln_1p()
        };
        out.log.push(log);
        // The modulus, the logarithm and the sums are rounded; it is multiplied by the number of steps.
        let above = ln(modulus + absolute);
        out.upper.push(above + shift + UNIT * (4.0 + 2.0 * (above.abs() + shift)));
        // |log(1 + e/A)| <= 1.5 |e/A| while |e/A| <= 1/4; beyond that the node is useless.
        let relative = absolute / modulus;
        out.error.push(if relative <= 0.25 { 1.5 * relative + rounded } else { f64::INFINITY });
    }
    out
}

/// Plain sums of weight e^{(c + iu) log W}: (values, absolute errors), both divided by e^scale.
pub(crate) fn plain(
    grid: &Grid,
    c: f64,
    spacing: f64,
    count: usize,
) -> (f64, Vec<Complex>, Vec<f64>) {
    let scale = grid
        .log_weight
        .iter()
        .zip(&grid.log_ratio)
        .map(|(lw, l)| lw + c * l)
        .fold(f64::NEG_INFINITY, f64::max);
    let mut direct = Direct::default();
    let (mut total, mut fixed, mut growing) = (0.0, 0.0, 0.0);
    for j in 0..grid.len() {
        let l = grid.log_ratio[j];
        let tilted = exp(grid.log_weight[j] + c * l - scale);
        if tilted > 1e-40 {
            direct.push(tilted, l);
            total += tilted;
            fixed += tilted * (16.0 + grid.weight_slip[j]);
            growing += tilted * (6.0 * l.abs() + grid.ratio_slip[j]);
        }
    }
    // Points left out, all together.
    let left_out = 1e-40 * grid.len() as f64;
    let mut sums = direct.sums(spacing, count);
    let (mut values, mut errors) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for k in 0..count {
        let u = spacing * k as f64;
        let (sum, chain) = sums.at(k, u);
        values.push(sum);
        errors.push(
            UNIT * (fixed + (u + c.abs()) * growing)
                + chain
                + left_out
                + grid.relative_error * total,
        );
    }
    (scale, values, errors)
}

/// More products of points and nodes than this go through the FFT.
const MOST_PRODUCTS: usize = 4_000_000;

/// The sums at all nodes: some points one after the other, the others all at once.
struct Sums {
    direct: Direct,
    total: f64,
    spread: Option<spread::Spread>,
}

impl Sums {
    /// The sum at node k (in order) and the error of adding it up.
    fn at(&mut self, k: usize, u: f64) -> (Complex, f64) {
        let lanes = (self.direct.len() / 4 + 4) as f64;
        let chain = UNIT * (lanes + 2.0 * (k % REFRESH) as f64) * self.total;
        let sum = self.direct.sum(k, u);
        match &self.spread {
            Some(spread) => (sum + spread.values[k], chain + spread.error),
            None => (sum, chain),
        }
    }
}

/// The points that are summed one by one, as four parallel arrays.
#[derive(Default)]
struct Direct {
    length: Vec<f64>,
    weight: Vec<f64>,
    re: Vec<f64>,
    im: Vec<f64>,
    turn_re: Vec<f64>,
    turn_im: Vec<f64>,
}

impl Direct {
    fn push(&mut self, weight: f64, length: f64) {
        self.weight.push(weight);
        self.length.push(length);
    }

    fn len(&self) -> usize {
        self.weight.len()
    }

    fn sums(mut self, spacing: f64, count: usize) -> Sums {
        let mut spread = None;
        if self.len() * count > MOST_PRODUCTS && self.len() > 256 {
            // The heaviest points one by one: the error of the FFT goes with the weight in it.
            let few = MOST_PRODUCTS / 2 / count;
            let mut order = self.weight.clone();
            let index = self.len() - 1 - few.min(self.len() - 1);
            let limit = *order.select_nth_unstable_by(index, f64::total_cmp).1;
            let mut light = Self::default();
            let mut heavy = Self::default();
            for (&weight, &length) in self.weight.iter().zip(&self.length) {
                if weight > limit { &mut heavy } else { &mut light }.push(weight, length);
            }
            spread = Some(spread::sums(&light.length, &light.weight, spacing, count));
            self = heavy;
        }
        self.begin(spacing);
        let total = self.weight.iter().sum();
        Sums { direct: self, total, spread }
    }

    fn begin(&mut self, spacing: f64) {
        for &l in &self.length {
            let (sin, cos) = sin_cos(spacing * l);
            self.turn_re.push(cos);
            self.turn_im.push(sin);
        }
        self.re = vec![0.0; self.len()];
        self.im = vec![0.0; self.len()];
    }

    /// Sum of weight e^{iu length} at node k, and the turn to the next node.
    fn sum(&mut self, k: usize, u: f64) -> Complex {
        if k.is_multiple_of(REFRESH) {
            for j in 0..self.len() {
                let (sin, cos) = sin_cos(u * self.length[j]);
                self.re[j] = self.weight[j] * cos;
                self.im[j] = self.weight[j] * sin;
            }
        }
        let mut re = [0.0f64; 4];
        let mut im = [0.0f64; 4];
        let n = self.len();
        let whole = n - n % 4;
        let (turn_re, turn_im) = (&self.turn_re[..n], &self.turn_im[..n]);
        let (a, b) = (&mut self.re[..n], &mut self.im[..n]);
        for j in (0..whole).step_by(4) {
            for lane in 0..4 {
                let (x, y) = (a[j + lane], b[j + lane]);
                re[lane] += x;
                im[lane] += y;
                a[j + lane] = x * turn_re[j + lane] - y * turn_im[j + lane];
                b[j + lane] = x * turn_im[j + lane] + y * turn_re[j + lane];
            }
        }
        for j in whole..n {
            let (x, y) = (a[j], b[j]);
            re[0] += x;
            im[0] += y;
            a[j] = x * turn_re[j] - y * turn_im[j];
            b[j] = x * turn_im[j] + y * turn_re[j];
        }
        Complex::new((re[0] + re[1]) + (re[2] + re[3]), (im[0] + im[1]) + (im[2] + im[3]))
    }
}
