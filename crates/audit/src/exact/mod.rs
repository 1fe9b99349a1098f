//! At a threshold that does not depend on the counts: an exact unconditional test, for `fixed` and
//! `holdout`.
//!
//! X0 of n0 non-members and X1 of n1 members lie beyond the threshold, independent binomials with
//! rates p0 and p1. H(v) says p1 <= b_v(p0), where b_v rises with v and with p: e^v p + delta for
//! epsilon, Phi(Phi^-1(p) + v) for the Gaussian mu, p + v for the advantage.
//!
//! **Proof.** Let L be any fixed function of the outcomes that rises with X1 and falls with X0, x the
//! outcome that was seen, and S = {x': L(x') >= L(x)}. Let C be a Clopper-Pearson interval for p0
//! with error g, and P(v) = g + sup over p in C of P(S; p, b_v(p)). Then P(v) is a p-value for H(v):
//! S grows with X1, so for p0 fixed its probability under H(v) is largest at p1 = b_v(p0); the sets S
//! are nested, so P(P(S_X) <= c) <= c at the true rates; and p0 is outside C with probability at
//! most g (Berger and Boos 1994). S and C do not depend on v and b_v rises with v, so P(v) does too,
//! and the largest v with P(v) <= level is a lower bound with that error (Buehler 1957). QED. Both
//! directions of epsilon get half of the level.
//!
//! L decides how much is shown: for epsilon it is the value at which the signed root of the
//! likelihood ratio equals [`ORDER`], so S is where that root at v = L(x) is at
//! least that; for mu and advantage it is the statistic at Wilson's ends.
//!
//! **More confidence never shows more.** S does not depend on the level, C grows as the level falls, and so does
//! what is asked of P(S): a value that is refuted at one level is refuted at every larger one. The bound is
//! the largest multiple of [`STEP`] that is refuted, so this holds to the last digit.
//!
//! **On the safe side.** False positives are counted in blocks of a twelfth of a standard deviation, each
//! with the smallest member count that belongs to S at any of its ends. Between grid points a < c of p the probability of
//! S is at most that of X0 at a with X1 at b_v(c), since S falls with X0 and grows with X1; pieces are
//! halved until this is below the level, or v counts as not refuted. What lies beyond nine standard deviations is
//! below 1e-16 and is added.
//!
//! Scores without an error have a closed form ([`extreme`]).
//!
//! Against two Clopper-Pearson ends at half of the level each: n = 100, randomised response of
//! epsilon 1: 0.67 in place of 0.56 on average. Cost: about a millisecond for a thousand scores per side, a
//! tenth of a second for a million.

mod extreme;
mod law;

pub(crate) use law::window;

use crate::{AttackDirection, Errors, RateBounds, Statistic};
use law::Law;
use numerics::beta::{clopper_pearson_lower, clopper_pearson_upper};
use numerics::special::{inverse_normal_cdf, inverse_normal_sf, normal_cdf};

/// The lower bound of a statistic at total error `level`.
pub(crate) fn lower_bound(errors: &Errors, statistic: &Statistic, level: f64) -> f64 {
    let (forward, mirror) = (outcome(errors, false), outcome(errors, true));
    match *statistic {
        Statistic::Epsilon { delta, direction } => {
            let line = Limit::Line { delta };
            match direction {
                AttackDirection::Forward => forward.lower_bound(line, level, 0.0),
                AttackDirection::Mirror => mirror.lower_bound(line, level, 0.0),
                AttackDirection::Both => {
                    let half = 0.5 * level;
                    let promise = |outcome: &Outcome| line.order(outcome, ORDER);
                    let (first, second) = if promise(&forward) >= promise(&mirror) {
                        (forward, mirror)
                    } else {
                        (mirror, forward)
                    };
                    let shown = first.lower_bound(line, half, 0.0);
                    second.lower_bound(line, half, shown).max(shown)
                }
            }
        }
        Statistic::GaussianMu => forward.lower_bound(Limit::Gaussian, level, 0.0),
        Statistic::Advantage => forward.lower_bound(Limit::Shift, level, 0.0),
    }
}

/// The outcomes at one threshold that show a value, for planning: those whose L is at least a critical
/// one, in one direction. The critical L is looked up at the false positives that are expected, on a
/// grid of p without the certificate, so the boundary is right to a fraction of a count.
pub(crate) struct Shows {
    limit: Limit,
    mirror: bool,
    z: f64,
    order: f64,
}

