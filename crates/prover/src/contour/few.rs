//! Few steps with an atom at loss 0: batches of a fixed size, and truncated ones, of a replaced record. The transform a + C(s) of
//! such a step does not fall along a line, a being the atom's probability. But runs are known by how many of their steps lie beside
//! the atom: of
//!
//! ```text
//! product of (a + C)^T = none + one + more,   none = product of a^T,   one = sum of T C a^(T-1) * product of the other a^T,
//! ```
//!
//! the first two are closed forms, those of one step at most. What is left is the transform of a measure that is not negative,
//! a polynomial in the C whose coefficients are not negative either and whose terms have two factors C at least. So aliases are bounded
//! as before, by its values at other tilts c' (each mean of a zone is at most more(c') e^((1-c')t), as it is for the whole); and
//! nodes left out by the same polynomial of bounds on the |C|, which fall at least like 1/u: for half-lines with their mirror images
//! like 1/u^2 ([`super::half`]). Nothing is subtracted, so `more` has its digits however rare two such steps are.
//!
//! Outcomes far out weigh nothing and make the transform explode at tilts that small losses ask for. So they are left out: beyond
//! +-X, and the mirror images of what lies beyond X, and whole strands that are rare enough. Of one step with k records that is at most
//! 2 (Q(X) + Q(X-k)) of the mass of a strand under P as under Q, Q the tail of the noise: N(0, s^2) has 2 Q(X) of it beyond +-X, and
//! every N(j, s^2) and N(-j, s^2), j <= k, at most Q(X-k) + Q(X). Over all steps these masses add up to a bound on what the runs that
//! are left out have of each mean: it is at most their mass under P ((e^Y - e^t)_+ and min(e^Y, e^t) are at most e^Y), or e^t times that
//! under Q ((e^t - e^Y)_+ is at most e^t).
//!
//! Its masses at s = 0 and s = 1 are the same, since C is 1 - a at both: the three means of [`super`] differ by that mass and
//! by that mass times e^t.

use super::Composition;
use super::law::{Law, Strand};
use super::line::{Line, Site};
use super::plan::{Endless, Plan, Search, Zone, short};
use super::rough_law::{Angles, RoughLaw};
use crate::arithmetic::{Ball, Complex, Magnitude, normal_tail};
use std::ops::{Add, Mul};

/// Runs with no step beside the atom, with one, and with more.
#[derive(Clone, Copy)]
pub struct Counted<X> {
    pub none: X,
    pub one: X,
    pub more: X,
}

impl<X: Copy + Add<Output = X> + Mul<Output = X>> Counted<X> {
    /// One step of a transform a + c.
    fn step(a: X, c: X, zero: X) -> Self {
        Self { none: a, one: c, more: zero }
    }

    /// Both of two independent runs.
    fn and(self, other: Self) -> Self {
        let beside = other.one + other.more;
        Self {
            none: self.none * other.none,
            one: self.one * other.none + self.none * other.one,
            more: self.more * (other.none + beside) + self.none * other.more + self.one * beside,
        }
    }

    /// `times` runs, at least one.
    fn power(self, mut times: u64) -> Self {
        let (mut result, mut base): (Option<Self>, Self) = (None, self);
        loop {
            if times & 1 == 1 {
                result = Some(result.map_or(base, |known| known.and(base)));
            }
            times >>= 1;
            match result {
                Some(result) if times == 0 => return result,
                _ => base = base.and(base),
            }
        }
    }
}

/// Whether runs of one step beside the atom at most are some of all.
pub fn has_atoms<const N: usize>(composition: &Composition<N>) -> bool {
    let laws = &composition.laws;
    let plain = laws.iter().filter(|law| law.atom.mid.is_zero());
    let without: u64 = plain.map(|law| law.times).fold(0, u64::saturating_add);
    let steps = laws.iter().map(|law| law.times).fold(0, u64::saturating_add);
    let single = laws.iter().flat_map(|law| &law.strands).all(|strand| strand.step.records == 1);
    composition.gaussian.mid.is_zero() && without <= 1 && without < steps && steps > 1 && single
}

/// What becomes of C = 1 - a at s = 0 and s = 1; of `one`, the factors of each law's own C.
pub fn masses<const N: usize>(composition: &Composition<N>) -> (Counted<Ball<N>>, Vec<Ball<N>>) {
    let laws = &composition.laws;
    let counted = |beside: &dyn Fn(usize) -> Ball<N>| {
        let each = laws.iter().enumerate().map(|(index, law)| {
            Counted::step(law.atom, beside(index), Ball::ZERO).power(law.times)
        });
        each.reduce(Counted::and).unwrap_or(Counted::step(Ball::one(), Ball::ZERO, Ball::ZERO))
    };
    let all = counted(&|index| Ball::one() - laws[index].atom);
    let factor = |own: usize| {
        let only = |index: usize| if index == own { Ball::one() } else { Ball::ZERO };
        counted(&only).one
    };
    (all, (0..laws.len()).map(factor).collect())
}

