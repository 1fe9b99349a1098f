//! Rarely used records: the loss of a step is nearly an atom, and M(c+iu) hardly falls. Each step is split into low
//! and middle outcomes ([`crate::pairs::Mask`]), M = L + D with L the transform of the low ones and D that of the middle
//! ones. Outcomes count as low with the probability that the mask gives, so
//!
//! ```text
//! E(e^Y - e^t)_+ = E[(e^Y - e^t)_+ ; not all low] + E[(e^Y - e^t)_+ ; all low].
//! ```
//!
//! The first is a contour integral of product of M^T - product of L^T: the transform of a measure that is not
//! negative, so its aliases have the same sign, and at every c' >= 1 its mean of (e^Y - e^t)_+ is at most (product of
//! M^T - product of L^T)(c') e^((1-c')t). The line, its spacing and its digits are chosen for this measure alone: with
//! product of L^T (product of (1 + D/L)^T - 1) it keeps its digits however rare middle outcomes are. It falls with u
//! like one middle outcome:
//!
//! ```text
//! |prod M^T - prod L^T| <= prod M(c)^T * sum T |D| / M(c),
//! ```
//!
//! since |M|, |L| <= M(c) on the line, and |D| is bounded by moving the path to x + iy: there |A| <= A(x), and
//! arg A rises with x and with u's sign in its favour, so that on a cell it is at least its value at the left end. When
//! a record is replaced, A(1/z) has an angle of the other sign, which is not counted on. The second part is at
//! most prod L(c')^T e^((1-c') t) for every c' >= 1.

use super::Composition;
use super::law::{Law, LawChoice, RoughLaw};
use super::plan::{NODE, Plan, Search, Zone, short};
use crate::arithmetic::{Ball, Complex, Magnitude};

/// Rotations above which a sharper mask may be cheaper.
const SHARPER: f64 = 2e7;

/// The laws of a composition with their masks.
pub(super) struct Masked<const N: usize> {
    low: Vec<Law<N>>,
    middle: Vec<Law<N>>,
    low_roughs: Vec<RoughLaw>,
    middle_roughs: Vec<RoughLaw>,
    /// c' at which all-low outcomes are bounded.
    pub(super) cap: f64,
}

/// A plan for the masked line.
pub struct MaskedPlan<const N: usize> {
    pub plan: Plan,
    pub(super) masked: Masked<N>,
    /// For low and for middle outcomes.
    choices: [Vec<LawChoice>; 2],
    angle: f64,
}

impl<const N: usize> Masked<N> {
    /// Middle outcomes begin where P/Q is about 1 + eta.
    fn new(composition: &Composition<N>, eta: f64, power: u64) -> Self {
        let (low, middle): (Vec<_>, Vec<_>) =
            composition.laws.iter().map(|law| law.split(eta, power).into()).unzip();
        let low_roughs = low.iter().map(RoughLaw::new).collect();
        let middle_roughs = middle.iter().map(RoughLaw::new).collect();
        Self { low, middle, low_roughs, middle_roughs, cap: 2.0 }
    }

    /// ln of the bound on all-low outcomes, in doubles.
    fn log_rest(&self, cap: f64, t: f64) -> f64 {
        let low: f64 =
            self.low_roughs.iter().map(|rough| rough.times * rough.log_moment(cap)).sum();
        low + (1.0 - cap) * t
    }

    /// The largest eta whose all-low outcomes weigh less than e^log_error. `gap` is how far the threshold t lies above the
    /// loss of all near-atoms.
    fn choose(
        composition: &Composition<N>,
        (t, gap): (f64, f64),
        log_error: f64,
        power: u64,
    ) -> Option<Self> {
        let mut eta = 2.0 * gap;
        for _ in 0..14 {
            let mut masked = Self::new(composition, eta, power);
            let mut cap = 2.0 + (20.0 - log_error).max(20.0) / gap;
            for _ in 0..4 {
                let place = short(cap);
                if masked.log_rest(place, t) < log_error - 1.0 {
                    masked.cap = place;
                    return Some(masked);
                }
                cap *= 0.6;
            }
            eta *= 0.6;
        }
        None
    }

    /// sum of T |M - L| / M(c) at u and beyond, in doubles.
    fn rough_tail(&self, roughs: &[RoughLaw], c: f64, u: f64, angle: f64) -> f64 {
        let sum = |middle: &RoughLaw, whole: &RoughLaw| {
            middle.times * (middle.log_middle(c, u, angle) - whole.log_moment(c)).exp()
        };
        self.middle_roughs.iter().zip(roughs).map(|(middle, whole)| sum(middle, whole)).sum()
    }

