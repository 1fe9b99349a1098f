//! Membership scores in, valid lower bounds out.

use crate::run::{Described, TextFile};
use crate::{Refusal, Several, claimed, origin};
use accounting::schemes;
use audit::{
    AttackDirection, Audit, AuditError, Design, Method, Plan, Scores, SettledTable, Table,
    ThresholdRule, analyse, figures,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use vocabulary::{Claim, Figure, PhaseDescription, PlanDocument, Run, RunDescription, Status};

/// The question of `audit`; the scores come beside it, as a table whose design is settled.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditQuestion {
    /// What the scores say about themselves where it is not given, else `runs`.
    #[serde(deserialize_with = "parsed")]
    pub design: Option<Design>,
    pub delta: Several<f64>,
    pub confidence: Option<f64>,
    /// Names of methods, or `all`.
    pub method: Several<String>,
    /// The same as the method `all`.
    pub all_methods: bool,
    #[serde(deserialize_with = "parsed")]
    pub threshold: Option<ThresholdRule>,
    #[serde(deserialize_with = "parsed")]
    pub direction: Option<AttackDirection>,
    #[serde(deserialize_with = "parsed")]
    pub primary: Option<Method>,
    pub joint: bool,
    /// The run whose proven epsilon is compared with the primary bound.
    pub claim: Option<Described>,
    /// In place of a run: the claimed epsilon at the first delta.
    pub claim_epsilon: Option<f64>,
    /// Keys of a run: with noise they are a claim (and override those of `claim`), without it they tell the
    /// training's rate and steps.
    pub run: Option<Described>,
    /// The runs that the scores say they were made by.
    pub made_by: Vec<TextFile>,
    /// Audit scores of another run than the claimed one.
    pub other_run: bool,
    /// Where nothing is claimed, claim the run that the scores say they were made by; without one such run, or
    /// where nothing is proven about it, there is no claim.
    pub claim_made_by: bool,
    /// Rows are trials in their order, and the bound holds at any stopping time ([`crate::sequential`]).
    pub sequential: bool,
    /// Of a sequential audit: the trials on both sides that can be made in all.
    pub budget: Option<u64>,
    /// Of the training, for the DP-SGD families; the claim's where it is not given.
    pub sample_rate: Option<f64>,
    pub steps: Option<u64>,
    pub fpr: Several<f64>,
    pub min_count: Option<u64>,
    pub bootstrap: Option<u64>,
    pub seed: Option<u64>,
}

impl AuditQuestion {
    /// Whether the run that made the scores is claimed for want of anything else.
    pub(crate) fn claims_made_by(&self) -> bool {
        let asked = self.claim.is_some() || self.claim_epsilon.is_some() || self.run.is_some();
        self.claim_made_by && !asked
    }
}

/// A name in a document, read as the command line reads it.
pub(crate) fn parsed<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::<String>::deserialize(deserializer)?
        .map(|text| text.parse().map_err(serde::de::Error::custom))
        .transpose()
}

/// An audit, with what is needed to draw it.
#[derive(Clone, Debug)]
pub struct Audited {
    pub analysis: Audit,
    pub(crate) scores: Scores,
    claimed: Option<Run>,
    /// What the person who asked may want to know.
    pub hint: Option<&'static str>,
}

impl Serialize for Audited {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.analysis.serialize(serializer)
    }
}

/// The figures of an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picture {
    /// True against false positive rate, with the band and the claimed run's curve.
    Roc,
    /// Both samples with the threshold.
    Histogram,
    /// All bounds against the claim.
    Ladder,
}

/// An audit as a page shows it: the document, and what to draw.
#[derive(Clone, Debug, Serialize)]
pub struct PageAudit {
    /// `dosimeter.page-audit/1`
    schema: &'static str,
    audit: Audit,
    figures: Pictures,
}

#[derive(Clone, Debug, Serialize)]
struct Pictures {
    #[serde(skip_serializing_if = "Option::is_none")]
    roc: Option<Figure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    histogram: Option<Figure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ladder: Option<Figure>,
}

/// A plan with its hash: the proof, once published, that the analysis was fixed beforehand.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Commitment {
    /// `dosimeter.audit-commitment/1`
    pub schema: &'static str,
    pub plan: PlanDocument,
    /// SHA-256 of the plan as one line of JSON; an audit under this plan prints the same.
    pub hash: String,
}

impl Commitment {
    pub const SCHEMA: &'static str = "dosimeter.audit-commitment/1";
}

