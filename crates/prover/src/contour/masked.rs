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
//!
//! Where far jumps make M explode at small tilts, outcomes above the threshold are called high, and runs that have one are taken out
//! ([`super::jumps`]): M is then the transform of low and middle outcomes alone, and a line may stand at any tilt.

use super::Composition;
use super::jumps::Jumps;
use super::law::{Cut, Law, LawChoice};
use super::plan::{NODE, Plan, Search, Zone, short};
use super::rough_law::RoughLaw;
use crate::arithmetic::{Ball, Complex, Magnitude};

/// Rotations above which a sharper mask may be cheaper.
const SHARPER: f64 = 2e7;

/// The laws of a composition with their masks.
pub(super) struct Masked<const N: usize> {
    low: Vec<Law<N>>,
    middle: Vec<Law<N>>,
    low_roughs: Vec<RoughLaw>,
    middle_roughs: Vec<RoughLaw>,
    jumps: Option<Jumps<N>>,
    /// c' at which all-low outcomes are bounded.
    cap: f64,
}

/// A plan for the masked line.
pub struct MaskedPlan<const N: usize> {
    pub plan: Plan,
    pub(super) masked: Masked<N>,
    /// For low and for middle outcomes.
    choices: [Vec<LawChoice>; 2],
    angle: f64,
    pub(super) log_error: f64,
}

impl<const N: usize> Masked<N> {
    fn new(composition: &Composition<N>, cut: Cut, jumps: Option<Jumps<N>>, cap: f64) -> Self {
        let low: Vec<_> = composition.laws.iter().map(|law| law.low(cut)).collect();
        let high = jumps.as_ref().map(|jumps| jumps.cut);
        let middle: Vec<_> = composition.laws.iter().map(|law| law.middle(cut, high)).collect();
        let low_roughs = low.iter().map(RoughLaw::new).collect();
        let middle_roughs = middle.iter().map(RoughLaw::new).collect();
        Self { low, middle, low_roughs, middle_roughs, jumps, cap }
    }

    pub(super) fn jumps(&self) -> Option<&Jumps<N>> {
        self.jumps.as_ref()
    }

    /// The highest edge of low outcomes for which runs that are all low weigh less than e^log_error, and the tilt that
    /// shows it. `gap` is how far the threshold t lies above the loss of all near-atoms.
    fn lowest(
        composition: &Composition<N>,
        (t, gap): (f64, f64),
        log_error: f64,
        (sharpness, power): (u64, u64),
    ) -> Option<(Cut, f64)> {
        let near = nearer(t, gap);
        let at = |log_eta: f64| {
            let cut = Cut { eta: log_eta.exp(), sharpness, power };
            let roughs: Vec<RoughLaw> =
                composition.laws.iter().map(|law| RoughLaw::new(&law.low(cut))).collect();
            // ln of the bound on all-low outcomes: a convex function of the tilt.
            let value = |v: f64| {
                let cap = short(1.0 + v.exp());
                let low: f64 = roughs.iter().map(|rough| rough.times * rough.log_moment(cap)).sum();
                low + (1.0 - cap) * t
            };
            let far = |distance: f64| ((40.0 - log_error).max(40.0) / distance).ln();
            let (mut left, mut right) = (far(gap) - 5.0, far(near) + 2.0);
            for _ in 0..13 {
                let third = (right - left) / 3.0;
                let (one, two) = (left + third, right - third);
                if value(one) > value(two) { left = one } else { right = two }
            }
            let cap = short(1.0 + left.exp());
            (value(left) < log_error - 1.0).then_some((cut, cap))
        };
        let level = gap.min(600.0).exp_m1().ln() + 0.7;
        let (mut good, mut bad) = ((near / 400.0).ln().min(level - 7.0), level);
        let mut best = at(good)?;
        while bad - good > 0.06 {
            let middle = 0.5 * (good + bad);
            match at(middle) {
                Some(found) => (good, best) = (middle, found),
                None => bad = middle,
            }
        }
        Some(best)
    }

    /// ln (L + D)(c) of each phase, in doubles.
    fn log_moments(&self, c: f64) -> Vec<f64> {
        let both = self.low_roughs.iter().zip(&self.middle_roughs);
        both.map(|(low, middle)| {
            let (one, two) = (low.log_moment(c), middle.log_moment(c));
            one.max(two) + (-(one - two).abs()).exp().ln_1p()
        })
        .collect()
    }

