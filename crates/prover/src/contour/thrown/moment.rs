//! E W^(m-p-iu) of one factor at equally spaced u, p > 0.
//!
//! W = a + (Y_1 + ... + Y_n)/S, a = (S-n)/S, Y = e^(g/sigma - 1/(2 sigma^2)). Along arg z = alpha, |alpha| < pi/2,
//!
//! ```text
//! Gamma(p+iu) E W^(m-p-iu) = integral of z^(p+iu-1) E[W^m e^(-zW)] dz,   E e^(-zW) = e^(-az) phi(z/S)^n,   phi(z) = E e^(-zY),
//! ```
//!
//! and Gamma(p+iu) is the same integral with W = 1 ([`super::power`] for m > 0). Both are sums over z = e^(tau + i alpha), tau = j h,
//! and their quotient is what is asked for; the factor e^(i alpha (p+iu)) of both cancels, and moduli below are without it.
//!
//! - **Strips.** Along arg z = beta the integral of |z^(p+iu-1) E[W^m e^(-zW)]| is at most e^(-u beta) (cos beta)^-p
//!   Gamma(p) E W^(m-p), since |e^(-zW)| = e^(-|z| W cos beta). So the sum is off by at most that for beta = alpha + d,
//!   divided by e^(2 pi d/h) - 1, and for beta = alpha - d'.
//! - **Ends.** |E[W^m e^(-zW)]| <= E W^m on the left. On the right x^q e^-x <= (q/e)^q with x = |z| W cos alpha, so that it is
//!   at most (q/e)^q (|z| cos alpha)^-q E W^(m-q). A weighted arithmetic mean is at least the geometric one, so
//!   E W^-q' <= E prod Y^(-q'/S) = e^(n (r^2 + r)/(2 sigma^2)), r = q'/S, for q' = q - m >= 0; and W >= a. For -1 <= q' <= 0
//!   E W^-q' <= (E W)^-q' = 1.
//! - **phi.** With g moved to g - i sigma rho, phi(r e^(i alpha)) = e^(sigma^2 rho^2/2) E[e^(i sigma rho g) exp(-r
//!   e^(i omega) Y)], omega = alpha - rho. While omega + d/sigma <= pi/2 the last factor is at most 1 in a strip of
//!   half-width d, and the trapezoid rule in g off by at most 2 e^(sigma^2 rho^2/2 + d^2/2 + sigma rho d)/(e^(2 pi
//!   d/h') - 1). With h' = sigma m h, r Y depends on tau + g/sigma alone, a multiple of h: all values of the
//!   exponential are in one table. Of the f_k, z is larger by e^(k/sigma^2).

use super::Factor;
use super::power::{Power, raised};
use super::ray::Ray;
use super::rough::Low;
use crate::arithmetic::{Ball, Complex, Magnitude, normal_tail};
use crate::contour::transform::Transform;

/// One factor's constants.
pub(super) struct Average<'a, const N: usize> {
    sigma: f64,
    factor: &'a Factor,
    /// a.
    rest: Ball<N>,
}

/// A sum over a ray: weights z^p E[W^m e^(-zW)] h without e^(i alpha p), and those of Gamma.
struct Sums<const N: usize> {
    of_average: Vec<Complex<N>>,
    of_one: Vec<Complex<N>>,
}

/// What a sum is off, where e^(u (alpha - beta)) is still missing: the angles beta - alpha with their bounds.
struct Errors<const N: usize> {
    strips: [(Ball<N>, Ball<N>); 2],
    ends: [Ball<N>; 2],
}

/// Gamma(p) E W^(m-p) and Gamma(p).
#[derive(Clone, Copy)]
pub(super) struct Real<const N: usize> {
    pub(super) of_average: Ball<N>,
    pub(super) of_one: Ball<N>,
}

impl<const N: usize> Real<N> {
    pub(super) fn moment(&self) -> Ball<N> {
        self.of_average.over(self.of_one)
    }
}

fn signed<const N: usize>(j: i64) -> Ball<N> {
    let size = Ball::from_u64(j.unsigned_abs());
    if j < 0 { -size } else { size }
}

impl<'a, const N: usize> Average<'a, N> {
    pub(super) fn new(sigma: f64, factor: &'a Factor) -> Self {
        let rest =
            Ball::from_u64(factor.batches - factor.seen).over(Ball::from_u64(factor.batches));
        Self { sigma, factor, rest }
    }

