//! `schema`: the JSON schemas of the documents that commands print and read.

use crate::console::Console;
use crate::exit;
use crate::failure::Failure;
use accounting::compare::{BatchSizes, Map};
use accounting::curve::Curve;
use accounting::{Advice, Calibration};
use answers::{
    CalibrationMap, Check, Commitment, Comparison, ExperimentStatus, MembershipDocument, Panel,
    Planned, RefusalDocument, Translation,
};
use audit::sequential::SequentialDocument;
use clap::Args;
use schemars::{Schema, json_schema, schema_for};
use serde_json::json;
use vocabulary::{Account, Figure, Policy, Run};

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter schema                        # the names
  dosimeter schema dosimeter.account/1
")]
pub struct SchemaArgs {
    /// The document's schema number, e.g. dosimeter.account/1
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// A document's schema number and how its schema is made.
type Document = (&'static str, fn() -> Schema);

/// Every document and its schema.
const DOCUMENTS: &[Document] = &[
    (Account::SCHEMA, || schema_for!(Account)),
    (report::Report::SCHEMA, || schema_for!(report::Report)),
    (Calibration::SCHEMA, || schema_for!(Calibration)),
    (Advice::SCHEMA, || schema_for!(Advice)),
    (Curve::SCHEMA, || schema_for!(Curve)),
    (Comparison::SCHEMA, || schema_for!(Comparison)),
    (Map::SCHEMA, || schema_for!(Map)),
    (BatchSizes::SCHEMA, || schema_for!(BatchSizes)),
    (Check::SCHEMA, || schema_for!(Check)),
    (audit::Audit::SCHEMA, || schema_for!(audit::Audit)),
    (SequentialDocument::SCHEMA, || schema_for!(SequentialDocument)),
    (MembershipDocument::SCHEMA, || schema_for!(MembershipDocument)),
    (Commitment::SCHEMA, || schema_for!(Commitment)),
    (prover::Certificate::SCHEMA, || schema_for!(prover::Certificate)),
    (Planned::SCHEMA, || schema_for!(Planned)),
    (tuning::regression::Regression::SCHEMA, || schema_for!(tuning::regression::Regression)),
    (tuning::Ranking::SCHEMA, || schema_for!(tuning::Ranking)),
    (tuning::selection::Selection::SCHEMA, || schema_for!(tuning::selection::Selection)),
    (tuning::profiles::Profiles::SCHEMA, || schema_for!(tuning::profiles::Profiles)),
    (tuning::search::Search::SCHEMA, || schema_for!(tuning::search::Search)),
    (ExperimentStatus::SCHEMA, || schema_for!(ExperimentStatus)),
    (Panel::SCHEMA, || schema_for!(Panel)),
    (CalibrationMap::SCHEMA, || schema_for!(CalibrationMap)),
    (RefusalDocument::SCHEMA, || schema_for!(RefusalDocument<'static>)),
    (Translation::SCHEMA, || schema_for!(Translation)),
    (training::LEDGER_SCHEMA, || schema_for!(training::Ledger)),
    ("dosimeter.run/1", || schema_for!(Run)),
    ("dosimeter.policy/1", || schema_for!(Policy)),
    ("dosimeter.figure/1", || schema_for!(Figure)),
    ("dosimeter.attack/1", || outline("dosimeter.attack/1", &[("game", "string")])),
    ("dosimeter.data/1", || {
        outline("dosimeter.data/1", &[("datasets", "array"), ("files", "array")])
    }),
    ("dosimeter.data-description/1", || {
        let keys = [("path", "string"), ("header", "boolean"), ("rows", "integer")];
        outline("dosimeter.data-description/1", &[&keys[..], &[("columns", "array")]].concat())
    }),
    ("dosimeter.memorize/1", || {
        let keys = [("secrets", "integer"), ("completions", "integer"), ("score", "object")];
        outline("dosimeter.memorize/1", &[&keys[..], &[("per_secret", "array")]].concat())
    }),
    ("dosimeter.memorize-acr/1", || {
        let keys = [("secrets", "integer"), ("memorized", "integer"), ("share", "object")];
        outline("dosimeter.memorize-acr/1", &[&keys[..], &[("results", "array")]].concat())
    }),
    ("dosimeter.reproduce/1", reproduced),
];

/// What `reproduce` did, or what there is to reproduce (`--list`).
fn reproduced() -> Schema {
    let list = json!({ "type": "array", "items": { "type": "object" } });
    json_schema!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "schema": { "const": "dosimeter.reproduce/1" },
            "done": list,
            "entries": list,
            "trained": list,
        },
        "required": ["schema"],
        "oneOf": [{ "required": ["done"] }, { "required": ["entries", "trained"] }],
    })
}

/// The schema of a document whose further keys depend on what was asked: those that are always
/// there, with their types.
fn outline(name: &str, keys: &[(&str, &str)]) -> Schema {
    let mut properties = serde_json::Map::new();
    properties.insert("schema".into(), json!({ "const": name }));
    let mut required = vec!["schema"];
    for (key, kind) in keys {
        properties.insert((*key).to_owned(), json!({ "type": kind }));
        required.push(key);
    }
    json_schema!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
        "required": required,
    })
}

pub(super) fn run(args: &SchemaArgs, console: &mut Console) -> Result<u8, Failure> {
    let Some(name) = &args.name else {
        let names: Vec<&str> = DOCUMENTS.iter().map(|(name, _)| *name).collect();
        console.answer(&names.join("\n"))?;
        return Ok(exit::ANSWERED);
    };
    // `account` is enough for `dosimeter.account/1`.
    let full = |known: &str| {
        known == name
            || known
                .strip_prefix("dosimeter.")
                .is_some_and(|rest| rest.split('/').next() == Some(name))
    };
    let (_, schema) = DOCUMENTS.iter().find(|(known, _)| full(known)).ok_or_else(|| {
        let names: Vec<&str> = DOCUMENTS.iter().map(|(name, _)| *name).collect();
        Failure::bad_input(format!(
            "there is no document `{name}`; the documents are {}",
            names.join(", ")
        ))
    })?;
    console.json(&schema())?;
    Ok(exit::ANSWERED)
}
