//! How often the record is in a batch: a binomial, or a sum of binomials of several phases.
//!
//! A sum of binomials with different rates has no formula. Any of its probabilities is a Fourier inversion after a tilt
//! ([`BinomialSum`]), some microseconds each. Where the whole middle costs less than that, it is a table: windows of the binomials, convolved.
//! All numbers are positive, so each entry keeps its relative accuracy, but for what lies outside of the windows.

use crate::AccountingError;
use numerics::elementary::{exp, ln};
use numerics::special::{Binomial, BinomialSum, ROUND};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Probabilities below this (logarithm, relative to the largest) are left out of windows.
const DEPTH: f64 = 345.0;
/// Entries of a table are above this: what is left out of windows is next to nothing beside them.
const KEPT: f64 = 270.0;
/// Most multiplications a table may cost, for each part (half a millisecond).
const LARGEST_WORK: f64 = 2e6;

/// A log-concave law on smallest..=largest.
#[derive(Clone, Debug)]
pub(super) enum CountLaw {
    One(Binomial),
    Sum(Arc<Several>),
}

/// Sure uses, and binomials with different rates.
#[derive(Debug)]
pub(super) struct Several {
    certain: f64,
    uses: BinomialSum,
    table: Option<CountTable>,
    log_none: (f64, f64),
    /// Counts that were inverted: neighbouring thresholds want the same ones.
    inverted: Mutex<HashMap<u64, (f64, f64)>>,
}

/// Probabilities first..=last.
#[derive(Clone, Debug)]
struct CountTable {
    first: f64,
    last: f64,
    /// ln P(k).
    logs: Vec<f64>,
    /// P(k+1)/P(k), one fewer.
    ratios: Vec<f64>,
    /// Bound on the relative error of each entry.
    error: f64,
}

impl CountLaw {
    /// `certain` sure uses plus the binomials (rate, draws); at least one binomial.
    ///
    /// # Errors
    /// `OutsideDomain` where there is none, or one that is no law.
    pub(super) fn new(certain: u64, parts: &[(f64, u64)]) -> Result<Self, AccountingError> {
        let laws: Option<Vec<Binomial>> =
            parts.iter().map(|&(rate, draws)| Binomial::new(draws, rate)).collect();
        let uses = laws.as_deref().and_then(BinomialSum::new).ok_or_else(|| {
            AccountingError::outside_domain(
                "a phase has no valid number of draws or rate".to_owned(),
            )
        })?;
        if let (0, [law]) = (certain, uses.parts()) {
            return Ok(CountLaw::One(*law));
        }
        let certain = certain as f64;
        let table = CountTable::of(certain, uses.parts());
        let log_none = if certain > 0.0 { (f64::NEG_INFINITY, 0.0) } else { uses.log_pmf(0.0) };
        let inverted = Mutex::default();
        Ok(CountLaw::Sum(Arc::new(Several { certain, uses, table, log_none, inverted })))
    }

    /// Uses that are sure, and the binomials of the others.
    pub(super) fn parts(&self) -> (f64, &[Binomial]) {
        match self {
            CountLaw::One(law) => (0.0, std::slice::from_ref(law)),
            CountLaw::Sum(several) => (several.certain, several.uses.parts()),
        }
    }

    pub(super) fn smallest(&self) -> f64 {
        match self {
            CountLaw::One(_) => 0.0,
            CountLaw::Sum(several) => several.certain,
        }
    }

    pub(super) fn largest(&self) -> f64 {
        match self {
            CountLaw::One(law) => law.trials(),
            CountLaw::Sum(several) => several.certain + several.uses.trials(),
        }
    }

    pub(super) fn mean(&self) -> f64 {
        match self {
            CountLaw::One(law) => law.mean(),
            CountLaw::Sum(several) => several.certain + several.uses.mean(),
        }
    }

    pub(super) fn variance(&self) -> f64 {
        match self {
            CountLaw::One(law) => law.variance(),
            CountLaw::Sum(several) => several.uses.variance(),
        }
    }

    /// The counts whose neighbours' ratios are known beforehand, if `k` is one of them.
    #[inline]
    pub(super) fn ratios_around(&self, k: f64) -> Option<(f64, f64)> {
        let range = match self {
            CountLaw::One(law) => (0.0, law.trials()),
            CountLaw::Sum(several) => several.table.as_ref().map(|t| (t.first, t.last))?,
        };
        (range.0 <= k && k <= range.1).then_some(range)
    }

    /// P(k+1)/P(k) of two counts in a range of [`CountLaw::ratios_around`], within 6 roundings apart from `entry_error`.
    #[inline]
    pub(super) fn ratio(&self, k: f64) -> f64 {
        match self {
            CountLaw::One(law) => law.ratio(k),
            CountLaw::Sum(several) => {
                let table = several.table.as_ref();
                let ratio = table.and_then(|t| t.ratios.get((k - t.first) as usize));
                ratio.copied().unwrap_or(0.0)
            }
        }
    }

    /// About ln of the ratio, for smallest <= k < largest: where the largest term is.
    #[inline]
    pub(super) fn log_ratio(&self, k: f64) -> f64 {
        match self {
            CountLaw::One(law) => ln(law.ratio(k)),
            CountLaw::Sum(several) => several.uses.log_ratio(k - several.certain),
        }
    }

    /// The k with the largest P(k) e^(-(y-k)^2 / 2v), or one beside it, where there is a short way to it.
    pub(super) fn peak_with(&self, y: f64, v: f64) -> Option<f64> {
        match self {
            CountLaw::One(_) => None,
            CountLaw::Sum(several) => {
                Some(several.certain + several.uses.peak_with(y - several.certain, v))
            }
        }
    }

