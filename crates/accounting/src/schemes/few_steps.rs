//! Few steps of a law with an atom, on a lattice of ln W that has a point at 0.
//!
//! delta(eps) = E_Q (W - e^eps)_+ of the product W of all steps is convex in W. Every cell of a step's law
//! ([`numerics::inversion::InCells`]) is spread over its two corners, its mean kept (upper end), or lumped into
//! groups whose mean is a corner (lower end); products of independent nonnegative numbers keep the order
//! ([`numerics::lattice::ordered`]). The atom at W = 1 is a point of the lattice and stays what it is. Both
//! ends are off by the variance that spreading adds: of the order of the square of the spacing.
//!
//! *Tilting.* All masses are multiplied by W^theta and divided by their sum Z. Then
//! delta = Z^T e^{-c eps} E e^{-c d} (1 - e^{-d})_+, c = theta - 1, d = ln W - eps, and the payoff is at most
//! c^c/(1+c)^(1+c): so much costs a tilted mass that is missing, misplaced or wrapped around.
//!
//! *Ends of the lattice.* Upper: mass above the last point stays on it, and what its mean loses is added, once
//! per step, to delta (all other means are 1); mass below the first point is spread between it and W = 0, where
//! it pays nothing. Lower: both are left out.
//!
//! The other order is that of the law of 1/W under P: cells exchange mass and moment. Of a pair against one Gaussian
//! 1/W is bounded, at most e^m for all steps: delta is at most 1 - e^{eps - m}, which is what is left where a law that
//! crowds at its end would need too fine a lattice.

use super::Result;
use crate::{AccountingError, Order};
use numerics::elementary::{exp, exp_m1, ln, ln_1p};
use numerics::inversion::{Cell, InCells, Times};
use numerics::lattice::ordered::{Lattice, Part, lump, spread, sum};
use numerics::positive::Side;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use vocabulary::{Difficulty, Interval, NotCertified};

const UNIT: f64 = f64::EPSILON / 2.0;
/// Relative width of an epsilon that is aimed at.
const WIDTH: f64 = 2.5e-7;
/// Cells on either side of 0 at most, and points of a window.
const MOST_CELLS: f64 = (1 << 18) as f64;
const LONGEST: usize = 1 << 19;
/// Tilted mass that each side of a window may lose.
const OUTSIDE: f64 = 1e-14;
/// Tilts are 1 + FIRST * RATIO^rung.
const FIRST: f64 = 0.02;
const RATIO: f64 = 1.25;
const RUNGS: i32 = 60;
/// Ends that are kept for other questions.
const KEPT: usize = 24;

/// A composition of laws, each taken a number of times.
pub(super) struct FewSteps {
    parts: Vec<Times>,
    /// ln W beyond which the mass is negligible.
    top: f64,
    /// The laws in few cells: to choose tilts and spacings by.
    rough: OnceLock<Vec<InCells>>,
    /// What was made for a question serves others. Each entry is a function of the fields above and its key.
    ends: Mutex<BTreeMap<Key, Arc<Option<End>>>>,
    cells: Mutex<Option<(i32, Arc<Vec<InCells>>)>>,
}

/// Order, rung of the tilt, side.
type Key = (bool, i32, bool);

/// Tilted masses of the product, summed up from the top.
struct End {
    /// At a point x of the lattice, over the masses at and above it, each d above: the sums of e^{-cd} and of
    /// e^{-cd} (1 - e^{-d}).
    tails: Vec<(f64, f64)>,
    lattice: Lattice,
    tilt: f64,
    /// T ln Z.
    log_norm: f64,
    /// Of the tilted masses in all, and what is missing above the window.
    error: f64,
    above: f64,
    /// Mean that the last point lost.
    lost: f64,
    relative: f64,
    shift: f64,
}

impl FewSteps {
    /// P mass beyond this many standard deviations is given to the last point.
    pub(super) fn new(parts: Vec<Times>, sigmas: f64) -> Self {
        let top = parts.iter().map(|part| part.law.far_loss(sigmas)).fold(1e-9, f64::max);
        let (rough, ends, cells) = (OnceLock::new(), Mutex::default(), Mutex::default());
        Self { parts, top, rough, ends, cells }
    }

