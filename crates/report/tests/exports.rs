//! The model card and the entry of the registry, read by a YAML parser and held to what their
//! readers ask for.

mod support;

use report::{Cover, NotAnswered, Report, card, registry};
use serde_json::Value;

fn signed() -> Report {
    let mut report = support::full();
    report.cover = Cover {
        title: Some("A \"quoted\" model: 1".into()),
        owner: Some("Office\nof Data".into()),
        date: Some("2026-11-16".into()),
    };
    report
}

/// What a value of the registry's schema must be.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    /// One of these texts.
    One(&'static [&'static str]),
    Number,
    /// At least one text.
    Texts,
    Table(&'static [Key]),
}

/// A name, whether it must be there, and what it holds.
type Key = (&'static str, bool, Kind);

/// The keys, required keys, types and enumerations of `schemas/deployments-schema.yaml` in
/// `opendp/deployments-registry-data` at commit 3e9c812a924cf01d228f26f6c462c59c391c3f2a (15 July 2026). No table
/// allows further keys.
const SCHEMA: &[Key] = &[
    ("url_slug", true, Kind::Text),
    (
        "status",
        true,
        Kind::One(&[
            "Converted",
            "Draft",
            "Pending",
            "Changes Required",
            "Approved",
            "Approved (Update Requested)",
            "Approved (Pending)",
        ]),
    ),
    ("tier", true, Kind::Number),
    ("deployment", true, Kind::Table(DEPLOYMENT)),
];

const DEPLOYMENT: &[Key] = &[
    (
        "basic",
        true,
        Kind::Table(&[
            ("name", true, Kind::Text),
            ("data_curators", true, Kind::Texts),
            ("description", true, Kind::Text),
            ("intended_use", true, Kind::Text),
            (
                "data_product_type",
                true,
                Kind::One(&[
                    "Summary statistics",
                    "Machine learning model",
                    "Dataset",
                    "Synthetic data",
                    "Interactive API",
                    "SQL queries",
                ]),
            ),
            ("data_product_region", true, Kind::Text),
            ("publication_date", true, Kind::Text),
            (
                "data_product_sector",
                false,
                Kind::One(&[
                    "Technology",
                    "Healthcare",
                    "Education",
                    "Government",
                    "Energy",
                    "Finance",
                ]),
            ),
        ]),
    ),
    (
        "dp_variant",
        false,
        Kind::Table(&[
            (
                "variant_name",
                false,
                Kind::One(&[
                    "Pure DP",
                    "Approximate DP",
                    "Zero-concentrated DP",
                    "Renyi DP",
                    "Custom",
                ]),
            ),
            ("data_domain", false, Kind::Text),
            ("unprotected_quantities", false, Kind::Text),
        ]),
    ),
    (
        "privacy_loss",
        false,
        Kind::Table(&[
            ("privacy_unit", false, Kind::Text),
            ("privacy_unit_details", false, Kind::Text),
            (
                "privacy_parameters",
                false,
                Kind::Table(&[
                    ("epsilon", false, Kind::Number),
                    ("delta", false, Kind::Number),
                    ("rho", false, Kind::Number),
                ]),
            ),
            ("privacy_parameters_details", false, Kind::Text),
        ]),
    ),
    (
        "deployment_model",
        false,
        Kind::Table(&[
            (
                "model_name",
                false,
                Kind::One(&["Local", "Central", "Shuffle", "Federated", "Varies"]),
            ),
            ("model_name_details", false, Kind::Text),
            ("actors", false, Kind::Text),
            ("release_type", false, Kind::One(&["One release", "Many releases"])),
            ("release_type_details", false, Kind::Text),
            ("data_source_type", false, Kind::One(&["Static", "Dynamic"])),
            ("data_source_type_details", false, Kind::Text),
            ("access_type", false, Kind::One(&["Interactive", "Non-interactive"])),
            ("access_type_details", false, Kind::Text),
        ]),
    ),
    (
        "accounting",
        false,
        Kind::Table(&[("post_processing", false, Kind::Text), ("composition", false, Kind::Text)]),
    ),
    (
        "implementation",
        false,
        Kind::Table(&[
            ("preprocessing_and_hyperparameter_tuning", false, Kind::Text),
            ("mechanisms", false, Kind::Text),
            ("justification", false, Kind::Text),
        ]),
    ),
    (
        "administrative",
        false,
        Kind::Table(&[
            ("sources", false, Kind::Text),
            ("notes", false, Kind::Text),
            ("registry_authors", true, Kind::Texts),
        ]),
    ),
];

/// Everything about a value that the schema does not allow.
fn faults(value: &Value, kind: Kind, place: &str, faults_found: &mut Vec<String>) {
    let good = match kind {
        Kind::Text => value.is_string(),
        Kind::One(names) => value.as_str().is_some_and(|text| names.contains(&text)),
        Kind::Number => value.is_number(),
        Kind::Texts => {
            value.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(Value::is_string))
        }
        Kind::Table(keys) => {
            let Some(entries) = value.as_object() else {
                faults_found.push(format!("{place} is no table"));
                return;
            };
            for (name, required, kind) in keys {
                match entries.get(*name) {
                    Some(inner) => faults(inner, *kind, &format!("{place}.{name}"), faults_found),
                    None if *required => faults_found.push(format!("{place}.{name} is missing")),
                    None => {}
                }
            }
            for name in entries.keys() {
                if !keys.iter().any(|(known, _, _)| known == name) {
                    faults_found.push(format!("{place}.{name} is unknown"));
                }
            }
            true
        }
    };
    if !good {
        faults_found.push(format!("{place} is {value}"));
    }
}