impl Shows {
    /// For outcomes near these errors; `None` when no number of true positives shows the value there.
    pub(crate) fn near(
        errors: &Errors,
        statistic: &Statistic,
        level: f64,
        value: f64,
    ) -> Option<Self> {
        let (limit, both) = match *statistic {
            Statistic::Epsilon { delta, direction } => {
                (Limit::Line { delta }, direction == AttackDirection::Both)
            }
            Statistic::GaussianMu => (Limit::Gaussian, false),
            Statistic::Advantage => (Limit::Shift, false),
        };
        let level = if both { 0.5 * level } else { level };
        let z = inverse_normal_sf(level);
        let mirror = match *statistic {
            Statistic::Epsilon { direction: AttackDirection::Mirror, .. } => true,
            Statistic::Epsilon { direction: AttackDirection::Both, .. } => {
                let promise = |mirror| limit.order(&outcome(errors, mirror), z);
                promise(true) > promise(false)
            }
            _ => false,
        };
        let seen = outcome(errors, mirror);
        // Where both counts vary by dozens the boundary is that of the signed root; beyond ten thousand
        // scores it is taken for that too, since a plan has to answer in seconds.
        let variance = |x: u64, n: u64| x as f64 * (n - x) as f64 / n as f64;
        if matches!(limit, Limit::Line { .. })
            && (variance(seen.zeros, seen.n0).min(variance(seen.ones, seen.n1)) > 400.0
                || seen.n0.max(seen.n1) > 10_000)
        {
            return Some(Self { limit, mirror, z, order: value });
        }
        let shows = |ones: u64| {
            let outcome = Outcome { ones, ..seen };
            let order = limit.order(&outcome, ORDER);
            order > f64::NEG_INFINITY
                && outcome.test(limit, level, order).worst_at(value) <= level * (1.0 - 1e-3)
        };
        // From where the signed root says outwards.
        let (mut low, mut high) = (0, seen.n1);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let outcome = Outcome { ones: middle, ..seen };
            if limit.at_least(&outcome, value, z) { high = middle } else { low = middle }
        }
        let (mut not, mut does, mut step) = (0, high, 1);
        while !shows(does) {
            if does == seen.n1 {
                return None;
            }
            (not, does) = (does, (does + step).min(seen.n1));
            step *= 2;
        }
        step = 1;
        while not == 0 && does > step {
            if shows(does - step) {
                does -= step;
                step *= 2;
            } else {
                not = does - step;
            }
        }
        while does - not > 1 {
            let middle = not + (does - not) / 2;
            if shows(middle) { does = middle } else { not = middle }
        }
        let order = limit.order(&Outcome { ones: does, ..seen }, ORDER);
        Some(Self { limit, mirror, z: ORDER, order })
    }

    pub(crate) fn holds(&self, errors: &Errors) -> bool {
        self.limit.at_least(&outcome(errors, self.mirror), self.order, self.z)
    }
}

fn outcome(errors: &Errors, mirror: bool) -> Outcome {
    if mirror {
        Outcome {
            zeros: errors.false_negatives,
            n0: errors.members,
            ones: errors.true_negatives(),
            n1: errors.nonmembers,
        }
    } else {
        Outcome {
            zeros: errors.false_positives,
            n0: errors.nonmembers,
            ones: errors.true_positives(),
            n1: errors.members,
        }
    }
}

/// Share of the level that p0 may be outside its interval with.
const OUTSIDE: f64 = 5e-3;
/// The normal quantile by which outcomes are ordered: about the one at which a bound with 95 % confidence lies.
const ORDER: f64 = 1.96;
/// Bounds are multiples of this.
const STEP: f64 = 5e-5;

/// Counts beyond the threshold: few of the first kind and many of the second show leakage.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    zeros: u64,
    n0: u64,
    ones: u64,
    n1: u64,
}

/// The largest p1 that H(v) allows.
#[derive(Clone, Copy, Debug)]
enum Limit {
    Line { delta: f64 },
    Gaussian,
    Shift,
}

impl Limit {
    fn at(self, value: f64, p: f64) -> f64 {
        match self {
            Self::Line { delta } => (value.exp() * p + delta).min(1.0),
            Self::Shift => (p + value).min(1.0),
            Self::Gaussian if p <= 0.0 => 0.0,
            Self::Gaussian if p >= 1.0 => 1.0,
            Self::Gaussian => normal_cdf(inverse_normal_cdf(p) + value),
        }
    }

