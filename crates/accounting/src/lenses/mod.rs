//! Lenses: ways of looking at a run. Each has a name, says what the attacker is assumed to see
//! (`release`), how far its numbers can be trusted (`standing`) and under which assumptions,
//! whether it holds for a run at all, and turns the run into a [`View`] that answers.
//!
//! A lens never computes another sampling scheme silently. `composition` asks the table of schemes
//! ([`crate::schemes`]) for the run's pair; every other lens holds for Poisson and full batches and
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

use crate::bayes_security::attribute::{AttributeSecurity, Sensitivities};
use crate::hidden_state::Loss;
use crate::{AccountingError, domain, schemes};
use vocabulary::figure::Hue;
use vocabulary::{Interval, LensName, NotCovered, Release, Run, Sampling, Standing};

/// What is looked at: a run, and what is known beyond it.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub run: &'a Run,
    /// Constants of the loss; some lenses need them.
    pub loss: Option<&'a Loss>,
    /// Sensitivities of gradients to a secret attribute: claims about it are made.
    pub attribute: Option<&'a Sensitivities>,
}

impl<'a> From<&'a Run> for Subject<'a> {
    fn from(run: &'a Run) -> Self {
        Self { run, loss: None, attribute: None }
    }
}

/// One way of looking at a run. Everything that is particular to a lens stands in its file.
pub struct Lens {
    pub name: LensName,
    pub release: Release,
    /// Its colour in figures.
    pub hue: Hue,
    standing: fn(&Run) -> Standing,
    assumptions: fn(&Run) -> Vec<String>,
    /// What it takes on trust beyond the run, in words.
    trusts: fn(&Subject<'_>) -> Option<String>,
    /// Whether it holds; computes no number.
    supports: fn(&Subject<'_>) -> Result<(), AccountingError>,
    look: fn(&Subject<'_>) -> Result<View, AccountingError>,
    /// Whether an account is refused when this lens cannot be certified.
    pub(crate) required: bool,
    /// Whether its view is one pair, by which a record can be named among candidates.
    pub(crate) one_pair: bool,
    /// Whether it adds the steps up before it looks, so that mu grows like q sqrt(T)/sigma.
    pub(crate) adds_up: bool,
    /// Whether more steps never leak less; with full batches every lens is so.
    pub(crate) monotone: bool,
    /// What it says about a secret attribute; most lenses say nothing.
    attribute: Option<fn(&AttributeSecurity) -> Interval>,
    /// What it takes on trust about an attribute, in words.
    pub(crate) attribute_trusts: Option<&'static str>,
    /// Whether figures set its epsilon beside what audits show.
    pub beside_audits: bool,
    /// Whether figures of delta against epsilon draw it.
    pub in_profiles: bool,
}

/// What most lenses have in common: they are about plain Poisson and full batches and need nothing
/// but the run.
const PLAIN: Lens = Lens {
    name: LensName::Composition,
    release: Release::AllIterates,
    hue: Hue::Muted,
    standing: |_| Standing::Proven,
    assumptions: |run| vec!["the attacker sees every iterate".into(), batches(run)],
    trusts: |_| None,
    supports: |subject| schemes::only_plain(subject.run),
    look: |_| unreachable!("every lens has its own"),
    required: false,
    one_pair: true,
    adds_up: false,
    monotone: true,
    attribute: None,
    attribute_trusts: None,
    beside_audits: false,
    in_profiles: false,
};

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

// Every name has its lens, at the place of the name.
const _: () = {
    assert!(ALL.len() == LensName::ALL.len());
    let mut place = 0;
    while place < ALL.len() {
        assert!(ALL[place].name as usize == place);
        place += 1;
    }
};

impl Lens {
    /// The lens of a name.
    pub fn named(name: LensName) -> &'static Self {
        &ALL[name as usize]
    }

    /// The lenses that bound what is learned about an attribute.
    pub fn about_attributes() -> impl Iterator<Item = &'static Self> {
        ALL.iter().filter(|lens| lens.attribute.is_some())
    }

    /// An attribute's Bayes security through this lens.
    ///
    /// # Errors
    /// `Unsupported` for lenses that say nothing about attributes.
    pub(crate) fn attribute(&self, security: &AttributeSecurity) -> Result<View, AccountingError> {
        let Some(attribute) = self.attribute else {
            let known = Self::about_attributes().map(|lens| lens.name).collect();
            return Err(NotCovered::NoAttribute { lens: self.name, known }.into());
        };
        Ok(View::Security(attribute(security)))
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

    /// What it takes on trust beyond the run, in words.
    pub(crate) fn trusts(&self, subject: &Subject<'_>) -> Option<String> {
        (self.trusts)(subject)
    }

    /// Whether the lens holds for a run; computes no number.
    ///
    /// # Errors
    /// The reason why not.
    pub fn supports<'a>(&self, subject: impl Into<Subject<'a>>) -> Result<(), NotCovered> {
        match (self.supports)(&subject.into()) {
            Err(AccountingError::Unsupported(reason)) => Err(reason),
            _ => Ok(()),
        }
    }

    /// The run through this lens.
    ///
    /// # Errors
    /// `Unsupported` where the lens does not hold, `OutsideDomain` beyond the domain.
    pub fn look<'a>(&self, subject: impl Into<Subject<'a>>) -> Result<View, AccountingError> {
        let subject = subject.into();
        (self.supports)(&subject)?;
        domain::check_run(subject.run)?;
        (self.look)(&subject)
    }
}

/// `a, b or c`.
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