/// The scores of files, with their design settled.
///
/// # Errors
/// What is wrong with a file, with its row; a side without scores.
pub fn read_scores(
    files: &[PathBuf],
    members: &[PathBuf],
    nonmembers: &[PathBuf],
) -> Result<SettledTable, Refusal> {
    if files.is_empty() && members.is_empty() && nonmembers.is_empty() {
        return Err(Refusal::bad_input("there are no scores to audit").hint(
            "give SCORES.csv with the header `score,member`, or --members and --nonmembers",
        ));
    }
    let mut table = Table::default();
    for path in files {
        table.add_file(path)?;
    }
    table.add_sides(members, nonmembers)?;
    for (side, empty) in
        [("member", table.members.is_empty()), ("non-member", table.nonmembers.is_empty())]
    {
        if empty {
            let all = files.iter().chain(members).chain(nonmembers);
            let names: Vec<String> = all.map(|path| path.display().to_string()).collect();
            return Err(Refusal::bad_input(format!(
                "{}: there is no {side} score; an audit compares members with non-members",
                names.join(", ")
            )));
        }
    }
    Ok(table.settle()?)
}

/// Audits scores.
///
/// # Errors
/// A malformed question, a design that the scores contradict, and those of the accounting.
pub fn audit(question: &AuditQuestion, table: SettledTable) -> Result<Audited, Refusal> {
    let run = claimed_run(question)?;
    about(question, table, run, |run, delta| claimed::of(question, run, delta))
}

/// Audits scores of a run that is resolved already; `proven` is its claim at a delta. Without one the run
/// still says which data sets the scores tell apart, and there is no verdict.
pub(crate) fn about(
    question: &AuditQuestion,
    table: SettledTable,
    claimed: Option<Run>,
    proven: impl FnOnce(&Run, f64) -> Result<Option<Claim>, Refusal>,
) -> Result<Audited, Refusal> {
    origin::check(question, claimed.as_ref())?;
    let stated = table.design();
    let scores = table.into_scores()?;
    let plan = plan(question, stated, claimed.as_ref())?;
    let claim = match &claimed {
        Some(run) => proven(run, plan.deltas[0])?,
        None => None,
    };
    let analysis = analyse(&scores, &plan, claim.as_ref())?;
    let hint = (question.design.is_none() && stated.is_none()).then_some(
        "each row is taken for a training of its own; for canaries of one training give --design one-run",
    );
    let claimed = claimed.filter(|_| claim.is_some());
    Ok(Audited { analysis, scores, claimed, hint })
}

/// The plan of an audit and its hash, to be published before there are scores.
///
/// # Errors
/// A malformed question.
pub fn commit(question: &AuditQuestion) -> Result<(Plan, Commitment), Refusal> {
    let claimed = claimed_run(question)?;
    let plan = plan(question, None, claimed.as_ref())?;
    let commitment = Commitment {
        schema: Commitment::SCHEMA,
        plan: plan.document(),
        hash: audit::hash::plan(&plan)?,
    };
    Ok((plan, commitment))
}

/// The run that is claimed: the file's with the keys over it, or the keys' own when they state noise.
pub(crate) fn claimed_run(question: &AuditQuestion) -> Result<Option<Run>, Refusal> {
    let keys = question.run.as_ref().map(Described::description).transpose()?.unwrap_or_default();
    if let Some(claim) = &question.claim {
        return Ok(Some(claim.description()?.overridden_by(&keys)?.resolve()?.run));
    }
    if keys.whole.noise_multiplier.is_some() || !keys.phases.is_empty() {
        if question.claim_epsilon.is_some() {
            return Err(Refusal::bad_input(
                "a claim is a run or a number: both --noise-multiplier and --claim-epsilon were given",
            ));
        }
        return Ok(Some(keys.resolve()?.run));
    }
    match question.made_by.as_slice() {
        [only] if question.claims_made_by() => Ok(Some(origin::run(only)?)),
        _ => Ok(None),
    }
}

/// Rate and steps of keys without noise: of the training, for the DP-SGD families.
fn training(question: &AuditQuestion) -> Result<Option<(f64, u64)>, Refusal> {
    let keys = question.run.as_ref().map(Described::description).transpose()?.unwrap_or_default();
    let known = RunDescription {
        whole: PhaseDescription { noise_multiplier: None, ..keys.whole.clone() },
        dataset_size: keys.dataset_size,
        ..RunDescription::default()
    };
    if known != keys {
        return Err(Refusal::bad_input(
            "flags of a run without --noise-multiplier tell its rate and steps only",
        )
        .hint("add --noise-multiplier to claim the run, or name its file with --claim"));
    }
    let whole = &keys.whole;
    let (rate, steps) = (
        whole.sample_rate.is_some() || whole.batch_size.is_some(),
        whole.steps.is_some() || whole.epochs.is_some(),
    );
    if !(rate && steps) {
        return Ok(None);
    }
    // Rate and steps do not depend on the noise.
    let whole = PhaseDescription { noise_multiplier: Some(1.0), ..keys.whole.clone() };
    let run = RunDescription { whole, ..keys }.resolve()?.run;
    Ok(run.phases().first().map(|phase| (phase.sample_rate, phase.steps)))
}

