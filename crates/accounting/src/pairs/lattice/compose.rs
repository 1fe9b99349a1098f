//! The composed loss on the lattice at one tilt, and what it says about delta.

use super::discretise::{Atoms, Grid, Tilt, lower, upper};
use super::plan::Plan;
use super::step::{Step, UNIT};
use crate::AccountingError;
use numerics::lattice::power::{Factor, circular_product};

/// Which side of the truth a composition stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Upper,
    Lower,
}

/// Tilted weights of the total loss on a window of lattice points, with all error terms.
#[derive(Clone, Debug)]
pub(super) struct Composition {
    end: End,
    tilt: f64,
    /// Lattice point i has loss base + i * spacing, known to `loss_error`.
    base: f64,
    spacing: f64,
    loss_error: f64,
    weights: Vec<f64>,
    /// Every weight is at most this far off.
    entry_error: f64,
    /// Tilted mass that may be missing or wrapped around.
    stray: f64,
    /// log of the factor that undoes tilt and normalisation at loss 0, and its error.
    log_scale: f64,
    log_scale_error: f64,
}

fn accurate_sum(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut carry) = (0.0_f64, 0.0_f64);
    for value in values {
        let next = sum + value;
        carry += if sum.abs() >= value.abs() { (sum - next) + value } else { (value - next) + sum };
        sum = next;
    }
    sum + carry
}

impl Composition {
    /// Composes the steps on `points` lattice points.
    pub fn new(
        steps: &[Step],
        plan: &Plan,
        points: usize,
        end: End,
    ) -> Result<Self, AccountingError> {
        let spacing = (plan.high - plan.low) / (0.96 * points as f64);
        if !(spacing.is_finite() && spacing > 0.0) {
            return Err(AccountingError::NotCertified("the losses do not fit on a lattice".into()));
        }
        let repeats_total: f64 = steps.iter().map(|step| step.repeats as f64).sum();
        let mut parts: Vec<Atoms> = Vec::with_capacity(steps.len());
        let (mut log_scale, mut log_scale_error) = (0.0, 0.0);
        let (mut base, mut size, mut stray_log) = (0.0, 0.0, 0.0);
        let mut centres = Vec::with_capacity(steps.len());
        for step in steps {
            let repeats = step.repeats as f64;
            let edges = step.edges(plan.tilt, -48.0 - repeats_total.ln());
            let range = step.loss(edges.1).value - step.loss(edges.0).value;
            if !(range / spacing < 8.0 * points as f64) {
                return Err(AccountingError::NotCertified(format!(
                    "one step spreads over {:.0} lattice points, more than fit",
                    range / spacing
                )));
            }
            let tilt = Tilt { slope: plan.tilt, norm: step.cumulant(plan.tilt).value };
            let anchor = step.infimum.or(step.supremum).unwrap_or(0.0);
            let mut atoms = match end {
                End::Upper => upper(step, Grid { anchor, spacing }, tilt, edges),
                End::Lower => lower(step, spacing, anchor, tilt, edges),
            };
            let mass = accurate_sum(atoms.weights.iter().copied());
            if !(mass > 0.5 && mass < 2.0) {
                return Err(AccountingError::NotCertified(format!(
                    "one step keeps {mass:.3} of its mass on the lattice"
                )));
            }
            let mean: f64 =
                atoms.weights.iter().enumerate().map(|(i, w)| i as f64 * w).sum::<f64>() / mass;
            atoms.weights.iter_mut().for_each(|w| *w /= mass);
            stray_log += repeats * (atoms.dropped / mass).ln_1p();
            log_scale += repeats * (mass.ln() + tilt.norm);
            log_scale_error += repeats * UNIT * (8.0 + 4.0 * tilt.norm.abs());
            base += repeats * atoms.grid.anchor;
            size += (repeats * atoms.grid.anchor).abs();
            centres.push(atoms.first + mean.round() as i64);
            parts.push(atoms);
        }
        let factors: Vec<Factor> = parts
            .iter()
            .zip(steps)
            .zip(&centres)
            .map(|((atoms, step), centre)| Factor {
                weights: &atoms.weights,
                first: atoms.first - centre,
                power: step.repeats,
                error: 4.0 * UNIT,
            })
            .collect();
        let product = circular_product(points, &factors);
        let centre: i128 =
            steps.iter().zip(&centres).map(|(s, c)| i128::from(s.repeats) * i128::from(*c)).sum();
        // Window in lattice points, counted from the centre.
        let middle = 0.5 * (plan.low + plan.high);
        let first = ((middle - base) / spacing).round() as i128 - (points / 2) as i128 - centre;
        let weights: Vec<f64> = (0..points as i128)
            .map(|i| product.values[(first + i).rem_euclid(points as i128) as usize])
            .collect();
        let wrapped = outside(steps, &parts, &centres, plan, spacing, first as f64, points);
        drop(parts);
        let start = (centre + first) as f64 * spacing;
        let loss_error = 8.0 * UNIT * (size + start.abs() + points as f64 * spacing);
        let stray = wrapped + if end == End::Upper { stray_log.exp_m1() } else { 0.0 };
        Ok(Self {
            end,
            tilt: plan.tilt,
            base: base + start,
            spacing,
            loss_error,
            weights,
            entry_error: product.error,
            stray: stray * (1.0 + 1e-6),
            log_scale,
            log_scale_error: log_scale_error + 1e-15,
        })
    }