    /// Relative error of P(k)/P(j) beyond what the rounding of the ratios between them explains.
    #[inline]
    pub(super) fn entry_error(&self) -> f64 {
        match self {
            CountLaw::One(_) => 0.0,
            CountLaw::Sum(several) => several.table.as_ref().map_or(0.0, |t| 2.0 * t.error),
        }
    }

    /// ln P(k) and a bound on its absolute error, for smallest <= k <= largest.
    pub(super) fn log_pmf(&self, k: f64) -> (f64, f64) {
        match self {
            CountLaw::One(law) => law.log_pmf(k),
            CountLaw::Sum(several) => match &several.table {
                Some(table) if table.first <= k && k <= table.last => {
                    let value = table.logs.get((k - table.first) as usize).copied();
                    let value = value.unwrap_or(f64::NEG_INFINITY);
                    (value, 1.1 * table.error + 4.0 * ROUND * (1.0 + value.abs()))
                }
                _ => several.invert(k - several.certain),
            },
        }
    }

    /// ln P(0) and a bound on its absolute error.
    pub(super) fn log_none(&self) -> (f64, f64) {
        match self {
            CountLaw::One(law) => law.log_pmf(0.0),
            CountLaw::Sum(several) => several.log_none,
        }
    }
}

impl Several {
    /// ln P of this many uses that are not sure: the same number whether it is kept or not.
    fn invert(&self, uses: f64) -> (f64, f64) {
        let known = self.inverted.lock().ok().and_then(|kept| kept.get(&uses.to_bits()).copied());
        known.unwrap_or_else(|| {
            let found = self.uses.log_pmf(uses);
            if let Ok(mut kept) = self.inverted.lock() {
                kept.insert(uses.to_bits(), found);
            }
            found
        })
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
    /// The middle of the law, where it costs little.
    fn of(certain: f64, laws: &[Binomial]) -> Option<Self> {
        let width = |law: &Binomial| {
            (2.2 * (2.0 * DEPTH * law.variance()).sqrt() + 2.0 * DEPTH).min(law.trials())
        };
        let (mut total, mut work) = (0.0, 0.0);
        for law in laws {
            work += total * width(law);
            total += width(law);
        }
        if work > LARGEST_WORK * laws.len() as f64 {
            return None;
        }
        let windows: Vec<Window> = laws.iter().map(Window::of).collect();
        let lengths: usize = windows.iter().map(|window| window.values.len()).sum();
        let Window { first, values, log_largest, error } =
            windows.into_iter().reduce(Window::convolve)?;
        // Laws are log-concave, so the tails of each window, and of each sum of some of them, are geometric from e^-345 of its largest
        // value on, with a ratio no closer to 1 than one part in its length: at most that length times e^-345 on either side.
        let outside = ln(4.0 * lengths as f64 * laws.len() as f64) - DEPTH;
        let kept = |value: &f64| *value > exp(-KEPT);
        let start = values.iter().position(kept)?;
        let end = values.iter().rposition(kept)?;
        let values = values.get(start..=end)?;
        let first = certain + first + start as f64;
        Some(Self {
            first,
            last: first + (end - start) as f64,
            ratios: values.windows(2).map(|pair| pair[1] / pair[0]).collect(),
            logs: values.iter().map(|value| ln(*value) + log_largest).collect(),
            error: error + exp(outside + KEPT - log_largest),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two binomials of one rate are one binomial: table and inversion against Loader's form, and against each other.
    #[test]
    fn sum_of_equal_rates_is_a_binomial() {
        let both = Binomial::new(1000, 0.02).unwrap();
        let parts = [(0.02, 300), (0.02, 700)];
        let table = CountLaw::new(0, &parts).unwrap();
        let (first, last) = table.ratios_around(20.0).unwrap();
        assert!(first == 0.0 && last > 150.0 && last < 400.0, "{first} {last}");
        assert!((table.log_none().0 - both.log_pmf(0.0).0).abs() < 1e-14);
        for k in 0..=1000 {
            let k = f64::from(k);
            let ((got, error), (want, slack)) = (table.log_pmf(k), both.log_pmf(k));
            assert!((got - want).abs() <= error + slack, "{k}: {got} {want} {error:e}");
            // 60 roundings of theta (k - mean), which is at most three times the logarithm, and 24 of that.
            assert!(error < 2.5e-14 * want.abs().max(100.0), "{k}: {error:e}");
        }
        let shifted = CountLaw::new(5, &parts).unwrap();
        assert_eq!(shifted.log_pmf(25.0), table.log_pmf(20.0));
        assert_eq!(shifted.log_pmf(805.0), table.log_pmf(800.0));
        assert_eq!(shifted.log_none().0, f64::NEG_INFINITY);
    }

    /// Different rates: the two ways to one number.
    #[test]
    fn tables_and_inversions_agree() {
        let parts = [(0.02, 3000), (0.3, 100), (1.0 - 1e-6, 40)];
        let law = CountLaw::new(0, &parts).unwrap();
        let (first, last) = law.ratios_around(120.0).unwrap();
        let CountLaw::Sum(several) = &law else { panic!("three rates") };
        let mut k = first;
        while k <= last {
            let ((got, error), (want, slack)) = (law.log_pmf(k), several.uses.log_pmf(k));
            assert!((got - want).abs() <= error + slack, "{k}: {got} {want} {error:e} {slack:e}");
            k += 1.0;
        }
        assert!(last > 300.0, "{last}");
    }

    #[test]
    fn tables_of_many_operations_are_not_made() {
        let law = CountLaw::new(0, &[(0.1, 1_000_000_000), (0.2, 1_000_000_000)]).unwrap();
        assert_eq!(law.ratios_around(3e8), None);
        assert!(law.log_pmf(3e8).1 < 1e-10);
    }
}
