//! Attacks on anyone's losses: a matrix of models by records in, scores and records at risk out.

use crate::attack::NothingElse;
use crate::flags::{integer, nonnegative_integer, real};
use crate::several::several;
use crate::{Document, Refusal};
use audit::membership::{AtRisk, Membership, Signals, Variance, at_risk};
use audit::quality::{self, Measured};
use audit::read::Matrix;
use clap::Args;
use formats::csv::row;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use vocabulary::{AtLeast, Problem};

/// The question of `attack lira` and `attack rmia`; it names the files of the matrices.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "attack", rename_all = "kebab-case")]
pub enum MembershipQuestion {
    /// The likelihood ratio (Carlini et al. 2022).
    Lira(MatrixQuestion<LiraTerms>),
    /// The relative attack (Zarifzadeh et al. 2024).
    Rmia(MatrixQuestion<RmiaTerms>),
}

/// An attack on a matrix, with its own parameters.
#[derive(Clone, Debug, Deserialize, Args)]
pub struct MatrixQuestion<A: Args> {
    #[command(flatten)]
    #[serde(flatten)]
    pub matrix: MatrixTerms,
    #[command(flatten)]
    #[serde(flatten)]
    pub attack: A,
    #[arg(skip)]
    #[serde(flatten)]
    _rest: NothingElse,
}

/// The terms of every attack on a matrix.
#[derive(Clone, Debug, Deserialize, Args)]
#[serde(default)]
pub struct MatrixTerms {
    /// Losses of models (rows) on records (columns)
    #[arg(value_name = "LOSSES.npy")]
    pub losses: PathBuf,
    /// 1 where the model was trained on the record, else 0
    #[arg(value_name = "MEMBERS.npy")]
    pub members: PathBuf,
    /// The first file has logits ln(p / (1 - p)) in place of losses
    #[arg(long)]
    pub logits: bool,
    /// Use references without the record only
    #[arg(long)]
    pub offline: bool,
    /// The model that is attacked, from 0
    #[arg(long, value_name = "MODEL", value_parser = nonnegative_integer, default_value_t = Self::default().target)]
    pub target: u64,
    /// Delta of the bounds on single records
    #[arg(short = 'd', long, value_name = "D", value_parser = real, allow_hyphen_values = true, default_value_t = Self::default().delta)]
    pub delta: f64,
    /// Confidence of the intervals; those of single records hold together
    #[arg(long, value_name = "C", value_parser = real, allow_hyphen_values = true, default_value_t = Self::default().confidence)]
    pub confidence: f64,
    /// Report the attack's true positive rate at these false positive rates; repeatable [default:
    /// 0.001, 0.01]
    #[arg(long, value_name = "F", value_parser = real, allow_hyphen_values = true, value_delimiter = ',')]
    #[serde(deserialize_with = "several")]
    pub fpr: Vec<f64>,
    /// Records in the table of those at risk
    #[arg(long, value_name = "N", value_parser = integer, default_value_t = Self::default().top)]
    pub top: u64,
}

impl Default for MatrixTerms {
    fn default() -> Self {
        Self {
            losses: PathBuf::new(),
            members: PathBuf::new(),
            logits: false,
            offline: false,
            target: 0,
            delta: 0.0,
            confidence: 0.95,
            fpr: Vec::new(),
            top: 10,
        }
    }
}

/// What is particular to the likelihood ratio.
#[derive(Clone, Copy, Debug, Default, Deserialize, Args)]
#[serde(default)]
pub struct LiraTerms {
    /// Use one variance for all records; better with fewer than a few dozen reference models
    #[arg(long)]
    pub fixed_variance: bool,
}

/// What is particular to the relative attack.
#[derive(Clone, Copy, Debug, Deserialize, Args)]
#[serde(default)]
pub struct RmiaTerms {
    /// A member has to be this many times likelier than another record
    #[arg(long, value_name = "G", value_parser = real, allow_hyphen_values = true, default_value_t = Self::default().gamma)]
    pub gamma: f64,
    /// With --offline: how far the probability over references is moved towards 1, from 0
    /// (half of the way) to 1 (not at all)
    #[arg(long, value_name = "A", value_parser = real, allow_hyphen_values = true, default_value_t = Self::default().a)]
    pub a: f64,
}

impl Default for RmiaTerms {
    fn default() -> Self {
        Self { gamma: 2.0, a: 0.3 }
    }
}

impl MembershipQuestion {
    fn parts(&self) -> (&MatrixTerms, Membership) {
        match self {
            Self::Lira(MatrixQuestion { matrix, attack, .. }) => {
                let variance =
                    if attack.fixed_variance { Variance::Fixed } else { Variance::PerRecord };
                let attack = match matrix.offline {
                    false => Membership::LiraOnline(variance),
                    true => Membership::LiraOffline(variance),
                };
                (matrix, attack)
            }
            Self::Rmia(MatrixQuestion { matrix, attack: RmiaTerms { gamma, a }, .. }) => {
                let (gamma, a) = (*gamma, *a);
                let attack = match matrix.offline {
                    false => Membership::RmiaOnline { gamma },
                    true => Membership::RmiaOffline { gamma, a },
                };
                (matrix, attack)
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
    let (question, attack) = question.parts();
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
    let confidence = question.confidence;
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
    let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let target = size(question.target);
    let scored = matrix.scores(target, attack)?;
    let pooled = matrix.audit_scores(target, attack)?;
    let of_target = &inside[target * columns..(target + 1) * columns];
    let mut text = String::from("# design: one-run\nscore,member,canary\n");
    for (record, (score, member)) in scored.iter().zip(of_target).enumerate() {
        row(&mut text, &[&format_args!("{score:?}"), &u8::from(*member), &record]);
    }
    let table = at_risk(&matrix, question.delta, confidence)?;
    let shown = |one: &AtRisk| RecordAtRisk {
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
        target,
        members: of_target.iter().filter(|member| **member).count(),
        confidence,
        auroc: quality::auroc(&pooled, confidence),
        tpr: fprs
            .iter()
            .map(|&fpr| PowerOfAttack { fpr, measured: quality::tpr_at(&pooled, fpr, confidence) })
            .collect(),
        at_risk: table.iter().take(size(question.top)).map(shown).collect(),
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
