//! The epsilon that a claimed run has: what audits and plans compare with.

use crate::{AuditQuestion, Refusal};
use accounting::{AccountingError, Questions};
use vocabulary::{Claim, Interval, LensName, NotCovered, Quantity, Run, Standing};

/// The smallest proven epsilon of a run at delta; unbounded at delta 0.
///
/// # Errors
/// Where nothing is proven about the run, and those of the accounting.
pub fn epsilon(run: &Run, delta: f64) -> Result<Claim, AccountingError> {
    if delta <= 0.0 {
        let (source, unbounded) = (LensName::SIGNED.into(), Interval::exact(f64::INFINITY));
        return Ok(Claim::epsilon(source, run.adjacency(), Standing::Proven, delta, unbounded));
    }
    let questions = Questions {
        deltas: vec![delta],
        lenses: vec![LensName::SIGNED],
        quantities: vec![Quantity::Epsilon],
        ..Questions::default()
    };
    let account = accounting::account(run, &questions)?;
    account
        .claims
        .into_iter()
        .filter(|claim| claim.standing == Standing::Proven)
        .reduce(|best, next| if next.interval.upper < best.interval.upper { next } else { best })
        .ok_or_else(|| NotCovered::NothingProven.into())
}

/// The claim of an audit's run. A run that nobody asked to claim may have nothing proven about it.
///
/// # Errors
/// As [`epsilon`].
pub(crate) fn of(
    question: &AuditQuestion,
    run: &Run,
    delta: f64,
) -> Result<Option<Claim>, Refusal> {
    match epsilon(run, delta) {
        Err(AccountingError::Unsupported(_)) if question.claims_made_by() => Ok(None),
        claim => Ok(Some(claim?)),
    }
}
