//! A model card for Hugging Face: metadata in YAML, then a paragraph.

use crate::paragraph::{batches, neighbours, paragraph};
use crate::yaml::Yaml;
use crate::{NotAnswered, Report};
use vocabulary::rounding::plain;

/// The part of a model card that is about privacy. Tags let people find the model; the table
/// `differential_privacy` has the numbers for programs.
///
/// # Errors
/// A report that claims nothing.
pub fn card(report: &Report) -> Result<String, NotAnswered> {
    let (Some(words), Some(run), Some(claim)) =
        (paragraph(report), &report.run, &report.verdict.claim)
    else {
        return Err(NotAnswered::NothingClaimed);
    };
    let mut privacy = vec![
        ("epsilon", number(claim.quoted().to_string())),
        ("delta", Yaml::Number(report.delta)),
        ("standing", Yaml::text(claim.standing.as_str())),
        ("neighbours", Yaml::text(neighbours(run))),
        ("batches", Yaml::text(batches(run))),
        ("clip_norm", Yaml::Number(run.clip_norm())),
    ];
    if let [phase] = run.phases() {
        privacy.push(("noise_multiplier", Yaml::Number(phase.noise_multiplier)));
        privacy.push(("sample_rate", Yaml::Number(phase.sample_rate)));
        privacy.push(("steps", Yaml::Integer(phase.steps)));
    }
    privacy.push(("accountant", Yaml::text(format!("dosimeter {}", report.version))));
    let head = Yaml::document(&[
        ("tags", Yaml::List(vec!["differential-privacy".into(), "dp-sgd".into()])),
        ("differential_privacy", Yaml::Table(privacy)),
    ]);
    let mut text = format!("---\n{head}---\n\n");
    if let Some(title) = &report.cover.title {
        text.push_str(&format!("# {}\n\n", line(title)));
    }
    text.push_str(&format!("## Privacy\n\n{}\n\n", line(&words)));
    text.push_str(&format!(
        "The guarantee does not cover hyper-parameters chosen on the same records, other \
         trainings on them, statistics of them that were published, or people with several \
         records. Delta is {}.\n",
        plain(report.delta)
    ));
    if let Some(signed) = crate::cover::line(&report.cover) {
        text.push_str(&format!("\n{}\n", line(&signed)));
    }
    Ok(text)
}

fn number(text: String) -> Yaml {
    text.parse().map_or(Yaml::Text(text), Yaml::Number)
}

fn line(text: &str) -> String {
    text.replace(['\n', '\r'], " ").replace('<', "&lt;")
}
