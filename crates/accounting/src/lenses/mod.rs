//! Lenses: ways of looking at a run. Each has a name, says what the attacker is assumed to see
//! (`release`), how far its numbers can be trusted (`standing`) and under which assumptions,
//! whether it holds for a run at all, and turns the run into a [`View`] that answers.
//!
//! A lens never computes another sampling scheme silently. `composition` asks the table of schemes
//! ([`crate::schemes`]) for the run's pair; every other lens is about Poisson and full batches and
//! refuses the rest with the reason.

mod advanced_composition;
mod closed_form;
mod composition;
mod full_batch;
mod gaussian_clt;
mod hidden_state;
mod last_iterate;
mod renyi;
mod view;

pub use view::{ProfileBound, View};

use crate::{AccountingError, domain};
use vocabulary::{LensName, Release, Run, Sampling, Standing};

/// One way of looking at a run.
pub struct Lens {
    pub name: LensName,
    pub release: Release,
    standing: fn(&Run) -> Standing,
    assumptions: fn(&Run) -> Vec<String>,
    look: fn(&Run) -> Result<View, AccountingError>,
}

/// Every lens, in the order in which they are shown.
#[rustfmt::skip]
pub const ALL: &[Lens] = &[
    composition::LENS,
    last_iterate::LENS,
    last_iterate::MAX_LENS,
    full_batch::LENS,
    renyi::LENS,
    gaussian_clt::LENS,
    advanced_composition::LENS,
    closed_form::LENS,
    closed_form::CENTRAL_LIMIT_LENS,
    closed_form::CERTIFIED_LENS,
    hidden_state::LENS,
    hidden_state::RENYI_LENS,
];

impl Lens {
    /// The lens of a name.
    ///
    /// # Errors
    /// `Unsupported` for names that have no lens yet.
    pub fn named(name: LensName) -> Result<&'static Self, AccountingError> {
        ALL.iter().find(|lens| lens.name == name).ok_or_else(|| {
            let known: Vec<&str> = ALL.iter().map(|lens| lens.name.as_str()).collect();
            AccountingError::Unsupported(format!(
                "the lens `{name}` is not available; choose one of {}",
                known.join(", ")
            ))
        })
    }

    /// How far this lens's numbers about `run` can be trusted.
    pub fn standing(&self, run: &Run) -> Standing {
        (self.standing)(run)
    }

    /// What must hold for its numbers to be true, in words.
    pub fn assumptions(&self, run: &Run) -> Vec<String> {
        let mut all = (self.assumptions)(run);
        all.push(neighbours(run));
        all.push(
            "each record's gradient is clipped, and the noise's standard deviation is the noise \
             multiplier times the clip norm, on the sum"
                .into(),
        );
        all.push(crate::schemes::stopping(run));
        all
    }

    /// Whether the lens holds for a run.
    ///
    /// # Errors
    /// The reason why not.
    pub fn supports(&self, run: &Run) -> Result<(), String> {
        match self.look(run) {
            Err(AccountingError::Unsupported(reason)) => Err(reason),
            _ => Ok(()),
        }
    }

    /// The run through this lens.
    ///
    /// # Errors
    /// `Unsupported` where the lens does not hold, `OutsideDomain` beyond the domain.
    pub fn look(&self, run: &Run) -> Result<View, AccountingError> {
        // The composition asks the run's scheme for its pair; every other lens has one of its own.
        if self.name != LensName::Composition {
            Self::check_sampling(run)?;
        }
        domain::check_run(run)?;
        (self.look)(run)
    }

    /// Refuses the schemes that no lens analyses.
    pub(crate) fn check_sampling(run: &Run) -> Result<(), AccountingError> {
        crate::schemes::only_plain(run)
    }
}

fn neighbours(run: &Run) -> String {
    let records = match run.group_size() {
        1 => "one record".to_owned(),
        size => format!("{size} records"),
    };
    let unit = run.unit().map(|unit| format!("; a record is {unit}")).unwrap_or_default();
    format!("neighbouring data sets differ by {} {records}{unit}", run.adjacency().words())
}

fn batches(run: &Run) -> String {
    if run.sampling() == Sampling::Full {
        "every record is in every batch".into()
    } else {
        "Poisson batches: every record joins every batch independently with the sample rate".into()
    }
}
