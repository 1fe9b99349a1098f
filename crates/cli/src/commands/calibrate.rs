//! `calibrate`: which noise, steps or rate meets a target.

use crate::args::{AttributeArgs, Format, OutputArgs, RunArgs, lens, real};
use crate::console::Console;
use crate::exit;
use crate::failure::Failure;
use crate::print::{claims, describe, plain, rounded};
use accounting::{Calibration, Solution, Target, Unknown};
use clap::{Args, ValueEnum};
use vocabulary::{LensName, Run, Sampling, Side};

/// What can be solved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Solve {
    NoiseMultiplier,
    Steps,
    SampleRate,
}

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter calibrate --solve noise-multiplier --target-epsilon 2 --delta 1e-5 \\
      --sample-rate 0.01 --steps 1000
  dosimeter calibrate --solve steps --target-tpr 0.05 --fpr 0.01 \\
      --noise-multiplier 1 --sample-rate 0.01
  dosimeter calibrate --solve sample-rate --target-bayes-security 0.9 \\
      --noise-multiplier 0.8 --steps 5000
  dosimeter calibrate --solve noise-multiplier --target-attack-accuracy 0.55 \\
      --attribute-sensitivity age.csv --sample-rate 0.01 --steps 1000
")]
pub struct CalibrateArgs {
    /// What to solve for
    #[arg(long, value_enum, value_name = "UNKNOWN")]
    solve: Solve,
    #[command(flatten)]
    target: TargetArgs,
    /// The lens under which the target is met
    #[arg(long, value_name = "LENS", value_parser = lens, default_value = "composition")]
    lens: LensName,
    #[command(flatten)]
    attribute: AttributeArgs,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl CalibrateArgs {
    /// Composition says nothing about an attribute; where no lens was chosen, the one that errs on
    /// the safe side is.
    fn attribute_lens(&self) -> LensName {
        match self.lens {
            LensName::Composition => LensName::ClosedFormCertified,
            other => other,
        }
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "The target (exactly one)")]
struct TargetArgs {
    /// Epsilon at --delta is at most this
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true)]
    target_epsilon: Option<f64>,
    /// The covering Gaussian's mu down to --delta is at most this
    #[arg(long, value_name = "M", value_parser = real, allow_hyphen_values = true)]
    target_mu: Option<f64>,
    /// Bayes security is at least this
    #[arg(long, value_name = "B", value_parser = real, allow_hyphen_values = true)]
    target_bayes_security: Option<f64>,
    /// The membership advantage TPR - FPR is at most this
    #[arg(long, value_name = "A", value_parser = real, allow_hyphen_values = true)]
    target_advantage: Option<f64>,
    /// The true positive rate at --fpr is at most this
    #[arg(long, value_name = "P", value_parser = real, allow_hyphen_values = true)]
    target_tpr: Option<f64>,
    /// The best attacker's accuracy at --prior (default 0.5) is at most this
    #[arg(long, value_name = "A", value_parser = real, allow_hyphen_values = true)]
    target_attack_accuracy: Option<f64>,
    /// Reconstruction success at --prior is at most this
    #[arg(long, value_name = "R", value_parser = real, allow_hyphen_values = true)]
    target_reconstruction: Option<f64>,
    /// Delta of --target-epsilon and --target-mu
    #[arg(long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true)]
    delta: Option<f64>,
    /// False positive rate of --target-tpr
    #[arg(long, value_name = "FPR", value_parser = real, allow_hyphen_values = true)]
    fpr: Option<f64>,
    /// Prior of --target-attack-accuracy and --target-reconstruction
    #[arg(long, value_name = "PRIOR", value_parser = real, allow_hyphen_values = true)]
    prior: Option<f64>,
}

impl TargetArgs {
    fn target(&self) -> Result<Target, Failure> {
        let delta = |what: &str| {
            self.delta.ok_or_else(|| {
                Failure::bad_input(format!("{what} needs a delta; add --delta, e.g. 1e-5"))
            })
        };
        let mut found: Vec<(&str, Target)> = Vec::new();
        if let Some(epsilon) = self.target_epsilon {
            let delta = delta("--target-epsilon")?;
            found.push(("--target-epsilon", Target::Epsilon { epsilon, delta }));
        }
        if let Some(mu) = self.target_mu {
            let delta = delta("--target-mu")?;
            found.push(("--target-mu", Target::Mu { mu, delta }));
        }
        if let Some(bayes_security) = self.target_bayes_security {
            found.push(("--target-bayes-security", Target::BayesSecurity { bayes_security }));
        }
        if let Some(advantage) = self.target_advantage {
            found.push(("--target-advantage", Target::Advantage { advantage }));
        }
        if let Some(tpr) = self.target_tpr {
            let fpr = self.fpr.ok_or_else(|| {
                Failure::bad_input("--target-tpr needs a false positive rate; add --fpr, e.g. 0.01")
            })?;
            found.push(("--target-tpr", Target::Tpr { tpr, fpr }));
        }
        if let Some(accuracy) = self.target_attack_accuracy {
            let prior = self.prior.unwrap_or(0.5);
            found.push(("--target-attack-accuracy", Target::AttackAccuracy { accuracy, prior }));
        }
        if let Some(success) = self.target_reconstruction {
            let prior = self.prior.ok_or_else(|| {
                Failure::bad_input(
                    "--target-reconstruction needs a prior; add --prior, e.g. 1/candidates",
                )
            })?;
            found.push(("--target-reconstruction", Target::Reconstruction { success, prior }));
        }
        match found.as_slice() {
            [(name, target)] => {
                self.refuse_unused(name)?;
                Ok(*target)
            }
            [] => Err(Failure::bad_input(
                "no target was given; add one, e.g. --target-epsilon 2 --delta 1e-5",
            )),
            several => {
                let names: Vec<&str> = several.iter().map(|(name, _)| *name).collect();
                Err(Failure::bad_input(format!(
                    "{} were given together; keep one of them",
                    names.join(" and ")
                )))
            }
        }
    }

