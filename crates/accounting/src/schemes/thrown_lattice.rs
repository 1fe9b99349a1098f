//! Balls and bins by FFT: the law of W over all epochs, from above and below, on lattices
//! ([`numerics::lattice::ordered`]).
//!
//! One Y is spread (lumped) on a linear lattice. The sum over the batches of an epoch is a convolution;
//! its law is spread (lumped) again on a lattice of ln W, and the product over epochs is a
//! convolution once more. The law of an epoch under P is transformed: one factor size-biased, all
//! payoffs at most 1. The law under Q, for the add order, is that divided by W. A last epoch of which r
//! batches are run has W = (S - r + sum of r Y)/S; with m the masses of Y, its law under P is that of
//! r - 1 Y times ((S - r) m + r y m)/S: one factor of another weight.
//!
//! **Error.** The masses of Y are sums of positive quadrature terms with relative error [`RELATIVE`]: it
//! enters every payoff as a factor, once per use. Convolutions are off by an absolute error, bounded by
//! [`circular_product`](numerics::lattice::power::circular_product), which no payoff (at most 1) can
//! raise: it is added, once per epoch. Places are off by a few units in the last place: W by
//! [`SHIFT`] in the exponent. So the ends are good to about 1e-9 in delta; below that the
//! positive route of `balls_and_bins.rs` takes over.

use super::balls_and_bins::{level, payoff};
use crate::Order;
use numerics::elementary::{exp, exp_m1, ln, ln_1p};
use numerics::lattice::gauss::{REACH, rule_for};
use numerics::lattice::ordered::{Lattice, Part, Sum, lump, mass_below, spread, sum};
use numerics::positive::Side;
use numerics::special::normal_sf;
use std::sync::OnceLock;

/// Relative error of a mass of Y: the Gaussian's exponent is at most 14^2/2, its place good to 60
/// units, and the rules have 12 nodes at most.
const RELATIVE: f64 = 2e-13;
/// Relative error of W by the rounding of places.
const SHIFT: f64 = 1e-12;
/// Spacing of the lattice of Y, in its standard deviations.
const SPACING: f64 = 0.0125;
/// Spacing of the lattice of ln W, in standard deviations of one epoch.
const LOG_SPACING: f64 = 0.005;
/// P beyond the largest Y, in standard deviations of its logarithm.
const LARGEST: f64 = 6.8;
/// Mass that each side of a window may lose.
const OUTSIDE: f64 = 1e-13;
/// The longest transform.
const LONGEST: usize = 1 << 18;
/// Cells of Y at most: a window has room for them and for the other batches.
const WIDEST: f64 = 150_000.0;
/// W below this is left out of the lattice of ln W; its mass is added to the upper end.
const FLOOR: f64 = 1e-3;

/// Equal epochs of `batches` batches, of which the first `seen` are run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epochs {
    pub(super) batches: u64,
    pub(super) seen: u64,
    pub(super) times: u64,
}

impl Epochs {
    /// W of a sum over the batches that are run.
    fn ratio(&self, sum: f64) -> f64 {
        ((self.batches - self.seen) as f64 + sum) / self.batches as f64
    }
}

/// The laws, each made when first asked for: a function of noise and epochs alone.
pub(super) struct ThrownLattice {
    noise_multiplier: f64,
    epochs: Vec<Epochs>,
    cells: OnceLock<Cells>,
    singles: [OnceLock<Option<Single>>; 2],
    sums: [OnceLock<Option<Vec<EpochLaw>>>; 2],
    laws: [OnceLock<Option<EndLaw>>; 4],
}

/// The law of Y in cells between multiples of the step: masses and means.
struct Cells {
    step: f64,
    atoms: Vec<(f64, f64)>,
    /// Mass and first moment beyond the last cell.
    beyond: (f64, f64),
}

/// The law of W over one of some equal epochs: masses under P.
struct EpochLaw {
    epochs: Epochs,
    sum: Sum,
    /// P mass that an upper end loses beyond the largest Y.
    lost: f64,
}

/// One Y on a lattice, under Q, and the P mass that its end loses.
struct Single {
    weights: Vec<f64>,
    lattice: Lattice,
    lost: f64,
}

/// The law of W over all epochs: masses under P for the remove order, under Q for the add order.
struct EndLaw {
    /// One over W.
    inverses: Vec<f64>,
    values: Vec<f64>,
    /// Of all payoffs that are at most 1.
    error: f64,
    /// What an upper end lacks besides.
    missing: f64,
    relative: f64,
}

