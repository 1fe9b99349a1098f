//! A run seen through a lens: what it answers. Most views are a pair, which answers everything
//! with certified ends; the Rényi and textbook bounds know a profile only, from which the
//! attack terms follow as upper bounds; the closed forms know Bayes security only, and with it
//! TPR - FPR <= 1 - beta, so delta(epsilon) <= 1 - beta for every epsilon >= 0.

use crate::directions::{self, mu};
use crate::pairs::Gaussian;
use crate::{AccountingError, Pair};
use numerics::elementary::{exp, ln};
use vocabulary::{Direction, Interval, NotCovered, Quantity};

type Result<T> = std::result::Result<T, AccountingError>;

/// An upper bound on the profile, without a pair behind it.
pub trait ProfileBound: Send + Sync {
    /// An epsilon that holds at `delta`.
    ///
    /// # Errors
    /// Where no bound is known.
    fn epsilon(&self, delta: f64) -> Result<f64>;

    /// A delta that holds at `epsilon`; 1 where nothing is known.
    ///
    /// # Errors
    /// Where no bound is known.
    fn delta(&self, epsilon: f64) -> Result<f64>;

    /// A delta that holds at `epsilon`, perhaps a little larger: for searches that ask often.
    ///
    /// # Errors
    /// Where no bound is known.
    fn rough_delta(&self, epsilon: f64) -> Result<f64> {
        self.delta(epsilon)
    }

    /// Why attack terms are not worth deriving from it, if they are not.
    fn no_attack_terms(&self) -> Option<&'static str> {
        None
    }

    /// Why there is no finite epsilon at `delta`, where there is none.
    fn vacuous(&self, delta: f64) -> Option<String> {
        let _ = delta;
        None
    }
}

/// What a lens made of a run.
pub enum View {
    Pair(Box<dyn Pair>),
    Gaussian(Gaussian),
    Bound(Box<dyn ProfileBound>),
    /// Bayes security, and nothing else.
    Security(Interval),
    /// The truth is only enclosed: every answer is that of `above`, an upper bound on the worst
    /// case, and `below` is a lower bound on it.
    Enclosed {
        above: Box<View>,
        below: Box<View>,
    },
}

impl View {
    pub fn pair(pair: impl Pair + 'static) -> Self {
        Self::Pair(Box::new(pair))
    }

    /// A pair that is Gaussian throughout: its mu is known.
    pub fn gaussian(pair: Gaussian) -> Self {
        Self::Gaussian(pair)
    }

    pub fn bound(bound: impl ProfileBound + 'static) -> Self {
        Self::Bound(Box::new(bound))
    }

    /// This view as an upper bound on the worst case, with a lower bound on it.
    pub fn enclosed(self, below: Self) -> Self {
        Self::Enclosed { above: Box::new(self), below: Box::new(below) }
    }

    /// What the worst case is at least, where the view is only an upper bound on it.
    pub fn at_least(&self) -> Option<&Self> {
        match self {
            Self::Enclosed { below, .. } => Some(below),
            _ => None,
        }
    }

    /// Why there is no finite epsilon at `delta`, where the lens knows.
    pub fn vacuous(&self, delta: f64) -> Option<String> {
        match self {
            Self::Bound(bound) => bound.vacuous(delta),
            Self::Enclosed { above, .. } => above.vacuous(delta),
            Self::Pair(_) | Self::Gaussian(_) | Self::Security(_) => None,
        }
    }

    /// Whether epsilon and delta can be asked for.
    pub(crate) fn has_profile(&self) -> bool {
        match self {
            Self::Security(_) => false,
            Self::Enclosed { above, .. } => above.has_profile(),
            Self::Pair(_) | Self::Gaussian(_) | Self::Bound(_) => true,
        }
    }

    /// Whether single directions can be asked for.
    pub fn has_directions(&self) -> bool {
        self.as_pair().is_some()
    }

