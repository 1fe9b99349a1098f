//! Laws of positive numbers on few points, kept larger or smaller in convex order.
//!
//! A law X is smaller than Y in convex order if E f(X) <= E f(Y) for every convex f. Spreading a mass
//! between two neighbouring grid points, its mean kept, makes a law larger; lumping the mass of a cell
//! at the cell's mean makes it smaller. Sums and products of independent nonnegative numbers keep the
//! order. So does every chain of them, with a new grid after each: both ends hold for all convex f at
//! once, all terms are positive, and no transform is taken.
//!
//! Cost: one convolution of n and m points costs n m steps of a walk along the grid.

use crate::elementary::{exp, ln, sinh};

/// Which side of the truth a law is kept on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Larger in convex order, up to the mean that is lost beyond the last grid point.
    Upper,
    /// Smaller.
    Lower,
}

/// Masses at increasing nonnegative places.
#[derive(Clone, Debug, PartialEq)]
pub struct Positive {
    pub places: Vec<f64>,
    pub masses: Vec<f64>,
    /// Mean that was lost beyond the last points of grids (upper laws only).
    pub lost: f64,
    /// The longest grid that this law and its parts were put on.
    pub points: usize,
}

impl Positive {
    /// The law that is `place` for certain.
    pub fn certain(place: f64) -> Self {
        Self { places: vec![place], masses: vec![1.0], lost: 0.0, points: 1 }
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        self.places.iter().zip(&self.masses).map(|(place, mass)| place * mass).sum()
    }

    /// From cells: the mass and the first moment between neighbouring grid points, the last cell
    /// reaching from the last grid point to infinity. The grid starts at 0.
    pub fn from_cells(grid: &[f64], cells: &[(f64, f64)], side: Side) -> Self {
        let mut builder = Builder::new(grid, side);
        for (index, &(mass, moment)) in cells.iter().enumerate() {
            if mass > 0.0 {
                builder.put(index, mass, moment / mass);
            }
        }
        builder.finish()
    }

    /// The law of `combine(X, Y)`, rising in both, on a new grid that starts at 0: a sum, or a product
    /// of laws whose means are at most 1 (so that the means lost add up at most).
    pub fn combined(
        &self,
        other: &Self,
        grid: &[f64],
        side: Side,
        combine: impl Fn(f64, f64) -> f64,
    ) -> Self {
        let mut builder = Builder::new(grid, side);
        builder.lost = self.lost + other.lost;
        builder.points = self.points.max(other.points).max(grid.len());
        let same = std::ptr::eq(self, other);
        for (i, (&x, &mass)) in self.places.iter().zip(&self.masses).enumerate() {
            if i % 64 == 0 {
                crate::patience::look();
            }
            if mass == 0.0 {
                continue;
            }
            let mut cell = 0;
            let start = if same { i } else { 0 };
            for (j, (&y, &share)) in other.places.iter().zip(&other.masses).enumerate().skip(start)
            {
                let place = combine(x, y);
                while cell + 1 < grid.len() && grid[cell + 1] <= place {
                    cell += 1;
                }
                // Both orders of a pair at once.
                let factor = if same && j > i { 2.0 } else { 1.0 };
                builder.put(cell, factor * mass * share, place);
            }
        }
        builder.finish()
    }

    /// The law of a X + b.
    #[must_use]
    pub fn scaled(mut self, a: f64, b: f64) -> Self {
        self.places.iter_mut().for_each(|place| *place = a * *place + b);
        self.lost *= a;
        self
    }
}

struct Builder<'a> {
    grid: &'a [f64],
    side: Side,
    masses: Vec<f64>,
    moments: Vec<f64>,
    lost: f64,
    points: usize,
}

impl<'a> Builder<'a> {
    fn new(grid: &'a [f64], side: Side) -> Self {
        let moments = if side == Side::Lower { grid.len() } else { 0 };
        let masses = vec![0.0; grid.len()];
        Self { grid, side, masses, moments: vec![0.0; moments], lost: 0.0, points: grid.len() }
    }

