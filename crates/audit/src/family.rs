//! Bounds inside a one-parameter family of pairs: the least noise that the observed rates rule
//! out, and the epsilon of the pair at that noise.
//!
//! **Proof.** The family is indexed by the noise multiplier s. More noise is less noise with a
//! step of post-processing, so the trade-off curve f_s of either order of the pair rises with s
//! (Dong, Roth and Su 2022, Lemma 1). Let the rule put (FPR(t), FNR(t)) into a region C(t) for a set of
//! thresholds t all at once: `union` gives the region of [`crate::joint`] at every threshold there
//! is; `dkw` a box FPR <= u(t), FNR <= w(t) at every threshold, `fixed` and `holdout` one at one, and
//! `k-fold` at five with a fifth of the error each. Call s violated when *for each order* of the pair
//! some threshold of the set, perhaps another one, has all of C(t) strictly below f_s. The attack
//! faces one of the orders, with the true noise s0: FNR(t) >= f_s0(FPR(t)) at every threshold. With
//! t that order's violating threshold, f_s0(FPR(t)) <= FNR(t) < f_s(FPR(t)), so s0 < s. The choice of s and of the
//! thresholds may depend on the scores in any way, because the regions hold at all of them. So
//! with the confidence of the regions the true noise is below every violated s, and epsilon, which
//! falls with the noise, is at least epsilon(s, delta). QED. (Nasr et al., "Tight auditing of
//! differentially private machine learning", 2023, section 5, as used by Steinke et al., arXiv
//! 2410.06186; the set of thresholds and the two orders are ours.)
//!
//! Direction: the curve is taken at its certified lower end ([`crate::violation`]) and epsilon at
//! its certified lower end, so the result is a lower bound, *within the family only*.
//!
//! **Upper limit.** At the thresholds that show the bound (one for each order, perhaps the same)
//! let the rates be at least x(t) and y(t). At a noise s whose curve, in one order, has
//! f_s(x(t)) <= y(t) at all of them, also f_s(FPR(t)) <= FNR(t): no number of scores makes these
//! tests rule s out, so they can never show more than epsilon(s, delta). Here the curve and epsilon
//! are taken at their certified upper ends. It limits these tests, not the mechanism.

use crate::violation::{self, ByNoise};
use crate::{AuditError, FamilyPoints, RateBounds};
use accounting::domain::NOISE_MULTIPLIER;
use accounting::{AccountingError, Order, Pair, directions, pairs, schemes};
use vocabulary::rounding::{rate, with_commas};
use vocabulary::{Adjacency, Direction, Phase, Run, RunError, Sampling};

/// Epsilon of N(mu, 1) against N(0, 1) at delta, from below; infinite at delta = 0 for mu > 0.
///
/// ```
/// assert!((audit::gaussian_epsilon(1.0, 1e-5) - 4.377178095681).abs() < 1e-9);
/// assert_eq!(audit::gaussian_epsilon(0.0, 1e-5), 0.0);
/// ```
pub fn gaussian_epsilon(mu: f64, delta: f64) -> f64 {
    if let Some(known) = known_epsilon(mu, delta) {
        return known;
    }
    // Above mu = 1e7 the domain of the pair ends; its epsilon at the edge is still a lower bound.
    let epsilon =
        pairs::Gaussian::new(mu.min(1e7)).and_then(|pair| pair.epsilon(delta, Order::Remove));
    epsilon.map_or(0.0, |epsilon| epsilon.lower.max(0.0))
}

/// As [`gaussian_epsilon`], from above.
pub(crate) fn gaussian_epsilon_above(mu: f64, delta: f64) -> f64 {
    let epsilon = || pairs::Gaussian::new(mu).and_then(|pair| pair.epsilon(delta, Order::Remove));
    known_epsilon(mu, delta)
        .unwrap_or_else(|| epsilon().map_or(f64::INFINITY, |epsilon| epsilon.upper))
}

/// Epsilon without leakage, and where it is infinite.
fn known_epsilon(mu: f64, delta: f64) -> Option<f64> {
    if mu.is_nan() || mu <= 0.0 {
        return Some(0.0);
    }
    (delta <= 0.0 || mu == f64::INFINITY).then_some(f64::INFINITY)
}

/// A family of DP-SGD pairs with known sampling rate and steps; the noise is the parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Family {
    /// All iterates: the composition of the steps.
    Composition { sample_rate: f64, steps: u64 },
    /// The last iterate of linear losses (Steinke et al.).
    LastIterate { sample_rate: f64, steps: u64 },
    /// Either of them for a group of records that are in or out together.
    Groups { seen: Seen, sample_rate: f64, steps: u64, size: u32 },
    /// Runs that differ from this one in their noise alone, the same factor in all phases; the
    /// parameter is the noise of the first phase. Every way to draw batches that has a pair. Where the pair only bounds the
    /// truth, noise and refutations hold all the same (the true curve lies above the pair's, so
    /// does the proof), and epsilon is the accounted one of the run that is ruled out.
    Claimed { seen: Seen, run: Box<Run> },
}

