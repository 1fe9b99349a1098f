//! `rank-gaussian`: the mu of a Gaussian pair whose ranks fall as these do, AUROC = Phi(mu/sqrt(2)). An estimate without
//! confidence.

use crate::{Scores, quality};
use numerics::special::inverse_normal_sf;

/// At least 0.
pub(crate) fn mu(scores: &Scores) -> f64 {
    let rank = quality::auroc(scores, 0.95).value;
    (-inverse_normal_sf(rank) * std::f64::consts::SQRT_2).max(0.0)
}
