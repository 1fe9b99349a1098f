//! E W^{s-iu} at many u, with errors.
//!
//! On the ray z = e^{tau + i alpha} the trapezoid rule with step h in tau has two errors for every strip about it:
//! its sum differs from the integral by at most N(alpha + d)/(e^{2 pi d/h} - 1) for each of the two sides
//! d > 0 and d < 0 (with -d in the exponent), where N(beta) is the integral of |z^p E[W^n e^{-zW}]| along arg z = beta. By the
//! identity of the parent module N(beta) <= e^{-u beta + S sigma^2 kappa^2/2} cos(beta - kappa)^{-c} Gamma(c) E W^{n-c}.
//! Below tau_0 at most E W^n remains of the factor; above tau_1, (xW)^q e^{-xW} <= (q/e)^q leaves
//! (q/e)^q x^{-q} E W^{n-q}, x = r cos(alpha - kappa), and E W^{-m} <= exp(m^2/(2 S sigma^2) + m/(2 sigma^2)) because an
//! average is at least the geometric one.
//!
//! E[Y^k e^{-zY}] is the trapezoid rule over g, turned by rho (of z's angle alpha, omega = alpha - rho remains):
//! e^{-ik rho + sigma^2 rho^2/2} times the mean of e^{i sigma rho g} Y^k exp(-r e^{i omega} Y). In the strip of half-width
//! d <= sigma (pi/2 - |omega|) the exponential stays below 1, so that its error is at most
//! E Y^k e^{(d^2 + sigma^2 rho^2)/2 + sigma rho d} 2/(e^{2 pi d/h} - 1).

use super::gamma::{beside_gamma, ln_gamma};
use crate::complex::Complex;
use crate::elementary::{atan2, cos, exp, exp_m1, hypot, ln, sin_cos};
use std::f64::consts::{FRAC_PI_2, PI};

const UNIT: f64 = f64::EPSILON / 2.0;
/// Minus the logarithm to which each error is pushed, relative to a moment, and where a moment is only to choose by.
pub(super) const FULL: f64 = 38.0;
pub(super) const LIGHT: f64 = 12.0;
/// Points times nodes at most.
const MOST_TERMS: f64 = 2e7;
/// Points of a ray at most.
const MOST_POINTS: f64 = 20_000.0;

/// Averages of S log-normals, and the moment E W^{n-c}.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) sigma: f64,
    pub(super) count: f64,
    pub(super) order: u32,
    pub(super) c: f64,
    /// Minus the logarithm to which each error is pushed.
    pub(super) depth: f64,
}

/// ln of the modulus, argument, error relative to the modulus, and ln of a bound on the modulus.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) log: f64,
    pub(super) argument: f64,
    pub(super) slip: f64,
    pub(super) most: f64,
}

/// E[W^n e^{-zW}] along a ray, times e^{c (tau - middle)}. All tau are whole numbers of steps, and steps have few
/// bits: they are exact, and so are their differences.
struct Ray {
    alpha: f64,
    step: f64,
    /// Where the integrand is largest, roughly; and the first tau, in steps from there.
    middle: f64,
    first: i64,
    values: Vec<Complex>,
    errors: Vec<f64>,
    /// What is left out at both ends, as a sum.
    outside: f64,
    strips: Vec<Strip>,
}

/// Weights of the trapezoid rule over g.
struct Rule {
    weights: Vec<Complex>,
    sizes: Vec<f64>,
    /// Y, and 12 + g^2 + 2|g|/sigma.
    places: Vec<f64>,
    slips: Vec<f64>,
    rho: f64,
    omega: f64,
    /// Errors of E[Y^k e^{-zY}] by the rule.
    errors: Vec<f64>,
    /// E Y^k, and their relative errors by rounding.
    means: Vec<(f64, f64)>,
    sigma: f64,
}

/// A line arg z = beta beside a ray, and ln of N(beta)/(Gamma(c) E W^{n-c}) at most, but for e^{-u beta}.
#[derive(Clone, Copy)]
struct Strip {
    width: f64,
    beta: f64,
    log: f64,
}