/// One phase of Poisson or full batches with and without a record, and nothing else released.
fn is_plain(run: &Run) -> bool {
    matches!(run.sampling(), Sampling::Poisson | Sampling::Full)
        && run.adjacency() == Adjacency::AddRemove
        && run.releases().is_empty()
        && run.matrix().is_none()
        && run.max_steps().is_none()
        && run.renyi_filter().is_none()
}

pub use vocabulary::Release as Seen;

impl Family {
    /// The family for groups of this many records; of one record it is the plain one.
    pub fn of_groups(seen: Seen, sample_rate: f64, steps: u64, size: u32) -> Self {
        match (seen, size) {
            (Seen::AllIterates, 1) => Self::Composition { sample_rate, steps },
            (Seen::LastIterate, 1) => Self::LastIterate { sample_rate, steps },
            _ => Self::Groups { seen, sample_rate, steps, size },
        }
    }

    /// The family of a claimed run.
    pub fn of_run(seen: Seen, run: &Run) -> Self {
        match run.phases() {
            [phase] if is_plain(run) => {
                Self::of_groups(seen, phase.sample_rate, phase.steps, run.group_size())
            }
            _ => Self::Claimed { seen, run: Box::new(run.clone()) },
        }
    }

    /// What is seen, a rate, the steps in all, and the records of a group.
    fn parts(&self) -> (Seen, f64, u64, u32) {
        match self {
            Self::Composition { sample_rate, steps } => {
                (Seen::AllIterates, *sample_rate, *steps, 1)
            }
            Self::LastIterate { sample_rate, steps } => {
                (Seen::LastIterate, *sample_rate, *steps, 1)
            }
            Self::Groups { seen, sample_rate, steps, size } => (*seen, *sample_rate, *steps, *size),
            Self::Claimed { seen, run } => {
                let rate = run.phases().iter().map(|phase| phase.sample_rate).fold(0.0, f64::max);
                (*seen, rate, run.steps(), run.group_size())
            }
        }
    }

    /// The pair at a noise multiplier.
    ///
    /// # Errors
    /// Those of the accounting.
    pub fn pair(&self, noise_multiplier: f64) -> Result<Box<dyn Pair>, AuditError> {
        let (seen, sample_rate, steps, size) = self.parts();
        let invalid = |error: RunError| AuditError::invalid(error);
        let run = match self {
            Self::Claimed { run, .. } => {
                schemes::chosen_in_advance(run)?;
                let factor = noise_multiplier / run.phases()[0].noise_multiplier;
                let scaled = run.phases().iter().map(|phase| Phase {
                    noise_multiplier: phase.noise_multiplier * factor,
                    ..*phase
                });
                run.with_phases(scaled.collect()).map_err(invalid)?
            }
            _ => Run::builder()
                .phase(noise_multiplier, sample_rate, steps)
                .group_size(size)
                .build()
                .map_err(invalid)?,
        };
        Ok(match seen {
            Seen::AllIterates if matches!(self, Self::Claimed { .. }) => schemes::pair(&run)?,
            Seen::AllIterates => Box::new(pairs::Composed::for_run(&run)?),
            Seen::LastIterate => Box::new(pairs::BinomialGaussian::for_run(&run)?),
        })
    }

    /// The family's name for people.
    pub fn describe(&self) -> String {
        let (seen, sample_rate, steps, size) = self.parts();
        if let Self::Claimed { run, .. } = self {
            let phases = match run.phases().len() {
                1 => String::new(),
                count => format!("{count} phases, "),
            };
            return format!(
                "DP-SGD as claimed ({} batches, {phases}{} steps) with any noise, accounted as the claim is",
                run.sampling().as_str(),
                with_commas(steps)
            );
        }
        let seen = match seen {
            Seen::AllIterates => "DP-SGD with every iterate seen",
            Seen::LastIterate => "the last iterate of DP-SGD on linear losses",
        };
        let group = if size > 1 { format!("groups of {size} records, ") } else { String::new() };
        format!(
            "{seen}, {group}sample rate {}, {} steps, any noise",
            rate(sample_rate),
            with_commas(steps)
        )
    }

    /// Epsilon of the member with this noise, from below.
    ///
    /// # Errors
    /// Those of the accounting.
    pub fn epsilon(&self, noise_multiplier: f64, delta: f64) -> Result<f64, AuditError> {
        if delta <= 0.0 {
            return Ok(f64::INFINITY);
        }
        // More noise has less epsilon, so where the accounting cannot certify this noise a
        // somewhat larger one still gives a lower bound.
        let mut noise = noise_multiplier;
        loop {
            let found = self
                .pair(noise)
                .and_then(|pair| Ok(directions::epsilon(pair.as_ref(), delta, Direction::Both)?));
            match found {
                Ok(epsilon) => return Ok(epsilon.lower.max(0.0)),
                Err(AuditError::Accounting(
                    AccountingError::NotCertified(_) | AccountingError::OutsideDomain(_),
                )) if noise < 2.0 * noise_multiplier => noise *= 1.05,
                Err(error) => return Err(error),
            }
        }
    }

