//! One order's Rényi moment of the subsampled Gaussian, as a certified upper bound.
//!
//! With g = dP/dQ, Q = N(0, sigma^2) and P the mixture over how many of the group were sampled,
//! the moment is E_Q g^beta (beta = alpha for D_alpha(P||Q), beta = 1 - alpha for D_alpha(Q||P)).
//! Since E_Q g = 1, E_Q g^beta - 1 = E_Q r(g - 1), r(t) = (1+t)^beta - 1 - beta t >= 0: a positive
//! integrand that keeps relative accuracy however close the moment is to 1.
//!
//! The trapezoid rule with step h errs by at most 2M/(e^{2 pi d/h} - 1) if the integrand is
//! analytic for |Im x| < d with integrals of its modulus at most M (Trefethen and Weideman 2014,
//! Theorem 5.1). With nonnegative shifts |g(x+iy)| <= g(x), so that for beta > 0
//! M <= e^{d^2/(2 sigma^2)} (E g^beta + 1 + 2 beta); for beta < 0, |g(x+iy)| >= g(x)/2 while all
//! phases stay within pi/3, and g^beta grows by at most 2^|beta|. For one record g has no zero for
//! d < pi sigma^2; for a group of k, phases within pi/2 need d < pi sigma^2/(2k).

use numerics::elementary::{exp, exp_m1, ln, ln_1p};
use numerics::special::{Binomial, ROUND, log_add_exp};
use std::f64::consts::{LN_2, PI};

/// Most points one moment may take.
const LARGEST_GRID: f64 = 2e6;

/// Groups up to this size are taken as they are. In larger ones the number of sampled records is
/// rounded up to a multiple of 2, 3, ...: raising shifts can only raise the divergences of both
/// orders (a stochastically larger shift gives a dominating pair), so the bound stays a bound.
const LARGEST_EXACT_GROUP: u32 = 24;

/// The record's (or the group's) step: P = sum_j weights[j-1] N(j, sigma^2) + rest N(0, sigma^2).
#[derive(Clone, Debug)]
pub(super) struct Step {
    noise: f64,
    weights: Vec<f64>,
    /// The number of records, if they are certain to be used (sample rate 1).
    certain: bool,
}

impl Step {
    pub(super) fn new(noise_multiplier: f64, sample_rate: f64, group: u32) -> Self {
        match Binomial::new(u64::from(group), sample_rate) {
            Some(law) => {
                let unit = group.div_ceil(LARGEST_EXACT_GROUP);
                let mut weights = vec![0.0; group.div_ceil(unit) as usize];
                for j in 1..=group {
                    weights[(j.div_ceil(unit) - 1) as usize] += exp(law.log_pmf(f64::from(j)).0);
                }
                Self { noise: noise_multiplier / f64::from(unit), weights, certain: false }
            }
            None => {
                Self { noise: noise_multiplier, weights: vec![0.0; group as usize], certain: true }
            }
        }
    }

    fn group(&self) -> f64 {
        self.weights.len() as f64
    }

    /// An upper bound on max over both orders of ln E g^alpha (or g^{1-alpha}); `None` if it cannot
    /// be computed.
    pub(super) fn log_moment(&self, alpha: f64) -> Option<f64> {
        if self.certain {
            let reach = self.group() / self.noise;
            return Some(0.5 * alpha * (alpha - 1.0) * reach * reach * (1.0 + 8.0 * ROUND));
        }
        let removed = self.log_power(alpha)?;
        if self.weights.len() == 1 {
            // For one record this order is the larger (Mironov, Talwar, Zhang 2019, Theorem 5).
            return Some(removed);
        }
        Some(removed.max(self.log_power(1.0 - alpha)?))
    }