/// ln of a bound on the error of the sum over a ray with this step at u, in units of Gamma(c) E W^{n-c}: the best
/// strip on either side.
fn log_alias(strips: &[Strip], step: f64, u: f64) -> f64 {
    let best = |strips: &[Strip]| {
        let of = |strip: &Strip| {
            let fall = 2.0 * PI * strip.width / step;
            // 1/(e^x - 1) <= 1.6 e^-x from x = 1 on.
            if fall > 1.0 { strip.log - u * strip.beta - fall + 0.47 } else { f64::INFINITY }
        };
        strips.iter().map(of).fold(f64::INFINITY, f64::min)
    };
    let (above, below) = strips.split_at(strips.len() / 2);
    best(above).max(best(below)) + std::f64::consts::LN_2
}

impl Moment {
    /// E W^{n-c-iu} at u = k spacing, k < count, in blocks that share a ray; `None` if that is too much work.
    pub(super) fn at_nodes(&self, spacing: f64, count: usize) -> Option<Vec<Known>> {
        let real = self.real()?;
        let mut all = vec![real];
        while all.len() < count {
            let from = all.len();
            let low = from as f64 * spacing;
            // The ray of the middle of a block serves all of it.
            let width = (2.5 * (self.c * self.c + low * low) / self.c).sqrt();
            let to = count.min(from + ((1.6 * width / spacing) as usize).max(1));
            let high = (to - 1) as f64 * spacing;
            let alpha = atan2(0.5 * (low + high), self.c);
            let ray = self.ray(alpha, low, high, real.most)?;
            if ray.values.len() as f64 * (to - from) as f64 > MOST_TERMS {
                return None;
            }
            self.add(&ray, spacing, from..to, real.most, &mut all);
            crate::patience::look();
        }
        Some(all)
    }

    /// E W^{n-c}.
    pub(super) fn real(&self) -> Option<Known> {
        // Jensen's inequality from either side is enough to choose by; the bound follows from what comes out.
        let s = f64::from(self.order) - self.c;
        let guess =
            if s > 0.0 { self.log_positive(s.ceil().max(1.0)) } else { self.log_negative(-s) };
        let with = |depth: f64, guess: f64| -> Option<Known> {
            let moment = Self { depth, ..*self };
            let ray = moment.ray(0.0, 0.0, 0.0, guess)?;
            let mut found = Vec::new();
            moment.add(&ray, 0.0, 0..1, guess, &mut found);
            found.pop()
        };
        // Light passes until one says no less than it was told, but for a part of its depth.
        let mut found = with(LIGHT, guess)?;
        if found.most < guess - 0.5 * LIGHT {
            found = with(LIGHT, found.most)?;
        }
        if self.depth > LIGHT { with(self.depth, found.most) } else { Some(found) }
    }

    /// A bound on ln E W^n, n >= 1: Jensen's inequality.
    fn log_positive(&self, n: f64) -> f64 {
        0.5 * n * (n - 1.0) / (self.sigma * self.sigma)
    }

    /// A bound on ln E W^{-m}, m >= 0.
    fn log_negative(&self, m: f64) -> f64 {
        (0.5 * m * m / self.count + 0.5 * m) / (self.sigma * self.sigma)
    }

    fn turn_cost(&self, kappa: f64) -> f64 {
        0.5 * self.count * self.sigma * self.sigma * kappa * kappa
    }

    /// ln of a bound on N(beta)/(Gamma(c) E W^{n-c}), but for the factor e^{-u beta}.
    fn log_ray(&self, beta: f64) -> f64 {
        let mut best = f64::INFINITY;
        for part in [0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5] {
            let kappa = if beta < 0.0 { -part } else { part };
            let angle = (beta - kappa).abs();
            if angle < FRAC_PI_2 - 1e-6 {
                best = best.min(self.turn_cost(kappa) - self.c * ln(cos(angle)));
            }
        }
        best
    }

