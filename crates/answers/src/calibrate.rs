//! Which noise, steps or rate meets a target.

use crate::Refusal;
use crate::account::sensitivities;
use crate::run::{Described, TextFile};
use accounting::bayes_security::attribute::Mode;
use accounting::{Calibration, Target, Unknown};
use serde::Deserialize;
use vocabulary::{LensName, RunDescription, Sampling};

/// The question of `calibrate`: what is solved for, the rest of the run, and exactly one target
/// with what it needs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibrateQuestion {
    pub solve: Unknown,
    #[serde(default)]
    pub run: Described,
    pub target_epsilon: Option<f64>,
    pub target_mu: Option<f64>,
    pub target_bayes_security: Option<f64>,
    pub target_advantage: Option<f64>,
    pub target_tpr: Option<f64>,
    pub target_attack_accuracy: Option<f64>,
    pub target_reconstruction: Option<f64>,
    pub delta: Option<f64>,
    pub fpr: Option<f64>,
    pub prior: Option<f64>,
    /// The lens under which the target is met.
    pub lens: Option<LensName>,
    /// CSV of gradient sensitivities to a secret attribute.
    pub attribute_sensitivity: Option<TextFile>,
    pub attribute_mode: Option<Mode>,
}

pub(crate) fn ask(question: &CalibrateQuestion) -> Result<Calibration, Refusal> {
    let target = target(question)?;
    let resolved = blanked(question.run.description()?, question.solve)?.resolve()?;
    let (run, notes) = (&resolved.run, &resolved.notes);
    let lens = question.lens.unwrap_or(LensName::Composition);
    let attribute =
        sensitivities(question.attribute_sensitivity.as_ref(), question.attribute_mode)?;
    Ok(match attribute {
        None => accounting::calibrate(run, question.solve, &target, lens, notes)?,
        Some(sensitivities) => {
            // Composition says nothing about an attribute; this lens errs on the safe side.
            let lens = match lens {
                LensName::Composition => LensName::ClosedFormCertified,
                other => other,
            };
            accounting::calibrate_attribute(
                run,
                question.solve,
                &target,
                lens,
                notes,
                &sensitivities,
            )?
        }
    })
}

fn target(question: &CalibrateQuestion) -> Result<Target, Refusal> {
    let delta = |what: &str| {
        question.delta.ok_or_else(|| {
            Refusal::bad_input(format!("{what} needs a delta; add --delta, e.g. 1e-5"))
        })
    };
    let mut found: Vec<(&str, Target)> = Vec::new();
    if let Some(epsilon) = question.target_epsilon {
        let delta = delta("--target-epsilon")?;
        found.push(("--target-epsilon", Target::Epsilon { epsilon, delta }));
    }
    if let Some(mu) = question.target_mu {
        let delta = delta("--target-mu")?;
        found.push(("--target-mu", Target::Mu { mu, delta }));
    }
    if let Some(bayes_security) = question.target_bayes_security {
        found.push(("--target-bayes-security", Target::BayesSecurity { bayes_security }));
    }
    if let Some(advantage) = question.target_advantage {
        found.push(("--target-advantage", Target::Advantage { advantage }));
    }
    if let Some(tpr) = question.target_tpr {
        let fpr = question.fpr.ok_or_else(|| {
            Refusal::bad_input("--target-tpr needs a false positive rate; add --fpr, e.g. 0.01")
        })?;
        found.push(("--target-tpr", Target::Tpr { tpr, fpr }));
    }
    if let Some(accuracy) = question.target_attack_accuracy {
        let prior = question.prior.unwrap_or(0.5);
        found.push(("--target-attack-accuracy", Target::AttackAccuracy { accuracy, prior }));
    }
    if let Some(success) = question.target_reconstruction {
        let prior = question.prior.ok_or_else(|| {
            Refusal::bad_input(
                "--target-reconstruction needs a prior; add --prior, e.g. 1/candidates",
            )
        })?;
        found.push(("--target-reconstruction", Target::Reconstruction { success, prior }));
    }
    match found.as_slice() {
        [(name, target)] => {
            refuse_unused(question, name)?;
            Ok(*target)
        }
        [] => Err(Refusal::bad_input(
            "no target was given; add one, e.g. --target-epsilon 2 --delta 1e-5",
        )),
        several => {
            let names: Vec<&str> = several.iter().map(|(name, _)| *name).collect();
            Err(Refusal::bad_input(format!(
                "{} were given together; keep one of them",
                names.join(" and ")
            )))
        }
    }
}

/// A number that the target does not use was meant for another one.
fn refuse_unused(question: &CalibrateQuestion, name: &str) -> Result<(), Refusal> {
    let uses = |flag: &str| match flag {
        "--delta" => matches!(name, "--target-epsilon" | "--target-mu"),
        "--fpr" => name == "--target-tpr",
        _ => matches!(name, "--target-attack-accuracy" | "--target-reconstruction"),
    };
    let numbers =
        [("--delta", question.delta), ("--fpr", question.fpr), ("--prior", question.prior)];
    for (flag, value) in numbers {
        if let Some(value) = value
            && !uses(flag)
        {
            return Err(Refusal::bad_input(format!(
                "{flag} {value} has no meaning for {name}; drop it"
            )));
        }
    }
    Ok(())
}

/// The description with a placeholder where the unknown is, after checking that it was left out.
fn blanked(mut run: RunDescription, solve: Unknown) -> Result<RunDescription, Refusal> {
    let whole = &mut run.whole;
    let contradiction = |flag: &str| {
        Err(Refusal::bad_input(format!(
            "{flag} was given, but it is what --solve asks for (or follows from it); drop it"
        )))
    };
    match solve {
        Unknown::NoiseMultiplier => {
            if whole.noise_multiplier.is_some() {
                return contradiction("--noise-multiplier");
            }
            whole.noise_multiplier = Some(1.0);
        }
        Unknown::Steps => {
            if whole.steps.is_some() || whole.epochs.is_some() {
                return contradiction(if whole.steps.is_some() { "--steps" } else { "--epochs" });
            }
            whole.steps = Some(1);
        }
        Unknown::SampleRate => {
            if whole.sample_rate.is_some() || whole.batch_size.is_some() {
                return contradiction(if whole.sample_rate.is_some() {
                    "--sample-rate"
                } else {
                    "--batch-size"
                });
            }
            if let Some(epochs) = whole.epochs {
                return Err(Refusal::bad_input(format!(
                    "--epochs {epochs} depends on the sample rate that is solved for; give --steps"
                )));
            }
            if run.sampling != Some(Sampling::Full) {
                whole.sample_rate = Some(0.01);
            }
        }
    }
    Ok(run)
}
