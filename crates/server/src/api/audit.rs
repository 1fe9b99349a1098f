//! `POST /api/audit?question=…`: scores in the body, the document of `dosimeter audit` out, with
//! its figures. The question is JSON in the query; the file never touches the disk. The two sides
//! of NumPy files come as one body, members first; the question says where the second begins.

use super::run::{Several, bounded, resolve};
use super::{App, body, json};
use crate::error::ApiError;
use accounting::{Questions, pairs};
use audit::read::read_npy;
use audit::verdict::ClaimedEpsilon;
use audit::{AuditError, Design, Plan, Scores, Table, analyse, figures};
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use vocabulary::{Figure, LensName, Quantity, Run, Standing};

/// Part of the query.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    question: Option<String>,
}

/// The flags of the command that a page needs; `claim` is a run.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditQuestion {
    #[serde(default)]
    design: Option<String>,
    #[serde(default)]
    delta: Several<f64>,
    #[serde(default)]
    confidence: Option<f64>,
    #[serde(default)]
    all_methods: bool,
    #[serde(default)]
    claim: Option<Value>,
    /// Of two .npy files in one body, the bytes of the first.
    #[serde(default)]
    members_bytes: Option<usize>,
}

/// The answer: the command's document and what to draw.
#[derive(Debug, Serialize)]
pub(super) struct Audited {
    schema: &'static str,
    audit: Value,
    figures: Pictures,
}

#[derive(Debug, Serialize)]
struct Pictures {
    #[serde(skip_serializing_if = "Option::is_none")]
    roc: Option<Figure>,
    histogram: Figure,
    ladder: Figure,
}

/// How a dropped file is written.
#[derive(Clone, Copy, Debug)]
enum Format {
    Csv,
    Jsonl,
    Npy,
}

pub(super) fn question(asked: Asked) -> Result<AuditQuestion, ApiError> {
    match asked.question {
        Some(text) if text.len() > 16 * 1024 => {
            Err(ApiError::bad_input("the question is too long"))
        }
        Some(text) => body::parse(text.as_bytes()),
        None => Ok(AuditQuestion::default()),
    }
}

pub(super) async fn handle(
    State(app): State<Arc<App>>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
    content: Body,
) -> Result<Response, ApiError> {
    let question = question(asked)?;
    let format = match body::media_type(&headers) {
        Some("text/csv") => Format::Csv,
        Some("application/x-ndjson") => Format::Jsonl,
        Some("application/x-npy") => Format::Npy,
        _ => {
            return Err(body::unsupported(
                "send scores as text/csv, application/x-ndjson or application/x-npy",
            ));
        }
    };
    let _seat = app.uploads.try_acquire().map_err(|_| ApiError::busy())?;
    let limits = &app.limits;
    let bytes = body::read(&headers, content, limits.upload_bytes, limits.upload_time).await?;
    let audited = app
        .work
        .run(move || {
            let mut table = Table::default();
            let name = Path::new("the dropped file");
            match format {
                Format::Csv => table.add_csv(bytes.as_slice(), name)?,
                Format::Jsonl => table.add_jsonl(bytes.as_slice(), name)?,
                Format::Npy => table = both_sides(&bytes, question.members_bytes)?,
            }
            drop(bytes);
            answer(table, question)
        })
        .await?;
    json(&audited)
}

/// Two .npy files, one behind the other.
fn both_sides(bytes: &[u8], members_bytes: Option<usize>) -> Result<Table, ApiError> {
    let (members, nonmembers) =
        members_bytes.and_then(|length| bytes.split_at_checked(length)).ok_or_else(|| {
            ApiError::bad_input(
                "a .npy file holds the scores of one side: send the members' file and behind it the \
                 non-members', with the length of the first as `members_bytes`",
            )
        })?;
    let read = |side: &[u8], name: &str| read_npy(side, Some(side.len() as u64), Path::new(name));
    let mut table = Table::default();
    table.members = read(members, "the members' file")?;
    table.nonmembers = read(nonmembers, "the non-members' file")?;
    Ok(table)
}

/// Audits a table of scores.
pub(super) fn answer(table: Table, question: AuditQuestion) -> Result<Audited, ApiError> {
    let asked = question.design.map(|text| text.parse::<Design>()).transpose()?;
    if let (Some(asked), Some(stated)) = (asked, table.design)
        && asked != stated
    {
        return Err(ApiError::bad_input(format!(
            "design {asked} was asked for, but the file says `design: {stated}`"
        )));
    }
    let design = asked.or(table.design).unwrap_or(Design::Runs);
    let claimed = question.claim.as_ref().map(resolve).transpose()?.map(|resolved| resolved.run);
    let scores = table.into_scores()?;
    let mut plan = Plan::new(design);
    plan.all_methods = question.all_methods;
    let deltas = bounded("delta", question.delta)?;
    if !deltas.is_empty() {
        plan.deltas = deltas;
    }
    plan.confidence = question.confidence.unwrap_or(plan.confidence);
    plan.training = claimed.as_ref().and_then(|run| match run.phases() {
        [phase] => Some((phase.sample_rate, phase.steps)),
        _ => None,
    });
    let plan = plan.check()?;
    let epsilon = |delta: f64| match &claimed {
        Some(run) => proven(run, delta),
        None => Ok(ClaimedEpsilon { lower: 0.0, upper: f64::INFINITY }),
    };
    let claims: Option<audit::Claims<'_>> = if claimed.is_some() { Some(&epsilon) } else { None };
    let analysis = analyse(&scores, &plan, claims)?;
    let limit = claimed
        .as_ref()
        .zip(analysis.primary().map(|bound| bound.delta))
        .and_then(|(run, delta)| proven(run, delta).ok())
        .map(|epsilon| epsilon.upper)
        .filter(|upper| upper.is_finite());
    Ok(Audited {
        schema: "dosimeter.page-audit/1",
        figures: Pictures {
            roc: roc(&scores, &analysis, claimed.as_ref()),
            histogram: figures::histogram(&scores, &analysis),
            ladder: figures::ladder(&analysis, limit),
        },
        audit: analysis.to_json(),
    })
}

fn roc(scores: &Scores, analysis: &audit::Analysis, claimed: Option<&Run>) -> Option<Figure> {
    let pair = claimed.and_then(|run| pairs::Composed::for_run(run).ok());
    let pair = pair.as_ref().map(|pair| pair as &dyn accounting::Pair);
    figures::roc(scores, analysis, pair).ok()
}

/// The proven epsilon of the claimed run at delta; unbounded where there is none.
fn proven(run: &Run, delta: f64) -> Result<ClaimedEpsilon, AuditError> {
    if delta <= 0.0 {
        return Ok(ClaimedEpsilon { lower: f64::INFINITY, upper: f64::INFINITY });
    }
    let questions = Questions {
        deltas: vec![delta],
        lenses: vec![LensName::Composition],
        quantities: vec![Quantity::Epsilon],
        ..Questions::default()
    };
    let account = accounting::account(run, &questions)?;
    let claim = account.claims.iter().find(|claim| claim.standing == Standing::Proven);
    claim
        .map(|claim| ClaimedEpsilon { lower: claim.interval.lower, upper: claim.interval.upper })
        .ok_or_else(|| {
            AuditError::Accounting(accounting::AccountingError::Unsupported(
                "no proven epsilon is known for the claimed run, so there is nothing to compare \
                 with"
                    .to_owned(),
            ))
        })
}
