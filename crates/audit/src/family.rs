//! Bounds inside a one-parameter family of pairs: the least noise that the observed rates rule
//! out, and the epsilon of the pair at that noise.
//!
//! The family is indexed by the noise multiplier; its trade-off curve f_s rises with s. If
//! f_s(FPR_upper) > FNR_upper, the curve at s is violated, and so is every curve with more noise:
//! true rates satisfy FNR >= f(FPR) and f falls, so FNR_upper >= FNR >= f(FPR) >= f(FPR_upper). So
//! with the confidence of the two rate bounds the true noise is below the smallest violated s,
//! and epsilon is at least epsilon(s, delta). (Nasr et al., "Tight auditing of differentially
//! private machine learning", 2023, as used by Steinke et al., arXiv 2410.06186.)
//!
//! Direction: `f` is taken at its certified lower end and epsilon at its certified lower end, so
//! the result is a lower bound, *within the family only*. The curve is the lower of the two orders
//! of the pair, which is at least the symmetrised curve.

use crate::{AuditError, RateBounds};
use accounting::{AccountingError, OneWay, Pair, directions, pairs};
use vocabulary::{Direction, Run};

/// Epsilon of N(mu, 1) against N(0, 1) at delta, from below; infinite at delta = 0 for mu > 0.
///
/// ```
/// assert!((audit::gaussian_epsilon(1.0, 1e-5) - 4.377178095681).abs() < 1e-9);
/// assert_eq!(audit::gaussian_epsilon(0.0, 1e-5), 0.0);
/// ```
pub fn gaussian_epsilon(mu: f64, delta: f64) -> f64 {
    if mu.is_nan() || mu <= 0.0 {
        return 0.0;
    }
    if delta <= 0.0 || mu == f64::INFINITY {
        return f64::INFINITY;
    }
    // Above mu = 1e7 the domain of the pair ends; its epsilon at the edge is still a lower bound.
    let epsilon =
        pairs::Gaussian::new(mu.min(1e7)).and_then(|pair| pair.epsilon(delta, OneWay::Remove));
    epsilon.map_or(0.0, |epsilon| epsilon.lower.max(0.0))
}

/// A family of DP-SGD pairs with known sampling rate and steps; the noise is the parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Family {
    /// All iterates: the composition of the steps.
    Composition { sample_rate: f64, steps: u64 },
    /// The last iterate of linear losses (Steinke et al.).
    LastIterate { sample_rate: f64, steps: u64 },
}

impl Family {
    /// The pair at a noise multiplier.
    ///
    /// # Errors
    /// Those of the accounting.
    pub fn pair(&self, noise_multiplier: f64) -> Result<Box<dyn Pair>, AuditError> {
        let (Self::Composition { sample_rate, steps } | Self::LastIterate { sample_rate, steps }) =
            *self;
        let run = Run::builder()
            .phase(noise_multiplier, sample_rate, steps)
            .build()
            .map_err(|error| AuditError::InvalidInput(error.to_string()))?;
        Ok(match self {
            Self::Composition { .. } => Box::new(pairs::Composed::for_run(&run)?),
            Self::LastIterate { .. } => Box::new(pairs::BinomialGaussian::for_run(&run)?),
        })
    }