    /// delta at an epsilon, any sign.
    ///
    /// # Errors
    /// Where the lattice would be too long.
    pub(super) fn delta(&self, epsilon: f64, order: Order) -> Result<Interval> {
        if epsilon >= 0.0 {
            return self.at(epsilon, order);
        }
        // 1 - e^eps + e^eps delta'(-eps), delta' of the other order.
        let other = self.at(-epsilon, order.reversed())?;
        let (sure, weight, slack) = (-exp_m1(epsilon), exp(epsilon), 8.0 * f64::EPSILON);
        Ok(Interval::new(
            (sure + weight * other.lower) * (1.0 - slack),
            sure + weight * other.value,
            (sure + weight * other.upper) * (1.0 + slack),
        ))
    }

    /// No loss is above this.
    fn farthest(&self, order: Order) -> f64 {
        match order {
            Order::Remove => f64::INFINITY,
            Order::Add => self.parts.iter().map(|part| -part.times * part.law.least_loss()).sum(),
        }
    }

    fn at(&self, epsilon: f64, order: Order) -> Result<Interval> {
        let farthest = self.farthest(order);
        if epsilon >= farthest {
            return Ok(Interval::exact(0.0));
        }
        self.by_lattice(epsilon, order).or_else(|refused| {
            if farthest == f64::INFINITY {
                return Err(refused);
            }
            let most = (-exp_m1(epsilon - farthest) * (1.0 + 8.0 * f64::EPSILON)).min(1.0);
            Ok(Interval { lower: 0.0, value: 0.5 * most, upper: most })
        })
    }

    fn by_lattice(&self, epsilon: f64, order: Order) -> Result<Interval> {
        let rung = self.rung(epsilon, order);
        let end = |side: Side| {
            let found = self.end((order == Order::Add, rung, side == Side::Upper));
            match found.as_ref() {
                Some(law) => Ok(law.delta(epsilon, side)),
                None => Err(too_long()),
            }
        };
        let (lower, upper) = (end(Side::Lower)?, end(Side::Upper)?);
        let upper = upper.max(lower);
        Ok(Interval { lower, value: lower + 0.5 * (upper - lower), upper })
    }

    /// The epsilon at which delta, with what was given away added to its upper end, is met.
    ///
    /// # Errors
    /// Where the lattice would be too long.
    pub(super) fn epsilon(&self, delta: f64, given_away: f64, order: Order) -> Result<Interval> {
        let stricter = (delta - given_away) * (1.0 - 2.0 * f64::EPSILON);
        if stricter <= 0.0 {
            return Err(too_long());
        }
        let farthest = self.farthest(order);
        self.crossing(delta, stricter, order).or_else(|refused| {
            if farthest == f64::INFINITY {
                return Err(refused);
            }
            Ok(Interval { lower: 0.0, value: farthest, upper: farthest })
        })
    }

    fn crossing(&self, delta: f64, stricter: f64, order: Order) -> Result<Interval> {
        // The law in few cells tells where to look.
        let mut rung = self.rung_of_delta(delta, order);
        let rough = self.composed(self.rough(), order, Self::tilt_of(rung), Side::Upper);
        if let Some(place) = rough.and_then(|law| law.crossing(delta, Side::Upper, self.top)) {
            rung = self.rung(place, order);
        }
        let end = |side: Side| {
            let found = self.end((order == Order::Add, rung, side == Side::Upper));
            let level = if side == Side::Upper { stricter } else { delta };
            let law = found.as_ref().as_ref().ok_or_else(too_long)?;
            law.crossing(level, side, self.top).ok_or_else(too_long)
        };
        let (lower, upper): (f64, f64) = (end(Side::Lower)?, end(Side::Upper)?);
        let upper = upper.max(lower);
        Ok(Interval { lower, value: lower + 0.5 * (upper - lower), upper })
    }

    fn rough(&self) -> &[InCells] {
        self.rough.get_or_init(|| {
            let n = 3000;
            self.parts.iter().map(|part| part.law.in_cells(self.top / n as f64, n)).collect()
        })
    }

