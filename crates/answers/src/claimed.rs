//! The epsilon that a claimed run has: what audits and plans compare with.

use accounting::{AccountingError, Questions};
use audit::AuditError;
use audit::verdict::ClaimedEpsilon;
use vocabulary::{LensName, Quantity, Run, Standing};

/// The smallest proven epsilon of a run at delta; unbounded at delta 0.
///
/// # Errors
/// Where nothing is proven about the run, and those of the accounting.
pub fn epsilon(run: &Run, delta: f64) -> Result<ClaimedEpsilon, AuditError> {
    if delta <= 0.0 {
        return Ok(ClaimedEpsilon { lower: f64::INFINITY, upper: f64::INFINITY });
    }
    let questions = Questions {
        deltas: vec![delta],
        lenses: vec![LensName::Composition],
        quantities: vec![Quantity::Epsilon],
        ..Questions::default()
    };
    let account = accounting::account(run, &questions)?;
    account
        .claims
        .iter()
        .filter(|claim| claim.standing == Standing::Proven)
        .map(|claim| ClaimedEpsilon { lower: claim.interval.lower, upper: claim.interval.upper })
        .reduce(|best, next| if next.upper < best.upper { next } else { best })
        .ok_or_else(|| {
            AuditError::Accounting(AccountingError::Unsupported(
                "no proven epsilon is known for the claimed run, so there is nothing to compare with"
                    .to_owned(),
            ))
        })
}
