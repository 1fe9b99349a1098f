//! The composed loss on the lattice at one tilt, and what it says about delta.
//!
//! A lattice of n points that holds the loss of T steps has a spacing of about
//! 20 sqrt(T)/n standard deviations of one step: too coarse for one step when T is large. So
//! steps are composed in blocks of 1024, 1024^2, ... on lattices that grow coarser with the
//! blocks; the relative error then does not grow with T.

use super::block::{Block, Product};
use super::plan::{self, Plan};
use super::step::{Step, UNIT};
use crate::AccountingError;
use numerics::elementary::{exp, exp_m1, ln, ln_1p};
use vocabulary::{Difficulty, NotCertified};

/// Which side of the truth a composition stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Upper,
    Lower,
}

/// Steps in a block, and blocks in a longer block.
const BLOCK: u64 = 1024;

/// Tilted weights of the total loss on a window of lattice points, with all error terms.
#[derive(Clone, Debug)]
pub(super) struct Composition {
    end: End,
    tilt: f64,
    /// Lattice point i has loss base + i * spacing, known to `loss_error`.
    base: f64,
    spacing: f64,
    loss_error: f64,
    product: Product,
}

/// One phase: the long block with its power, and the remainder.
struct Phase {
    block: Block,
    power: u64,
    rest: Option<Block>,
}

fn width(plan: &Plan, points: usize) -> f64 {
    (plan.high - plan.low) / (0.96 * points as f64)
}

impl Phase {
    fn new(
        step: &Step,
        tilt: f64,
        spacing: f64,
        end: End,
        outside: f64,
        points: usize,
    ) -> Result<Self, AccountingError> {
        let repeated = |repeats: u64| [step.repeated(repeats)];
        // Lengths of the blocks, and by how much each lattice is coarser than the one before.
        let mut lengths = vec![1_u64];
        while lengths.last().is_some_and(|length| step.repeats / length > BLOCK) {
            lengths.push(lengths[lengths.len() - 1] * BLOCK);
        }
        let levels = lengths.len() - 1;
        let mut factors = vec![1_i64; levels];
        let mut fine = spacing;
        for level in (0..levels).rev() {
            let needed = width(&plan::window(&repeated(lengths[level + 1]), tilt, outside), points);
            factors[level] = ((fine / needed).floor().min(1e6) as i64).max(1);
            fine /= factors[level] as f64;
        }
        let mut block = Block::of_step(step, tilt, fine, end, points)?;
        let mut rest: Option<Block> = None;
        for level in 0..levels {
            let digit = step.repeats / lengths[level] % BLOCK;
            let below = step.repeats % lengths[level + 1];
            if below > 0 {
                let plan = plan::window(&repeated(below), tilt, outside);
                let mut parts: Vec<(&Block, u64)> = Vec::new();
                if digit > 0 {
                    parts.push((&block, digit));
                }
                parts.extend(rest.as_ref().map(|rest| (rest, 1)));
                rest = Some(Product::new(&parts, &plan, points).coarsened(
                    factors[level],
                    tilt,
                    end,
                )?);
            }
            let plan = plan::window(&repeated(lengths[level + 1]), tilt, outside);
            block = Product::new(&[(&block, BLOCK)], &plan, points).coarsened(
                factors[level],
                tilt,
                end,
            )?;
        }
        Ok(Self { block, power: step.repeats / lengths[levels], rest })
    }
}

impl Composition {
    /// Composes the steps on `points` lattice points.
    pub(super) fn new(plan: &Plan, points: usize, end: End) -> Result<Self, AccountingError> {
        let spacing = width(plan, points);
        if !(spacing.is_finite() && spacing > 0.0) {
            return Err(NotCertified::OneRoute(Difficulty::NoLattice).into());
        }
        // A block's stray mass counts once for every block of its kind.
        let repeats: f64 = plan.steps.iter().map(|step| step.repeats as f64).sum();
        let outside = plan.outside - ln((repeats / BLOCK as f64).max(1.0));
        let phases = plan
            .steps
            .iter()
            .map(|step| Phase::new(step, plan.tilt, spacing, end, outside, points))
            .collect::<Result<Vec<_>, _>>()?;
        let mut blocks: Vec<(&Block, u64)> = Vec::new();
        for phase in &phases {
            blocks.push((&phase.block, phase.power));
            blocks.extend(phase.rest.as_ref().map(|rest| (rest, 1)));
        }
        let size: f64 =
            blocks.iter().map(|(block, power)| (block.base * *power as f64).abs()).sum();
        let product = Product::new(&blocks, plan, points);
        let start = product.first as f64 * product.spacing;
        let loss_error = 16.0 * UNIT * (size + start.abs() + points as f64 * spacing);
        Ok(Self {
            end,
            tilt: plan.tilt,
            base: product.base + start,
            spacing: product.spacing,
            loss_error,
            product,
        })
    }