    /// Strips about a ray.
    fn strips(&self, alpha: f64) -> Vec<Strip> {
        const WIDTHS: [f64; 12] =
            [0.03, 0.06, 0.1, 0.15, 0.22, 0.3, 0.45, 0.65, 0.9, 1.2, 1.6, 2.0];
        let of = |(width, sign): (f64, f64)| {
            let beta = alpha + sign * width;
            Strip { width, beta, log: self.log_ray(beta) }
        };
        let sides = [1.0, -1.0].into_iter();
        sides.flat_map(|sign| WIDTHS.map(|width| (width, sign)).map(of)).collect()
    }

    fn ray(&self, alpha: f64, low: f64, high: f64, log_moment: f64) -> Option<Ray> {
        let gamma = ln_gamma(self.c, 0.0).0;
        // What the division by Gamma(p) e^{alpha u} makes of an error.
        let grown = |u: f64| gamma - ln_gamma(self.c, u).0;
        let wanted = -self.depth;
        let strips = self.strips(alpha);
        let ends = [(low, grown(low)), (high, grown(high))];
        let mut step = 0.5;
        while ends.iter().any(|(u, grown)| log_alias(&strips, step, *u) + grown > wanted) {
            step *= 0.85;
            if step < 1e-4 {
                return None;
            }
        }
        // To few bits: whole numbers of steps are exact.
        let step = (step * 16_777_216.0).floor() / 16_777_216.0;
        let amplified = ends.iter().map(|(u, grown)| grown - u * alpha).fold(0.0, f64::max);
        let log_unit = gamma + log_moment - self.depth - amplified;
        let n = f64::from(self.order);
        let below = |tau: f64| {
            let most = if self.order == 0 { 0.0 } else { self.log_positive(n) };
            most + self.c * tau + ln(step / -exp_m1(-self.c * step))
        };
        let mut first = -1.0;
        while below(first) > log_unit {
            first -= 0.5;
            if first < -400.0 {
                return None;
            }
        }
        let above = |tau: f64| self.log_above(alpha, tau, step);
        let mut last = 1.0;
        while above(last) > log_unit {
            last += 0.25;
            if last > 60.0 {
                return None;
            }
        }
        let whole = (first / step).floor();
        let first = whole * step;
        let points = ((last - first) / step).ceil() + 1.0;
        if !(points <= MOST_POINTS) {
            return None;
        }
        let peak = (ln(hypot(self.c, 0.5 * (low + high))) / step).round();
        let middle = peak * step;
        let rule = Rule::new(self.sigma, alpha, self.order, self.depth);
        let (mut values, mut errors) = (Vec::new(), Vec::new());
        for index in 0..points as usize {
            if index % 64 == 0 {
                crate::patience::look();
            }
            let tau = first + step * index as f64;
            let (value, error) = rule.power(exp(tau), self.count, self.order);
            let off = self.c * (tau - middle);
            let weight = exp(off);
            values.push(value.scale(weight));
            errors.push((error + value.modulus() * UNIT * (4.0 + 2.0 * off.abs())) * weight);
        }
        let end = first + step * (points - 1.0);
        let scaled = |log: f64| exp(log - self.c * middle + 1e-12);
        let outside = scaled(below(first)) + scaled(above(end));
        let first = (whole - peak) as i64;
        Some(Ray { alpha, step, middle, first, values, errors, outside, strips })
    }

    /// ln of a bound on the sum over all points above tau.
    fn log_above(&self, alpha: f64, tau: f64, step: f64) -> f64 {
        let mut best = f64::INFINITY;
        for m in [1.0, 2.0, 4.0, 7.0, 12.0, 20.0, 35.0, 60.0, 100.0, 170.0, 300.0] {
            let q = m + f64::from(self.order);
            if q <= self.c {
                continue;
            }
            for kappa in [0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0] {
                let angle = alpha - kappa;
                if angle.abs() < FRAC_PI_2 - 1e-6 {
                    let size = self.turn_cost(kappa)
                        + q * (ln(q) - 1.0 - ln(cos(angle)))
                        + self.log_negative(m);
                    let sum = (self.c - q) * tau + ln(step / -exp_m1(-(q - self.c) * step));
                    best = best.min(size + sum);
                }
            }
        }
        best
    }

