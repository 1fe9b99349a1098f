//! `advanced-composition`: the textbook (Dwork, Rothblum, Vadhan 2010) on the classical Gaussian
//! mechanism with amplification by sampling. Proven and very loose: for comparison only. Where
//! the classical theorem needs a step's epsilon below 1 and there is too little noise for that,
//! it says nothing, and its epsilon is infinite.

use super::view::ProfileBound;
use super::{Lens, PLAIN, View};
use crate::AccountingError;
use crate::pairs::AdvancedComposition;
use vocabulary::LensName;
use vocabulary::figure::Hue;

pub(super) const LENS: Lens = Lens {
    name: LensName::AdvancedComposition,
    hue: Hue::Ink,
    supports: |subject| {
        (PLAIN.supports)(subject)?;
        AdvancedComposition::for_run(subject.run).map(drop)
    },
    look: |subject| Ok(View::bound(AdvancedComposition::for_run(subject.run)?)),
    ..PLAIN
};

impl ProfileBound for AdvancedComposition {
    fn epsilon(&self, delta: f64) -> Result<f64, AccountingError> {
        Ok(AdvancedComposition::epsilon(self, delta)?.upper)
    }

    fn delta(&self, epsilon: f64) -> Result<f64, AccountingError> {
        Ok(AdvancedComposition::delta(self, epsilon)?.upper)
    }

    fn no_attack_terms(&self) -> Option<&'static str> {
        Some("the textbook theorem gives epsilon and delta only")
    }

    fn vacuous(&self, delta: f64) -> Option<String> {
        AdvancedComposition::vacuous(self, delta)
    }
}
