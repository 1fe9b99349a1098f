//! Membership attacks on anyone's losses: LiRA and RMIA from a matrix of models by records.
//!
//! Each model was trained on a part of the records, which the mask tells. One model is the target,
//! the others are references; the score of a record never reads whether the target was trained on it, so
//! scores may be audited. Larger means more likely a member.
//!
//! - **LiRA** (Carlini et al., "Membership inference attacks from first principles", 2022). The signal is
//!   the logit of the probability of the right answer, about normal over models. Online: the
//!   ln-likelihood ratio of the normal laws of models with and without the record. Offline: the
//!   distance from the mean of models without it, in standard deviations. The variance is that of the record, or
//!   one for all records, which is better below some dozen references.
//! - **RMIA** (Zarifzadeh, Liu and Shokri, "Low-cost high-power membership inference attacks", 2024). With r(x) =
//!   p(x | target) / p(x), the share of other records z with r(x) >= gamma r(z). p(x) is the mean over references,
//!   half with and half without the record (online), or the mean over those without it, moved towards 1
//!   as (1 + a) p / 2 + (1 - a) / 2 (offline).
//!
//! **What may be said about them.** Scores of one target are rows of one training: intervals of TPR and AUROC take
//! the records for independent. Over models, the signals of *one record* are independent trainings:
//! [`at_risk`] bounds each record by the `union` rule with an equal share of the error for each record, so that all of its
//! intervals hold together and the table may be read from the top.

use crate::quality::{self, Measured};
use crate::{AttackDirection, AuditError, Design, Scores, Statistic, ThresholdRule};
use vocabulary::Problem;

/// Signals of models (rows) on records (columns), and who was trained on what.
#[derive(Clone, Debug)]
pub struct Signals {
    models: usize,
    records: usize,
    /// Logits of the probability of the right answer, row by row.
    logits: Vec<f64>,
    inside: Vec<bool>,
}

/// Whose variance LiRA divides by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variance {
    /// The record's own.
    PerRecord,
    /// One for all records.
    Fixed,
}

/// The attack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Membership {
    /// References with and without the record.
    LiraOnline(Variance),
    /// References without it.
    LiraOffline(Variance),
    /// References with and without the record, at this gamma (1 or 2 are usual).
    RmiaOnline { gamma: f64 },
    /// References without it; `a`, between 0 and 1, says how far p(x) is moved towards 1 (0.3 to 1 are usual; 1
    /// leaves it where it is).
    RmiaOffline { gamma: f64, a: f64 },
}

impl Signals {
    /// From logits ln(p / (1 - p)) of the probability of the right answer, row by row.
    ///
    /// # Errors
    /// Sizes that do not fit, or a signal that is not a number, by its place.
    pub fn from_logits(
        models: usize,
        records: usize,
        logits: Vec<f64>,
        inside: Vec<bool>,
    ) -> Result<Self, AuditError> {
        let invalid = |text: String| Err(AuditError::invalid(text));
        if models == 0 || records == 0 || models.checked_mul(records) != Some(logits.len()) {
            return invalid(format!(
                "{} signals are not {models} models times {records} records",
                logits.len()
            ));
        }
        if inside.len() != logits.len() {
            return invalid(format!(
                "the mask has {} entries and there are {} signals",
                inside.len(),
                logits.len()
            ));
        }
        if let Some(place) = logits.iter().position(|value| value.is_nan()) {
            return invalid(format!(
                "the signal of model {} on record {} (both counted from 0) is not a number",
                place / records,
                place % records
            ));
        }
        // Probabilities of exactly 0 and 1 have no logit; this is where doubles end.
        let logits = logits.into_iter().map(|logit| logit.clamp(-700.0, 700.0)).collect();
        Ok(Self { models, records, logits, inside })
    }

    /// From losses -ln p, row by row.
    ///
    /// # Errors
    /// As [`Signals::from_logits`]; a negative loss.
    pub fn from_losses(
        models: usize,
        records: usize,
        losses: &[f64],
        inside: Vec<bool>,
    ) -> Result<Self, AuditError> {
        if let Some(loss) = losses.iter().find(|loss| **loss < 0.0) {
            return Err(AuditError::invalid(format!(
                "loss {loss} is negative; -ln p of a probability is not"
            )));
        }
        // p / (1 - p) = 1 / (e^loss - 1).
        let logit = |loss: &f64| if *loss > 30.0 { -*loss } else { -loss.exp_m1().ln() };
        Self::from_logits(models, records, losses.iter().map(logit).collect(), inside)
    }

