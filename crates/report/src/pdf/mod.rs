//! The report as PDF: tagged for screen readers (PDF/UA-1), with its fonts in it, figures
//! as vectors, and the unrounded numbers attached as `report.json`. The SHA-256 of that file is
//! in the metadata and on every page. The same report gives the same bytes.

mod drawing;
mod flow;
mod font;
mod sheet;
mod style;
mod table;

use crate::content::content;
use crate::words::with_commas;
use crate::{Report, calendar_day};
use flow::Flow;
use font::{Faces, clean};
use krilla::configure::{Configuration, Validator};
use krilla::destination::XyzDestination;
use krilla::embed::{AssociationKind, EmbeddedFile, MimeType};
use krilla::geom::Point;
use krilla::metadata::{DateTime, Metadata};
use krilla::outline::{Outline, OutlineNode};
use krilla::page::PageSettings;
use krilla::tagging::{ArtifactType, ContentTag};
use krilla::{Document, SerializeSettings};
use sha2::{Digest, Sha256};
use sheet::{MARGIN, MUTED, PAGE, Type};

/// Why a report could not be written as PDF. Each is a mistake in the program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PdfError {
    #[error("the built-in fonts cannot be read")]
    Fonts,
    #[error("a drawing has a part that PDF output does not know: {0}")]
    Drawing(String),
    #[error("the document is not valid PDF/UA-1: {0}")]
    Invalid(String),
    #[error("the report cannot be written as JSON: {0}")]
    Json(String),
}

const FOOT: Type = Type { size: 7.5, bold: false, colour: MUTED };

/// The whole document.
///
/// # Errors
/// A mistake in the program, see [`PdfError`].
pub fn pdf(report: &Report) -> Result<Vec<u8>, PdfError> {
    let faces = Faces::load().ok_or(PdfError::Fonts)?;
    let json = serde_json::to_vec(report).map_err(|error| PdfError::Json(error.to_string()))?;
    let hash: String = Sha256::digest(&json).iter().map(|byte| format!("{byte:02x}")).collect();
    let title = clean(report.cover.title.as_deref().unwrap_or("Privacy report"));
    let mut flow = Flow::new(&faces);
    flow.cover(&title, &facts(report, &hash));
    for block in content(report) {
        flow.block(&block)?;
    }
    let Flow { sheets, goals, .. } = flow;

    let mut document = Document::new_with(SerializeSettings {
        configuration: Configuration::new_with_validator(Validator::UA1),
        ..SerializeSettings::default()
    });
    let mut names = sheets.names();
    let count = sheets.pages.len();
    for place in 0..count {
        let settings = PageSettings::from_wh(PAGE.0, PAGE.1)
            .ok_or_else(|| PdfError::Invalid("the size of the page".into()))?;
        let mut page = document.start_page_with(settings);
        let mut surface = page.surface();
        sheets.draw(place, &mut surface, &faces, &mut names)?;
        surface.start_tagged(ContentTag::Artifact(ArtifactType::Footer));
        let foot = PAGE.1 - 36.0;
        let left = format!("dosimeter {} \u{b7} sha256 {}", clean(&report.version), &hash[..16]);
        sheet::write(&mut surface, &faces, (MARGIN.0, foot), &left, FOOT);
        let right = format!("{} of {}", with_commas(place as u64 + 1), with_commas(count as u64));
        let x = PAGE.0 - MARGIN.0 - faces.regular.width(&right, FOOT.size);
        sheet::write(&mut surface, &faces, (x, foot), &right, FOOT);
        surface.end_tagged();
        surface.finish();
        page.finish();
    }
    document.set_tag_tree(sheets.tree(&names));
    let mut outline = Outline::new();
    for goal in &goals {
        let destination = XyzDestination::new(goal.page, Point::from_xy(MARGIN.0, goal.y));
        outline.push_child(OutlineNode::new(goal.title.clone(), destination));
    }
    document.set_outline(outline);
    document.set_metadata(metadata(report, &title, &hash));
    let attached = document.embed_file(EmbeddedFile {
        path: "report.json".into(),
        mime_type: MimeType::new("application/json"),
        description: Some("Everything in this report, with unrounded numbers".into()),
        association_kind: AssociationKind::Source,
        data: json.into(),
        modification_date: None,
        compress: Some(true),
        location: None,
    });
    if attached.is_none() {
        return Err(PdfError::Invalid("report.json is attached twice".into()));
    }
    let mut bytes = document.finish().map_err(|error| PdfError::Invalid(format!("{error:?}")))?;
    leave_suspects_out(&mut bytes);
    Ok(bytes)
}

/// Overwrites `/Suspects false` in the catalogue with spaces. That is its default, and Poppler
/// (`pdfinfo`, `pdftotext`) calls it an error where it is written down. No offset changes.
fn leave_suspects_out(bytes: &mut [u8]) {
    let find = |text: &[u8], words: &[u8]| text.windows(words.len()).position(|at| at == words);
    let (table, key) = (b"/MarkInfo <<", b"/Suspects false");
    let Some(start) = find(bytes, table) else { return };
    let Some(end) = find(&bytes[start..], b">>") else { return };
    if let Some(place) = find(&bytes[start..start + end], key) {
        bytes[start + place..start + place + key.len()].fill(b' ');
    }
}

/// What stands below the title.
fn facts(report: &Report, hash: &str) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(owner) = &report.cover.owner {
        facts.push(("Owner", owner.clone()));
    }
    if let Some(date) = &report.cover.date {
        facts.push(("Date", date.clone()));
    }
    facts.push(("Made by", format!("dosimeter {}", report.version)));
    facts.push(("SHA-256 of the attached report.json", hash.to_owned()));
    facts
}

fn metadata(report: &Report, title: &str, hash: &str) -> Metadata {
    let program = format!("dosimeter {}", report.version);
    let mut metadata = Metadata::new()
        .title(title.to_owned())
        .description(clean(&report.verdict.headline))
        .keywords(vec![format!("sha256:{hash}"), program.clone()])
        .creator(program)
        .producer("krilla".into())
        .language("en".into())
        .document_id(hash.to_owned());
    if let Some(owner) = &report.cover.owner {
        metadata = metadata.authors(vec![clean(owner)]);
    }
    if let Some((year, month, day)) = report.cover.date.as_deref().and_then(calendar_day) {
        metadata = metadata.creation_date(DateTime::new(year).month(month).day(day));
    }
    metadata
}
