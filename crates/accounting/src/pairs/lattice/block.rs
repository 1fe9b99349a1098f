//! A block of steps on a lattice, products of blocks, and coarser lattices for longer blocks.

use super::balance::{Cell, Cut, dominated};
use super::compose::End;
use super::discretise::{Grid, Tilt, lower, upper};
use super::plan::Plan;
use super::step::{Step, UNIT};
use crate::AccountingError;
use numerics::elementary::{exp, exp_m1, ln, ln_1p};
use numerics::lattice::power::{Factor, circular_product};
use vocabulary::NotCertified;

/// Tilted and normalised weights of a block's loss: point k has loss base + k * spacing.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub base: f64,
    pub spacing: f64,
    pub first: i64,
    pub weights: Vec<f64>,
    /// log of the factor that undoes tilt and normalisation at loss 0, and its error.
    pub log_scale: f64,
    pub log_scale_error: f64,
    /// Tilted mass that may be missing (upper) or too much (lower).
    pub stray: f64,
}

/// A product of blocks before anything is rounded to a side.
#[derive(Clone, Debug)]
pub(super) struct Product {
    pub base: f64,
    pub spacing: f64,
    pub first: i64,
    pub weights: Vec<f64>,
    /// Every weight is at most this far off.
    pub entry_error: f64,
    pub log_scale: f64,
    pub log_scale_error: f64,
    pub stray: f64,
}

fn accurate_sum(values: &[f64]) -> f64 {
    let (mut sum, mut carry) = (0.0_f64, 0.0_f64);
    for &value in values {
        let next = sum + value;
        carry += if sum.abs() >= value.abs() { (sum - next) + value } else { (value - next) + sum };
        sum = next;
    }
    sum + carry
}

impl Block {
    /// One step.
    pub(super) fn of_step(
        step: &Step,
        slope: f64,
        spacing: f64,
        end: End,
        points: usize,
    ) -> Result<Self, AccountingError> {
        let kept = step.kept.expect("the plan truncates every step");
        let edges = (kept.low, kept.high);
        let range = (step.loss(edges.1).value - step.loss(edges.0).value) / spacing;
        if !(range < 8.0 * points as f64) {
            return Err(NotCertified::Spread { points: range }.into());
        }
        let tilt = Tilt { slope, norm: step.cumulant(slope).value };
        let anchor = step.infimum.or(step.supremum).unwrap_or(0.0);
        let atoms = match end {
            End::Upper => upper(step, Grid { anchor, spacing }, tilt, kept),
            End::Lower => lower(step, spacing, anchor, tilt, edges),
        };
        Self {
            base: atoms.grid.anchor,
            spacing,
            first: atoms.first,
            weights: atoms.weights,
            log_scale: tilt.norm,
            log_scale_error: 0.0,
            stray: atoms.dropped,
        }
        .normalised()
    }

    /// Divides by the mass and trims zeros.
    fn normalised(mut self) -> Result<Self, AccountingError> {
        let mass = accurate_sum(&self.weights);
        if !(mass > 0.1 && mass < 10.0) {
            return Err(NotCertified::LostMass { mass }.into());
        }
        let start = self.weights.iter().position(|w| *w > 0.0).unwrap_or(0);
        self.weights.drain(..start);
        self.first += start as i64;
        while self.weights.last() == Some(&0.0) {
            self.weights.pop();
        }
        self.weights.iter_mut().for_each(|w| *w /= mass);
        self.stray /= mass;
        self.log_scale += ln(mass);
        self.log_scale_error += UNIT * (8.0 + 4.0 * self.log_scale.abs());
        Ok(self)
    }
}

impl Product {
    /// The product of powers of blocks, all of one spacing, on a window of `points` points.
    pub(super) fn new(blocks: &[(&Block, u64)], plan: &Plan, points: usize) -> Self {
        let spacing = blocks[0].0.spacing;
        let centres: Vec<i64> = blocks
            .iter()
            .map(|(block, _)| {
                let weighted = block.weights.iter().enumerate().map(|(i, w)| i as f64 * w);
                block.first + weighted.sum::<f64>().round() as i64
            })
            .collect();
        let factors: Vec<Factor> = blocks
            .iter()
            .zip(&centres)
            .map(|((block, power), centre)| Factor {
                weights: &block.weights,
                first: block.first - centre,
                power: *power,
                error: 4.0 * UNIT,
            })
            .collect();
        let product = circular_product(points, &factors);
        let sum_over = |part: &dyn Fn(&Block) -> f64| -> f64 {
            blocks.iter().map(|(block, power)| *power as f64 * part(block)).sum()
        };
        let base = sum_over(&|block| block.base);
        let powers = blocks.iter().map(|(_, power)| i128::from(*power));
        let centre: i128 = powers.zip(&centres).map(|(power, c)| power * i128::from(*c)).sum();
        // Where the window begins, counted from the centre.
        let middle = 0.5 * (plan.low + plan.high);
        let first = ((middle - base) / spacing).round() as i128 - (points / 2) as i128 - centre;
        let weights = (0..points as i128)
            .map(|i| product.values[(first + i).rem_euclid(points as i128) as usize])
            .collect();
        let wrapped = outside(blocks, &centres, plan, first as f64, points);
        let missing = exp_m1(sum_over(&|block| ln_1p(block.stray)));
        Self {
            base,
            spacing,
            first: (centre + first) as i64,
            weights,
            entry_error: product.error,
            log_scale: sum_over(&|block| block.log_scale),
            log_scale_error: sum_over(&|block| {
                block.log_scale_error + 2.0 * UNIT * block.log_scale.abs()
            }) + 1e-15,
            stray: (wrapped + missing) * (1.0 + 1e-6),
        }
    }

