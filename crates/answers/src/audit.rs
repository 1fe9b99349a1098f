//! Membership scores in, valid lower bounds out.

use crate::flags::{nonnegative_integer, real};
use crate::run::{Described, TextFile};
use crate::several::several;
use crate::{Refusal, claimed, limit, origin};
use accounting::schemes;
use audit::{
    AttackDirection, Audit, AuditError, Design, Method, Plan, Scores, SettledTable, Table,
    ThresholdRule, analyse, figures,
};
use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use vocabulary::{Claim, Figure, PhaseDescription, PlanDocument, Run, RunDescription, Status};

/// The question of `audit`; the scores come beside it, as a table whose design is settled.
#[derive(Clone, Debug, Default, Deserialize, Args)]
#[serde(deny_unknown_fields, default)]
pub struct AuditQuestion {
    /// `runs`: each row comes from a separate training; `one-run`: the rows are canaries of one
    /// training, each included with probability 1/2 [default: what the file says, else runs]
    #[arg(long, value_name = "DESIGN")]
    #[serde(deserialize_with = "parsed")]
    pub design: Option<Design>,
    /// Delta of the bounds; repeatable, the headline uses the first [default: 0]
    #[arg(short = 'd', long, value_name = "D", value_parser = real, allow_hyphen_values = true, value_delimiter = ',')]
    #[serde(deserialize_with = "several")]
    pub delta: Vec<f64>,
    /// Confidence of each bound
    #[arg(long, value_name = "C", value_parser = real, allow_hyphen_values = true, default_value = "0.95")]
    pub confidence: Option<f64>,
    // Names, or `all`.
    #[arg(long, value_name = "METHOD", value_delimiter = ',', help = methods())]
    #[serde(deserialize_with = "several")]
    pub method: Vec<String>,
    /// The same as the method `all`.
    #[arg(skip)]
    pub all_methods: bool,
    /// union, holdout, k-fold, dkw, or fixed:V (V chosen before seeing the scores)
    #[arg(long, value_name = "RULE", default_value = "union")]
    #[serde(deserialize_with = "parsed")]
    pub threshold: Option<ThresholdRule>,
    /// forward, mirror, or both (the larger one, without loss of confidence)
    #[arg(long, value_name = "DIRECTION", default_value = "both")]
    #[serde(deserialize_with = "parsed")]
    pub direction: Option<AttackDirection>,
    /// The bound of the headline and the verdict [default: clopper-pearson, or one-run]
    #[arg(long, value_name = "METHOD")]
    #[serde(deserialize_with = "parsed")]
    pub primary: Option<Method>,
    /// Make all bounds hold at the same time, by splitting the confidence
    #[arg(long)]
    pub joint: bool,
    /// The run whose proven epsilon is compared with the primary bound.
    #[arg(skip)]
    pub claim: Option<Described>,
    /// The claimed epsilon at the first --delta; replaces --claim
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true, conflicts_with = "claim")]
    pub claim_epsilon: Option<f64>,
    /// Keys of a run: with noise they are a claim (and override those of `claim`), without it they tell the
    /// training's rate and steps.
    #[arg(skip)]
    pub run: Option<Described>,
    /// The runs that the scores say they were made by.
    #[arg(skip)]
    pub made_by: Vec<TextFile>,
    /// Accept scores that come from another run than the claimed one
    #[arg(long)]
    pub other_run: bool,
    /// Where nothing is claimed, claim the run that the scores say they were made by; without one such run, or
    /// where nothing is proven about it, there is no claim.
    #[arg(skip)]
    pub claim_made_by: bool,
    /// Take the rows as trials in their order, with a bound that holds whenever you stop
    #[arg(long)]
    pub sequential: bool,
    /// Of a sequential audit: the trials on both sides that can be made in all.
    #[arg(skip)]
    pub budget: Option<u64>,
    /// Of the training, for the DP-SGD families; the claim's where it is not given.
    #[arg(skip)]
    pub sample_rate: Option<f64>,
    #[arg(skip)]
    pub steps: Option<u64>,
    /// Report the attack's true positive rate at these false positive rates; repeatable [default:
    /// 0.001, 0.01]
    #[arg(long, value_name = "F", value_parser = real, allow_hyphen_values = true, value_delimiter = ',')]
    #[serde(deserialize_with = "several")]
    pub fpr: Vec<f64>,
    /// The method `grid` ignores thresholds with fewer errors of either kind than this
    #[arg(long, value_name = "N", value_parser = nonnegative_integer, default_value = "10")]
    pub min_count: Option<u64>,
    /// Bootstrap rounds for AUROC and power
    #[arg(long, value_name = "N", value_parser = nonnegative_integer, default_value = "0")]
    pub bootstrap: Option<u64>,
    /// Seed of the random parts of holdout and k-fold
    #[arg(long, value_name = "SEED", value_parser = nonnegative_integer, default_value = "0")]
    pub seed: Option<u64>,
    /// Seconds of processor time that the answer may take [default: 10].
    #[arg(skip)]
    pub time_limit: Option<f64>,
}

/// What can be asked for by name.
fn methods() -> String {
    format!("{}, or all", Method::ALL.map(Method::as_str).join(", "))
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
    limit::asked(question.time_limit, || {
        about(question, table, run, |run, delta| claimed::of(question, run, delta))
    })
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
    let plan = plan(question, stated, claimed.as_ref())?;
    let scores = table.into_scores(plan.design)?;
    let claim = match &claimed {
        Some(run) => proven(run, plan.deltas[0])?,
        None => None,
    };
    let analysis = analyse(&scores, &plan, claim.as_ref())?;
    let hint = (question.design.is_none() && stated.is_none()).then_some(
        "each row is taken as a separate training; for canaries of one training give --design \
         one-run",
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
                "--noise-multiplier and --claim-epsilon were both given, and each states a claim; \
                 drop one of them",
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
            "without --noise-multiplier, the flags give the rate and the steps of the training and \
             no claim",
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
                figures::roc(scores, analysis, pair.as_deref())
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
