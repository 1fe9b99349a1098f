//! Attacks on anyone's losses: a matrix of models by records in, scores and records at risk out.

use crate::several::several;
use crate::{Document, Refusal};
use audit::membership::{AtRisk, Membership, Signals, Variance, at_risk};
use audit::quality::{self, Measured};
use audit::read::Matrix;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::PathBuf;
use vocabulary::{AtLeast, Problem};

/// The question of `attack lira` and `attack rmia`; it names the files of the matrices.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MembershipQuestion {
    pub attack: MembershipAttack,
    /// Losses of models (rows) on records (columns).
    pub losses: PathBuf,
    /// 1 where the model was trained on the record, else 0.
    pub members: PathBuf,
    /// The entries are logits ln(p / (1 - p)), not losses -ln p.
    #[serde(default)]
    pub logits: bool,
    /// References without the record only.
    #[serde(default)]
    pub offline: bool,
    /// Of `lira`: one variance for all records.
    #[serde(default)]
    pub fixed_variance: bool,
    /// Of `rmia`: how much more likely than another record a member has to be; 2 where it is not given.
    pub gamma: Option<f64>,
    /// Of `rmia` offline: how far the probability over references is moved; 0.3 where it is not given.
    pub a: Option<f64>,
    /// The model that is attacked; the others are references.
    #[serde(default)]
    pub target: usize,
    /// Of the bounds on epsilon of single records.
    #[serde(default)]
    pub delta: f64,
    /// 0.95 where it is not given.
    pub confidence: Option<f64>,
    /// False positive rates at which the power is reported; 0.001 and 0.01 where none is given.
    #[serde(default, deserialize_with = "several")]
    pub fpr: Vec<f64>,
    /// Records in the table of those at risk; 10 where it is not given.
    pub top: Option<usize>,
}

/// The attacks on a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MembershipAttack {
    /// The likelihood ratio (Carlini et al. 2022).
    Lira,
    /// The relative attack (Zarifzadeh et al. 2024).
    Rmia,
}

impl MembershipQuestion {
    fn membership(&self) -> Result<Membership, Refusal> {
        let foreign = |name: &str, of: &str| {
            Err(Refusal::bad_input(format!("`{name}` is a choice of {of}; leave it out")))
        };
        let variance = if self.fixed_variance { Variance::Fixed } else { Variance::PerRecord };
        let gamma = self.gamma.unwrap_or(2.0);
        match (self.attack, self.offline) {
            (MembershipAttack::Lira, _) if self.gamma.is_some() => foreign("gamma", "rmia"),
            (MembershipAttack::Lira, _) if self.a.is_some() => foreign("a", "rmia"),
            (MembershipAttack::Rmia, _) if self.fixed_variance => foreign("fixed_variance", "lira"),
            (MembershipAttack::Lira, false) => Ok(Membership::LiraOnline(variance)),
            (MembershipAttack::Lira, true) => Ok(Membership::LiraOffline(variance)),
            (MembershipAttack::Rmia, false) => Ok(Membership::RmiaOnline { gamma }),
            (MembershipAttack::Rmia, true) => {
                Ok(Membership::RmiaOffline { gamma, a: self.a.unwrap_or(0.3) })
            }
        }
    }
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

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RecordAtRisk {
    /// Its column, from 0.
    pub record: usize,
    /// Epsilon of trainings with and without it is at least this.
    pub epsilon_lower: f64,
    /// That bound as it is shown, rounded down.
    pub shown: String,
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
/// Files that cannot be read, matrices that do not fit, a mask that is not 0 and 1, records with too few
/// references.
pub fn membership(question: &MembershipQuestion) -> Result<MembershipDocument, Refusal> {
    let attack = question.membership()?;
    let (signals, members) = (Matrix::read(&question.losses)?, Matrix::read(&question.members)?);
    let Matrix { rows, columns, .. } = signals;
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
    let confidence = question.confidence.unwrap_or(0.95);
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(Problem::outside("confidence", confidence, "(0, 1)").into());
    }
    if !(0.0..1.0).contains(&question.delta) {
        return Err(Problem::outside("delta", question.delta, "[0, 1)").into());
    }
    let fprs = if question.fpr.is_empty() { &[0.001, 0.01][..] } else { &question.fpr };
    for fpr in fprs {
        if !(*fpr > 0.0 && *fpr < 1.0) {
            return Err(Problem::outside("false positive rate", *fpr, "(0, 1)").into());
        }
    }
    let inside: Vec<bool> = members.values.iter().map(|value| *value == 1.0).collect();
    let matrix = if question.logits {
        Signals::from_logits(rows, columns, signals.values, inside.clone())?
    } else {
        Signals::from_losses(rows, columns, &signals.values, inside.clone())?
    };
    let scored = matrix.scores(question.target, attack)?;
    let pooled = matrix.audit_scores(question.target, attack)?;
    let of_target = &inside[question.target * columns..(question.target + 1) * columns];
    let mut text = String::from("# design: one-run\nscore,member,canary\n");
    for (record, (score, member)) in scored.iter().zip(of_target).enumerate() {
        // A table of text cannot fail.
        let _ = writeln!(text, "{score:?},{},{record}", u8::from(*member));
    }
    let table = at_risk(&matrix, question.delta, confidence)?;
    let row = |one: &AtRisk| RecordAtRisk {
        record: one.record,
        epsilon_lower: one.epsilon_lower,
        shown: AtLeast::new(one.epsilon_lower).shown(),
        advantage: one.advantage,
    };
    Ok(MembershipDocument {
        schema: MembershipDocument::SCHEMA,
        attack: name(attack),
        models: rows,
        records: columns,
        target: question.target,
        members: of_target.iter().filter(|member| **member).count(),
        confidence,
        auroc: quality::auroc(&pooled, confidence),
        tpr: fprs
            .iter()
            .map(|&fpr| PowerOfAttack { fpr, measured: quality::tpr_at(&pooled, fpr, confidence) })
            .collect(),
        at_risk: table.iter().take(question.top.unwrap_or(10)).map(row).collect(),
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