    /// The moments at some nodes from a ray.
    fn add(
        &self,
        ray: &Ray,
        spacing: f64,
        nodes: std::ops::Range<usize>,
        log_moment: f64,
        out: &mut Vec<Known>,
    ) {
        let gamma = ln_gamma(self.c, 0.0).0;
        let first_node = nodes.start;
        // e^{i u (tau - middle)} by turning each point from node to node, anew after some.
        const AFRESH: usize = 16;
        const CHUNK: usize = 32;
        let taus: Vec<f64> =
            (0..ray.values.len()).map(|j| ray.step * (ray.first + j as i64) as f64).collect();
        let steps: Vec<(f64, f64)> = taus.iter().map(|tau| sin_cos(spacing * tau)).collect();
        let mut turned = vec![Complex::new(0.0, 0.0); ray.values.len()];
        let (mut size, mut spread) = (0.0, 0.0);
        for (value, tau) in ray.values.iter().zip(&taus) {
            let here = value.re.abs() + value.im.abs();
            size += here;
            spread += here * tau.abs();
        }
        let error: f64 = ray.errors.iter().sum();
        for (index, _) in nodes.enumerate() {
            let u = spacing * (first_node + index) as f64;
            if index % AFRESH == 0 {
                for ((turned, value), tau) in turned.iter_mut().zip(&ray.values).zip(&taus) {
                    let (sin, cos) = sin_cos(u * tau);
                    *turned = *value * Complex::new(cos, sin);
                }
            } else {
                for (turned, (sin, cos)) in turned.iter_mut().zip(&steps) {
                    *turned = *turned * Complex::new(*cos, *sin);
                }
            }
            let (mut re, mut im) = (0.0, 0.0);
            for chunk in turned.chunks(CHUNK) {
                let part = chunk.iter().fold(Complex::new(0.0, 0.0), |sum, term| sum + *term);
                re += part.re;
                im += part.im;
            }
            let terms = ray.values.len() as f64;
            let rounding = UNIT
                * (size * (8.0 + CHUNK as f64 + terms / CHUNK as f64 + 6.0 * AFRESH as f64)
                    + 4.0 * (u + AFRESH as f64 * spacing) * spread);
            let alias =
                exp(log_alias(&ray.strips, ray.step, u) + gamma + log_moment + ray.alpha * u
                    - self.c * ray.middle);
            let off = ray.step * (error + rounding) + ray.outside + alias;
            let modulus = ray.step * hypot(re, im);
            let log = if modulus > 0.0 { ln(modulus) } else { -1e6 };
            let beside = beside_gamma(self.c, u, ray.alpha, ray.middle);
            let slip = off / (modulus - off).max(f64::MIN_POSITIVE)
                + 2.0 * beside.error
                + UNIT * (16.0 + 2.0 * log.abs().min(1e6));
            out.push(Known {
                log: log + beside.log,
                argument: atan2(im, re) + beside.argument,
                slip,
                most: ln(modulus + off) + beside.log + 2.0 * beside.error + UNIT * 64.0,
            });
        }
    }
}

impl Rule {
    fn new(sigma: f64, alpha: f64, order: u32, depth: f64) -> Self {
        let rho = alpha.min(1.0 / sigma);
        let omega = alpha - rho;
        let d = (sigma * (FRAC_PI_2 - omega.abs())).min(6.0);
        let turned = 0.5 * sigma * sigma * rho * rho;
        let strip = 0.5 * d * d + sigma * rho * d + turned;
        let step = 2.0 * PI * d / (depth + 4.0 + strip);
        let end = 9.5 + f64::from(order + 1) / sigma;
        let (low, high) = (-(9.5 / step).ceil() as i64, (end / step).ceil() as i64);
        let mut rule = Self {
            weights: Vec::new(),
            sizes: Vec::new(),
            places: Vec::new(),
            slips: Vec::new(),
            rho,
            omega,
            errors: Vec::new(),
            means: Vec::new(),
            sigma,
        };
        let norm = step * 0.398_942_280_401_432_7;
        for i in low..=high {
            let g = step * i as f64;
            let size = norm * exp(turned - 0.5 * g * g);
            let (sin, cos) = sin_cos(sigma * rho * g);
            rule.weights.push(Complex::new(size * cos, size * sin));
            rule.sizes.push(size);
            rule.places.push(exp(g / sigma - 0.5 / (sigma * sigma)));
            rule.slips.push(
                UNIT * (16.0 + g * g + 4.0 * g.abs() / sigma + 2.0 * (sigma * rho * g).abs()),
            );
        }
        // Besides the strip: what lies beyond 9.5 standard deviations on either side (1e-20 of E Y^k).
        let relative = 4.0 * exp(strip) / exp_m1(2.0 * PI * d / step) + 1e-19 * exp(turned);
        for k in 0..=order + 1 {
            let k = f64::from(k);
            let log = 0.5 * k * (k - 1.0) / (sigma * sigma);
            rule.means.push((exp(log), UNIT * (12.0 + 4.0 * log + 4.0 * k)));
            rule.errors.push(relative * exp(log));
        }
        rule
    }

