//! One martingale for both samples: the `union` rule.
//!
//! **What it says.** Let p0(t) and p1(t) be the true shares of non-members and of members with a
//! score of at least t. From the counts K0(t), K1(t) at every threshold a region of the unit square is
//! computed, and with probability at least 1 - level the true (p0(t), p1(t)) lies in the region of
//! its threshold for *all* t at once. A line p1 <= e^l p0 + d that misses the region of one
//! threshold is refuted. (Epsilon, delta)-privacy is two such lines, l = epsilon with d = delta, and
//! its mirror l = -epsilon with d = 1 - e^-epsilon (1 - delta); a trade-off curve is the envelope of
//! such lines. So every epsilon at every delta, both directions, the Gaussian family, the DP-SGD
//! families and the advantage are read off one statement, and none of them costs the others anything.
//!
//! **Proof.** Let V_i be uniform on [0, 1] with {score_i >= t} = {V_i <= p0(t)} for non-members, and
//! U_i the same for members with p1 (the distributional transform, randomised at atoms); all are
//! independent. N(p) = #{V_i <= p}, n of them. For r in [0, 1]
//!
//! A_r(p) = r^N(p) ((1 - r p) / (1 - p))^(n - N(p))
//!
//! is the likelihood ratio, on F_p = sigma(min(V_i, p)), of the law with density r on [0, 1) and the
//! rest of its mass at 1, against the uniform law; so it is a non-negative martingale in p with
//! A_r(0) = 1. For s > 1 the law with density s on [0, 1/s] gives the same way
//!
//! B_s(p) = s^N(p) ((1 - s p) / (1 - p))^(n - N(p)) for p <= 1/s,
//!
//! and beyond 1/s a martingale that is non-negative and of which nothing else is used: it is counted
//! as 0. r = 1 and s = 1 are the constant 1, the bet that is not made. Mixtures A of the A_r on the
//! non-members, B of the B_s on the members, with weights that sum to 1 and depend on the sizes and
//! the level only, are martingales too. Let t fall from plus to minus infinity. t -> (p0(t), p1(t)) is
//! a path that is not random and rises in both coordinates, so A(p0(t)) is a martingale in the
//! filtration of the non-members seen down to t, B(p1(t)) in that of the members; the samples are
//! independent, so M(t) = A(p0(t)) B(p1(t)) is a martingale in the joint filtration, with
//! expectation at most 1. By Ville's inequality P(max M >= 1/level) <= level over any finite set of
//! thresholds; p0, p1 and the counts are left-continuous in t, so the supremum over all t is one over
//! the rational t, a limit of such maxima, and ties need no care. Off that event every t has
//! (p0(t), p1(t)) in {(p, b): A(p) B(b) < 1/level}, where A and B are evaluated at the counts of t:
//! this is the region.
//!
//! For fixed counts A rises with p and B falls with b (each term does), so under p1 <= e^l p0 + d
//! the truth has A(p0) B(p1) >= A(p0) B(min(1, e^l p0 + d)) >= inf over p of the same. If that
//! infimum is at least 1/level at any threshold, the line is refuted. QED.
//!
//! **The bet that is not made.** Without it A would be nearly 0 where p is far below the observed
//! rate, and would destroy the evidence of the members there; with a weight w it is at least w.
//!
//! **The infimum from below.** On a piece a <= p <= c: ln A is convex in p (each ln A_r is, since
//! its derivative (n-N)(1-r)/((1-p)(1-rp)) rises; a logarithm of a sum of exponentials of convex
//! functions is convex). Each ln B_s is concave in b, hence at least its chord, and the logarithm
//! of the sum of the exponentials of the chords is convex. So ln A + ln B is at least a convex
//! function that agrees with it at both ends (terms that vanish at c are left out), and that one is at
//! least the meeting point of its tangents at the ends. Another lower bound is ln A(a) + ln B(c).
//! Pieces are halved until all of them lie above the target, or one end lies below it. A piece that cannot
//! be decided counts as not refuted. The target has a margin of 1e-12 + 4e-15 (n0 + n1) above ln(1/level)
//! for rounding.
//!
//! (Likelihood-ratio bands: Berk and Jones 1979; Ville's inequality for them: Howard et al. 2021.)
//!
//! Cost: a decision takes some dozens of evaluations of at most eleven terms on each side, ten to
//! thirty microseconds. Any threshold may be looked at; the vertices of the ROC's convex hull are,
//! a few hundred of a million.

mod infimum;
mod search;

pub(crate) use infimum::Evidence;
pub(crate) use search::{JointScores, Shown, largest_where, likely_height, refutes_mu};

use crate::rates::RateBounds;
use crate::{AttackDirection, Errors};

/// The martingale for two sample sizes and one error level.
#[derive(Clone, Debug)]
pub struct Joint {
    nonmembers: Side,
    members: Side,
    /// ln(1/level), with a margin for rounding.
    target: f64,
}

/// The bets on one sample.
#[derive(Clone, Debug)]
struct Side {
    size: u64,
    /// In the order of the rates at which they are best.
    bets: Vec<Bet>,
}

/// A tangent r (or s) with its weight; `rest` is |1 - r|.
#[derive(Clone, Copy, Debug, Default)]
struct Bet {
    ln_weight: f64,
    ratio: f64,
    ln_ratio: f64,
    rest: f64,
}

/// Weight of the bet that is not made.
const IDLE: f64 = 0.2;
/// Weight of the bet for no non-member (or all members) beyond the threshold.
const EXTREME: f64 = 0.22;
/// Spacing of the tangents in odds.
const RATIO: f64 = 8.0;
/// Tangents on each side of the observed rate that are evaluated: the others would not change a digit,
/// and to leave a term out of a mixture only makes it smaller.
const NEAR: usize = 4;

