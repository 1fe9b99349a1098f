//! An account whose ends have been checked again in ball arithmetic.

use crate::{Document, Refusal, TextFile, exit};
use prover::{Certificate, Outcome};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use serde_json::error::Category;
use vocabulary::{Account, Adjacency};

/// The account, its claims sealed where both ends are proven, with the proofs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Certified {
    #[serde(flatten)]
    pub account: Account,
    /// With `--certify`.
    #[schemars(with = "Option<Certificate>")]
    pub certificate: Certificate,
}

/// Checks every certified end of an account.
pub fn certified(mut account: Account) -> Certified {
    let certificate = prover::certify(&account);
    for (claim, proof) in account.claims.iter_mut().zip(&certificate.proofs) {
        if proof.as_ref().is_some_and(|proof| proof.outcome == Outcome::Proven) {
            claim.certificate = Some("balls".into());
        }
    }
    Certified { account, certificate }
}

/// Checks the ends of an account document, or of one claim with its run, `{"run": …, "claim": …}`.
///
/// # Errors
/// A text that is neither, and a claim about other neighbours than its run's.
pub fn prove(file: &TextFile) -> Result<Certificate, Refusal> {
    let place = &file.name;
    let refused = |why: String| {
        Refusal::bad_input(format!("{place} is not an account document: {why}"))
            .hint("make one with `dosimeter account … --format json > account.json`")
    };
    let bad_input = |error: serde_json::Error| {
        refused(match error.classify() {
            Category::Eof => "it ends too early".into(),
            Category::Syntax => format!("line {} is not valid JSON", error.line()),
            _ => error.to_string(),
        })
    };
    let mut value: Value = serde_json::from_str(&file.text).map_err(bad_input)?;
    // An array or a number has no keys.
    if !value.is_object() {
        return Err(refused("it is not an object".into()));
    }
    if let (Some(claim), true) = (value.get("claim").cloned(), value.get("claims").is_none()) {
        value["claims"] = Value::Array(vec![claim]);
    }
    for (key, empty) in [
        ("schema", Value::from(Account::SCHEMA)),
        ("unsupported", Value::Array(Vec::new())),
        ("warnings", Value::Array(Vec::new())),
    ] {
        if value.get(key).is_none() {
            value[key] = empty;
        }
    }
    // A claim that stands beside its run may leave the neighbours to it.
    let stated = value["run"]["adjacency"].clone();
    let stated = if stated.is_null() { Value::from(Adjacency::default().as_str()) } else { stated };
    for claim in value.get_mut("claims").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(claim) = claim.as_object_mut() {
            claim.entry("adjacency").or_insert_with(|| stated.clone());
        }
    }
    let account: Account = serde_json::from_value(value).map_err(bad_input)?;
    let neighbours = account.run.adjacency();
    match account.claims.iter().find(|claim| claim.adjacency != neighbours) {
        Some(claim) => Err(Refusal::bad_input(format!(
            "{place}: a claim is about {}, and its run about {}; a proof is about one of them",
            claim.adjacency.as_str(),
            neighbours.as_str()
        ))),
        None => Ok(prover::certify(&account)),
    }
}

impl Document for Certified {
    fn warnings(&self) -> Vec<String> {
        self.account.warnings()
    }

    fn exit_code(&self) -> u8 {
        self.certificate.exit_code()
    }
}

impl Document for Certificate {
    fn exit_code(&self) -> u8 {
        match self.outcome {
            Outcome::Proven => exit::ANSWERED,
            Outcome::Wrong => exit::CHECK_FAILED,
            Outcome::Undecided => exit::REFUSED,
        }
    }
}