impl ThrownLattice {
    pub(super) fn new(noise_multiplier: f64, epochs: Vec<Epochs>) -> Self {
        Self {
            noise_multiplier,
            epochs,
            cells: OnceLock::new(),
            singles: Default::default(),
            sums: Default::default(),
            laws: Default::default(),
        }
    }

    /// delta from one side, where the lattice is not too long.
    pub(super) fn end(&self, epsilon: f64, order: Order, side: Side) -> Option<f64> {
        let place = usize::from(side == Side::Upper) + 2 * usize::from(order == Order::Add);
        let law = self.laws[place].get_or_init(|| self.law(order, side)).as_ref()?;
        Some(law.end(epsilon, order, side))
    }

    /// The law of each kind of epoch.
    fn sums(&self, side: Side) -> Option<&[EpochLaw]> {
        let made = self.sums[usize::from(side == Side::Upper)].get_or_init(|| {
            let single = self.single(side)?;
            let places = single.lattice.places(single.weights.len());
            let one = |epochs: &Epochs| {
                // P mass of one Y that stands for its share of the missing batches too.
                let (rest, seen) = (epochs.batches - epochs.seen, epochs.seen as f64);
                let weight = |place: f64| (rest as f64 + seen * place) / epochs.batches as f64;
                let pairs = single.weights.iter().zip(&places);
                let biased: Vec<f64> = pairs.map(|(mass, place)| mass * weight(*place)).collect();
                let power = epochs.seen - 1;
                let q = Part { weights: &single.weights, lattice: single.lattice, power };
                let p = Part { weights: &biased, lattice: single.lattice, power: 1 };
                let sum = sum(&[q, p], OUTSIDE, LONGEST)?;
                Some(EpochLaw { epochs: *epochs, sum, lost: single.lost })
            };
            self.epochs.iter().map(one).collect()
        });
        made.as_deref()
    }

    fn law(&self, order: Order, side: Side) -> Option<EndLaw> {
        let sums = self.sums(side)?;
        let uses: f64 = self.epochs.iter().map(|e| e.seen as f64 * e.times as f64).sum();
        let relative = exp_m1(uses * RELATIVE) + 1e-12;
        if let [EpochLaw { epochs: epochs @ Epochs { times: 1, .. }, sum, lost }] = sums {
            let w = |index: usize| epochs.ratio(sum.lattice.place(index));
            let start = (0..sum.values.len()).find(|index| w(*index) > 0.0)?;
            let inverses: Vec<f64> =
                (start..sum.values.len()).map(|index| 1.0 / w(index)).collect();
            let mut values = sum.values[start..].to_vec();
            let under_q = self.below(order, side, epochs.seen, sum.lattice.place(start))?;
            let bounds = Bounds::of(sum, *lost, inverses[0], under_q);
            if order == Order::Add {
                for (value, inverse) in values.iter_mut().zip(&inverses) {
                    *value *= inverse;
                }
            }
            let Bounds { error, missing } = bounds;
            return Some(EndLaw { inverses, values, error, missing, relative });
        }
        self.product(sums, order, side, relative)
    }