    /// E[W^n e^{-zW}] at z = r e^{i alpha}, W an average of `count`, with its error.
    ///
    /// Where zY/S is small for the Y that count in E Y^k, the rule takes what e^{-zY/S} changes: E Y^k is known, and for
    /// k = 0 so is the mean of zY/S.
    fn power(&self, r: f64, count: f64, order: u32) -> (Complex, f64) {
        let scale = r / count;
        let (sin, cos) = sin_cos(self.omega);
        let orders = order as usize + 1;
        // E Y^k counts Y about e^{(k - 1/2)/sigma^2}.
        let known = self.sigma * self.sigma * ln(0.3 / scale) - 0.5;
        let known = (known.ceil().max(0.0) as usize).min(orders);
        let mut sums = [Complex::new(0.0, 0.0); MOST_ORDER + 1];
        let (mut errors, mut sizes) = ([0.0; MOST_ORDER + 1], [0.0; MOST_ORDER + 1]);
        for (i, y) in self.places.iter().enumerate() {
            let (weight, size, slip) = (self.weights[i], self.sizes[i], self.slips[i]);
            let far = scale * y;
            // Beyond this the exponential is below 1e-304.
            let nothing = far * cos > 700.0;
            let (left, changed) = if nothing {
                (1e-303, Complex::new(-1.0, 0.0))
            } else {
                let x = -far * cos;
                let left = exp(x);
                let less = if x < -0.7 { left - 1.0 } else { exp_m1(x) };
                let changed = if sin == 0.0 {
                    Complex::new(less, 0.0)
                } else {
                    // e^x cos y - 1 and e^x sin y from half the angle: nothing cancels.
                    let (half, other) = sin_cos(-0.5 * far * sin);
                    Complex::new(less - 2.0 * left * half * half, 2.0 * left * half * other)
                };
                (left, changed)
            };
            let modulus = changed.re.abs() + changed.im.abs();
            if known > 0 {
                let rest = beyond_first(Complex::new(far * cos, far * sin), changed);
                let size_of_rest = rest.re.abs() + rest.im.abs();
                sums[0] = sums[0] + weight * rest;
                sizes[0] += size * size_of_rest;
                errors[0] += size * slip * (size_of_rest + far * far.min(2.0));
            } else {
                sums[0] = sums[0] + weight * changed;
                sizes[0] += size * modulus;
                errors[0] += size * slip * (modulus + far * left);
            }
            let mut grown = size;
            let mut power = weight;
            for k in 1..known {
                power = power.scale(*y);
                grown *= y;
                sums[k] = sums[k] + power * changed;
                sizes[k] += grown * modulus;
                errors[k] += grown * slip * ((2.0 + k as f64) * modulus + far * left);
            }
            let mut term = power * Complex::new(1.0 + changed.re, changed.im);
            for k in known.max(1)..orders {
                term = term.scale(*y);
                grown *= y;
                sums[k] = sums[k] + term;
                sizes[k] += grown * left;
                errors[k] += grown * left * slip * (2.0 + k as f64 + far);
            }
        }
        if known > 0 {
            let (sin, cos) = sin_cos(self.rho + self.omega);
            sums[0] = sums[0] - Complex::new(scale * cos, scale * sin);
            // Of z, too: its angle, and r.
            errors[0] += 12.0 * UNIT * scale + scale * self.errors[1];
        }
        for k in 1..known {
            let (mean, off) = self.means[k];
            let (sin, cos) = sin_cos(k as f64 * self.rho);
            sums[k] = sums[k] + Complex::new(mean * cos, mean * sin);
            errors[k] += mean * off;
        }
        let terms = self.places.len() as f64;
        for k in 0..orders {
            errors[k] += self.errors[k] + UNIT * (terms + 8.0) * sizes[k];
        }
        let (log, log_error) = sums[0].ln_1p();
        let base = Complex::new(1.0 + sums[0].re, sums[0].im);
        let modulus = base.modulus();
        let relative = errors[0] / (modulus - errors[0]).max(f64::MIN_POSITIVE);
        let slip = count * (log_error + relative.min(1e9))
            + UNIT * (8.0 + 4.0 * count * (log.re.abs() + log.im.abs()));
        let (sin, cos) = sin_cos(count * log.im);
        let grown = exp(count * log.re);
        let power = Complex::new(grown * cos, grown * sin);
        // Where the base drowns in its error: a bound on the power, whose modulus is at most 1.
        let most = exp(count * ln(modulus + errors[0]).min(0.0));
        let off = if slip < 0.5 { 1.3 * slip * grown } else { grown + most };
        if order == 0 {
            return (power, off);
        }
        self.with_order(&sums, &errors, (power, off, base), count, order)
    }

