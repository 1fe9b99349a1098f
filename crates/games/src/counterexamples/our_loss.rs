//! The encoding loss (P3, Algorithm 1): a loss whose gradients make one number carry the whole
//! likelihood ratio of DP-SGD, so that the last iterate leaks as much as all iterates.
//!
//! One parameter, theta = S M + v: M counts the log-likelihood ratio so far in units of the
//! resolution r, v is the last noisy value, S the spacing. Every record but the canary is 0, the
//! canary is 1, and the gradient of record x is -out, out = (S round(L(v)/r) - v)/N + x (at the
//! first step x alone), with N = q |D| the expected batch: the batch together moves v's worth of
//! evidence into M and clears v, the canary adds 1, the noise makes the next v. (The paper's text
//! descends along +out; the sign here makes descent do what its Algorithm 1 describes.)
//! Read-out: r M + L(v).
//!
//! What can go wrong, and the rules for S, r and |D|: [`Encoding::choose`], [`Encoding::check`].

use crate::distinguisher::{FAR, step_log_ratio};
use crate::{Crafter, Distinguisher, Group, Released};
use numerics::special::{inverse_normal_sf, normal_density, normal_sf};
use random::elementary::{exp, ln, ln_normal, nearest_integer};
use std::slice::{from_mut, from_ref};

/// Spacing, resolution and the number of records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Encoding {
    pub spacing: f64,
    pub resolution: f64,
    pub dataset_size: u64,
}

/// What an encoding does to a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Suitability {
    /// Why the encoding must fail.
    pub refusals: Vec<String>,
    /// What it loses.
    pub warnings: Vec<String>,
}

/// Share of the noise variance that the random batch size may add.
const BATCH_NOISE: f64 = 1e-3;

impl Encoding {
    /// The values that lose nothing visible.
    ///
    /// S = 2(1 + k sigma) with 2 T P(N > k) = 1e-3, so that v stays inside S/2 of its place;
    /// r a twentieth of the step's evidence q sqrt(e^(1/sigma^2) - 1), at most 0.01;
    /// |D| the power of ten whose batch-size noise is below a thousandth of the noise's variance
    /// and whose batch can move the largest step without being clipped.
    /// All are rounded to two digits, so that they do not depend on a machine's last digit.
    pub fn choose(noise_multiplier: f64, sample_rate: f64, steps: u64) -> Self {
        let reach = reach(steps);
        let spacing = round_up(2.0 * (1.0 + reach * noise_multiplier));
        let evidence = step_evidence(noise_multiplier, sample_rate);
        let resolution = round_up((0.05 * evidence).min(0.01));
        let mut encoding = Self { spacing, resolution, dataset_size: 1_000_000 };
        while encoding.dataset_size < 1_000_000_000_000_000
            && (encoding.batch_noise(noise_multiplier, sample_rate) > BATCH_NOISE
                || encoding.largest_request(noise_multiplier, sample_rate, steps) > 0.5)
        {
            encoding.dataset_size *= 10;
        }
        encoding
    }

    /// Expected number of records in a batch.
    fn batch(&self, sample_rate: f64) -> f64 {
        sample_rate * self.dataset_size as f64
    }

    /// Variance that the random batch size puts on the next value, as a share of sigma^2:
    /// E[(S round(L/r) - v)^2] (1 - q)/(N sigma^2), over the values of a run with the canary.
    fn batch_noise(&self, noise_multiplier: f64, sample_rate: f64) -> f64 {
        let cells = 2000;
        let (low, high) = (-9.0 * noise_multiplier, 1.0 + 9.0 * noise_multiplier);
        let width = (high - low) / f64::from(cells);
        let square: f64 = (0..cells)
            .map(|cell| {
                let v = low + (f64::from(cell) + 0.5) * width;
                let density = (1.0 - sample_rate) * normal_density(v / noise_multiplier)
                    + sample_rate * normal_density((v - 1.0) / noise_multiplier);
                let moved = self.moved(v, noise_multiplier, sample_rate);
                moved * moved * density / noise_multiplier * width
            })
            .sum();
        let variance = noise_multiplier * noise_multiplier;
        square * (1.0 - sample_rate) / (self.batch(sample_rate) * variance)
    }

