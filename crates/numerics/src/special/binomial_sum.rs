//! The law of a sum of independent binomials with different rates, at any place and for any number of draws.
//!
//! S = sum of Bin(n_i, q_i). For any real theta let q'_i be the rate with odds e^theta q_i/(1-q_i), k_i = n_i q'_i,
//! K = sum k_i, and M = E e^(theta S). Then P(S = k) = M e^(-theta k) P'(S = k), where P' has the rates q'_i, and
//!
//! ```text
//! ln M - theta k = - sum D_i + theta (K - k),    D_i = n_i KL(q'_i, q_i) = D(k_i, n_i q_i) + D(n_i - k_i, n_i (1 - q_i)),
//! ```
//!
//! with D(x, m) = x ln(x/m) + m - x as in Loader's form ([`super::Binomial`]). theta is chosen so that K is next to k.
//! There P'(S = k) is no small number, and finite Fourier inversion gives it: with z_l the transform of S - k under P' at
//! t_l = 2 pi l/m,
//!
//! ```text
//! (1/m) sum_(l = 0 .. m-1) z_l = sum_j P'(S = k + j m).
//! ```
//!
//! **Aliases** (j other than 0) are at most P'(|S - K| >= x), x = m - |K - k|, that is 2 e^(-x^2/(2V + 2x/3)) by Bernstein's
//! inequality, V the variance under P'; with more residues than values there are none. m makes that e^-48. **Nodes left out**: a factor's
//! modulus squared is 1 - 2q'(1-q')(1 - cos t), so |z| <= e^(-V (1 - cos t)), which falls up to pi. So fifteen nodes do for
//! a billion draws, and nothing but the roundings limits the digits. These are counted where they arise; u is [`ROUND`].
//!
//! The node's angle is sum n_i psi(q'_i, t) + t (K - k), psi(p, t) = arg(1 + p(e^(it) - 1)) - p t, which is of the order t^3 and is
//! computed as such; psi(1 - p, t) = -psi(p, t).

use super::ROUND;
use super::binomial::{Binomial, relative_entropy_term};
use crate::elementary::{atan2, cos, exp, exp_m1, ln, ln_1p, sin};
use std::f64::consts::PI;

/// Aliases are at most twice e^-this.
const DEPTH: f64 = 48.0;
/// Tilts beyond this are not tried: e^theta is a double with room.
const STEEPEST: f64 = 600.0;

/// The error of a value that is no more than an upper bound, P' being at most 1.
const UNKNOWN: f64 = 1e300;

/// A sum of independent binomials.
#[derive(Clone, Debug)]
pub struct BinomialSum {
    parts: Vec<Binomial>,
    trials: f64,
    mean: f64,
    mean_rest: f64,
    variance: f64,
}

/// The law with all odds times e^theta.
#[derive(Clone, Copy, Debug, Default)]
struct Tilted {
    /// K less the mean of the law itself, within 12 u: the parts' have one sign.
    shift: f64,
    variance: f64,
}

/// One binomial with its odds times e^theta: draws, the rate q' or 1 - q', whichever is at most 1/2 (within 8 u), and the sign of
/// its angles.
#[derive(Clone, Copy)]
struct Part {
    draws: f64,
    rate: f64,
    sign: f64,
}

/// q'/q and (1-q')/(1-q), and K - n q. e^theta errs by 1.1 u, e^theta - 1 by 1.5 u, 1 - q and each of five operations by u.
fn tilted(part: &Binomial, theta: f64) -> (f64, f64, f64) {
    let (q, rest) = (part.rate(), 1.0 - part.rate());
    let growth = exp(theta);
    let whole = rest + q * growth;
    (growth / whole, 1.0 / whole, part.trials() * q * (rest / whole) * exp_m1(theta))
}

impl BinomialSum {
    /// The law of the sum; `None` without parts.
    pub fn new(parts: &[Binomial]) -> Option<Self> {
        let (mut mean, mut mean_rest) = (0.0f64, 0.0);
        for part in parts {
            // Exact sums of exact products, but for the rounding of the rests.
            let next = mean + part.mean();
            let of_part = next - mean;
            mean_rest += (mean - (next - of_part)) + (part.mean() - of_part) + part.mean_rest();
            mean = next;
        }
        (!parts.is_empty()).then(|| Self {
            parts: parts.to_vec(),
            trials: parts.iter().map(Binomial::trials).sum(),
            mean,
            mean_rest,
            variance: parts.iter().map(Binomial::variance).sum(),
        })
    }