    /// L(x); minus infinity below every value of interest.
    fn order(self, outcome: &Outcome, z: f64) -> f64 {
        match self {
            Self::Line { delta } => {
                let above = |value: f64| outcome.root(value, delta) >= z;
                let (mut low, mut high) = (-30.0, 30.0);
                if !above(low) {
                    return f64::NEG_INFINITY;
                }
                while high - low > 1e-10 {
                    let middle = 0.5 * (low + high);
                    if above(middle) { low = middle } else { high = middle }
                }
                low
            }
            _ => {
                let statistic = match self {
                    Self::Gaussian => Statistic::GaussianMu,
                    _ => Statistic::Advantage,
                };
                let errors = Errors {
                    false_positives: outcome.zeros,
                    nonmembers: outcome.n0,
                    false_negatives: outcome.n1 - outcome.ones,
                    members: outcome.n1,
                };
                statistic.value(&RateBounds::wilson(&errors, z / std::f64::consts::SQRT_2))
            }
        }
    }

    /// Whether an outcome belongs to S of an outcome with this L, generously.
    fn at_least(self, outcome: &Outcome, order: f64, z: f64) -> bool {
        match self {
            Self::Line { delta } => outcome.root(order, delta) >= z - 1e-7,
            _ => self.order(outcome, z) >= order * (1.0 - 1e-9),
        }
    }
}

impl Outcome {
    /// The largest v with P(v) <= level, from below, if it exceeds `known`; else 0.
    fn lower_bound(&self, limit: Limit, level: f64, known: f64) -> f64 {
        if self.zeros == 0 && self.ones == self.n1 {
            return extreme::lower_bound(self, limit, level);
        }
        let order = limit.order(self, ORDER);
        if order == f64::NEG_INFINITY {
            return 0.0;
        }
        if !matches!(limit, Limit::Line { .. }) && order <= 0.0 {
            return 0.0;
        }
        self.test(limit, level, order).largest(known, order)
    }

    fn test(&self, limit: Limit, level: f64, order: f64) -> Test {
        let outside = OUTSIDE * level;
        let range = (
            clopper_pearson_lower(self.zeros, self.n0, 0.5 * outside),
            clopper_pearson_upper(self.zeros, self.n0, 0.5 * outside),
        );
        let set = self.set(limit, order, range);
        Test { limit, n0: self.n0, n1: self.n1, set, range, level: level - outside }
    }

    /// S as blocks of first counts, each with the smallest second count that belongs to it.
    fn set(&self, limit: Limit, order: f64, (low, high): (f64, f64)) -> Vec<Block> {
        let n = self.n0 as f64;
        let spread = |p: f64| (n * p * (1.0 - p)).sqrt();
        let first = (n * low - 9.0 * spread(low) - 20.0).floor().max(0.0) as u64;
        let last = ((n * high + 9.0 * spread(high) + 40.0).ceil() as u64).min(self.n0);
        let belongs =
            |zeros: u64, ones: u64| limit.at_least(&Outcome { zeros, ones, ..*self }, order, ORDER);
        // The smallest count that belongs, searched from a guess outwards.
        let least = |zeros: u64, guess: u64| -> u64 {
            let (mut out, mut inside, mut step) = (None, None, 1_u64);
            let mut at = guess.min(self.n1);
            loop {
                if belongs(zeros, at) {
                    inside = Some(at);
                    if at == 0 || out.is_some() {
                        break;
                    }
                    at = at.saturating_sub(step);
                } else {
                    out = Some(at);
                    if at == self.n1 || inside.is_some() {
                        break;
                    }
                    at = (at + step).min(self.n1);
                }
                step *= 2;
            }
            let Some(mut inside) = inside else { return self.n1 + 1 };
            let Some(mut out) = out else { return inside };
            while inside - out > 1 {
                let middle = out + (inside - out) / 2;
                if belongs(zeros, middle) { inside = middle } else { out = middle }
            }
            inside
        };
        let mut blocks = Vec::new();
        // Everything below the first count, which is next to impossible, belongs to S.
        if first > 0 {
            blocks.push(Block { last: first - 1, least: 0 });
        }
        let (mut zeros, mut guess) = (first, self.ones);
        let mut here = least(zeros, guess);
        loop {
            let width =
                (spread((zeros as f64 / n).max(1.0 / n).min(1.0 - 0.5 / n)) / 12.0).max(1.0);
            let end = (zeros + width as u64 - 1).min(last);
            let next = if end == zeros { here } else { least(end, here) };
            blocks.push(Block { last: end, least: here.min(next) });
            if end == last {
                break;
            }
            zeros = end + 1;
            guess = next + (next.saturating_sub(here)).max(u64::from(end == blocks.len() as u64));
            here = least(zeros, guess.min(self.n1));
        }
        blocks
    }

