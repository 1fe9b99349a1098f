//! "Closed-Form Bounds for DP-SGD against Record-level Inference" (Cherubin et al. 2024).

mod figure_1;
mod figure_2;
mod figure_3;
mod figure_4;
mod figure_5;
mod figure_6;
mod figure_7;
mod figure_8;
mod figure_9;
mod table;
mod trained;

use crate::{Entry, PaperError};
use accounting::bayes_security::{
    by_inversion, central_limit_mu, certified_lower_bound, closed_form_mu, security_of_mu,
};
use accounting::pairs::Composed;
use accounting::{AccountingError, directions};
use vocabulary::{Adjacency, Interval, Run};

pub(crate) const PAPER: &str = "Closed-Form Bounds for DP-SGD against Record-level Inference (Cherubin, Köpf, Paverd, Tople, Wutschitz, Zanella-Béguelin 2024, arXiv 2402.14397)";

pub(crate) const ENTRIES: &[Entry] = &[
    figure_1::ENTRY,
    figure_2::ENTRY,
    figure_3::ENTRY,
    figure_4::ENTRY,
    figure_5::ENTRY,
    figure_6::ENTRY,
    figure_7::ENTRY,
    figure_8::ENTRY,
    figure_9::ENTRY,
    figure_4::GRID,
    table::ENTRY,
];

/// Bayes security of one run by every route.
#[derive(Clone, Copy, Debug)]
struct Securities {
    /// Composition at epsilon 0; absent where it cannot be certified.
    exact: Option<Interval>,
    /// The middle of it where it is narrow, Fourier inversion without certified ends elsewhere.
    truth: f64,
    closed_form: f64,
    central_limit: f64,
    certified: f64,
}

fn run(sigma: f64, rate: f64, steps: u64, adjacency: Adjacency) -> Result<Run, PaperError> {
    Ok(Run::builder().phase(sigma, rate, steps).adjacency(adjacency).build()?)
}

fn exact(run: &Run) -> Result<Option<Interval>, PaperError> {
    match Composed::for_run(run).and_then(|pair| directions::bayes_security(&pair)) {
        Ok(security) => Ok(Some(security)),
        Err(AccountingError::NotCertified(_) | AccountingError::OutsideDomain(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn securities(run: &Run) -> Result<Securities, PaperError> {
    let central_limit = match central_limit_mu(run) {
        Err(AccountingError::OutsideDomain(_)) => 0.0,
        mu => security_of_mu(mu?),
    };
    let exact = exact(run)?;
    let truth = match exact {
        Some(exact) if exact.width() < 1e-7 => exact.value,
        _ => by_inversion(run)?,
    };
    Ok(Securities {
        exact,
        truth,
        closed_form: security_of_mu(closed_form_mu(run)?),
        central_limit,
        certified: certified_lower_bound(run)?,
    })
}

/// `count` numbers from `low` to `high`, even in the logarithm.
fn logarithmic(low: f64, high: f64, count: u32) -> Vec<f64> {
    (0..count).map(|i| low * (high / low).powf(f64::from(i) / f64::from(count - 1))).collect()
}
