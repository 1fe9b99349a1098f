//! The law of the loss of one step.

use crate::mixture::MixtureRatio;
use crate::special::normal_cdf;

/// A stretch on which the loss is smooth: x is Gaussian with the density of the pair's Q (scale 1),
/// restricted to x >= `from`, and the loss is ln W(x), W = P/Q.
///
/// A strand with its mirror image has, besides, the same stretch with the loss -ln W, whose Q mass at
/// -l is the mass of the stretch times W.
#[derive(Clone, Debug)]
pub struct Strand {
    pub weight: f64,
    pub pair: MixtureRatio,
    /// -infinity: the whole line. Otherwise ln W is 0 there.
    pub from: f64,
    pub mirror: bool,
}

/// The law of one step's loss under Q: strands, and what is left at loss 0.
#[derive(Clone, Debug)]
pub struct Law {
    pub(super) strands: Vec<Strand>,
    /// Mass at loss 0.
    pub(super) atom: f64,
    /// Relative error of the weights of components.
    pub(super) weight_error: f64,
}

impl Law {
    /// The law of a pair of mixtures (scale 1).
    pub fn of_pair(pair: MixtureRatio) -> Self {
        assert!(pair.scale() == 1.0, "strands are in units of the noise");
        let weight_error = 4.0 * f64::EPSILON + pair.weight_error();
        let strand = Strand { weight: 1.0, pair, from: f64::NEG_INFINITY, mirror: false };
        Self { strands: vec![strand], atom: 0.0, weight_error }
    }

    /// The law of the symmetric profile
    /// h(g) = sum_j p_j H_{g'}(N(mu_j, 1) || N(0, 1)), g' = 1 + (g-1)/q, for g >= 1 and its mirror
    /// below, q the sum of the p_j: under Q, with probability p_j/q each,
    /// W = 1 - q + q exp(mu_j x - mu_j^2/2) on x > mu_j/2; its mirror; and the rest at W = 1.
    pub fn symmetric(shares: &[(f64, f64)], weight_error: f64) -> Self {
        use crate::mixture::Component;
        let q: f64 = shares.iter().map(|(p, _)| p).sum::<f64>().min(1.0);
        let mut strands = Vec::new();
        let mut atom = 0.0;
        for &(p, mu) in shares {
            let pair =
                MixtureRatio::new(1.0, vec![Component { weight: q, centre: mu }], Vec::new());
            atom += (1.0 - q) * p / q * (2.0 * normal_cdf(0.5 * mu) - 1.0);
            strands.push(Strand { weight: p / q, pair, from: 0.5 * mu, mirror: true });
        }
        let error = weight_error + 4.0 * f64::EPSILON * (1.0 + shares.len() as f64);
        Self { strands, atom: atom.clamp(0.0, 1.0), weight_error: error }
    }

    /// With probability `share` the other law, else this one, and the attacker sees which.
    #[must_use]
    pub fn mixed(mut self, other: Self, share: f64, share_error: f64) -> Self {
        for strand in &mut self.strands {
            strand.weight *= 1.0 - share;
        }
        self.strands.extend(other.strands.into_iter().map(|mut strand| {
            strand.weight *= share;
            strand
        }));
        self.atom = self.atom * (1.0 - share) + other.atom * share;
        self.weight_error = self.weight_error.max(other.weight_error) + share_error;
        self
    }
}

impl Strand {
    /// The exponents of W on this strand that belong to a tilt: c itself, and 1 - c for the mirror.
    pub(super) fn tilts(&self, c: f64) -> impl Iterator<Item = (f64, bool)> {
        [(c, false), (1.0 - c, true)].into_iter().take(if self.mirror { 2 } else { 1 })
    }

    /// ln of the integrand N^c D^{1-c} phi (without 1/sqrt(2 pi)) at x.
    pub(super) fn height(&self, x: f64, c: f64) -> f64 {
        -0.5 * x * x + c * self.pair.log_numerator(x) + (1.0 - c) * self.pair.log_denominator(x)
    }

    /// Ends of the slope of [`Strand::height`] over [a, b].
    pub(super) fn slopes(&self, a: f64, b: f64, c: f64) -> (f64, f64) {
        slopes((a, self.pair.posterior_means(a)), (b, self.pair.posterior_means(b)), c)
    }

    /// Where the height is worth looking at: nine standard deviations about where it can peak.
    pub(super) fn extent(&self, c: f64) -> (f64, f64) {
        let from = if self.from.is_finite() { self.from } else { -self.pulled(9.0, c, -1.0) };
        let to = self.pulled(9.0, c, 1.0);
        (from, to.max(from + 1.0))
    }

    /// A number with what the centres can pull the slope of [`Strand::height`] up (sign 1) or down (sign -1): centres
    /// of P lie within [0, reach], those of Q within [-reach, 0], or within [0, reach] where the ratio turns.
    pub(super) fn pulled(&self, from: f64, c: f64, sign: f64) -> f64 {
        let reach = self.pair.reach();
        let other = sign * (1.0 - c);
        let other = match (self.pair.one_sided(), self.pair.turn().is_finite()) {
            (true, _) => 0.0,
            (false, true) => other.max(0.0) * reach,
            (false, false) => (-other).max(0.0) * reach,
        };
        from + (sign * c).max(0.0) * reach + other
    }

    /// A bound on the sum of both posterior means' sizes between two places.
    pub(super) fn means(&self, a: (f64, f64), b: (f64, f64)) -> f64 {
        b.0 + a.1.abs().max(b.1.abs())
    }
}

/// Ends of the slope of [`Strand::height`] between two places with their posterior means, which rise
/// with x.
pub(super) fn slopes(a: (f64, (f64, f64)), b: (f64, (f64, f64)), c: f64) -> (f64, f64) {
    let times = |factor: f64, low: f64, high: f64| {
        if factor >= 0.0 { (factor * low, factor * high) } else { (factor * high, factor * low) }
    };
    let (n, d) = (times(c, a.1.0, b.1.0), times(1.0 - c, a.1.1, b.1.1));
    (-b.0 + n.0 + d.0, -a.0 + n.1 + d.1)
}