    /// At a tilt.
    fn cumulant(&self, tilt: f64, order: Order) -> Cumulant {
        let mut sum = Cumulant::default();
        for (part, rough) in self.parts.iter().zip(self.rough()) {
            let n = rough.cells.len() / 2;
            let (mut total, mut first, mut second) = (rough.atom, 0.0, 0.0);
            for (k, cell) in rough.cells.iter().enumerate() {
                let (mass, place) = match order {
                    Order::Remove => (cell.mass, (k as f64 - n as f64 + 0.5) * rough.step),
                    Order::Add => (cell.moment, (n as f64 - k as f64 - 0.5) * rough.step),
                };
                let weight = mass * exp((tilt * place).min(600.0));
                total += weight;
                first += weight * place;
                second += weight * place * place;
            }
            let mean = first / total;
            sum.value += part.times * ln(total);
            sum.slope += part.times * mean;
            sum.variance += part.times * (second / total - mean * mean).max(0.0);
            sum.away += part.times * (1.0 - rough.atom / total);
        }
        sum
    }

    fn tilt_of(rung: i32) -> f64 {
        1.0 + FIRST * numerics::elementary::powi(RATIO, rung)
    }

    /// The last rung at which something that rises with it is below a level.
    fn last_below(rises: impl Fn(i32) -> f64, level: f64) -> i32 {
        let (mut low, mut high) = (0, RUNGS);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if rises(middle) > level { high = middle } else { low = middle }
        }
        low
    }

    /// The tilt that suits an epsilon.
    fn rung(&self, epsilon: f64, order: Order) -> i32 {
        let place = |rung: i32| {
            let tilt = Self::tilt_of(rung);
            self.cumulant(tilt, order).slope - 1.0 / tilt - 1.0 / (tilt - 1.0)
        };
        Self::last_below(place, epsilon)
    }

    /// The tilt that suits a delta, roughly: by the saddle point's value.
    fn rung_of_delta(&self, delta: f64, order: Order) -> i32 {
        let minus_log = |rung: i32| {
            let tilt = Self::tilt_of(rung);
            let c = tilt - 1.0;
            let found = self.cumulant(tilt, order);
            let place = found.slope - 1.0 / tilt - 1.0 / c;
            let spread = (found.variance + 1.0 / (tilt * tilt) + 1.0 / (c * c)).sqrt();
            c * place + ln(tilt * c) + ln(spread * std::f64::consts::TAU.sqrt()) - found.value
        };
        Self::last_below(minus_log, -ln(delta))
    }

    /// The spacing for a tilt, as a power of the square root of 1/2.
    fn spacing(&self, tilt: f64, order: Order) -> i32 {
        let Cumulant { slope: epsilon, away, .. } = self.cumulant(tilt, order);
        // Spreading and lumping add about a third of a squared spacing to the variance of ln W per step.
        let room = WIDTH * ((tilt - 1.0) * epsilon.max(0.0)).clamp(0.3, 10.0);
        let by_tilt = (6.0 * room / (away.max(1e-3) * tilt * (tilt - 1.0))).sqrt();
        // Near 0 the law is as narrow as the slope of ln W at W = 1.
        let core = self.parts.iter().map(|part| part.law.slope_at_one()).fold(1.0, f64::min);
        let wanted = by_tilt.min(0.01 * core.max(0.2 * epsilon)).max(self.top / MOST_CELLS);
        (-2.0 * ln(wanted) / std::f64::consts::LN_2).floor() as i32
    }

    fn cells(&self, spacing: i32) -> Arc<Vec<InCells>> {
        let mut known = self.cells.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((made, cells)) = known.as_ref()
            && *made == spacing
        {
            return cells.clone();
        }
        let step = exp(-0.5 * f64::from(spacing) * std::f64::consts::LN_2);
        let n = (self.top / step).ceil().max(4.0) as usize;
        let made: Vec<InCells> = self.parts.iter().map(|part| part.law.in_cells(step, n)).collect();
        let made = Arc::new(made);
        *known = Some((spacing, made.clone()));
        made
    }

    fn end(&self, key: Key) -> Arc<Option<End>> {
        let lock = || self.ends.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(found) = lock().get(&key) {
            return found.clone();
        }
        let (added, rung, upper) = key;
        let order = if added { Order::Add } else { Order::Remove };
        let side = if upper { Side::Upper } else { Side::Lower };
        let made = Arc::new(self.make(order, Self::tilt_of(rung), side));
        let mut ends = lock();
        if ends.len() >= KEPT {
            ends.clear();
        }
        ends.insert(key, made.clone());
        made
    }

    /// With the spacing that is wanted, or the next that fits. The window of the law in few cells is a good guess of
    /// the window.
    fn make(&self, order: Order, tilt: f64, side: Side) -> Option<End> {
        let mut wanted = self.spacing(tilt, order);
        if let Some(rough) = self.composed(self.rough(), order, tilt, side) {
            let window = rough.tails.len() as f64 * rough.lattice.step / LONGEST as f64;
            wanted = wanted.min((-2.0 * ln(window) / std::f64::consts::LN_2).floor() as i32);
        }
        (0..12).find_map(|coarser| self.with_spacing(wanted - coarser, order, tilt, side))
    }

    fn with_spacing(&self, spacing: i32, order: Order, tilt: f64, side: Side) -> Option<End> {
        self.composed(&self.cells(spacing), order, tilt, side)
    }

    fn composed(&self, cells: &[InCells], order: Order, tilt: f64, side: Side) -> Option<End> {
        let (mut log_norm, mut lost, mut relative, mut shift) = (0.0, 0.0, 0.0, 0.0);
        let mut laws = Vec::new();
        for (part, found) in self.parts.iter().zip(cells.iter()) {
            let step = Tilted::new(found, order, tilt, side);
            log_norm += part.times * ln(step.norm);
            lost += part.times * step.lost;
            relative += part.times * (found.relative + step.relative);
            shift += part.times * (found.shift + 8.0 * UNIT * (1.0 + self.top));
            laws.push((step.weights, step.lattice, part.times as u64));
        }
        let parts: Vec<Part<'_>> = laws
            .iter()
            .map(|(weights, lattice, power)| Part { weights, lattice: *lattice, power: *power })
            .collect();
        let found = sum(&parts, OUTSIDE, LONGEST)?;
        let (error, above) = (found.error, found.above);
        let (length, lattice) = (found.values.len() as f64, found.lattice);
        let tails = tails(&found.values, lattice.step, tilt - 1.0);
        // The sums from the top are rounded at every point.
        relative +=
            1e-13 + UNIT * (8.0 * log_norm.abs() + (12.0 + 2.0 * tilt * lattice.step) * length);
        let relative = exp_m1(relative);
        Some(End { tails, lattice, tilt, log_norm, error, above, lost, relative, shift })
    }
}