    /// S round(L(v)/r) - v.
    fn moved(&self, v: f64, noise_multiplier: f64, sample_rate: f64) -> f64 {
        let evidence = step_log_ratio(v, noise_multiplier, sample_rate);
        self.spacing * nearest_integer(evidence / self.resolution) - v
    }

    /// The largest per-record request of a run, in units of the clip norm.
    fn largest_request(&self, noise_multiplier: f64, sample_rate: f64, steps: u64) -> f64 {
        let v = 1.0 + reach(steps) * noise_multiplier;
        self.moved(v, noise_multiplier, sample_rate) / self.batch(sample_rate)
    }

    /// What this encoding loses on a run, in words with numbers.
    pub fn check(&self, noise_multiplier: f64, sample_rate: f64, steps: u64) -> Suitability {
        let mut found = Suitability::default();
        let half = 0.5 * self.spacing;
        let misread = 2.0 * steps as f64 * normal_sf((half - 1.0) / noise_multiplier);
        if half <= 1.0 {
            found.refusals.push(format!(
                "spacing {} cannot hold the canary's step of 1; use at least {}",
                self.spacing,
                round_up(2.0 * (1.0 + reach(steps) * noise_multiplier))
            ));
        } else if misread > 1e-2 {
            found.warnings.push(format!(
                "spacing {}: about {misread:.2} values per run are misread; {} is enough",
                self.spacing,
                round_up(2.0 * (1.0 + reach(steps) * noise_multiplier))
            ));
        }
        let evidence = step_evidence(noise_multiplier, sample_rate);
        if self.resolution > 0.25 * evidence.min(0.5) {
            found.warnings.push(format!(
                "resolution {} is coarse beside the step's evidence {evidence:.2e}",
                self.resolution
            ));
        }
        let batch_noise = self.batch_noise(noise_multiplier, sample_rate);
        let needed = self.dataset_size as f64 * batch_noise / BATCH_NOISE;
        if batch_noise >= 1.0 {
            found.refusals.push(format!(
                "{} records: the batch size's own randomness is {batch_noise:.1} times the noise; about {needed:.0e} records are needed",
                self.dataset_size
            ));
        } else if batch_noise > 1e-2 {
            found.warnings.push(format!(
                "{} records: the batch size's own randomness adds {:.0} % to the noise's variance; about {needed:.0e} records are needed",
                self.dataset_size,
                100.0 * batch_noise
            ));
        }
        let largest = self.largest_request(noise_multiplier, sample_rate, steps);
        let typical = self.moved(1.0, noise_multiplier, sample_rate) / self.batch(sample_rate);
        if typical > 1.0 {
            found.refusals.push(format!(
                "{} records: to encode a sampled canary, each would need {typical:.1} times the \
                 clip norm",
                self.dataset_size
            ));
        } else if largest > 1.0 {
            found.warnings.push(format!(
                "{} records: in the largest steps each would need {largest:.1} times the clip norm, \
                 and is clipped",
                self.dataset_size
            ));
        }
        let top = 1.0 + reach(steps) * noise_multiplier;
        let total = steps as f64 * step_log_ratio(top, noise_multiplier, sample_rate);
        let grain = self.spacing * (total / self.resolution) * f64::EPSILON;
        if grain > 1e-2 * noise_multiplier {
            found.refusals.push(format!(
                "theta may reach {:.1e}, where neighbouring doubles are {grain:.1e} apart; use a \
                 coarser resolution",
                self.spacing * total / self.resolution
            ));
        }
        found
    }
}

/// k with 2 T P(N > k) = 1e-3.
fn reach(steps: u64) -> f64 {
    inverse_normal_sf(5e-4 / steps as f64)
}