    /// The law of the product over all epochs.
    fn product(
        &self,
        sums: &[EpochLaw],
        order: Order,
        side: Side,
        relative: f64,
    ) -> Option<EndLaw> {
        let variance = exp_m1(1.0 / (self.noise_multiplier * self.noise_multiplier));
        let most = sums.iter().map(|one| one.epochs.batches).max()?;
        let step = LOG_SPACING * ln_1p(variance / most as f64).sqrt();
        let (mut error, mut missing) = (0.0, 0.0);
        let mut laws = Vec::new();
        for EpochLaw { epochs, sum: found, lost } in sums {
            let w = |index: usize| epochs.ratio(found.lattice.place(index));
            let start = (0..found.values.len()).find(|index| w(*index) >= FLOOR)?;
            let first = (ln(w(start)) / step).floor() - 1.0;
            let last = (ln(w(found.values.len() - 1)) / step).ceil() + 1.0;
            let length = (last - first) as usize + 1;
            if length > LONGEST {
                return None;
            }
            let lattice = Lattice { first: first * step, step, geometric: true };
            let atom = |index: usize| (found.values[index] / w(index), w(index));
            let mut weights = match side {
                Side::Upper => spread((start..found.values.len()).map(atom), &lattice, length).0,
                Side::Lower => lump((start..found.values.len()).rev().map(atom), &lattice, length),
            };
            if order == Order::Remove {
                for (index, weight) in weights.iter_mut().enumerate() {
                    *weight *= lattice.place(index);
                }
            }
            let times = epochs.times as f64;
            let under_q = self.below(order, side, epochs.seen, found.lattice.place(start))?;
            let bounds = Bounds::of(found, *lost, 1.0 / w(start), under_q);
            error += times * bounds.error;
            missing += times * (bounds.missing + found.values[..start].iter().sum::<f64>());
            laws.push((weights, lattice, epochs.times));
        }
        let parts: Vec<Part<'_>> = laws
            .iter()
            .map(|(weights, lattice, power)| Part { weights, lattice: *lattice, power: *power })
            .collect();
        let found = sum(&parts, OUTSIDE, LONGEST)?;
        let inverses = (0..found.values.len()).map(|k| 1.0 / found.lattice.place(k)).collect();
        Some(EndLaw {
            inverses,
            error: exp_m1(error) + found.error,
            missing: missing + found.below + found.above,
            values: found.values,
            relative,
        })
    }

    /// For the add order: Q mass of a sum below a place at most, which P does not see.
    fn below(&self, order: Order, side: Side, batches: u64, place: f64) -> Option<Option<f64>> {
        if order == Order::Remove {
            return Some(None);
        }
        let single = self.single(side)?;
        let weights = &single.weights;
        let part = Part { weights, lattice: single.lattice, power: batches };
        Some(Some(mass_below(&[part], place)))
    }

    fn single(&self, side: Side) -> Option<&Single> {
        let place = usize::from(side == Side::Upper);
        self.singles[place].get_or_init(|| self.one(side)).as_ref()
    }

    /// One Y on a lattice.
    fn one(&self, side: Side) -> Option<Single> {
        let cells = self.cells.get_or_init(|| cells(self.noise_multiplier));
        let count = cells.atoms.len();
        if count == 0 {
            return None;
        }
        let (tail, moment) = cells.beyond;
        Some(match side {
            Side::Upper => {
                let lattice = Lattice { first: 0.0, step: cells.step, geometric: false };
                let atoms = cells.atoms.iter().copied();
                let (mut weights, _) = spread(atoms, &lattice, count + 1);
                weights[count] += tail;
                Single { weights, lattice, lost: moment * (1.0 + 1e-9) }
            }
            Side::Lower => {
                // A little to the left of the middles, where the means of falling densities are.
                let first = 0.48 * cells.step;
                let lattice = Lattice { first, step: cells.step, geometric: false };
                let weights = lump(cells.atoms.iter().rev().copied(), &lattice, count);
                Single { weights, lattice, lost: 0.0 }
            }
        })
    }
}

/// The errors of an epoch's law in one order.
struct Bounds {
    error: f64,
    missing: f64,
}

impl Bounds {
    /// P masses that are off by some amount in all are off by as much under Q, times the largest 1/W of
    /// the window; what is below the window is known under Q itself.
    fn of(sum: &Sum, lost: f64, largest_inverse: f64, below_under_q: Option<f64>) -> Self {
        match below_under_q {
            None => Self { error: sum.error, missing: lost + sum.below + sum.above },
            Some(below) => {
                let factor = largest_inverse.max(1.0) * (1.0 + 1e-12);
                Self { error: sum.error * factor, missing: below + sum.above * factor }
            }
        }
    }
}

impl EndLaw {
    fn end(&self, epsilon: f64, order: Order, side: Side) -> f64 {
        let sign = if side == Side::Upper { 1.0 } else { -1.0 };
        let level = level(epsilon - sign * SHIFT, side);
        let pairs = self.values.iter().zip(&self.inverses);
        let total: f64 = match order {
            Order::Remove => pairs.map(|(mass, inverse)| mass * payoff(level, *inverse)).sum(),
            Order::Add => {
                pairs.map(|(mass, inverse)| mass * (1.0 - level / inverse).max(0.0)).sum()
            }
        };
        // A sum of positive terms, each payoff off by two units.
        let relative = self.relative + f64::EPSILON * self.values.len() as f64;
        let error = self.error + 4.0 * f64::EPSILON;
        let exact = total * (1.0 + sign * relative) + sign * error;
        let exact = if side == Side::Upper { exact + self.missing } else { exact };
        exact.clamp(0.0, 1.0)
    }
}