/// The steps without what lies far out, and at least the mass of what is left out, chosen to be below e^log_error.
fn clipped<const N: usize>(
    composition: &Composition<N>,
    log_error: f64,
) -> (Composition<N>, Ball<N>) {
    let count = composition.laws.iter().map(|law| law.strands.len()).sum::<usize>() as f64;
    let mut lost = Ball::ZERO;
    let mut clip = |strand: &Strand<N>, times: u64| -> Option<Strand<N>> {
        let step = &strand.step;
        let all = strand.weight.times_u64(times);
        // ln of the part of the strand that may be lost.
        let allowed = log_error - (16.0 * count * all.to_f64()).ln();
        if std::f64::consts::LN_2 <= allowed {
            lost = lost + all.scaled(1);
            return None;
        }
        // 2 (Q(X) + Q(X-k)) <= 4 Q(X-k) <= 2 e^(-y^2/2).
        let y = (2.0 * (std::f64::consts::LN_2 - allowed)).sqrt();
        let reach = step.records as f64 + step.scale * y.max(1.0);
        let tail = |x: Ball<N>| normal_tail(x.over(step.deviation()));
        let (far, near) = (Ball::from_f64(reach), Ball::from_u64(step.records));
        lost = lost + (all * (tail(far) + tail(far - near))).scaled(1);
        let step = step.clipped(reach);
        Some(Strand { weight: strand.weight, step, half: strand.half, mirror: None })
    };
    let mut laws = Vec::new();
    for law in &composition.laws {
        let strands = law.strands.iter().filter_map(|strand| clip(strand, law.times)).collect();
        laws.push(Law { times: law.times, atom: law.atom, strands });
    }
    (Composition { laws, gaussian: Ball::ZERO, lost: Magnitude::ZERO }, lost.upper())
}

/// ln of `more` where each C is `beside` of its law, in doubles.
fn log_more(roughs: &[RoughLaw], c: f64, beside: impl Fn(usize) -> f64) -> f64 {
    let (mut log, mut product): (f64, Option<Counted<f64>>) = (0.0, None);
    for (index, rough) in roughs.iter().enumerate() {
        // Relative to the largest: what is raised to a power is no more than 1 then.
        let size = rough.atom() + rough.moment_beside(c).max(beside(index));
        log += rough.times * size.ln();
        let one = Counted::step(rough.atom() / size, beside(index) / size, 0.0);
        let all = one.power(rough.times as u64);
        product = Some(product.map_or(all, |known| known.and(all)));
    }
    log + product.map_or(0.0, |product| product.more).ln()
}

/// A plan for what is left, for steps without what lies far out.
pub struct FewPlan<const N: usize> {
    pub plan: Plan,
    composition: Composition<N>,
    roughs: Vec<RoughLaw>,
    lost: Ball<N>,
}

/// A plan in one zone whose error is about e^log_error; None where none is affordable.
pub fn plan<const N: usize>(
    composition: &Composition<N>,
    zone: Zone,
    threshold: f64,
    log_error: f64,
) -> Option<FewPlan<N>> {
    let room = if zone == Zone::Below { threshold.max(0.0) } else { 0.0 };
    let (composition, lost) = clipped(composition, log_error - room);
    let roughs: Vec<RoughLaw> = composition.laws.iter().map(RoughLaw::new).collect();
    let plan = plan_of(&composition, &roughs, zone, threshold, log_error)?;
    Some(FewPlan { plan, composition, roughs, lost })
}