impl Joint {
    /// The statement that fails with probability at most `level`.
    pub fn new(nonmembers: u64, members: u64, level: f64) -> Self {
        let both = (nonmembers + members) as f64;
        let target = (1.0 / level).ln() + 1e-12 + 4e-15 * both;
        Self {
            nonmembers: Side::new(nonmembers, target, false),
            members: Side::new(members, target, true),
            target,
        }
    }

    /// Whether p1 <= e^slope p0 + delta is refuted at a threshold with these errors.
    pub fn refutes(&self, errors: &Errors, slope: f64, delta: f64) -> bool {
        self.evidence(errors).refutes(slope, delta)
    }

    /// The largest refuted epsilon at `delta`, from below; 0 when none is.
    pub fn epsilon(&self, errors: &Errors, delta: f64, direction: AttackDirection) -> f64 {
        search::epsilon_above(&self.evidence(errors), delta, direction, 0.0).unwrap_or(0.0)
    }

    /// The box around the region: both upper ends hold together, at all thresholds at once.
    pub fn rates(&self, errors: &Errors) -> RateBounds {
        self.evidence(errors).sides()
    }

    pub(crate) fn evidence(&self, errors: &Errors) -> Evidence {
        Evidence::new(
            self.nonmembers.near(errors.false_positives),
            self.members.near(errors.true_positives()),
            self.target,
        )
    }
}

impl Side {
    fn new(size: u64, target: f64, above: bool) -> Self {
        let n = size as f64;
        let spans = ((n * n).ln() / RATIO.ln()).ceil().max(1.0);
        // Odds from 1/n to n.
        let log_odds = |step: f64| (2.0 * step / spans - 1.0) * n.ln();
        // Somewhat more weight on rates near one half, where bounded mechanisms show their
        // epsilon; less in the tails, where the logarithm of a weight costs least.
        let weight = |log_odds: f64| 1.0 / (3.0 + log_odds.abs());
        let steps = spans as u64;
        let total: f64 = (0..=steps).map(|step| weight(log_odds(step as f64))).sum();
        let share = |weight: f64| ((1.0 - IDLE - EXTREME) * weight / total).ln();
        let extreme = EXTREME.ln();
        let mut bets: Vec<Bet> = (0..=steps)
            .map(|step| {
                let place = log_odds(step as f64);
                let ln_weight = share(weight(place));
                let (rate, complement) = logistic(place);
                // Each sample brings about half of the evidence.
                let budget = (0.5 * target - ln_weight) / n;
                Bet::at(rate, complement, budget, above, ln_weight)
            })
            .collect();
        if above {
            // All scores beyond the threshold: density e^budget up to e^-budget.
            let ln_ratio = ((0.5 * target - extreme) / n).min(700.0);
            let rest = ln_ratio.exp_m1();
            bets.push(Bet { ln_weight: extreme, ratio: ln_ratio.exp(), ln_ratio, rest });
        } else {
            let none =
                Bet { ln_weight: extreme, ratio: 0.0, ln_ratio: f64::NEG_INFINITY, rest: 1.0 };
            bets.insert(0, none);
        }
        Self { size, bets }
    }

    /// The bets near an observed count, and the one that is not made (the last).
    fn near(&self, count: u64) -> infimum::Terms {
        let (k, n) = ((count as f64).max(0.5), self.size as f64);
        let last = self.bets.len() - 1;
        let place = 0.5 * ((k / (n - k).max(0.5)).ln() / n.ln().max(1e-9) + 1.0);
        let middle = (place * last as f64).round().clamp(0.0, last as f64) as usize;
        let (from, to) = (middle.saturating_sub(NEAR), (middle + NEAR).min(last));
        infimum::Terms::new(count, self.size, &self.bets[from..=to])
    }
}

impl Bet {
    /// The tangent that is best at an observed rate: ratio = rate / p, where p solves
    /// KL(rate || p) = budget above the rate (evidence that p is smaller), or below it. Any ratio is
    /// valid; this one is useful.
    fn at(rate: f64, complement: f64, budget: f64, above: bool, ln_weight: f64) -> Self {
        let divergence =
            |p: f64, q: f64| rate * (rate / p).ln() + complement * (complement / q).ln();
        // ln p (for s) or ln(1 - p) (for r) from the rate downwards.
        let split = |ln: f64| (ln.exp(), -ln.exp_m1());
        let at = |ln: f64| {
            let (near, other) = split(ln);
            if above { (near, other) } else { (other, near) }
        };
        let start = if above { rate.ln() } else { complement.ln() };
        let (mut inside, mut outside) = (start, start - 1.0);
        let reached = |ln: f64| {
            let (p, q) = at(ln);
            divergence(p, q) >= budget
        };
        while !reached(outside) && outside > -600.0 {
            outside = 2.0 * outside - inside - 1.0;
        }
        for _ in 0..100 {
            let middle = 0.5 * (inside + outside);
            if reached(middle) { outside = middle } else { inside = middle }
        }
        let (p, q) = at(outside);
        // |1 - rate/p| without cancellation.
        let rest = if above { (q - complement) / p } else { (complement - q) / p };
        let ln_ratio = if above { rest.ln_1p() } else { (-rest).ln_1p() };
        Self { ln_weight, ratio: ln_ratio.exp(), ln_ratio, rest }
    }
}

fn logistic(log_odds: f64) -> (f64, f64) {
    let small = 1.0 / (1.0 + log_odds.abs().exp());
    if log_odds < 0.0 { (small, 1.0 - small) } else { (1.0 - small, small) }
}
