//! The gradient sensitivity of one record: how far apart its clipped gradients are for the
//! candidate values of the secret attribute.
//!
//! Exact: all pairs, |A|^2 inner products. Approximate: twice the largest distance from the
//! centroid, |A| distances; an **upper bound** on the diameter (triangle inequality), so a lower
//! bound on Bayes security, the safe side. (The paper calls it a lower bound.)

use super::GradientPair;
use numerics::elementary::{exp, powi};

/// Gram matrix of a record's clipped gradients, one for each candidate value.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidates {
    size: usize,
    gram: Vec<f64>,
}

impl Candidates {
    /// Clips each gradient to `clip_norm` and takes all inner products, in double precision.
    pub fn clipped<T: Copy + Into<f64>>(gradients: &[&[T]], clip_norm: f64) -> Self {
        let size = gradients.len();
        let dot = |a: &[T], b: &[T]| -> f64 {
            a.iter().zip(b).map(|(x, y)| (*x).into() * (*y).into()).sum()
        };
        let factors: Vec<f64> = gradients
            .iter()
            .map(|gradient| (clip_norm / dot(gradient, gradient).sqrt()).min(1.0))
            .collect();
        let mut gram = vec![0.0; size * size];
        for i in 0..size {
            for j in 0..=i {
                let value = factors[i] * factors[j] * dot(gradients[i], gradients[j]);
                gram[i * size + j] = value;
                gram[j * size + i] = value;
            }
        }
        Self { size, gram }
    }

    /// Inner products of gradients that are clipped already: `size` x `size`, symmetric.
    ///
    /// # Panics
    /// If there are not as many numbers.
    pub fn of_gram(size: usize, gram: Vec<f64>) -> Self {
        assert_eq!(gram.len(), size * size, "extent of a Gram matrix");
        Self { size, gram }
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        self.gram[i * self.size + j]
    }

    fn pair(&self, (i, j): (usize, usize)) -> GradientPair {
        GradientPair {
            norm_a: self.at(i, i).max(0.0).sqrt(),
            norm_b: self.at(j, j).max(0.0).sqrt(),
            inner: self.at(i, j),
        }
    }

    fn best(&self, value: impl Fn(usize, usize) -> f64) -> Option<GradientPair> {
        let mut best = None;
        let mut most = f64::NEG_INFINITY;
        for i in 0..self.size {
            for j in 0..i {
                let found = value(i, j);
                if found > most {
                    (best, most) = (Some((i, j)), found);
                }
            }
        }
        best.map(|pair| self.pair(pair))
    }

    /// The pair farthest apart: R of the paper.
    pub fn farthest(&self) -> Option<GradientPair> {
        self.best(|i, j| self.at(i, i) + self.at(j, j) - 2.0 * self.at(i, j))
    }

    /// The pair with the largest K at this noise; `scale` is noise multiplier times clip norm.
    pub fn most_telling(&self, scale: f64) -> Option<GradientPair> {
        let gain = powi(scale, -2);
        let own: Vec<f64> = (0..self.size).map(|i| exp(gain * self.at(i, i))).collect();
        // K up to rounding, which can only exchange pairs that are alike.
        self.best(|i, j| own[i] + own[j] - 2.0 * exp(gain * self.at(i, j)))
    }

    /// Twice the largest distance from the centroid: at least the diameter, at most twice it.
    pub fn approximate_diameter(&self) -> f64 {
        let n = self.size as f64;
        let total: f64 = self.gram.iter().sum::<f64>() / (n * n);
        let farthest = (0..self.size)
            .map(|i| {
                let row: f64 = self.gram[i * self.size..(i + 1) * self.size].iter().sum();
                self.gram[i * self.size + i] - 2.0 * row / n + total
            })
            .fold(0.0, f64::max);
        2.0 * farthest.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diameters_of_a_triangle() {
        // After clipping to 1: (1,0), (0,1), (0.3,0).
        let gradients: [&[f32]; 3] = [&[5.0, 0.0], &[0.0, 2.0], &[0.3, 0.0]];
        let candidates = Candidates::clipped(&gradients, 1.0);
        let farthest = candidates.farthest().unwrap();
        assert!((farthest.distance() - 2f64.sqrt()).abs() < 1e-7);
        let rough = candidates.approximate_diameter();
        assert!(rough >= farthest.distance() && rough <= 2.0 * farthest.distance());
        let telling = candidates.most_telling(1.0).unwrap();
        assert!(telling.kernel(1.0) >= farthest.kernel(1.0));
        assert!(Candidates::clipped::<f64>(&[&[1.0]], 1.0).farthest().is_none());
        let same = Candidates::of_gram(2, vec![0.25, 0.1, 0.1, 0.5]).farthest().unwrap();
        assert!((same.distance() - 0.55f64.sqrt()).abs() < 1e-15);
    }
}
