//! Claims about an attribute, from its sensitivities, under the three closed-form lenses.

use super::{Mode, Sensitivities};
use crate::AccountingError;
use crate::account::{ClaimMaker, DEFAULT_FPRS, Questions};
use crate::lenses::{Lens, View};
use vocabulary::{
    At, Claim, Direction, Interval, LensName, Quantity, Run, Secret, Side, Source, Standing,
};

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
    Lens::named(lens).attribute(&security)
}

/// Turns a claim about membership into one about the attribute.
pub(crate) fn about_attribute(claim: &mut Claim, sensitivities: &Sensitivities, notes: &[String]) {
    claim.secret = Secret::Attribute;
    claim.assumptions = assumptions(claim.source, sensitivities);
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
    for lens in Lens::about_attributes().filter(|lens| asked(&lens.name)) {
        let view = look(lens.name, run, sensitivities)?;
        let maker = ClaimMaker::new(lens, &run.into(), &[]);
        let mut push = |quantity: Quantity, at: At, interval: Interval| {
            let mut claim = maker.claim(quantity, at, Direction::Both, interval);
            about_attribute(&mut claim, sensitivities, &questions.notes);
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

fn assumptions(source: Source, sensitivities: &Sensitivities) -> Vec<String> {
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
    all.push(match sensitivities.mode() {
        Mode::Batch => "sensitivities are maxima over the sampled batches, as published; a record \
                        outside of a batch may have been more sensitive (not a bound)"
            .into(),
        Mode::Dataset => "sensitivities are taken to be maxima over all records".into(),
        Mode::Record => match sensitivities.records() {
            1 => "the sensitivities are those of one record; another one may be worse".into(),
            many => format!(
                "each record has its own sensitivities; the worst of the {many} that were looked at is shown"
            ),
        },
    });
    all.push(crate::schemes::FIXED_IN_ADVANCE.into());
    let lens = source.lens().map(Lens::named);
    all.extend(lens.and_then(|lens| lens.attribute_trusts).map(String::from));
    all
}