    /// The signed root of the likelihood ratio of p1 = e^v p0 + delta against no restriction.
    fn root(&self, value: f64, delta: f64) -> f64 {
        let (x0, n0, x1, n1) =
            (self.zeros as f64, self.n0 as f64, self.ones as f64, self.n1 as f64);
        let growth = value.exp();
        let most = ((1.0 - delta) / growth).min(1.0);
        // The score falls in p.
        let score = |p: f64| {
            let b = growth * p + delta;
            let part = |x: f64, rate: f64| if x > 0.0 { x / rate } else { 0.0 };
            part(x0, p) - part(n0 - x0, 1.0 - p)
                + growth * (part(x1, b) - part(n1 - x1, (1.0 - b).max(1e-300)))
        };
        let (mut low, mut high) = (0.0, most);
        // Between the two observed rates, when both are inside.
        let other = (x1 / n1 - delta) / growth;
        let (a, c) = ((x0 / n0).min(other), (x0 / n0).max(other));
        if a > low && score(a) >= 0.0 {
            low = a;
        }
        if c < high && score(c) <= 0.0 {
            high = c;
        }
        for _ in 0..60 {
            if high - low <= 1e-13 * high {
                break;
            }
            let middle = 0.5 * (low + high);
            if score(middle) > 0.0 { low = middle } else { high = middle }
        }
        let p = (0.5 * (low + high)).clamp(1e-300, most);
        let b = (growth * p + delta).min(1.0);
        let term =
            |x: f64, n: f64, rate: f64| if x > 0.0 { x * (x / (n * rate)).ln() } else { 0.0 };
        let deviance = term(x0, n0, p)
            + term(n0 - x0, n0, (1.0 - p).max(1e-300))
            + term(x1, n1, b.max(1e-300))
            + term(n1 - x1, n1, (1.0 - b).max(1e-300));
        let size = (2.0 * deviance.max(0.0)).sqrt();
        if x1 / n1 > growth * x0 / n0 + delta { size } else { -size }
    }
}

/// First counts up to `last` (from the end of the block before), with second counts from `least`.
#[derive(Clone, Copy, Debug)]
struct Block {
    last: u64,
    least: u64,
}

struct Test {
    limit: Limit,
    n0: u64,
    n1: u64,
    set: Vec<Block>,
    range: (f64, f64),
    level: f64,
}

/// The two laws at one p: probabilities of the blocks, and of reaching their second counts.
struct Laws {
    p: f64,
    blocks: Vec<f64>,
    reached: Vec<f64>,
}

impl Test {
    /// Values of p at which the root is looked for, with the law of X0 there; what lies between is
    /// certified afterwards.
    fn looks(&self, looks: usize) -> Vec<(f64, Vec<f64>)> {
        let (low, high) = self.range;
        let place = |share: f64| {
            let angle = |p: f64| p.sqrt().asin();
            (angle(low) + share * (angle(high) - angle(low))).sin().powi(2)
        };
        (0..=looks)
            .map(|look| {
                let p = place(look as f64 / looks as f64);
                (p, self.blocks(p))
            })
            .collect()
    }

    fn worst(&self, looks: &[(f64, Vec<f64>)], value: f64) -> f64 {
        let at =
            |(p, blocks): &(f64, Vec<f64>)| dot(blocks, &self.reached(self.limit.at(value, *p)));
        looks.iter().map(at).fold(0.0, f64::max)
    }

    fn worst_at(&self, value: f64) -> f64 {
        self.worst(&self.looks(8), value)
    }