    /// The binomials.
    pub fn parts(&self) -> &[Binomial] {
        &self.parts
    }

    /// The number of draws of all.
    pub fn trials(&self) -> f64 {
        self.trials
    }

    /// The mean of the sum.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The variance of the sum.
    pub fn variance(&self) -> f64 {
        self.variance
    }

    fn at(&self, theta: f64) -> Tilted {
        let mut all = Tilted::default();
        for part in &self.parts {
            let (up, down, shift) = tilted(part, theta);
            let rest = 1.0 - part.rate();
            all.shift += shift;
            all.variance += part.trials() * (part.rate() * up) * (rest * down);
        }
        all
    }

    /// sum D_i.
    fn entropy(&self, theta: f64) -> f64 {
        let of = |part: &Binomial| {
            let (_, _, shift) = tilted(part, theta);
            let fails = (part.trials() - part.mean()) - part.mean_rest();
            relative_entropy_term(shift, part.mean()) + relative_entropy_term(-shift, fails)
        };
        self.parts.iter().map(of).sum()
    }

    /// About the theta with `stiffness` theta + K - mean = `target`, so that K is off by a twentieth of a count, or of
    /// its deviation. An increasing function: Newton's method in a bracket, from `guess`.
    fn tilt(&self, stiffness: f64, target: f64, guess: f64) -> f64 {
        let (mut low, mut high) = (-STEEPEST, STEEPEST);
        let mut theta = if guess.is_nan() { 0.0 } else { guess.clamp(low, high) };
        for _ in 0..80 {
            let here = self.at(theta);
            let miss = stiffness * theta + here.shift - target;
            let slope = stiffness + here.variance;
            if miss.abs() <= 0.05 * slope / here.variance.sqrt().max(1.0) {
                break;
            }
            if miss < 0.0 {
                low = theta
            } else {
                high = theta
            }
            let next = theta - miss / slope;
            theta = if next > low && next < high { next } else { 0.5 * (low + high) };
            if high - low < 1e-9 {
                break;
            }
        }
        theta
    }

    /// The k with the largest P(S = k) e^(-(y - k)^2 / 2v), or one next to it: -d/dk ln P(S = k) is about the theta with K = k,
    /// so v theta + K = y there.
    pub fn peak_with(&self, y: f64, v: f64) -> f64 {
        let target = (y - self.mean) - self.mean_rest;
        let theta = self.tilt(v, target, target / (v + self.variance));
        (self.mean + self.at(theta).shift).round().clamp(0.0, self.trials)
    }

    /// About ln(P(S = k+1)/P(S = k)), a starting point only.
    pub fn log_ratio(&self, k: f64) -> f64 {
        -self.tilt_at(k + 0.5)
    }

    fn tilt_at(&self, k: f64) -> f64 {
        let target = (k - self.mean) - self.mean_rest;
        // That of a single binomial with this mean.
        let guess = ln(k / (self.trials - k)) - ln(self.mean / (self.trials - self.mean));
        self.tilt(0.0, target, guess)
    }