    /// The pair behind the view, if there is one.
    pub(crate) fn as_pair(&self) -> Option<&dyn Pair> {
        match self {
            Self::Pair(pair) => Some(pair.as_ref()),
            Self::Gaussian(pair) => Some(pair),
            Self::Enclosed { above, .. } => above.as_pair(),
            Self::Bound(_) | Self::Security(_) => None,
        }
    }

    /// # Errors
    /// Those of the pair or bound.
    pub fn epsilon(&self, delta: f64, direction: Direction) -> Result<Interval> {
        match self {
            Self::Pair(pair) => directions::epsilon(pair.as_ref(), delta, direction),
            Self::Gaussian(pair) => directions::epsilon(pair, delta, direction),
            Self::Bound(bound) => Ok(at_most(bound.epsilon(delta)?, 0.0)),
            Self::Security(_) => Err(SECURITY_ONLY.into()),
            Self::Enclosed { above, .. } => above.epsilon(delta, direction),
        }
    }

    /// # Errors
    /// Those of the pair or bound.
    pub fn delta(&self, epsilon: f64, direction: Direction) -> Result<Interval> {
        match self {
            Self::Pair(pair) => directions::delta(pair.as_ref(), epsilon, direction),
            Self::Gaussian(pair) => directions::delta(pair, epsilon, direction),
            Self::Bound(bound) => Ok(at_most(bound.delta(epsilon)?.min(1.0), 0.0)),
            Self::Security(security) => Ok(security.map_decreasing(|beta| 1.0 - beta)),
            Self::Enclosed { above, .. } => above.delta(epsilon, direction),
        }
    }

    /// # Errors
    /// Those of the pair or bound.
    pub fn one_minus_delta(&self, epsilon: f64, direction: Direction) -> Result<Interval> {
        match self {
            Self::Pair(pair) => directions::one_minus_delta(pair.as_ref(), epsilon, direction),
            Self::Gaussian(pair) => directions::one_minus_delta(pair, epsilon, direction),
            Self::Bound(bound) => {
                with_attack_terms(bound.as_ref())?;
                let rest = 1.0 - bound.delta(epsilon)?.min(1.0);
                Ok(Interval::new(rest, rest, 1.0))
            }
            Self::Security(security) => Ok(*security),
            Self::Enclosed { above, .. } => above.one_minus_delta(epsilon, direction),
        }
    }

    /// # Errors
    /// Those of the pair or bound.
    pub fn tpr(&self, fpr: f64, direction: Direction) -> Result<Interval> {
        match self {
            Self::Pair(pair) => directions::tpr(pair.as_ref(), fpr, direction),
            Self::Gaussian(pair) => directions::tpr(pair, fpr, direction),
            Self::Bound(bound) => {
                with_attack_terms(bound.as_ref())?;
                let least = least_power(bound.as_ref(), fpr)?;
                Ok(at_most(least, fpr))
            }
            Self::Security(security) => Ok(security
                .map_decreasing(|beta| (1.0 - beta) + fpr + f64::EPSILON)
                .clamp(fpr, 1.0)),
            Self::Enclosed { above, .. } => above.tpr(fpr, direction),
        }
    }

    /// # Errors
    /// Those of the pair or bound.
    pub fn fnr(&self, fpr: f64, direction: Direction) -> Result<Interval> {
        match self {
            Self::Pair(pair) => directions::fnr(pair.as_ref(), fpr, direction),
            Self::Gaussian(pair) => directions::fnr(pair, fpr, direction),
            Self::Bound(bound) => {
                with_attack_terms(bound.as_ref())?;
                let rest = 1.0 - least_power(bound.as_ref(), fpr)?;
                Ok(Interval::new(rest, rest, 1.0 - fpr))
            }
            Self::Security(security) => {
                Ok(security.map_increasing(|beta| beta - fpr).clamp(0.0, 1.0 - fpr))
            }
            Self::Enclosed { above, .. } => above.fnr(fpr, direction),
        }
    }