    /// ln E_Q g^beta for beta > 1 or beta < 0, rounded up.
    fn log_power(&self, beta: f64) -> Option<f64> {
        let variance = self.noise * self.noise;
        let reach =
            if beta > 0.0 { if self.group() == 1.0 { 1.0 } else { 0.5 } } else { 1.0 / 3.0 };
        let widest = 0.99 * PI * variance * reach / self.group();
        let extra = if beta < 0.0 { -beta * LN_2 } else { 0.0 };
        // First guess: an error of 1e-20 of the remainder, whose size is about P(used)^2.
        let used: f64 = self.weights.iter().sum();
        let mut wanted = 48.0 - 2.0 * ln(used.min(1.0)) + extra;
        for _ in 0..6 {
            // Largest h with 2 pi d/h - d^2/(2 variance) >= wanted; at the best d, h = pi sigma sqrt(2/wanted).
            let free = 2.0 * PI * variance / (PI * self.noise * (2.0 / wanted).sqrt());
            let depth = free.min(widest);
            let h = 2.0 * PI * depth / (wanted + 0.5 * depth * depth / variance);
            let (log_sum, log_error) = self.trapezoid(beta, h)?;
            let log_moment = log_add_exp(0.0, log_sum);
            let log_modulus = log_add_exp(log_moment + extra, ln(1.0 + 2.0 * beta.abs()));
            let aliasing = LN_2 + log_modulus + 0.5 * depth * depth / variance
                - 2.0 * PI * depth / h
                - ln_1p(-exp(-2.0 * PI * depth / h));
            if aliasing <= log_sum - 30.0 {
                // 1 + sum, with every error added.
                let inflated = log_sum + log_error + 1e-13 + exp(aliasing - log_sum);
                return Some(if inflated > 30.0 {
                    log_add_exp(0.0, inflated) * (1.0 + 4.0 * ROUND)
                } else {
                    ln_1p(exp(inflated)) * (1.0 + 8.0 * ROUND)
                });
            }
            wanted += (aliasing - log_sum + 40.0).max(20.0);
        }
        None
    }

    /// ln of the trapezoid sum of r, and a bound on its error from rounding and truncation.
    fn trapezoid(&self, beta: f64, h: f64) -> Option<(f64, f64)> {
        let (noise, variance) = (self.noise, self.noise * self.noise);
        // Left of 38 sigma nothing is left; the integrand's peaks lie between 0 and beta k.
        let low = -38.0 * noise;
        let high = beta.max(1.0) * self.group() + 38.0 * noise;
        let count = ((high - low) / h).ceil();
        if count > LARGEST_GRID {
            return None;
        }
        let (mut total, mut largest) = (f64::NEG_INFINITY, 0.0_f64);
        let mut sum = 0.0;
        let mut top = f64::NEG_INFINITY;
        for i in 0..=count as u64 {
            if i % 4096 == 0 {
                crate::patience::look_at_the_clock();
            }
            let x = low + h * i as f64;
            let gauss = -0.5 * x * x / variance;
            let (log_term, size) = self.log_remainder(beta, x);
            let term = log_term + gauss;
            if term.is_nan() {
                return None;
            }
            // Exponents are sums of numbers this large; each costs a few roundings.
            if term > top - 45.0 {
                largest = largest.max(size + gauss.abs());
            }
            if term > top {
                sum = sum * exp(top - term) + 1.0;
                top = term;
            } else {
                sum += exp(term - top);
            }
        }
        if top > f64::NEG_INFINITY {
            total = top + ln(sum) + ln(h / (noise * (2.0 * PI).sqrt()));
        }
        // 40 roundings per term (the remainder's worst cancellation), the exponents' own, the sum's.
        let ratios = self.group() * self.group() * (2.0 + beta.abs());
        let error = ROUND * (400.0 + 8.0 * largest + count + 4.0 * ratios);
        Some((total, error))
    }

