//! Attacks on anyone's losses: a matrix of models by records in, scores and records at risk out.

use crate::{Document, Refusal};
use audit::membership::{AtRisk, Membership, Signals, at_risk};
use audit::quality::{self, Measured};
use audit::read::Matrix;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write as _;
use vocabulary::Problem;

/// The question of `attack lira` and `attack rmia`; the matrices come beside it.
#[derive(Clone, Debug)]
pub struct MembershipQuestion {
    pub attack: Membership,
    /// The entries are logits ln(p / (1 - p)), not losses -ln p.
    pub logits: bool,
    /// The model that is attacked; the others are references.
    pub target: usize,
    /// Of the bounds on epsilon of single records.
    pub delta: f64,
    pub confidence: f64,
    /// False positive rates at which the power is reported.
    pub fprs: Vec<f64>,
    /// Records in the table of those at risk.
    pub top: usize,
}

/// What an attack on a matrix says.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MembershipDocument {
    /// `dosimeter.membership/1`
    pub schema: &'static str,
    /// `lira-online`, `lira-offline`, `rmia-online` or `rmia-offline`.
    pub attack: &'static str,
    pub models: usize,
    pub records: usize,
    pub target: usize,
    /// Records that the target was trained on.
    pub members: usize,
    pub confidence: f64,
    /// Over records, taken for independent.
    pub auroc: Measured,
    pub tpr: Vec<PowerOfAttack>,
    /// The records most at risk first. All intervals and bounds of the whole table hold together.
    pub at_risk: Vec<RecordAtRisk>,
    pub delta: f64,
    pub warnings: Vec<String>,
    /// Scores of the target: the text of a file for `audit`.
    #[serde(skip)]
    pub scores: String,
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct PowerOfAttack {
    pub fpr: f64,
    #[serde(flatten)]
    pub measured: Measured,
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct RecordAtRisk {
    /// Its column, from 0.
    pub record: usize,
    /// Epsilon of trainings with and without it is at least this.
    pub epsilon_lower: f64,
    /// Largest difference of the true and the false positive rate.
    pub advantage: Measured,
}

impl MembershipDocument {
    pub const SCHEMA: &'static str = "dosimeter.membership/1";
}

impl Document for MembershipDocument {
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

/// Attacks the target with the other models as references.
///
/// # Errors
/// Matrices that do not fit, a mask that is not 0 and 1, records with too few references.
pub fn membership(
    question: &MembershipQuestion,
    signals: &Matrix,
    members: &Matrix,
) -> Result<MembershipDocument, Refusal> {
    let Matrix { rows, columns, .. } = *signals;
    if (members.rows, members.columns) != (rows, columns) {
        return Err(Refusal::bad_input(format!(
            "the losses are {rows} models times {columns} records, the mask is {} times {}",
            members.rows, members.columns
        )));
    }
    if let Some(place) = members.values.iter().position(|value| *value != 0.0 && *value != 1.0) {
        return Err(Refusal::bad_input(format!(
            "the mask of model {} and record {} is {}, not 1 (trained on it) or 0",
            place / columns,
            place % columns,
            members.values[place]
        )));
    }
    if !(question.confidence > 0.0 && question.confidence < 1.0) {
        return Err(Problem::outside("confidence", question.confidence, "(0, 1)").into());
    }
    if !(0.0..1.0).contains(&question.delta) {
        return Err(Problem::outside("delta", question.delta, "[0, 1)").into());
    }
    for fpr in &question.fprs {
        if !(*fpr > 0.0 && *fpr < 1.0) {
            return Err(Problem::outside("false positive rate", *fpr, "(0, 1)").into());
        }
    }
    let inside: Vec<bool> = members.values.iter().map(|value| *value == 1.0).collect();
    let matrix = if question.logits {
        Signals::from_logits(rows, columns, signals.values.clone(), inside.clone())?
    } else {
        Signals::from_losses(rows, columns, &signals.values, inside.clone())?
    };
    let scored = matrix.scores(question.target, question.attack)?;
    let pooled = matrix.audit_scores(question.target, question.attack)?;
    let of_target = &inside[question.target * columns..(question.target + 1) * columns];
    let mut text = String::from("# design: one-run\nscore,member,canary\n");
    for (record, (score, member)) in scored.iter().zip(of_target).enumerate() {
        // A table of text cannot fail.
        let _ = writeln!(text, "{score:?},{},{record}", u8::from(*member));
    }
    let table = at_risk(&matrix, question.delta, question.confidence)?;
    let row = |one: &AtRisk| RecordAtRisk {
        record: one.record,
        epsilon_lower: one.epsilon_lower,
        advantage: one.advantage,
    };
    Ok(MembershipDocument {
        schema: MembershipDocument::SCHEMA,
        attack: name(question.attack),
        models: rows,
        records: columns,
        target: question.target,
        members: of_target.iter().filter(|member| **member).count(),
        confidence: question.confidence,
        auroc: quality::auroc(&pooled, question.confidence),
        tpr: question
            .fprs
            .iter()
            .map(|&fpr| PowerOfAttack {
                fpr,
                measured: quality::tpr_at(&pooled, fpr, question.confidence),
            })
            .collect(),
        at_risk: table.iter().take(question.top).map(row).collect(),
        delta: question.delta,
        warnings: Vec::new(),
        scores: text,
    })
}

fn name(attack: Membership) -> &'static str {
    match attack {
        Membership::LiraOnline(_) => "lira-online",
        Membership::LiraOffline(_) => "lira-offline",
        Membership::RmiaOnline { .. } => "rmia-online",
        Membership::RmiaOffline { .. } => "rmia-offline",
    }
}