    /// The product as a block on a lattice `factor` times as coarse, on the given side.
    pub(super) fn coarsened(
        mut self,
        factor: i64,
        tilt: f64,
        end: End,
    ) -> Result<Block, AccountingError> {
        // The lower side takes the error off every weight. The upper side counts it as stray mass,
        // and weights that are hardly more than error with it: spread over the window they would
        // spoil the bound on what lies outside the next one.
        let error = self.entry_error;
        for weight in &mut self.weights {
            match end {
                End::Lower => *weight = (*weight - error).max(0.0),
                End::Upper if *weight > 4.0 * error => self.stray += error,
                End::Upper => {
                    self.stray += weight.max(0.0) + error;
                    *weight = 0.0;
                }
            }
        }
        let (first, weights) = if factor == 1 {
            (self.first, self.weights)
        } else {
            let (first, cells) = self.cells(factor, tilt);
            let wide = factor as f64 * self.spacing;
            let weights = match end {
                End::Lower => dominated(&cells, wide, tilt, Cut::None).0,
                End::Upper => {
                    let lift = exp(tilt * wide) * (1.0 + (8.0 + 4.0 * tilt * wide) * UNIT);
                    let mut weights = vec![0.0; cells.len() + 1];
                    for (k, cell) in cells.iter().enumerate() {
                        weights[k] += (cell.low + cell.low_error) * (1.0 + 4.0 * UNIT);
                        weights[k + 1] += (cell.high + cell.high_error) * lift;
                    }
                    weights
                }
            };
            (first, weights)
        };
        Block {
            base: self.base,
            spacing: self.spacing * factor as f64,
            first,
            weights,
            log_scale: self.log_scale,
            log_scale_error: self.log_scale_error,
            stray: self.stray,
        }
        .normalised()
    }

    /// Connect-the-dots sums over the coarse cells; lattice point 0 stays lattice point 0.
    fn cells(&self, factor: i64, tilt: f64) -> (i64, Vec<Cell>) {
        let h = self.spacing;
        let wide = factor as f64 * h;
        // Splits of a unit of mass i fine points above the bottom of its cell, in the bottom's units.
        let splits: Vec<(f64, f64)> = (0..factor)
            .map(|i| {
                let above = i as f64 * h;
                let units = exp(-tilt * above);
                let low = exp_m1((factor - i) as f64 * h) / exp_m1(wide);
                let high = exp_m1(-above) / exp_m1(-wide);
                (low * units, high * units)
            })
            .collect();
        let relative = (24.0 + 6.0 * tilt.abs() * wide) * UNIT;
        let first = self.first.div_euclid(factor);
        let last = (self.first + self.weights.len() as i64 - 1).div_euclid(factor);
        let half = factor / 2;
        let cells = (first..=last)
            .map(|k| {
                let mut parts = [Cell::default(), Cell::default()];
                for i in 0..factor {
                    let at = k * factor + i - self.first;
                    let Some(weight) = usize::try_from(at).ok().and_then(|at| self.weights.get(at))
                    else {
                        continue;
                    };
                    let part = &mut parts[usize::from(i >= half)];
                    part.low += weight * splits[i as usize].0;
                    part.high += weight * splits[i as usize].1;
                }
                for part in &mut parts {
                    part.low_error = relative * part.low;
                    part.high_error = relative * part.high;
                }
                let [mut cell, above] = parts;
                cell.add(above);
                cell.bound_gap(&above, half as f64 * h, wide);
                cell
            })
            .collect();
        (first, cells)
    }
}

/// Chernoff bound on the tilted mass outside the window.
fn outside(
    blocks: &[(&Block, u64)],
    centres: &[i64],
    plan: &Plan,
    first: f64,
    points: usize,
) -> f64 {
    let spacing = blocks[0].0.spacing;
    let beyond = |rate: f64, edge: f64| {
        let mut log = -rate * spacing * edge;
        for ((block, power), centre) in blocks.iter().zip(centres) {
            let offset = (block.first - centre) as f64;
            // log of a mean of exponentials, around its largest term.
            let exponent = |i: usize, w: f64| rate * spacing * (offset + i as f64) + ln(w);
            let terms = || block.weights.iter().enumerate().filter(|(_, w)| **w > 0.0);
            let top = terms().map(|(i, w)| exponent(i, *w)).fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = terms().map(|(i, w)| exp(exponent(i, *w) - top)).sum();
            let count = block.weights.len() as f64;
            let size = top.abs() + ln(sum).abs() + rate.abs() * spacing * (offset.abs() + count);
            log += *power as f64 * (top + ln(sum) + UNIT * (8.0 + count + 8.0 * size));
        }
        exp(log + 1e-12 * log.abs())
    };
    beyond(plan.high_rate, first + points as f64) + beyond(-plan.low_rate, first - 1.0)
}
