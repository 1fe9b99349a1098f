//! Poisson batches: every record joins every batch by its own coin of weight q. Full batches: q = 1.
//!
//! **Theorem A.** Let k target records take part according to a random pattern A (which target is in
//! which release) with a known law pi, *independent of the other records' participation*. Releases may
//! have different noise sigma_t and adaptive gradients of norm at most 1. With m_t(A) the number of
//! targets in release t,
//! - zeroing the targets out (and adding or removing them, where the others' batches do not depend on
//!   them): E_pi N(m(A), diag sigma^2) against N(0, diag sigma^2);
//! - substituting them: E_pi N(m(A), .) against E_pi N(-m(A), .)
//!
//! dominate in both orders. All are attained (others 0, targets constant), so they are exact.
//!
//! *Gaussian comparison* (Kahane 1985 for positive weights). X centred Gaussian with covariance K,
//! Z_i = exp(X_i - K_ii/2), psi convex. Then E psi(a_0 + sum a_i Z_i) rises with every K_ii, rises with
//! K_ij if a_i a_j > 0 and falls with it if a_i a_j < 0. For along K + t (K' - K) the derivative is
//! 1/2 sum_ij (K' - K)_ij E[a_i a_j Z_i Z_j psi''], because the second derivative in x_i contributes
//! psi' a_i Z_i, which the explicit -K_ii/2 takes away again.
//!
//! *Proof of A.* Reveal the others' batches; that can only raise H_g (joint convexity). Under the law R
//! without the targets, dP/dR = sum_A pi(A) prod_t l_t(A_t) with
//! l_t(a) = exp(<v_t(a), xi_t>/sigma_t - |v_t(a)|^2/(2 sigma_t^2)), xi_t standard normal, v_t(a) the
//! summed gradients of the targets in a, a function of the past with |v_t(a)| <= |a|; dQ/dR is the same
//! with the replaced targets' v'_t (or 1). H_g(P||Q) = E_R (dP/dR - g dQ/dR)_+. Go back from the last
//! release. Given the past and the factors of later releases, which have been replaced already and are
//! independent of xi_t, the argument is sum_a c_a l_t(a) - g sum_a c'_a l'_t(a), c, c' >= 0. The
//! comparison with <v(a), v(b)> <= |a||b| and <v(a), v'(b)> >= -|a||b| replaces v(a) by |a| and v'(a)
//! by -|a| along one direction (a covariance of rank one, hence allowed), with fresh independent
//! noise. Both orders are covered, since the argument may be multiplied by -1 and g moved. QED.
//!
//! For Poisson batches the patterns of different steps are independent, so that the pair is the
//! product of (1-q) N(0) + q N(1) against N(0), or against (1-q) N(0) + q N(-1) for substitution; the
//! number of a group's k records in a batch is Binomial(k, q). For one record and substitution this is
//! also Lebeda, Regehr, Kamath, Steinke (SaTML 2025), Proposition 13.

use super::{Rates, Scheme};
use crate::pairs::Composed;
use vocabulary::Sampling;

pub(super) const SCHEME: Scheme = Scheme {
    sampling: Sampling::Poisson,
    words: |_| {
        "Poisson batches: every record joins every batch independently with the sample rate".into()
    },
    supports: |_| Ok(()),
    pair: |run| Ok(Box::new(Composed::for_run(run)?)),
    at_least: |_| None,
    rates: |_| Rates::Any,
    costly: false,
};

pub(super) const FULL: Scheme = Scheme {
    sampling: Sampling::Full,
    words: |_| "every record is in every batch".into(),
    supports: |_| Ok(()),
    pair: |run| Ok(Box::new(Composed::for_run(run)?)),
    at_least: |_| None,
    rates: |_| Rates::Any,
    costly: false,
};
