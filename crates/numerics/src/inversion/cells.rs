//! A law in cells of W = P/Q between neighbouring points e^{kh}: Q mass and mean of each.
//!
//! W rises along a strand, so that a cell is an interval of x (two, where it falls first) whose mass and moment are
//! integrals of Gaussian mixtures: sums of positive terms by Gauss-Legendre rules ([`crate::lattice::gauss`]). A mirrored strand
//! has, at 1/W, the moment for its mass and the mass for its moment.
//!
//! *Rounding.* Ends of cells are solutions of ln W(x) = kh, good to a few units of kh and of the exponents,
//! and so are means. So the cells are those of a law whose ln W differs from the true one by at most
//! [`InCells::shift`], with masses off by [`InCells::relative`].

use super::law::{Law, Strand};
use crate::elementary::{exp, exp_m1, ln_1p};
use crate::lattice::gauss::{REACH, rule_for};
use crate::mixture::MixtureRatio;
use crate::special::{normal_cdf, normal_sf};

const UNIT: f64 = f64::EPSILON / 2.0;
const INVERSE_ROOT_TWO_PI: f64 = 0.398_942_280_401_432_7;

/// Mass under Q and first moment of W.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    pub mass: f64,
    pub moment: f64,
}

impl Cell {
    fn add(&mut self, other: Self) {
        self.mass += other.mass;
        self.moment += other.moment;
    }

    fn mirrored(self) -> Self {
        Self { mass: self.moment, moment: self.mass }
    }
}

/// A law in cells.
#[derive(Clone, Debug)]
pub struct InCells {
    /// Spacing of ln W.
    pub step: f64,
    /// Cells from e^{(k-n)h} to e^{(k-n+1)h}, k = 0 to 2n - 1.
    pub cells: Vec<Cell>,
    /// At W = 1.
    pub atom: f64,
    /// W below the first cell and above the last.
    pub below: Cell,
    pub above: Cell,
    /// Bounds on the relative error of masses, and on the error of ln W.
    pub relative: f64,
    pub shift: f64,
}

impl Law {
    /// ln W where x is `sigmas` beyond the largest centre: beyond it there is no more P than
    /// that many standard deviations leave.
    pub fn far_loss(&self, sigmas: f64) -> f64 {
        let far = |strand: &Strand| strand.pair.log_ratio(strand.pair.reach() + sigmas);
        self.strands.iter().map(far).fold(0.0, f64::max)
    }

    /// ln W is nowhere below this.
    pub fn least_loss(&self) -> f64 {
        let least = |strand: &Strand| match (strand.mirror, strand.from.is_finite()) {
            (true, _) => f64::NEG_INFINITY,
            (false, true) => 0.0,
            (false, false) => strand.pair.infimum(),
        };
        let least = self.strands.iter().map(least).fold(0.0, f64::min);
        // W is at least one less the weights, each off by its error.
        least - 4.0 * (self.weight_error + f64::EPSILON) * exp(-least)
    }

    /// The smallest slope of ln W in x at W = 1: how narrow the law is there.
    pub fn slope_at_one(&self) -> f64 {
        let slope = |strand: &Strand| {
            let x = if strand.from.is_finite() { strand.from } else { strand.pair.inverse(0.0) };
            let (p, q) = strand.pair.posterior_means(x);
            p - q
        };
        self.strands.iter().map(slope).fold(f64::INFINITY, f64::min)
    }

    /// How much of a composition is at the atom.
    pub fn atom(&self) -> f64 {
        self.atom
    }

    /// The law in 2n cells of ln W of this width about 0.
    pub fn in_cells(&self, step: f64, n: usize) -> InCells {
        let mut found = InCells {
            step,
            cells: vec![Cell::default(); 2 * n],
            atom: self.atom,
            below: Cell::default(),
            above: Cell::default(),
            relative: 0.0,
            shift: 0.0,
        };
        for strand in &self.strands {
            found.add(strand, n);
        }
        found.relative += 2.0 * self.weight_error;
        found.shift += 2.0 * self.weight_error;
        found
    }
}

/// e^(-x^2/2) is 0 in double precision beyond this x.
const VANISHED: f64 = 39.0;

