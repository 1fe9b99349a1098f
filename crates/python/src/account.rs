//! `account`: claims as tuples, in the order of the document's keys. Python makes its `Claim`s
//! from them when they are looked at.

use crate::errors::{from_accounting, invalid};
use crate::interruptible;
use crate::run::{Run, choice};
use accounting::{AccountingError, Questions};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::hint::black_box;
use std::time::Instant;
use vocabulary::{Account, At, Claim, LensName, Quantity, Secret, Side};

/// What can be asked for alone.
const QUANTITIES: &[(&str, Quantity)] = &[
    ("epsilon", Quantity::Epsilon),
    ("delta", Quantity::Delta),
    ("mu", Quantity::Mu),
    ("tpr", Quantity::Tpr),
    ("advantage", Quantity::Advantage),
    ("bayes-security", Quantity::BayesSecurity),
    ("reconstruction", Quantity::Reconstruction),
];

/// Answers all questions about a run: `(claims, unsupported, asides, warnings)`.
#[pyfunction]
#[pyo3(signature = (run, deltas, epsilons, fprs, priors, directions, lenses, quantities))]
#[expect(clippy::too_many_arguments, reason = "the keywords of the Python function")]
pub(crate) fn account<'py>(
    py: Python<'py>,
    run: &Bound<'py, Run>,
    deltas: Vec<f64>,
    epsilons: Vec<f64>,
    fprs: Vec<f64>,
    priors: Vec<f64>,
    directions: bool,
    lenses: Vec<String>,
    quantities: Vec<String>,
) -> PyResult<Bound<'py, PyTuple>> {
    let lenses = lens_names(py, &lenses)?;
    let quantities = quantity_names(py, &quantities)?;
    let resolved = &run.get().resolved;
    let notes = resolved.notes.clone();
    let questions =
        Questions { deltas, epsilons, fprs, priors, directions, lenses, quantities, notes };
    let answer = interruptible::here(py, || accounting::account(&resolved.run, &questions))?;
    let account = answer.map_err(|error| from_accounting(py, &error))?;
    document(py, &account)
}

/// Seconds of one call without Python: the median of some, for the benchmark.
#[pyfunction]
#[pyo3(signature = (run, deltas, lenses, quantities, repetitions))]
pub(crate) fn account_seconds(
    py: Python<'_>,
    run: &Bound<'_, Run>,
    deltas: Vec<f64>,
    lenses: Vec<String>,
    quantities: Vec<String>,
    repetitions: usize,
) -> PyResult<f64> {
    let lenses = lens_names(py, &lenses)?;
    let quantities = quantity_names(py, &quantities)?;
    let resolved = run.get().resolved.clone();
    let notes = resolved.notes;
    let questions = Questions { deltas, lenses, quantities, notes, ..Questions::default() };
    py.detach(|| {
        let mut seconds: Vec<f64> = Vec::new();
        for _ in 0..repetitions {
            let start = Instant::now();
            black_box(accounting::account(black_box(&resolved.run), &questions))?;
            seconds.push(start.elapsed().as_secs_f64());
        }
        seconds.sort_by(f64::total_cmp);
        Ok(seconds.get(repetitions / 2).copied().unwrap_or(f64::NAN))
    })
    .map_err(|error: AccountingError| from_accounting(py, &error))
}

/// The lenses of these names.
///
/// # Errors
/// `InvalidInput` with the known names.
pub(crate) fn lens_names(py: Python<'_>, names: &[String]) -> PyResult<Vec<LensName>> {
    let parse = |name: &String| {
        LensName::parse(name).ok_or_else(|| {
            let known = LensName::ALL.map(LensName::as_str).join(", ");
            invalid(py, &format!("there is no lens `{name}`; choose one of {known}"))
        })
    };
    names.iter().map(parse).collect()
}

fn quantity_names(py: Python<'_>, names: &[String]) -> PyResult<Vec<Quantity>> {
    let parse = |name: &String| {
        let found = choice(py, "quantity", Some(name), QUANTITIES)?;
        Ok(found.unwrap_or(Quantity::Epsilon))
    };
    names.iter().map(parse).collect()
}

fn document<'py>(py: Python<'py>, account: &Account) -> PyResult<Bound<'py, PyTuple>> {
    let claims = PyList::empty(py);
    // The claims of a lens share their assumptions.
    let mut shared: Option<(&[String], Bound<'py, PyTuple>)> = None;
    for claim in &account.claims {
        let assumptions = match &shared {
            Some((texts, tuple)) if *texts == claim.assumptions.as_slice() => tuple.clone(),
            _ => PyTuple::new(py, &claim.assumptions)?,
        };
        claims.append(tuple(py, claim, &assumptions)?)?;
        shared = Some((&claim.assumptions, assumptions));
    }
    let unsupported: Vec<(&str, &str)> =
        account.unsupported.iter().map(|one| (one.lens.as_str(), one.reason.as_str())).collect();
    let asides = serde_json::to_string(&account.asides).expect("asides are plain data");
    (claims, unsupported, asides, &account.warnings).into_pyobject(py)
}

fn tuple<'py>(
    py: Python<'py>,
    claim: &Claim,
    assumptions: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyTuple>> {
    let At { delta, epsilon, fpr, prior } = claim.at;
    let threat = (
        claim.source.as_str(),
        claim.release.as_str(),
        secret(claim.secret),
        claim.direction.as_str(),
        claim.quantity.as_str(),
    );
    let interval = claim.interval;
    (
        threat,
        (delta, epsilon, fpr, prior),
        claim.standing.as_str(),
        side(claim.side),
        (interval.value, interval.lower, interval.upper),
        claim.confidence,
        claim.reason.as_deref(),
        assumptions,
    )
        .into_pyobject(py)
}

/// The names that the documents use.
fn secret(secret: Secret) -> &'static str {
    match secret {
        Secret::Membership => "membership",
        Secret::Attribute => "attribute",
        Secret::Reconstruction => "reconstruction",
    }
}

fn side(side: Side) -> &'static str {
    match side {
        Side::Upper => "upper",
        Side::Lower => "lower",
        Side::Neither => "neither",
    }
}