    /// A flag that the target does not use was meant for another one.
    fn refuse_unused(&self, name: &str) -> Result<(), Failure> {
        let uses = |flag: &str| match flag {
            "--delta" => matches!(name, "--target-epsilon" | "--target-mu"),
            "--fpr" => name == "--target-tpr",
            _ => matches!(name, "--target-attack-accuracy" | "--target-reconstruction"),
        };
        for (flag, value) in [("--delta", self.delta), ("--fpr", self.fpr), ("--prior", self.prior)]
        {
            if let Some(value) = value
                && !uses(flag)
            {
                return Err(Failure::bad_input(format!(
                    "{flag} {value} has no meaning for {name}; drop it"
                )));
            }
        }
        Ok(())
    }
}

pub(super) fn run(args: &CalibrateArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let target = args.target.target()?;
    let (description, unknown) = blanked(args)?;
    let resolved = description.resolve()?;
    let run = resolved.run;
    let notes = resolved.notes;
    let answer = match args.attribute.load()? {
        None => accounting::calibrate(&run, unknown, &target, args.lens, &notes)?,
        Some(sensitivities) => accounting::calibrate_attribute(
            &run,
            unknown,
            &target,
            args.attribute_lens(),
            &notes,
            &sensitivities,
        )?,
    };
    match format {
        Format::Json => console.json(&answer)?,
        _ => console.answer(&human(&answer))?,
    }
    for warning in &answer.warnings {
        console.warn(warning);
    }
    Ok(exit::ANSWERED)
}

/// The description with a placeholder where the unknown is, after checking that it was left out.
fn blanked(args: &CalibrateArgs) -> Result<(vocabulary::RunDescription, Unknown), Failure> {
    let mut described = args.run.description();
    let whole = &mut described.whole;
    let contradiction = |flag: &str| {
        Err(Failure::bad_input(format!(
            "{flag} was given, but it is what --solve asks for (or follows from it); drop it"
        )))
    };
    let unknown = match args.solve {
        Solve::NoiseMultiplier => {
            if whole.noise_multiplier.is_some() {
                return contradiction("--noise-multiplier");
            }
            whole.noise_multiplier = Some(1.0);
            Unknown::NoiseMultiplier
        }
        Solve::Steps => {
            if whole.steps.is_some() || whole.epochs.is_some() {
                return contradiction(if whole.steps.is_some() { "--steps" } else { "--epochs" });
            }
            whole.steps = Some(1);
            Unknown::Steps
        }
        Solve::SampleRate => {
            if whole.sample_rate.is_some() || whole.batch_size.is_some() {
                return contradiction(if whole.sample_rate.is_some() {
                    "--sample-rate"
                } else {
                    "--batch-size"
                });
            }
            if let Some(epochs) = whole.epochs {
                return Err(Failure::bad_input(format!(
                    "--epochs {epochs} depends on the sample rate that is solved for; give --steps"
                )));
            }
            if described.sampling != Some(Sampling::Full) {
                whole.sample_rate = Some(0.01);
            }
            Unknown::SampleRate
        }
    };
    Ok((described, unknown))
}

/// The run with the solution as it is printed, i.e. rounded to the safe side.
fn as_printed(answer: &Calibration) -> Run {
    let mut phases = answer.run.phases().to_vec();
    let read = |text: String, exact: f64| text.parse().unwrap_or(exact);
    for phase in &mut phases {
        match answer.solution {
            Solution::NoiseMultiplier(noise) => {
                phase.noise_multiplier = read(rounded(noise, 6, Side::Upper), noise);
            }
            Solution::SampleRate(rate) => {
                phase.sample_rate = read(rounded(rate, 6, Side::Lower), rate);
            }
            Solution::Steps(_) => {}
        }
    }
    answer.run.with_phases(phases).unwrap_or_else(|_| answer.run.clone())
}

fn human(answer: &Calibration) -> String {
    // Noise is rounded up, steps are whole, rates are rounded down: still safe as printed.
    let solution = match answer.solution {
        Solution::NoiseMultiplier(value) => {
            format!("noise multiplier {}", rounded(value, 6, Side::Upper))
        }
        Solution::Steps(steps) => format!("steps {steps}"),
        Solution::SampleRate(rate) => {
            let mut text = format!("sample rate {}", rounded(rate, 6, Side::Lower));
            if let Some(size) = answer.run.dataset_size() {
                text.push_str(&format!(
                    " (expected batch size {} of {size})",
                    (rate * size as f64).floor()
                ));
            }
            text
        }
    };
    let claim = &answer.achieved;
    let wanted = format!(
        "{} {} {}",
        claims::title(answer.target.quantity(), answer.target.at()),
        if answer.target.quantity().is_leakage() { "<=" } else { ">=" },
        plain(answer.target.value()),
    );
    let mut text = format!("{solution}\n\n");
    text.push_str(&format!("meets     {wanted}\n"));
    // The last digits of a tiny slack are rounding, not information.
    let slack = if answer.slack <= 1e-9 * answer.target.value() {
        "slack below 1e-9 of it".to_owned()
    } else {
        format!("slack {}", rounded(answer.slack, 2, Side::Lower))
    };
    text.push_str(&format!(
        "achieved  {} ({}, lens {}), {slack}\n",
        claims::number(claim),
        claim.standing.as_str(),
        claim.source,
    ));
    text.push_str(&format!("run       {}", describe::run(&as_printed(answer))));
    text.push_str(&claims::footer(std::slice::from_ref(claim), &[]));
    text
}
