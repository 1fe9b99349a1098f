//! Runs with at least one high outcome, whose loss lies above the threshold whatever the other steps do. For them (e^Y - e^t)_+ is
//! e^Y - e^t but for a remainder:
//!
//! ```text
//! E[(e^Y - e^t)_+ ; some high] = G(1) - e^t G(0) + E[(e^t - e^Y)_+ ; some high],
//! G(s) = product of M^T - product of (M - H)^T,   M(0) = M(1) = 1,
//! ```
//!
//! H the transform of high outcomes. So no line has to go where far jumps make M explode. The remainder needs steps with large negative losses,
//! which only replaced records have. Such an outcome is called deep with the probability that the mirror image of the lower edge gives, whatever
//! else it is called; with N the mass of deep outcomes, the remainder is at most
//!
//! ```text
//! e^t (sum of T H(0) * sum of T N(0) + sum of T v (H(0) + N(0)))
//!     + e^((1-c)t) sum of T H'(c)/M'(c) * product of M'(c)^T   for every c <= 0,
//! ```
//!
//! M' and H' those of outcomes that are not deep: either one step is high and another one deep, or one is both, or none is deep; and (e^t - e^y)_+ is at
//! most e^t and at most e^(cy + (1-c)t). v is the lower edge's mask at x = 0: where x >= 0 an outcome is deep, and
//! where x <= 0 it is high, with no more than this probability. Half-lines and their mirror images are apart, so none is both.

use super::Composition;
use super::law::{Cut, Law};
use super::masked::{and, nearer, power_minus_one};
use super::plan::short;
use super::rough_law::RoughLaw;
use crate::arithmetic::{Ball, Complex, Magnitude};

/// The laws that are needed, for each phase.
pub(super) struct Jumps<const N: usize> {
    pub(super) cut: Cut,
    high: Vec<Law<N>>,
    calm: Vec<Law<N>>,
    calm_high: Vec<Law<N>>,
    deep: Vec<Law<N>>,
    roughs: [Vec<RoughLaw>; 4],
    /// v.
    both: Vec<Ball<N>>,
    /// c.
    tilt: f64,
}

/// What high outcomes add, for every threshold.
pub(super) struct Jumped<const N: usize> {
    /// G(1) and G(0).
    sums: [Ball<N>; 2],
    /// The factor of e^t in the remainder.
    pairs: Ball<N>,
    /// c, and the factor of e^((1-c)t).
    calm: (Ball<N>, Ball<N>),
}

impl<const N: usize> Jumped<N> {
    pub(super) fn remainder(&self, t: Ball<N>) -> Magnitude {
        let (tilt, factor) = self.calm;
        let calm = factor * ((Ball::one() - tilt) * t).exponential();
        (self.pairs * t.exponential() + calm).above()
    }

    pub(super) fn at(&self, t: Ball<N>) -> Ball<N> {
        let [one, zero] = self.sums;
        one - t.exponential() * zero + Ball::up_to(self.remainder(t))
    }
}

impl<const N: usize> Jumps<N> {
    fn new(composition: &Composition<N>, low: Cut, high: Cut) -> Self {
        let all = |part: &dyn Fn(&Law<N>) -> Law<N>| -> Vec<Law<N>> {
            composition.laws.iter().map(part).collect()
        };
        let laws = [
            all(&|law| law.high(low, high)),
            all(&|law| law.calm(low)),
            all(&|law| law.calm_high(low, high)),
            all(&|law| law.deep(low)),
        ];
        let roughs = [0, 1, 2, 3].map(|i: usize| laws[i].iter().map(RoughLaw::new).collect());
        let both = composition.laws.iter().map(|law| law.both(low)).collect();
        let [high_laws, calm, calm_high, deep] = laws;
        Self { cut: high, high: high_laws, calm, calm_high, deep, roughs, both, tilt: -1.0 }
    }

    /// ln of the last term of the remainder at this tilt, in doubles.
    fn log_calm(&self, tilt: f64, t: f64) -> f64 {
        let (mut whole, mut part) = (0.0, 0.0);
        for (calm, high) in self.roughs[1].iter().zip(&self.roughs[2]) {
            let moment = calm.log_moment(tilt);
            whole += calm.times * moment;
            part += calm.times * (high.log_moment(tilt) - moment).exp();
        }
        whole + part.ln() + (1.0 - tilt) * t
    }

    /// ln of the first two terms, in doubles.
    fn log_pairs(&self, t: f64) -> f64 {
        let mass = |laws: &[RoughLaw], tilt: f64| -> f64 {
            let one = |law: &RoughLaw| law.times * law.log_moment(tilt).exp();
            laws.iter().map(one).sum()
        };
        let (high, deep) = (mass(&self.roughs[0], 0.0), mass(&self.roughs[3], 1.0));
        let both = self.both.iter().map(Ball::to_f64).fold(0.0, f64::max);
        (high * deep + both * (high + deep)).ln() + t
    }

    /// The tilt at which the last term is about least, and that term's ln.
    fn steepest(&self, (t, gap): (f64, f64), log_error: f64) -> (f64, f64) {
        let value = |v: f64| self.log_calm(short(-v.exp()), t);
        let near = nearer(t, gap);
        let (mut low, mut high) = (-1.0, ((200.0 - log_error).max(200.0) / near).ln() + 1.0);
        for _ in 0..16 {
            let third = (high - low) / 3.0;
            let (one, two) = (low + third, high - third);
            // Where it is no number, it is too far out.
            if value(one) > value(two) { low = one } else { high = two }
        }
        let tilt = short(-low.exp());
        (tilt, self.log_calm(tilt, t))
    }

