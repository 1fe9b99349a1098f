//! An entry for the registry of deployments of differential privacy that OpenDP keeps
//! (repository `opendp/deployments-registry-data`, `schemas/deployments-schema.yaml` as of
//! 15 July 2026; NIST's registry takes the same entries).
//!
//! What a run cannot know is for a person to fill in and says so, in capital letters.

use crate::paragraph::{neighbours, paragraph};
use crate::yaml::Yaml;
use crate::{AssumptionMark, Report};
use vocabulary::Standing;
use vocabulary::rounding::plain;

/// Why a report has no card or entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAnswered {
    /// No lens gives a number.
    NothingClaimed,
    /// The number is a heuristic or an estimate.
    NothingProven,
    NoTitle,
    NoOwner,
    NoDate,
}

impl std::fmt::Display for NotAnswered {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::NothingClaimed => "nothing is claimed about this run, so there is nothing to say",
            Self::NothingProven => {
                "an entry of the registry is a guarantee, and none is proven here"
            }
            Self::NoTitle => "an entry of the registry needs a title: the name of the model",
            Self::NoOwner => "an entry of the registry needs an owner: who publishes the model",
            Self::NoDate => "an entry of the registry needs a date: when the model is published",
        })
    }
}

impl std::error::Error for NotAnswered {}

/// In place of what only a person can say.
const OPEN: &str = "TO BE FILLED IN";

/// The entry, as a draft.
///
/// # Errors
/// A report without title, owner or date, or without a proven claim.
pub fn registry(report: &Report) -> Result<String, NotAnswered> {
    let cover = &report.cover;
    let title = cover.title.as_ref().ok_or(NotAnswered::NoTitle)?;
    let owner = cover.owner.as_ref().ok_or(NotAnswered::NoOwner)?;
    let date = cover.date.as_ref().ok_or(NotAnswered::NoDate)?;
    let (Some(run), Some(claim), Some(words)) =
        (&report.run, &report.verdict.claim, paragraph(report))
    else {
        return Err(NotAnswered::NothingClaimed);
    };
    if claim.standing != Standing::Proven {
        return Err(NotAnswered::NothingProven);
    }
    let epsilon = claim.quoted();
    let epsilon = epsilon.to_string().parse().unwrap_or(epsilon.number());
    let level = match (run.group_size(), run.unit()) {
        (1, Some(unit)) => unit,
        (1, None) => "One record",
        _ => "A group of records",
    };
    let marks: Vec<String> = report
        .assumptions
        .iter()
        .map(|assumption| format!("- {} ({})", assumption.text, assumption.mark.words()))
        .collect();
    let noise_is_safe = report.assumptions.iter().any(|assumption| {
        assumption.mark == AssumptionMark::Verified && assumption.text.contains("noise comes")
    });
    let floating = if noise_is_safe {
        "Noise is drawn by a cryptographic generator with precautions against rounding."
    } else {
        "Protection of the noise against floating-point attacks is not recorded."
    };
    Ok(Yaml::document(&[
        ("url_slug", Yaml::Text(slug(title, date))),
        ("status", Yaml::text("Draft")),
        ("tier", Yaml::Integer(3)),
        (
            "deployment",
            Yaml::Table(vec![
                (
                    "basic",
                    Yaml::Table(vec![
                        ("name", Yaml::text(title)),
                        ("data_curators", Yaml::List(vec![owner.clone()])),
                        ("intended_use", Yaml::Text(format!("{OPEN}: what the model is for"))),
                        ("data_product_type", Yaml::text("Machine learning model")),
                        ("data_product_region", Yaml::Text(format!("{OPEN}: region of the data"))),
                        ("description", Yaml::text(words)),
                        ("publication_date", Yaml::text(date)),
                    ]),
                ),
                (
                    "dp_variant",
                    Yaml::Table(vec![
                        ("variant_name", Yaml::text("Approximate DP")),
                        (
                            "data_domain",
                            Yaml::Text(format!("{OPEN}: which records could be in the data")),
                        ),
                        (
                            "unprotected_quantities",
                            Yaml::text(
                                "The size of the data set and all settings of the training count as public.",
                            ),
                        ),
                    ]),
                ),
                (
                    "privacy_loss",
                    Yaml::Table(vec![
                        ("privacy_unit", Yaml::text(level)),
                        (
                            "privacy_unit_details",
                            Yaml::Text(format!(
                                "Neighbouring data sets differ by {}.",
                                neighbours(run)
                            )),
                        ),
                        (
                            "privacy_parameters",
                            Yaml::Table(vec![
                                ("epsilon", Yaml::Number(epsilon)),
                                ("delta", Yaml::Number(report.delta)),
                            ]),
                        ),
                        (
                            "privacy_parameters_details",
                            Yaml::Text(format!(
                                "Epsilon is an upper bound at delta {}, rounded up.",
                                plain(report.delta)
                            )),
                        ),
                    ]),
                ),
                (
                    "deployment_model",
                    Yaml::Table(vec![
                        ("model_name", Yaml::text("Central")),
                        ("release_type", Yaml::text("One release")),
                        ("data_source_type", Yaml::text("Static")),
                        ("access_type", Yaml::text("Non-interactive")),
                    ]),
                ),
                (
                    "accounting",
                    Yaml::Table(vec![
                        (
                            "post_processing",
                            Yaml::text(
                                "The guarantee covers every iterate; anything computed from them is covered.",
                            ),
                        ),
                        (
                            "composition",
                            Yaml::Text(format!(
                                "Numerical composition of all steps of DP-SGD ({}) with certified error \
                     bounds, by dosimeter {}.",
                                run.phases_in_words(),
                                report.version
                            )),
                        ),
                    ]),
                ),
                (
                    "implementation",
                    Yaml::Table(vec![
                        (
                            "preprocessing_and_hyperparameter_tuning",
                            Yaml::Text(format!(
                                "{OPEN}: how settings were chosen, and whether on these records"
                            )),
                        ),
                        (
                            "mechanisms",
                            Yaml::Text(format!(
                                "Gaussian noise on sums of clipped gradients (DP-SGD). {floating}"
                            )),
                        ),
                        (
                            "justification",
                            Yaml::Text(format!(
                                "The claim holds under these assumptions:\n\n{}",
                                marks.join("\n")
                            )),
                        ),
                    ]),
                ),
                (
                    "administrative",
                    Yaml::Table(vec![("registry_authors", Yaml::List(vec![owner.clone()]))]),
                ),
            ]),
        ),
    ]))
}

/// Words of the title and the year, for an address.
fn slug(title: &str, date: &str) -> String {
    let mut slug = String::new();
    for letter in title.chars().chain(['-']).chain(date.chars().take(4)) {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug
}
