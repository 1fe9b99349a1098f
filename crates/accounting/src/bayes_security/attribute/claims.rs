//! Claims about an attribute, from its sensitivities, under the three closed-form lenses.

use super::{Mode, Sensitivities};
use crate::AccountingError;
use crate::account::{ClaimMaker, DEFAULT_FPRS, Questions};
use crate::lenses::{Lens, View};
use vocabulary::{
    At, Claim, Direction, Interval, LensName, Quantity, Run, Secret, Side, Source, Standing,
};

/// The lenses that speak about attributes.
pub const LENSES: [LensName; 3] =
    [LensName::ClosedForm, LensName::ClosedFormClt, LensName::ClosedFormCertified];

/// A run's attribute through one of the closed-form lenses.
///
/// # Errors
/// `Unsupported` for other lenses; those of [`Sensitivities::security`].
pub fn look(
    lens: LensName,
    run: &Run,
    sensitivities: &Sensitivities,
) -> Result<View, AccountingError> {
    let security = sensitivities.security(run)?;
    Ok(View::Security(match lens {
        LensName::ClosedForm => Interval::exact(security.closed_form),
        LensName::ClosedFormClt => Interval::exact(security.central_limit),
        LensName::ClosedFormCertified => {
            let bound = security.certified;
            Interval { lower: bound, value: bound, upper: 1.0 }
        }
        other => {
            return Err(AccountingError::Unsupported(format!(
                "the lens `{other}` says nothing about an attribute; choose closed-form, \
                 closed-form-clt or closed-form-certified"
            )));
        }
    }))
}

/// Turns a claim about membership into one about the attribute.
pub(crate) fn about_attribute(claim: &mut Claim, mode: Mode, notes: &[String]) {
    claim.secret = Secret::Attribute;
    claim.assumptions = assumptions(claim.source, mode);
    claim.assumptions.extend_from_slice(notes);
    if claim.standing == Standing::Proven {
        claim.standing = Standing::Heuristic;
    }
}

/// All claims about the attribute.
///
/// # Errors
/// Those of [`look`].
pub fn claims(
    run: &Run,
    sensitivities: &Sensitivities,
    questions: &Questions,
) -> Result<Vec<Claim>, AccountingError> {
    let mut all = Vec::new();
    let asked = |lens: &LensName| questions.lenses.is_empty() || questions.lenses.contains(lens);
    for name in LENSES.into_iter().filter(asked) {
        let view = look(name, run, sensitivities)?;
        let maker = ClaimMaker::new(Lens::named(name)?, &run.into(), &[]);
        let mut push = |quantity: Quantity, at: At, interval: Interval| {
            let mut claim = maker.claim(quantity, at, Direction::Both, interval);
            about_attribute(&mut claim, sensitivities.mode(), &questions.notes);
            if claim.side == Side::Neither {
                // An estimate has no ends.
                claim.interval = Interval::exact(claim.interval.value);
            }
            all.push(claim);
        };
        push(Quantity::Advantage, At::default(), view.advantage()?);
        push(Quantity::BayesSecurity, At::default(), view.bayes_security()?);
        let fprs = if questions.fprs.is_empty() { &DEFAULT_FPRS[..] } else { &questions.fprs };
        for fpr in fprs {
            let at = At { fpr: Some(*fpr), ..At::default() };
            push(Quantity::Tpr, at, view.tpr(*fpr, Direction::Both)?);
        }
        let priors = if questions.priors.is_empty() { &[0.5][..] } else { &questions.priors };
        for prior in priors {
            let at = At { prior: Some(*prior), ..At::default() };
            push(Quantity::AttackAccuracy, at, view.attack_accuracy(*prior)?);
        }
        debug_assert!(view.as_pair().is_none());
    }
    Ok(all)
}

fn assumptions(source: Source, mode: Mode) -> Vec<String> {
    let mut all = vec![
        "the attacker sees every iterate and knows everything but one attribute of one record"
            .to_owned(),
        "the sensitivities were measured along one training; another value of the attribute \
         could have led the training elsewhere"
            .into(),
        "publishing this number reveals nothing about the attribute's value, but can reveal who is \
         in the data"
            .into(),
    ];
    all.push(match mode {
        Mode::Batch => "sensitivities are maxima over the sampled batches, as published; a record \
                        outside of a batch may have been more sensitive (not a bound)"
            .into(),
        Mode::Dataset => "sensitivities are maxima over all records".into(),
        Mode::Record => "each record has its own sensitivities; the worst record is shown".into(),
    });
    all.push(crate::schemes::FIXED_IN_ADVANCE.into());
    match source.lens() {
        Some(LensName::ClosedForm) => all.push(
            "the published closed form without its error term: it errs on the unsafe side".into(),
        ),
        Some(LensName::ClosedFormClt) => {
            all.push("the log-likelihood ratio is already normal (central limit)".into());
        }
        _ => {}
    }
    all
}