    /// sum of T |D| / (L + D)(c) at u and beyond, in doubles.
    fn rough_tail(&self, moments: &[f64], c: f64, u: f64, angle: (f64, f64)) -> f64 {
        let sum = |middle: &RoughLaw, moment: &f64| {
            middle.times * (middle.log_middle(c, u, angle) - moment).exp()
        };
        self.middle_roughs.iter().zip(moments).map(|(middle, moment)| sum(middle, moment)).sum()
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

/// How far the threshold may lie above what all steps together usually lose: their ratio has the mean 1, so a threshold above 0 is
/// no nearer than that.
pub(super) fn nearer(t: f64, gap: f64) -> f64 {
    if t > 0.0 { t.min(gap) } else { gap }
}

/// (1+a)(1+b) - 1.
pub(super) fn and<const N: usize>(a: Complex<N>, b: Complex<N>) -> Complex<N> {
    a + b + a * b
}

/// (1+a)^power - 1.
pub(super) fn power_minus_one<const N: usize>(a: Complex<N>, mut power: u64) -> Complex<N> {
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
        let mut best: Option<Self> = None;
        for shape in [(4, 16), (1, 16), (1, 64), (8, 8)] {
            if shape == (1, 16) && (log_error < -100.0 || half) {
                continue;
            }
            let found = Self::with_edges(composition, roughs, (threshold, gap), log_error, shape);
            if let Some(found) = found
                && best.as_ref().is_none_or(|best| found.plan.work < best.plan.work)
            {
                best = Some(found);
            }
            if best.as_ref().is_some_and(|best| best.plan.work < SHARPER) {
                break;
            }
        }
        best
    }

    fn with_edges(
        composition: &Composition<N>,
        roughs: &[RoughLaw],
        (threshold, gap): (f64, f64),
        log_error: f64,
        shape: (u64, u64),
    ) -> Option<Self> {
        let (low, cap) = Masked::lowest(composition, (threshold, gap), log_error, shape)?;
        let jumps = match shape {
            (1, _) => None,
            _ => Jumps::choose(composition, low, (threshold, gap), log_error),
        };
        let masked = Masked::new(composition, low, jumps, cap);
        let other = |c: f64| masked.log_difference(c);
        let search = Search { roughs, gaussian: 0.0, threshold, other: Some(&other) };
        let line = Plan::line(&search, Zone::Above, log_error)?;
        let c = line.tilt;
        // What |prod M^T - prod L^T| e^((1-c)t) is at most at u, with 1/u^2 beyond.
        let moments = masked.log_moments(c);
        let whole: f64 = roughs.iter().zip(&moments).map(|(rough, log)| rough.times * log).sum();
        let level = whole + (1.0 - c) * threshold;
        let mut best: Option<(f64, f64)> = None;
        let narrow = masked.middle_roughs.iter().map(RoughLaw::narrow).fold(1.0, f64::min);
        for angle in [0.15, 0.3, 0.6, 0.9, 1.2, 1.4].map(|angle| narrow * angle) {
            let path = (angle, (level - log_error).max(40.0) + 40.0);
            let enough = |u: f64| {
                level + masked.rough_tail(&moments, c, u, path).ln() - u.ln() < log_error - 1.0
            };
            let mut high = 4.0;
            while !enough(high) && high < 4e8 {
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
        Some(Self { plan, masked, choices, angle, log_error })
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
    pub(super) fn tail(&self, composition: &Composition<N>) -> Option<Magnitude> {
        let plan = &self.plan;
        let (c, most) = (plan.tilt, plan.spacing * plan.nodes as f64);
        let mut whole = Ball::one();
        let mut sum = Ball::ZERO;
        let lows = self.masked.low.iter().zip(&self.masked.low_roughs);
        let middles = self.masked.middle.iter().zip(&self.masked.middle_roughs);
        for ((law, (low, low_rough)), (middle, middle_rough)) in
            composition.laws.iter().zip(lows).zip(middles)
        {
            let bits = 12.0 + low_rough.times.log2();
            let value = low.real(low_rough, c, bits)? + middle.real(middle_rough, c, bits)?;
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