    fn put(&mut self, cell: usize, mass: f64, place: f64) {
        match self.side {
            Side::Lower => {
                self.masses[cell] += mass;
                self.moments[cell] += mass * place;
            }
            Side::Upper if cell + 1 == self.grid.len() => {
                self.masses[cell] += mass;
                self.lost += mass * (place - self.grid[cell]).max(0.0);
            }
            Side::Upper => {
                let (low, high) = (self.grid[cell], self.grid[cell + 1]);
                let share = ((place - low) / (high - low)).clamp(0.0, 1.0);
                self.masses[cell] += mass * (1.0 - share);
                self.masses[cell + 1] += mass * share;
            }
        }
    }

    fn finish(self) -> Positive {
        match self.side {
            Side::Upper => {
                let (places, points) = (self.grid.to_vec(), self.points);
                Positive { places, masses: self.masses, lost: self.lost, points }
            }
            Side::Lower => {
                let (places, masses) = (Vec::new(), Vec::new());
                let mut law = Positive { places, masses, lost: 0.0, points: self.points };
                for (mass, moment) in self.masses.iter().zip(&self.moments) {
                    if *mass > 0.0 {
                        law.places.push(moment / mass);
                        law.masses.push(*mass);
                    }
                }
                law
            }
        }
    }
}

/// 0 and the points centre + scale sinh(j eta) between it and `last`.
pub fn sinh_grid(centre: f64, scale: f64, last: f64, eta: f64) -> Vec<f64> {
    let mut grid = vec![0.0];
    let mut j = -((centre / scale).asinh() / eta).floor() as i64;
    loop {
        let place = centre + scale * sinh(j as f64 * eta);
        j += 1;
        if place <= 1e-12 * centre {
            continue;
        }
        grid.push(place);
        if place >= last {
            return grid;
        }
    }
}

/// 0 and the points exp(scale sinh(j eta)) between two ends.
pub fn log_sinh_grid(scale: f64, first: f64, last: f64, eta: f64) -> Vec<f64> {
    let mut grid = vec![0.0];
    let low = ((ln(first) / scale).asinh() / eta).floor() as i64;
    let high = ((ln(last) / scale).asinh() / eta).ceil() as i64;
    grid.extend((low..=high).map(|j| exp(scale * sinh(j as f64 * eta))));
    grid
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two fair coins of 0 and 1 on a grid that misses the points: means are kept, and the ends
    /// enclose E max(X - 1, 0) = 1/4.
    #[test]
    fn ends_enclose_a_sum() {
        let coin =
            Positive { places: vec![0.0, 1.0], masses: vec![0.5, 0.5], lost: 0.0, points: 2 };
        let grid = [0.0, 0.7, 1.3, 1.9, 2.6];
        let payoff = |law: &Positive| -> f64 {
            law.places.iter().zip(&law.masses).map(|(x, m)| m * (x - 1.0).max(0.0)).sum()
        };
        let upper = coin.combined(&coin, &grid, Side::Upper, |a, b| a + b);
        let lower = coin.combined(&coin.clone(), &grid, Side::Lower, |a, b| a + b);
        assert!((upper.mean() - 1.0).abs() < 1e-15 && (lower.mean() - 1.0).abs() < 1e-15);
        assert!(payoff(&lower) <= 0.25 && 0.25 <= payoff(&upper));
        assert!(payoff(&upper) > 0.25 + 1e-3);
    }

    #[test]
    fn grids_rise_from_zero() {
        for grid in [sinh_grid(100.0, 4.6, 3000.0, 0.02), log_sinh_grid(0.3, 1e-3, 1e5, 0.02)] {
            assert_eq!(grid[0], 0.0);
            assert!(grid.windows(2).all(|pair| pair[0] < pair[1]), "{grid:?}");
        }
    }
}