/// T ln Z with two derivatives, and how many steps are away from the atom.
#[derive(Default)]
struct Cumulant {
    value: f64,
    slope: f64,
    variance: f64,
    away: f64,
}

fn too_long() -> AccountingError {
    NotCertified::OneRoute(Difficulty::LongLattice).into()
}

/// [`End::tails`]: one step down, d grows by h, and
/// e^{-c(d+h)} (1 - e^{-(d+h)}) = e^{-(c+1)h} e^{-cd} (1 - e^{-d}) + e^{-ch} (1 - e^{-h}) e^{-cd}. All terms
/// are positive.
fn tails(values: &[f64], h: f64, c: f64) -> Vec<(f64, f64)> {
    let (fall, both, lift) = (exp(-c * h), exp(-(c + 1.0) * h), -exp(-c * h) * exp_m1(-h));
    let mut all = vec![(0.0, 0.0); values.len()];
    let (mut plain, mut paid) = (0.0, 0.0);
    for (value, tail) in values.iter().zip(&mut all).rev() {
        paid = both * paid + lift * plain;
        plain = fall * plain + value;
        *tail = (plain, paid);
    }
    all
}

/// Tilted masses of one step, with sum 1.
struct Tilted {
    weights: Vec<f64>,
    lattice: Lattice,
    norm: f64,
    lost: f64,
    relative: f64,
}

