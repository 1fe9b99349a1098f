//! `renyi`: the Rényi accountant that users know (Mironov, Talwar, Zhang 2019, with the
//! conversion of Canonne, Kamath, Steinke 2020, Proposition 12). Proven, and looser than
//! composition: a cross-check.

use super::view::ProfileBound;
use super::{Lens, PLAIN, View};
use crate::AccountingError;
use crate::pairs::{FilterBound, RenyiBound};
use vocabulary::LensName;
use vocabulary::figure::Hue;

pub(super) const LENS: Lens = Lens {
    name: LensName::Renyi,
    hue: Hue::Sky,
    supports: |subject| {
        (PLAIN.supports)(subject)?;
        RenyiBound::for_run(subject.run).map(drop)
    },
    look: |subject| Ok(View::bound(RenyiBound::for_run(subject.run)?)),
    ..PLAIN
};

impl ProfileBound for FilterBound {
    fn epsilon(&self, delta: f64) -> Result<f64, AccountingError> {
        FilterBound::epsilon(self, delta)
    }

    fn delta(&self, epsilon: f64) -> Result<f64, AccountingError> {
        FilterBound::delta(self, epsilon)
    }
}

impl ProfileBound for RenyiBound {
    fn epsilon(&self, delta: f64) -> Result<f64, AccountingError> {
        Ok(RenyiBound::epsilon(self, delta)?.upper)
    }

    fn delta(&self, epsilon: f64) -> Result<f64, AccountingError> {
        Ok(RenyiBound::delta(self, epsilon)?.upper)
    }

    fn rough_delta(&self, epsilon: f64) -> Result<f64, AccountingError> {
        Ok(RenyiBound::rough_delta(self, epsilon)?.upper)
    }
}