    pub fn models(&self) -> usize {
        self.models
    }

    pub fn records(&self) -> usize {
        self.records
    }

    fn logit(&self, model: usize, record: usize) -> f64 {
        self.logits[model * self.records + record]
    }

    fn is_in(&self, model: usize, record: usize) -> bool {
        self.inside[model * self.records + record]
    }

    /// Scores of all records against one target.
    ///
    /// # Errors
    /// A record with too few references of a kind that the attack needs, by its number.
    pub fn scores(&self, target: usize, attack: Membership) -> Result<Vec<f64>, AuditError> {
        if target >= self.models {
            return Err(AuditError::invalid(format!(
                "there is no model {target}: models are counted from 0, and the last of {} is {}",
                self.models,
                self.models - 1
            )));
        }
        match attack {
            Membership::LiraOnline(variance) => self.lira(target, variance, true),
            Membership::LiraOffline(variance) => self.lira(target, variance, false),
            Membership::RmiaOnline { gamma } => self.rmia(target, gamma, None),
            Membership::RmiaOffline { gamma, a } => self.rmia(target, gamma, Some(a)),
        }
    }

    /// The scores of one target by who was in: ready for an audit of one run.
    ///
    /// # Errors
    /// Those of [`Signals::scores`]; a target that was trained on all records or none.
    pub fn audit_scores(&self, target: usize, attack: Membership) -> Result<Scores, AuditError> {
        let (mut members, mut nonmembers) = (Vec::new(), Vec::new());
        for (record, score) in self.scores(target, attack)?.into_iter().enumerate() {
            if self.is_in(target, record) { members.push(score) } else { nonmembers.push(score) }
        }
        Scores::new(Design::OneRun, members, nonmembers)
    }

    /// Signals of references on a record, with or without it.
    fn references(&self, target: usize, record: usize, inside: bool) -> Vec<f64> {
        (0..self.models)
            .filter(|&model| model != target && self.is_in(model, record) == inside)
            .map(|model| self.logit(model, record))
            .collect()
    }

    fn lira(
        &self,
        target: usize,
        variance: Variance,
        online: bool,
    ) -> Result<Vec<f64>, AuditError> {
        let fewest = if variance == Variance::PerRecord { 2 } else { 1 };
        let mut laws = Vec::with_capacity(self.records);
        // Sums of squares and degrees of freedom over all records, without and with the record.
        let mut pooled = [(0.0, 0.0); 2];
        for record in 0..self.records {
            let mut law = [(0.0, 0.0); 2];
            for (side, law) in law.iter_mut().enumerate().take(if online { 2 } else { 1 }) {
                let signals = self.references(target, record, side == 1);
                if signals.len() < fewest {
                    return Err(too_few(record, signals.len(), side == 1, fewest));
                }
                let n = signals.len() as f64;
                let mean = signals.iter().sum::<f64>() / n;
                let squares: f64 = signals.iter().map(|signal| (signal - mean).powi(2)).sum();
                *law = (mean, squares / (n - 1.0).max(1.0));
                pooled[side].0 += squares;
                pooled[side].1 += n - 1.0;
            }
            laws.push(law);
        }
        let common = pooled.map(|(squares, freedom)| squares / f64::max(freedom, 1.0));
        Ok((0..self.records)
            .map(|record| {
                let signal = self.logit(target, record);
                let of = |side: usize| {
                    let (mean, own) = laws[record][side];
                    let variance = if variance == Variance::Fixed { common[side] } else { own };
                    (mean, variance.max(1e-12))
                };
                let (out_mean, out) = of(0);
                if !online {
                    return (signal - out_mean) / out.sqrt();
                }
                let (in_mean, inside) = of(1);
                let density = |mean: f64, variance: f64| {
                    -0.5 * ((signal - mean).powi(2) / variance + variance.ln())
                };
                density(in_mean, inside) - density(out_mean, out)
            })
            .collect())
    }