    /// phi(z e^(k/sigma^2)/S) along a ray.
    fn phi(&self, ray: &Ray, k: usize) -> Vec<Complex<N>> {
        let (sigma, h) = (Ball::<N>::from_f64(self.sigma), Ball::<N>::from_f64(ray.spacing));
        let inner = &ray.inner;
        let (from, to) =
            (ray.first - inner.every * inner.reach, ray.last + inner.every * inner.reach);
        // exp(-e^(i omega) e^x C), C = e^(-1/(2 sigma^2))/S, at the multiples x of h.
        let omega = Ball::from_f64(ray.alpha) - Ball::from_f64(inner.rho);
        let (cosine, sine) = omega.cosine_sine();
        let real = ray.alpha == inner.rho;
        let growth = h.exponential();
        let inverse = sigma.squared().reciprocal();
        let constant = (inverse.times_u64(k as u64) - inverse.scaled(-1)).exponential();
        let mut size =
            (h * signed(from)).exponential() * constant.over(Ball::from_u64(self.factor.batches));
        // An exponential this small is below 2^-10^9 in modulus; further out its exponent would have no room.
        let enormous = Ball::from_f64(1e9);
        let nothing = Ball::ZERO.widened(Magnitude::power_of_two(-1_000_000_000));
        let table: Vec<Complex<N>> = (from..=to)
            .map(|_| {
                let here = size;
                size = size * growth;
                if enormous.is_below(&(here * cosine)) {
                    return Complex::new(nothing, nothing);
                }
                if real {
                    Complex::new((-here).exponential(), Ball::ZERO)
                } else {
                    Complex::new(-(here * cosine), -(here * sine)).exponential()
                }
            })
            .collect();
        // Weights of the normal density, turned; the other half are their conjugates.
        let step = sigma * h * signed(inner.every);
        let root = Ball::pi().scaled(1).root();
        let turn = sigma * Ball::from_f64(inner.rho);
        let raised = turn.squared().scaled(-1).exponential();
        let factor = (step * raised).over(root);
        let weights: Vec<Complex<N>> = (0..=inner.reach)
            .map(|j| {
                let g = step * signed(j);
                let size = (-(g.squared().scaled(-1))).exponential() * factor;
                let (cosine, sine) = (turn * g).cosine_sine();
                Complex::new(cosine * size, sine * size)
            })
            .collect();
        let width = Ball::<N>::from_f64(inner.width);
        // The strip must stay where the exponential is at most 1.
        let room = sigma * (Ball::pi().scaled(-1) - omega);
        let error = if width.is_at_most(&room) && omega.is_not_negative() {
            let raised = (turn.squared() + width.squared()).scaled(-1) + turn * width;
            let falls = (Ball::pi().scaled(1) * width).over(step).exponential() - Ball::one();
            let strip = raised.exponential().scaled(1).over(falls);
            let turned = turn.squared().scaled(-1).exponential();
            let beyond = normal_tail(step * signed(inner.reach)).scaled(1) * turned;
            (strip + beyond).above()
        } else {
            Magnitude::INFINITE
        };
        (0..=ray.last - ray.first)
            .map(|i| {
                let middle = (i + inner.every * inner.reach) as usize;
                let mut sum = table[middle] * weights[0];
                for (j, weight) in weights.iter().enumerate().skip(1) {
                    let gap = j * inner.every as usize;
                    let (up, down) = (table[middle + gap], table[middle - gap]);
                    if real {
                        sum.re = sum.re + weight.re * (up.re + down.re);
                        sum.im = sum.im + weight.im * (up.re - down.re);
                    } else {
                        sum = sum + up * *weight + down * weight.conjugate();
                    }
                }
                Complex::new(sum.re.widened(error), sum.im.widened(error))
            })
            .collect()
    }