    /// ln P(S = k) and a bound on its absolute error, for whole k. Where nothing is known from below, the error is huge and finite: no
    /// product with 0 is then a number that is none.
    pub fn log_pmf(&self, k: f64) -> (f64, f64) {
        if let [law] = self.parts.as_slice() {
            return law.log_pmf(k);
        }
        if k < 0.0 || k > self.trials {
            return (f64::NEG_INFINITY, 0.0);
        }
        if k == 0.0 || k == self.trials {
            // Sums of numbers of one sign.
            let of = |part: &Binomial| part.log_pmf(if k == 0.0 { 0.0 } else { part.trials() });
            let parts = self.parts.iter().map(of);
            let (value, error) = parts.fold((0.0, 0.0), |sum, x| (sum.0 + x.0, sum.1 + x.1));
            return (value, error + ROUND * self.parts.len() as f64 * value.abs());
        }
        let theta = self.tilt_at(k);
        let Tilted { shift, variance, .. } = self.at(theta);
        let entropy = self.entropy(theta);
        let target = (k - self.mean) - self.mean_rest;
        // K - k: the mean errs by u of its rests only, the shift by 12 u, and their difference is rounded.
        let residual = shift - target;
        let count = self.parts.len() as f64;
        let residual_error = ROUND * ((14.0 + count) * shift.abs() + 4.0 * target.abs())
            + 4.0 * ROUND * ROUND * count * self.mean;
        let (log_mass, mass_error) = self.log_mass(theta, variance, residual, residual_error);
        let value = log_mass + theta * residual - entropy;
        // The terms D have 16 roundings each. Their derivatives in k_i, ln(q'/q) and ln((1-q')/(1-q)), are at most |theta|, so that the
        // 12 u of the shifts count twice, and once more for a mean that is rounded or a rest next to 0.
        let error = mass_error
            + theta.abs() * (residual_error + ROUND * 2.0 * residual.abs())
            + ROUND * ((20.0 + 2.0 * count) * entropy + 40.0 * theta.abs() * shift.abs())
            + 4.0 * ROUND * value.abs();
        (value, if error < UNKNOWN { error } else { UNKNOWN })
    }

    /// ln P'(S = k) and its error, from K - k, which is at most a part of a count or of a deviation.
    fn log_mass(
        &self,
        theta: f64,
        variance: f64,
        residual: f64,
        residual_error: f64,
    ) -> (f64, f64) {
        let parts: Vec<Part> = self
            .parts
            .iter()
            .map(|part| {
                let (up, down, _) = tilted(part, theta);
                let (rate, fails) = (part.rate() * up, (1.0 - part.rate()) * down);
                let sign = if rate <= fails { 1.0 } else { -1.0 };
                Part { draws: part.trials(), rate: rate.min(fails), sign }
            })
            .collect();
        // x^2 = DEPTH (2V + 2x/3).
        let third = DEPTH / 3.0;
        let reach = third + (third * third + 2.0 * DEPTH * variance * (1.0 + 1e-9)).sqrt();
        let span = reach + residual.abs() + 1.0;
        let (half, alias) = if span >= self.trials {
            ((0.5 * self.trials).ceil(), 0.0)
        } else {
            ((0.5 * span).ceil(), 2.0 * exp(-DEPTH))
        };
        // Odd: no node lies at pi.
        let m = 2.0 * half + 1.0;
        let count = parts.len() as f64;
        let (mut sum, mut sizes, mut error, mut l) = (0.0, 0.0, 0.0, 1.0);
        while l <= half {
            let t = 2.0 * PI * l / m;
            // The complement keeps its digits next to pi.
            let (s, c) = (sin(0.5 * t), sin(0.5 * PI * (m - 2.0 * l) / m));
            // |z| <= e^-(2 V s^2) from here on; the variance has 30 roundings.
            let most = exp(-2.0 * variance * s * s * (1.0 - 1e-12));
            let rest = (half - l + 1.0) * most;
            if rest <= 1e-18 {
                error += 2.0 * rest;
                break;
            }
            let node = Node { t, s, c };
            let (mut log, mut angle) = (0.0, t * residual);
            let mut slip = t * residual_error + 4.0 * ROUND * angle.abs();
            for part in &parts {
                let factor = node.factor(part.rate);
                log += part.draws * factor.log;
                angle += part.draws * part.sign * factor.angle;
                let size = factor.log.abs() + factor.angle.abs();
                slip += part.draws * (factor.slip + ROUND * (4.0 + count) * size);
            }
            let size = exp(log.min(0.0));
            sum += size * cos(angle);
            sizes += size;
            // e^slip - 1 is at most 2 slip here; a larger one gives the node up, and both sizes count.
            let off = if slip < 0.25 { size * (2.0 * slip + 6.0 * ROUND) } else { size + most };
            error += 2.0 * off;
            l += 1.0;
        }
        let mass = 1.0 + 2.0 * sum;
        let error = error + m * alias + ROUND * (l + 4.0) * (1.0 + 2.0 * sizes);
        let relative = error / mass;
        if !(mass > 0.0 && relative < 0.25) {
            return (0.0, UNKNOWN);
        }
        let log = ln(mass) - ln(m);
        (log, 1.5 * relative + 4.0 * ROUND * (1.0 + ln(m)))
    }
}

