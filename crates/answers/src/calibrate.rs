//! Which noise, steps, rate, batch size or epochs meets a target; and the noise for several batch
//! sizes with the one to begin with.

use crate::Refusal;
use crate::account::sensitivities;
use crate::flags::{lens, real, word};
use crate::run::{Described, TextFile};
use crate::several::several;
use accounting::bayes_security::attribute::Mode;
use accounting::{AccountingError, Advice, Calibration, Target, Unknown};
use clap::Args;
use clap::builder::PossibleValue;
use serde::Deserialize;
use vocabulary::rounding::plain;
use vocabulary::{LensName, Run, RunDescription, Sampling};

/// What can be solved for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Solve {
    #[default]
    NoiseMultiplier,
    Steps,
    SampleRate,
    BatchSize,
    Epochs,
}

impl Solve {
    fn words() -> [PossibleValue; 5] {
        [
            PossibleValue::new("noise-multiplier"),
            PossibleValue::new("steps"),
            PossibleValue::new("sample-rate"),
            PossibleValue::new("batch-size")
                .help("The largest, given --dataset-size and --epochs (or --steps)"),
            PossibleValue::new("epochs")
                .help("The most, given a batch size and a data-set size, or a sample rate"),
        ]
    }
}

/// The question of `calibrate`: what is solved for, the rest of the run, and exactly one target
/// with what it needs.
#[derive(Clone, Debug, Deserialize, Args)]
#[serde(deny_unknown_fields)]
pub struct CalibrateQuestion {
    /// What to solve for
    #[arg(long, value_parser = word::<Solve>(Solve::words()), default_value = "noise-multiplier", value_name = "UNKNOWN", conflicts_with = "batch_sizes")]
    #[serde(default)]
    pub solve: Solve,
    #[arg(skip)]
    #[serde(default)]
    pub run: Described,
    /// Of advice: powers of two between 64 and a quarter of the records unless given.
    #[arg(skip)]
    #[serde(default, deserialize_with = "several")]
    pub batch_sizes: Vec<u64>,
    /// Epsilon at --delta is at most this
    #[arg(long, alias = "epsilon", value_name = "E", value_parser = real, allow_hyphen_values = true, help_heading = "The target (exactly one)")]
    pub target_epsilon: Option<f64>,
    /// Mu at --delta is at most this
    #[arg(long, value_name = "M", value_parser = real, allow_hyphen_values = true, help_heading = "The target (exactly one)")]
    pub target_mu: Option<f64>,
    /// Bayes security is at least this
    #[arg(long, value_name = "B", value_parser = real, allow_hyphen_values = true, help_heading = "The target (exactly one)")]
    pub target_bayes_security: Option<f64>,
    /// The membership advantage TPR - FPR is at most this
    #[arg(long, value_name = "A", value_parser = real, allow_hyphen_values = true, help_heading = "The target (exactly one)")]
    pub target_advantage: Option<f64>,
    /// The true positive rate at --fpr is at most this
    #[arg(long, value_name = "P", value_parser = real, allow_hyphen_values = true, help_heading = "The target (exactly one)")]
    pub target_tpr: Option<f64>,
    /// The best attacker's accuracy at --prior (default 0.5) is at most this
    #[arg(long, value_name = "A", value_parser = real, allow_hyphen_values = true, help_heading = "The target (exactly one)")]
    pub target_attack_accuracy: Option<f64>,
    /// Reconstruction success at --prior is at most this
    #[arg(long, value_name = "R", value_parser = real, allow_hyphen_values = true, help_heading = "The target (exactly one)")]
    pub target_reconstruction: Option<f64>,
    /// Delta of --target-epsilon and --target-mu
    #[arg(short = 'd', long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true, help_heading = "The target (exactly one)")]
    pub delta: Option<f64>,
    /// False positive rate of --target-tpr
    #[arg(long, value_name = "FPR", value_parser = real, allow_hyphen_values = true, help_heading = "The target (exactly one)")]
    pub fpr: Option<f64>,
    /// Prior of --target-attack-accuracy and --target-reconstruction
    #[arg(long, value_name = "PRIOR", value_parser = real, allow_hyphen_values = true, help_heading = "The target (exactly one)")]
    pub prior: Option<f64>,
    /// The lens that has to meet the target
    #[arg(long, value_name = "LENS", value_parser = lens, default_value = "composition")]
    pub lens: Option<LensName>,
    /// CSV of gradient sensitivities to a secret attribute.
    #[arg(skip)]
    pub attribute_sensitivity: Option<TextFile>,
    #[arg(skip)]
    pub attribute_mode: Option<Mode>,
    /// Seconds of processor time that the answer may take [default: 10].
    #[arg(skip)]
    pub time_limit: Option<f64>,
}

const ONE_BATCH_SIZE: &str =
    "the sensitivities of an attribute were measured for one batch size; solve for something else";