    /// E[W^m e^(-zW)] along a ray.
    fn weighted(&self, ray: &Ray) -> Vec<Complex<N>> {
        let (m, seen) = (ray.power.m, self.factor.seen);
        let h = Ball::<N>::from_f64(ray.spacing);
        let (cosine, sine) = Ball::<N>::from_f64(ray.alpha).cosine_sine();
        let still = self.rest.mid.is_zero();
        let damped = |value: Complex<N>, j: i64| {
            if still {
                return value;
            }
            let size = (h * signed(j)).exponential() * self.rest;
            value * (-Complex::new(size * cosine, size * sine)).exponential()
        };
        let plain = self.phi(ray, 0);
        let all = ray.first..=ray.last;
        if m == 0 {
            return all.zip(plain).map(|(j, phi)| damped(phi.power(seen), j)).collect();
        }
        let inverse = Ball::<N>::from_f64(self.sigma).squared().reciprocal().scaled(-1);
        let (mut factorial, mut scale) = (Ball::<N>::one(), Ball::<N>::one());
        let (mut factors, mut tables, mut other) = (Vec::new(), vec![plain], Vec::new());
        for k in 0..=m as u64 {
            if k > 0 {
                factorial = factorial.times_u64(k);
                scale = scale.over_u64(self.factor.batches);
                tables.push(self.phi(ray, k as usize));
            }
            let raised = inverse.times_u64(k * k.saturating_sub(1)).exponential();
            factors.push((raised * scale).over(factorial));
            let rest = self.rest.power(k).over(factorial);
            other.push(Complex::new(if k > 0 && still { Ball::ZERO } else { rest }, Ball::ZERO));
        }
        all.enumerate()
            .map(|(i, j)| {
                let series: Vec<Complex<N>> = tables
                    .iter()
                    .zip(&factors)
                    .map(|(table, factor)| table[i].times_real(*factor))
                    .collect();
                let value = raised(&series, &other, seen)[m].times_real(factorial);
                damped(value, j)
            })
            .collect()
    }

    fn sums(&self, ray: &Ray) -> Sums<N> {
        let (p, h) = (Ball::<N>::from_f64(ray.power.p), Ball::<N>::from_f64(ray.spacing));
        let (cosine, sine) = Ball::<N>::from_f64(ray.alpha).cosine_sine();
        let (mut of_average, mut of_one) = (Vec::new(), Vec::new());
        for (j, value) in (ray.first..=ray.last).zip(self.weighted(ray)) {
            let tau = h * signed(j);
            let size = tau.exponential();
            let z = Complex::new(size * cosine, size * sine);
            let weight = (p * tau).exponential() * h;
            of_average.push(value.times_real(weight));
            of_one.push((-z).exponential().times_real(weight));
        }
        Sums { of_average, of_one }
    }

    /// E W^(m-q) at most, q >= m - 1.
    fn crude(&self, power: Power, q: f64) -> Ball<N> {
        let q = Ball::<N>::from_f64(q) - Ball::from_u64(power.m as u64);
        if !q.is_positive() {
            let jensen = q.is_not_negative() || (-q).is_at_most(&Ball::one());
            return if jensen { Ball::one() } else { Ball::everything() };
        }
        let sigma = Ball::<N>::from_f64(self.sigma);
        let r = q.over(Ball::from_u64(self.factor.batches));
        let log = ((r.squared() + r) * sigma.squared().reciprocal())
            .times_u64(self.factor.seen)
            .scaled(-1);
        let geometric = log.exponential();
        if self.rest.mid.is_zero() {
            return geometric;
        }
        // Both hold: the smaller one.
        let steady = (-(q * self.rest.logarithm())).exponential();
        if steady.is_below(&geometric) { steady } else { geometric }
    }

    /// What bounds both ends: E W^m, and E W^(m-q) at most.
    fn edges(&self, ray: &Ray) -> [Ball<N>; 2] {
        let m = ray.power.m;
        let left = if m < 2 { Ball::one() } else { moments::<N>(self.sigma, self.factor, m)[m] };
        [left, self.crude(ray.power, ray.q)]
    }

