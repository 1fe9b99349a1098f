//! The output: the table's header and the rows of all chunks in order, and beside it what made it.

use crate::plan::hex;
use crate::store::{read_if_there, remove_if_there};
use crate::{ExperimentError, Folder, Plan};
use formats::files::{self, with_suffix};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

const METADATA_SCHEMA: &str = "dosimeter.output/1";

/// What made an output file; stored beside it as `….meta.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    pub schema: String,
    /// The plan's name.
    pub plan: String,
    pub kind: String,
    pub parameters: Value,
    pub seed: u64,
    pub trials: u64,
    /// Of the output file.
    pub sha256: String,
}

impl Metadata {
    /// Where the metadata of an output file is.
    pub fn path(output: &Path) -> PathBuf {
        with_suffix(output, ".meta.json")
    }

    /// The metadata beside an output file; `None` when there is none or it is not ours.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    pub fn beside(output: &Path) -> Result<Option<Self>, ExperimentError> {
        let bytes = read_if_there(&Self::path(output))?;
        Ok(bytes
            .and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok())
            .filter(|metadata| metadata.schema == METADATA_SCHEMA))
    }
}

/// Whether nothing here belongs to another plan.
pub(crate) fn belongs(
    plan: &Plan,
    folder: &Folder,
    output: &Path,
) -> Result<bool, ExperimentError> {
    let here = match folder.plan() {
        Ok(found) => found,
        Err(ExperimentError::CorruptPlan { .. }) => return Ok(false),
        Err(error) => return Err(error),
    };
    if here.is_some_and(|found| found.digest() != plan.digest() || found.trials > plan.trials) {
        return Ok(false);
    }
    Ok(check_output(plan, folder, output).is_ok())
}

/// Whether the output is already the one this plan makes.
pub(crate) fn is_finished(
    plan: &Plan,
    folder: &Folder,
    output: &Path,
) -> Result<bool, ExperimentError> {
    let Some(metadata) = Metadata::beside(output)? else { return Ok(false) };
    if metadata.plan != plan.digest() || metadata.trials != plan.trials {
        return Ok(false);
    }
    if folder.plan()?.is_some_and(|found| found.digest() != plan.digest()) {
        return Ok(false);
    }
    let Some(bytes) = read_if_there(output)? else { return Ok(false) };
    Ok(hex(&Sha256::digest(&bytes)) == metadata.sha256)
}

/// An output that another plan or another program wrote is not touched.
pub(crate) fn check_output(
    plan: &Plan,
    folder: &Folder,
    output: &Path,
) -> Result<(), ExperimentError> {
    if !output.exists() {
        return Ok(());
    }
    match Metadata::beside(output)? {
        Some(metadata) if metadata.plan == plan.digest() => Ok(()),
        Some(metadata) => {
            let found = Plan::new(
                metadata.kind,
                metadata.parameters,
                metadata.seed,
                plan.header.clone(),
                plan.chunk_trials,
                plan.trials,
            );
            let difference = plan.difference(&found);
            Err(ExperimentError::OtherPlan { path: output.to_owned(), difference })
        }
        // Interrupted between the output and its metadata: decided when the rows are known.
        None if has_all_chunks(plan, folder) => Ok(()),
        None => Err(ExperimentError::ForeignOutput { path: output.to_owned() }),
    }
}

fn has_all_chunks(plan: &Plan, folder: &Folder) -> bool {
    (0..plan.chunks()).all(|index| matches!(folder.chunk(plan, index), Ok(Some(_))))
}

/// Removes an output and its metadata.
pub(crate) fn remove(output: &Path) -> Result<(), ExperimentError> {
    remove_if_there(output)?;
    remove_if_there(&Metadata::path(output))
}

/// Writes the output, then its metadata. An output that is there must be a beginning of the new
/// one: rows never change, they only become more.
pub(crate) fn merge(plan: &Plan, folder: &Folder, output: &Path) -> Result<(), ExperimentError> {
    let old = read_if_there(output)?.unwrap_or_default();
    let mut digest = Sha256::new();
    let mut failure = None;
    let written = files::write_with(output, false, |file| {
        let mut writer = BufWriter::with_capacity(1 << 20, file);
        match write_table(plan, folder, output, &old, &mut writer, &mut digest) {
            Ok(()) => writer.flush(),
            Err(error) => {
                failure = Some(error);
                Err(std::io::Error::other("not merged"))
            }
        }
    });
    if let Some(error) = failure {
        return Err(error);
    }
    written.map_err(ExperimentError::io("write", output))?;
    let metadata = Metadata {
        schema: METADATA_SCHEMA.to_owned(),
        plan: plan.digest(),
        kind: plan.kind.clone(),
        parameters: plan.parameters.clone(),
        seed: plan.seed,
        trials: plan.trials,
        sha256: hex(&digest.finalize()),
    };
    let mut text = serde_json::to_string_pretty(&metadata).expect("metadata is plain data");
    text.push('\n');
    let path = Metadata::path(output);
    files::write(&path, text).map_err(ExperimentError::io("write", &path))
}

fn write_table(
    plan: &Plan,
    folder: &Folder,
    output: &Path,
    old: &[u8],
    writer: &mut impl Write,
    digest: &mut Sha256,
) -> Result<(), ExperimentError> {
    let foreign = || ExperimentError::ForeignOutput { path: output.to_owned() };
    let mut rest = old;
    let mut put = |text: &str| {
        let bytes = text.as_bytes();
        let (known, beyond) = rest.split_at(rest.len().min(bytes.len()));
        if !bytes.starts_with(known) {
            return Err(foreign());
        }
        rest = beyond;
        digest.update(bytes);
        writer.write_all(bytes).map_err(ExperimentError::io("write", output))
    };
    put(&format!("{}\n", plan.header))?;
    for index in 0..plan.chunks() {
        let rows = folder.chunk(plan, index)?.ok_or_else(|| ExperimentError::ChunkFailed {
            index,
            reason: "it disappeared while merging".to_owned(),
        })?;
        put(&rows)?;
    }
    if rest.is_empty() { Ok(()) } else { Err(foreign()) }
}