    /// The coefficient of order n of the power series to the power S, times n!/S^n.
    fn with_order(
        &self,
        sums: &[Complex],
        errors: &[f64],
        (power, off, base): (Complex, f64, Complex),
        count: f64,
        order: u32,
    ) -> (Complex, f64) {
        let orders = order as usize + 1;
        if count <= FEW {
            return self.by_products(sums, errors, count as u64, orders);
        }
        if base.modulus() < SMALL {
            // At most n factors of the power are not a_0: n! |a_0|^{S-n} (sum |a_k|/k!)^n bounds it.
            let mut total = base.modulus() + errors[0];
            let small = total;
            let mut factorial = 1.0;
            for k in 1..orders {
                factorial *= k as f64;
                total += (sums[k].modulus() + errors[k]) / factorial;
            }
            let n = f64::from(order);
            let log = ln(factorial) + (count - n) * ln(small) + n * ln(total);
            return (Complex::new(0.0, 0.0), exp(log + 1e-9));
        }
        let norm = 1.0 / (base.re * base.re + base.im * base.im);
        let inverse = Complex::new(base.re * norm, -base.im * norm);
        let modulus = base.modulus();
        // b_k = a_k/(k! a_0), with bounds on their moduli and errors.
        let mut b = [Complex::new(1.0, 0.0); MOST_ORDER + 1];
        let (mut most, mut slips) = ([1.0; MOST_ORDER + 1], [0.0; MOST_ORDER + 1]);
        let mut factorial = 1.0;
        for k in 1..orders {
            factorial *= k as f64;
            let (sin, cos) = sin_cos(-(k as f64) * self.rho);
            b[k] = (sums[k] * Complex::new(cos, sin) * inverse).scale(1.0 / factorial);
            let size = b[k].modulus();
            slips[k] = errors[k] / (factorial * modulus)
                + size
                    * (errors[0] / (modulus - errors[0]).max(f64::MIN_POSITIVE)
                        + (18.0 + 3.0 * k as f64) * UNIT);
            most[k] = size + slips[k];
        }
        // m C_m = sum_k (k S - (m - k)) b_k C_{m-k}, beside the same with moduli and with errors.
        let mut c = [Complex::new(1.0, 0.0); MOST_ORDER + 1];
        let (mut largest, mut wrong) = ([1.0; MOST_ORDER + 1], [0.0; MOST_ORDER + 1]);
        for m in 1..orders {
            let (mut value, mut size, mut error) = (Complex::new(0.0, 0.0), 0.0, 0.0);
            for k in 1..=m {
                let factor = (k as f64 * count - (m - k) as f64) / m as f64;
                value = value + (b[k] * c[m - k]).scale(factor);
                size += factor.abs() * most[k] * largest[m - k];
                error += factor.abs() * (slips[k] * largest[m - k] + most[k] * wrong[m - k]);
            }
            c[m] = value;
            largest[m] = size;
            // Products and factors, and the sum of m terms.
            wrong[m] = error + (10.0 + m as f64) * UNIT * size;
        }
        let scale: f64 = (1..orders).map(|k| k as f64 / count).product();
        let n = order as usize;
        let value = (power * c[n]).scale(scale);
        let bound = power.modulus() + off;
        let rounding = (32.0 + 2.0 * n as f64) * UNIT;
        (value, scale * (off * largest[n] + bound * wrong[n]) + rounding * value.modulus())
    }
}