    /// The lowest edge above which the remainder is below e^log_error. `gap` is how far the threshold t lies above the
    /// loss of all near-atoms.
    pub(super) fn choose(
        composition: &Composition<N>,
        low: Cut,
        (t, gap): (f64, f64),
        log_error: f64,
    ) -> Option<Self> {
        let level = gap.min(600.0).exp_m1().ln();
        let at = |log_eta: f64| {
            let cut = Cut { eta: log_eta.exp(), ..low };
            let mut jumps = Self::new(composition, low, cut);
            if !(jumps.log_pairs(t) < log_error - 2.0) {
                return None;
            }
            let (tilt, log) = jumps.steepest((t, gap), log_error);
            jumps.tilt = tilt;
            (log < log_error - 2.0).then_some(jumps)
        };
        let (mut low_end, mut high_end) = (nearer(t, gap).min(600.0).exp_m1().ln(), level + 5.0);
        let mut best = at(high_end)?;
        while high_end - low_end > 0.1 {
            let middle = 0.5 * (low_end + high_end);
            match at(middle) {
                Some(found) => (high_end, best) = (middle, found),
                None => low_end = middle,
            }
        }
        Some(best)
    }

    /// What high outcomes add, to about e^log_error.
    pub(super) fn enclosed(
        &self,
        composition: &Composition<N>,
        log_error: f64,
    ) -> Option<Jumped<N>> {
        let sum = |tilt: f64| -> Option<Ball<N>> {
            let mut more = Complex::ZERO;
            for ((law, rough), whole) in
                self.high.iter().zip(&self.roughs[0]).zip(&composition.laws)
            {
                let log = rough.log_moment(tilt) + rough.times.ln();
                let bits = ((log - log_error) / std::f64::consts::LN_2 + 12.0).max(12.0);
                let value = law.real(rough, tilt, bits)?.widened(law.before(whole, tilt, bits));
                more = and(more, power_minus_one(Complex::new(-value, Ball::ZERO), law.times));
            }
            Some(-more.re)
        };
        let mass = |laws: &[Law<N>], roughs: &[RoughLaw], tilt: f64| -> Option<Ball<N>> {
            let mut sum = Ball::ZERO;
            for (law, rough) in laws.iter().zip(roughs) {
                sum = sum + law.real(rough, tilt, 12.0)?.upper().times_u64(law.times);
            }
            Some(sum)
        };
        let high = mass(&self.high, &self.roughs[0], 0.0)?;
        let deep = mass(&self.deep, &self.roughs[3], 1.0)?;
        let both = self.both.iter().fold(Ball::ZERO, |most, one| most.maximum(*one));
        let (mut product, mut part) = (Ball::one(), Ball::ZERO);
        let laws = self.calm.iter().zip(&self.roughs[1]);
        for ((calm, rough), (more, more_rough)) in
            laws.zip(self.calm_high.iter().zip(&self.roughs[2]))
        {
            let moment = calm.real(rough, self.tilt, 12.0 + rough.times.log2())?;
            let here = more.real(more_rough, self.tilt, 12.0)?;
            product = product * moment.power(calm.times);
            part = part + here.over(moment).upper().times_u64(calm.times);
        }
        let pairs = high * deep + both * (high + deep);
        let calm = (Ball::from_f64(self.tilt), (product * part).upper());
        Some(Jumped { sums: [sum(1.0)?, sum(0.0)?], pairs: pairs.upper(), calm })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contour::folded;
    use crate::pairs::Step;

    /// Low, middle and high outcomes together are all of them, and what is not deep with what is deep at least all.
    #[test]
    fn parts_of_a_law() {
        let rate = |q: f64| [Ball::<3>::one() - Ball::from_f64(q), Ball::from_f64(q)];
        let plain = |noise: f64, q: f64, substitute: bool| {
            Law::plain(Step::new(Ball::from_f64(noise), &rate(q), substitute, 7))
        };
        let half = |noise: f64, q: f64| {
            let (atom, strands) = folded(Ball::<3>::from_f64(noise), &[Ball::from_f64(q)]);
            Law { times: 7, atom, strands }
        };
        let laws =
            [plain(0.7, 1e-4, false), plain(1.4, 3e-3, true), half(0.8, 2e-4), half(2.0, 1e-3)];
        for law in &laws {
            let real = |law: &Law<3>, tilt: f64| {
                law.real(&RoughLaw::new(law), tilt, 60.0).expect("a choice of points")
            };
            for (sharpness, power) in [(1, 16), (4, 16), (8, 8)] {
                let low = Cut { eta: 0.05, sharpness, power };
                let high = Cut { eta: 0.3, ..low };
                for tilt in [-3.0, 0.0, 1.0, 4.0] {
                    let before = law.high(low, high).before(law, tilt, 60.0);
                    let before = before.plus(law.middle(low, Some(high)).before(law, tilt, 60.0));
                    let sum = real(&law.low(low), tilt)
                        + real(&law.middle(low, Some(high)), tilt)
                        + real(&law.high(low, high), tilt);
                    let gap = sum.widened(before) - real(law, tilt);
                    assert!(
                        !gap.is_positive() && !gap.is_negative(),
                        "{sharpness} {tilt}: {gap:?}"
                    );
                    assert!(gap.radius < Magnitude::power_of_two(-40), "{sharpness} {tilt}");
                }
                let all = real(&law.calm(low), 0.0) + real(&law.deep(low), 1.0);
                assert!(!all.is_below(&Ball::one()), "{sharpness}: {all:?}");
            }
        }
    }
}