    /// ln of (product of M^T - product of L^T)(c), in doubles.
    fn log_difference(&self, c: f64) -> f64 {
        let (mut low, mut more) = (0.0, 0.0);
        for (one, two) in self.low_roughs.iter().zip(&self.middle_roughs) {
            let (here, there) = (one.log_moment(c), two.log_moment(c));
            low += one.times * here;
            more += one.times * (there - here).exp().ln_1p();
        }
        low + if more > 30.0 { more } else { more.exp_m1().ln() }
    }

    /// (product of M^T - product of L^T)(c), a few digits; at least that for half-lines.
    fn difference(&self, c: f64) -> Option<Ball<N>> {
        let (mut low, mut more) = (Complex::one(), Complex::ZERO);
        let all = self.low.iter().zip(&self.low_roughs);
        for ((law, rough), (middle, middle_rough)) in
            all.zip(self.middle.iter().zip(&self.middle_roughs))
        {
            let bits = 12.0 + rough.times.log2();
            let (here, there) = (law.real(rough, c, bits)?, middle.real(middle_rough, c, bits)?);
            let ratio = Complex::new(there.over(here), Ball::ZERO);
            low = low * Complex::new(here, Ball::ZERO).power(law.times);
            more = and(more, power_minus_one(ratio, law.times));
        }
        Some((low * more).re)
    }

    /// The transform of low outcomes at c', to their powers.
    pub(super) fn rest(&self) -> Option<(Ball<N>, Ball<N>)> {
        let mut product = Ball::one();
        for (law, rough) in self.low.iter().zip(&self.low_roughs) {
            let value = law.real(rough, self.cap, 12.0 + rough.times.log2())?;
            product = product * value.power(law.times);
        }
        Some((Ball::from_f64(self.cap), product))
    }
}

/// (1+a)(1+b) - 1.
fn and<const N: usize>(a: Complex<N>, b: Complex<N>) -> Complex<N> {
    a + b + a * b
}

/// (1+a)^power - 1.
fn power_minus_one<const N: usize>(a: Complex<N>, mut power: u64) -> Complex<N> {
    let (mut result, mut base) = (Complex::ZERO, a);
    while power > 0 {
        if power & 1 == 1 {
            result = and(result, base);
        }
        power >>= 1;
        if power > 0 {
            base = and(base, base);
        }
    }
    result
}

impl<const N: usize> MaskedPlan<N> {
    /// A plan for a threshold above the loss of all near-atoms, where that is known, and above 0 else; None where none
    /// is affordable.
    pub fn new(
        composition: &Composition<N>,
        roughs: &[RoughLaw],
        threshold: f64,
        log_error: f64,
    ) -> Option<Self> {
        let gap = composition.largest_loss().map_or(0.0, |loss| loss.to_f64()) + threshold;
        if !composition.gaussian.mid.is_zero() || !(gap > 1e-9) {
            return None;
        }
        // Far out in the tail nothing of the near-atom may shine through the mask, nor of where half-lines begin. A
        // high power takes more digits, and splits more sharply.
        let half = composition.laws.iter().flat_map(|law| &law.strands).any(|strand| strand.half);
        let find =
            |power: u64| Self::with_power(composition, roughs, (threshold, gap), log_error, power);
        let low = if log_error < -100.0 || half { None } else { find(16) };
        match low {
            Some(low) if low.plan.work < SHARPER => Some(low),
            low => {
                let sharp = find(64);
                let better = |low: &Self| {
                    sharp.as_ref().is_none_or(|sharp| low.plan.work <= sharp.plan.work)
                };
                if low.as_ref().is_some_and(better) { low } else { sharp }
            }
        }
    }

