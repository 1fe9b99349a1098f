//! `schema`: the JSON schemas of the documents that commands print and read.

use crate::console::Console;
use crate::exit;
use accounting::compare::{BatchSizes, Map};
use accounting::curve::Curve;
use accounting::{Advice, Calibration};
use answers::{
    ATTACK_SCHEMA, CalibrationMap, Certified, Check, Commitment, Comparison, DataDescription,
    DataDocument, ExperimentStatus, MembershipDocument, Panel, Planned, Refusal, RefusalDocument,
    RunDocument, Translation, attack_schema,
};
use audit::sequential::SequentialDocument;
use clap::Args;
#[cfg(feature = "language")]
use language::{compression::Compressions, memorization::Memorization};
use schemars::{Schema, schema_for};
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
    (Account::SCHEMA, || schema_for!(Certified)),
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
    (tuning::search::SearchCost::SCHEMA, || schema_for!(tuning::search::SearchCost)),
    (ExperimentStatus::SCHEMA, || schema_for!(ExperimentStatus)),
    (Panel::SCHEMA, || schema_for!(Panel)),
    (CalibrationMap::SCHEMA, || schema_for!(CalibrationMap)),
    (RefusalDocument::SCHEMA, || schema_for!(RefusalDocument<'static>)),
    (Translation::SCHEMA, || schema_for!(Translation)),
    (training::LEDGER_SCHEMA, || schema_for!(training::Ledger)),
    (RunDocument::SCHEMA, || schema_for!(RunDocument<Run>)),
    ("dosimeter.policy/1", || schema_for!(Policy)),
    ("dosimeter.figure/1", || schema_for!(Figure)),
    (ATTACK_SCHEMA, attack_schema),
    (DataDocument::SCHEMA, || schema_for!(DataDocument)),
    (DataDescription::SCHEMA, || schema_for!(DataDescription)),
    #[cfg(feature = "language")]
    (Memorization::SCHEMA, || schema_for!(Memorization)),
    #[cfg(feature = "language")]
    (Compressions::SCHEMA, || schema_for!(Compressions)),
    #[cfg(feature = "papers")]
    (answers::Reproduced::SCHEMA, || schema_for!(answers::Reproduced)),
];

pub(super) fn run(args: &SchemaArgs, console: &mut Console) -> Result<u8, Refusal> {
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
    let (name, schema) = DOCUMENTS.iter().find(|(known, _)| full(known)).ok_or_else(|| {
        let names: Vec<&str> = DOCUMENTS.iter().map(|(name, _)| *name).collect();
        Refusal::bad_input(format!(
            "there is no document `{name}`; the documents are {}",
            names.join(", ")
        ))
    })?;
    let mut schema = schema();
    if let Some(property) = schema.pointer_mut("/properties/schema") {
        *property = serde_json::json!({ "const": name });
    }
    console.json(&schema)?;
    Ok(exit::ANSWERED)
}

#[cfg(test)]
mod tests {
    /// Python and the page know the names from there.
    #[test]
    fn the_vocabulary_lists_every_document() {
        let names: Vec<&str> = super::DOCUMENTS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, vocabulary::SCHEMAS);
    }
}