    /// Errors of a sum whose value at u = 0 on the real axis is at most `whole`, with E W^m and E W^(m-q) at most `edges`.
    fn errors(ray: &Ray, whole: Ball<N>, edges: [Ball<N>; 2]) -> Errors<N> {
        let (p, h) = (Ball::<N>::from_f64(ray.power.p), Ball::<N>::from_f64(ray.spacing));
        let [least, right] = edges;
        let alpha = Ball::from_f64(ray.alpha);
        let strip = |width: f64, up: bool| {
            let width = Ball::<N>::from_f64(width);
            let turn = if up { width } else { -width };
            let (cosine, _) = (alpha + turn).cosine_sine();
            let falls = (Ball::pi().scaled(1) * width).over(h).exponential() - Ball::one();
            let log =
                if cosine.is_positive() { -(p * cosine.logarithm()) } else { Ball::everything() };
            (turn, log.exponential() * whole.over(falls))
        };
        let left = least * h * (p * h * signed(ray.first - 1)).exponential();
        let left = left.over(Ball::one() - (-(p * h)).exponential());
        let q = Ball::<N>::from_f64(ray.q);
        let more = q - p;
        let (cosine, _) = alpha.cosine_sine();
        let log = q * (q.logarithm() - Ball::one() - cosine.logarithm())
            - more * h * signed(ray.last + 1);
        let beyond =
            (h * log.exponential() * right).over(Ball::one() - (-(more * h)).exponential());
        Errors {
            strips: [strip(ray.strips[0], false), strip(ray.strips[1], true)],
            ends: [left, beyond],
        }
    }

    /// Gamma(p) E W^(m-p) and Gamma(p), by a ray on the real axis: there the strips' errors are parts of the value itself.
    pub(super) fn real(&self, ray: &Ray) -> Option<Real<N>> {
        if ray.alpha != 0.0 {
            return None;
        }
        let sums = self.sums(ray);
        let close = |values: &[Complex<N>], edges: [Ball<N>; 2]| -> Option<Ball<N>> {
            let errors = Self::errors(ray, Ball::one(), edges);
            let sum = values.iter().fold(Ball::ZERO, |sum, value| sum + value.re);
            let part = errors.strips[0].1 + errors.strips[1].1;
            let outside = errors.ends[0] + errors.ends[1];
            if !part.is_at_most(&Ball::one().scaled(-1)) {
                return None;
            }
            // T <= sum + part T + outside.
            let most = (sum + outside).over(Ball::one() - part);
            Some(sum.widened((most * part + outside).above()))
        };
        Some(Real {
            of_average: close(&sums.of_average, self.edges(ray))?,
            of_one: close(&sums.of_one, [Ball::one(); 2])?,
        })
    }

    /// E W^(m-p-iu) for u = k du, k in a range.
    pub(super) fn nodes(
        &self,
        ray: &Ray,
        real: &Real<N>,
        du: f64,
        (from, to): (usize, usize),
    ) -> Vec<Complex<N>> {
        let sums = self.sums(ray);
        let h = Ball::<N>::from_f64(ray.spacing);
        let spacing = Ball::<N>::from_f64(du);
        let start = spacing.times_u64(from as u64);
        let losses: Vec<Complex<N>> =
            (ray.first..=ray.last).map(|j| Complex::new(h * signed(j), Ball::ZERO)).collect();
        let turned = |values: Vec<Complex<N>>| -> Vec<Complex<N>> {
            values
                .into_iter()
                .zip(&losses)
                .map(|(value, tau)| {
                    let (cosine, sine) = (start * tau.re).cosine_sine();
                    value * Complex::new(cosine, sine)
                })
                .collect()
        };
        let all = |values: Vec<Complex<N>>| {
            Transform::turned_points(turned(values), losses.clone()).nodes(
                du,
                to - from,
                ray.bits(),
            )
        };
        let (above, below) = (all(sums.of_average), all(sums.of_one));
        let of_average = Self::errors(ray, real.of_average, self.edges(ray));
        let of_one = Self::errors(ray, real.of_one, [Ball::one(); 2]);
        let widened = |value: Complex<N>, errors: &Errors<N>, u: Ball<N>| {
            let strips =
                errors.strips.iter().map(|(turn, size)| *size * (-(u * *turn)).exponential());
            let sum = strips.fold(errors.ends[0] + errors.ends[1], |sum, one| sum + one);
            let error = sum.above();
            Complex::new(value.re.widened(error), value.im.widened(error))
        };
        above
            .into_iter()
            .zip(below)
            .zip(from..=to)
            .map(|((above, below), k)| {
                let u = spacing.times_u64(k as u64);
                widened(above, &of_average, u) * widened(below, &of_one, u).reciprocal()
            })
            .collect()
    }

