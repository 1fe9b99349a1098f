//! The share of right guesses, with its interval, and what Bayes security allows.

use formats::csv::CsvTable;
use numerics::beta::{clopper_pearson_lower, clopper_pearson_upper};

/// How often an attacker was right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    pub right: u64,
    pub guesses: u64,
    pub value: f64,
    /// Ends of a two-sided interval.
    pub lower: f64,
    pub upper: f64,
    pub confidence: f64,
}

impl Accuracy {
    /// Clopper and Pearson's interval. Candidates take turns, so hits are independent with a rate for
    /// each candidate; their sum spreads no more than a binomial one with the mean rate (Hoeffding
    /// 1956), and the interval covers it.
    pub fn new(right: u64, guesses: u64, confidence: f64) -> Self {
        let level = 0.5 * (1.0 - confidence);
        Self {
            right,
            guesses,
            value: right as f64 / guesses.max(1) as f64,
            lower: clopper_pearson_lower(right, guesses, level),
            upper: clopper_pearson_upper(right, guesses, level),
            confidence,
        }
    }

    /// Reads the columns `secret` and `guess` of a game's table.
    pub fn of_table(text: &str, confidence: f64) -> Option<Self> {
        let table = CsvTable::read(text).ok()?;
        let (secret, guess) = (table.column("secret")?, table.column("guess")?);
        let (mut right, mut guesses) = (0, 0);
        for (_, cells) in table.rows() {
            right += u64::from(cells.get(secret)? == cells.get(guess)?);
            guesses += 1;
        }
        Some(Self::new(right, guesses, confidence))
    }
}

/// The largest share of right guesses among `candidates` equally likely ones that a Bayes security
/// allows: 1 - beta (1 - 1/M), by the definition of Bayes security.
///
/// ```
/// assert_eq!(attacks::attribute::accuracy_bound(0.9, 2), 0.55);
/// ```
pub fn accuracy_bound(bayes_security: f64, candidates: usize) -> f64 {
    1.0 - bayes_security * (1.0 - 1.0 / candidates as f64)
}