impl Tilted {
    fn new(found: &InCells, order: Order, tilt: f64, side: Side) -> Self {
        let n = found.cells.len() / 2;
        let turned = |cell: &Cell| Cell { mass: cell.moment, moment: cell.mass };
        // The cell between k - n and k - n + 1 steps, and what lies outside.
        let cell = |k: usize| match order {
            Order::Remove => found.cells[k],
            Order::Add => turned(&found.cells[2 * n - 1 - k]),
        };
        let (below, above) = match order {
            Order::Remove => (found.below, found.above),
            Order::Add => (turned(&found.above), turned(&found.below)),
        };
        // What lies e^-30 below in tilted mass is as good as lost.
        let bottom = ((30.0 / (tilt * found.step)).ceil() as usize).clamp(2, n);
        let (first, length) = (n - bottom, bottom + n + 1);
        let lattice =
            Lattice { first: -(bottom as f64 * found.step), step: found.step, geometric: true };
        let atoms = (first..2 * n).flat_map(|k| {
            let here = cell(k);
            let atom = (k == n).then_some((found.atom, 1.0));
            let mean = (here.mass > 0.0).then(|| (here.mass, here.moment / here.mass));
            atom.into_iter().chain(mean)
        });
        let mut lost = 0.0;
        let mut weights = match side {
            Side::Upper => {
                let (mut masses, beyond) = spread(atoms, &lattice, length);
                masses[length - 1] += above.mass;
                lost = beyond + (above.moment - above.mass * lattice.place(length - 1)).max(0.0);
                let moment: f64 = (0..first).map(|k| cell(k).moment).sum::<f64>() + below.moment;
                masses[0] += moment / lattice.place(0);
                masses
            }
            Side::Lower => {
                let falling: Vec<(f64, f64)> = atoms.collect();
                lump(falling.into_iter().rev(), &lattice, length)
            }
        };
        let mut norm = 0.0;
        for (k, weight) in weights.iter_mut().enumerate() {
            *weight *= exp(tilt * (k as f64 - bottom as f64) * found.step);
            norm += *weight;
        }
        weights.iter_mut().for_each(|weight| *weight /= norm);
        let range = n as f64 * found.step;
        let relative = UNIT * (16.0 + length as f64 + 8.0 * tilt * range);
        Self { weights, lattice, norm, lost: lost * (1.0 + 1e-9), relative }
    }
}

impl End {
    fn delta(&self, epsilon: f64, side: Side) -> f64 {
        let sign = if side == Side::Upper { 1.0 } else { -1.0 };
        let (level, c) = (epsilon - sign * self.shift, self.tilt - 1.0);
        let start = ((level - self.lattice.first) / self.lattice.step).ceil().max(0.0);
        // Of the last point below a level that rounding hides, the rounding of levels is counted anyway.
        let total = self.tails.get(start as usize).map_or(0.0, |(plain, paid)| {
            let d = (self.lattice.first + start * self.lattice.step - level).max(0.0);
            exp(-(c + 1.0) * d) * paid - exp(-c * d) * exp_m1(-d) * plain
        });
        // c^c/(1+c)^(1+c).
        let most = exp(c * ln(c) - (1.0 + c) * ln_1p(c)) * (1.0 + 1e-12);
        let scale = exp(self.log_norm - c * level);
        let slack = self.relative + 2.0 * self.shift + 8.0 * UNIT * (4.0 + (c * level).abs());
        match side {
            Side::Upper => {
                let missing = (self.error + self.above) * most;
                ((total + missing) * (1.0 + slack) * scale + self.lost).min(1.0)
            }
            Side::Lower => ((total * (1.0 - slack) - self.error * most) * scale).max(0.0),
        }
    }
}

