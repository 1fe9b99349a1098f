//! `closed-form`, `closed-form-clt`, `closed-form-certified`: Bayes security as a formula
//! ([`crate::bayes_security`]). The first is the one that is published (Cherubin et al. 2024,
//! Corollary 7 without its error term): an estimate that lies on the unsafe side. The second
//! corrects its first-order error: an estimate. The third is proven and never above the truth.
//! They answer Bayes security, the advantage and what follows from TPR - FPR <= 1 - beta.

use super::{Lens, PLAIN, View, batches};
use crate::AccountingError;
use crate::bayes_security::{
    central_limit_mu, certified_lower_bound, closed_form_mu, security_of_mu,
};
use numerics::elementary::{exp, powi};
use vocabulary::{Interval, LensName, Run, Standing};

pub(super) const LENS: Lens = Lens {
    name: LensName::ClosedForm,
    adds_up: true,
    standing: |_| Standing::Estimate,
    assumptions: |run| {
        with(
            run,
            "the published closed form without its error term: no bound, and it errs on the \
             unsafe side (the true Bayes security is lower, by up to 0.4 where noise is little)",
        )
    },
    look: |subject| {
        Ok(View::Security(Interval::exact(security_of_mu(closed_form_mu(subject.run)?))))
    },
    attribute: Some(|security| Interval::exact(security.closed_form)),
    attribute_trusts: Some(
        "the published closed form without its error term: it errs on the unsafe side",
    ),
    ..PLAIN
};

pub(super) const CENTRAL_LIMIT_LENS: Lens = Lens {
    name: LensName::ClosedFormClt,
    standing: |_| Standing::Estimate,
    assumptions: |run| {
        let off: f64 = run
            .phases()
            .iter()
            .map(|phase| phase.sample_rate * exp(1.5 * powi(phase.noise_multiplier, -2)))
            .fold(0.0, f64::max);
        let words = if off < 1.0 {
            format!(
                "the log-likelihood ratio is already normal: 1 - beta is off by about {:.0e} of \
                 itself (q e^(3/(2 sigma^2)); measured, not proven)",
                off
            )
        } else {
            "the log-likelihood ratio is already normal, which it is far from: \
             q e^(3/(2 sigma^2)) is above 1"
                .into()
        };
        with(run, &words)
    },
    look: |subject| {
        let mu = match central_limit_mu(subject.run) {
            // So far apart that nothing is hidden.
            Err(AccountingError::OutsideDomain(_)) => f64::INFINITY,
            other => other?,
        };
        Ok(View::Security(Interval::exact(security_of_mu(mu))))
    },
    attribute: Some(|security| Interval::exact(security.central_limit)),
    attribute_trusts: Some("the log-likelihood ratio is already normal (central limit)"),
    ..PLAIN
};

pub(super) const CERTIFIED_LENS: Lens = Lens {
    name: LensName::ClosedFormCertified,
    look: |subject| Ok(View::Security(at_least(certified_lower_bound(subject.run)?))),
    attribute: Some(|security| at_least(security.certified)),
    ..PLAIN
};

fn at_least(bound: f64) -> Interval {
    Interval { lower: bound, value: bound, upper: 1.0 }
}

fn with(run: &Run, words: &str) -> Vec<String> {
    vec!["the attacker sees every iterate".into(), batches(run), words.into()]
}
