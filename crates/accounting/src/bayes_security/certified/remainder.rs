//! Adding or removing a record: the mean shift exactly, the rest of the mixture by Hellinger.
//!
//! In units of the noise, T steps show the attacker X = b + g, g standard normal in T dimensions,
//! b_t = B_t/s_t with B_t ~ Bernoulli(p_t) independent (P), or g alone (Q). Write m = E b, a = |m| =
//! sqrt(sum_t p_t^2/s_t^2), u = m/a, beta = b - m, beta' an independent copy, and E for averages
//! over both. Bound:
//!
//! ```text
//! TV(P, Q) <= erf(a/(2 sqrt2)) + (4 phi(a/2)/a) (1 - prod_t A_t) + sqrt(D)/2,
//! D = E (u.beta)(u.beta') e^{beta.beta'},   A_t: affinity of the centred mixture with its noise.
//! ```
//!
//! The first term is the paper's closed form; the second is of the order of what the central limit
//! adds to it; the third is of the order of p/s, whatever T.
//!
//! *Proof.* Let Pm be the law of X with its component along u replaced by an independent normal
//! variable with mean a. Three steps.
//!
//! 1. TV(P, Pm) <= sqrt(D)/2. Take R = N(m, 1). By Cauchy and Schwarz 2 TV <= sqrt(∫ (P-Pm)^2/R).
//!    Expanding (mixtures of Gaussians around m), that integral is E e^{beta.beta'} - E e^{b.b'},
//!    with b = beta without its component along u. In powers: sum_n (|M_n|^2 - |Pi M_n|^2)/n!, M_n =
//!    E beta^{(x)n}, Pi the projection off u in every factor. As 1 - prod (1 - q_i) <= sum q_i for
//!    commuting projections, each term is at most n |(u.M_n)|^2, and sum_n n |u.M_n|^2/n! is
//!    E (u.beta)(u.beta') e^{beta.beta'} = D.
//! 2. Pm and Q are the same function (drop Y's component along u, add Y0 u) of the pairs
//!    (Y0, Y): N(a, 1) x (law of beta + g) against N(0, 1) x N(0, 1)^T, so TV(Pm, Q) is at most
//!    the distance of these products.
//! 3. Let y be the likelihood ratio of Y; Y0 is independent of it. TV = E_y c(y), c(y) =
//!    E (y e^{aZ - a^2/2} - 1)_+ = y Phi(d + a/2) - Phi(d - a/2), d = ln(y)/a. Claim:
//!    c(y) <= c(1) + Phi(a/2)(y-1) + (2 phi(a/2)/a)(sqrt y - 1)^2. Averaging over y (E y = 1,
//!    E (sqrt y - 1)^2 = 2 (1 - A)) gives the bound, with c(1) = erf(a/(2 sqrt2)).
//!    The claim: put y = e^x and G(x) = e^{-x/2} (c(y) - c(1) - Phi(a/2)(y-1)). Differentiating,
//!    G'' = G/4 + phi(x/a) e^{-a^2/8}/a with G(0) = G'(0) = 0, while H(x) = (2k)(cosh(x/2) - 1) =
//!    k e^{-x/2} (sqrt y - 1)^2 has H'' = H/4 + k/2. For k = 2 phi(a/2)/a >= 2 phi(x/a) e^{-a^2/8}/a
//!    the difference H - G starts at 0 with slope 0 and is driven by a nonnegative source: H >= G. ∎
//!
//! *At other slopes.* For any lambda > 0 the same steps bound E_Q (dP/dQ - lambda)_+ = delta(ln lambda): the
//! Gaussian's own delta, plus sqrt(lambda) times the second term, plus sqrt(D)/2. (In step 3, c(y/lambda) lambda
//! is expanded at y = 1: subtracting a linear function of y leaves G'' = G/4 + source, the source is at most
//! its value at 0, and H = K e^{-x/2} (e^{x/2} - lambda^{-1/2})^2 with K = 2 phi(a/2) sqrt(lambda)/a dominates.)
//!
//! *Replacing a record.* Any event E has P0(E) <= lambda Q(E) + delta and P1(not E) <= lambda Q(not E) + delta, Q
//! the run without either record, so TV(P0, P1) <= lambda - 1 + 2 delta(ln lambda), for every lambda. At lambda = 1
//! it is the triangle inequality; lambda = e^{-a^2/2} is the best for Gaussians, where it gives that of
//! distance 2a.
//!
//! Everything in D factors over t: with M_t = E e^{beta_t beta_t'}, E1_t = E beta_t beta_t'
//! e^{beta_t beta_t'} and E2_t = E beta_t e^{beta_t beta_t'},
//! D = prod M * ( sum_t u_t^2 (E1_t/M_t - (E2_t/M_t)^2) + (sum_t u_t E2_t/M_t)^2 ).