fn plan(
    question: &AuditQuestion,
    stated: Option<Design>,
    claimed: Option<&Run>,
) -> Result<Plan, Refusal> {
    if let (Some(asked), Some(stated)) = (question.design, stated)
        && asked != stated
    {
        return Err(Refusal::bad_input(format!(
            "--design {asked} was asked for, but the file says that the design is {stated}"
        ))
        .hint("leave --design out, or correct the file if it is wrong"));
    }
    let all_methods = question.all_methods || question.method.iter().any(|name| name == "all");
    let mut plan = Plan::new(question.design.or(stated).unwrap_or(Design::Runs));
    if !question.method.is_empty() && !all_methods {
        let named = question.method.iter().map(|name| name.parse());
        plan.methods = named.collect::<Result<_, _>>().map_err(AuditError::from)?;
    }
    plan.all_methods = all_methods;
    if !question.delta.is_empty() {
        plan.deltas.clone_from(&question.delta);
    }
    plan.confidence = question.confidence.unwrap_or(plan.confidence);
    plan.threshold = question.threshold.unwrap_or(plan.threshold);
    plan.direction = question.direction.unwrap_or(plan.direction);
    plan.primary = question.primary.unwrap_or(plan.primary);
    plan.joint = question.joint;
    plan.seed = question.seed.unwrap_or(plan.seed);
    let phase = claimed.and_then(|run| match run.phases() {
        [phase] => Some(*phase),
        _ => None,
    });
    let told = match phase {
        Some(phase) => Some((phase.sample_rate, phase.steps)),
        None if claimed.is_none() => training(question)?,
        None => None,
    };
    let sample_rate = question.sample_rate.or(told.map(|told| told.0));
    let steps = question.steps.or(told.map(|told| told.1));
    plan.training = sample_rate.zip(steps);
    plan.claim = claimed.cloned();
    plan.claim_epsilon = question.claim_epsilon;
    plan.min_count = question.min_count.unwrap_or(plan.min_count);
    if !question.fpr.is_empty() {
        plan.fprs.clone_from(&question.fpr);
    }
    if let Some(rounds) = question.bootstrap {
        plan.bootstrap = usize::try_from(rounds).unwrap_or(usize::MAX);
    }
    Ok(plan.check()?)
}

impl Audited {
    /// Whether the primary bound contradicts a proven claim.
    pub fn contradicts(&self) -> bool {
        let verdict = self.analysis.verdict.as_ref();
        verdict.is_some_and(|verdict| verdict.status == Status::Contradiction)
    }

    /// One of the figures.
    ///
    /// # Errors
    /// Those of the accounting, about the claimed run.
    pub fn figure(&self, picture: Picture) -> Result<Figure, Refusal> {
        let (scores, analysis) = (&self.scores, &self.analysis);
        Ok(match picture {
            Picture::Roc => {
                let pair = self.claimed.as_ref().map(schemes::pair).transpose()?;
                figures::roc(scores, analysis, pair.as_deref())?
            }
            Picture::Histogram => figures::histogram(scores, analysis),
            Picture::Ladder => {
                let delta = analysis.primary().map(|bound| bound.delta());
                let claimed = self.claimed.as_ref().zip(delta);
                let epsilon =
                    claimed.map(|(run, delta)| claimed::epsilon(run, delta)).transpose()?;
                let limit =
                    epsilon.map(|claim| claim.interval.upper).filter(|upper| upper.is_finite());
                let limit = limit.or(analysis.plan.claim_epsilon);
                figures::ladder(analysis, limit)
            }
        })
    }

    /// The document with every figure that can be drawn.
    pub fn page(&self) -> PageAudit {
        PageAudit {
            schema: "dosimeter.page-audit/1",
            audit: self.analysis.clone(),
            figures: Pictures {
                roc: self.figure(Picture::Roc).ok(),
                histogram: self.figure(Picture::Histogram).ok(),
                ladder: self.figure(Picture::Ladder).ok(),
            },
        }
    }
}