    /// # Errors
    /// Those of the pair or bound.
    pub fn advantage(&self) -> Result<Interval> {
        match self {
            Self::Bound(bound) => with_attack_terms(bound.as_ref())?,
            Self::Enclosed { above, .. } => return above.advantage(),
            _ => {}
        }
        self.delta(0.0, Direction::Both)
    }

    /// The accuracy of the best attacker who tells two secrets apart, one of which has this prior.
    ///
    /// # Errors
    /// Those of the pair or bound; a prior outside (0, 1).
    pub fn attack_accuracy(&self, prior: f64) -> Result<Interval> {
        directions::accuracy_by(|threshold| self.delta(threshold, Direction::Both), prior)
    }

    /// # Errors
    /// Those of the pair or bound.
    pub fn bayes_security(&self) -> Result<Interval> {
        self.one_minus_delta(0.0, Direction::Both)
    }

    /// The mu that covers the profile down to `delta`; see [`mu::covering`].
    ///
    /// # Errors
    /// Those of the pair; `Unsupported` for bounds, whose profile is not that of a pair.
    pub fn mu(&self, delta: f64, direction: Direction) -> Result<Interval> {
        match self {
            Self::Pair(pair) => mu::of(pair.as_ref(), delta, direction),
            Self::Gaussian(pair) => mu::of(pair, delta, direction),
            Self::Bound(_) => Err(NO_CURVE.into()),
            Self::Security(_) => Err(SECURITY_ONLY.into()),
            Self::Enclosed { above, .. } => above.mu(delta, direction),
        }
    }
}

const NO_CURVE: NotCovered = NotCovered::Quantities {
    asked: &[Quantity::Mu],
    why: "it bounds single points of the profile; no Gaussian curve follows from them",
};

const SECURITY_ONLY: NotCovered = NotCovered::Quantities {
    asked: &[Quantity::Epsilon, Quantity::Delta, Quantity::Mu],
    why: "it bounds Bayes security and what follows from it; no epsilon follows from that alone",
};

fn with_attack_terms(bound: &dyn ProfileBound) -> Result<()> {
    match bound.no_attack_terms() {
        Some(why) => {
            let asked = &[Quantity::Tpr, Quantity::Advantage, Quantity::BayesSecurity];
            Err(NotCovered::Quantities { asked, why }.into())
        }
        None => Ok(()),
    }
}

/// A bound from above on a number that is at least `least`.
fn at_most(bound: f64, least: f64) -> Interval {
    let bound = bound.max(least);
    Interval { lower: least, value: bound, upper: bound }
}

/// The smallest power that any epsilon allows at a false positive rate: every epsilon gives a
/// valid bound, delta + e^epsilon fpr, and a scan with refinement finds a good one.
fn least_power(bound: &dyn ProfileBound, fpr: f64) -> Result<f64> {
    let by = |delta: f64, epsilon: f64| {
        let direct = delta + exp(epsilon) * fpr;
        let mirrored = 1.0 - exp(-epsilon) * (1.0 - delta - fpr);
        direct.min(mirrored).min(1.0)
    };
    let allowed =
        |epsilon: f64| -> Result<f64> { Ok(by(bound.rough_delta(epsilon)?.min(1.0), epsilon)) };
    let farthest = ln(1.0 / fpr.max(1e-300)).min(700.0);
    let (mut best, mut least, mut step) = (0.0, allowed(0.0)?, farthest / 8.0);
    for part in 1..=8 {
        let epsilon = farthest * f64::from(part) / 8.0;
        let power = allowed(epsilon)?;
        if power < least {
            (best, least) = (epsilon, power);
        }
    }
    // Halving the step finds the minimum of a function with one valley to a thousandth of it.
    for _ in 0..10 {
        step *= 0.5;
        for epsilon in [best - step, best + step] {
            let power = if epsilon >= 0.0 { allowed(epsilon)? } else { 1.0 };
            if power < least {
                (best, least) = (epsilon, power);
                break;
            }
        }
    }
    Ok(least.min(by(bound.delta(best)?.min(1.0), best)))
}