impl Rule {
    /// The same for few numbers: the series to its power by products, which divide by nothing.
    fn by_products(
        &self,
        sums: &[Complex],
        errors: &[f64],
        count: u64,
        orders: usize,
    ) -> (Complex, f64) {
        let mut one = Series::default();
        let mut factorial = 1.0;
        for k in 0..orders {
            factorial *= k.max(1) as f64;
            let (sin, cos) = sin_cos(-(k as f64) * self.rho);
            let sum = if k == 0 { Complex::new(1.0 + sums[0].re, sums[0].im) } else { sums[k] };
            let value = (sum * Complex::new(cos, sin)).scale(1.0 / factorial);
            let size = value.modulus() + UNIT;
            one.values[k] = value;
            one.errors[k] = errors[k] / factorial + (16.0 + 2.0 * k as f64) * UNIT * size;
        }
        let mut power = one;
        for bit in (0..63 - count.leading_zeros()).rev() {
            power = power.times(&power, orders);
            if count >> bit & 1 == 1 {
                power = power.times(&one, orders);
            }
        }
        let n = orders - 1;
        let scale: f64 = (1..orders).map(|k| k as f64 / count as f64).product();
        let value = power.values[n].scale(scale);
        let rounding = (16.0 + 2.0 * n as f64) * UNIT * value.modulus();
        (value, scale * power.errors[n] * (1.0 + 1e-9) + rounding)
    }
}

/// e^{-w} - 1 + w, Re w >= 0, beside e^{-w} - 1.
fn beyond_first(w: Complex, changed: Complex) -> Complex {
    if w.re.abs() + w.im.abs() > 0.25 {
        return changed + w;
    }
    // w^2/2 (1 - w/3 (1 - w/4 (...))): what is left out is below 1e-18 of it.
    let mut series = Complex::new(1.0, 0.0);
    for k in (3..=12).rev() {
        let next = w * series;
        series = Complex::new(1.0 - next.re / f64::from(k), -next.im / f64::from(k));
    }
    (w * w * series).scale(0.5)
}

/// Coefficients of a power series with their errors.
#[derive(Clone, Copy)]
struct Series {
    values: [Complex; MOST_ORDER + 1],
    errors: [f64; MOST_ORDER + 1],
}

impl Default for Series {
    fn default() -> Self {
        Self { values: [Complex::new(0.0, 0.0); MOST_ORDER + 1], errors: [0.0; MOST_ORDER + 1] }
    }
}

impl Series {
    fn times(&self, other: &Self, orders: usize) -> Self {
        let mut out = Self::default();
        for m in 0..orders {
            for k in 0..=m {
                let (a, b) = (self.values[k], other.values[m - k]);
                let (x, y) = (a.modulus(), b.modulus());
                let (da, db) = (self.errors[k], other.errors[m - k]);
                out.values[m] = out.values[m] + a * b;
                out.errors[m] += da * (y + db) + x * db + (8.0 + orders as f64) * UNIT * x * y;
            }
        }
        out
    }
}

/// Up to this many numbers powers are products.
const FEW: f64 = 24.0;
/// A base whose power is as good as nothing.
const SMALL: f64 = 1e-2;
/// The largest n.
pub(super) const MOST_ORDER: usize = 64;