fn checked(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    faults(value, Kind::Table(SCHEMA), "", &mut found);
    found
}

#[test]
fn an_entry_is_valid_under_the_registry_s_schema() {
    let text = registry(&signed()).unwrap();
    let value: Value = serde_yaml_ng::from_str(&text).unwrap();
    assert_eq!(checked(&value), Vec::<String>::new(), "{text}");
    assert!((1..=3).contains(&value["tier"].as_u64().unwrap()));
    let basic = &value["deployment"]["basic"];
    assert_eq!(basic["name"], "A \"quoted\" model: 1");
    assert_eq!(basic["data_curators"][0], "Office\nof Data");
    assert_eq!(value["url_slug"], "a-quoted-model-1-2026");
    let parameters = &value["deployment"]["privacy_loss"]["privacy_parameters"];
    // Rounded up, never down.
    assert_eq!(parameters["epsilon"].as_f64(), Some(6.419));
    assert_eq!(parameters["delta"].as_f64(), Some(1e-5));
    assert!(!text.contains("1e-5\n"), "a number that YAML 1.1 takes for a text:\n{text}");
}

#[test]
fn the_schema_of_the_test_can_fail() {
    let text = registry(&signed()).unwrap();
    let mut value: Value = serde_yaml_ng::from_str(&text).unwrap();
    value["deployment"]["basic"]["colour"] = "blue".into();
    value["status"] = "Perfect".into();
    value["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] = "8".into();
    value["deployment"]["basic"].as_object_mut().unwrap().remove("name");
    assert_eq!(checked(&value).len(), 4, "{:?}", checked(&value));
}

#[test]
fn an_entry_needs_a_proven_claim_and_someone_to_answer_for_it() {
    let mut report = signed();
    report.cover.date = None;
    assert_eq!(registry(&report), Err(NotAnswered::NoDate));
    report.cover.owner = None;
    assert_eq!(registry(&report), Err(NotAnswered::NoOwner));
    report.cover.title = None;
    assert_eq!(registry(&report), Err(NotAnswered::NoTitle));
    let mut report = signed();
    report.verdict.claim = report.verdict.heuristic.clone();
    assert_eq!(registry(&report), Err(NotAnswered::NothingProven));
    report.verdict.claim = None;
    assert_eq!(registry(&report), Err(NotAnswered::NothingClaimed));
    assert_eq!(card(&report), Err(NotAnswered::NothingClaimed));
}

#[test]
fn a_card_has_a_head_and_a_paragraph() {
    let text = card(&signed()).unwrap();
    let (head, body) =
        text.strip_prefix("---\n").and_then(|rest| rest.split_once("---\n")).unwrap();
    let head: Value = serde_yaml_ng::from_str(head).unwrap();
    assert_eq!(head["tags"][0], "differential-privacy");
    let privacy = &head["differential_privacy"];
    assert_eq!(privacy["epsilon"].as_f64(), Some(6.419));
    assert_eq!(privacy["delta"].as_f64(), Some(1e-5));
    assert_eq!(privacy["steps"].as_u64(), Some(1000));
    assert_eq!(privacy["standing"], "proven");
    insta::assert_snapshot!(body);
}

#[test]
fn a_public_card_has_nothing_that_was_measured() {
    let mut report = signed();
    report.public = true;
    assert!(!card(&report).unwrap().contains("audit"));
}