    /// ln r(g(x) - 1) and the size of the exponents it was made from.
    fn log_remainder(&self, beta: f64, x: f64) -> (f64, f64) {
        let gain = 1.0 / (self.noise * self.noise);
        let mut t = 0.0;
        let mut log_g = f64::NEG_INFINITY;
        let mut steepest = 0.0_f64;
        // The largest exponent, at the shift nearest to x.
        let nearest = x.clamp(1.0, self.group());
        let steep = nearest * (x - 0.5 * nearest) * gain;
        let by_ratios = self.weights.len() > 2 && steep < 180.0 && x > -30.0;
        if by_ratios {
            // e^{j(x - j/2) gain} by its ratios: two products for a shift instead of an exponential;
            // shift j has lost about j^2 roundings.
            let mut ratio = exp((x - 0.5) * gain);
            let fall = exp(-gain);
            let mut power = 1.0;
            for weight in &self.weights {
                power *= ratio;
                ratio *= fall;
                t += weight * (power - 1.0);
            }
            steepest = steep.max(0.0);
        }
        for (index, weight) in self.weights.iter().enumerate().filter(|_| !by_ratios) {
            let j = (index + 1) as f64;
            let exponent = j * (x - 0.5 * j) * gain;
            steepest = steepest.max(exponent);
            t += weight * exp_m1(exponent);
            if exponent > 200.0 {
                log_g = log_add_exp(log_g, exponent + ln(*weight));
            }
        }
        let log_g = if t < 1e100 { ln_1p(t) } else { log_g };
        let size = (beta * log_g).abs() + beta.abs() * steepest.min(1e6);
        if t.abs() < 0.1 && (beta * t).abs() < 0.5 {
            // The binomial series from the second term on.
            let mut term = 0.5 * beta * (beta - 1.0) * t * t;
            let mut sum = term;
            for n in 2..40 {
                let n = f64::from(n);
                term *= (beta - n) / (n + 1.0) * t;
                sum += term;
                if term.abs() < 1e-18 * sum.abs() {
                    break;
                }
            }
            return (ln(sum), size);
        }
        let power = beta * log_g;
        if power > 40.0 || !t.is_finite() {
            // r <= g^beta for beta > 1 and t > 0; for beta < 0 the linear part is the larger one.
            let linear = if beta < 0.0 { ln(-beta) + log_g } else { f64::NEG_INFINITY };
            return (log_add_exp(power, linear), size);
        }
        let rest = beta - 1.0;
        (ln((1.0 + t) * exp_m1(rest * log_g) - rest * t), size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Integer orders have a finite sum of positive terms.
    fn by_binomial_sum(sigma: f64, q: f64, alpha: u32) -> f64 {
        let law = Binomial::new(u64::from(alpha), q).unwrap();
        let terms: Vec<f64> = (0..=alpha)
            .map(|j| {
                let j = f64::from(j);
                law.log_pmf(j).0 + 0.5 * j * (j - 1.0) / (sigma * sigma)
            })
            .collect();
        numerics::special::log_sum_exp(&terms)
    }

    #[test]
    fn integer_orders_agree_with_the_binomial_sum() {
        for (sigma, q) in
            [(1.0, 0.01), (0.5, 0.1), (0.2, 0.3), (5.0, 0.5), (20.0, 0.01), (1.0, 0.9)]
        {
            for alpha in [2, 3, 8, 32] {
                let want = by_binomial_sum(sigma, q, alpha);
                let got = Step::new(sigma, q, 1).log_moment(f64::from(alpha)).unwrap();
                // The binomial sum has lost its small values to the leading 1.
                let slack = 1e-11 * want + 1e-14;
                assert!((got - want).abs() < slack, "{sigma} {q} {alpha}: {got} against {want}");
            }
        }
    }

    /// For alpha = 2, the moment is 1 + q^2 (e^{1/sigma^2} - 1), whatever its size.
    #[test]
    fn order_two_keeps_relative_accuracy() {
        for (sigma, q) in [(1.0, 1e-7), (100.0, 1e-7), (0.2, 1e-3), (30.0, 0.5)] {
            let want = (q * q * f64::powi(sigma, -2).exp_m1()).ln_1p();
            let got = Step::new(sigma, q, 1).log_moment(2.0).unwrap();
            assert!(
                got >= want * (1.0 - 1e-15) && got <= want * (1.0 + 1e-11),
                "{sigma} {q}: {got:e} {want:e}"
            );
        }
    }

    /// A group of two with order two: E e^{NM/sigma^2}, spelled out; and the other order by a
    /// fine Riemann sum.
    #[test]
    fn groups_have_both_orders() {
        let (sigma, q) = (1.5f64, 0.2f64);
        let b = [0.64, 0.32, 0.04];
        let mut want = 0.0f64;
        for (i, x) in b.iter().enumerate() {
            for (j, y) in b.iter().enumerate() {
                want += x * y * ((i * j) as f64 / (sigma * sigma)).exp();
            }
        }
        let step = Step::new(sigma, q, 2);
        let got = step.log_power(2.0).unwrap();
        assert!((got / want.ln() - 1.0).abs() < 1e-11, "{got} {}", want.ln());
        let mut riemann = 0.0;
        let h = 1e-3;
        for i in -20_000..20_000 {
            let x = h * f64::from(i);
            let density = (-0.5 * x * x / (sigma * sigma)).exp() / (sigma * (2.0 * PI).sqrt());
            let g: f64 = b
                .iter()
                .enumerate()
                .map(|(j, w)| w * ((j as f64) * (x - 0.5 * j as f64) / (sigma * sigma)).exp())
                .sum();
            riemann += h * density * g.powf(-2.0);
        }
        let got = step.log_power(-2.0).unwrap();
        assert!((got / riemann.ln() - 1.0).abs() < 1e-9, "{got} {}", riemann.ln());
    }
}