use super::{SLACK, affinity, gaussian_shift};
use crate::pairs::Gaussian;
use crate::{AccountingError, Order, Pair};
use numerics::elementary::{exp, exp_m1, ln_1p, powi};
use numerics::special::normal_density;
use vocabulary::Phase;

pub(super) fn add_remove(phases: &[Phase]) -> Result<f64, AccountingError> {
    let Terms { rest, distance, .. } = Terms::new(phases);
    Ok(gaussian_shift(1.0, phases)? - (rest + distance))
}

/// Replacing a record, through the run without either.
pub(super) fn substitute(phases: &[Phase]) -> Result<f64, AccountingError> {
    let Terms { a, rest, distance } = Terms::new(phases);
    let log_slope = -0.5 * a * a;
    let slope = exp(log_slope);
    let gaussian = Gaussian::computed(a, SLACK)?.delta(log_slope, Order::Remove)?.upper;
    let delta = gaussian + slope.sqrt() * rest + distance;
    Ok(2.0 - slope - 2.0 * delta - 8.0 * SLACK)
}

/// The three parts of the bound, rounded up.
struct Terms {
    a: f64,
    rest: f64,
    distance: f64,
}

impl Terms {
    fn new(phases: &[Phase]) -> Self {
        let square: f64 = phases
            .iter()
            .map(|phase| phase.steps as f64 * powi(phase.sample_rate / phase.noise_multiplier, 2))
            .sum();
        let a = square.sqrt();
        let rest = 4.0 * normal_density(0.5 * a) / a * -exp_m1(affinity::from_mean(phases));
        let distance = 0.5 * replaced_direction(phases, a).sqrt();
        let slack = 1.0 + 4.0 * SLACK;
        Self { a, rest: rest * slack, distance: distance * slack }
    }
}

/// D of the module's header.
fn replaced_direction(phases: &[Phase], a: f64) -> f64 {
    let (mut log_product, mut own, mut cross) = (0.0, 0.0, 0.0);
    for phase in phases {
        let (p, s, steps) = (phase.sample_rate, phase.noise_multiplier, phase.steps as f64);
        let (r, gain) = (1.0 - p, 1.0 / (s * s));
        let v = p * r;
        let chi = affinity::centred_chi_square(p, gain);
        let (high, middle, low) = (r * r * gain, -v * gain, p * p * gain);
        let first = v * v * gain * (exp_m1(high) - 2.0 * exp_m1(middle) + exp_m1(low));
        // The terms of zeroth and first order cancel; what remains is written with psi.
        let (up, down) = (
            p * affinity::psi(high) + (1.0 - 2.0 * p).max(0.0) * affinity::psi(middle),
            r * affinity::psi(low) + (2.0 * p - 1.0).max(0.0) * affinity::psi(middle),
        );
        let second = v / s * (up - down);
        let unit = p / (s * a);
        log_product += steps * ln_1p(chi);
        own += steps * unit * unit * (first / (1.0 + chi));
        cross += steps * unit * second / (1.0 + chi);
    }
    // Dropping the negative square keeps it an upper bound.
    exp(log_product * (1.0 + SLACK)) * (own + cross * cross)
}
