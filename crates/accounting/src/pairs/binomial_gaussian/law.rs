//! How often the record is in a batch: a binomial, or a sum of binomials of several phases.
//!
//! A sum of binomials with different rates has no formula; it is tabulated where its probability
//! is above e^-345 of the largest, by convolving such windows. All numbers are positive, so each
//! entry keeps its relative accuracy; what lies outside the window is bounded and reported.

use crate::AccountingError;
use numerics::elementary::{exp, ln};
use numerics::special::{Binomial, ROUND};

/// Probabilities below this (logarithm, relative to the largest) are left out of tables.
const DEPTH: f64 = 345.0;
/// Most multiplications a table may cost (about half a second).
const LARGEST_WORK: f64 = 1e9;

/// A log-concave law on smallest..=largest.
#[derive(Clone, Debug)]
pub(super) enum CountLaw {
    One(Binomial),
    Sum(CountTable),
}

/// Probabilities first..first+len.
#[derive(Clone, Debug)]
pub(super) struct CountTable {
    first: f64,
    /// ln P(k).
    logs: Vec<f64>,
    /// P(k+1)/P(k), one fewer.
    ratios: Vec<f64>,
    mean: f64,
    variance: f64,
    /// Bound on the relative error of each entry.
    error: f64,
    /// ln of a bound on the mass outside.
    outside: f64,
    /// ln P(0), exactly summed.
    log_none: f64,
}

impl CountLaw {
    /// `certain` sure uses plus the binomials (rate, draws); at least one binomial.
    ///
    /// # Errors
    /// `OutsideDomain` where a sum of several laws would be too large a table.
    pub(super) fn new(certain: u64, parts: &[(f64, u64)]) -> Result<Self, AccountingError> {
        let laws: Option<Vec<Binomial>> =
            parts.iter().map(|&(rate, draws)| Binomial::new(draws, rate)).collect();
        let laws = laws.filter(|laws| !laws.is_empty()).ok_or_else(|| {
            AccountingError::outside_domain(
                "a phase has no valid number of draws or rate".to_owned(),
            )
        })?;
        if let (0, [law]) = (certain, laws.as_slice()) {
            return Ok(CountLaw::One(*law));
        }
        CountTable::sum(certain, &laws).map(CountLaw::Sum)
    }

    pub(super) fn smallest(&self) -> f64 {
        match self {
            CountLaw::One(_) => 0.0,
            CountLaw::Sum(table) => table.first,
        }
    }

    pub(super) fn largest(&self) -> f64 {
        match self {
            CountLaw::One(law) => law.trials(),
            CountLaw::Sum(table) => table.first + table.ratios.len() as f64,
        }
    }

    pub(super) fn mean(&self) -> f64 {
        match self {
            CountLaw::One(law) => law.mean(),
            CountLaw::Sum(table) => table.mean,
        }
    }

    pub(super) fn variance(&self) -> f64 {
        match self {
            CountLaw::One(law) => law.variance(),
            CountLaw::Sum(table) => table.variance,
        }
    }

    /// P(k+1)/P(k), within 6 roundings apart from `entry_error`.
    #[inline]
    pub(super) fn ratio(&self, k: f64) -> f64 {
        match self {
            CountLaw::One(law) => law.ratio(k),
            CountLaw::Sum(table) => {
                table.ratios.get((k - table.first) as usize).copied().unwrap_or(0.0)
            }
        }
    }

    /// ln of the ratio; minus infinity at the end of the support.
    #[inline]
    pub(super) fn log_ratio(&self, k: f64) -> f64 {
        ln(self.ratio(k))
    }

    /// Relative error of P(k)/P(j) beyond what the rounding of the ratios between them explains.
    #[inline]
    pub(super) fn entry_error(&self) -> f64 {
        match self {
            CountLaw::One(_) => 0.0,
            CountLaw::Sum(table) => 2.0 * table.error,
        }
    }

    /// ln P(k) and a bound on its absolute error, for smallest <= k <= largest.
    pub(super) fn log_pmf(&self, k: f64) -> (f64, f64) {
        match self {
            CountLaw::One(law) => law.log_pmf(k),
            CountLaw::Sum(table) => {
                let value = table.logs.get((k - table.first) as usize).copied();
                let value = value.unwrap_or(f64::NEG_INFINITY);
                (value, table.error + 4.0 * ROUND * (1.0 + value.abs()))
            }
        }
    }

    /// ln P(0) and a bound on its absolute error.
    pub(super) fn log_none(&self) -> (f64, f64) {
        match self {
            CountLaw::One(law) => law.log_pmf(0.0),
            CountLaw::Sum(table) => (table.log_none, 8.0 * ROUND * table.log_none.abs().min(1e300)),
        }
    }

    /// ln of a bound on the mass outside smallest..=largest.
    #[inline]
    pub(super) fn outside(&self) -> f64 {
        match self {
            CountLaw::One(_) => f64::NEG_INFINITY,
            CountLaw::Sum(table) => table.outside,
        }
    }
}

/// A window of probabilities relative to its largest, and ln of that.
struct Window {
    first: f64,
    values: Vec<f64>,
    log_largest: f64,
    error: f64,
}