    /// The largest multiple of the step that is refuted, if it exceeds `known`; else 0.
    fn largest(&self, known: f64, order: f64) -> f64 {
        let looks = self.looks(25);
        let worst = |value: f64| self.worst(&looks, value);
        let known = known.max(0.0);
        if worst(known) > self.level {
            return 0.0;
        }
        let (mut shown, mut beyond, mut step) = (known, order.max(known) + 0.05, 0.05);
        while worst(beyond) <= self.level {
            shown = beyond;
            step *= 2.0;
            beyond += step;
            if beyond > 60.0 {
                break;
            }
        }
        while beyond - shown > 0.5 * STEP {
            let middle = 0.5 * (shown + beyond);
            if worst(middle) <= self.level { shown = middle } else { beyond = middle }
        }
        // The looks leave out what lies between them, so the bound is here or a little below.
        let least = (known / STEP).floor() as u64;
        let mut open = (beyond / STEP).ceil() as u64;
        let (mut refuted, mut less) = (open, 1);
        loop {
            refuted = refuted.saturating_sub(less);
            if refuted <= least {
                return 0.0;
            }
            if self.holds(refuted as f64 * STEP) {
                break;
            }
            open = refuted;
            less *= 2;
        }
        while open - refuted > 1 {
            let middle = refuted + (open - refuted) / 2;
            if self.holds(middle as f64 * STEP) { refuted = middle } else { open = middle }
        }
        refuted as f64 * STEP
    }

    /// Whether P(S) is at most the level for every p of the range.
    fn holds(&self, value: f64) -> bool {
        let laws = |p: f64| Laws {
            p,
            blocks: self.blocks(p),
            reached: self.reached(self.limit.at(value, p)),
        };
        let (first, last) = (laws(self.range.0), laws(self.range.1));
        if dot(&last.blocks, &last.reached) > self.level {
            return false;
        }
        let mut pieces = vec![(first, last, 0)];
        while let Some((a, c, depth)) = pieces.pop() {
            if dot(&a.blocks, &c.reached) <= self.level {
                continue;
            }
            if depth > 14 || dot(&a.blocks, &a.reached) > self.level {
                return false;
            }
            let middle = laws(0.5 * (a.p + c.p));
            let again = Laws {
                p: middle.p,
                blocks: middle.blocks.clone(),
                reached: middle.reached.clone(),
            };
            pieces.push((a, middle, depth + 1));
            pieces.push((again, c, depth + 1));
        }
        true
    }

    /// P(X0 in each block).
    fn blocks(&self, p: f64) -> Vec<f64> {
        let law = Law::new(self.n0, p);
        let mut before = 0.0;
        let mut blocks: Vec<f64> = self
            .set
            .iter()
            .map(|block| {
                let up_to = law.up_to(block.last);
                let mass = (up_to - before).max(0.0);
                before = up_to;
                mass
            })
            .collect();
        if let Some(last) = blocks.last_mut() {
            *last += 1e-13;
        }
        blocks
    }

    /// P(X1 >= least of each block).
    fn reached(&self, rate: f64) -> Vec<f64> {
        let law = Law::new(self.n1, rate);
        self.set
            .iter()
            .map(|block| match block.least {
                0 => 1.0,
                least if least > self.n1 => 0.0,
                least => law.from(least) + 1e-14,
            })
            .collect()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use numerics::beta::binomial_log_pmf;

    /// The p-value at the bound, by plain sums over all outcomes and a fine grid of p.
    #[test]
    fn the_bound_is_where_the_largest_tail_reaches_the_level() {
        let level = 0.025;
        for (zeros, ones, n0, n1, delta) in [
            (3, 20, 40, 30, 0.0),
            (0, 15, 25, 25, 0.0),
            (10, 35, 50, 50, 0.02),
            (1, 60, 60, 60, 1e-3),
        ] {
            let outcome = Outcome { zeros, n0, ones, n1 };
            let limit = Limit::Line { delta };
            let bound = outcome.lower_bound(limit, level, 0.0);
            let order = limit.order(&outcome, ORDER);
            let mut set = Vec::new();
            for x0 in 0..=n0 {
                for x1 in 0..=n1 {
                    if limit.at_least(&Outcome { zeros: x0, ones: x1, n0, n1 }, order, ORDER) {
                        set.push((x0, x1));
                    }
                }
            }
            let largest = |value: f64| {
                (0..=300)
                    .map(|step| {
                        let p = f64::from(step) / 300.0;
                        let b = limit.at(value, p);
                        let masses = |n: u64, rate: f64| -> Vec<f64> {
                            (0..=n).map(|x| binomial_log_pmf(x, n, rate).exp()).collect()
                        };
                        let (first, second) = (masses(n0, p), masses(n1, b));
                        set.iter().map(|&(x0, x1)| first[x0 as usize] * second[x1 as usize]).sum()
                    })
                    .fold(0.0, f64::max)
            };
            // Without the interval for p0 the largest tail can only be larger.
            assert!(bound > 0.0 && largest(bound) >= 0.97 * level, "{bound} {}", largest(bound));
            assert!(largest(0.9 * bound) <= level, "{bound}: {}", largest(0.9 * bound));
        }
    }
}
