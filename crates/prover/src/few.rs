//! Few steps with an atom: closed forms for runs of one step beside it at most, and lines for the others
//! ([`crate::contour::plan_of_more`]).

use crate::arithmetic::Ball;
use crate::contour::{Composition, FewPlan, Zone, has_atoms, masses, plan_of_more};
use crate::model::Model;
use crate::obstacle::{Obstacle, spend};
use crate::pairs::Part;
use crate::shelf::Shelf;

/// Rotations below which no other zone is looked at.
const CHEAP: f64 = 1e7;

pub(crate) struct Few<const N: usize> {
    /// The probability that all steps are at the atom.
    none: Ball<N>,
    /// For each law the factor of its one step beside the atom.
    factors: Vec<Ball<N>>,
    /// Lines of runs with more.
    pub(crate) shelf: Shelf<N>,
}

impl<const N: usize> Few<N> {
    /// None where such runs are none, or where single steps have no closed form.
    pub(crate) fn new(composition: &Composition<N>, steps: &[Model<N>]) -> Option<Self> {
        if !has_atoms(composition) || steps.len() != composition.laws.len() {
            return None;
        }
        let (all, factors) = masses(composition);
        Some(Self { none: all.none, factors, shelf: Shelf::of_mass(all.more) })
    }

    /// The mean over runs of one step beside the atom at most. A single step has the mean a f(0) + (that of C).
    pub(crate) fn closed(
        &self,
        composition: &Composition<N>,
        steps: &[Model<N>],
        t: Ball<N>,
        part: Part,
    ) -> Result<Ball<N>, Obstacle> {
        let level = t.exponential();
        let at_atom = match part {
            Part::Above => (-t.exponential_minus_one()).maximum(Ball::ZERO),
            Part::Least => level.minimum(Ball::one()),
            Part::Below => t.exponential_minus_one().maximum(Ball::ZERO),
        };
        let mut sum = self.none * at_atom;
        for ((law, step), factor) in composition.laws.iter().zip(steps).zip(&self.factors) {
            if factor.mid.is_zero() && factor.radius.is_zero() {
                continue;
            }
            let beside = step.mean(t, part, 0.0, 0.0)? - law.atom * at_atom;
            sum = sum + *factor * beside;
        }
        Ok(sum)
    }

    /// The cheapest plan of the three zones.
    pub(crate) fn plan(
        &self,
        composition: &Composition<N>,
        (t, part): (f64, Part),
        wanted: f64,
    ) -> Result<Option<FewPlan<N>>, Obstacle> {
        let zones = match part {
            Part::Above => [Zone::Above, Zone::Between, Zone::Below],
            Part::Least => [Zone::Between, Zone::Above, Zone::Below],
            Part::Below => [Zone::Below, Zone::Between, Zone::Above],
        };
        let mut best: Option<FewPlan<N>> = None;
        for zone in zones {
            spend(30.0)?;
            if let Some(found) = plan_of_more(composition, zone, t, wanted)
                && best.as_ref().is_none_or(|best| found.plan.work < best.plan.work)
            {
                best = Some(found);
            }
            if best.as_ref().is_some_and(|best| best.plan.work < CHEAP) {
                break;
            }
        }
        Ok(best)
    }
}

#[cfg(test)]
mod tests {
    use crate::arithmetic::Ball;
    use crate::model::{Model, gaussian};
    use crate::pairs::Part;
    use vocabulary::{Adjacency, Drawing, LensName, Run, Sampling};

    fn model(run: &Run) -> Model<2> {
        Model::new(run, run.phases(), Some(LensName::Composition), 100).unwrap()
    }

