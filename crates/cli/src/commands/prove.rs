//! `prove`: every certified end of an account document checked again, in ball arithmetic.

use super::show;
use crate::args::{Format, OutputArgs};
use crate::console::Console;
use answers::{Refusal, TextFile};
use clap::Args;
use prover::{Certificate, EndProof, Outcome, Proof};
use std::path::PathBuf;

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
    let place = args.file.display();
    let text = std::fs::read_to_string(&args.file)
        .map_err(|error| Refusal::bad_input(format!("cannot read {place}: {error}")))?;
    let certificate = answers::prove(&TextFile { name: place.to_string(), text })?;
    let code = show(&certificate, format, console, human)?;
    tell(&certificate, console);
    Ok(code)
}

fn human(certificate: &Certificate) -> String {
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
