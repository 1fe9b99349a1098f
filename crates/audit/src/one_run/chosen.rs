//! Guesses whose strategy other canaries chose: `holdout` and `k-fold`.
//!
//! The parts are a function of the scores ([`crate::split`]), and so is the strategy, together with the bits of those
//! who choose. Whether that is paid for depends on delta.
//!
//! **Delta 0.** Given the scores and the bits of the choosers, a guess about another canary is right with probability at most
//! e^epsilon / (1 + e^epsilon), whatever came before. So the binomial tail is a p-value whatever was chosen.
//!
//! **Delta > 0.** Given the scores y and the bits of the choosers, the right guesses are dominated by B + F(y), where F counts canaries whose
//! bits are told, and E F <= 2 m delta for all m canaries together (Steinke, Nasr and Jagielski 2023, Theorem 5.2). Nothing less
//! may be paid: a mechanism that tells bits can choose its scores such that the told canaries alone count, and such that the choosers prefer a strategy.
//! With r guesses and the bar v that the strategy has, the error is at most
//! E[P(B_r >= v) + F max_i P(v - i <= B_r < v) / i], where r and v depend on y. It is at most the level if the first term is at most half of
//! it for every r, and 2 m delta times the second one, too. So a value is shown where both halves hold, each on its
//! own. The larger one rises with epsilon as long as the binomial tail is below a quarter, so what is shown for one epsilon is shown for every smaller one.
//!
//! The theorem for the Gaussian family (f-DP) has no such form: its error is not a sum of what the scores decide. There a strategy may not be
//! chosen by scores, and both rules are refused.

use super::OneRunStatistic;
use super::epsilon_delta::{largest, one_run_terms};
use super::strategies::{Guesses, Strategy};
use crate::AuditError;

/// How guesses are judged whose strategy others chose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen {
    /// All canaries, also those that choose.
    pub(crate) canaries: u64,
    pub(crate) delta: f64,
    /// Of each term: all of the error at delta 0, else half.
    pub(crate) level: f64,
}

impl Chosen {
    /// At total error `level`.
    ///
    /// # Errors
    /// The Gaussian mu.
    pub(crate) fn new(
        canaries: u64,
        statistic: &OneRunStatistic,
        level: f64,
    ) -> Result<Self, AuditError> {
        match *statistic {
            OneRunStatistic::Epsilon { delta } => {
                let level = if delta > 0.0 { 0.5 * level } else { level };
                Ok(Self { canaries, delta, level })
            }
            OneRunStatistic::GaussianMu => {
                Err(AuditError::NotValid(format!("one-run-gdp {NO_CHOICE}")))
            }
        }
    }

    /// Whether this many right guesses show an epsilon.
    pub(crate) fn shows(&self, guesses: u64, right: u64, epsilon: f64) -> bool {
        guesses > 0 && self.p_value(guesses, right, epsilon) <= self.level
    }

    fn p_value(&self, guesses: u64, right: u64, epsilon: f64) -> f64 {
        let (tail, second) = one_run_terms(self.canaries, guesses, right, epsilon, self.delta);
        tail.max(second)
    }

    /// The largest epsilon that this many right guesses show, from below.
    pub(crate) fn epsilon(&self, guesses: u64, right: u64) -> f64 {
        largest(guesses, right, self.level, |epsilon| self.p_value(guesses, right, epsilon))
    }

    pub(crate) fn value(&self, guesses: &Guesses) -> f64 {
        self.epsilon(guesses.counted(self.delta), guesses.right)
    }

    pub(crate) fn exceeds(&self, guesses: &Guesses, known: f64) -> bool {
        self.shows(guesses.counted(self.delta), guesses.right, known)
    }

    /// The strategy of which `few` choosers saw these guesses and that promises most for `many` others.
    /// `value` gives what guesses show, or nothing when that is not more than what is known already.
    pub(crate) fn pick(
        &self,
        seen: &[(Strategy, Guesses)],
        few: u64,
        many: u64,
        mut value: impl FnMut(usize, &Guesses, f64) -> Option<f64>,
    ) -> usize {
        let mut chosen = (0, 0.0);
        for (place, (strategy, seen)) in seen.iter().enumerate() {
            let planned = strategy.scaled(few, many).planned(many);
            let share = (seen.right as f64 + 0.5) / (seen.total() as f64 + 1.0);
            let made = planned as f64 * seen.total() as f64 / seen.planned.max(1) as f64;
            let expected = Guesses {
                canaries: self.canaries,
                guessed_in: made as u64,
                guessed_out: 0,
                right: ((share * made) as u64).min(made as u64),
                planned,
            };
            if let Some(value) = value(place, &expected, chosen.1)
                && value > chosen.1
            {
                chosen = (place, value);
            }
        }
        chosen.0
    }
}

/// Why `holdout` and `k-fold` have no Gaussian bound for one run.
pub(crate) const NO_CHOICE: &str = "is not valid with a threshold rule by which some canaries choose for the others: its theorem asks for guesses that no scores chose; use --threshold union or fixed:V";