    /// sup over d of e^{-c d}(1 - e^{-d}): what a stray unit of tilted mass can add.
    fn largest_payoff(&self) -> f64 {
        let c = self.tilt;
        (c * c.ln() - (1.0 + c) * c.ln_1p()).exp() * (1.0 + 1e-12)
    }

    /// A bound on delta(epsilon) on this composition's side, as a logarithm.
    pub fn log_delta(&self, epsilon: f64) -> f64 {
        let c = self.tilt;
        let shift = self.loss_error + 2.0 * UNIT * epsilon.abs();
        let (sign, entry) = match self.end {
            End::Upper => (1.0, self.entry_error),
            End::Lower => (-1.0, -self.entry_error),
        };
        let start = (((epsilon - self.base) / self.spacing).floor() - 1.0).max(0.0);
        let mut sum = 0.0;
        if start < self.weights.len() as f64 {
            let start = start as usize;
            for (i, weight) in self.weights.iter().enumerate().skip(start) {
                let over = self.base + i as f64 * self.spacing - epsilon;
                let payoff = -(-(over + sign * shift)).exp_m1();
                if payoff > 0.0 {
                    sum += (weight + entry).max(if entry > 0.0 { entry } else { 0.0 })
                        * payoff
                        * (-c * over).exp();
                }
            }
        }
        let points = self.weights.len() as f64;
        let relative = self.log_scale_error
            + c * shift * 1.01
            + 4.0
                * UNIT
                * (points + c * epsilon.abs() + c * (self.base.abs() + points * self.spacing));
        let log_factor = self.log_scale - c * epsilon;
        let log_error = relative + 4.0 * UNIT * (self.log_scale.abs() + (c * epsilon).abs());
        let sum = sum + sign * self.stray * self.largest_payoff();
        if sum <= 0.0 { f64::NEG_INFINITY } else { sum.ln() + log_factor + sign * log_error }
    }
}

/// Chernoff bound on the tilted mass outside the window.
fn outside(
    steps: &[Step],
    parts: &[Atoms],
    centres: &[i64],
    plan: &Plan,
    spacing: f64,
    first: f64,
    points: usize,
) -> f64 {
    let beyond = |rate: f64, edge: f64| {
        let mut log = -rate * spacing * edge;
        for ((step, atoms), centre) in steps.iter().zip(parts).zip(centres) {
            let offset = (atoms.first - centre) as f64;
            // log of a mean of exponentials, around its largest term.
            let exponent = |i: usize| rate * spacing * (offset + i as f64);
            let top = atoms
                .weights
                .iter()
                .enumerate()
                .filter(|(_, w)| **w > 0.0)
                .map(|(i, w)| exponent(i) + w.ln())
                .fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = atoms
                .weights
                .iter()
                .enumerate()
                .map(|(i, w)| if *w > 0.0 { (exponent(i) + w.ln() - top).exp() } else { 0.0 })
                .sum();
            let size = top.abs() + sum.ln().abs() + rate * spacing * offset.abs();
            let count = atoms.weights.len() as f64;
            log += step.repeats as f64 * (top + sum.ln() + UNIT * (8.0 + count + 8.0 * size));
        }
        (log + 1e-12 * log.abs()).exp()
    };
    beyond(plan.high_rate, first + points as f64) + beyond(-plan.low_rate, first - 1.0)
}
