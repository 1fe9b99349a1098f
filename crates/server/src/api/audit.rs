//! `POST /api/audit?question=…`: scores in the body, the document of `dosimeter audit` out, with
//! its figures (`&figures=no`: without). The question is JSON in the query; the file never touches the disk. The two sides
//! of NumPy files come as one body, members first; the question says where the second begins.

use super::{App, body, json_text};
use crate::error::ApiError;
use answers::{AuditQuestion, Document};
use audit::Table;
use audit::read::read_npy;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// The query.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    question: Option<String>,
    /// `no` for the command's document alone.
    #[serde(default)]
    figures: Option<String>,
}

/// A question about scores, and how they are sent.
pub(super) struct Upload {
    question: AuditQuestion,
    /// Of two .npy files in one body, the bytes of the first.
    members_bytes: Option<usize>,
    figures: bool,
}

/// How a dropped file is written.
#[derive(Clone, Copy, Debug)]
enum Format {
    Csv,
    Jsonl,
    Npy,
}

impl Upload {
    /// The scores are of a file: what lies beside it says which run made them, and that run is claimed
    /// where nothing else is.
    pub(super) fn of_file(&mut self, scores: &Path, shown: &str) -> Result<(), ApiError> {
        self.question.made_by = answers::runs_beside(&[scores.to_owned()])?;
        for file in &mut self.question.made_by {
            // Where the folder lies is nobody's business.
            file.name = format!("{shown}{}", answers::RUN_ENDING);
        }
        self.question.claim_made_by = true;
        Ok(())
    }
}

pub(super) fn question(asked: Asked) -> Result<Upload, ApiError> {
    let text = asked.question.unwrap_or_else(|| "{}".into());
    if text.len() > 16 * 1024 {
        return Err(ApiError::bad_input("the question is too long"));
    }
    body::small_enough(&text)?;
    let mut keys: Value = answers::parse(&text)?;
    // The length of a part is about the upload, not about the audit.
    let members_bytes = keys.as_object_mut().and_then(|keys| keys.remove("members_bytes"));
    Ok(Upload {
        question: answers::parse(&keys.to_string())?,
        members_bytes: members_bytes.and_then(|length| usize::try_from(length.as_u64()?).ok()),
        figures: asked.figures.as_deref() != Some("no"),
    })
}

pub(super) async fn handle(
    State(app): State<Arc<App>>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
    content: Body,
) -> Result<Response, ApiError> {
    let upload = question(asked)?;
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
                Format::Npy => table = both_sides(&bytes, upload.members_bytes)?,
            }
            drop(bytes);
            answer(table, &upload)
        })
        .await?;
    Ok(json_text(audited))
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
pub(super) fn answer(table: Table, upload: &Upload) -> Result<String, ApiError> {
    if upload.question.sequential {
        return Ok(answers::sequential(&upload.question, table.settle()?)?.text());
    }
    let audited = answers::audit(&upload.question, table.settle()?)?;
    Ok(if upload.figures { answers::text(&audited.page()) } else { audited.text() })
}