    fn with_power(
        composition: &Composition<N>,
        roughs: &[RoughLaw],
        (threshold, gap): (f64, f64),
        log_error: f64,
        power: u64,
    ) -> Option<Self> {
        let masked = Masked::choose(composition, (threshold, gap), log_error, power)?;
        let other = |c: f64| masked.log_difference(c);
        let search = Search { roughs, gaussian: 0.0, threshold, other: Some(&other) };
        let line = Plan::line(&search, Zone::Above, log_error)?;
        let c = line.tilt;
        // What |prod M^T - prod L^T| e^((1-c)t) is at most at u, with 1/u^2 beyond.
        let whole: f64 = roughs.iter().map(|rough| rough.times * rough.log_moment(c)).sum();
        let level = whole + (1.0 - c) * threshold;
        let mut best: Option<(f64, f64)> = None;
        for angle in [0.15, 0.3, 0.6, 0.9, 1.2] {
            let enough = |u: f64| {
                level + masked.rough_tail(roughs, c, u, angle).ln() - u.ln() < log_error - 1.0
            };
            let mut high = 4.0;
            while !enough(high) && high < 4e6 {
                high *= 2.0;
            }
            let mut low = 0.5 * high;
            for _ in 0..3 {
                let middle = 0.5 * (low + high);
                if enough(middle) { high = middle } else { low = middle }
            }
            if enough(high) && best.is_none_or(|(far, _)| high < far) {
                best = Some((high, angle));
            }
        }
        let (far, angle) = best?;
        let nodes = (far / line.spacing).ceil();
        if !(nodes < 5e5) {
            return None;
        }
        let (bits, most) = (line.bits(roughs), line.spacing * nodes);
        let choose = |roughs: &[RoughLaw], laws: &[Law<N>]| -> Option<Vec<LawChoice>> {
            let pairs = roughs.iter().zip(laws);
            pairs
                .map(|(rough, law)| LawChoice::new(rough, law, c, (most, nodes as usize), bits))
                .collect()
        };
        let choices = [
            choose(&masked.low_roughs, &masked.low)?,
            choose(&masked.middle_roughs, &masked.middle)?,
        ];
        let all = || choices.iter().flatten();
        let work = all().map(|choice| choice.work(nodes as usize, bits) + NODE * nodes).sum();
        let plan = Plan {
            zone: line.zone,
            tilt: c,
            spacing: line.spacing,
            nodes: nodes as usize,
            alias_tilts: line.alias_tilts,
            tail_angles: Vec::new(),
            bits,
            points: all().map(LawChoice::points).sum(),
            lost_bits: all().map(LawChoice::lost_bits).fold(0.0, f64::max),
            choices: Vec::new(),
            work,
        };
        Some(Self { plan, masked, choices, angle })
    }

    /// At least (product of M^T - product of L^T)(c').
    pub(super) fn moment(&self, c: f64) -> Option<Ball<N>> {
        self.masked.difference(c)
    }

    /// product of M^T - product of L^T at the nodes.
    pub(super) fn nodes(&self, composition: &Composition<N>) -> Vec<Complex<N>> {
        let plan = &self.plan;
        let nodes = |law: &Law<N>, choice: &LawChoice| {
            law.nodes(plan.tilt, plan.spacing, plan.nodes, plan.bits, choice)
        };
        let mut products = vec![(Complex::<N>::one(), Complex::<N>::ZERO); plan.nodes + 1];
        let low = self.masked.low.iter().zip(&self.choices[0]);
        let middle = self.masked.middle.iter().zip(&self.choices[1]);
        for (((law, choice), (other, other_choice)), whole) in
            low.zip(middle).zip(&composition.laws)
        {
            let before = other.before(whole, plan.tilt, plan.bits);
            let all = nodes(law, choice).into_iter().zip(nodes(other, other_choice));
            for ((low, more), (here, there)) in products.iter_mut().zip(all) {
                let there = Complex::new(there.re.widened(before), there.im.widened(before));
                *low = *low * here.power(law.times);
                *more = and(*more, power_minus_one(there * here.reciprocal(), law.times));
            }
        }
        products.into_iter().map(|(low, more)| low * more).collect()
    }

    /// At least the modulus of the difference for every u >= the last node's, divided by pi u.
    pub(super) fn tail(
        &self,
        composition: &Composition<N>,
        roughs: &[RoughLaw],
    ) -> Option<Magnitude> {
        let plan = &self.plan;
        let (c, most) = (plan.tilt, plan.spacing * plan.nodes as f64);
        let mut whole = Ball::one();
        let mut sum = Ball::ZERO;
        let middles = self.masked.middle.iter().zip(&self.masked.middle_roughs);
        for ((law, rough), (middle, middle_rough)) in
            composition.laws.iter().zip(roughs).zip(middles)
        {
            let value = law.real(rough, c, 12.0 + rough.times.log2())?;
            whole = whole * value.power(law.times);
            let floor = middle_rough.log_moment(c) - plan.bits * std::f64::consts::LN_2 - 20.0;
            let bound = middle
                .middle_tail(c, most, self.angle, floor)
                .plus(middle.before(law, c, plan.bits));
            let share = Ball::exact(crate::arithmetic::Float::from_magnitude(bound)).over(value);
            sum = sum + share.times_u64(law.times);
        }
        let most = Ball::pi() * Ball::from_f64(most);
        Some((whole * sum).over(most).above())
    }
}