    /// The family's name for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Composition { sample_rate, steps } => format!(
                "DP-SGD with every iterate seen, sample rate {sample_rate}, {steps} steps, any noise"
            ),
            Self::LastIterate { sample_rate, steps } => format!(
                "the last iterate of DP-SGD on linear losses, sample rate {sample_rate}, {steps} steps, any noise"
            ),
        }
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

    /// The noise multipliers between which the search stays: where the accounting certifies.
    fn domain(&self) -> (f64, f64) {
        match self {
            Self::Composition { .. } => (0.2, 100.0),
            Self::LastIterate { .. } => (0.02, 1e5),
        }
    }

    /// A noise at which the curve is near a Gaussian one of this mu: where the search starts.
    fn start(&self, mu: f64) -> f64 {
        match *self {
            Self::Composition { sample_rate, steps } => {
                let scaled = mu / sample_rate;
                1.0 / (scaled * scaled / steps as f64).ln_1p().sqrt()
            }
            Self::LastIterate { sample_rate, steps } => sample_rate * (steps as f64).sqrt() / mu,
        }
    }

    /// The smallest noise multiplier whose curve the rates violate, from above; `None` when no
    /// noise is ruled out.
    ///
    /// # Errors
    /// Those of the accounting.
    pub fn violated_noise(&self, rates: &RateBounds) -> Result<Option<f64>, AuditError> {
        let (fpr, fnr) = (rates.false_positive_upper, rates.false_negative_upper);
        if fpr + fnr >= 1.0 {
            return Ok(None);
        }
        // ln f - ln FNR_upper: positive when violated; at FNR 0 any positive curve is violated.
        // Where the accounting cannot certify the curve nothing is known, and a noise is only
        // ever claimed to be violated where it is.
        let excess = |noise: f64| -> Result<Option<f64>, AuditError> {
            let curve = self.pair(noise).and_then(|pair| curve_below(pair.as_ref(), fpr, fnr));
            match curve {
                Ok(curve) => Ok(Some((curve.max(1e-300) / fnr.max(1e-299)).ln())),
                Err(AuditError::Accounting(
                    AccountingError::NotCertified(_) | AccountingError::OutsideDomain(_),
                )) => Ok(None),
                Err(error) => Err(error),
            }
        };
        let mu = crate::Statistic::GaussianMu.value(rates).clamp(1e-6, 1e6);
        let (least, most) = self.domain();
        let mut noise = self.start(mu).clamp(least, most);
        let mut here = excess(noise)?;
        while here.is_none() && noise < most {
            noise = (noise * 1.3).min(most);
            here = excess(noise)?;
        }
        let Some(mut here) = here else { return Ok(None) };
        // Widen from the start until the sign changes.
        let (kept, violated);
        let mut factor = 1.1_f64;
        if here > 0.0 {
            loop {
                let known = (noise, here);
                // Violated down to the end of the domain: its end is still an upper bound.
                if noise <= least {
                    return Ok(Some(noise));
                }
                noise = (noise / factor).max(least);
                let Some(value) = excess(noise)? else { return Ok(Some(known.0)) };
                here = value;
                if here <= 0.0 {
                    (kept, violated) = ((noise, here), known);
                    break;
                }
                factor *= factor.min(2.0);
            }
        } else {
            loop {
                let known = (noise, here);
                // Not violated up to the end of the domain: nothing is claimed.
                if noise >= most {
                    return Ok(None);
                }
                noise = (noise * factor).min(most);
                let Some(value) = excess(noise)? else { return Ok(None) };
                here = value;
                if here > 0.0 {
                    (kept, violated) = (known, (noise, here));
                    break;
                }
                factor *= factor.min(2.0);
            }
        }
        // False position with halved weights (Illinois), in the logarithm of the noise.
        let (mut low, mut high) = ((kept.0.ln(), kept.1), (violated.0.ln(), violated.1));
        let mut last_side = 0;
        for _ in 0..60 {
            if high.0 - low.0 < 1e-6 {
                break;
            }
            let mut next = low.0 - low.1 * (high.0 - low.0) / (high.1 - low.1);
            let margin = 1e-3 * (high.0 - low.0);
            next = next.clamp(low.0 + margin, high.0 - margin);
            let Some(value) = excess(next.exp())? else { break };
            if value > 0.0 {
                high = (next, value);
                if last_side == 1 {
                    low.1 /= 2.0;
                }
                last_side = 1;
            } else {
                low = (next, value);
                if last_side == -1 {
                    high.1 /= 2.0;
                }
                last_side = -1;
            }
        }
        Ok(Some(high.0.exp()))
    }

    /// The smallest violated noise over several rates that hold together. A later point costs one
    /// evaluation when it does not improve on the earlier ones.
    ///
    /// # Errors
    /// Those of the accounting.
    pub fn least_violated_noise(&self, points: &[RateBounds]) -> Result<Option<f64>, AuditError> {
        let mut least: Option<(f64, Box<dyn Pair>)> = None;
        for rates in points {
            if let Some((noise, pair)) = &least {
                let fnr = rates.false_negative_upper;
                // At the end of the domain nothing smaller can be found.
                if *noise <= self.domain().0 {
                    break;
                }
                if rates.false_positive_upper + fnr >= 1.0 {
                    continue;
                }
                match curve_below(pair.as_ref(), rates.false_positive_upper, fnr) {
                    Ok(curve) if curve <= fnr => continue,
                    Ok(_) => {}
                    // A point that cannot be compared cannot improve on what is known.
                    Err(AuditError::Accounting(_)) => continue,
                    Err(error) => return Err(error),
                }
            }
            if let Some(noise) = self.violated_noise(rates)?
                && least.as_ref().is_none_or(|(known, _)| noise < *known)
            {
                // A hair less noise, so that equal points do not count as progress.
                let pair = self.pair((noise * (1.0 - 1e-6)).max(self.domain().0))?;
                least = Some((noise, pair));
            }
        }
        Ok(least.map(|(noise, _)| noise))
    }
}

/// The lower of the two orders' trade-off curves, at its certified lower end; where the first
/// order alone is already at or below `fnr`, that order.
fn curve_below(pair: &dyn Pair, fpr: f64, fnr: f64) -> Result<f64, AuditError> {
    let remove = pair.fnr(fpr, OneWay::Remove)?.lower;
    if remove <= fnr {
        return Ok(remove);
    }
    Ok(remove.min(pair.fnr(fpr, OneWay::Add)?.lower))
}