    fn rmia(
        &self,
        target: usize,
        gamma: f64,
        offline: Option<f64>,
    ) -> Result<Vec<f64>, AuditError> {
        if !(gamma > 0.0 && gamma.is_finite()) {
            return Err(AuditError::invalid(format!("gamma {gamma} is not above 0")));
        }
        if let Some(a) = offline
            && !(0.0..=1.0).contains(&a)
        {
            return Err(AuditError::invalid(Problem::outside("a", a, "[0, 1]")));
        }
        if self.records < 2 {
            return Err(AuditError::invalid("RMIA compares records: it needs two".to_owned()));
        }
        let probability = |logit: f64| 1.0 / (1.0 + (-logit).exp());
        let mean = |signals: &[f64]| {
            signals.iter().map(|logit| probability(*logit)).sum::<f64>() / signals.len() as f64
        };
        let mut ratios = Vec::with_capacity(self.records);
        for record in 0..self.records {
            let without = self.references(target, record, false);
            if without.is_empty() {
                return Err(too_few(record, 0, false, 1));
            }
            let usual = match offline {
                Some(a) => 0.5 * ((1.0 + a) * mean(&without) + (1.0 - a)),
                None => {
                    let with = self.references(target, record, true);
                    if with.is_empty() {
                        return Err(too_few(record, 0, true, 1));
                    }
                    0.5 * (mean(&without) + mean(&with))
                }
            };
            ratios.push(probability(self.logit(target, record)) / usual.max(1e-300));
        }
        let mut sorted = ratios.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        Ok(ratios
            .iter()
            .map(|&ratio| {
                let below = sorted.partition_point(|other| gamma * other <= ratio);
                // The record itself is among them when gamma is at most 1.
                let itself = usize::from(gamma * ratio <= ratio);
                (below - itself) as f64 / (self.records - 1) as f64
            })
            .collect())
    }
}

fn too_few(record: usize, found: usize, inside: bool, fewest: usize) -> AuditError {
    let kind = if inside { "with" } else { "without" };
    AuditError::Scores(format!(
        "record {record} (counted from 0) has {found} reference models {kind} it and needs {fewest}"
    ))
}

/// A record with what all models together say about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtRisk {
    /// Its column in the matrix.
    pub record: usize,
    /// max over thresholds of TPR - FPR; all intervals of the table hold together.
    pub advantage: Measured,
    /// Epsilon of trainings with and without it is at least this, at the table's delta; all bounds
    /// of the table hold together.
    pub epsilon_lower: f64,
}

/// The records from the one most at risk down: by the lower end of their epsilon, then of their advantage,
/// then by the observed advantage. Half of the error is for all epsilons, half for all advantages,
/// each in equal parts (Bonferroni), so any choice of rows may be read after looking.
///
/// # Errors
/// A record that all models were trained on, or none.
pub fn at_risk(signals: &Signals, delta: f64, confidence: f64) -> Result<Vec<AtRisk>, AuditError> {
    let each = (1.0 - confidence) / (2.0 * signals.records as f64);
    let statistic = Statistic::Epsilon { delta, direction: AttackDirection::Both };
    let mut table = Vec::with_capacity(signals.records);
    for record in 0..signals.records {
        // No model is the target: all of them measure.
        let side = |inside| signals.references(usize::MAX, record, inside);
        let (with, without) = (side(true), side(false));
        if with.is_empty() || without.is_empty() {
            return Err(too_few(record, 0, with.is_empty(), 1));
        }
        let scores = Scores::new(Design::Runs, with, without)?;
        let bound = ThresholdRule::Union.lower_bound(&scores, &statistic, each, 0)?;
        table.push(AtRisk {
            record,
            advantage: quality::advantage(&scores, 1.0 - each),
            epsilon_lower: bound.value,
        });
    }
    table.sort_by(|a, b| {
        let key = |row: &AtRisk| (row.epsilon_lower, row.advantage.lower, row.advantage.value);
        let ((a1, a2, a3), (b1, b2, b3)) = (key(a), key(b));
        b1.total_cmp(&a1).then(b2.total_cmp(&a2)).then(b3.total_cmp(&a3))
    });
    Ok(table)
}