    /// E(W_1 ... W_T - e^t)_+ by the first step: with g what the others have, it is a g(t) + sum of e^L g(t - L) over the other
    /// outcomes, here by Simpson's rule over x in doubles.
    fn by_the_first_step(noise: f64, q: f64, t: f64, others: impl Fn(f64) -> f64) -> f64 {
        let s = 0.5 * noise;
        let density = |x: f64| (-0.5 * (x / s).powi(2)).exp() / (s * std::f64::consts::TAU.sqrt());
        let loss = |x: f64| (1.0 - q + q * ((2.0 * x - 1.0) / (2.0 * s * s)).exp()).ln();
        // The outcome with loss L, and its mirror image with -L, whose probability under Q is e^L times as large.
        let value = |x: f64| {
            let l = loss(x);
            density(x) * (l.exp() * others(t - l) + others(t + l))
        };
        let simpson = |from: f64, to: f64| {
            let n = 600;
            let h = (to - from) / f64::from(n);
            let weight = |i: i32| match i {
                0 => 1.0,
                i if i == n => 1.0,
                i => 2.0 + 2.0 * f64::from(i % 2),
            };
            (0..=n).map(|i| weight(i) * value(from + f64::from(i) * h)).sum::<f64>() * h / 3.0
        };
        // g has a corner at 0, where the others are all at the atom.
        let (from, to) = (0.5, 0.5 + 9.0 * s);
        let corner = (from + s * s * (t.exp_m1() / q).ln_1p()).min(to);
        let sum = simpson(from, corner) + simpson(corner, to);
        let inside = gaussian(Ball::<2>::from_f64(1.0 / s), Ball::ZERO, Part::Above).to_f64();
        (1.0 - q) * inside * others(t) + sum
    }

    #[test]
    fn two_steps() {
        let model = |noise: f64, steps: u64| {
            let run = Run::builder().sampling(Sampling::FixedSize).dataset_size(1000);
            let run = run.adjacency(Adjacency::Substitute).phase(noise, 0.02, steps);
            model(&run.build().unwrap())
        };
        let mut lines = 0;
        for noise in [9.0, 3.0] {
            let (one, both) = (model(noise, 1), model(noise, 2));
            for t in [0.0, 0.004, 0.03, 0.3] {
                let mean = |t: f64| {
                    one.mean(Ball::from_f64(t), Part::Above, -30.0, 12.0).unwrap().to_f64()
                };
                let expected = by_the_first_step(noise, 0.02, t, mean);
                let at = Ball::from_f64(t);
                for part in [Part::Above, Part::Least, Part::Below] {
                    // Undecided is an answer: what is counted below says that most are not.
                    let Ok(found) = both.mean(at, part, expected.ln(), 30.0) else { continue };
                    let above = match part {
                        Part::Above => found,
                        Part::Least => Ball::one() - found,
                        Part::Below => found - at.exponential_minus_one(),
                    };
                    let off = above.to_f64() - expected;
                    assert!(
                        off.abs() < 1e-6 * expected + 1e-11,
                        "{noise} {t}: {off:e} of {expected:e}"
                    );
                    lines += usize::from(both.path().contains("beside the atom"));
                }
            }
        }
        assert!(lines > 8, "{lines} by runs of few steps beside the atom");
    }

    /// A batch that is hardly ever cut: nothing is known of it.
    #[test]
    fn a_batch_that_is_never_cut() {
        let drawing = Drawing { max_batch_size: Some(900), ..Drawing::default() };
        let cut = Run::builder().sampling(Sampling::TruncatedPoisson).dataset_size(1000);
        let cut = cut.drawing(drawing).phase(7.7, 0.3, 1).build().unwrap();
        let coins = Run::builder().phase(7.7, 0.3, 1).build().unwrap();
        let t = Ball::from_f64(0.3);
        for part in [Part::Above, Part::Least, Part::Below] {
            let [one, two] = [&cut, &coins].map(|run| model(run).mean(t, part, 0.0, 0.0).unwrap());
            let gap = one - two;
            assert!(!gap.is_positive() && !gap.is_negative() && gap.to_f64().abs() < 1e-25);
        }
    }
}