impl End {
    /// Where this end of delta comes down to a level: the last place found where it is above (lower), the first
    /// where it is not (upper), or 0.
    fn crossing(&self, level: f64, side: Side, first: f64) -> Option<f64> {
        if self.delta(0.0, side) <= level {
            return Some(0.0);
        }
        let (mut low, mut high) = (0.0, first);
        while self.delta(high, side) > level {
            (low, high) = (high, 2.0 * high);
            if high > 1e6 {
                return None;
            }
        }
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                break;
            }
            if self.delta(middle, side) > level { low = middle } else { high = middle }
        }
        Some(if side == Side::Upper { high } else { low })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numerics::inversion::Law;
    use numerics::mixture::{Component, MixtureRatio};
    use numerics::special::normal_cdf;

    /// h(g) of one step of fixed-size batches, any g > 0.
    fn one_step(q: f64, mu: f64, g: f64) -> f64 {
        if g < 1.0 {
            return 1.0 - g + g * one_step(q, mu, 1.0 / g);
        }
        let inner = 1.0 + (g - 1.0) / q;
        let x = ln(inner) / mu;
        q * (normal_cdf(0.5 * mu - x) - inner * normal_cdf(-0.5 * mu - x))
    }

    /// Two steps by quadrature over the first: E W_1 h(g/W_1), Simpson's rule on the strand, on its mirror
    /// image, and the atom.
    fn two_steps(q: f64, mu: f64, epsilon: f64) -> f64 {
        let g = exp(epsilon);
        let payoff = |w: f64| w * one_step(q, mu, g / w);
        let atom = (1.0 - q) * (2.0 * normal_cdf(0.5 * mu) - 1.0);
        let mut total = atom * payoff(1.0);
        let (n, from, to) = (200_000, 0.5 * mu, mu + 12.0);
        let h = (to - from) / f64::from(n);
        for i in 0..=n {
            let x = from + h * f64::from(i);
            let rule = if i == 0 || i == n { 1.0 } else { f64::from(2 + 2 * (i % 2)) };
            let density = 0.398_942_280_401_432_7 * exp(-0.5 * x * x) * rule * h / 3.0;
            let w = 1.0 - q + q * exp(mu * x - 0.5 * mu * mu);
            total += density * (payoff(w) + w * payoff(1.0 / w));
        }
        total
    }

    #[test]
    fn two_steps_by_quadrature() {
        for (q, mu) in [(0.01, 2.0), (0.2, 0.7), (0.5, 4.0), (0.001, 1.0)] {
            let law = Law::symmetric(&[(q, mu)], 0.0);
            let pair = FewSteps::new(vec![Times { law, times: 2.0 }], 8.5);
            for epsilon in [-0.3, 0.0, 0.02, 0.5, 2.0] {
                let truth = two_steps(q, mu, epsilon);
                if truth < 1e-9 {
                    continue;
                }
                let found = pair.delta(epsilon, Order::Remove).unwrap();
                let slack = 1e-9 * truth;
                assert!(
                    found.lower <= truth + slack && truth - slack <= found.upper,
                    "{q} {mu} {epsilon}: {found:?} {truth}"
                );
                assert!(found.width() < 5e-4 * truth, "{q} {mu} {epsilon}: {found:?}");
            }
        }
    }

    /// Against the contour, where both can be certified; both orders of a pair that has two.
    #[test]
    fn meets_the_contour() {
        use numerics::contour::Zone;
        use numerics::inversion::Composition;
        let step = |weight: f64, centre: f64| vec![Component { weight, centre }];
        let poisson = Law::of_pair(MixtureRatio::new(1.0, step(0.2, 0.5), Vec::new()));
        let fixed = Law::of_pair(MixtureRatio::new(1.0, step(0.18, 1.0), Vec::new()));
        let turned = Law::of_pair(MixtureRatio::turned(0.3, 0.5));
        for (law, times) in [
            (Law::symmetric(&[(0.3, 1.0)], 0.0), 40.0),
            (poisson.mixed(fixed, 0.4, 0.0), 40.0),
            (turned, 150.0),
        ] {
            let parts = vec![Times { law, times }];
            let contour = Composition::new(parts.clone());
            let lattice = FewSteps::new(parts, 8.5);
            for epsilon in [0.5, 3.0, 6.0] {
                let remove = contour.average(Zone::Above, 1.0, epsilon).unwrap();
                let add = contour.average(Zone::Below, 0.0, -epsilon).unwrap();
                for (order, truth) in [(Order::Remove, remove), (Order::Add, add)] {
                    let found = lattice.delta(epsilon, order).unwrap();
                    assert!(
                        found.lower <= truth.upper && truth.lower <= found.upper,
                        "{order:?} {epsilon}: {found:?} {truth:?}"
                    );
                    // What spreading adds, it adds in every step.
                    let room = 1e-4 * times / 40.0;
                    assert!(found.width() < room * found.upper, "{order:?} {epsilon}: {found:?}");
                }
            }
        }
    }

    /// One step has a closed form, and the lattice has no more than its own spreading on top.
    #[test]
    fn tiny_deltas_keep_their_digits() {
        let law = Law::symmetric(&[(0.01, 2.0)], 0.0);
        let pair = FewSteps::new(vec![Times { law, times: 1.0 }], 26.0);
        for epsilon in [1.0, 8.0, 15.0] {
            let truth = one_step(0.01, 2.0, exp(epsilon));
            let found = pair.delta(epsilon, Order::Remove).unwrap();
            let slack = 1e-11 * truth;
            assert!(found.lower <= truth + slack && truth - slack <= found.upper);
            assert!(found.width() < 1e-4 * truth, "{epsilon}: {found:?} {truth}");
        }
    }
}