impl InCells {
    fn add(&mut self, strand: &Strand, n: usize) {
        if strand.pair.turn().is_finite() {
            return self.add_turned(strand, n);
        }
        let pair = &strand.pair;
        let (mut from, first) = if strand.from.is_finite() {
            (strand.from, n)
        } else {
            let start = pair.inverse(-(n as f64) * self.step);
            let below = strand.between(f64::NEG_INFINITY, start);
            self.below.add(below);
            (start, 0)
        };
        for k in first..2 * n {
            if k % 1024 == 0 {
                crate::patience::look();
            }
            let level = (k + 1) as f64 * self.step - n as f64 * self.step;
            let to = place(pair, level, from).max(from);
            let cell = strand.between(from, to);
            self.cells[k].add(cell);
            if strand.mirror {
                self.cells[2 * n - 1 - k].add(cell.mirrored());
            }
            from = to;
        }
        let above = strand.between(from, f64::INFINITY);
        self.above.add(above);
        if strand.mirror {
            self.below.add(above.mirrored());
        }
        self.round(pair, from.abs().max(strand.from.abs().min(40.0)), n);
    }

    /// A strand whose W falls before it rises: a cell is an interval on either side of the turn.
    fn add_turned(&mut self, strand: &Strand, n: usize) {
        let level = |k: usize| k as f64 * self.step - n as f64 * self.step;
        let (mut before, mut after) = strand.pair.crossings(level(0));
        let below = strand.between(before, after);
        let mut farthest = before.abs().max(after.abs());
        for k in 0..2 * n {
            if k % 1024 == 0 {
                crate::patience::look();
            }
            let (left, right) = strand.pair.crossings(level(k + 1));
            let (left, right) = (left.min(before), right.max(after));
            self.cells[k].add(strand.between(left, before));
            self.cells[k].add(strand.between(after, right));
            if left.is_finite() {
                farthest = farthest.max(left.abs().min(VANISHED));
            }
            (before, after) = (left, right);
        }
        self.below.add(below);
        self.above.add(strand.between(after, f64::INFINITY));
        self.round(&strand.pair, farthest.max(after.abs()), n);
    }

    /// What rounding does to the cells of a strand that ends at `far`.
    fn round(&mut self, pair: &MixtureRatio, far: f64, n: usize) {
        let (x, reach) = (far + pair.reach(), pair.reach());
        let size = 16.0 + n as f64 * self.step + x * reach;
        self.shift = self.shift.max(16.0 * UNIT * size);
        self.relative = self.relative.max(16.0 * UNIT * (size + x * x));
    }
}

/// x with ln W(x) = level, near a place where it is smaller.
fn place(pair: &MixtureRatio, level: f64, near: f64) -> f64 {
    if let (true, [one]) = (pair.one_sided(), pair.numerator()) {
        // W = 1 + q (e^{mu x - mu^2/2} - 1).
        let part = exp_m1(level) / one.weight;
        if part <= -1.0 {
            return f64::NEG_INFINITY;
        }
        return ln_1p(part) / one.centre + 0.5 * one.centre;
    }
    if level <= pair.infimum() {
        return f64::NEG_INFINITY;
    }
    let mut x = near;
    for _ in 0..8 {
        if !x.is_finite() {
            break;
        }
        let seen = pair.logs_and_means(x);
        let off = level - (seen.numerator - seen.denominator);
        if off.abs() <= 4.0 * UNIT * (1.0 + level.abs()) {
            return x;
        }
        x += (off / (seen.means.0 - seen.means.1).max(1e-12)).clamp(-2.0, 2.0);
    }
    pair.inverse(level)
}