fn plan_of<const N: usize>(
    composition: &Composition<N>,
    roughs: &[RoughLaw],
    zone: Zone,
    threshold: f64,
    log_error: f64,
) -> Option<Plan> {
    let other = |c: f64| log_more(roughs, c, |index| roughs[index].moment_beside(c));
    let search = Search { roughs, gaussian: 0.0, threshold, other: Some(&other) };
    let steepest = Plan::line(&search, zone, log_error)?;
    let mut best: Option<(f64, Endless, f64, Vec<Angles>)> = None;
    // Far jumps make the transform explode just beyond the saddle: a line at some distance has fewer nodes.
    let pole = if zone == Zone::Above { 1.0 } else { 0.0 };
    let tilts = [1.0, 0.85, 0.6, 0.35].map(|part| short(pole + (steepest.tilt - pole) * part));
    for tilt in tilts {
        let Some(line) = Plan::at(&search, zone, tilt, log_error) else { continue };
        let Some((far, angles)) = reach(roughs, tilt, threshold, log_error) else { continue };
        let nodes = far / line.spacing;
        if best.as_ref().is_none_or(|best| nodes < 0.8 * best.0) {
            best = Some((nodes, line, far, angles));
        }
        // Few are cheap, and between the poles there is nothing to gain.
        if zone == Zone::Between || best.as_ref().is_some_and(|best| best.0 < 4000.0) {
            break;
        }
    }
    let (_, mut line, far, angles) = best?;
    // Bits are those of C, whose size may be below 1.
    let least = roughs.iter().map(|rough| rough.moment_beside(line.tilt)).fold(1.0, f64::min);
    line.depth -= least.max(1e-300).ln();
    let mut plan = Plan { tail_angles: angles, ..line.until(composition, roughs, far)? };
    // The powers of a node.
    let powers = roughs.iter().map(|rough| 1.0 + rough.times.log2()).sum::<f64>();
    plan.work += 150.0 * plan.nodes as f64 * powers;
    Some(plan)
}

/// How far nodes have to reach for an error of e^log_error.
fn reach(roughs: &[RoughLaw], c: f64, t: f64, log_error: f64) -> Option<(f64, Vec<Angles>)> {
    let shapes: Vec<_> = roughs.iter().map(|rough| rough.shapes(c)).collect::<Option<_>>()?;
    let left = |u: f64| -> (f64, Vec<Angles>) {
        let each = roughs.iter().zip(&shapes);
        let (bounds, angles): (Vec<f64>, Vec<Angles>) =
            each.map(|(rough, shapes)| rough.tail_beside(c, u, shapes)).unzip();
        (log_more(roughs, c, |index| bounds[index]) + (1.0 - c) * t - u.ln(), angles)
    };
    let enough = |u: f64| left(u).0 < log_error - 1.0;
    let mut high = 1.0f64.max(c.abs() * 0.01);
    while !enough(high) {
        high *= 4.0;
        if high > 1e13 {
            return None;
        }
    }
    let mut low = 0.25 * high;
    for _ in 0..4 {
        let middle = (low * high).sqrt();
        if enough(middle) { high = middle } else { low = middle }
    }
    Some((high, left(high).1))
}

/// `more` at a real tilt, from above; a few digits.
fn moment<const N: usize>(
    composition: &Composition<N>,
    roughs: &[RoughLaw],
    c: f64,
) -> Option<Ball<N>> {
    let mut product: Option<Counted<Ball<N>>> = None;
    for (law, rough) in composition.laws.iter().zip(roughs) {
        // Bits are those of 1, and of the transform where it is larger.
        let bits = 12.0 + rough.times.log2() - rough.moment_beside(c).min(1.0).log2();
        let beside = law.real_beside(rough, c, bits)?;
        let all = Counted::step(law.atom, beside, Ball::ZERO).power(law.times);
        product = Some(product.map_or(all, |known| known.and(all)));
    }
    Some(product?.more.upper())
}