    /// sup over d of e^{-c d}(1 - e^{-d}): what a stray unit of tilted mass can add.
    fn largest_payoff(&self) -> f64 {
        let c = self.tilt;
        exp(c * ln(c) - (1.0 + c) * ln_1p(c)) * (1.0 + 1e-12)
    }

    /// A bound on delta(epsilon) on this composition's side, as a logarithm.
    pub(super) fn log_delta(&self, epsilon: f64) -> f64 {
        let c = self.tilt;
        let shift = self.loss_error + 2.0 * UNIT * epsilon.abs();
        let entry_error = self.product.entry_error;
        let (sign, floor) = match self.end {
            End::Upper => (1.0, entry_error),
            End::Lower => (-1.0, 0.0),
        };
        let weights = &self.product.weights;
        let start = (((epsilon - self.base) / self.spacing).floor() - 1.0).max(0.0);
        let mut sum = 0.0;
        for (i, weight) in weights.iter().enumerate().skip(start.min(1e9) as usize) {
            let over = self.base + i as f64 * self.spacing - epsilon;
            let payoff = -exp_m1(-(over + sign * shift));
            if payoff > 0.0 {
                sum += (weight + sign * entry_error).max(floor) * payoff * exp(-c * over);
            }
        }
        let sum = sum + sign * self.product.stray * self.largest_payoff();
        let points = weights.len() as f64;
        let reach = self.base.abs() + points * self.spacing + epsilon.abs();
        let log_error = self.product.log_scale_error
            + 1.01 * c * shift
            + 4.0 * UNIT * (points + c * reach + self.product.log_scale.abs());
        if sum <= 0.0 {
            f64::NEG_INFINITY
        } else {
            ln(sum) + self.product.log_scale - c * epsilon + sign * log_error
        }
    }

    /// For the lower pair: a bound on the supremum of 1 - delta(epsilon) - e^epsilon fpr, and
    /// where it is. Deltas at all lattice points by a recursion of positive terms, from the top.
    pub(super) fn largest_miss(&self, fpr: f64) -> (f64, f64) {
        debug_assert_eq!(self.end, End::Lower);
        let (c, h) = (self.tilt, self.spacing);
        let (fall, step) = (exp(-c * h), -exp_m1(-h));
        let weights = &self.product.weights;
        let count = weights.len() as f64;
        let stray = self.product.stray * self.largest_payoff();
        let reach = self.base.abs() + count * h;
        let relative = self.product.log_scale_error
            + UNIT * (16.0 * count + 4.0 * c * reach + 4.0 * self.product.log_scale.abs())
            + 1.01 * c * self.loss_error;
        let (mut mass, mut excess) = (0.0, 0.0);
        // Beyond the last lattice point delta is at least 0.
        let top = self.base + (count - 1.0) * h - self.loss_error;
        let mut best = (1.0 - exp(top) * fpr, top);
        for i in (0..weights.len()).rev() {
            let loss = self.base + i as f64 * h;
            let low_loss = exp(loss - self.loss_error);
            let log = self.product.log_scale - c * loss - relative;
            let delta = exp(ln((excess - stray).max(0.0)) + log).max(1.0 - low_loss).max(0.0);
            let miss = 1.0 - delta - low_loss * fpr * (1.0 - 1e-15);
            if miss > best.0 {
                best = (miss, loss);
            }
            mass += (weights[i] - self.product.entry_error).max(0.0);
            excess = fall * (mass * step + (1.0 - step) * excess);
            mass *= fall;
        }
        // Below the first one delta is at least 1 - e^epsilon.
        let bottom = exp(self.base - h) * (1.0 + 1e-12);
        if bottom > best.0 { (bottom, self.base) } else { best }
    }
}