/// Standard deviation of the likelihood ratio of one step.
fn step_evidence(noise_multiplier: f64, sample_rate: f64) -> f64 {
    sample_rate * (1.0 / (noise_multiplier * noise_multiplier)).exp_m1().sqrt()
}

/// Up to two significant digits (a relative 1e-9 below the next one counts as it).
fn round_up(x: f64) -> f64 {
    let exponent = x.log10().floor() as i32 - 1;
    let digits = (x / 10f64.powi(exponent) - 1e-9).ceil();
    // Parsed, so that the number is the double nearest to its decimal form.
    format!("{digits}e{exponent}").parse().unwrap_or(x)
}

/// The crafter.
#[derive(Clone, Debug)]
pub struct OurLoss {
    encoding: Encoding,
    noise_multiplier: f64,
    sample_rate: f64,
    groups: [Group; 1],
}

impl OurLoss {
    pub fn new(encoding: Encoding, noise_multiplier: f64, sample_rate: f64) -> Self {
        let groups = [Group { records: encoding.dataset_size, always: false }];
        Self { encoding, noise_multiplier, sample_rate, groups }
    }

    /// M and v.
    fn decode(&self, theta: f64) -> (f64, f64) {
        let count = nearest_integer(theta / self.encoding.spacing);
        (count, theta - self.encoding.spacing * count)
    }

    fn out(&self, step: u64, theta: f64, x: f64) -> f64 {
        if step == 0 {
            return x;
        }
        let (_, v) = self.decode(theta);
        let moved = self.encoding.moved(v, self.noise_multiplier, self.sample_rate);
        moved / self.encoding.batch(self.sample_rate) + x
    }
}

impl Crafter for OurLoss {
    fn dimension(&self) -> usize {
        1
    }

    fn canary(&self, step: u64, model: &[f64], gradient: &mut [f64]) {
        gradient[0] = -self.out(step, model[0], 1.0);
    }

    fn groups(&self) -> &[Group] {
        &self.groups
    }

    fn group(&self, _group: usize, step: u64, model: &[f64], gradient: &mut [f64]) {
        gradient[0] = -self.out(step, model[0], 0.0);
    }

    fn group_abreast(&self, group: usize, step: u64, models: &[f64], gradients: &mut [f64]) {
        // With q = 1 the logarithm's argument can underflow, which only the careful form minds.
        if step == 0 || self.sample_rate == 1.0 {
            for (model, gradient) in models.iter().zip(gradients) {
                self.group(group, step, from_ref(model), from_mut(gradient));
            }
            return;
        }
        pulp::Arch::new().dispatch(Abreast { loss: self, models, gradients });
    }
}

/// [`OurLoss::group`] of many models, without branches, compiled once for each instruction set.
struct Abreast<'a> {
    loss: &'a OurLoss,
    models: &'a [f64],
    gradients: &'a mut [f64],
}

impl pulp::WithSimd for Abreast<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _instructions: S) {
        let OurLoss { encoding, noise_multiplier: sigma, sample_rate: q, .. } = *self.loss;
        let Encoding { spacing, resolution, .. } = encoding;
        let batch = encoding.batch(q);
        let ln_q = ln(q);
        for (theta, gradient) in self.models.iter().zip(self.gradients) {
            let v = theta - spacing * nearest_integer(theta / spacing);
            let exponent = (2.0 * v - 1.0) / (2.0 * sigma * sigma);
            let near = ln_normal(1.0 - q + q * exp(exponent.min(FAR)));
            let evidence = if exponent > FAR { ln_q + exponent } else { near };
            let moved = spacing * nearest_integer(evidence / resolution) - v;
            *gradient = -(moved / batch + 0.0);
        }
    }
}

impl Distinguisher for OurLoss {
    fn score(&self, release: &Released<'_>) -> f64 {
        let (count, v) = self.decode(release.model[0]);
        self.encoding.resolution * count
            + step_log_ratio(v, self.noise_multiplier, self.sample_rate)
    }
}