fn cells(sigma: f64) -> Cells {
    let largest = exp(LARGEST / sigma + 0.5 / (sigma * sigma));
    // Little noise has a long tail: then wider cells.
    let step = (SPACING * exp_m1(1.0 / (sigma * sigma)).sqrt()).max(largest / WIDEST);
    let count = (largest / step).ceil();
    if !(count <= LONGEST as f64) {
        return Cells { step, atoms: Vec::new(), beyond: (0.0, 0.0) };
    }
    let edges: Vec<f64> = (0..=count as usize).map(|edge| edge as f64 * step).collect();
    let mut atoms = masses_and_means(&edges, sigma);
    let beyond = atoms.pop().unwrap_or((0.0, 0.0));
    Cells { step, atoms, beyond: (beyond.0, beyond.0 * beyond.1) }
}

/// Masses and means of Y = exp(g/sigma - 1/(2 sigma^2)) between edges that begin at 0, and beyond the
/// last, by positive quadrature: with x = sigma ln y + 1/(2 sigma), which is standard normal under Q.
pub(super) fn masses_and_means(edges: &[f64], sigma: f64) -> Vec<(f64, f64)> {
    const SCALE: f64 = 0.398_942_280_401_432_7;
    let normal = |y: f64| sigma * ln(y) + 0.5 / sigma;
    let mut atoms = Vec::with_capacity(edges.len());
    // Nothing is below -38 standard deviations.
    let mut from = -38.0_f64;
    for pair in edges.windows(2) {
        let (low, high) = (pair[0], pair[1]);
        let to = normal(high);
        let (mut mass, mut above) = (0.0, 0.0);
        let mut here = from;
        if low > 0.0 && (to - from) * (1.0 + from.abs().max(to.abs())) < SHORT && from < to {
            (mass, above) = short_cell(from, to, low, sigma);
            here = to;
        }
        while here < to {
            let farthest = here.abs().max(to.abs());
            let width = (to - here).min(2.0 * REACH / (1.0 + farthest));
            let (half, middle) = (0.5 * width, here + 0.5 * width);
            let (rule, _) = rule_for(half * (1.0 + farthest), 1e-22);
            let base = here - from;
            for (node, weight) in rule.nodes.iter().zip(&rule.weights) {
                let x = middle + half * node;
                let density = half * weight * exp(-0.5 * x * x);
                mass += density;
                // Y less the cell's lower edge, from that edge on: no cancellation.
                above += density
                    * if low == 0.0 {
                        exp((x - 0.5 / sigma) / sigma)
                    } else {
                        low * exp_m1((base + half * (1.0 + node)) / sigma)
                    };
            }
            here += width.max(1e-300);
        }
        let offset = if mass > 0.0 { (above / mass).clamp(0.0, high - low) } else { 0.0 };
        atoms.push((SCALE * mass, low + offset));
        from = to.max(from);
    }
    let last = edges.last().copied().unwrap_or(0.0);
    let far = normal(last);
    let (mass, moment) = (normal_sf(far), normal_sf(far - 1.0 / sigma));
    atoms.push((mass, if mass > 0.0 { (moment / mass).max(last) } else { last }));
    atoms
}

/// Cells that are this short (times one plus their distance) have one exponential in all.
const SHORT: f64 = 0.02;