impl Window {
    fn of(law: &Binomial) -> Self {
        let mode = law.mean().floor().clamp(0.0, law.trials());
        let (log_largest, error) = law.log_pmf(mode);
        let least = exp(-DEPTH);
        let (mut below, mut above) = (Vec::new(), Vec::new());
        let (mut k, mut value) = (mode, 1.0);
        while k > 0.0 && value > least {
            k -= 1.0;
            value /= law.ratio(k);
            below.push(value);
        }
        let first = k;
        let (mut k, mut value) = (mode, 1.0);
        while k < law.trials() && value > least {
            value *= law.ratio(k);
            above.push(value);
            k += 1.0;
        }
        let steps = below.len().max(above.len()) as f64;
        below.reverse();
        below.push(1.0);
        below.extend(above);
        Self { first, values: below, log_largest, error: error + 8.0 * ROUND * (steps + 1.0) }
    }

    fn convolve(self, other: Self) -> Self {
        let (long, short) =
            if self.values.len() >= other.values.len() { (self, other) } else { (other, self) };
        let mut values = vec![0.0; long.values.len() + short.values.len() - 1];
        for (shift, weight) in short.values.iter().enumerate() {
            for (out, value) in values[shift..].iter_mut().zip(&long.values) {
                *out += weight * value;
            }
        }
        let terms = short.values.len() as f64;
        let largest = values.iter().copied().fold(0.0, f64::max);
        let keep = |value: &f64| *value > largest * exp(-DEPTH);
        let start = values.iter().position(keep).unwrap_or(0);
        let end = values.iter().rposition(keep).unwrap_or(0);
        let values: Vec<f64> = values[start..=end].iter().map(|value| value / largest).collect();
        Self {
            first: long.first + short.first + start as f64,
            values,
            log_largest: long.log_largest + short.log_largest + ln(largest),
            error: long.error + short.error + ROUND * (terms + 4.0),
        }
    }
}

impl CountTable {
    fn sum(certain: u64, laws: &[Binomial]) -> Result<Self, AccountingError> {
        let width = |law: &Binomial| {
            (2.2 * (2.0 * DEPTH * law.variance()).sqrt() + 2.0 * DEPTH).min(law.trials())
        };
        let mut total = 0.0;
        let mut work = 0.0;
        for law in laws {
            work += total * width(law);
            total += width(law);
        }
        if work > LARGEST_WORK {
            return Err(AccountingError::outside_domain(format!(
                "phases with {} different sample rates and so many steps need {work:.1e} operations for the law \
                 of the record's uses; give them one sample rate or fewer steps",
                laws.len()
            )));
        }
        let sum = laws.iter().map(Window::of).reduce(Window::convolve);
        let Some(Window { first, values, log_largest, error }) = sum else {
            return Err(AccountingError::outside_domain(
                "a run without phases has no law".to_owned(),
            ));
        };
        // Each window's two tails are geometric from e^-345 on, with a ratio no closer to 1 than
        // one part in the window's length.
        let outside = log_largest.max(0.0) - DEPTH + ln(8.0 * total * (laws.len() + 1) as f64);
        Ok(Self {
            first: certain as f64 + first,
            ratios: values.windows(2).map(|pair| pair[1] / pair[0]).collect(),
            logs: values.iter().map(|value| ln(*value) + log_largest).collect(),
            mean: certain as f64 + laws.iter().map(Binomial::mean).sum::<f64>(),
            variance: laws.iter().map(Binomial::variance).sum(),
            error,
            outside,
            log_none: if certain > 0 {
                f64::NEG_INFINITY
            } else {
                laws.iter().map(|law| law.log_pmf(0.0).0).sum()
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two binomials of one rate are one binomial: the table against Loader's form.
    #[test]
    fn sum_of_equal_rates_is_a_binomial() {
        let (one, two) = (Binomial::new(300, 0.02).unwrap(), Binomial::new(700, 0.02).unwrap());
        let both = Binomial::new(1000, 0.02).unwrap();
        let table = CountLaw::Sum(CountTable::sum(0, &[one, two]).unwrap());
        assert!((table.log_none().0 - both.log_pmf(0.0).0).abs() < 1e-14);
        for k in [0.0, 1.0, 20.0, 50.0, 100.0, 150.0] {
            let ((got, error), (want, slack)) = (table.log_pmf(k), both.log_pmf(k));
            assert!((got - want).abs() <= error + slack, "{k}: {got} {want} {error:e}");
            assert!(error < 1e-12);
        }
        let shifted = CountLaw::Sum(CountTable::sum(5, &[one, two]).unwrap());
        assert_eq!(shifted.log_pmf(25.0), table.log_pmf(20.0));
        assert_eq!(shifted.log_none().0, f64::NEG_INFINITY);
    }

    #[test]
    fn tables_of_many_operations_are_refused() {
        let law = |rate| Binomial::new(1_000_000_000, rate).unwrap();
        assert!(CountTable::sum(0, &[law(0.1), law(0.2)]).is_err());
    }
}
