//! An account whose ends have been checked again in ball arithmetic.

use crate::{Document, exit};
use prover::{Certificate, Outcome};
use schemars::JsonSchema;
use serde::Serialize;
use vocabulary::Account;

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
