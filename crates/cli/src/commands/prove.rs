//! `prove`: every certified end of an account document checked again, in ball arithmetic.

use super::show;
use crate::args::{Format, OutputArgs};
use crate::console::Console;
use answers::Refusal;
use clap::Args;
use prover::{Certificate, EndProof, Outcome, Proof};
use serde_json::Value;
use serde_json::error::Category;
use std::path::PathBuf;
use vocabulary::{Account, Adjacency};

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter account run.toml --delta 1e-5 --format json > account.json
  dosimeter prove account.json
  dosimeter prove account.json --format json     # what was enclosed, and how
")]
pub struct ProveArgs {
    /// An account document, or one claim with its run: {"run": …, "claim": …}
    #[arg(value_name = "FILE.json")]
    file: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &ProveArgs, console: &mut Console) -> Result<u8, Refusal> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let account = load(args)?;
    let certificate = prover::certify(&account);
    let code = show(&certificate, format, console, text)?;
    tell(&certificate, console);
    Ok(code)
}

fn text(certificate: &Certificate) -> String {
    let mut text = String::new();
    for proof in certificate.proofs.iter().flatten() {
        text.push_str(&line(proof));
        for end in [&proof.lower, &proof.upper] {
            text.push_str(&format!("  {}: {}\n", end.outcome.as_str(), end.statement));
        }
    }
    text
}

/// Says what is wrong or undecided.
pub(super) fn tell(certificate: &Certificate, console: &mut Console) {
    let all: Vec<&Proof> = certificate.proofs.iter().flatten().collect();
    for proof in &all {
        for (name, end) in [("lower", &proof.lower), ("upper", &proof.upper)] {
            match end.outcome {
                Outcome::Proven => {}
                Outcome::Undecided => {
                    console.warn(&format!("{} end undecided: {}", name, end.statement));
                }
                Outcome::Wrong => console.note(&report(certificate, proof, name, end)),
            }
        }
    }
    let proven = all.iter().filter(|proof| proof.outcome == Outcome::Proven).count();
    console.note(&format!("{proven} of {} claims proven in ball arithmetic", all.len()));
}

/// What a person can paste into a bug report.
fn report(certificate: &Certificate, proof: &Proof, name: &str, end: &EndProof) -> String {
    let run = serde_json::to_string(&certificate.run).unwrap_or_default();
    let details = serde_json::to_string(end).unwrap_or_default();
    format!(
        "a certified end is wrong; please report it:\n  version {}\n  run {}\n  {}  {name} end {:?}: {}\n  {}",
        env!("CARGO_PKG_VERSION"),
        run,
        line(proof),
        end.end,
        end.statement,
        details
    )
}

fn line(proof: &Proof) -> String {
    let at = [
        ("delta", proof.at.delta),
        ("epsilon", proof.at.epsilon),
        ("fpr", proof.at.fpr),
        ("prior", proof.at.prior),
    ];
    let at: Vec<String> =
        at.iter().filter_map(|(name, x)| x.map(|x| format!(" at {name} {x}"))).collect();
    format!(
        "{} {} {}{}\n",
        proof.lens,
        proof.direction.as_str(),
        proof.quantity.as_str(),
        at.concat()
    )
}

fn load(args: &ProveArgs) -> Result<Account, Refusal> {
    let place = args.file.display();
    let text = std::fs::read_to_string(&args.file)
        .map_err(|error| Refusal::bad_input(format!("cannot read {place}: {error}")))?;
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
    let mut value: Value = serde_json::from_str(&text).map_err(bad_input)?;
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
        None => Ok(account),
    }
}