    /// A bound on |E W^(s+iu)| for every u >= `from`, of a factor that does not vary as a whole (a > 0); `whole` is E W^s.
    ///
    /// With all g moved by -i sigma kappa, W becomes a + e^(-i kappa) V, V = W - a, at the price of e^(n sigma^2
    /// kappa^2/2). Its power has the modulus |a + e^(-i kappa) V|^s e^(-u theta), theta = arg(a + e^(i kappa) V) >= 0, of which the
    /// second factor falls with u and, for kappa <= pi/2, with V. Between places v < w it is at most its value at v, and so is the first
    /// one for s < 0; for s > 0 that is at most W^s, so at most (a+w)^s, and beyond the last place its mean is at most E W^s.
    /// V < w has at most the probability e^(l w) E e^(-l V) = e^(l w) phi(l/S)^n for every l > 0.
    pub(super) fn tail(
        &self,
        (s, whole): (f64, Ball<N>),
        from: f64,
        kappa: f64,
        places: &[Low],
        ray: &Ray,
    ) -> Option<Ball<N>> {
        let turn = Ball::<N>::from_f64(kappa);
        if !turn.is_at_most(&Ball::pi().scaled(-1)) || !self.rest.is_positive() {
            return None;
        }
        let (down, up) = (Ball::from_f64(s.min(0.0)), Ball::from_f64(s.max(0.0)));
        let u = Ball::from_f64(from);
        let (cosine, sine) = turn.cosine_sine();
        let at = |v: Ball<N>| {
            let log = Complex::new(self.rest + v * cosine, v * sine).logarithm();
            (down * log.re - u * log.im).exponential()
        };
        let mut level = at(Ball::ZERO);
        let mut sum = Ball::ZERO;
        for low in places {
            let place = Ball::from_f64(low.place);
            let j = (low.log_slope / ray.spacing).round() as i64;
            let slope = (Ball::from_f64(ray.spacing) * signed(j)).exponential();
            let phi = self.phi(&ray.at(j), 0).first()?.re.upper();
            let chance = (slope * place).exponential() * phi.power(self.factor.seen);
            let size = (up * (self.rest + place).logarithm()).exponential();
            sum = sum + level * size * chance.upper().minimum(Ball::one());
            level = at(place);
        }
        let last = if s > 0.0 { level * whole } else { level };
        let cost = (Ball::from_f64(self.sigma) * turn).squared().times_u64(self.factor.seen);
        Some((sum + last) * cost.scaled(-1).exponential())
    }
}

/// E W^m of one factor for m = 0, 1, ..., `most`. E Y^k = e^(k(k-1)/2 sigma^2), so E W^m is m!/S^m times
/// the coefficient of x^m in e^((S-n)x) (sum of E Y^k x^k/k!)^n: positive terms.
pub(super) fn moments<const N: usize>(sigma: f64, factor: &Factor, most: usize) -> Vec<Ball<N>> {
    let inverse = Ball::<N>::from_f64(sigma).squared().reciprocal().scaled(-1);
    let mut factorials = vec![Ball::<N>::one()];
    for k in 1..=most as u64 {
        factorials.push(factorials[k as usize - 1].times_u64(k));
    }
    let series = |value: &dyn Fn(u64) -> Ball<N>| -> Vec<Ball<N>> {
        (0..=most as u64).map(|k| value(k).over(factorials[k as usize])).collect()
    };
    let rest = Ball::from_u64(factor.batches - factor.seen);
    let power = series(&|k| inverse.times_u64(k * k.saturating_sub(1)).exponential());
    let whole = raised(&power, &series(&|k| rest.power(k)), factor.seen);
    let scaled = |(m, value): (usize, &Ball<N>)| {
        (*value * factorials[m]).over(Ball::from_u64(factor.batches).power(m as u64))
    };
    whole.iter().enumerate().map(scaled).collect()
}

/// A bound on e^(-u^2/(2 S sigma^2)): |E W^(s+iu)| <= E W^s times it for a whole epoch, by moving all g by iu/(S sigma).
pub(super) fn whole_tail<const N: usize>(sigma: f64, factor: &Factor, u: f64) -> Ball<N> {
    let square = (Ball::<N>::from_f64(u).over(Ball::from_f64(sigma))).squared();
    (-(square.over(Ball::from_u64(factor.batches)).scaled(-1))).exponential()
}