impl<const N: usize> Line<N> {
    /// The line of what is left, by such a plan. None where a bound cannot be computed.
    pub fn of_more(few: &FewPlan<N>) -> Option<Self> {
        let FewPlan { plan, composition, roughs, lost } = few;
        let (c, far) = (plan.tilt, plan.spacing * plan.nodes as f64);
        let zero = Complex::<N>::ZERO;
        let mut products: Vec<Option<Counted<Complex<N>>>> = vec![None; plan.nodes + 1];
        let mut bound: Option<Counted<Ball<N>>> = None;
        let all = composition.laws.iter().zip(roughs).zip(&plan.choices).zip(&plan.tail_angles);
        for (((law, rough), choice), angles) in all {
            let atom = Complex::new(law.atom, Ball::ZERO);
            let found = law.nodes_beside(c, plan.spacing, plan.nodes, plan.bits, choice);
            for (product, beside) in products.iter_mut().zip(found) {
                let here = Counted::step(atom, beside, zero).power(law.times);
                *product = Some(product.map_or(here, |known| known.and(here)));
            }
            // Two of them make half of the depth each.
            let bits = 24.0 + 0.5 * plan.bits + rough.moment_beside(c).max(1.0).log2();
            let beside = law.tail_beside(rough, c, far, angles, bits)?.upper();
            let here = Counted::step(law.atom, beside, Ball::ZERO).power(law.times);
            bound = Some(bound.map_or(here, |known| known.and(here)));
        }
        let values = products.into_iter().map(|one| one.map_or(zero, |one| one.more)).collect();
        // 1/|s(s-1)| <= 1/u^2.
        let tail: Magnitude = bound?.more.over(Ball::pi() * Ball::from_f64(far)).above();
        let site = Site::of(plan);
        let points = plan.points as usize;
        let line =
            Self::of_values(&site, values, tail, points, &|c| moment(composition, roughs, c))?;
        let cap = if plan.zone == Zone::Below { Ball::ZERO } else { Ball::one() };
        Some(line.and_up_to(cap, *lost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contour::law::LawChoice;
    use crate::pairs::{Drawn, Draws};
    use vocabulary::Adjacency;

    /// Laws of a replaced record: several half-lines, and a whole line with one of them.
    fn compositions() -> [Composition<3>; 3] {
        let ball = Ball::<3>::from_f64;
        let folded = Draws::Folded { shares: vec![ball(0.06), ball(0.002)], lost: Magnitude::ZERO };
        let cut = Draws::Cut { tau: ball(0.3), kept: ball(0.08), rate: ball(0.1) };
        let new = |noise: f64, times: u64, draws: &Draws<3>, adjacency: Adjacency| {
            Composition::new(vec![Drawn { noise, times, draws: draws.clone() }], adjacency, 200)
        };
        [
            new(0.7, 3, &folded, Adjacency::AddRemove),
            new(2.5, 2, &cut, Adjacency::Substitute),
            new(0.9, 2, &cut, Adjacency::ZeroOut),
        ]
    }

    #[test]
    fn all_runs_are_counted() {
        // (a + c)^T as none + one + more, and one = T c a^(T-1).
        for times in [1u64, 2, 3, 10, 37] {
            let counted = Counted::step(0.6f64, 0.7, 0.0).power(times);
            let (whole, power) = (1.3f64.powi(times as i32), 0.6f64.powi(times as i32 - 1));
            let sum = counted.none + counted.one + counted.more;
            assert!((sum / whole - 1.0).abs() < 1e-13, "{times}");
            assert!((counted.one / (times as f64 * 0.7 * power) - 1.0).abs() < 1e-13, "{times}");
            assert!((times > 1) == (counted.more > 0.0));
        }
    }

    /// What is left out weighs no more than is said, and the transform of the rest is that of the whole up to it.
    #[test]
    fn clipped_steps() {
        for composition in compositions() {
            for log_error in [-8.0, -20.0] {
                let (less, lost) = clipped(&composition, log_error);
                assert!(lost.to_f64() < log_error.exp());
                for (law, other) in composition.laws.iter().zip(&less.laws) {
                    for tilt in [0.0, 0.4, 1.0] {
                        let all = law.real_beside(&RoughLaw::new(law), tilt, 60.0).unwrap();
                        let part = other.real_beside(&RoughLaw::new(other), tilt, 60.0).unwrap();
                        let gap = (all - part).to_f64() * law.times as f64;
                        assert!(gap > 0.0 && gap <= lost.to_f64(), "{tilt}: {gap:e}");
                    }
                }
            }
        }
    }

    /// Nodes left out are below their bound, from each place on, and the bound falls.
    #[test]
    fn bounds_beside_the_atom() {
        for composition in compositions() {
            let (less, _) = clipped(&composition, -25.0);
            for law in &less.laws {
                let rough = RoughLaw::new(law);
                for (tilt, from) in [(1.5, 40.0), (4.0, 200.0), (0.5, 1000.0), (-3.0, 90.0)] {
                    let shapes = rough.shapes(tilt).unwrap();
                    let bound = |from: f64| {
                        let (_, angles) = rough.tail_beside(tilt, from, &shapes);
                        law.tail_beside(&rough, tilt, from, &angles, 60.0).unwrap()
                    };
                    let (near, far) = (bound(from), bound(30.0 * from));
                    assert!(far.to_f64() < 0.5 * near.to_f64(), "{tilt} {from}");
                    let (nodes, du) = (40, from / 8.0);
                    let most = (du * 40.0, nodes);
                    let choice = LawChoice::new(&rough, law, tilt, most, 60.0).unwrap();
                    let found = law.nodes_beside(tilt, du, nodes, 60.0, &choice);
                    for node in &found[8..] {
                        let size = node.square_modulus().root();
                        assert!(size.is_at_most(&near), "{tilt} {from}: {size:?} {near:?}");
                    }
                }
            }
        }
    }
}
