//! From counts to bounds on rates.
//!
//! Every distribution-free bound stands on two one-sided statements, each with half of the
//! error: the false positive rate is at most u, the false negative rate is at most w. Both
//! orders of the pair ("member" against "non-member" and the mirror) use the same two numbers,
//! so that the larger of the two epsilons costs no extra confidence.

use crate::{Errors, band::Band};
use numerics::beta::{clopper_pearson_lower, clopper_pearson_upper};

/// Upper ends of both error rates, with their complements to full relative accuracy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateBounds {
    /// False positive rate is at most this.
    pub false_positive_upper: f64,
    /// True negative rate is at least this (1 - the above).
    pub true_negative_lower: f64,
    /// False negative rate is at most this.
    pub false_negative_upper: f64,
    /// True positive rate is at least this (1 - the above).
    pub true_positive_lower: f64,
}

/// Clopper-Pearson at a threshold that does not depend on these counts; `level` is the total
/// error, half of it on each rate.
pub fn clopper_pearson(errors: &Errors, level: f64) -> RateBounds {
    let half = level / 2.0;
    RateBounds {
        false_positive_upper: clopper_pearson_upper(
            errors.false_positives,
            errors.nonmembers,
            half,
        ),
        true_negative_lower: clopper_pearson_lower(
            errors.true_negatives(),
            errors.nonmembers,
            half,
        ),
        false_negative_upper: clopper_pearson_upper(errors.false_negatives, errors.members, half),
        true_positive_lower: clopper_pearson_lower(errors.true_positives(), errors.members, half),
    }
}

/// The opposite ends at a fixed threshold: what the rates are at least, `level` in all.
pub fn clopper_pearson_opposite(errors: &Errors, level: f64) -> RateBounds {
    let flipped = Errors {
        false_positives: errors.true_negatives(),
        nonmembers: errors.nonmembers,
        false_negatives: errors.true_positives(),
        members: errors.members,
    };
    clopper_pearson(&flipped, level).complement()
}

impl RateBounds {
    /// Reads the bounds of the complementary events as lower ends of the error rates.
    pub(crate) fn complement(self) -> Self {
        Self {
            false_positive_upper: self.true_negative_lower,
            true_negative_lower: self.false_positive_upper,
            false_negative_upper: self.true_positive_lower,
            true_positive_lower: self.false_negative_upper,
        }
    }

    /// The observed rates themselves: an estimate without any confidence.
    pub fn observed(errors: &Errors) -> Self {
        let ratio = |part: u64, all: u64| part as f64 / all as f64;
        Self {
            false_positive_upper: ratio(errors.false_positives, errors.nonmembers),
            true_negative_lower: ratio(errors.true_negatives(), errors.nonmembers),
            false_negative_upper: ratio(errors.false_negatives, errors.members),
            true_positive_lower: ratio(errors.true_positives(), errors.members),
        }
    }

    /// Wilson's score ends: cheap, close to Clopper-Pearson, without its guarantee. Only for
    /// *choosing* a threshold on scores that the bound itself does not use.
    pub(crate) fn wilson(errors: &Errors, z: f64) -> Self {
        let end = |k: u64, n: u64| {
            let (n, rate, z2) = (n as f64, k as f64 / n as f64, z * z);
            let spread = z * (rate * (1.0 - rate) / n + z2 / (4.0 * n * n)).sqrt();
            ((rate + z2 / (2.0 * n) + spread) / (1.0 + z2 / n)).min(1.0)
        };
        let false_positive_upper = end(errors.false_positives, errors.nonmembers);
        let false_negative_upper = end(errors.false_negatives, errors.members);
        Self {
            false_positive_upper,
            true_negative_lower: 1.0 - false_positive_upper,
            false_negative_upper,
            true_positive_lower: 1.0 - false_negative_upper,
        }
    }
}

/// Bounds that hold at all thresholds at once, so that any of them may be chosen after looking.
#[derive(Clone, Debug)]
pub enum Simultaneous {
    /// Mixture of likelihood-ratio martingales (see [`crate::band`]).
    Martingale { false_positives: Band, false_negatives: Band },
    /// Dvoretzky-Kiefer-Wolfowitz with Massart's constant, one-sided on each sample.
    Dkw { false_positive_margin: f64, false_negative_margin: f64 },
}

impl Simultaneous {
    /// The union rule for these sample sizes at total error `level`.
    pub fn martingale(nonmembers: u64, members: u64, level: f64) -> Self {
        let false_positives = Band::new(nonmembers, level / 2.0);
        let false_negatives = if members == nonmembers {
            false_positives.clone()
        } else {
            Band::new(members, level / 2.0)
        };
        Self::Martingale { false_positives, false_negatives }
    }

    /// The DKW rule: P(sup_t (F(t) - F_n(t)) > m) <= exp(-2 n m^2) for exp(-2 n m^2) <= 1/2
    /// (Massart 1990), with level/2 for each sample.
    pub fn dkw(nonmembers: u64, members: u64, level: f64) -> Self {
        let margin = |n: u64| ((2.0 / level).ln() / (2.0 * n as f64)).sqrt();
        Self::Dkw {
            false_positive_margin: margin(nonmembers),
            false_negative_margin: margin(members),
        }
    }

    /// The bounds at a threshold with these errors.
    pub fn at(&self, errors: &Errors) -> RateBounds {
        match self {
            Self::Martingale { false_positives, false_negatives } => {
                let (positive, negative) = (
                    false_positives.upper(errors.false_positives),
                    false_negatives.upper(errors.false_negatives),
                );
                RateBounds {
                    false_positive_upper: positive.rate,
                    true_negative_lower: positive.complement,
                    false_negative_upper: negative.rate,
                    true_positive_lower: negative.complement,
                }
            }
            Self::Dkw { false_positive_margin, false_negative_margin } => {
                let end = |part: u64, all: u64, margin: f64| {
                    let upper = (part as f64 / all as f64 + margin).min(1.0);
                    (upper, 1.0 - upper)
                };
                let (positive, negative) = (
                    end(errors.false_positives, errors.nonmembers, *false_positive_margin),
                    end(errors.false_negatives, errors.members, *false_negative_margin),
                );
                RateBounds {
                    false_positive_upper: positive.0,
                    true_negative_lower: positive.1,
                    false_negative_upper: negative.0,
                    true_positive_lower: negative.1,
                }
            }
        }
    }

    /// Lower ends of the error rates at the same threshold, by the mirrored band.
    pub fn opposite(&self, errors: &Errors) -> RateBounds {
        let flipped = Errors {
            false_positives: errors.true_negatives(),
            nonmembers: errors.nonmembers,
            false_negatives: errors.true_positives(),
            members: errors.members,
        };
        self.at(&flipped).complement()
    }
}
