//! `renyi`: the Rényi accountant that users know (Mironov, Talwar, Zhang 2019, with the
//! conversion of Canonne, Kamath, Steinke 2020, Proposition 12). Proven, and looser than
//! composition: a cross-check.

use super::view::ProfileBound;
use super::{Lens, View, batches};
use crate::AccountingError;
use crate::pairs::RenyiBound;
use vocabulary::{LensName, Release, Standing};

pub(super) const LENS: Lens = Lens {
    name: LensName::Renyi,
    release: Release::AllIterates,
    standing: |_| Standing::Proven,
    assumptions: |run| vec!["the attacker sees every iterate".into(), batches(run)],
    look: |run| Ok(View::bound(RenyiBound::for_run(run)?)),
};

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
