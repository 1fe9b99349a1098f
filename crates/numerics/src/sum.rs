//! A sum of many numbers with a few roundings, whatever their count.

/// A running sum and what its roundings have lost (Knuth's two-sum: exact for any two doubles that
/// do not overflow). The total errs by at most u |sum| + (n u)^2 times the sum of the moduli,
/// u = 2^-53 (Ogita, Rump and Oishi 2005, proposition 4.5).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    sum: f64,
    rest: f64,
}

impl Sum {
    #[inline]
    pub(crate) fn add(&mut self, x: f64) {
        let sum = self.sum + x;
        let other = sum - self.sum;
        self.rest += (self.sum - (sum - other)) + (x - other);
        self.sum = sum;
    }

    pub(crate) fn total(&self) -> f64 {
        self.sum + self.rest
    }
}

#[cfg(test)]
mod tests {
    use super::Sum;

    #[test]
    fn small_terms_beside_large_ones_are_not_lost() {
        let mut sum = Sum::default();
        sum.add(1.0);
        for _ in 0..60_000 {
            sum.add(1e-17);
        }
        sum.add(-1.0);
        assert!((sum.total() / 6e-13 - 1.0).abs() < 1e-12, "{:e}", sum.total());
    }
}