pub(crate) fn ask(question: &CalibrateQuestion) -> Result<Calibration, Refusal> {
    if !question.batch_sizes.is_empty() {
        return Err(Refusal::bad_input("batch_sizes asks for advice; ask for that, or drop it"));
    }
    let target = target(question)?;
    let lens = question.lens.unwrap_or(LensName::SIGNED);
    let attribute =
        sensitivities(question.attribute_sensitivity.as_ref(), question.attribute_mode)?;
    let unknown = match question.solve {
        Solve::NoiseMultiplier => Unknown::NoiseMultiplier,
        Solve::SampleRate => Unknown::SampleRate,
        Solve::Steps | Solve::Epochs => Unknown::Steps,
        Solve::BatchSize => {
            if attribute.is_some() {
                return Err(Refusal::bad_input(ONE_BATCH_SIZE));
            }
            return largest_batch(question, &target, lens);
        }
    };
    let resolved = blanked(question.run.description()?, unknown)?.resolve()?;
    let (run, notes) = (&resolved.run, &resolved.notes);
    let found = match attribute {
        None => accounting::calibrate(run, unknown, &target, lens, notes)?,
        Some(sensitivities) => {
            // The lens that is asked where none is named says nothing about an attribute.
            let lens = match lens {
                LensName::SIGNED => LensName::OF_ATTRIBUTES,
                other => other,
            };
            accounting::calibrate_attribute(run, unknown, &target, lens, notes, &sensitivities)?
        }
    };
    Ok(if question.solve == Solve::Epochs { accounting::in_epochs(found) } else { found })
}

/// The largest batch size that meets the target, at the given epochs or steps.
fn largest_batch(
    question: &CalibrateQuestion,
    target: &Target,
    lens: LensName,
) -> Result<Calibration, Refusal> {
    let described = question.run.description()?;
    let records = batches_of(&described, "--solve batch-size")?;
    let with = |size| with_batch(&described, size);
    Ok(accounting::calibrate_batch_size(&with, records, target, lens)?)
}

/// The data-set size of a question about batch sizes.
fn batches_of(described: &RunDescription, what: &str) -> Result<u64, Refusal> {
    let whole = &described.whole;
    if whole.sample_rate.is_some() || whole.batch_size.is_some() || !described.phases.is_empty() {
        return Err(Refusal::bad_input(format!(
            "{what} tries batch sizes itself; drop --sample-rate, --batch-size and phases"
        )));
    }
    described.dataset_size.ok_or_else(|| {
        Refusal::bad_input(format!("{what} needs the number of records; add --dataset-size"))
    })
}

fn with_batch(
    described: &RunDescription,
    size: u64,
) -> Result<(Run, Vec<String>), AccountingError> {
    let mut described = described.clone();
    described.whole.batch_size = Some(size);
    let resolved = described.resolve().map_err(AccountingError::invalid)?;
    Ok((resolved.run, resolved.notes))
}

/// The question of `calibrate --batch-sizes`: a calibration of the noise, for several batch sizes.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct AdviceQuestion(CalibrateQuestion);

impl std::ops::Deref for AdviceQuestion {
    type Target = CalibrateQuestion;

    fn deref(&self) -> &CalibrateQuestion {
        &self.0
    }
}

impl CalibrateQuestion {
    /// The same target for several batch sizes.
    pub fn for_sizes(&self, sizes: &[u64]) -> AdviceQuestion {
        AdviceQuestion(Self { batch_sizes: sizes.to_vec(), ..self.clone() })
    }
}

pub(crate) fn advise(question: &AdviceQuestion) -> Result<Advice, Refusal> {
    if question.solve != Solve::NoiseMultiplier {
        return Err(Refusal::bad_input("advice finds the noise; drop what else to solve for"));
    }
    if question.attribute_sensitivity.is_some() || question.attribute_mode.is_some() {
        return Err(Refusal::bad_input(ONE_BATCH_SIZE));
    }
    let target = target(question)?;
    let mut described = question.run.description()?;
    let records = batches_of(&described, "--batch-sizes")?;
    if described.whole.noise_multiplier.is_some() {
        return Err(Refusal::bad_input(
            "--noise-multiplier was given, but --batch-sizes finds the noise; drop it",
        ));
    }
    described.whole.noise_multiplier = Some(1.0);
    let mut sizes = question.batch_sizes.clone();
    if sizes.is_empty() {
        sizes =
            (6..40).map(|power| 1_u64 << power).take_while(|size| 4 * size <= records).collect();
    }
    if sizes.is_empty() {
        sizes = vec![records.div_ceil(4)];
    }
    if sizes.len() > 100 {
        return Err(Refusal::bad_input(format!("{} batch sizes are more than 100", sizes.len())));
    }
    let lens = question.lens.unwrap_or(LensName::SIGNED);
    let with = |size| with_batch(&described, size);
    Ok(accounting::advice(&with, &sizes, records, &target, lens)?)
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
                "{flag} {} has no meaning for {name}; drop it",
                plain(value)
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
            "{flag} was given, but the answer decides it; drop it, or choose another --solve"
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