    /// A noise at which epsilon is certainly above a value, and hardly less than the largest one; `None` when no noise of the domain
    /// has so large an epsilon.
    ///
    /// # Errors
    /// Those of the accounting.
    pub(crate) fn noise_above(&self, epsilon: f64, delta: f64) -> Result<Option<f64>, AuditError> {
        let (least, most) = self.noise_domain();
        let above = |noise: f64| Ok::<_, AuditError>(self.epsilon(noise, delta)? > epsilon);
        let mut noise = least.max(1.0).min(most);
        let mut factor = 1.25;
        let (mut shown, mut open);
        if above(noise)? {
            loop {
                shown = noise;
                if noise >= most {
                    return Ok(Some(noise));
                }
                noise = (noise * factor).min(most);
                factor *= factor.min(2.0);
                if !above(noise)? {
                    open = noise;
                    break;
                }
            }
        } else {
            loop {
                open = noise;
                if noise <= least {
                    return Ok(None);
                }
                noise = (noise / factor).max(least);
                if above(noise)? {
                    shown = noise;
                    break;
                }
            }
        }
        while open > 1.005 * shown {
            let middle = (open * shown).sqrt();
            if above(middle)? { shown = middle } else { open = middle }
        }
        Ok(Some(shown))
    }

    /// What tests whose error rates are at least `rates` can show at most within the family, at
    /// each delta; infinite where a rate may be 0, `None` where no limit is found. `shown` is a noise that they
    /// rule out, where one is known.
    ///
    /// # Errors
    /// Those of the accounting.
    pub fn epsilon_within_reach(
        &self,
        rates: &[RateBounds],
        deltas: &[f64],
        shown: Option<f64>,
    ) -> Result<Option<Vec<f64>>, AuditError> {
        let may_be_zero = |rates: &RateBounds| {
            rates.false_positive_upper <= 0.0 || rates.false_negative_upper <= 0.0
        };
        if rates.iter().any(may_be_zero) {
            return Ok(Some(vec![f64::INFINITY; deltas.len()]));
        }
        // Such rates show at least what is shown: no noise is left that they could leave open.
        if shown.is_some_and(|noise| noise <= violation::EDGE * self.noise_domain().0) {
            return Ok(None);
        }
        let Some(noise) = violation::allowed_noise(self, rates)? else { return Ok(None) };
        let pair = self.pair(noise)?;
        let limits = deltas.iter().map(|&delta| {
            if delta <= 0.0 {
                return Ok(f64::INFINITY);
            }
            Ok(directions::epsilon(pair.as_ref(), delta, Direction::Both)?.upper.max(0.0))
        });
        match limits.collect::<Result<Vec<f64>, AuditError>>() {
            Ok(limits) => Ok(Some(limits)),
            Err(error) => violation::unknown(error),
        }
    }

    /// The noise multipliers between which the search stays: where the accounting certifies.
    pub(crate) fn noise_domain(&self) -> (f64, f64) {
        let (seen, _, _, size) = self.parts();
        let scale = f64::from(size);
        match seen {
            Seen::AllIterates => (NOISE_MULTIPLIER.0 * scale, NOISE_MULTIPLIER.1 * scale),
            Seen::LastIterate => (0.02 * scale, 1e5),
        }
    }

    /// The smallest noise multiplier whose curve the rates violate, from above; `None` when no
    /// noise is ruled out.
    ///
    /// # Errors
    /// Those of the accounting.
    pub fn violated_noise(&self, rates: &RateBounds) -> Result<Option<f64>, AuditError> {
        Ok(violation::least_violated_noise(self, std::slice::from_ref(rates))?
            .map(|found| found.noise))
    }

    /// The smallest violated noise over several thresholds that hold together.
    ///
    /// # Errors
    /// Those of the accounting.
    pub fn least_violated_noise(&self, points: &FamilyPoints) -> Result<Option<f64>, AuditError> {
        Ok(points.least_violated(self)?.map(|violated| violated.noise))
    }
}

impl ByNoise for Family {
    fn member(&self, noise: f64) -> Result<Box<dyn Pair>, AuditError> {
        self.pair(noise)
    }

    fn domain(&self) -> (f64, f64) {
        self.noise_domain()
    }

    fn start(&self, mu: f64) -> f64 {
        let (seen, sample_rate, steps, size) = self.parts();
        let scale = f64::from(size);
        match seen {
            Seen::AllIterates => {
                let scaled = mu / sample_rate;
                scale / (scaled * scaled / steps as f64).ln_1p().sqrt()
            }
            Seen::LastIterate => scale * sample_rate * (steps as f64).sqrt() / mu,
        }
    }

    fn smallest_loss(&self) -> f64 {
        match self {
            Self::Composition { sample_rate, steps } if *sample_rate < 1.0 => {
                *steps as f64 * (-sample_rate).ln_1p()
            }
            Self::Groups { seen: Seen::AllIterates, sample_rate, steps, size }
                if *sample_rate < 1.0 =>
            {
                f64::from(*size) * *steps as f64 * (-sample_rate).ln_1p()
            }
            _ => 0.0,
        }
    }
}