/// A node: t and the sine and cosine of its half, each within 6 u.
struct Node {
    t: f64,
    s: f64,
    c: f64,
}

/// ln|1 + p(e^(it) - 1)|, psi(p, t), and a bound on the errors of both.
struct Factor {
    log: f64,
    angle: f64,
    slip: f64,
}

impl Node {
    /// The factor of one draw of rate `p` <= 1/2, where p itself errs by 8 u.
    fn factor(&self, p: f64) -> Factor {
        let Self { t, s, c } = *self;
        // |1 + p(e^(it) - 1)|^2 = 1 - 4p(1-p) s^2 = c^2 + (1-2p)^2 s^2.
        let lost = 4.0 * p * (1.0 - p) * s * s;
        let odd = (1.0 - 2.0 * p) * s;
        let square = c * c + odd * odd;
        let (log, log_slip) = if lost <= 0.5 {
            let log = 0.5 * ln_1p(-lost);
            // `lost` errs by 30 u of itself, and ln(1 - x) by at most twice as much of x, which is at most twice |log|.
            (log, 120.0 * ROUND * log.abs())
        } else {
            // 1 - 2p errs by 9 u, so the square by 14 u of c^2, and 18 u |1-2p| + 81 u^2 <= 30 u root + 2 u^2; root = sqrt(square).
            let root = square.sqrt();
            (0.5 * ln(square), ROUND * (12.0 + 24.0 / root))
        };
        if t <= 0.125 {
            // With w = p sin t/(1 - 2p s^2), psi = (atan w - w) + (w - p t), w - p t = p (sin t - t + 2 p t s^2)/(1 - 2p s^2). |w| <= .064:
            // seven terms of the arctangent and five of the sine leave out less than 1e-17 of them.
            let t2 = t * t;
            let sine = -t * t2 / 6.0
                * (1.0 - t2 / 20.0 * (1.0 - t2 / 42.0 * (1.0 - t2 / 72.0 * (1.0 - t2 / 110.0))));
            let real = 1.0 - 2.0 * p * s * s;
            let w = p * (t + sine) / real;
            let w2 = w * w;
            let series = (0..8).rev().fold(0.0, |sum, j| 1.0 / f64::from(2 * j + 3) - w2 * sum);
            let angle = p * (sine + 2.0 * p * t * (s * s)) / real - w * w2 * series;
            // Each piece is at most p t^3/2, with less than 30 roundings, of which p and t are nine and two.
            return Factor { log, angle, slip: log_slip + 32.0 * ROUND * p * t * t2 };
        }
        let angle = atan2(p * (2.0 * s * c), 1.0 - 2.0 * p * s * s) - p * t;
        // The point (x, y) errs by u + 12 u p t^2 (x) and 24 u p t (y), |x| <= 1, |y| <= p t: its angle by at most 85 u p t/|z|^2, as
        // p <= 1/2 and t <= pi; atan2, p t and the difference add 15 u p t.
        Factor { log, angle, slip: log_slip + ROUND * 100.0 * p * t / square }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(parts: &[(u64, f64)]) -> BinomialSum {
        let parts: Vec<Binomial> =
            parts.iter().map(|&(n, q)| Binomial::new(n, q).unwrap()).collect();
        BinomialSum::new(&parts).unwrap()
    }

    // Reference values: mpmath with 60 digits, each rate being the f64 written; sums over the count of one part.
    #[test]
    fn log_pmf_matches_high_precision_within_its_bound() {
        type Case<'a> = (&'a [(u64, f64)], &'a [(f64, f64)]);
        let cases: &[Case<'_>] = &[
            (
                &[(1, 0.3), (1, 0.6)],
                &[
                    (0.0, -1.2729656758128873727),
                    (1.0, -0.61618613942381699677),
                    (2.0, -1.7147984280919267498),
                ],
            ),
            (
                &[(5, 0.99999999), (100, 1e-07)],
                &[
                    (0.0, -92.103413694638531047),
                    (3.0, -34.538786414861567036),
                    (5.0, -0.000010050000000501213336),
                    (6.0, -11.512935414970476467),
                    (50.0, -659.02631337511603909),
                    (104.0, -1591.0862994088855776),
                ],
            ),
            (
                &[(2, 1e-07), (3, 0.99999999), (4, 0.5)],
                &[
                    (1.0, -38.515338108093559954),
                    (4.0, -1.386294496119893456),
                    (8.0, -18.197537122638159562),
                ],
            ),
            (
                &[(300, 0.02), (200, 0.3)],
                &[
                    (1.0, -72.875788605354522793),
                    (66.0, -2.8545567155590952442),
                    (150.0, -65.126346453045600831),
                    (400.0, -832.7521346795810142),
                    (499.0, -1404.7746071773600852),
                ],
            ),
            (
                &[(40, 0.5), (60, 0.1), (30, 0.9)],
                &[
                    (1.0, -97.367221255762290963),
                    (20.0, -35.598723937110809817),
                    (53.0, -2.3675571904084237817),
                    (100.0, -59.831990194348349715),
                    (129.0, -162.6730494935258884),
                ],
            ),
            (
                &[(100000, 0.01), (30000, 0.2)],
                &[
                    (1.0, -7690.2911156853631647),
                    (2000.0, -2860.5710673364036763),
                    (7000.0, -5.2508940412059552546),
                    (15000.0, -4441.8164061919075738),
                    (60000.0, -123500.08439754162657),
                ],
            ),
            (
                &[(1000000, 1e-07), (100000000, 3e-05)],
                &[
                    (1.0, -2992.1385700051389145),
                    (3000.0, -4.9221367622604336257),
                    (5000.0, -559.25897913995386793),
                ],
            ),
            (
                &[(1000000000, 1e-07), (1000000, 0.5)],
                &[
                    (499000.0, -9.5527792993820314793),
                    (500100.0, -7.1337468412179499197),
                    (503000.0, -23.947075158357757201),
                    (600000.0, -20092.673906189047497),
                ],
            ),
        ];
        for (parts, values) in cases {
            let law = sum(parts);
            for &(k, want) in *values {
                let (got, error) = law.log_pmf(k);
                assert!(
                    (got - want).abs() <= error,
                    "{parts:?} {k}: {got} misses {want} by more than {error:e}"
                );
                assert!(error < 3e-13 * f64::max(1.0, want.abs()), "{parts:?} {k}: {error:e}");
            }
        }
    }

    /// Parts of one rate are one binomial, for which Loader's form is another way.
    #[test]
    fn equal_rates_are_a_binomial() {
        for (n, q) in [(1000u64, 0.02), (1_000_000, 0.3), (10_000_000_000, 1e-3), (50, 1.0 - 1e-8)]
        {
            let one = Binomial::new(n, q).unwrap();
            let law = sum(&[(n / 3, q), (n - n / 3, q)]);
            for step in -60..=60 {
                let k =
                    (one.mean() + 0.7 * f64::from(step) * one.variance().sqrt().max(1.0)).round();
                if k < 0.0 || k > one.trials() {
                    continue;
                }
                let ((got, error), (want, slack)) = (law.log_pmf(k), one.log_pmf(k));
                assert!((got - want).abs() <= error + slack, "{n} {q} {k}: {got} {want} {error:e}");
                assert!(error < 1e-9, "{n} {q} {k}: {error:e}");
            }
        }
    }

    /// The probabilities of all counts are 1 together, and each peak is the largest term.
    #[test]
    fn peaks_are_the_largest_terms() {
        let law = sum(&[(40, 0.5), (60, 0.1), (30, 1.0 - 1e-8)]);
        let all: f64 = (0..=130).map(|k| exp(law.log_pmf(f64::from(k)).0)).sum();
        assert!((all - 1.0).abs() < 1e-13, "{all}");
        for v in [0.1, 3.0, 50.0, 1e4] {
            for y in [-300.0, -5.0, 20.0, 56.0, 90.0, 140.0, 2000.0] {
                let term = |k: f64| law.log_pmf(k).0 - 0.5 * (y - k) * (y - k) / v;
                let peak = law.peak_with(y, v);
                let largest =
                    (0..=130).map(|k| term(f64::from(k))).fold(f64::NEG_INFINITY, f64::max);
                let near = [-1.0, 0.0, 1.0].map(|d| term((peak + d).clamp(0.0, 130.0)));
                assert!(near.contains(&largest), "{v} {y}: {peak}");
            }
        }
    }
}