impl Strand {
    /// Mass and moment of the strand between two places.
    fn between(&self, from: f64, to: f64) -> Cell {
        if from >= to {
            return Cell::default();
        }
        let mixture = |of_p: bool, share: &dyn Fn(f64) -> f64| -> f64 {
            let each = self.pair.with_zero(of_p);
            each.map(|one| one.weight * share(one.centre)).sum::<f64>() * self.weight
        };
        let both = |share: &dyn Fn(f64) -> f64| Cell {
            mass: mixture(false, share),
            moment: mixture(true, share),
        };
        if from == f64::NEG_INFINITY {
            return both(&|centre| normal_cdf(to - centre));
        }
        if to == f64::INFINITY {
            return both(&|centre| normal_sf(from - centre));
        }
        let mut cell = Cell::default();
        let reach = self.pair.reach();
        // Further than this from all centres every density is 0 in double precision. A cell may reach out to 1e5 and
        // more where the noise is large, and panels become narrow there.
        let (mut here, to) = (from.max(-reach - VANISHED), to.min(reach + VANISHED));
        while here < to {
            let distance = 1.0 + here.abs().max(to.min(here + 1.0).abs()) + reach;
            let width = (to - here).min(2.0 * REACH / distance);
            let (half, middle) = (0.5 * width, here + 0.5 * width);
            let (rule, _) = rule_for((half * distance).min(REACH), 1e-18);
            for (node, weight) in rule.nodes.iter().zip(&rule.weights) {
                let x = middle + half * node;
                let share = self.weight * INVERSE_ROOT_TWO_PI * half * weight;
                let middle_law = exp(-0.5 * x * x);
                let density = |centre: f64| match centre {
                    0.0 => middle_law,
                    // One exponential serves all, as long as it does not underflow.
                    _ if x * x < 1200.0 => middle_law * exp(centre * (x - 0.5 * centre)),
                    _ => exp(-0.5 * (x - centre) * (x - centre)),
                };
                let side = |of_p: bool| -> f64 {
                    self.pair.with_zero(of_p).map(|one| one.weight * density(one.centre)).sum()
                };
                cell.add(Cell { mass: share * side(false), moment: share * side(true) });
            }
            here = if width < to - here { here + width } else { to };
        }
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mixture::Component;

    fn laws() -> Vec<Law> {
        let step = |weight: f64, centre: f64| vec![Component { weight, centre }];
        let poisson = MixtureRatio::new(1.0, step(0.05, 0.5), step(0.05, -0.5));
        vec![
            Law::symmetric(&[(0.01, 2.0)], 0.0),
            Law::symmetric(&[(0.3, 0.5), (0.02, 1.0)], 0.0),
            Law::of_pair(MixtureRatio::new(1.0, step(0.1, 1.0), Vec::new())),
            Law::of_pair(poisson.clone()),
            Law::of_pair(poisson).mixed(Law::symmetric(&[(0.04, 1.0)], 0.0), 0.3, 0.0),
            Law::of_pair(MixtureRatio::turned(0.01, 0.5)),
            Law::of_pair(MixtureRatio::turned(0.3, 1.5)),
        ]
    }

    /// Mass 1 and mean 1 in all, and means inside their cells.
    #[test]
    fn cells_hold_everything() {
        for law in laws() {
            let n = 3000;
            let found = law.in_cells(0.002, n);
            let all = found.cells.iter().chain([&found.below, &found.above]);
            let (mass, moment) = all.fold((found.atom, found.atom), |sum, cell| {
                (sum.0 + cell.mass, sum.1 + cell.moment)
            });
            assert!((mass - 1.0).abs() < 1e-13 && (moment - 1.0).abs() < 1e-13, "{mass} {moment}");
            for (k, cell) in found.cells.iter().enumerate().filter(|(_, cell)| cell.mass > 0.0) {
                let log = (cell.moment / cell.mass).ln() / 0.002 + n as f64 - k as f64;
                assert!((-1e-9..1.0 + 1e-9).contains(&log), "{k}: {log}");
            }
        }
    }

    /// Much noise and a tiny rate: the first cell reaches out to 1e7 deviations, where there is nothing to sum.
    #[test]
    fn a_cell_far_beyond_all_mass_costs_nothing() {
        let law = Law::symmetric(&[(1e-7, 1e-6)], 0.0);
        let found = law.in_cells(0.002, 100);
        let mass: f64 =
            found.cells.iter().chain([&found.below, &found.above]).map(|c| c.mass).sum();
        assert!((mass + found.atom - 1.0).abs() < 1e-13, "{mass} {}", found.atom);
    }

    /// The payoff above a corner of the cells against the closed form of one step.
    #[test]
    fn cells_give_one_step() {
        let (q, mu) = (0.01, 2.0);
        let n = 4000;
        let found = Law::symmetric(&[(q, mu)], 0.0).in_cells(0.002, n);
        for k in [1, 300, 1500] {
            let g = (0.002 * f64::from(k)).exp();
            let cells = found.cells[n + k as usize..].iter().chain([&found.above]);
            let payoff: f64 = cells.map(|cell| cell.moment - g * cell.mass).sum();
            // q H_{g'}(N(mu) || N(0)), g' = 1 + (g-1)/q.
            let inner = 1.0 + (g - 1.0) / q;
            let x = inner.ln() / mu;
            let exact = q * (normal_cdf(0.5 * mu - x) - inner * normal_cdf(-0.5 * mu - x));
            assert!((payoff / exact - 1.0).abs() < 1e-10, "{k}: {payoff} {exact}");
        }
    }
}