/// Mass and moment above the lower edge of a short cell, as the long way has them: four nodes, and
/// series for what is small, whose remainders are below 1e-19 and 1e-17.
fn short_cell(from: f64, to: f64, low: f64, sigma: f64) -> (f64, f64) {
    let half = 0.5 * (to - from);
    let middle = from + half;
    let (rule, _) = rule_for((half * (1.0 + from.abs().max(to.abs()))).min(REACH), 1e-20);
    let (mut mass, mut above) = (0.0, 0.0);
    for (node, weight) in rule.nodes.iter().zip(&rule.weights) {
        let off = half * node;
        // exp(-(x^2 - middle^2)/2).
        let v = -off * (middle + 0.5 * off);
        let density = weight
            * (1.0
                + v * (1.0
                    + v / 2.0
                        * (1.0
                            + v / 3.0
                                * (1.0
                                    + v / 4.0
                                        * (1.0 + v / 5.0 * (1.0 + v / 6.0 * (1.0 + v / 7.0)))))));
        let t = half * (1.0 + node) / sigma;
        let rise = t
            * (1.0
                + t / 2.0
                    * (1.0
                        + t / 3.0
                            * (1.0
                                + t / 4.0 * (1.0 + t / 5.0 * (1.0 + t / 6.0 * (1.0 + t / 7.0))))));
        mass += density;
        above += density * rise;
    }
    let common = half * exp(-0.5 * middle * middle);
    (common * mass, common * low * above)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One batch per epoch is the Gaussian: both ends, both orders, one epoch and several.
    #[test]
    fn one_batch_is_the_gaussian() {
        use crate::Pair;
        for (sigma, times) in [(1.0, 1), (1.5, 3)] {
            let exact = crate::pairs::Gaussian::new((times as f64).sqrt() / sigma).unwrap();
            let found = ThrownLattice::new(sigma, vec![Epochs { batches: 1, seen: 1, times }]);
            for order in [Order::Remove, Order::Add] {
                for epsilon in [0.0, 1.0, 3.0] {
                    let truth = exact.delta(epsilon, order).unwrap().value;
                    let lower = found.end(epsilon, order, Side::Lower).unwrap();
                    let upper = found.end(epsilon, order, Side::Upper).unwrap();
                    assert!(lower <= truth && truth <= upper, "{lower} {truth} {upper}");
                    // One batch has W near 0, where masses under P say little of those under Q.
                    let close = order == Order::Add || upper - lower < 1e-3 * truth;
                    assert!(close, "{sigma} {times} {epsilon}: {lower} {truth} {upper}");
                }
            }
        }
    }

    /// Ten epochs of a hundred batches at noise 1: delta at epsilon 0.8 in both orders, by a Mellin
    /// contour in ball arithmetic (the table of references in the tests of this crate).
    #[test]
    fn ends_enclose_the_reference() {
        let found = ThrownLattice::new(1.0, vec![Epochs { batches: 100, seen: 100, times: 10 }]);
        for (order, truth) in
            [(Order::Remove, 0.006579120993740893), (Order::Add, 0.005255294524087500)]
        {
            let lower = found.end(0.8, order, Side::Lower).unwrap();
            let upper = found.end(0.8, order, Side::Upper).unwrap();
            assert!(lower <= truth && truth <= upper, "{order:?} {lower} {truth} {upper}");
            assert!(upper - lower < 1e-3 * truth, "{order:?} {lower} {truth} {upper}");
        }
    }

    /// A part of an epoch with one batch run is a Poisson step, and r of S lie between r - 1 and r + 1.
    #[test]
    fn parts_of_epochs_are_in_order() {
        use crate::Pair;
        let run = vocabulary::Run::builder().phase(1.2, 0.125, 1).build().unwrap();
        let poisson = crate::pairs::Composed::for_run(&run).unwrap();
        let part = |seen| ThrownLattice::new(1.2, vec![Epochs { batches: 8, seen, times: 1 }]);
        for order in [Order::Remove, Order::Add] {
            let truth = poisson.delta(0.3, order).unwrap().value;
            let ends =
                [Side::Lower, Side::Upper].map(|side| part(1).end(0.3, order, side).unwrap());
            assert!(ends[0] <= truth && truth <= ends[1], "{order:?} {truth} {ends:?}");
            assert!(ends[1] - ends[0] < 2e-3 * truth + 1e-6, "{order:?} {truth} {ends:?}");
            for seen in 2..=8 {
                let less = part(seen - 1).end(0.3, order, Side::Lower).unwrap();
                assert!(less <= part(seen).end(0.3, order, Side::Upper).unwrap(), "{seen}");
            }
        }
    }

    /// The masses of Y sum to one, and so do its means.
    #[test]
    fn cells_hold_everything() {
        for sigma in [0.8, 1.0, 4.0] {
            let edges: Vec<f64> = (0..5000).map(|edge| 0.01 * f64::from(edge)).collect();
            let atoms = masses_and_means(&edges, sigma);
            let mass: f64 = atoms.iter().map(|(mass, _)| mass).sum();
            let mean: f64 = atoms.iter().map(|(mass, mean)| mass * mean).sum();
            assert!((mass - 1.0).abs() < 1e-13 && (mean - 1.0).abs() < 1e-12, "{mass} {mean}");
        }
    }
}
